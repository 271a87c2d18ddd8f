#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/fpga/rtl/axi_top.h"
#include "tilewright/accel/fpga/rtl/board_files.h"

namespace tilewright::fpga {
namespace {

/// What differs between the processors.
struct Processor {
  const char *ip, *settings, *automation, *clock, *reset, *control, *memory, *memory_clock, *base,
      *family;  ///< as bootgen calls it
};
constexpr Processor kZynq = {"processing_system7",
                             "CONFIG.PCW_USE_S_AXI_HP0 1 CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ",
                             "apply_bd_automation -rule xilinx.com:bd_rule:processing_system7 "
                             "-config {make_external {FIXED_IO, DDR} apply_board_preset 1} $ps\n",
                             "FCLK_CLK0",
                             "FCLK_RESET0_N",
                             "M_AXI_GP0",
                             "S_AXI_HP0",
                             "S_AXI_HP0_ACLK",
                             "0x43c00000",
                             "zynq"};
constexpr Processor kZynqUltraScale = {
    "zynq_ultra_ps_e",
    "CONFIG.PSU__USE__S_AXI_GP2 1 CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ",
    "apply_bd_automation -rule xilinx.com:bd_rule:zynq_ultra_ps_e "
    "-config {apply_board_preset 1} $ps\n",
    "pl_clk0",
    "pl_resetn0",
    "M_AXI_HPM0_FPD",
    "S_AXI_HP0_FPD",
    "saxihp0_fpd_aclk",
    "0xa0000000",
    "zynqmp"};

std::string system_of(const Design& design, const Processor& processor, double clock_mhz,
                      const std::string& bitstream) {
  const size_t ports = std::max<size_t>(design.ports.size(), 1);
  std::string memory;
  for (size_t p = 0; p < design.ports.size(); ++p)
    memory += fmt::format(
        "connect_bd_intf_net [get_bd_intf_pins kernel/m_axi_gmem{0}] "
        "[get_bd_intf_pins memory/S{0:02}_AXI]\n",
        p);
  return fmt::format(R"(
# The processor, with the settings of its board where Vivado knows the board (set board_part above).
create_bd_design system
set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:{0} ps]
{1}set_property -dict [list {2} {3}] $ps
create_bd_cell -type module -reference fpga_axi kernel
apply_bd_automation -rule xilinx.com:bd_rule:axi4 \
    -config {{Master /ps/{4} Clk /ps/{5}}} [get_bd_intf_pins kernel/s_axi_control]
# Ports to the processor's memory.
create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect memory
set_property -dict [list CONFIG.NUM_SI {6} CONFIG.NUM_MI 1] [get_bd_cells memory]
{7}connect_bd_intf_net [get_bd_intf_pins memory/M00_AXI] [get_bd_intf_pins ps/{8}]
connect_bd_net [get_bd_pins ps/{5}] [get_bd_pins memory/aclk] [get_bd_pins ps/{9}]
connect_bd_net [get_bd_pins ps/{10}] [get_bd_pins memory/aresetn]
assign_bd_address
set registers [get_bd_addr_segs -of_objects [get_bd_addr_spaces ps/Data] -filter {{NAME =~ *kernel*}}]
set_property range 64K $registers
set_property offset {11} $registers
validate_bd_design
save_bd_design
add_files [make_wrapper -files [get_files system.bd] -top]
set_property top system_wrapper [current_fileset]
launch_runs impl_1 -to_step write_bitstream
wait_on_run impl_1
file copy -force [glob $here/vivado/*.runs/impl_1/system_wrapper.bit] $here/fpga_axi.bit
# As Linux loads it: without its header, bytes turned round.
set list [open $here/fpga_axi.bif w]
puts $list "all: {{ $here/fpga_axi.bit }}"
close $list
exec bootgen -image $here/fpga_axi.bif -arch {12} -process_bitstream bin -w >@ stdout
file rename -force $here/fpga_axi.bit.bin $here/{13}
open_run impl_1
)",
                     processor.ip, processor.automation, processor.settings, clock_mhz,
                     processor.control, processor.clock, ports, memory, processor.memory,
                     processor.memory_clock, processor.reset, processor.base, processor.family,
                     bitstream);
}

std::string alone(double clock_mhz) {
  return fmt::format(R"(
# The design alone: its ports go nowhere.
synth_design -top fpga_axi -mode out_of_context
create_clock -name ap_clk -period {:.3f} [get_ports ap_clk]
opt_design
place_design
route_design
)",
                     1000 / clock_mhz);
}

}  // namespace

std::string vivado_script(const Design& design, const std::string& part, double clock_mhz,
                          const std::string& bitstream) {
  const Processor* processor = part.starts_with("xc7z")   ? &kZynq
                               : part.starts_with("xczu") ? &kZynqUltraScale
                                                          : nullptr;
  return fmt::format(
      R"(# {0} for {1}: vivado -mode batch -source vivado.tcl. No Vivado has seen this file.
set here [file dirname [file normalize [info script]]]
create_project -force fpga_axi $here/vivado -part {1}
# set_property board_part VENDOR:BOARD:VERSION [current_project]
add_files [list $here/fpga_top.v $here/fpga_axi.v]
set_property top fpga_axi [current_fileset]
{2}report_utilization -file $here/utilization.txt
report_timing_summary -file $here/timing.txt
)",
      design.name, part,
      processor != nullptr ? system_of(design, *processor, clock_mhz, bitstream)
                           : alone(clock_mhz));
}

std::vector<std::pair<std::string, std::string>> board_files(const Design& design, Numbers numbers,
                                                             const std::string& part,
                                                             double clock_mhz,
                                                             const std::string& bitstream) {
  return {{fmt::format("{}.v", kAxiTop), axi_top(design, numbers)},
          {"vivado.tcl", vivado_script(design, part, clock_mhz, bitstream)},
          {"build.sh", vivado_build()}};
}

std::string vivado_build() {
  return R"sh(#!/bin/sh
# Runs vivado.tcl.
cd "$(dirname "$0")" || exit 1
if ! command -v vivado > /dev/null; then
  echo "build.sh: no vivado on PATH: install Vivado and source its settings64.sh" >&2
  exit 7
fi
exec vivado -mode batch -source vivado.tcl
)sh";
}

}  // namespace tilewright::fpga
