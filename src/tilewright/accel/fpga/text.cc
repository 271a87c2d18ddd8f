// Designs as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/accel/fpga/design.h"

namespace tilewright::fpga {
namespace {

std::string text_of(const Affine& affine) {
  std::string out = fmt::format("{}", affine.constant);
  for (size_t i = 0; i < affine.loops.size(); ++i)
    out += fmt::format(" + {}*L{}", affine.loops[i], i);
  for (size_t i = 0; i < affine.counters.size(); ++i)
    out += fmt::format(" + {}*c{}", affine.counters[i], i);
  return out;
}

std::string text_of(const std::vector<Range>& ranges) {
  std::string out;
  for (const Range& range : ranges)
    out += fmt::format("{}0 <= {} < {}", out.empty() ? " if " : ", ", text_of(range.value),
                       range.extent);
  return out;
}

std::string text_of(const Design& design, const Place& place) {
  return fmt::format("{}[bank {}, {}]", design.memories[static_cast<size_t>(place.memory)].name,
                     text_of(place.bank), text_of(place.word));
}

std::string text_of(const Design& design, const Node& node) {
  switch (node.op) {
    case Op::Const:
      return fmt::format("{} {}", name(node.type), node.bits);
    case Op::Flag:
      return "flag" + text_of(node.ranges);
    case Op::Stream:
      return fmt::format("stream {}", node.lane);
    case Op::Read:
      return text_of(design, node.place);
    default:
      return fmt::format("{} {} n{} latency {}", name(node.op), name(node.type),
                         fmt::join(node.inputs, " n"), node.latency);
  }
}

void append(std::string& out, const std::string& indent, const Design& design, const Nest& nest) {
  const NestTimes times = times_of(design, nest);
  out += fmt::format("{}nest {} [{}] II {} depth {}\n", indent, nest.name,
                     fmt::join(nest.extents, ", "), nest.ii, times.depth());
  const Stream& stream = nest.stream;
  if (stream.port >= 0)
    out += fmt::format("{}  port {}: {} x {} at {}{}{}\n", indent,
                       design.ports[static_cast<size_t>(stream.port)].name, stream.lanes,
                       name(stream.element), text_of(stream.address), text_of(stream.ranges),
                       stream.clipped ? " (the first along the row)" : "");
  for (size_t n = 0; n < nest.nodes.size(); ++n)
    out += fmt::format("{}  n{} @{}..{} = {}\n", indent, n, times.issue[n], times.ready[n],
                       text_of(design, nest.nodes[n]));
  for (size_t s = 0; s < nest.stores.size(); ++s)
    out += fmt::format("{}  {} = n{} @{}{}\n", indent, text_of(design, nest.stores[s].place),
                       nest.stores[s].node, times.store[s], text_of(nest.stores[s].ranges));
  if (!stream.nodes.empty())
    out += fmt::format("{}  port = n{} @{}\n", indent, fmt::join(stream.nodes, " n"), times.stream);
}

}  // namespace

std::string to_text(const Design& design) {
  std::string out = fmt::format(
      "design {}: {} arguments, beats of {} bytes, bursts of {}, {} under way\n", design.name,
      design.arguments, design.bus.beat_bytes, design.bus.burst_beats, design.bus.outstanding);
  for (const Memory& memory : design.memories)
    out += fmt::format("memory {}: {}[{} banks x {} words]{}{} latency {}\n", memory.name,
                       name(memory.element), memory.banks, memory.words,
                       memory.slots > 0 ? fmt::format(" slots {}", memory.slots) : "",
                       memory.accumulated ? " accumulated" : "", memory.read_latency);
  for (const Port& port : design.ports)
    out += fmt::format("port {}: {} argument {}, channel {}\n", port.name,
                       port.writes ? "writes" : "reads", port.argument, port.channel);
  for (const Process& process : design.processes) {
    out += fmt::format("process {}:\n", process.name);
    std::string indent = "  ";
    for (const Item& item : process.items) {
      const auto memory = [&](int index) {
        return design.memories[static_cast<size_t>(index)].name;
      };
      if (std::holds_alternative<LoopEnd>(item)) indent.resize(indent.size() - 2);
      if (const auto* loop = std::get_if<LoopBegin>(&item)) {
        out += fmt::format("{}loop {} {{\n", indent, loop->extent);
        indent += "  ";
      } else if (std::holds_alternative<LoopEnd>(item)) {
        out += indent + "}\n";
      } else if (const auto* acquire = std::get_if<Acquire>(&item)) {
        out += fmt::format("{}acquire {}\n", indent, memory(acquire->memory));
      } else if (const auto* release = std::get_if<Release>(&item)) {
        out += fmt::format("{}release {}\n", indent, memory(release->memory));
      } else if (const auto* nest = std::get_if<Nest>(&item)) {
        append(out, indent, design, *nest);
      }
    }
  }
  return out;
}

}  // namespace tilewright::fpga
