#include "tilewright/accel/fpga/merge.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::fpga {
namespace {

/// Makes two designs agree in everything but the numbers of the table.
class Joiner {
 public:
  /// The first difference; empty: now there is none.
  std::string run(Design& a, Design& b) {
    same(a.bus.beat_bytes, b.bus.beat_bytes, "bytes of a beat");
    same(a.bus.burst_beats, b.bus.burst_beats, "beats of a burst");
    same(a.bus.outstanding, b.bus.outstanding, "bursts under way");
    same(a.bus.write_fifo, b.bus.write_fifo, "beats that wait");
    same(a.multiplier_bits, b.multiplier_bits, "bits of a multiplier");
    same(a.arguments, b.arguments, "arguments");
    each(a.memories, b.memories, "memories", [&](Memory& x, Memory& y) { join(x, y); });
    each(a.ports, b.ports, "ports", [&](Port& x, Port& y) {
      same(x.writes, y.writes, "whether port " + x.name + " writes");
      same(x.argument, y.argument, "argument of port " + x.name);
      same(x.channel, y.channel, "channel of port " + x.name);
      y.name = x.name;
    });
    each(a.processes, b.processes, "processes", [&](Process& x, Process& y) {
      where_ = x.name + ": ";
      y.name = x.name;
      each(x.items, y.items, "loops, blocks and nests", [&](Item& p, Item& q) { join(p, q); });
    });
    return difference_;
  }

 private:
  template <class T>
  void same(const T& a, const T& b, const std::string& what) {
    if (difference_.empty() && !(a == b))
      difference_ = fmt::format("{}{}: {} and {}", where_, what, a, b);
  }
  void need(bool holds, const std::string& what) {
    if (difference_.empty() && !holds) difference_ = where_ + what;
  }
  template <class T, class F>
  void each(std::vector<T>& a, std::vector<T>& b, const std::string& what, F join_both) {
    same(a.size(), b.size(), what);
    for (size_t i = 0; difference_.empty() && i < a.size(); ++i) join_both(a[i], b[i]);
  }

  void join(Number& a, Number& b) {
    need(a.kind == b.kind && a.exponent == b.exponent && (!a.is_float() || a.bits == b.bits),
         fmt::format("types {} and {}", name(a), name(b)));
    a.bits = b.bits = std::max(a.bits, b.bits);
  }

  void join(Memory& a, Memory& b) {
    where_ = a.name + ": ";
    same(a.banks, b.banks, "banks");
    same(a.slots, b.slots, "slots");
    same(a.accumulated, b.accumulated, "whether it is summed up");
    same(a.read_latency, b.read_latency, "cycles to read");
    join(a.element, b.element);
    a.words = b.words = std::max(a.words, b.words);
    b.name = a.name;
    where_.clear();
  }

  /// A value that changes in one of them is computed in both.
  static void join(Affine& a, Affine& b) {
    if (a.is_constant() == b.is_constant()) return;
    (a.is_constant() ? a : b).counters.push_back(0);
  }
  /// All must hold, in any order: what one has more, always holds in the other.
  static void join(std::vector<Range>& a, std::vector<Range>& b) {
    std::vector<Range>& fewer = a.size() < b.size() ? a : b;
    fewer.resize(std::max(a.size(), b.size()));  // 0 <= 0 < 1
    for (size_t i = 0; i < a.size(); ++i) join(a[i].value, b[i].value);
  }
  void join(Place& a, Place& b) {
    same(a.memory, b.memory, "memory that is used");
    // A bank that is known needs no wires to all others: it is no number of the table.
    same(a.bank.is_constant(), b.bank.is_constant(), "whether a bank is known");
    if (a.bank.is_constant()) same(a.bank.constant, b.bank.constant, "bank");
    join(a.word, b.word);
  }

  void join(Item& a, Item& b) {
    need(a.index() == b.index(), "loops, blocks and nests in another order");
    if (!difference_.empty()) return;
    if (const auto* acquire = std::get_if<Acquire>(&a))
      same(acquire->memory, std::get<Acquire>(b).memory, "block that is taken");
    if (const auto* release = std::get_if<Release>(&a))
      same(release->memory, std::get<Release>(b).memory, "block that is handed over");
    if (auto* nest = std::get_if<Nest>(&a)) join(*nest, std::get<Nest>(b));
  }

  /// One more counter, outside of all others, of one turn.
  static void turn_once(Nest& nest) {
    nest.extents.insert(nest.extents.begin(), 1);
    const auto shift = [](Affine& affine) {
      if (!affine.counters.empty()) affine.counters.insert(affine.counters.begin(), 0);
    };
    const auto shift_place = [&](Place& place) {
      shift(place.bank);
      shift(place.word);
    };
    const auto shift_ranges = [&](std::vector<Range>& ranges) {
      for (Range& range : ranges) shift(range.value);
    };
    for (Node& node : nest.nodes) {
      shift_place(node.place);
      shift_ranges(node.ranges);
    }
    for (Store& store : nest.stores) {
      shift_place(store.place);
      shift_ranges(store.ranges);
    }
    shift(nest.stream.address);
    shift_ranges(nest.stream.ranges);
  }

  /// Rows as long as they are, by a condition along them.
  static void clip_nowhere(Nest& nest) {
    Range whole;
    whole.value.counters.resize(nest.extents.size());
    whole.value.counters.back() = 1;
    whole.extent = nest.extents.back();
    nest.stream.ranges.insert(nest.stream.ranges.begin(), whole);
    nest.stream.clipped = true;
  }

  void join(Nest& a, Nest& b) {
    b.name = a.name;
    while (a.extents.size() != b.extents.size())
      turn_once(a.extents.size() < b.extents.size() ? a : b);
    a.ii = b.ii = std::max(a.ii, b.ii);
    each(a.nodes, b.nodes, "operators of " + a.name, [&](Node& x, Node& y) { join(x, y); });
    each(a.stores, b.stores, "stores of " + a.name, [&](Store& x, Store& y) {
      same(x.node, y.node, "value that is stored");
      join(x.place, y.place);
      join(x.ranges, y.ranges);
    });
    if (a.stream.clipped != b.stream.clipped) clip_nowhere(a.stream.clipped ? b : a);
    join(a.stream, b.stream);
  }

  void join(Node& a, Node& b) {
    same(name(a.op), name(b.op), "operator");
    need(a.inputs == b.inputs, "operators on other values");
    same(a.latency, b.latency, "cycles of an operator");
    same(a.lane, b.lane, "lane");
    if (a.op == Op::Read) join(a.place, b.place);
    join(a.ranges, b.ranges);
    const Number was[] = {a.type, b.type};
    join(a.type, b.type);
    if (a.op != Op::Const) return;
    a.bits = widened(a.bits, was[0], a.type);
    b.bits = widened(b.bits, was[1], b.type);
    a.varies = b.varies = a.varies || b.varies || a.bits != b.bits;
    // The table has words of 32 bits.
    if (a.type.bits > 32) same(a.bits, b.bits, "constant");
  }

  /// The bits of the same number in a wider type.
  static uint64_t widened(uint64_t bits, const Number& from, const Number& to) {
    const bool negative = from.kind == Number::Kind::Signed && ((bits >> (from.bits - 1)) & 1) != 0;
    if (!negative) return bits;
    for (int bit = from.bits; bit < to.bits; ++bit) bits |= uint64_t{1} << bit;
    return bits;
  }

  void join(Stream& a, Stream& b) {
    same(a.port, b.port, "port");
    same(a.lanes, b.lanes, "elements in a cycle");
    same(name(a.element), name(b.element), "elements");
    need(a.nodes == b.nodes, "other values that are written");
    join(a.address, b.address);
    join(a.ranges, b.ranges);
  }

  std::string where_, difference_;
};

}  // namespace

Result<std::vector<Design>> merge(std::vector<Design> designs) {
  // The first one collects what the others need; then they get it.
  for (int round = 0; round < 2; ++round)
    for (size_t i = 1; i < designs.size(); ++i) {
      const std::string difference = Joiner().run(designs[0], designs[i]);
      if (!difference.empty())
        return fail(
            ErrorKind::Unsupported,
            fmt::format("'{}' and '{}' are not one design", designs[0].name, designs[i].name),
            difference);
    }
  return designs;
}

MergedDesigns merge_alike(std::vector<Design> designs) {
  std::vector<std::vector<Design>> groups;
  MergedDesigns merged;
  for (Design& design : designs) {
    std::string difference;
    size_t g = 0;
    for (; g < groups.size(); ++g) {
      std::vector<Design> larger = groups[g];
      larger.push_back(design);
      auto together = merge(std::move(larger));
      if (together) {
        groups[g] = *std::move(together);
        break;
      }
      difference = fmt::format("{}: {}", together.error().what, together.error().why);
    }
    if (g == groups.size()) {
      groups.push_back({std::move(design)});
      if (g > 0) merged.differences.push_back(difference);
    }
    merged.structure.push_back(static_cast<int>(g));
  }
  merged.structures = static_cast<int>(groups.size());
  std::vector<size_t> next(groups.size(), 0);
  for (const int structure : merged.structure) {
    const auto g = static_cast<size_t>(structure);
    merged.designs.push_back(std::move(groups[g][next[g]++]));
  }
  return merged;
}

}  // namespace tilewright::fpga
