// Random legal hardware, for tests.
#pragma once

#include "tilewright/accel/vta/config.h"
#include "tilewright/base/check.h"
#include "tilewright/base/rng.h"

namespace tilewright::vta::testing {

struct RandomConfigOptions {
  int max_log_block = 5, max_log_batch = 2;
  bool square = false;      ///< block_in = block_out, as the compiler needs it
  bool extensions = false;  ///< parts of the extended design, each with chance 1/2
  bool features = false;    ///< ALU multiplication and ACC_8BIT, each with chance 1/2
  bool timing = false;      ///< presets, bus widths and latencies other than the default
};

inline Timing random_timing(Rng& rng) {
  Timing timing = *timing_preset(rng.chance(0.5) ? "chisel-64" : "hls-pynq");
  if (rng.chance(0.3)) return timing;
  timing.preset = "custom";
  timing.bus_bytes = 8 << rng.below(4);
  timing.max_burst_beats = 1 << rng.between(2, 8);
  timing.read_latency = static_cast<int>(rng.between(1, 40));
  timing.burst_gap = static_cast<int>(rng.between(0, 3));
  timing.token_latency = static_cast<int>(rng.between(1, 4));
  return timing;
}

/// One candidate: depths first, so that most are legal, then the buffers that have them.
inline Config random_candidate(Rng& rng, const RandomConfigOptions& options) {
  const auto pick = [&rng](int low, int high) { return static_cast<int>(rng.between(low, high)); };
  Config config;
  config.name = "random";
  config.log_batch = pick(0, options.max_log_batch);
  config.log_block_in = pick(0, options.max_log_block);
  config.log_block_out =
      options.square || rng.chance(0.5) ? config.log_block_in : pick(0, options.max_log_block);
  config.log_inp_width = rng.chance(0.5) ? 3 : pick(0, 4);
  config.log_wgt_width = rng.chance(0.5) ? 3 : pick(0, 4);
  config.log_out_width = rng.chance(0.7) ? config.log_inp_width : pick(0, 5);
  config.log_uop_buff = pick(4, 13) + 2;
  config.log_inp_buff =
      pick(2, 12) + config.log_batch + config.log_block_in + config.log_inp_width - 3;
  config.log_wgt_buff =
      pick(1, 10) + config.log_block_out + config.log_block_in + config.log_wgt_width - 3;
  config.log_acc_buff =
      pick(2, 11) + config.log_batch + config.log_block_out + config.log_acc_width - 3;
  if (options.features) config.has_mul = rng.chance(0.5);
  if (options.features) config.has_acc8 = rng.chance(0.5);
  if (options.timing) config.timing = random_timing(rng);
  if (options.extensions) config.extensions = {rng.chance(0.5), rng.chance(0.5), rng.chance(0.5)};
  if (config.extensions.pipelined_alu) {
    config.timing.preset = "custom";
    config.timing.alu_reg_ii = 1;
  }
  return config;
}

inline Config random_config(Rng& rng, const RandomConfigOptions& options = {}) {
  for (int attempt = 0; attempt < 100'000; ++attempt) {
    Config config = random_candidate(rng, options);
    if (check(config)) return config;
  }
  TW_CHECK(false, "no random configuration is legal");
}

}  // namespace tilewright::vta::testing
