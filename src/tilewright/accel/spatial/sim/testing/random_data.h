// Compares the functional simulator with a reading of isa.h position by position.
#pragma once

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/check.h"
#include "tilewright/accel/spatial/sim/fsim.h"
#include "tilewright/accel/spatial/testing/random_program.h"

namespace tilewright::spatial::testing {

/// DRAM after a program.
inline Result<std::string> fsim_image(const Program& program, Counters* counters = nullptr) {
  const auto device = make_fsim(program.design);
  const LaunchReport report = TW_TRY(execute(*device, program));
  if (counters != nullptr) *counters = report.counters;
  std::string out(program.image.size(), '\0');
  TW_TRY_STATUS(device->read(program.base, out.data(), out.size()));
  return out;
}

/// One instruction after the other and with its tokens, where each queue runs as far as it can;
/// the checker finds nothing. Returns the unit.
inline Unit compare_with_text(uint64_t seed, size_t insns) {
  RandomProgram random = random_program(seed, insns);
  EXPECT_TRUE(check_program(random.program).empty()) << "seed " << seed;
  for (const bool serial : {false, true}) {
    std::vector<Insn>& all = random.program.runs[0].insns;
    if (serial) all = in_order(std::move(all));
    Counters counters;
    const Result<std::string> out = fsim_image(random.program, &counters);
    EXPECT_TRUE(out) << to_string(out.error()) << "seed " << seed;
    if (!out) continue;
    EXPECT_TRUE(*out == random.expected) << "seed " << seed << ", serial " << serial;
    EXPECT_EQ(counters.macs, random.macs) << "seed " << seed;
    EXPECT_EQ(counters.steps, random.steps) << "seed " << seed;
  }
  return random.program.design.unit;
}

}  // namespace tilewright::spatial::testing
