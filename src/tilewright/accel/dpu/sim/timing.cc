#include "tilewright/accel/dpu/sim/timing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tilewright/base/integers.h"

namespace tilewright::dpu {
namespace {

/// Times that the array reads one bank for the rows of one tap.
int64_t conflict(const Config& config, const ConvInit& init, const Conv& op) {
  if (!config.timing.stride_conflict || op.mode == 1) return 1;
  std::array<int, kBanks> rows{};
  for (int i = 0; i < op.valid_rows; ++i) ++rows[static_cast<size_t>(i * init.stride_h % kBanks)];
  return *std::max_element(rows.begin(), rows.end());
}

int64_t conv_cycles(const Config& config, const ConvInit& init, const Conv& op) {
  const int64_t steps = int64_t{op.length} * init.in_groups * op.out_groups * init.kernel_h *
                        init.kernel_w * conflict(config, init, op);
  if (op.valid_rows != 1 || op.length != 1) return config.timing.lat_conv + steps;
  const auto sixteenths = static_cast<int64_t>(std::lround(config.timing.fc_factor * 16));
  return config.timing.lat_conv + ceil_div(steps * sixteenths, 16);
}

int64_t pool_cycles(const Config& config, const PoolInit& init, const Pool& op) {
  const bool windows = init.type == kMaxPool || init.type == kAveragePool;
  const int64_t taps = windows ? int64_t{init.kernel_h} * init.kernel_w : 1;
  return config.timing.lat_misc + int64_t{op.length} * op.channel_group * taps;
}

}  // namespace

uint64_t ddr_beats(const Config& config, const Op& op) {
  const std::optional<DdrSteps> steps = ddr_of(config, op);
  if (!steps) return 0;
  const auto bytes = static_cast<int64_t>(steps->steps * steps->bytes);
  return static_cast<uint64_t>(ceil_div(bytes, config.ddr_bytes_per_cycle));
}

uint64_t busy_cycles(const Config& config, const Op& op, const Inits& inits) {
  int64_t cycles = config.timing.lat_init;
  if (std::holds_alternative<Load>(op) || std::holds_alternative<Save>(op))
    return ddr_beats(config, op);
  if (const auto* conv = std::get_if<Conv>(&op)) cycles = conv_cycles(config, *inits.conv, *conv);
  if (const auto* pool = std::get_if<Pool>(&op)) cycles = pool_cycles(config, *inits.pool, *pool);
  if (const auto* elew = std::get_if<Elew>(&op))
    cycles = config.timing.lat_misc + int64_t{elew->length} * elew->channel_group * inits.elew->num;
  return static_cast<uint64_t>(cycles);
}

uint64_t done_latency(const Config& config, const Op& op) {
  const bool uses_ddr = std::holds_alternative<Load>(op) || std::holds_alternative<Save>(op);
  return uses_ddr ? static_cast<uint64_t>(config.timing.lat_ddr) : 0;
}

}  // namespace tilewright::dpu
