// How good a mapping is: its cycles, and of mappings that take about as long, its energy.
//
// Example: of two mappings that keep the memory port busy for 1 000 cycles one has 300 steps of the
// array, the other one 900 with a third of the lanes at work. The first one is better; it still is
// if it takes 1 010 cycles, as it takes half the energy.
#pragma once

#include <cmath>

#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {

/// A mapping is the better the less cycles * energy^kEnergyWeight it has, so one that is 1 % slower
/// is chosen if it takes about half the energy. The cycles by which mappings are compared are off
/// by about as much, and larger weights were seen to give away more of them
/// (bench/results/codesign.md).
inline constexpr double kEnergyWeight = 1.0 / 64;

/// What an energy counts for beside cycles.
inline double energy_factor(double picojoules) { return std::pow(picojoules, kEnergyWeight); }

/// Picojoules of a run, roughly: enough to tell mappings that take about as long. Memories cost the
/// same whatever their size, so that designs that differ in these alone agree.
/// steps: of the array; spad_bytes: read and written; dram_bytes: of LOADs.
/// source: M. Horowitz, ISSCC 2014 (45 nm, 0.9 V).
inline double rough_energy(const SpatialUnit& unit, double steps, double spad_bytes,
                           double dram_bytes) {
  // A multiplication of int8 and an addition of int32; a byte of an SRAM of 32 KiB, of one of 8
  // KiB, and of DRAM.
  constexpr double kMac = 0.2 + 0.1, kSpadByte = 20.0 / 8, kLocalByte = 10.0 / 8,
                   kDramByte = 1950.0 / 8;
  constexpr double kSumBytes = 2 * 4;  // a sum is read and written
  const double step =
      double(unit.design.units()) * kMac + kSumBytes * double(unit.parts) * kLocalByte;
  return steps * step + spad_bytes * kSpadByte + dram_bytes * kDramByte;
}

}  // namespace tilewright::cost
