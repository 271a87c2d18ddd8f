// A design of any kind that spaces draw from: its file, its clock, the host beside it.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "tilewright/accel/spatial/design.h"
#include "tilewright/accel/vta/config.h"

namespace tilewright::codesign {

using Hardware = std::variant<spatial::Design, vta::Config>;

/// A file with `kind = "spatial"`, or one of VTA's. errors: those of its reader; Usage (another
/// kind).
Result<Hardware> read_hardware(std::string_view text, const std::string& place);
/// A file, one of VTA's built-in names, or `spatial`. errors: as read_hardware; Io.
Result<Hardware> load_hardware(const std::string& name_or_path);
/// The file.
std::string to_toml(const Hardware& hardware);

double clock_mhz(const Hardware& hardware);
/// VTA's files name none: the usual one.
spatial::Host host_of(const Hardware& hardware);

}  // namespace tilewright::codesign
