// Files around a design for a board: scripts for the vendor's tools, which nothing here runs, and a
// program for the processor beside the design.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/accel/fpga/rtl/rtl.h"

namespace tilewright::fpga {

/// Name and text of what vendors' tools need beside fpga_top.v: the module at the top,
/// vivado_script and vivado_build. requires: rtl_supports(design).
std::vector<std::pair<std::string, std::string>> board_files(const Design& design, Numbers numbers,
                                                             const std::string& part,
                                                             double clock_mhz,
                                                             const std::string& bitstream);

/// A script for Vivado, beside fpga_top.v and fpga_axi.v. Zynq: a system with the processor, the
/// design at 0x43c00000 (UltraScale+: 0xa0000000) and its ports at the processor's memory, down to
/// the file `bitstream`, as Linux loads it. Other chips: the design alone, placed and routed, with
/// its cells and its clock. `part`: as the vendor orders it.
std::string vivado_script(const Design& design, const std::string& part, double clock_mhz,
                          const std::string& bitstream);

/// A script for the shell that runs the other one; exit code 7 without Vivado.
std::string vivado_build();

/// An argument of a design, as files have it.
struct HostArgument {
  std::string name;
  int64_t bytes = 0;
  bool writes = false;  ///< of the design
};
/// A program in C++17 that needs nothing but Linux: it maps the design called `registers` and the
/// u-dma-buf called `memory` (runtime/fpga/uio.h), reads NAME.bin of each argument, runs, and
/// writes such files.
std::string board_host(const Design& design, const std::vector<HostArgument>& arguments,
                       const std::string& registers, const std::string& memory);

}  // namespace tilewright::fpga
