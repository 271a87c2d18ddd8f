#include "tilewright/driver/fleet/store_url.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tilewright/base/environment.h"
#include "tilewright/base/file.h"
#include "tilewright/base/toml_table.h"
#include "tilewright/postgres/connection.h"

namespace tilewright::driver {
namespace {

/// An empty table where there are no settings yet.
Result<toml::table> read_settings(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return toml::table();
  return parse_toml(TW_TRY(read_file(path)), path, "docs/fleet.md says what it may hold");
}

}  // namespace

std::string settings_path() {
  const auto folder = environment("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  return folder.value_or(std::string(home != nullptr ? home : ".") + "/.config") +
         "/tilewright/config.toml";
}

void add_store_option(Verb verb, std::string& into) {
  verb.add_option("--store", into,
                  "the fleet's database: postgresql://... (default: TILEWRIGHT_STORE, or the one "
                  "of `fleet init`)");
}

Result<std::string> fleet_store(const std::string& flag) {
  std::string store = flag;
  // A file there is for records, which need no fleet.
  if (const auto named = environment("TILEWRIGHT_STORE");
      store.empty() && named && postgres::is_url(*named))
    store = *named;
  if (store.empty()) {
    const toml::table settings = TW_TRY(read_settings(settings_path()));
    store = settings["fleet"]["store"].value_or(std::string());
  }
  if (store.empty())
    return fail(ErrorKind::Usage, "there is no fleet yet",
                fmt::format("neither --store, TILEWRIGHT_STORE nor {} names one", settings_path()),
                "tilewright fleet init --private pool makes one on this machine");
  if (!postgres::is_url(store))
    return fail(ErrorKind::Usage, fmt::format("'{}' is no store of a fleet", store),
                "a file holds records, but has no queue",
                "--store postgresql://HOST/DATABASE, or tilewright fleet init --private pool");
  return store;
}

Result<std::string> kept_record_store() {
  const toml::table settings = TW_TRY(read_settings(settings_path()));
  if (!settings["fleet"]["records"].value_or(false)) return std::string();
  return settings["fleet"]["store"].value_or(std::string());
}

Status keep_fleet_store(const std::string& url, std::optional<bool> for_records) {
  const std::string path = settings_path();
  toml::table settings = TW_TRY(read_settings(path));
  if (!settings["fleet"].is_table()) settings.insert_or_assign("fleet", toml::table());
  settings["fleet"].as_table()->insert_or_assign("store", url);
  if (for_records) settings["fleet"].as_table()->insert_or_assign("records", *for_records);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error)
    return fail(ErrorKind::Io, fmt::format("cannot make the folder of {}", path), error.message());
  std::ostringstream text;
  text << settings << "\n";
  return write_file(path, text.str());
}

}  // namespace tilewright::driver
