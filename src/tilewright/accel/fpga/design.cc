#include "tilewright/accel/fpga/design.h"

#include <algorithm>

namespace tilewright::fpga {

Number number_of(DType dtype) {
  using Kind = Number::Kind;
  switch (dtype) {
    case DType::F32:
      return {Kind::Float, 32, 8};
    case DType::F64:
      return {Kind::Float, 64, 11};
    case DType::F16:
      return {Kind::Float, 16, 5};
    case DType::BF16:
      return {Kind::Float, 16, 8};
    case DType::Bool:
      return {Kind::Unsigned, 1, 0};
    default:
      return {is_signed_int(dtype) ? Kind::Signed : Kind::Unsigned, bit_width(dtype), 0};
  }
}

std::string name(const Number& number) {
  const std::string bits = std::to_string(number.bits);
  if (!number.is_float()) return (number.is_signed() ? "i" : "u") + bits;
  return number == number_of(DType::BF16) ? "bf16" : "f" + bits;
}

std::string_view name(Op op) {
  constexpr std::string_view kNames[] = {"const",  "flag", "stream", "read", "add", "sub",
                                         "mul",    "min",  "max",    "eq",   "lt",  "le",
                                         "select", "shl",  "shr",    "cast"};
  return kNames[static_cast<size_t>(op)];
}

namespace {

bool stores_to(const Nest& nest, int memory) {
  return std::any_of(nest.stores.begin(), nest.stores.end(),
                     [&](const Store& store) { return store.place.memory == memory; });
}

int latency_of(const Design& design, const Node& node) {
  return node.op == Op::Read ? design.memories[static_cast<size_t>(node.place.memory)].read_latency
                             : node.latency;
}

/// Moves each read of a sum, and what only depends on it, to where it is needed: what an iteration
/// waits for the one before is then the addition alone, not the products.
void delay_sums(const Nest& nest, NestTimes& times) {
  const size_t count = nest.nodes.size();
  std::vector<int> deadline(count, -1);  // -1: no node needs it
  std::vector<bool> moves(count, false);
  for (size_t n = 0; n < count; ++n) {
    const Node& node = nest.nodes[n];
    moves[n] = node.op == Op::Read && stores_to(nest, node.place.memory);
    for (const int input : node.inputs) moves[n] = moves[n] || moves[static_cast<size_t>(input)];
  }
  const auto stays = [&](int node) { moves[static_cast<size_t>(node)] = false; };
  for (const Store& store : nest.stores) stays(store.node);
  for (const int node : nest.stream.nodes) stays(node);
  for (size_t n = count; n-- > 0;) {
    if (moves[n] && deadline[n] > times.ready[n]) {
      times.issue[n] += deadline[n] - times.ready[n];
      times.ready[n] = deadline[n];
    }
    for (const int input : nest.nodes[n].inputs) {
      int& of = deadline[static_cast<size_t>(input)];
      of = of < 0 ? times.issue[n] : std::min(of, times.issue[n]);
    }
  }
}

}  // namespace

NestTimes times_of(const Design& design, const Nest& nest) {
  NestTimes times;
  for (const Node& node : nest.nodes) {
    int issue = 0;
    for (const int input : node.inputs)
      issue = std::max(issue, times.ready[static_cast<size_t>(input)]);
    times.issue.push_back(issue);
    times.ready.push_back(issue + latency_of(design, node));
  }
  delay_sums(nest, times);
  for (const Store& store : nest.stores) {
    times.store.push_back(times.ready[static_cast<size_t>(store.node)]);
    times.last = std::max(times.last, times.store.back());
  }
  for (const int node : nest.stream.nodes)
    times.stream = std::max(times.stream, times.ready[static_cast<size_t>(node)]);
  times.last = std::max(times.last, times.stream);
  return times;
}

int recurrence(const Nest& nest, const NestTimes& times, int memory) {
  int first = -1, last = -1;
  for (size_t n = 0; n < nest.nodes.size(); ++n)
    if (nest.nodes[n].op == Op::Read && nest.nodes[n].place.memory == memory)
      first = first < 0 ? times.issue[n] : std::min(first, times.issue[n]);
  for (size_t s = 0; s < nest.stores.size(); ++s)
    if (nest.stores[s].place.memory == memory) last = std::max(last, times.store[s]);
  return first < 0 || last < 0 ? 0 : last - first + 1;
}

bool has_port(const Process& process) {
  return std::any_of(process.items.begin(), process.items.end(), [](const Item& item) {
    const auto* nest = std::get_if<Nest>(&item);
    return nest != nullptr && nest->stream.port >= 0;
  });
}

Process requests_of(const Process& process) {
  Process out{process.name, {}};
  for (const Item& item : process.items) {
    const auto* nest = std::get_if<Nest>(&item);
    if (nest == nullptr || nest->stream.port >= 0) out.items.push_back(item);
  }
  return out;
}

Ends ends_of(const Design& design, int memory) {
  Ends ends;
  for (size_t p = 0; p < design.processes.size(); ++p) {
    bool uses = false, stores = false;
    for (const Item& item : design.processes[p].items) {
      if (const auto* acquire = std::get_if<Acquire>(&item)) uses |= acquire->memory == memory;
      if (const auto* nest = std::get_if<Nest>(&item)) stores |= stores_to(*nest, memory);
    }
    if (!uses) continue;
    (stores ? ends.writer : ends.reader) = static_cast<int>(p);
  }
  return ends;
}

}  // namespace tilewright::fpga
