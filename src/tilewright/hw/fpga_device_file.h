// FPGAs as TOML files: those of hw/fpga, which are part of the program, and a user's own.
//
//   kind = "fpga"                     # keys are the members of FpgaDevice (hw/fpga_device.h)
//   name = "mine"
//   luts = 230400                     # cells; [usable] has the shares that a design may take
//   [memory]  [port]
//   [operator.mac.f32.rtl]            # what a multiply-accumulate of f32 takes in our Verilog
//
// Every table has a `source`: nobody could tell a data sheet from a guess otherwise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/hw/fpga_device.h"

namespace tilewright::hw {

/// errors: Parse, with all problems and their places: unknown and missing keys, numbers out of
/// their ranges, shares above 1, bursts longer than 4 KiB, operators that the device has no room
/// for.
Result<FpgaDevice> parse_fpga_device(std::string_view text, const std::string& place);
/// A name of `fpga_devices`, or a file (`my.toml`). errors: Usage with the nearest name, Io, Parse.
Result<FpgaDevice> load_fpga_device(const std::string& name_or_path);
/// A file that reads back as `device`.
std::string to_toml(const FpgaDevice& device);
/// Of fpga_devices(), in their order.
std::vector<std::string> fpga_names();

}  // namespace tilewright::hw
