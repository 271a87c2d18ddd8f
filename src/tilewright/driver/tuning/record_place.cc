#include "tilewright/driver/tuning/record_place.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "tilewright/base/environment.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/store_url.h"
#include "tilewright/records/open/open.h"
#include "tilewright/records/sqlite/sqlite.h"

namespace tilewright::driver {
namespace {

using Opened = Result<std::shared_ptr<records::Store>>;

/// Of a server that the settings name: for each of its answers, and until it is open.
constexpr double kAnswerSeconds = .5, kOpenSeconds = .8;

/// In a thread of its own: looking up a host's name cannot be cut short.
Opened open_soon(const std::string& url) {
  const auto opened = std::make_shared<std::promise<Opened>>();
  std::future<Opened> answer = opened->get_future();
  std::thread([opened, url] {
    opened->set_value(records::open_quick_server(url, kAnswerSeconds));
  }).detach();
  if (answer.wait_for(std::chrono::duration<double>(kOpenSeconds)) == std::future_status::ready)
    return answer.get();
  return fail(ErrorKind::Unreachable, "the fleet's store does not answer",
              fmt::format("not within {} s", kOpenSeconds), "tilewright fleet check");
}

/// The user's own file; null where there is none.
Opened own_file() {
  const std::string path = records::default_store_path();
  if (!records::store_exists(path)) return std::shared_ptr<records::Store>();
  return records::open_store_to_read(path);
}

}  // namespace

RecordPlace record_place(const std::string& flag) {
  if (!flag.empty()) return {flag, "--store"};
  for (const char* variable : {"TILEWRIGHT_STORE", "TILEWRIGHT_RECORDS"})
    if (const auto named = environment(variable)) return {*named, variable};
  const Result<std::string> kept = kept_record_store();
  if (kept && !kept->empty()) return {*kept, settings_path(), true};
  static std::once_flag said;
  if (!kept)
    std::call_once(
        said, [&] { say(fmt::format("warning: {}: {}", kept.error().what, kept.error().why)); });
  return {records::default_store_path(), "default"};
}

Opened open_place_to_read(const RecordPlace& place) {
  if (!place.by_settings) return records::open_any_store_to_read(place.name);
  static std::atomic<bool> away = false;  // a command may open the store several times
  if (away) return own_file();
  Opened server = open_soon(place.name);
  if (server) return server;
  if (!away.exchange(true))
    say(fmt::format("warning: no tuning records of the fleet ({} names it): {}{}{}", place.source,
                    server.error().what, server.error().why.empty() ? "" : ": ",
                    server.error().why));
  return own_file();
}

PlaceState state_of_place(const RecordPlace& place) {
  const std::string name = fmt::format("{} ({})", place.name, place.source);
  if (!records::store_exists(place.name)) return {true, name + ": nothing is kept there yet"};
  const auto begin = SteadyClock::now();
  const Opened opened = records::open_any_store_to_read(place.name);
  if (!opened)
    return {false, fmt::format("{}: {}{}{}; {}", name, opened.error().what,
                               opened.error().why.empty() ? "" : ": ", opened.error().why,
                               opened.error().fix)};
  return {true, fmt::format("{}: answers in {:.0f} ms", name, 1e3 * seconds_since(begin))};
}

}  // namespace tilewright::driver
