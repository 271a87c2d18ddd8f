#include "tilewright/fleet/agent.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/blobs.h"
#include "tilewright/fleet/package_job.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

/// Pauses between claims that found nothing.
constexpr double kIdleFirst = .2, kIdleLongest = 2;

/// What all devices of an agent share.
struct Agent {
  const AgentOptions& options;
  AgentCounts& counts;
  BlobCache cache;
  std::string worker, secret;
  SteadyClock::time_point start = SteadyClock::now();
  std::atomic<int64_t> busy_until_ms = 0;  ///< since `start`: when something was done last
  std::atomic<int> busy = 0;               ///< devices at work
  std::atomic<bool> ending = false;
  std::mutex saying;

  void say(const std::string& line) {
    const std::lock_guard<std::mutex> lock(saying);
    if (options.say) options.say(line);
  }
  bool leaving() const { return ending || (options.leave != nullptr && options.leave->load()); }
  void was_busy() { busy_until_ms = static_cast<int64_t>(seconds_since(start) * 1000); }
  /// Whether it has been here, or idle, for as long as it may.
  bool time_is_up() const {
    const double now = seconds_since(start);
    if (options.max_time_s > 0 && now >= options.max_time_s) return true;
    return options.idle_exit_s > 0 && busy == 0 &&
           now - static_cast<double>(busy_until_ms) / 1000 >= options.idle_exit_s;
  }
};

/// A pause that ends when the agent has to leave.
void nap(const Agent& agent, double seconds) {
  for (const auto begin = SteadyClock::now(); seconds_since(begin) < seconds && !agent.leaving();)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

/// One device, in a thread of its own.
class DeviceLoop {
 public:
  DeviceLoop(Agent& agent, const Offer& offer, int64_t id)
      : agent_(agent), offer_(offer), id_(id) {}

  void run() {
    double pause = kIdleFirst;
    while (!agent_.leaving() && !agent_.time_is_up() && !draining_) {
      if (!connected()) continue;
      (void)client_->call("tick", {});  // somebody has to look at the server's clock
      const double sent = boot_seconds();
      const Result<Json> claimed =
          client_->call("claim", {agent_.worker, agent_.secret, id_, int64_t{1}, "{}"});
      if (!claimed) {
        agent_.say(fmt::format("{}: {}", offer_.name, claimed.error().what));
        if (claimed.error().kind != ErrorKind::Unreachable) agent_.ending = true;
        nap(agent_, kIdleLongest);
        continue;
      }
      if (!claimed->is_object() || !claimed->contains("token")) {
        draining_ = claimed->is_object() && claimed->value("drain", false);
        nap(agent_, pause);
        pause = std::min(pause * 1.5, kIdleLongest);
        continue;
      }
      pause = kIdleFirst;
      if (const Result<Lease> lease = lease_of(*claimed, id_))
        work(*lease, sent);
      else
        agent_.say(fmt::format("{}: {}", offer_.name, lease.error().what));
    }
  }

 private:
  /// False after a pause: try again.
  bool connected() {
    if (client_ != nullptr) return true;
    Patience patience;
    patience.seconds = 1e9;
    patience.stop = [this] { return agent_.leaving() || agent_.time_is_up(); };
    patience.waiting = [this](double waited, const Error& error) {
      agent_.say(fmt::format("{}: the store does not answer ({:.0f} s): {}", offer_.name, waited,
                             error.what));
    };
    Result<std::unique_ptr<Client>> opened = Client::open(agent_.options.url, patience);
    if (!opened) {
      nap(agent_, kIdleLongest);
      return false;
    }
    client_ = *std::move(opened);
    return true;
  }

  /// All jobs of a lease. `sent`: boot_seconds before it was asked for.
  void work(const Lease& lease, double sent) {
    ++agent_.busy;
    {
      std::unique_ptr<Client> renewing;
      LeaseWatch watch(
          [&]() -> Result<Json> {
            if (renewing == nullptr) renewing = TW_TRY(Client::open(agent_.options.url));
            (void)renewing->call("tick", {});
            return renewing->call("renew", {agent_.worker, agent_.secret, id_, lease.token});
          },
          sent, lease.seconds);
      for (const LeasedJob& job : lease.jobs) {
        if (agent_.leaving() || watch.lost()) break;
        if (!watch.cancelled(job.id)) do_job(lease, job, watch);
      }
      draining_ = watch.drain();
      if (agent_.leaving() || draining_)
        (void)client_->call("give_back", {agent_.worker, agent_.secret, id_, lease.token});
    }
    --agent_.busy;
    agent_.was_busy();
  }

  void do_job(const Lease& lease, const LeasedJob& job, LeaseWatch& watch) {
    const LeaseKey key{agent_.worker, agent_.secret, id_, lease.token, job.id};
    const auto stop = [&] { return agent_.leaving() || watch.lost() || watch.cancelled(job.id); };
    JobTools tools;
    tools.get = [&](const std::string& sha) {
      return agent_.cache.get(sha, [&] { return get_leased_blob(*client_, key, sha); });
    };
    tools.put = [&](const std::string& sha, std::string_view bytes) {
      return put_result_blob(*client_, key, sha, bytes);
    };
    tools.child = [&](const std::string& folder, double limit_s) {
      return agent_.options.child(offer_, folder, limit_s, stop);
    };
    const auto begin = SteadyClock::now();
    Result<ItemResult> result = run_job(job, tools);
    if (stop()) return;  // its outcome says nothing of the job
    const Json results = result ? Json::array({to_json(*result)}) : Json::array();
    const postgres::Parameter failed =
        result ? postgres::Parameter(nullptr) : postgres::Parameter(text_of(result.error()));
    const Result<Json> answer =
        client_->call("post", {agent_.worker, agent_.secret, id_, job.id, lease.token,
                               int64_t{job.next}, results.dump(), failed});
    count(job, answer, result, seconds_since(begin));
    if (answer) watch.hear(*answer);
  }

  static std::string text_of(const Error& error) {
    return error.why.empty() ? error.what : error.what + ": " + error.why;
  }

  static Result<ItemResult> run_job(const LeasedJob& job, const JobTools& tools) {
    if (job.kind == "run") return run_package_job(job, tools);
    return fail(ErrorKind::Package, fmt::format("this worker does no jobs of kind '{}'", job.kind));
  }

  void count(const LeasedJob& job, const Result<Json>& answer, const Result<ItemResult>& result,
             double seconds) {
    const std::string name = job.id.substr(job.id.size() - 6);
    if (!answer) {
      ++agent_.counts.failed;
      agent_.say(fmt::format("{}: job {}: its result could not be posted: {}", offer_.name, name,
                             answer.error().what));
    } else if (answer->value("answer", "") == "stale") {
      ++agent_.counts.stale;
      agent_.say(fmt::format("{}: job {}: the lease was over", offer_.name, name));
    } else {
      ++agent_.counts.done;
      agent_.say(fmt::format("{}: job {} of {}: {} ({:.1f} s)", offer_.name, name, job.login,
                             result ? result->outcome : result.error().what, seconds));
    }
  }

  Agent& agent_;
  const Offer& offer_;
  int64_t id_;
  std::unique_ptr<Client> client_;
  bool draining_ = false;
};

/// The numbers that the store gave to the devices, in the order of the offers.
Result<std::vector<int64_t>> enroll(Agent& agent, Client& client) {
  const AgentOptions& options = agent.options;
  Json devices = Json::array();
  for (const Offer& offer : options.offers) devices.push_back(to_json(offer));
  const Json answer =
      TW_TRY(client.call("enroll", {options.host, options.program, options.compiler,
                                    options.sandbox, options.pool, devices.dump()}));
  std::vector<int64_t> ids;
  try {
    agent.worker = answer.at("worker");
    agent.secret = answer.at("secret");
    for (const Offer& offer : options.offers)
      for (const Json& device : answer.at("devices"))
        if (device.at("key") == offer.key) ids.push_back(device.at("id"));
  } catch (const Json::exception& error) {
    return fail(ErrorKind::Package, "the store's answer to a worker is not as expected",
                error.what(), "tilewright fleet check");
  }
  if (ids.size() != options.offers.size())
    return fail(ErrorKind::Package, "the store does not know every device of this worker");
  return ids;
}

}  // namespace

Result<void> run_agent(const AgentOptions& options, AgentCounts& counts) {
  auto client = TW_TRY(Client::open(options.url));
  Agent agent{
      options, counts, TW_TRY(BlobCache::open(options.cache_folder, options.cache_bytes)), {}, {}};
  const std::vector<int64_t> ids = TW_TRY(enroll(agent, *client));
  for (const Offer& offer : options.offers)
    agent.say(
        fmt::format("{} ({}) takes jobs of pool {}", offer.name, offer.device_class, options.pool));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ids.size(); ++i)
    threads.emplace_back([&, i] { DeviceLoop(agent, options.offers[i], ids[i]).run(); });
  for (std::thread& thread : threads) thread.join();
  (void)client->call("leave", {agent.worker, agent.secret});
  return {};
}

}  // namespace tilewright::fleet
