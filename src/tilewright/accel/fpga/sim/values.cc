#include "tilewright/accel/fpga/sim/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tilewright::fpga {
namespace {

uint64_t masked(uint64_t bits, int width) {
  return width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}
int64_t extended(uint64_t bits, const Number& type) {
  if (!type.is_signed() || type.bits >= 64) return static_cast<int64_t>(bits);
  const int unused = 64 - type.bits;
  return static_cast<int64_t>(bits << unused) >> unused;
}

double float_of(uint64_t bits, const Number& type) {
  if (type.bits == 64) return std::bit_cast<double>(bits);
  if (type.bits == 32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  const auto half = static_cast<uint16_t>(bits);
  return type.exponent == 8 ? bf16_to_f32(half) : f16_to_f32(half);
}
uint64_t nan_of(const Number& type) {
  const int fraction = type.bits - 1 - type.exponent;
  return ((uint64_t{2} << type.exponent) - 1) << (fraction - 1);
}
uint64_t bits_of(double value, const Number& type) {
  if (std::isnan(value)) return nan_of(type);
  if (type.bits == 64) return std::bit_cast<uint64_t>(value);
  const auto single = static_cast<float>(value);
  if (type.bits == 32) return std::bit_cast<uint32_t>(single);
  return type.exponent == 8 ? f32_to_bf16(single) : f32_to_f16(single);
}

template <class T>
double arithmetic(Op op, T a, T b) {
  switch (op) {
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Min:
      return std::isnan(a) ? a : std::isnan(b) || b < a ? b : a;
    default:
      return std::isnan(a) ? a : std::isnan(b) || a < b ? b : a;
  }
}

template <class T>
uint64_t compared(Op op, T a, T b) {
  return op == Op::Eq ? a == b : op == Op::Lt ? a < b : a <= b;
}

uint64_t of_floats(const Node& node, const std::vector<uint64_t>& in, const Number& type) {
  const double a = float_of(in[0], type), b = float_of(in[1], type);
  if (node.op == Op::Eq || node.op == Op::Lt || node.op == Op::Le) return compared(node.op, a, b);
  if (type.bits == 64) return bits_of(arithmetic<double>(node.op, a, b), type);
  return bits_of(arithmetic<float>(node.op, static_cast<float>(a), static_cast<float>(b)), type);
}

uint64_t cast(uint64_t bits, const Number& from, const Number& to) {
  if (!from.is_float() && !to.is_float())
    return masked(static_cast<uint64_t>(extended(bits, from)), to.bits);
  if (from.is_float()) return bits_of(float_of(bits, from), to);
  const int64_t value = extended(bits, from);
  return to.bits == 64 ? bits_of(static_cast<double>(value), to)
                       : bits_of(static_cast<float>(value), to);
}

uint64_t of_integers(const Node& node, int64_t a, int64_t b, const Number& operands) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool is_signed = operands.is_signed();
  const auto less = [&] { return is_signed ? a < b : ua < ub; };
  switch (node.op) {
    case Op::Add:
      return ua + ub;
    case Op::Sub:
      return ua - ub;
    case Op::Mul:
      return ua * ub;
    case Op::Min:
      return less() ? ua : ub;
    case Op::Max:
      return less() ? ub : ua;
    case Op::Eq:
      return ua == ub;
    case Op::Lt:
      return less();
    case Op::Le:
      return less() || a == b;
    case Op::Shl:
      return ub >= static_cast<uint64_t>(node.type.bits) ? 0 : ua << ub;
    default:  // Shr
      if (ub >= static_cast<uint64_t>(operands.bits)) return is_signed && a < 0 ? ~uint64_t{0} : 0;
      return is_signed ? static_cast<uint64_t>(a >> ub) : ua >> ub;
  }
}

/// Whether the value at issue may still be on its way: the last iteration that wrote it.
bool too_late(int64_t written, int64_t iteration, int64_t interval, int needed) {
  return written >= 0 && (iteration - written) * interval < needed;
}

}  // namespace

uint64_t computed(const Node& node, const std::vector<uint64_t>& in,
                  const std::vector<Number>& types) {
  if (node.op == Op::Select) return in[0] != 0 ? in[1] : in[2];
  if (node.op == Op::Cast) return cast(in[0], types[0], node.type);
  if (types[0].is_float()) return of_floats(node, in, types[0]);
  return masked(of_integers(node, extended(in[0], types[0]), extended(in[1], types[1]), types[0]),
                node.type.bits);
}

int64_t value_of(const Affine& affine, const std::vector<int64_t>& loops,
                 const std::vector<int64_t>& counters) {
  int64_t value = affine.constant;
  for (size_t i = 0; i < affine.loops.size(); ++i) value += affine.loops[i] * loops[i];
  for (size_t i = 0; i < affine.counters.size(); ++i) value += affine.counters[i] * counters[i];
  return value;
}

bool holds(const std::vector<Range>& ranges, const std::vector<int64_t>& loops,
           const std::vector<int64_t>& counters) {
  return std::all_of(ranges.begin(), ranges.end(), [&](const Range& range) {
    const int64_t value = value_of(range.value, loops, counters);
    return value >= 0 && value < range.extent;
  });
}

Values::Values(const Design& design, std::vector<std::string>& arguments)
    : design_(design), arguments_(arguments) {
  for (const Memory& memory : design.memories) {
    const auto size = static_cast<size_t>(std::max(1, memory.slots) * memory.banks * memory.words);
    memories_.emplace_back(size, 0);
    written_.emplace_back(size, -1);
  }
}

Result<size_t> Values::index(const Nest& nest, const Place& place,
                             const std::vector<int64_t>& loops,
                             const std::vector<int64_t>& counters,
                             const std::vector<int>& slots) const {
  const auto m = static_cast<size_t>(place.memory);
  const Memory& memory = design_.memories[m];
  const int64_t bank = value_of(place.bank, loops, counters),
                word = value_of(place.word, loops, counters);
  if (bank < 0 || bank >= memory.banks || word < 0 || word >= memory.words)
    return fail(ErrorKind::Invalid,
                fmt::format("nest {} uses word {} of bank {} of {}, which has {} banks of {} words",
                            nest.name, word, bank, memory.name, memory.banks, memory.words));
  return static_cast<size_t>((slots[m] * memory.banks + bank) * memory.words + word);
}

Result<char*> Values::group(const Nest& nest, const std::vector<int64_t>& loops,
                            const std::vector<int64_t>& counters) {
  const Stream& stream = nest.stream;
  if (!holds(stream.ranges, loops, counters)) return nullptr;
  const Port& port = design_.ports[static_cast<size_t>(stream.port)];
  std::string& bytes = arguments_[static_cast<size_t>(port.argument)];
  const int64_t address = value_of(stream.address, loops, counters);
  if (address < 0 || address % stream.group_bytes() != 0 ||
      address + stream.group_bytes() > static_cast<int64_t>(bytes.size()))
    return fail(ErrorKind::Invalid,
                fmt::format("nest {} moves {} bytes at {} of argument {}, which has {} bytes",
                            nest.name, stream.group_bytes(), address, port.argument, bytes.size()));
  return bytes.data() + address;
}

Status Values::iterate(const Nest& nest, const std::vector<int>& late, int64_t iteration,
                       const std::vector<int64_t>& loops, const std::vector<int64_t>& counters,
                       const std::vector<int>& slots) {
  char* moved = nullptr;
  if (nest.stream.port >= 0) moved = TW_TRY(group(nest, loops, counters));
  const auto bytes = static_cast<size_t>(nest.stream.element.bytes());
  nodes_.assign(nest.nodes.size(), 0);
  std::vector<uint64_t> in;
  std::vector<Number> types;
  for (size_t n = 0; n < nest.nodes.size(); ++n) {
    const Node& node = nest.nodes[n];
    if (node.op == Op::Const) {
      nodes_[n] = node.bits;
    } else if (node.op == Op::Flag) {
      nodes_[n] = holds(node.ranges, loops, counters);
    } else if (node.op == Op::Stream) {
      if (moved != nullptr)
        std::memcpy(&nodes_[n], moved + static_cast<size_t>(node.lane) * bytes, bytes);
    } else if (node.op == Op::Read) {
      const auto m = static_cast<size_t>(node.place.memory);
      const size_t at = TW_TRY(index(nest, node.place, loops, counters, slots));
      if (late[m] > 0 && too_late(written_[m][at], iteration, nest.ii, late[m]))
        return fail(ErrorKind::Invalid,
                    fmt::format("nest {} reads {} {} cycles after storing it; it needs {}",
                                nest.name, design_.memories[m].name,
                                (iteration - written_[m][at]) * nest.ii, late[m]));
      nodes_[n] = memories_[m][at];
    } else {
      in.clear();
      types.clear();
      for (const int input : node.inputs) {
        in.push_back(nodes_[static_cast<size_t>(input)]);
        types.push_back(nest.nodes[static_cast<size_t>(input)].type);
      }
      nodes_[n] = computed(node, in, types);
    }
  }
  for (const Store& store : nest.stores) {
    if (!holds(store.ranges, loops, counters)) continue;
    const auto m = static_cast<size_t>(store.place.memory);
    const size_t at = TW_TRY(index(nest, store.place, loops, counters, slots));
    memories_[m][at] = nodes_[static_cast<size_t>(store.node)];
    if (late[m] > 0) written_[m][at] = iteration;
  }
  if (moved != nullptr)
    for (size_t lane = 0; lane < nest.stream.nodes.size(); ++lane)
      std::memcpy(moved + lane * bytes, &nodes_[static_cast<size_t>(nest.stream.nodes[lane])],
                  bytes);
  return {};
}

Status Values::run(const Nest& nest, const NestTimes& times, const std::vector<int64_t>& loops,
                   const std::vector<int>& slots) {
  std::vector<int> late;
  for (size_t m = 0; m < memories_.size(); ++m) {
    late.push_back(recurrence(nest, times, static_cast<int>(m)));
    if (late.back() > 0) std::fill(written_[m].begin(), written_[m].end(), -1);
  }
  std::vector<int64_t> counters(nest.extents.size(), 0);
  for (int64_t iteration = 0;; ++iteration) {
    TW_TRY_STATUS(iterate(nest, late, iteration, loops, counters, slots));
    size_t k = counters.size();
    while (k > 0 && ++counters[k - 1] == nest.extents[k - 1]) counters[--k] = 0;
    if (k == 0) return {};
  }
}

}  // namespace tilewright::fpga
