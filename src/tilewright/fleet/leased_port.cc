#include "tilewright/fleet/leased_port.h"

#include <fmt/format.h>

#include <utility>

#include "tilewright/base/json.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

std::string text_of(const Error& error) {
  return error.why.empty() ? error.what : error.what + ": " + error.why;
}

}  // namespace

LeasedPort::LeasedPort(Client& client, BlobCache& cache, LeaseWatch& watch, LeaseKey key,
                       const LeasedJob& job, std::function<bool()> leaving)
    : client_(client),
      cache_(cache),
      watch_(watch),
      key_(std::move(key)),
      job_(job),
      leaving_(std::move(leaving)),
      poster_(job.next,
              [this](int from, const Json& results, const std::optional<std::string>& failed) {
                return post(from, results, failed);
              }) {}

Status LeasedPort::append(const std::string& sha256, const std::string& path) {
  const std::lock_guard<std::mutex> lock(calling_);
  return cache_.append(sha256, path, [&] { return get_leased_blob(client_, key_, sha256); });
}

Result<std::string> LeasedPort::get(const std::string& sha256) {
  const std::lock_guard<std::mutex> lock(calling_);
  return cache_.get(sha256, [&] { return get_leased_blob(client_, key_, sha256); });
}

Status LeasedPort::put(const std::string& sha256, std::string_view bytes) {
  const std::lock_guard<std::mutex> lock(calling_);
  return put_result_blob(client_, key_, sha256, bytes);
}

void LeasedPort::add(ItemResult result) {
  ++added_;
  outcome_ = result.outcome;
  poster_.add(std::move(result));
}

bool LeasedPort::stop() {
  if (leaving_() || watch_.lost() || watch_.cancelled(job_.id) || poster_.over()) stopped_ = true;
  return stopped_;
}

bool LeasedPort::stop_between_items() {
  poster_.keep_asking();
  if (watch_.yield() || watch_.drain()) stopped_ = true;
  return stop();
}

/// Once, without patience: who asks decides how often.
Result<Json> LeasedPort::post(int from, const Json& results,
                              const std::optional<std::string>& failed) {
  const std::lock_guard<std::mutex> lock(calling_);
  Patience kept = client_.set_patience({});
  // Texts of children may hold bytes that are no UTF-8.
  Result<Json> answer =
      client_.call("post", {key_.worker, key_.secret, key_.device, key_.job, key_.token,
                            int64_t{from}, json_text(results),
                            failed ? postgres::Parameter(*failed) : postgres::Parameter(nullptr)});
  client_.set_patience(std::move(kept));
  if (answer) watch_.hear(*answer);
  return answer;
}

JobEnd LeasedPort::finish(const Status& served) {
  using Kind = JobEnd::Kind;
  const JobEnd stale{Kind::Stale, "the lease was over, or nobody wants it any more"};
  if (watch_.lost() || watch_.cancelled(job_.id)) return stale;  // nothing counts any more
  std::optional<std::string> failed;
  const int wanted = job_.items - job_.next;
  // Who is stopped says nothing of the job by not finishing it.
  if (!served && !stopped_)
    failed = text_of(served.error());
  else if (added_ < wanted && !stopped_)
    failed = fmt::format("the worker made {} of {} results", added_, wanted);
  const Result<Json> answer =
      poster_.finish(failed, [this] { return leaving_() || watch_.lost(); });
  if (!answer)
    return {answer.error().kind == ErrorKind::Unreachable ? Kind::Unanswered : Kind::Stale,
            text_of(answer.error())};
  if (poster_.over()) return stale;
  if (failed) return {Kind::Done, "failed: " + *failed};
  const std::string text =
      wanted == 1 ? outcome_ : fmt::format("{} of {} ok", poster_.good(), wanted);
  return {poster_.next() == job_.items ? Kind::Done : Kind::Left, text};
}

}  // namespace tilewright::fleet
