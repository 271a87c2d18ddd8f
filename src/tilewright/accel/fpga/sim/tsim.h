// The cycle simulator `fpga:tsim`: docs/fpga-timing.md, cycle by cycle. It can compute values too,
// nest by nest, where the Verilog computes them operator by operator.
#pragma once

#include <string>
#include <vector>

#include "tilewright/accel/common/run_trace.h"
#include "tilewright/accel/fpga/design.h"
#include "tilewright/accel/fpga/sim/memory_model.h"

namespace tilewright::fpga {

using tilewright_fpga::MemoryTiming;

/// What a process does in a cycle.
enum class Doing { Working, WaitInput, WaitSlot, WaitPort, Done };
inline constexpr size_t kDoings = 5;
std::string_view name(Doing doing);

/// A process did one thing from `begin` up to `end`.
struct Span {
  int process = 0;
  Doing doing = Doing::Working;
  int item = 0;  ///< of the process
  int64_t begin = 0, end = 0;
};

struct ProcessReport {
  std::string name;
  int64_t cycles[kDoings] = {};  ///< by Doing
};

struct Report {
  int64_t cycles = 0;
  std::vector<ProcessReport> processes;
  std::vector<Span> spans;  ///< if they were asked for
};

struct RunOptions {
  MemoryTiming memory;
  int64_t max_cycles = int64_t{1} << 40;
  bool values = true;  ///< else only time, which does not depend on data
  bool spans = false;
};

/// Runs a legal design on arguments, whose bytes it reads and writes.
/// errors: Invalid (an address outside, a deadlock with who waits for what); Limit (max_cycles).
Result<Report> simulate(const Design& design, const RunOptions& options,
                        std::vector<std::string>& arguments);

/// The memory of `design` with such times.
tilewright_fpga::MemoryModel memory_model(const Design& design, const MemoryTiming& timing);

/// A row for each process, in a group of this name; the run begins at a cycle.
/// requires: a report with spans.
void add_to_trace(const Design& design, const Report& report, uint64_t begin,
                  const std::string& group, accel::RunTrace& trace);

}  // namespace tilewright::fpga
