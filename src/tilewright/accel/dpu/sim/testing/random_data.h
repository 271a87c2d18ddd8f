// Compares the functional simulator, and footprints, with the formulas of docs/dpu.md, on random
// programs.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "tilewright/accel/dpu/check.h"
#include "tilewright/accel/dpu/sim/testing/naive_machine.h"
#include "tilewright/accel/dpu/sim/testing/run_device.h"
#include "tilewright/accel/dpu/testing/random_program.h"

namespace tilewright::dpu::testing {

/// Words that a footprint says an instruction touches.
inline std::set<NaiveMachine::Place> places(const accel::Footprint& footprint, bool write) {
  std::set<NaiveMachine::Place> all;
  for (const accel::Access& access : footprint)
    for (uint32_t row = 0; access.write == write && row < access.rows; ++row)
      for (uint64_t w = 0; w < access.width; ++w)
        all.insert({access.memory, access.address + row * access.pitch + w});
  return all;
}

inline void compare_with_formulas(uint64_t seed) {
  Rng rng(seed);
  const Config config = small_config(rng);
  Program program = empty_program(config, rng);
  const std::vector<Op> ops = RandomOps(config, rng).make(60);
  NaiveMachine naive(config, program);
  Inits inits;
  for (const Op& op : ops) {
    inits.update(op);
    naive.run(op);
    const accel::Footprint touched = footprint(config, {0, 0, op}, inits);
    ASSERT_EQ(places(touched, false), naive.reads) << disassemble({0, 0, op});
    ASSERT_EQ(places(touched, true), naive.writes) << disassemble({0, 0, op});
  }
  program = program_of(std::move(program), ops, Scheme::Serial);
  const Result<std::string> image = fsim_image(program);
  ASSERT_TRUE(image) << to_string(image.error());
  ASSERT_EQ(*image, naive.ddr) << "seed " << seed;
}

/// Under ten different durations and depths of the queues, the checker finds nothing and the
/// program computes what it does one instruction at a time. Returns the cycles in which units
/// shared a port.
inline uint64_t compare_under_jitter(uint64_t seed) {
  Rng rng(seed);
  const Config config = small_config(rng);
  const Program empty = empty_program(config, rng);
  const std::vector<Op> ops = RandomOps(config, rng).make(40);
  const Result<std::string> expected = fsim_image(program_of(empty, ops, Scheme::Serial));
  Program program = program_of(empty, ops, Scheme::Addresses);
  const Result<std::string> untimed = fsim_image(program);
  EXPECT_TRUE(expected && untimed) << "seed " << seed;
  if (!expected || !untimed) return 0;
  EXPECT_EQ(*untimed, *expected) << "seed " << seed;
  uint64_t shared = 0;
  for (uint64_t jitter = 0; jitter < 10; ++jitter) {
    program.config.timing.queue = static_cast<int>(jitter % 3 == 0 ? 64 : jitter);
    const std::vector<Finding> findings = check_program(program);
    EXPECT_TRUE(findings.empty()) << "seed " << seed << ": " << findings[0].text;
    LaunchReport report;
    const Result<std::string> image = tsim_image(program, {jitter, jitter == 0 ? 0 : 50}, &report);
    EXPECT_TRUE(image && *image == *expected) << "seed " << seed << " jitter " << jitter;
    shared += report.counters.shared_port;
  }
  return shared;
}

}  // namespace tilewright::dpu::testing
