// For tests: random programs for random configurations, on both simulators.
#pragma once

#include <gtest/gtest.h>

#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/sim/testing/cycle_reference.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/accel/vta/testing/random_config.h"
#include "tilewright/accel/vta/testing/random_program.h"

namespace tilewright::vta::testing {

/// DRAM after `program` on `device`.
inline std::string image_after(Device& device, const Program& program, Counters* counters) {
  auto report = execute(device, program);
  EXPECT_TRUE(report) << to_string(report.error());
  if (report) *counters = report->counters;
  std::string image(program.image.size(), '\0');
  EXPECT_TRUE(device.read(program.base, image.data(), image.size()));
  return image;
}

/// `programs` programs for each of `configs` configurations: fsim and tsim agree on all of DRAM,
/// and tsim with the contract on the cycles of every instruction.
inline void check_random_programs(uint64_t seed, int configs, int programs) {
  Rng rng(seed);
  for (int c = 0; c < configs; ++c) {
    RandomConfigOptions options;
    options.extensions = options.features = options.timing = c % 3 != 0;
    const Config config = random_config(rng, options);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << c << ": " << to_toml(config));
    for (int p = 0; p < programs; ++p) {
      const Program program = random_program(rng, config, {});
      const auto fsim = make_fsim(config, program.end()), tsim = make_tsim(config, program.end());
      Counters functional, timed;
      ASSERT_TRUE(image_after(*fsim, program, &functional) == image_after(*tsim, program, &timed))
          << "program " << p;
      EXPECT_EQ(functional.gemm_steps, timed.gemm_steps);
      LaunchOptions record;
      record.record_times = true;
      const std::vector<Insn>& insns = program.runs.front().insns;
      const auto report = simulate_time(config, insns, record);
      ASSERT_TRUE(report) << to_string(report.error());
      CycleReference reference(config, insns);
      ASSERT_TRUE(reference.run(10'000'000));
      for (size_t i = 0; i < insns.size(); ++i)
        ASSERT_EQ(report->times[i].end, reference.end(i)) << "program " << p << " insn " << i;
    }
  }
}

}  // namespace tilewright::vta::testing
