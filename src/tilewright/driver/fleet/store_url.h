// Which store holds the fleet: an option, the environment, or the user's settings.
#pragma once

#include <optional>
#include <string>

#include "tilewright/base/result.h"
#include "tilewright/driver/command_line/options.h"

namespace tilewright::driver {

/// `$XDG_CONFIG_HOME/tilewright/config.toml`, else below `~/.config`.
std::string settings_path();

/// Adds `--store`.
void add_store_option(Verb verb, std::string& into);

/// `flag` if it is not empty, else TILEWRIGHT_STORE, else `store` under `[fleet]` of the settings.
/// errors: Usage (there is none; it is a file, which has no queue), Parse (the settings).
Result<std::string> fleet_store(const std::string& flag);

/// Later commands find the store by themselves. `for_records`: whether `compile`, `tune` and
/// `records` use it too; absent: as before. What else the settings hold stays.
/// errors: Io, Parse (the settings are there and cannot be read).
Status keep_fleet_store(const std::string& url, std::optional<bool> for_records);
/// The store of the settings, if it is for records, too; else empty. errors: Io, Parse.
Result<std::string> kept_record_store();

}  // namespace tilewright::driver
