#include "tilewright/records/postgres/postgres.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tilewright/base/json.h"
#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/postgres/connection.h"

namespace tilewright::records {
namespace {

using nlohmann::json;
using postgres::Connection;
using postgres::Parameter;
using postgres::Rows;

constexpr size_t kSent = 2000;  ///< records or workloads per statement: a second or so
constexpr int64_t kFetched = 1000;
constexpr int kAttempts = 6;

/// A text as JSON of PostgreSQL can hold it: without zeros; what is no UTF-8 is replaced later.
std::string without_zeros(std::string text) {
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

json json_of(const Record& record) {
  json object;
  for_each_field(record, [&](std::string_view name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
      object[name] = without_zeros(value);
    else
      object[name] = value;
  });
  return object;
}

std::string text_of(const json& value) { return json_text(value); }

Result<Record> record_of(const std::string& text) {
  const json object = parse_json(text, std::nothrow);
  Record record;
  try {
    for_each_field(record,
                   [&](std::string_view name, auto& value) { object.at(name).get_to(value); });
  } catch (const json::exception& problem) {
    return fail(ErrorKind::Package, "a record of the store cannot be read", problem.what());
  }
  return record;
}

std::vector<Parameter> parameters_of(const RecordFilter& filter) {
  return {filter.workload, filter.target, filter.compiler, filter.kind, filter.ok_only};
}

int64_t number_in(const Rows& rows) {
  return rows.empty() || !rows[0][0] ? 0 : std::strtoll(rows[0][0]->c_str(), nullptr, 10);
}

class PostgresStore final : public Store {
 public:
  PostgresStore(std::string url, double limit) : url_(std::move(url)), limit_(limit) {}

  /// Makes sure that there is a connection, to a schema that fits.
  Status connect() const {
    if (connection_ != nullptr && !connection_->lost()) return {};
    connection_.reset();
    auto made = TW_TRY(Connection::open(url_, limit_));
    if (limit_ > 0) made->answer_within(limit_);
    TW_TRY_STATUS(fleet::check(TW_TRY(fleet::state(*made))));
    connection_ = std::move(made);
    return {};
  }

  Result<int64_t> add_all(const std::vector<Record>& records, const Workloads& workloads) override;
  Result<std::string> workload(const std::string& key) const override;
  Status each_workload(const std::function<void(const std::string& key, const std::string& func)>&
                           visit) const override;
  Status each(const RecordFilter& filter,
              const std::function<void(const Record&)>& visit) const override;
  Result<int64_t> count(const RecordFilter& filter) const override {
    return number_in(
        TW_TRY(ask("SELECT fleet.records_count($1, $2, $3, $4, $5)", parameters_of(filter))));
  }
  Result<std::optional<Record>> best(const RecordFilter& filter) const override {
    return one("SELECT fleet.records_best($1, $2, $3, $4, $5)", filter);
  }
  Result<std::optional<Record>> last(const RecordFilter& filter) const override {
    return one("SELECT fleet.records_last($1, $2, $3, $4, $5)", filter);
  }
  Result<int64_t> prune(int keep) override {
    return number_in(TW_TRY(ask("SELECT fleet.records_prune($1)", {int64_t{keep}})));
  }

 private:
  /// What may be asked again without harm is: once, after a connection that was lost.
  Result<Rows> ask(const std::string& sql, const std::vector<Parameter>& parameters) const;
  Result<std::optional<Record>> one(const std::string& sql, const RecordFilter& filter) const;
  Result<int64_t> send(const std::vector<Record>& records, const Workloads& workloads);

  std::string url_;
  double limit_;
  mutable std::unique_ptr<Connection> connection_;
};

Result<Rows> PostgresStore::ask(const std::string& sql,
                                const std::vector<Parameter>& parameters) const {
  TW_TRY_STATUS(connect());
  Result<Rows> rows = connection_->query(sql, parameters);
  if (rows || !connection_->lost()) return rows;
  TW_TRY_STATUS(connect());
  return connection_->query(sql, parameters);
}

Result<std::optional<Record>> PostgresStore::one(const std::string& sql,
                                                 const RecordFilter& filter) const {
  const Rows rows = TW_TRY(ask(sql, parameters_of(filter)));
  if (rows.empty() || !rows[0][0]) return std::optional<Record>();
  return std::optional<Record>(TW_TRY(record_of(*rows[0][0])));
}

/// In statements of a size that a server takes in a second.
Result<int64_t> PostgresStore::send(const std::vector<Record>& records,
                                    const Workloads& workloads) {
  int64_t added = 0;
  auto workload = workloads.begin();
  for (size_t begin = 0; begin < records.size() || workload != workloads.end();) {
    json some = json::array(), funcs = json::object();
    for (; some.size() < kSent && begin < records.size(); ++begin)
      some.push_back(json_of(records[begin]));
    for (; some.size() + funcs.size() < kSent && workload != workloads.end(); ++workload)
      funcs[without_zeros(workload->first)] = without_zeros(workload->second);
    added += number_in(TW_TRY(
        connection_->query("SELECT fleet.records_add($1, $2)", {text_of(some), text_of(funcs)})));
  }
  return added;
}

Result<int64_t> PostgresStore::add_all(const std::vector<Record>& records,
                                       const Workloads& workloads) {
  if (records.empty() && workloads.empty()) return 0;
  for (int attempt = 1;; ++attempt) {
    TW_TRY_STATUS(connect());
    Result<int64_t> added = connection_->execute_script("BEGIN").map([] { return int64_t{0}; });
    if (added) added = send(records, workloads);
    if (added)
      if (Status done = connection_->execute_script("COMMIT"); !done)
        added = tl::unexpected<Error>(std::move(done.error()));
    if (added) return added;
    // The same records again change nothing: where the answer was lost, they may be there.
    const bool again = connection_->lost() || connection_->broken_off();
    if (!connection_->lost()) (void)connection_->execute_script("ROLLBACK");
    if (!again || attempt == kAttempts) return added;
  }
}

Result<std::string> PostgresStore::workload(const std::string& key) const {
  const Rows rows = TW_TRY(ask("SELECT fleet.workload_text($1)", {key}));
  if (!rows.empty() && rows[0][0]) return *rows[0][0];
  return fail(ErrorKind::Package, fmt::format("the store has no workload {}", key));
}

Status PostgresStore::each_workload(
    const std::function<void(const std::string& key, const std::string& func)>& visit) const {
  for (std::string after;;) {
    const Rows rows =
        TW_TRY(ask("SELECT key, func FROM fleet.workloads_page($1, $2)", {after, kFetched}));
    if (rows.empty()) return {};
    for (const postgres::Row& row : rows) visit(row[0].value_or(""), row[1].value_or(""));
    after = rows.back()[0].value_or("");
  }
}

Status PostgresStore::each(const RecordFilter& filter,
                           const std::function<void(const Record&)>& visit) const {
  for (int64_t after = 0;;) {
    std::vector<Parameter> parameters = parameters_of(filter);
    parameters.insert(parameters.end(), {after, kFetched});
    const Rows rows = TW_TRY(
        ask("SELECT id, record FROM fleet.records_page($1, $2, $3, $4, $5, $6, $7)", parameters));
    if (rows.empty()) return {};
    for (const postgres::Row& row : rows) visit(TW_TRY(record_of(row[1].value_or(""))));
    after = std::strtoll(rows.back()[0].value_or("").c_str(), nullptr, 10);
  }
}

}  // namespace

Result<std::shared_ptr<Store>> open_postgres_store(const std::string& url, double limit) {
  auto store = std::make_shared<PostgresStore>(url, limit);
  TW_TRY_STATUS(store->connect());
  return std::shared_ptr<Store>(std::move(store));
}

}  // namespace tilewright::records
