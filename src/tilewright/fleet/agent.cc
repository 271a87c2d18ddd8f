#include "tilewright/fleet/agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "tilewright/base/json.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/leased_port.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

/// Pauses between claims that found nothing.
constexpr double kIdleFirst = .2, kIdleLongest = 2;
/// A renewal that was not answered for so long is asked for on a new connection: the old one may
/// lead nowhere. A third of a lease of 30 s, so that this is in time. Units: s.
constexpr double kRenewalWithin = 10;

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
  std::mutex saying, renewing;
  std::unique_ptr<Client> client;  ///< it enrolled, renews leases (under `renewing`) and leaves

  /// Renews the lease of a device; token 0: of none. On a connection that is there and has its
  /// plans: a new one costs ten times a renewal's time of the processor, on a busy machine seconds.
  Result<Json> renew(int64_t device, int64_t token) {
    const std::lock_guard<std::mutex> lock(renewing);
    Result<Json> answer = client->call("renew", {worker, secret, device, token});
    // Afterwards: it may find a lease over that has just been renewed.
    if (token != 0) (void)client->call("tick", {});
    return answer;
  }
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

/// What the store says of a device.
struct Enrolled {
  int64_t id = 0;
  std::vector<std::string> listen;  ///< channels where it tells of jobs for it
};

/// One device, in a thread of its own.
class DeviceLoop {
 public:
  DeviceLoop(Agent& agent, const Offer& offer, const Enrolled& enrolled)
      : agent_(agent), offer_(offer), id_(enrolled.id), listen_(enrolled.listen) {}

  void run() {
    double pause = kIdleFirst;
    while (!agent_.leaving() && !agent_.time_is_up() && !draining_) {
      if (!connected()) continue;
      if (!fit()) break;
      std::shared_ptr<void> held =
          agent_.options.hold ? agent_.options.hold(offer_) : std::make_shared<int>();
      if (held == nullptr) {
        nap(agent_, kIdleFirst);
        continue;
      }
      tick();
      const double sent = boot_seconds();
      const Result<Json> claimed = client_->call(
          "claim", {agent_.worker, agent_.secret, id_, int64_t{agent_.options.most_jobs}, warm()});
      if (!claimed) {
        agent_.say(fmt::format("{}: {}", offer_.name, claimed.error().what));
        if (claimed.error().kind != ErrorKind::Unreachable) agent_.ending = true;
        held.reset();
        nap(agent_, kIdleLongest);
        continue;
      }
      if (!claimed->is_object() || !claimed->contains("token")) {
        held.reset();
        draining_ = claimed->is_object() && claimed->value("drain", false);
        for (const auto& server : servers_)
          if (server != nullptr) server->idle(seconds_since(worked_));
        pause = client_->wait(pause) ? kIdleFirst : std::min(pause * 1.5, kIdleLongest);
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
    for (const std::string& channel : listen_) client_->listen(channel);
    return true;
  }

  /// Somebody has to look at the server's clock; it does so once a second, whoever asks.
  void tick() {
    constexpr double kEvery = 1;
    if (seconds_since(ticked_) < kEvery) return;
    (void)client_->call("tick", {});
    ticked_ = SteadyClock::now();
  }

  /// False, with a line that says why, where all devices of this worker have to leave.
  bool fit() {
    const std::string why = agent_.options.unfit ? agent_.options.unfit() : "";
    if (why.empty()) return true;
    agent_.ending = true;
    agent_.say(fmt::format("{} leaves: {}", offer_.name, why));
    return false;
  }

  /// All jobs of a lease. `sent`: boot_seconds before it was asked for.
  void work(const Lease& lease, double sent) {
    ++agent_.busy;
    {
      LeaseWatch watch([&] { return agent_.renew(id_, lease.token); }, sent, lease.seconds);
      bool left = false;  // a job whose rest has to run elsewhere, or later
      for (const LeasedJob& job : lease.jobs) {
        left |= agent_.leaving() || watch.yield();
        if (left || watch.lost()) break;
        if (!watch.cancelled(job.id)) left = do_job(lease, job, watch) == JobEnd::Kind::Left;
      }
      draining_ = watch.drain();
      if (left || draining_ || agent_.leaving())
        (void)client_->call("give_back", {agent_.worker, agent_.secret, id_, lease.token});
    }
    --agent_.busy;
    agent_.was_busy();
    worked_ = SteadyClock::now();
  }

  JobEnd::Kind do_job(const Lease& lease, const LeasedJob& job, LeaseWatch& watch) {
    LeasedPort port(*client_, agent_.cache, watch,
                    {agent_.worker, agent_.secret, id_, lease.token, job.id}, job,
                    [this] { return agent_.leaving(); });
    const auto begin = SteadyClock::now();
    JobServer* server = server_of(job.kind);
    const JobEnd end = port.finish(
        server != nullptr
            ? server->serve(job, port)
            : Status(fail(ErrorKind::Package,
                          fmt::format("{} does no jobs of kind '{}'", offer_.name, job.kind))));
    AgentCounts& counts = agent_.counts;
    if (end.kind == JobEnd::Kind::Done) ++counts.done;
    if (end.kind == JobEnd::Kind::Stale) ++counts.stale;
    if (end.kind == JobEnd::Kind::Unanswered) ++counts.failed;
    agent_.say(fmt::format("{}: job {} of {}: {}{} ({:.1f} s)", offer_.name,
                           job.id.substr(job.id.size() - 6), job.login,
                           end.kind == JobEnd::Kind::Left ? "given back: " : "", end.text,
                           seconds_since(begin)));
    return end.kind;
  }

  /// Null: nobody does such jobs here.
  JobServer* server_of(const std::string& kind) {
    const std::vector<Service>& services = agent_.options.services;
    servers_.resize(services.size());
    for (size_t i = 0; i < services.size(); ++i) {
      const std::vector<std::string>& kinds = services[i].kinds;
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
      if (servers_[i] == nullptr) servers_[i] = services[i].make(offer_);
      if (servers_[i] != nullptr) return servers_[i].get();
    }
    return nullptr;
  }

  /// An array of SQL. Keys are hashes, so nothing in them has to be quoted.
  std::string warm() const {
    std::string keys;
    for (const auto& server : servers_)
      for (const std::string& key : server != nullptr ? server->warm() : std::vector<std::string>())
        keys += (keys.empty() ? "" : ",") + key;
    return "{" + keys + "}";
  }

  Agent& agent_;
  const Offer& offer_;
  int64_t id_;
  std::vector<std::string> listen_;
  std::unique_ptr<Client> client_;
  std::vector<std::unique_ptr<JobServer>> servers_;  ///< by service, once it was needed
  SteadyClock::time_point worked_ = SteadyClock::now(), ticked_{};
  bool draining_ = false;
};

/// The devices as the store knows them, in the order of the offers.
Result<std::vector<Enrolled>> enroll(Agent& agent) {
  const AgentOptions& options = agent.options;
  Json devices = Json::array();
  for (const Offer& offer : options.offers) devices.push_back(to_json(offer));
  const Json answer =
      TW_TRY(agent.client->call("enroll", {options.host, options.program, options.compiler,
                                           options.sandbox, options.pool, json_text(devices)}));
  std::vector<Enrolled> enrolled;
  try {
    agent.worker = answer.at("worker");
    agent.secret = answer.at("secret");
    for (const Offer& offer : options.offers)
      for (const Json& device : answer.at("devices"))
        if (device.at("key") == offer.key)
          enrolled.push_back({device.at("id"), device.at("listen")});
  } catch (const Json::exception& error) {
    return fail(ErrorKind::Package, "the store's answer to a worker is not as expected",
                error.what(), "tilewright fleet check");
  }
  if (enrolled.size() != options.offers.size())
    return fail(ErrorKind::Package, "the store does not know every device of this worker");
  return enrolled;
}

}  // namespace

Result<void> run_agent(const AgentOptions& options, AgentCounts& counts) {
  Agent agent{
      options, counts, TW_TRY(BlobCache::open(options.cache_folder, options.cache_bytes)), {}, {}};
  agent.client = TW_TRY(Client::open(options.url));
  const std::vector<Enrolled> enrolled = TW_TRY(enroll(agent));
  for (const Offer& offer : options.offers)
    agent.say(
        fmt::format("{} ({}) takes jobs of pool {}", offer.name, offer.device_class, options.pool));
  for (size_t i = 0; i < enrolled.size(); ++i) {
    const Offer& offer = options.offers[i];
    if (offer.rates.empty()) continue;
    const Result<Json> offered = agent.client->call(
        "offer_rates", {agent.worker, agent.secret, enrolled[i].id, offer.rates});
    if (!offered)
      agent.say(fmt::format("{}: its speeds are not stored: {}", offer.name, offered.error().what));
  }
  agent.client->answer_within(kRenewalWithin);
  if (!enrolled.empty()) (void)agent.renew(enrolled[0].id, 0);  // it makes its plans now
  std::vector<std::thread> threads;
  for (size_t i = 0; i < enrolled.size(); ++i)
    threads.emplace_back([&, i] { DeviceLoop(agent, options.offers[i], enrolled[i]).run(); });
  for (std::thread& thread : threads) thread.join();
  (void)agent.client->call("leave", {agent.worker, agent.secret});
  return {};
}

}  // namespace tilewright::fleet
