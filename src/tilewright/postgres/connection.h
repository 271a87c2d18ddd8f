// A connection to a PostgreSQL server: statements with parameters, rows as texts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/base/result.h"

struct pg_conn;
struct pg_result;

namespace tilewright::postgres {

struct Libpq;

/// A text per column; absent for NULL.
using Row = std::vector<std::optional<std::string>>;
using Rows = std::vector<Row>;

struct Bytes {
  std::string_view data;
};
/// A text, which PostgreSQL converts to what the statement needs (requires: no zero in it), bytes
/// (bytea, sent as they are), or NULL.
using Parameter = std::variant<std::nullptr_t, std::string, int64_t, double, bool, Bytes>;

/// Whether a text names a server: `postgresql://...`, `postgres://...`.
bool is_url(std::string_view text);

/// For one thread at a time. Statements wait for the server: 120 s unless `answer_within` says
/// otherwise, and longer than that means that the connection is lost.
class Connection {
 public:
  /// `limit`: units: s; 0: `connect_timeout` of the URL, 10 s without it. Looking up a host's name
  /// may take longer. errors: Unreachable (each reason with its own text, none of which shows a
  /// password), Usage (no URL; a password in it; less than sslmode=verify-full to another host),
  /// Tool (libpq is not installed).
  static Result<std::unique_ptr<Connection>> open(const std::string& url, double limit = 0);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// One statement. Outside of a transaction, one that the server broke off for the sake of others
  /// (a deadlock, a serialisation failure, a lock's limit) is tried again.
  ///   errors: Unreachable (`lost()` is true afterwards), what functions of the schema raise
  ///   (failure.h), else Io with the server's text.
  Result<Rows> query(const std::string& sql, const std::vector<Parameter>& parameters = {});
  /// The first column of the first row as bytes; empty without one. errors: as `query`.
  Result<std::string> query_bytes(const std::string& sql, const std::vector<Parameter>& parameters);
  /// One statement whose answer nobody waits for: it is read, and not looked at, before the next
  /// one. The server runs it even if the connection ends right behind it. errors: Unreachable.
  Status tell(const std::string& sql, const std::vector<Parameter>& parameters);
  /// Several statements, with an hour's time. errors: as `query`.
  Status execute_script(const std::string& sql);

  /// Asks to be told of each NOTIFY on a channel. False: there is a pooler between, which gives the
  /// server's connections to others after each statement. errors: as `query`.
  Result<bool> listen(const std::string& channel);
  /// Waits until the server has told of a NOTIFY, also of one that came with an earlier answer;
  /// false: `seconds` are over. errors: Unreachable.
  Result<bool> wait_for_notification(double seconds);

  /// Whether it is of no use any more: only a new one helps.
  bool lost() const { return lost_; }
  /// Whether the server broke the last statement off for the sake of others: a deadlock, a
  /// serialisation failure, a lock's limit.
  bool broken_off() const;
  /// Where it leads, for messages: `db.lab:5432`.
  const std::string& place() const { return place_; }
  /// units: s.
  void answer_within(double seconds) { limit_ = seconds; }

 private:
  struct Arguments;
  struct Clear {
    const Libpq* pq;
    void operator()(pg_result* result) const;
  };
  using Answer = std::unique_ptr<pg_result, Clear>;

  Connection(const Libpq* pq, pg_conn* handle) : pq_(pq), handle_(handle) {}
  Result<Answer> ask(const std::string& sql, const std::vector<Parameter>* parameters, int format);
  Result<Answer> ask_once(const std::string& sql, const Arguments* arguments, int format);
  Status send(const std::string& sql, const Arguments* arguments, int format);
  Result<Answer> receive(double end);
  Status flush(double end);
  Status wait(int events, double end);
  tl::unexpected<Error> lose(const std::string& why);

  const Libpq* pq_;
  pg_conn* handle_;
  std::string place_, code_;  ///< code_: SQLSTATE of the last statement
  double limit_ = 120;        ///< units: s
  bool lost_ = false;
  bool told_ = false;  ///< there is an answer that nobody waited for
};

}  // namespace tilewright::postgres
