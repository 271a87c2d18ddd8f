// The numbers of an instruction, one after the other: what encoding, text and tests share.
// Internal.
#pragma once

#include <array>
#include <string_view>
#include <type_traits>

#include "tilewright/accel/spatial/isa.h"

namespace tilewright::spatial {

inline constexpr std::array<std::string_view, kLoops> kLoopNames = {"loop0", "loop1", "loop2",
                                                                    "loop3", "loop4", "loop5"};
inline constexpr std::array<std::string_view, kAxes> kAxisNames = {"axis0", "axis1", "axis2",
                                                                   "axis3", "axis4"};

/// Calls f(name, byte, number) for every number of a LOAD, COMPUTE or STORE: its name in text, its
/// first byte in the encoding, itself. Numbers with the same name stand side by side in text, in
/// this order.
template <class Work, class F>
void each_field(Work& work, F&& f) {
  using T = std::remove_const_t<Work>;
  if constexpr (std::is_same_v<T, Load>) {
    f("spad", 4, work.spad);
    f("dram", 8, work.dram);
    f("run_axes", 16, work.run_axes);
    f("lane_axis", 17, work.lane_axis);
    f("lanes", 18, work.lanes);
    f("lane_pitch", 20, work.lane_pitch);
    f("bias", 24, work.bias);
    f("bias_words", 26, work.bias_words);
    for (size_t a = 0; a < kAxes; ++a) {
      auto& axis = work.axes[a];
      const int at = 32 + 16 * static_cast<int>(a);
      f(kAxisNames[a], at, axis.count);
      f(kAxisNames[a], at + 4, axis.before);
      f(kAxisNames[a], at + 6, axis.after);
      f(kAxisNames[a], at + 8, axis.dram_step);
      f(kAxisNames[a], at + 12, axis.spad_step);
    }
  } else if constexpr (std::is_same_v<T, Compute>) {
    f("sum", 4, work.sum);
    f("spad", 8, work.spad[0]);
    f("spad", 12, work.spad[1]);
    f("block_loops", 16, work.block_loops);
    f("tap_loops", 17, work.tap_loops);
    f("begins", 18, work.begins);
    f("row_step", 20, work.row_step);
    f("i", 24, work.i.count);
    f("i", 30, work.i.loop);
    f("j", 26, work.j.count);
    f("j", 31, work.j.loop);
    f("k", 28, work.k.count);
    f("k", 19, work.k.loop);
    for (size_t l = 0; l < kLoops; ++l) {
      auto& loop = work.loops[l];
      const int at = 32 + 16 * static_cast<int>(l);
      f(kLoopNames[l], at, loop.count);
      f(kLoopNames[l], at + 2, loop.reduces);
      f(kLoopNames[l], at + 4, loop.spad_step[0]);
      f(kLoopNames[l], at + 8, loop.spad_step[1]);
      f(kLoopNames[l], at + 12, loop.sum_step);
    }
  } else {
    static_assert(std::is_same_v<T, Store>);
    f("sum", 4, work.sum);
    f("dram", 8, work.dram);
    f("run_axes", 16, work.run_axes);
    f("bias_axis", 17, work.bias_axis);
    f("bias", 18, work.bias);
    f("wide", 20, work.wide);
    f("shift", 21, work.shift);
    f("clip", 22, work.low);
    f("clip", 23, work.high);
    for (size_t a = 0; a < kAxes; ++a) {
      auto& axis = work.axes[a];
      const int at = 32 + 16 * static_cast<int>(a);
      f(kAxisNames[a], at, axis.count);
      f(kAxisNames[a], at + 4, axis.dram_step);
      f(kAxisNames[a], at + 8, axis.lanes);
      f(kAxisNames[a], at + 10, axis.part_step);
      f(kAxisNames[a], at + 12, axis.sum_step);
    }
  }
}

}  // namespace tilewright::spatial
