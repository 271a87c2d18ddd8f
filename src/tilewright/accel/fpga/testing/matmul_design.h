// A product of i8 matrices into i32 as a design by hand: two processes read tiles, one multiplies,
// one writes sums.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tilewright/accel/fpga/design.h"
#include "tilewright/base/integers.h"
#include "tilewright/base/rng.h"

namespace tilewright::fpga::testing {

struct Matmul {
  int64_t m = 8, n = 8, k = 8;     ///< n: a multiple of un; k: of uk
  int64_t tm = 4, tn = 4, tk = 4;  ///< tile; tn: a multiple of un; tk: of uk
  int un = 2, uk = 2;              ///< products side by side
  int slots = 2;
  int64_t words = 0;  ///< of each memory, in a bank; 0: what the tiles need
  Bus bus;

  int64_t steps_m() const { return ceil_div(m, tm); }
  int64_t steps_n() const { return ceil_div(n, tn); }
  int64_t steps_k() const { return ceil_div(k, tk); }
};

inline Place place(int memory, int64_t bank, Affine word) {
  return {memory, {bank, {}, {}}, std::move(word)};
}

/// Loops over tiles around `items`; `inner`: also over k.
inline std::vector<Item> over_tiles(const Matmul& s, bool inner, std::vector<Item> items) {
  std::vector<Item> all = {LoopBegin{s.steps_m()}, LoopBegin{s.steps_n()}};
  if (inner) all.push_back(LoopBegin{s.steps_k()});
  all.insert(all.end(), items.begin(), items.end());
  all.insert(all.end(), inner ? 3 : 2, LoopEnd{});
  return all;
}

inline Process read_a(const Matmul& s) {
  Nest nest;
  nest.name = "A";
  nest.extents = {s.tm, s.tk / s.uk};
  nest.stream = {0,
                 {Number::Kind::Signed, 8},
                 s.uk,
                 {0, {s.tm * s.k, 0, s.tk}, {s.k, s.uk}},
                 {{{0, {0, 0, s.tk / s.uk}, {0, 1}}, s.k / s.uk}, {{0, {s.tm, 0, 0}, {1, 0}}, s.m}},
                 true,
                 {}};
  for (int lane = 0; lane < s.uk; ++lane) {
    nest.nodes.push_back({Op::Stream, {Number::Kind::Signed, 8}, {}, 1, 0, lane});
    nest.stores.push_back({place(0, lane, {0, {}, {s.tk / s.uk, 1}}), lane, {}});
  }
  return {"read_A", over_tiles(s, true, {Acquire{0}, nest, Release{0}})};
}

inline Process read_b(const Matmul& s) {
  const int64_t columns = s.tn / s.un;
  Nest nest;
  nest.name = "B";
  nest.extents = {s.tk / s.uk, s.uk, columns};
  nest.stream = {1,
                 {Number::Kind::Signed, 8},
                 s.un,
                 {0, {0, s.tn, s.tk * s.n}, {s.uk * s.n, s.n, s.un}},
                 {{{0, {0, columns, 0}, {0, 0, 1}}, s.n / s.un},
                  {{0, {0, 0, s.tk / s.uk}, {1, 0, 0}}, s.k / s.uk}},
                 true,
                 {}};
  for (int lane = 0; lane < s.un; ++lane) {
    nest.nodes.push_back({Op::Stream, {Number::Kind::Signed, 8}, {}, 1, 0, lane});
    nest.stores.push_back({{1, {lane, {}, {0, s.un, 0}}, {0, {}, {columns, 0, 1}}}, lane, {}});
  }
  return {"read_B", over_tiles(s, true, {Acquire{1}, nest, Release{1}})};
}

inline Process multiply(const Matmul& s) {
  const Number i8{Number::Kind::Signed, 8}, i32{Number::Kind::Signed, 32};
  const Number flag{Number::Kind::Unsigned, 1};
  const int64_t columns = s.tn / s.un;
  Nest nest;
  nest.name = "multiply";
  nest.extents = {s.tk / s.uk, s.tm, columns};
  std::vector<Node>& nodes = nest.nodes;
  const auto add = [&nodes](Node node) {
    nodes.push_back(std::move(node));
    return static_cast<int>(nodes.size()) - 1;
  };
  std::vector<int> a;
  for (int u = 0; u < s.uk; ++u)
    a.push_back(add({Op::Read, i8, {}, 0, 0, 0, place(0, u, {0, {}, {1, s.tk / s.uk, 0}})}));
  const int first = add({Op::Flag, flag, {}, 0, 0, 0, {}, {{{0, {0, 0, 1}, {1, 0, 0}}, 1}}});
  const int zero = add({Op::Const, i32});
  for (int v = 0; v < s.un; ++v) {
    std::vector<int> sums;
    for (int u = 0; u < s.uk; ++u) {
      const int b =
          add({Op::Read, i8, {}, 0, 0, 0, place(1, u * s.un + v, {0, {}, {columns, 0, 1}})});
      sums.push_back(add({Op::Mul, i32, {a[static_cast<size_t>(u)], b}, 2}));
    }
    while (sums.size() > 1) {  // a balanced tree
      std::vector<int> next;
      for (size_t i = 0; i + 1 < sums.size(); i += 2)
        next.push_back(add({Op::Add, i32, {sums[i], sums[i + 1]}, 1}));
      if (sums.size() % 2 == 1) next.push_back(sums.back());
      sums = next;
    }
    const Place sum = place(2, v, {0, {}, {0, columns, 1}});
    const int before = add({Op::Read, i32, {}, 0, 0, 0, sum});
    const int start = add({Op::Select, i32, {first, zero, before}, 0});
    nest.stores.push_back({sum, add({Op::Add, i32, {start, sums[0]}, 1}), {}});
  }
  return {"multiply",
          {LoopBegin{s.steps_m()}, LoopBegin{s.steps_n()}, Acquire{2}, LoopBegin{s.steps_k()},
           Acquire{0}, Acquire{1}, nest, Release{0}, Release{1}, LoopEnd{}, Release{2}, LoopEnd{},
           LoopEnd{}}};
}

inline Process write_c(const Matmul& s) {
  const Number i32{Number::Kind::Signed, 32};
  const int64_t columns = s.tn / s.un;
  Nest nest;
  nest.name = "C";
  nest.extents = {s.tm, columns};
  nest.stream = {2,
                 i32,
                 s.un,
                 {0, {s.tm * s.n * 4, s.tn * 4}, {s.n * 4, s.un * 4}},
                 {{{0, {0, columns}, {0, 1}}, s.n / s.un}, {{0, {s.tm, 0}, {1, 0}}, s.m}},
                 true,
                 {}};
  for (int lane = 0; lane < s.un; ++lane) {
    nest.nodes.push_back({Op::Read, i32, {}, 0, 0, 0, place(2, lane, {0, {}, {columns, 1}})});
    nest.stream.nodes.push_back(lane);
  }
  return {"write_C", over_tiles(s, false, {Acquire{2}, nest, Release{2}})};
}

inline Design design_of(const Matmul& s) {
  const auto words = [&s](int64_t needed) { return std::max(s.words, needed); };
  Design design;
  design.name = "matmul";
  design.bus = s.bus;
  design.multiplier_bits = 25;
  design.arguments = 3;
  design.memories = {
      {"A", {Number::Kind::Signed, 8}, s.uk, words(s.tm * s.tk / s.uk), s.slots},
      {"B", {Number::Kind::Signed, 8}, s.uk * s.un, words(s.tk / s.uk * s.tn / s.un), s.slots},
      {"C", {Number::Kind::Signed, 32}, s.un, words(s.tm * s.tn / s.un), s.slots, true}};
  design.ports = {{"A", false, 0, 0}, {"B", false, 1, 0}, {"C", true, 2, 0}};
  design.processes = {read_a(s), read_b(s), multiply(s), write_c(s)};
  return design;
}

/// Random operands, and room for the product.
inline std::vector<std::string> arguments_of(const Matmul& s, Rng& rng) {
  std::vector<std::string> out = {std::string(static_cast<size_t>(s.m * s.k), '\0'),
                                  std::string(static_cast<size_t>(s.k * s.n), '\0'),
                                  std::string(static_cast<size_t>(s.m * s.n * 4), '\x55')};
  for (char& byte : out[0]) byte = static_cast<char>(rng.next());
  for (char& byte : out[1]) byte = static_cast<char>(rng.next());
  return out;
}

/// The product by three loops.
inline std::string product_of(const Matmul& s, const std::vector<std::string>& arguments) {
  std::string out(static_cast<size_t>(s.m * s.n * 4), '\0');
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      int32_t sum = 0;
      for (int64_t r = 0; r < s.k; ++r)
        sum += static_cast<int8_t>(arguments[0][static_cast<size_t>(i * s.k + r)]) *
               static_cast<int8_t>(arguments[1][static_cast<size_t>(r * s.n + j)]);
      for (size_t b = 0; b < 4; ++b)
        out[static_cast<size_t>(i * s.n + j) * 4 + b] =
            static_cast<char>(static_cast<uint32_t>(sum) >> (8 * b));
    }
  return out;
}

}  // namespace tilewright::fpga::testing
