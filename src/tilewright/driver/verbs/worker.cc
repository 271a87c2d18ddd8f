// worker: this machine takes jobs from a fleet, until it is told to leave.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "tilewright/base/environment.h"
#include "tilewright/compile/devices.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/command_line/amount.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/child.h"
#include "tilewright/driver/fleet/device_use.h"
#include "tilewright/driver/fleet/offers.h"
#include "tilewright/driver/fleet/run_folder.h"
#include "tilewright/driver/fleet/store_url.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/fleet/agent.h"
#include "tilewright/fleet/measure/measure_server.h"
#include "tilewright/fleet/measure/model_device.h"
#include "tilewright/fleet/package_job.h"
#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/fleet/signed_job.h"

namespace tilewright::driver {
namespace {

struct WorkerVerb {
  std::vector<std::string> devices, tags;
  std::string store, pool = "default", sandbox = "auto", cache = "10G", cache_folder;
  std::string idle_exit, max_time, trust;
  bool emulated = false;
};

/// SIGTERM asks a worker to leave, as Ctrl-C does.
std::atomic<bool>& asked_to_leave() {
  static std::atomic<bool> asked = false;
  return asked;
}

void leave_on_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    if (asked_to_leave().exchange(true)) _exit(130);  // asked twice: at once
  };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

std::string cache_folder(const WorkerVerb& verb) {
  if (!verb.cache_folder.empty()) return verb.cache_folder;
  if (const auto folder = environment("TILEWRIGHT_CACHE_DIR")) return *folder + "/fleet";
  if (const auto folder = environment("XDG_CACHE_HOME")) return *folder + "/tilewright/fleet";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.cache/tilewright/fleet";
}

/// Simulators count cycles where they are; everything else is measured.
bool measures_schedules(const std::string& device) {
  return device == "cpu" || device.starts_with("runner:") ||
         hw::find_gpu_target(compile::backend_name(device)).has_value();
}

/// Whose packages run on a device. `path`: the keys that are trusted; empty: everybody's do.
/// errors: those of the keys.
Result<std::function<fleet::AllowJob(const fleet::Offer& offer)>> allowed_by(
    const std::string& path, const std::string& pool) {
  using Rule = std::function<fleet::AllowJob(const fleet::Offer& offer)>;
  if (path.empty()) return Rule([](const fleet::Offer&) { return fleet::AllowJob(); });
  const auto keys = std::make_shared<fleet::TrustedKeys>(TW_TRY(fleet::TrustedKeys::load(path)));
  say(fmt::format("packages run only if one of {} keys of {} signed them", keys->size(), path));
  return Rule([keys, pool](const fleet::Offer& offer) -> fleet::AllowJob {
    const fleet::JobPlace place = {pool, offer.device_class, offer.name, offer.tags};
    return [keys, place](const fleet::LeasedJob& job, const std::string& payload) {
      return fleet::check_signature(*keys, job, payload, place, std::time(nullptr));
    };
  });
}

/// What devices of this machine do. `children` outlives the services.
std::vector<fleet::Service> services(
    const ChildRunner& children,
    const std::function<fleet::AllowJob(const fleet::Offer& offer)>& allowed) {
  const auto packages = [&children,
                         allowed](const fleet::Offer& offer) -> std::unique_ptr<fleet::JobServer> {
    if (offer.device.starts_with("model")) return nullptr;
    return fleet::package_server(
        [&children, offer](const std::string& folder, double limit_s,
                           const std::function<bool()>& stop) {
          return children.run(offer, folder, limit_s, stop);
        },
        allowed(offer), children.opening(offer));
  };
  const auto schedules =
      [&children](const fleet::Offer& offer) -> std::unique_ptr<fleet::JobServer> {
    if (offer.device.starts_with("model"))
      return fleet::model_server(*fleet::parse_model_device(offer.device), offer.key);
    if (!measures_schedules(offer.device)) return nullptr;
    fleet::ServedDevice device;
    device.id = offer.device;
    if (offer.device.starts_with("runner:"))
      if (const auto target = hw::find_target(offer.target)) device.triple = target->triple;
    device.start = children.measuring(offer);
    return fleet::measure_server(std::move(device));
  };
  return {{{"run"}, packages}, {{"measure", "race"}, schedules}};
}

Result<int> work(const WorkerVerb& verb, bool as_json) {
  fleet::AgentOptions options;
  options.url = TW_TRY(fleet_store(verb.store));
  options.pool = verb.pool;
  options.offers = TW_TRY(offers_of(verb.devices, verb.tags, verb.emulated));
  options.host = host_name();
  options.program = fleet::program_version();
  options.compiler = compiler_key();
  const ChildRunner children = TW_TRY(ChildRunner::create(verb.sandbox));
  options.sandbox = children.sandbox();
  options.services = services(children, TW_TRY(allowed_by(verb.trust, verb.pool)));
  options.hold = [](const fleet::Offer& offer) -> std::shared_ptr<void> {
    if (offer.emulated) return std::make_shared<int>();
    return take_device(offer.device);
  };
  options.unfit = [] {
    return program_is_there() ? "" : "the file of this program was replaced; start it anew";
  };
  options.cache_folder = cache_folder(verb);
  options.cache_bytes = TW_TRY(parse_bytes("--cache", verb.cache));
  if (!verb.idle_exit.empty())
    options.idle_exit_s = TW_TRY(parse_seconds("--idle-exit", verb.idle_exit, "5m"));
  if (!verb.max_time.empty())
    options.max_time_s = TW_TRY(parse_seconds("--max-time", verb.max_time, "55m"));
  options.say = [](const std::string& line) { say(line); };
  leave_on_signals();
  options.leave = &asked_to_leave();
  fleet::AgentCounts counts;
  TW_TRY_STATUS(fleet::run_agent(options, counts));
  nlohmann::ordered_json json = document("worker");
  json["done"] = counts.done.load();
  json["stale"] = counts.stale.load();
  json["failed"] = counts.failed.load();
  if (as_json)
    print_json(json);
  else
    say(fmt::format("left: {} jobs done, {} came too late, {} could not be posted",
                    counts.done.load(), counts.stale.load(), counts.failed.load()));
  return 0;
}

}  // namespace

void add_worker(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("worker", "Takes jobs from a fleet, until Ctrl-C or SIGTERM");
  auto options = std::make_shared<WorkerVerb>();
  verb.add_option(
          "--device", options->devices,
          "a device to offer (`tilewright devices`), ssh:BOARD, or runner:CMD; once for each")
      .required();
  verb.add_option("--tag", options->tags, "a word that jobs may ask for: lab, site=berlin");
  verb.add_option("--pool", options->pool, "which pool it serves");
  add_store_option(verb, options->store);
  verb.add_flag("--emulated", options->emulated, "its times mean nothing");
  verb.add_option("--sandbox", options->sandbox,
                  "how jobs are confined: auto, bwrap, landlock, or none (you trust them)")
      .one_of({"auto", "bwrap", "landlock", "none"});
  verb.add_option("--trust", options->trust,
                  "run only packages that a key of this file, or folder of *.pub, has signed");
  verb.add_option("--cache", options->cache, "bytes of packages to keep: 10G");
  verb.add_option("--cache-dir", options->cache_folder, "where to keep them");
  verb.add_option("--idle-exit", options->idle_exit, "leave after so long without work: 5m");
  verb.add_option("--max-time", options->max_time, "leave after so long, between jobs: 55m");
  verb.callback([&context, options] {
    context.action = [&context, options] { return work(*options, context.json); };
  });
}

void add_run_folder(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("run-folder", "Runs a package for a worker");
  verb.hide();
  auto folder = std::make_shared<std::string>();
  verb.add_option("folder", *folder, "where the package, its inputs and job.json are").required();
  verb.callback([&context, folder] {
    context.action = [folder]() -> Result<int> {
      TW_TRY_STATUS(run_folder(*folder));
      return 0;
    };
  });
}

}  // namespace tilewright::driver
