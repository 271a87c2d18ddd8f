// A design as Verilog-2005, and under Verilator. docs/fpga-timing.md says in which cycle what
// happens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/accel/fpga/design.h"
#include "tilewright/accel/fpga/sim/tsim.h"

namespace tilewright::fpga {

/// Whether the generator can build this design. errors: Invalid; Unsupported, with the operator.
Status rtl_supports(const Design& design);

/// The module at the top, and so the name of the file.
inline constexpr const char* kTop = "fpga_top";

/// The module inside of it that computes: without control.
inline constexpr const char* kKernel = "fpga_kernel";

/// Where extents, addresses and limits stand in the Verilog.
enum class Numbers {
  Fixed,  ///< in its text: small and fast
  Table   ///< in registers that the host fills: designs that differ only in numbers share a text
};
struct Verilog {
  std::string text;             ///< all modules
  std::vector<uint32_t> table;  ///< what the host fills in, in order
};
/// requires: rtl_supports(design).
Verilog verilog(const Design& design, Numbers numbers);

/// The Verilog under Verilator.
class RtlModel {
 public:
  virtual ~RtlModel() = default;
  /// Runs a design whose Verilog is the model's own but for the table.
  /// errors: Invalid (a protocol violation, an address outside); Limit.
  virtual Result<Report> run(const Design& design, const RunOptions& options,
                             std::vector<std::string>& arguments) = 0;
};
/// What a model is compiled for.
enum class Runs {
  Long,
  Short  ///< some ten thousand cycles: compiling takes more time than running
};
/// Compiled on first use into the cache folder.
/// errors: as rtl_supports; Tool (verilator or the C++ compiler is missing or fails).
Result<std::unique_ptr<RtlModel>> make_rtl(const Design& design, Numbers numbers,
                                           Runs runs = Runs::Long);

}  // namespace tilewright::fpga
