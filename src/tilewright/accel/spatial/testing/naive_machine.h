// A `spatial` as isa.h describes it, position by position and lane by lane, and what each
// instruction touches.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/accel/spatial/isa.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/operands.h"

namespace tilewright::spatial::testing {

class NaiveMachine {
 public:
  enum Memory { Dram, Spad, Sums, Bias };  ///< numbers as in footprint.h
  using Place = std::pair<int, int64_t>;

  NaiveMachine(const Design& design, int64_t base, std::string image)
      : dram(std::move(image)),
        design_(design),
        base_(base),
        parts_(sum_parts(design)),
        spad_(static_cast<size_t>(design.spad_bytes())),
        sums_(static_cast<size_t>(parts_ * sum_words(design))),
        bias_(kBiasWords) {}

  std::string dram;
  std::set<Place> reads, writes;  ///< of the last instruction
  uint64_t macs = 0, steps = 0;
  bool record = false;

  /// False: it read what nothing wrote; the machine is useless afterwards.
  bool run(const Insn& insn) {
    reads.clear();
    writes.clear();
    defined_ = true;
    if (const auto* work = std::get_if<Load>(&insn.work)) load(*work);
    if (const auto* work = std::get_if<Compute>(&insn.work)) compute(*work);
    if (const auto* work = std::get_if<Store>(&insn.work)) store(*work);
    return defined_;
  }

 private:
  void note(std::set<Place>& into, int memory, int64_t at) {
    if (record) into.insert({memory, at});
  }
  template <class T>
  T get(int memory, const std::vector<std::optional<T>>& from, int64_t at) {
    note(reads, memory, at);
    const std::optional<T>& value = from.at(static_cast<size_t>(at));
    defined_ = defined_ && value.has_value();
    return value.value_or(0);
  }
  template <class T>
  void set(int memory, std::vector<std::optional<T>>& into, int64_t at, T value) {
    note(writes, memory, at);
    into.at(static_cast<size_t>(at)) = value;
  }
  uint8_t dram_byte(int64_t at) {
    note(reads, Dram, at);
    return static_cast<uint8_t>(dram.at(static_cast<size_t>(at - base_)));
  }
  void set_dram(int64_t at, uint32_t byte) {
    note(writes, Dram, at);
    dram.at(static_cast<size_t>(at - base_)) = static_cast<char>(byte & 0xff);
  }
  static int32_t wrap(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

  template <class Axes, class F>
  static void for_positions(const Axes& axes, F&& f) {
    std::array<int64_t, kAxes> p{};
    for (p[0] = 0; p[0] < axes[0].count; ++p[0])
      for (p[1] = 0; p[1] < axes[1].count; ++p[1])
        for (p[2] = 0; p[2] < axes[2].count; ++p[2])
          for (p[3] = 0; p[3] < axes[3].count; ++p[3])
            for (p[4] = 0; p[4] < axes[4].count; ++p[4]) f(p);
  }

  void load(const Load& load) {
    for (int w = 0; w < load.bias_words; ++w) {
      uint32_t word = 0;
      for (int b = 0; b < 4; ++b)
        word |= uint32_t{dram_byte(static_cast<int64_t>(load.dram) + 4 * (w - load.bias_words) + b)}
                << 8 * b;
      set(Bias, bias_, load.bias + w, static_cast<int32_t>(word));
    }
    for_positions(load.axes, [&](const std::array<int64_t, kAxes>& p) {
      int64_t from = static_cast<int64_t>(load.dram), to = load.spad;
      bool zero = false;
      for (int a = 0; a < kAxes; ++a) {
        const auto at = static_cast<size_t>(a);
        const LoadAxis& axis = load.axes[at];
        zero = zero || p[at] < axis.before || p[at] >= int64_t{axis.count} - axis.after;
        from += (p[at] - axis.before) * axis.dram_step;
        to += a == load.lane_axis
                  ? p[at] / load.lanes * load.lane_pitch + p[at] % load.lanes * axis.spad_step
                  : p[at] * axis.spad_step;
      }
      set(Spad, spad_, to, static_cast<int8_t>(zero ? 0 : dram_byte(from)));
    });
  }

  void compute(const Compute& compute) {
    for (int64_t at = sum_limit(design_, compute) * parts_; at < std::ssize(sums_); ++at) {
      note(writes, Sums, at);
      sums_[static_cast<size_t>(at)].reset();
    }
    std::array<int64_t, kLoops> at{};
    const auto& l = compute.loops;
    for (at[0] = 0; at[0] < l[0].count; ++at[0])
      for (at[1] = 0; at[1] < l[1].count; ++at[1])
        for (at[2] = 0; at[2] < l[2].count; ++at[2])
          for (at[3] = 0; at[3] < l[3].count; ++at[3])
            for (at[4] = 0; at[4] < l[4].count; ++at[4])
              for (at[5] = 0; at[5] < l[5].count; ++at[5]) step(compute, at);
  }

  void step(const Compute& compute, const std::array<int64_t, kLoops>& at) {
    ++steps;
    const RoleLanes all = all_lanes(design_);
    int64_t first = compute.spad[0], second = compute.spad[1], place = compute.sum;
    bool begins = compute.begins;
    for (size_t l = 0; l < kLoops; ++l) {
      first += at[l] * compute.loops[l].spad_step[0];
      second += at[l] * compute.loops[l].spad_step[1];
      place += at[l] * compute.loops[l].sum_step;
      if (compute.loops[l].reduces && at[l] != 0) begins = false;
    }
    const auto works = [&](const Lanes& lanes, int64_t lane, int64_t width) {
      const int64_t index = lanes.loop < 0 ? 0 : at[static_cast<size_t>(lanes.loop)];
      return lane < lanes.count - index * width;
    };
    for (int64_t i = 0; i < all.i; ++i)
      for (int64_t j = 0; j < all.j; ++j) {
        if (!works(compute.i, i, all.i) || !works(compute.j, j, all.j)) continue;
        const int64_t word = place * parts_ + part_of(i, j);
        int64_t sum = begins ? 0 : get(Sums, sums_, word);
        for (int64_t k = 0; k < all.k; ++k) {
          if (!works(compute.k, k, all.k)) continue;
          ++macs;
          const auto [a, b] = elements(compute, i, j, k);
          sum += int64_t{get(Spad, spad_, first + a)} * get(Spad, spad_, second + b);
        }
        set(Sums, sums_, word, wrap(sum));
      }
  }

  int64_t part_of(int64_t i, int64_t j) const {
    switch (design_.unit) {
      case Unit::Dot:
        return 0;
      case Unit::Gemv:
        return i;
      case Unit::Gemm:
        return design_.dataflow == Dataflow::WeightStationary ? j : i * design_.cols + j;
      case Unit::Conv2d:
        return j;
    }
    return 0;
  }

  /// Bytes from the step's places to the elements of both factors.
  std::pair<int64_t, int64_t> elements(const Compute& compute, int64_t i, int64_t j,
                                       int64_t k) const {
    switch (design_.unit) {
      case Unit::Dot:
        return {k, k};
      case Unit::Gemv:
        return {i, 0};
      case Unit::Gemm:
        if (design_.dataflow == Dataflow::OutputStationary) return {i, j};
        return {k, k * compute.row_step + j};
      case Unit::Conv2d:
        return {k, j * compute.row_step + k};
    }
    return {};
  }

  void store(const Store& store) {
    for_positions(store.axes, [&](const std::array<int64_t, kAxes>& p) {
      int64_t to = static_cast<int64_t>(store.dram), part = 0, place = store.sum;
      for (size_t a = 0; a < kAxes; ++a) {
        const StoreAxis& axis = store.axes[a];
        to += p[a] * axis.dram_step;
        part += p[a] % axis.lanes * axis.part_step;
        place += p[a] / axis.lanes * axis.sum_step;
      }
      int64_t value = get(Sums, sums_, place * parts_ + part);
      if (store.bias_axis >= 0)
        value =
            wrap(value + get(Bias, bias_, store.bias + p[static_cast<size_t>(store.bias_axis)]));
      if (store.wide) {
        for (int b = 0; b < 4; ++b) set_dram(to + b, static_cast<uint32_t>(value) >> 8 * b);
        return;
      }
      // Halves up: the floor of the quotient plus a half.
      const int64_t divisor = int64_t{1} << store.shift;
      int64_t twice = 2 * value + divisor, rounded = twice / (2 * divisor);
      if (twice < 0 && twice % (2 * divisor) != 0) --rounded;
      if (rounded < store.low) rounded = store.low;
      if (rounded > store.high) rounded = store.high;
      set_dram(to, static_cast<uint32_t>(rounded));
    });
  }

  Design design_;
  int64_t base_, parts_;
  std::vector<std::optional<int8_t>> spad_;
  std::vector<std::optional<int32_t>> sums_;  ///< [place][part]
  std::vector<std::optional<int32_t>> bias_;
  bool defined_ = true;
};

}  // namespace tilewright::spatial::testing
