// The functions of the schema `fleet`, called by name: JSON in, JSON out.
//
// Example: `client.call("tick", {})` runs `SELECT fleet.tick()` and parses what comes back.
//
// A call may be repeated: whatever the schema's functions did already, they do not do again. So a
// lost connection is made anew and the call is made again, for as long as the caller has patience.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/postgres/connection.h"

namespace tilewright::fleet {

/// How long a caller waits for a store that does not answer.
struct Patience {
  double seconds = 0;  ///< 0: the first failure is the answer
  /// Told every few seconds while nothing answers. May be empty.
  std::function<void(double waited, const Error& error)> waiting;
  /// Ends the wait when it returns true. May be empty.
  std::function<bool()> stop;
};

/// For one thread at a time.
class Client {
 public:
  /// Connects, and looks at the version of the schema.
  /// errors: Unreachable, Usage, Tool, Package (schema and program do not fit together).
  static Result<std::unique_ptr<Client>> open(const std::string& url, Patience patience = {});
  /// Connects when it is first called, with patience: for a store that was there a moment ago.
  static std::unique_ptr<Client> reopen(const std::string& url, Patience patience);

  /// What `fleet.FUNCTION` returns; null for NULL and for nothing.
  /// errors: Unreachable (patience ended), those of the function.
  Result<nlohmann::json> call(const std::string& function,
                              const std::vector<postgres::Parameter>& parameters);
  /// The same of a function that returns bytes; empty for NULL.
  Result<std::string> bytes(const std::string& function,
                            const std::vector<postgres::Parameter>& parameters);

  /// Calls what nobody needs an answer of, and what may be left undone if the store goes away now.
  /// It is not waited for on a direct connection; a pooler would take the end of one for trouble.
  void tell(const std::string& function, const std::vector<postgres::Parameter>& parameters);

  /// From now on `wait` ends when somebody tells of news on a channel, where the store lets us
  /// hear: not through a pooler. Who does not hear finds out by asking.
  void listen(const std::string& channel);
  /// A pause; true: it was ended early by news. Ends early, too, when patience is told to stop.
  /// units: s.
  bool wait(double seconds);

  const std::string& url() const { return url_; }
  /// How long calls have waited for a store that did not answer, all together. units: s.
  double away() const { return away_; }
  /// A call whose answer takes longer fails, and the connection is lost. units: s.
  void answer_within(double seconds);
  /// The one before.
  Patience set_patience(Patience patience) { return std::exchange(patience_, std::move(patience)); }

 private:
  Client(std::string url, Patience patience)
      : url_(std::move(url)), patience_(std::move(patience)) {}
  Status connect();
  /// Calls `once` until it does not fail for want of a server, or patience ends.
  template <class T>
  Result<T> repeat(const std::function<Result<T>()>& once);

  std::string url_;
  Patience patience_;
  double away_ = 0;
  std::optional<double> limit_;  ///< of an answer, if it is another one than the connection's
  std::unique_ptr<postgres::Connection> connection_;
  std::vector<std::string> channels_;
  bool hears_ = false;  ///< it is a direct connection
};

/// A UUID of version 7: those made later are greater, so indexes grow at their end.
std::string new_uuid();

}  // namespace tilewright::fleet
