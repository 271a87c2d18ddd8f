// fleet: the database in which users and workers meet: making it, looking at it, tending it.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/command_line/amount.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/launchers.h"
#include "tilewright/driver/fleet/status_report.h"
#include "tilewright/driver/fleet/store_url.h"
#include "tilewright/fleet/client.h"
#include "tilewright/fleet/keys.h"
#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/postgres/server.h"

namespace tilewright::driver {
namespace {

struct FleetVerb {
  std::string store;
  std::string private_folder;
  std::string name;          ///< of a device, worker or run
  std::string time = "10m";  ///< of a hold
  std::string kind;          ///< of a launcher
  std::vector<std::string> devices;
  double every = 2;  ///< seconds between pictures of `top`
  int64_t limit = 50;
  std::string login_kind, pool, device_class = "*", most_time, blobs;
  double weight = 0;       ///< 0: as it is
  int64_t most_ready = 0;  ///< likewise
  bool off = false, on = false, submit = false, serve = false, revoke = false;
};

Result<std::unique_ptr<fleet::Client>> client_of(const FleetVerb& verb) {
  return fleet::Client::open(TW_TRY(fleet_store(verb.store)));
}

/// A server of one's own, running when this returns: also after this program has ended.
Result<std::string> private_server(const std::string& folder) {
  const std::string path = std::filesystem::absolute(folder).lexically_normal().string();
  const std::string url = postgres::PrivateServer::url(path);
  TW_TRY_STATUS(postgres::PrivateServer::init(path));
  if (postgres::Connection::open(url)) return url;  // it runs already
  postgres::ServerOptions options;
  options.bound = false;
  TW_TRY(postgres::PrivateServer::start(path, options));
  return url;
}

Result<int> init(const FleetVerb& verb, bool as_json) {
  if (!verb.private_folder.empty() && !verb.store.empty())
    return fail(ErrorKind::Usage, "--private and --store are two fleets", {}, "leave one out");
  const std::string url = verb.private_folder.empty() ? TW_TRY(fleet_store(verb.store))
                                                      : TW_TRY(private_server(verb.private_folder));
  const auto connection = TW_TRY(postgres::Connection::open(url));
  TW_TRY_STATUS(fleet::migrate(*connection));
  TW_TRY(connection->query("SELECT fleet.check_server()"));
  // A database that somebody names is there to stay; one's own server ends with `fleet stop`.
  std::optional<bool> for_records;
  if (!verb.private_folder.empty() || !verb.store.empty()) for_records = !verb.store.empty();
  TW_TRY_STATUS(keep_fleet_store(url, for_records));
  nlohmann::ordered_json json = document("fleet");
  json["action"] = "init";
  json["store"] = url;
  json["settings"] = settings_path();
  if (as_json) {
    print_json(json);
    return 0;
  }
  fmt::print("{}\n", url);
  say(
      fmt::format("the fleet is ready; {} names it{}\n"
                  "next: tilewright worker --device cpu &\n"
                  "      tilewright fleet status",
                  settings_path(), verb.store.empty() ? "" : ", for tuning records too"));
  return 0;
}

Result<int> stop(const FleetVerb& verb) {
  TW_TRY_STATUS(postgres::PrivateServer::stop(
      std::filesystem::absolute(verb.private_folder).lexically_normal().string()));
  say("stopped; `tilewright fleet init --private` with the same folder starts it again");
  return 0;
}

Result<int> migrate(const FleetVerb& verb) {
  const auto connection = TW_TRY(postgres::Connection::open(TW_TRY(fleet_store(verb.store))));
  TW_TRY_STATUS(fleet::migrate(*connection));
  say("the fleet's schema is that of this program");
  return 0;
}

Result<int> check(const FleetVerb& verb, bool as_json) {
  const auto connection = TW_TRY(postgres::Connection::open(TW_TRY(fleet_store(verb.store))));
  TW_TRY_STATUS(fleet::check(TW_TRY(fleet::state(*connection))));
  TW_TRY(connection->query("SELECT fleet.check_server()"));
  nlohmann::ordered_json json = document("fleet");
  json["action"] = "check";
  json["place"] = connection->place();
  if (as_json)
    print_json(json);
  else
    fmt::print("{}: schema and settings are sound\n", connection->place());
  return 0;
}

Result<int> status(const FleetVerb& verb, bool as_json) {
  const auto client = TW_TRY(client_of(verb));
  const nlohmann::json json = TW_TRY(client->call("status", {}));
  if (as_json) {
    nlohmann::ordered_json answer = document("fleet");
    answer["action"] = "status";
    answer["status"] = json;
    print_json(answer);
  } else {
    fmt::print("{}", TW_TRY(status_text(json)));
  }
  return 0;
}

/// The status, again and again, until Ctrl-C or until nobody reads it.
Result<int> top(const FleetVerb& verb) {
  const auto client = TW_TRY(client_of(verb));
  const bool terminal = isatty(fileno(stdout)) != 0;
  while (!interrupted()) {
    const nlohmann::json json = TW_TRY(client->call("status", {}));
    fmt::print("{}{}\n", terminal ? "\x1b[H\x1b[2J" : "", TW_TRY(status_text(json)));
    if (std::fflush(stdout) != 0) break;
    for (double left = verb.every; left > 0 && !interrupted(); left -= .1)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return 0;
}

/// What a function of the schema answers, as it is.
Result<int> tell_answer(const FleetVerb& verb, const std::string& function,
                        const std::vector<postgres::Parameter>& parameters, bool as_json) {
  const auto client = TW_TRY(client_of(verb));
  const nlohmann::json answer = TW_TRY(client->call(function, parameters));
  nlohmann::ordered_json json = document("fleet");
  json["action"] = function;
  json["answer"] = answer;
  if (as_json)
    print_json(json);
  else if (answer.is_string())
    fmt::print("{}\n", answer.get<std::string>());
  else if (answer.is_null())
    say(function + ": done");
  else
    fmt::print("{}", answer_text(answer));
  return 0;
}

/// Calls a function of the owner's, and says `text` when it is done.
Result<int> change(const FleetVerb& verb, const std::string& action, const std::string& function,
                   const std::vector<postgres::Parameter>& parameters, const std::string& text,
                   bool as_json) {
  TW_TRY(TW_TRY(client_of(verb))->call(function, parameters));
  nlohmann::ordered_json json = document("fleet");
  json["action"] = action;
  json["name"] = verb.name;
  as_json ? print_json(json) : say(text);
  return 0;
}

/// NULL leaves a value as it is.
template <class T>
postgres::Parameter unless(bool same, const T& value) {
  return same ? postgres::Parameter(nullptr) : postgres::Parameter(value);
}

Result<int> login(const FleetVerb& verb, bool as_json) {
  if (verb.off && verb.on)
    return fail(ErrorKind::Usage, "--off and --on exclude each other", {}, "leave one out");
  const int64_t bytes = verb.blobs.empty() ? 0 : TW_TRY(parse_bytes("--blobs", verb.blobs));
  return change(
      verb, "login", "login_set",
      {verb.name, unless(verb.login_kind.empty(), verb.login_kind),
       unless(verb.weight == 0, verb.weight), unless(verb.most_ready == 0, verb.most_ready),
       unless(bytes == 0, bytes), unless(!verb.off && !verb.on, verb.off)},
      fmt::format("the fleet knows {}; what it may do: tilewright fleet grant {} ...", verb.name,
                  verb.name),
      as_json);
}

Result<int> pool(const FleetVerb& verb, bool as_json) {
  const double seconds =
      verb.most_time.empty() ? 0 : TW_TRY(parse_seconds("--max-time", verb.most_time, "10m"));
  return change(verb, "pool", "pool_set", {verb.name, unless(seconds == 0, seconds)},
                fmt::format("there is a pool {}; who may use it: tilewright fleet grant LOGIN "
                            "--pool {} --submit",
                            verb.name, verb.name),
                as_json);
}

Result<int> grant(const FleetVerb& verb, bool as_json) {
  if (verb.submit == verb.serve)
    return fail(ErrorKind::Usage, "grant takes one of --submit and --serve",
                "who submits has jobs run; who serves runs those of others",
                fmt::format("tilewright fleet grant {} --pool {} --submit", verb.name, verb.pool));
  const char* what = verb.submit ? "submit" : "serve";
  return change(verb, "grant", "member_set",
                {verb.pool, verb.name, std::string(what), unless(verb.revoke, verb.device_class)},
                verb.revoke ? fmt::format("{} may no longer {} in {}", verb.name, what, verb.pool)
                            : fmt::format("{} may {} in {}, devices of class {}", verb.name, what,
                                          verb.pool, verb.device_class),
                as_json);
}

Result<int> log(const FleetVerb& verb, bool as_json) {
  const auto client = TW_TRY(client_of(verb));
  const nlohmann::json events = TW_TRY(client->call("last_events", {verb.limit}));
  nlohmann::ordered_json json = document("fleet");
  json["action"] = "log";
  json["events"] = events;
  as_json ? print_json(json) : fmt::print("{}", events_text(events));
  return 0;
}

Result<int> keygen(const FleetVerb& verb, bool as_json) {
  const fleet::SigningKey key = TW_TRY(fleet::SigningKey::make(verb.name));
  nlohmann::ordered_json json = document("fleet");
  json["action"] = "keygen";
  json["key"] = key.name();
  json["signs"] = verb.name;
  json["checks"] = verb.name + ".pub";
  if (as_json) {
    print_json(json);
    return 0;
  }
  fmt::print("{}\n", key.name());
  say(
      fmt::format("you sign with it:   tilewright run ... --worker SPEC --sign {}\n"
                  "workers trust you:  tilewright worker ... --trust {}.pub",
                  verb.name, verb.name));
  return 0;
}

Result<int> launch(const FleetVerb& verb) {
  fmt::print("{}", TW_TRY(launcher_script(verb.kind, verb.devices)));
  return 0;
}

using Options = std::shared_ptr<FleetVerb>;

/// An action with `--store`, and what it does.
template <class Action>
Verb add_action(Verb verb, const Options& options, VerbContext& context, const std::string& name,
                const std::string& what, Action action) {
  Verb added = verb.add_verb(name, what);
  add_store_option(added, options->store);
  added.callback([&context, options, action] {
    context.action = [&context, options, action] { return action(*options, context.json); };
  });
  return added;
}

/// Workers and runs have ids for names. errors: Usage.
Status check_id(const std::string& subject, const std::string& id) {
  constexpr size_t kDigits = 36;  // those of a UUID and its four dashes
  if (id.size() == kDigits && id.find_first_not_of("0123456789abcdef-") == id.npos) return {};
  return fail(ErrorKind::Usage, fmt::format("'{}' is no id of a {}", id, subject),
              "an id looks like 01a21ab9-c831-778e-b0ce-cac031af86ee",
              "tilewright fleet status --json has them");
}

/// One that hands the name it is given to a function of the schema.
void add_named(Verb verb, const Options& options, VerbContext& context, const std::string& name,
               const std::string& function, const std::string& subject, const std::string& what) {
  add_action(verb, options, context, name, what,
             [function, subject](const FleetVerb& fleet, bool as_json) -> Result<int> {
               if (subject == "worker" || subject == "run")
                 TW_TRY_STATUS(check_id(subject, fleet.name));
               return tell_answer(fleet, function, {fleet.name}, as_json);
             })
      .add_option(subject, options->name, "which")
      .required();
}

void add_making(Verb verb, const Options& options, VerbContext& context) {
  add_action(verb, options, context, "init", "Makes a fleet, here or in a database", init)
      .add_option("--private", options->private_folder,
                  "a PostgreSQL of your own in this folder, started and kept running");
  Verb stopping = verb.add_verb("stop", "Stops a private server");
  stopping.add_option("--private", options->private_folder, "its folder").required();
  stopping.callback([&context, options] { context.action = [options] { return stop(*options); }; });
  add_action(verb, options, context, "migrate", "Brings the schema to this program's version",
             [](const FleetVerb& fleet, bool) { return migrate(fleet); });
  add_action(verb, options, context, "check", "Whether server and schema are as they must be",
             check);
}

void add_looking(Verb verb, const Options& options, VerbContext& context) {
  add_action(verb, options, context, "status", "Devices, who has them, and what waits", status);
  add_action(verb, options, context, "top", "The status again and again, until Ctrl-C",
             [](const FleetVerb& fleet, bool) { return top(fleet); })
      .add_option("--every", options->every, "seconds between")
      .in_range(.2, 3600);
  add_named(verb, options, context, "who", "who", "device", "Who has a device, and until when");
  add_action(verb, options, context, "log", "What happened last", log)
      .add_option("--limit", options->limit, "events")
      .in_range(1, 10000);
  add_action(verb, options, context, "metrics", "Numbers for Prometheus' text files",
             [](const FleetVerb& fleet, bool as_json) {
               return tell_answer(fleet, "metrics", {}, as_json);
             });
}

void add_rights(Verb verb, const Options& options, VerbContext& context) {
  Verb knowing = add_action(verb, options, context, "login",
                            "Makes a login of PostgreSQL one of the fleet, or changes it", login);
  knowing.add_option("login", options->name, "which").required();
  knowing
      .add_option("--kind", options->login_kind,
                  "a user submits, a worker serves, a monitor looks (default user)")
      .one_of({"user", "worker", "monitor"});
  knowing.add_option("--weight", options->weight, "of its share of devices; others have 1")
      .in_range(1e-3, 1e5);
  knowing.add_option("--max-ready", options->most_ready, "jobs that it may have waiting")
      .in_range(1, 10'000'000);
  knowing.add_option("--blobs", options->blobs, "bytes of files that it may store: 20G");
  knowing.add_flag("--off", options->off, "it may do nothing any more");
  knowing.add_flag("--on", options->on, "it may work again");
  Verb pooling =
      add_action(verb, options, context, "pool", "Makes a pool of devices, or changes it", pool);
  pooling.add_option("pool", options->name, "which").required();
  pooling.add_option("--max-time", options->most_time, "that a job may take there (default 10m)");
  Verb granting = add_action(verb, options, context, "grant",
                             "Lets a login submit to a pool, or serve in it", grant);
  granting.add_option("login", options->name, "who").required();
  granting.add_option("--pool", options->pool, "where").required();
  granting.add_flag("--submit", options->submit, "have jobs run there");
  granting.add_flag("--serve", options->serve, "run jobs of others");
  granting.add_option("--class", options->device_class,
                      "on devices of these classes only: 'cpu:*' (default *)");
  granting.add_flag("--revoke", options->revoke, "takes it away");
  granting.excludes("--class", "--revoke");
}

void add_keys(Verb verb, const Options& options, VerbContext& context) {
  Verb making = verb.add_verb("keygen", "Makes a key that signs what workers run for you");
  making.add_option("file", options->name, "the key; FILE.pub is for workers").required();
  making.callback([&context, options] {
    context.action = [&context, options] { return keygen(*options, context.json); };
  });
}

void add_tending(Verb verb, const Options& options, VerbContext& context) {
  add_named(verb, options, context, "cancel", "cancel", "run", "Ends the jobs of a run");
  add_named(verb, options, context, "drain", "drain", "worker", "Asks a worker to leave");
  add_named(verb, options, context, "clear", "clear_device", "device",
            "A suspect device may work again");
  Verb hold = add_action(verb, options, context, "hold", "Keeps a device for yourself",
                         [](const FleetVerb& fleet, bool as_json) -> Result<int> {
                           const double seconds = TW_TRY(parse_seconds("--for", fleet.time, "10m"));
                           return tell_answer(fleet, "hold", {fleet.name, seconds}, as_json);
                         });
  hold.add_option("device", options->name, "which").required();
  hold.add_option("--for", options->time, "how long: 10m");
  add_named(verb, options, context, "release", "release_hold", "device", "Ends a hold");
  add_action(
      verb, options, context, "gc", "Removes what is too old to be of use",
      [](const FleetVerb& fleet, bool as_json) { return tell_answer(fleet, "gc", {}, as_json); });
  Verb launching = verb.add_verb("launch", "Prints a script that starts workers elsewhere");
  launching.add_option("where", options->kind, "slurm, k8s, ssh or systemd").required();
  launching.add_option("--device", options->devices, "what each worker offers (default cpu)");
  launching.callback(
      [&context, options] { context.action = [options] { return launch(*options); }; });
}

}  // namespace

void add_fleet(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("fleet", "Devices that many share: makes, shows and tends a fleet");
  auto options = std::make_shared<FleetVerb>();
  verb.needs_action();
  add_making(verb, options, context);
  add_looking(verb, options, context);
  add_rights(verb, options, context);
  add_keys(verb, options, context);
  add_tending(verb, options, context);
}

}  // namespace tilewright::driver
