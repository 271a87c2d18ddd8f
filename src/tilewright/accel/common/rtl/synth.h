// What Yosys makes of generated Verilog, one module at a time.
//
// A module is synthesised once, without the modules in it, and counts as often as it occurs, so an
// array of 256 units costs one unit. What was synthesised is kept in the cache: a design that
// differs in one module from another costs that module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::accel {

/// AMD's 7 series, and UltraScale+.
enum class CellFamily { Xc7, XcUp };

/// Cells of such an FPGA. LUTs are those in use, as logic, memory or shift registers; a 36 Kb block
/// RAM counts as two.
struct Cells {
  int64_t lut = 0, ff = 0, dsp = 0, bram18 = 0, carry = 0;
  int64_t lut_ram = 0;  ///< LUTs among `lut` that are memory
};

/// A memory that Yosys left as it is: `size` words of `width` bits. Among xc7 cells it counts as a
/// memory for each write port, of LUTs up to 512 bytes, else of block RAMs of 2 KiB and 36 bits;
/// what chooses among its ports is not counted. It has no area in a library.
struct MemoryBox {
  int64_t width = 0, size = 0, reads = 0, writes = 0;
};

struct SynthesisedModule {
  std::string name;  ///< of the Verilog; a module with two sets of parameters is there twice
  int64_t copies = 1;
  // Of one copy, without the modules in it.
  Cells cells;
  double um2 = 0;
  std::vector<MemoryBox> memories;
};

struct Synthesis {
  std::vector<SynthesisedModule> modules;  ///< by name
  double seconds = 0;                      ///< that Yosys took now
  int64_t reused = 0;                      ///< modules that the cache had
  Cells cells() const;                     ///< of all copies
  double um2() const;
};

struct SynthesisTask {
  std::string top, verilog;
  /// Modules whose memories are left as they are. With a library: of all modules.
  std::vector<std::string> boxed;
  /// A file of standard cells (Liberty): area in its unit, square micrometres; empty: cells of
  /// `family`.
  std::string library;
  double limit_seconds = 600;
  CellFamily family = CellFamily::Xc7;
};

/// errors: Tool (Yosys is missing, too old or fails, with its last lines), Limit (time, or it was
/// killed), Io.
Result<Synthesis> synthesise(const SynthesisTask& task);

/// The parts of a report of Yosys that are used. Internal, for tests.
struct ModuleReport {
  Cells cells;
  double um2 = 0;
  std::vector<MemoryBox> memories;
};
ModuleReport read_report(std::string_view report);

}  // namespace tilewright::accel
