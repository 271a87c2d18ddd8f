#include "tilewright/accel/fpga/sim/tsim.h"

namespace tilewright::fpga {
namespace {

/// The slice of a span but for its row: what the process does, or what it waits for and whose turn
/// it is. Without a name for single cycles of control.
accel::RunTrace::Slice slice_of(const Design& design, const Span& span, const Item& item) {
  const auto* nest = std::get_if<Nest>(&item);
  if (span.doing == Doing::Working) return {0, nest == nullptr ? "" : nest->name, "nest"};
  accel::RunTrace::Slice slice{0, std::string(name(span.doing)), "stall"};
  if (const auto* block = std::get_if<Acquire>(&item)) {
    const bool fills = span.doing == Doing::WaitSlot;
    const Ends ends = ends_of(design, block->memory);
    const auto other = static_cast<size_t>(fills ? ends.reader : ends.writer);
    slice.name += (fills ? " of " : " ") + design.memories[static_cast<size_t>(block->memory)].name;
    slice.notes = {{"whose turn it is", design.processes[other].name}};
  } else if (nest != nullptr && nest->stream.port >= 0) {
    slice.name += " " + design.ports[static_cast<size_t>(nest->stream.port)].name;
  }
  return slice;
}

}  // namespace

void add_to_trace(const Design& design, const Report& report, uint64_t begin,
                  const std::string& group, accel::RunTrace& trace) {
  const size_t first = trace.rows.size();
  for (const Process& process : design.processes) trace.add_row(process.name, group);
  for (const Span& span : report.spans) {
    const Process& process = design.processes[static_cast<size_t>(span.process)];
    accel::RunTrace::Slice slice =
        slice_of(design, span, process.items[static_cast<size_t>(span.item)]);
    if (slice.name.empty()) continue;
    slice.row = first + static_cast<size_t>(span.process);
    slice.begin = begin + static_cast<uint64_t>(span.begin);
    slice.end = begin + static_cast<uint64_t>(span.end);
    trace.add(std::move(slice));
  }
}

}  // namespace tilewright::fpga
