// Random designs: arguments are read in clipped tiles, computed by a random graph in one or two
// stages, perhaps summed over a loop, and written.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tilewright/accel/fpga/design.h"
#include "tilewright/base/rng.h"

namespace tilewright::fpga::testing {

/// What the Verilog depends on.
struct Structure {
  uint64_t seed = 0;  ///< of the graphs
  Number type;
  int inputs = 1, stages = 1, lanes = 1, ii = 1, slots = 2, read_latency = 2;
  bool sums = false;  ///< the last stage adds over the innermost loop
  Bus bus;
};
/// Numbers of the table.
struct Sizes {
  int64_t loops[3] = {1, 1, 1};  ///< rows of tiles, columns of tiles, terms of the sum
  int64_t rows = 1, groups = 1;  ///< of a tile; at most kTileWords groups together
  int64_t all_rows = 1, all_groups = 1;
  int64_t pad = 0;
  int64_t terms(const Structure& s) const { return s.sums ? loops[2] : 1; }
};
inline constexpr int64_t kTileWords = 64;

inline Structure random_structure(uint64_t seed) {
  Rng rng(seed);
  Structure s;
  s.seed = rng.next();
  const DType types[] = {DType::I8, DType::I16, DType::I32, DType::U8, DType::BF16, DType::F32};
  s.type = number_of(types[rng.below(6)]);
  s.inputs = static_cast<int>(rng.between(1, 2));
  s.stages = static_cast<int>(rng.between(1, 2));
  s.lanes = 1 << rng.below(3);
  s.ii = static_cast<int>(rng.between(1, 3));
  s.slots = static_cast<int>(rng.between(1, 3));
  s.read_latency = static_cast<int>(rng.between(1, 2));
  s.sums = rng.chance(0.5);
  const int group = s.lanes * s.type.bytes();
  s.bus.beat_bytes = std::max(group, 4 << rng.below(4));
  s.bus.burst_beats = static_cast<int>(rng.between(1, 32));
  s.bus.outstanding = static_cast<int>(rng.between(1, 6));
  s.bus.write_fifo = static_cast<int>(rng.between(2, 20));
  return s;
}

inline Sizes random_sizes(Rng& rng) {
  Sizes z;
  for (int64_t& loop : z.loops) loop = rng.between(1, 4);
  z.groups = rng.between(1, 16);
  z.rows = rng.between(1, kTileWords / z.groups);
  z.all_rows = rng.between(1, z.loops[0] * z.rows);
  z.all_groups = rng.between(1, z.loops[1] * z.groups);
  z.pad = rng.between(0, 2);
  return z;
}

/// A tile between memory and channel `memory` through port `port`.
inline Nest move_nest(const Structure& s, const Sizes& z, int memory, int port, bool writes) {
  const int64_t group = s.lanes * s.type.bytes(), pad = writes ? 0 : z.pad;
  const int64_t row = z.all_groups * group;
  Nest nest;
  nest.name = writes ? "write" : "read";
  nest.extents = {z.rows, z.groups};
  std::vector<int64_t> loops = {z.rows * row, z.groups * group};
  std::vector<int64_t> down = {z.rows, 0}, across = {0, z.groups};
  if (s.sums && !writes) {
    loops.push_back(z.all_rows * row);
    down.push_back(0);
    across.push_back(0);
  }
  nest.stream = {port,
                 s.type,
                 s.lanes,
                 {-pad * group, loops, {row, group}},
                 {{{-pad, across, {0, 1}}, z.all_groups}, {{0, down, {1, 0}}, z.all_rows}},
                 true,
                 {}};
  const Place here{memory, {}, {0, {}, {z.groups, 1}}};
  for (int lane = 0; lane < s.lanes; ++lane) {
    Place place = here;
    place.bank.constant = lane;
    if (writes) {
      nest.nodes.push_back({Op::Read, s.type, {}, 0, 0, 0, place});
      nest.stream.nodes.push_back(lane);
    } else {
      nest.nodes.push_back({Op::Stream, s.type, {}, lane % 3, 0, lane});
      nest.stores.push_back({place, lane, {}});
    }
  }
  return nest;
}

/// A few random operators on `pool`; the last one's node.
inline int random_graph(std::vector<Node>& nodes, std::vector<int> pool, const Number& type,
                        Rng& rng) {
  const auto add = [&](Node node) {
    nodes.push_back(std::move(node));
    return static_cast<int>(nodes.size()) - 1;
  };
  const auto any = [&] { return pool[static_cast<size_t>(rng.below(int64_t(pool.size())))]; };
  const auto latency = [&] { return static_cast<int>(rng.between(0, 4)); };
  pool.push_back(add({Op::Const, type, {}, 0, rng.next() & ((uint64_t{1} << type.bits) - 1)}));
  for (int i = 0; i < 4; ++i) {
    const Op ops[] = {Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max, Op::Select, Op::Shl, Op::Shr};
    const Op op = ops[rng.below(type.is_float() ? 6 : 8)];
    if (op == Op::Select) {
      const Op by = rng.chance(0.5) ? Op::Lt : Op::Le;
      const int flag = add({by, {Number::Kind::Unsigned, 1}, {any(), any()}, latency()});
      pool.push_back(add({op, type, {flag, any(), any()}, latency()}));
    } else if (op == Op::Shl || op == Op::Shr) {
      const int by = add({Op::Const, type, {}, 0, static_cast<uint64_t>(rng.below(9))});
      pool.push_back(add({op, type, {any(), by}, latency()}));
    } else {
      pool.push_back(add({op, type, {any(), any()}, latency()}));
    }
  }
  return pool.back();
}

/// Elements of the tiles in `from` into `to`; `last`: with a sum, if there is one.
inline Nest compute_nest(const Structure& s, const Sizes& z, const std::vector<int>& from, int to,
                         bool last) {
  Nest nest;
  nest.name = "compute";
  nest.extents = {z.rows, z.groups};
  nest.ii = s.ii;
  for (int lane = 0; lane < s.lanes; ++lane) {
    Rng rng(s.seed + static_cast<uint64_t>(to));  // the same graph in each lane
    std::vector<int> pool;
    for (const int memory : from) {
      pool.push_back(static_cast<int>(nest.nodes.size()));
      nest.nodes.push_back(
          {Op::Read, s.type, {}, 0, 0, 0, {memory, {lane, {}, {}}, {0, {}, {z.groups, 1}}}});
    }
    const Place out{to, {lane, {}, {}}, {0, {}, {z.groups, 1}}};
    int result = random_graph(nest.nodes, pool, s.type, rng);
    if (last && s.sums) {
      const auto add = [&](Node node) {
        nest.nodes.push_back(std::move(node));
        return static_cast<int>(nest.nodes.size()) - 1;
      };
      const int first = add(
          {Op::Flag, {Number::Kind::Unsigned, 1}, {}, 0, 0, 0, {}, {{{0, {0, 0, 1}, {0, 0}}, 1}}});
      const int zero = add({Op::Const, s.type});
      const int before = add({Op::Read, s.type, {}, 0, 0, 0, out});
      const int start = add({Op::Select, s.type, {first, zero, before}, 0});
      result = add({Op::Add, s.type, {start, result}, 3});
    }
    nest.stores.push_back({out, result, {}});
  }
  return nest;
}

inline Design random_design(const Structure& s, const Sizes& z) {
  Design design;
  design.name = "random";
  design.bus = s.bus;
  design.multiplier_bits = 25;
  design.arguments = s.inputs + 1;
  const auto channel = [&](const std::string& name, bool accumulated) {
    design.memories.push_back(
        {name, s.type, s.lanes, kTileWords, s.slots, accumulated, s.read_latency});
    return static_cast<int>(design.memories.size()) - 1;
  };
  const auto looped = [&](int loops, std::vector<Item> items) {
    std::vector<Item> all;
    for (int i = 0; i < loops; ++i) all.push_back(LoopBegin{i == 2 ? z.terms(s) : z.loops[i]});
    all.insert(all.end(), items.begin(), items.end());
    all.insert(all.end(), static_cast<size_t>(loops), LoopEnd{});
    return all;
  };
  const int inner = s.sums ? 3 : 2;
  std::vector<int> from;
  for (int i = 0; i < s.inputs; ++i) {
    const int memory = channel("in" + std::to_string(i), false);
    design.ports.push_back({"in", false, i, i % 2});
    design.processes.push_back(
        {"read" + std::to_string(i),
         looped(inner, {Acquire{memory}, move_nest(s, z, memory, i, false), Release{memory}})});
    from.push_back(memory);
  }
  for (int stage = 0; stage < s.stages; ++stage) {
    const bool last = stage + 1 == s.stages;
    const int to = channel("out" + std::to_string(stage), last && s.sums);
    std::vector<Item> items;
    for (const int memory : from) items.push_back(Acquire{memory});
    if (!last || !s.sums) items.push_back(Acquire{to});
    items.push_back(compute_nest(s, z, from, to, last));
    for (const int memory : from) items.push_back(Release{memory});
    if (!last || !s.sums) items.push_back(Release{to});
    if (last && s.sums) {
      items.insert(items.begin(), LoopBegin{z.terms(s)});
      items.insert(items.begin(), Acquire{to});
      items.push_back(LoopEnd{});
      items.push_back(Release{to});
    }
    design.processes.push_back(
        {"stage" + std::to_string(stage), looped(last && s.sums ? 2 : inner, items)});
    from = {to};
  }
  design.ports.push_back({"out", true, s.inputs, 0});
  design.processes.push_back(
      {"write",
       looped(2, {Acquire{from[0]}, move_nest(s, z, from[0], s.inputs, true), Release{from[0]}})});
  return design;
}

inline std::vector<std::string> random_arguments(const Structure& s, const Sizes& z, Rng& rng) {
  const auto plane = static_cast<size_t>(z.all_rows * z.all_groups * s.lanes * s.type.bytes());
  std::vector<std::string> out(static_cast<size_t>(s.inputs),
                               std::string(plane * static_cast<size_t>(z.terms(s)), '\0'));
  for (std::string& argument : out)
    for (char& byte : argument) byte = static_cast<char>(rng.next());
  out.emplace_back(plane, '\x33');
  return out;
}

}  // namespace tilewright::fpga::testing
