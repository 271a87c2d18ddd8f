// Accelerator configurations beside each other: what differs, and whether a program fits.
#pragma once

#include <map>
#include <string>

#include "tilewright/accel/vta/config.h"
#include "tilewright/compile/device_backend.h"

namespace tilewright::compile {

/// The lines of a configuration's TOML, by key.
std::map<std::string, std::string> settings_of(const vta::Config& config);

/// Whether a program made for `own` runs on `config`, which the user called `name`: only clock and
/// timing may differ. errors: Package, with every other setting that differs.
Status check_hardware(const std::string& program, const vta::Config& own, const std::string& name,
                      const vta::Config& config);

/// The program has its hardware inside: `hw` (a name or a file) may only say the same.
/// errors: Package (another design), Usage (another timing).
Status check_program_hardware(const std::string& program, const vta::Config& own,
                              const std::string& hw);

/// Configurations for the verb `hw`.
const HardwareReader& vta_hardware();

}  // namespace tilewright::compile
