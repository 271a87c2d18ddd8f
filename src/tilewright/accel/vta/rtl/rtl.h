// VTA as plain Verilog-2005, generated from a configuration, and what open tools do with it:
// simulation by Verilator as device `vta:rtl`, unit benches for Icarus, lint, area by Yosys.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/accel/vta/device.h"
#include "tilewright/runtime/fpga/board.h"

namespace tilewright::vta {

/// Whether the generator can build this design. source: docs/vta-timing.md 8.
/// errors: as check(config); Unsupported, all reasons at once.
Status rtl_supports(const Config& config);

/// The module at the top, and so the name of the file.
inline constexpr const char* kTop = "vta";
/// All modules in one file. requires: rtl_supports(config).
std::string verilog(const Config& config);

/// The module at the top on a board: VTA's registers behind AXI4-Lite, its memory port as AXI4.
inline constexpr const char* kAxiTop = "vta_axi";
/// errors: as rtl_supports; Unsupported (bursts that AXI4 has not).
Status axi_supports(const Config& config);
/// That module alone; those below are in `verilog(config)`. requires: axi_supports(config).
std::string axi_top(const Config& config);

/// What that module answers when it is asked which one it is: a number made of what programs see of
/// the configuration, so neither of its clock nor of its timing.
uint32_t identity(const Config& config);
/// VTA on a board, with DRAM and instructions in the memory that both reach.
/// errors: as axi_supports; Package (`board` has another design); Capacity (its memory).
Result<std::unique_ptr<Device>> make_board(const Config& config, uint64_t dram_bytes,
                                           std::unique_ptr<runtime::Board> board);

/// The Verilog and a self-checking bench around one module: stimuli are drawn from `seed`, expected
/// values are computed here, not in Verilog. It prints PASS, or FAIL with the first difference.
enum class Bench { Queue, Tokens, Gemm, Alu, Dma };
std::string testbench(const Config& config, Bench bench, uint64_t seed);
/// Compiles and runs a bench with Icarus. errors: Tool, Mismatch (what the bench printed).
Status run_testbench(const std::string& text);

/// The Verilog under Verilator, compiled on first use into the cache folder
/// ($TILEWRIGHT_CACHE_DIR or $XDG_CACHE_HOME/tilewright). units: `dram_bytes`.
/// errors: as rtl_supports; Tool (verilator, make or the C++ compiler is missing or fails);
/// Capacity (DRAM and instructions beyond 4 GiB).
Result<std::unique_ptr<Device>> make_rtl(const Config& config, uint64_t dram_bytes);

/// Verilator's lint with all warnings but the waived ones (listed with reasons in lint.cc).
/// errors: Tool; Invalid with the warnings.
Status lint(const Config& config);

/// Cells of the xc7 family. A 36 Kb block RAM counts as two.
struct Area {
  int64_t lut = 0, ff = 0, dsp = 0, bram18 = 0, carry = 0;
  double seconds = 0;  ///< what Yosys took
};
/// Yosys `synth_xilinx`, module by module. errors: Tool; Limit after `limit_seconds`, or when
/// memory ran out.
Result<Area> synthesise(const Config& config, double limit_seconds = 600);

}  // namespace tilewright::vta
