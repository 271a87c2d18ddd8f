// Compares the cycle simulator with the one that steps cycle by cycle, on random programs.
#pragma once

#include <gtest/gtest.h>

#include "tilewright/accel/dpu/sim/testing/cycle_reference.h"
#include "tilewright/accel/dpu/sim/tsim.h"
#include "tilewright/accel/dpu/testing/random_program.h"

namespace tilewright::dpu::testing {

/// Another instruction gets or loses a token: most such streams deadlock, or leave tokens.
inline void change_masks(std::vector<Insn>& insns, Rng& rng) {
  Insn& insn = insns[static_cast<size_t>(rng.below(std::ssize(insns) - 1))];
  const auto bit = static_cast<unsigned>(rng.below(kUnits));
  if (bit == static_cast<unsigned>(unit_of(insn))) return;
  uint8_t& mask = rng.chance(0.5) ? insn.dpon : insn.dpby;
  mask = static_cast<uint8_t>(mask ^ 1u << bit);
}

inline void compare_times(uint64_t seed) {
  Rng rng(seed);
  const Config config = small_config(rng);
  const std::vector<Op> ops = RandomOps(config, rng).make(static_cast<int>(rng.between(1, 60)));
  const Scheme scheme = rng.chance(0.2) ? Scheme::Serial : Scheme::Addresses;
  Program program = program_of(empty_program(config, rng), ops, scheme);
  std::vector<Insn>& insns = program.runs[0].insns;
  for (int64_t n = rng.chance(0.3) ? rng.between(1, 3) : 0; n > 0; --n) change_masks(insns, rng);
  CycleReference reference(config, insns);
  const bool ends = reference.run();
  const Result<LaunchReport> report = simulate_time(config, insns, {.record_times = true});
  ASSERT_EQ(ends, report.has_value()) << "seed " << seed;
  if (!ends) return;
  ASSERT_EQ(report->cycles, reference.cycles) << "seed " << seed;
  EXPECT_EQ(report->counters.shared_port, reference.shared_port) << "seed " << seed;
  for (const InsnTime& time : report->times) {
    const CycleReference::Time& expected = reference.times[time.insn];
    ASSERT_EQ(time.begin, expected.begin) << "seed " << seed << " insn " << time.insn;
    ASSERT_EQ(time.end, expected.done) << "seed " << seed << " insn " << time.insn;
  }
}

}  // namespace tilewright::dpu::testing
