#include "tilewright/accel/fpga/sim/tsim.h"

namespace tilewright::fpga {

void add_to_trace(const Design& design, const Report& report, uint64_t begin,
                  const std::string& group, accel::RunTrace& trace) {
  const size_t first = trace.rows.size();
  for (const Process& process : design.processes) trace.add_row(process.name, group);
  for (const Span& span : report.spans) {
    const Process& process = design.processes[static_cast<size_t>(span.process)];
    const auto* nest = std::get_if<Nest>(&process.items[static_cast<size_t>(span.item)]);
    const bool works = span.doing == Doing::Working;
    if (works && nest == nullptr) continue;  // single cycles of control
    trace.add({first + static_cast<size_t>(span.process),
               works ? nest->name : std::string(name(span.doing)),
               works ? "nest" : "stall",
               begin + static_cast<uint64_t>(span.begin),
               begin + static_cast<uint64_t>(span.end),
               {}});
  }
}

}  // namespace tilewright::fpga
