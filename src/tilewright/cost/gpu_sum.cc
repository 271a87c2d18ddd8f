#include "tilewright/cost/gpu_sum.h"

#include <algorithm>
#include <cmath>

#include "tilewright/base/integers.h"

namespace tilewright::cost {
namespace {

constexpr int64_t kAlone = 128;  ///< threads of a block where each has a result
/// Terms whose loads a thread waits for at once.
constexpr double kSumsTogether = 4;
/// Adding one partial sum of another thread. units: ns.
constexpr double kPartNs = 15;

}  // namespace

std::optional<double> predict_gpu_sum(const GpuSum& sum, int64_t threads, int64_t side,
                                      const hw::GpuTarget& target) {
  const bool alone = side == 0;
  const int64_t block = alone ? std::min(kAlone, target.max_threads) : threads * side;
  if (block > target.max_threads || threads < 1) return std::nullopt;
  const int64_t warps = ceil_div(block, int64_t{target.warp});
  const int64_t blocks = ceil_div(sum.results, alone ? block : side);
  const int64_t resident = std::max<int64_t>(
      1, std::min(target.unit_blocks, target.unit_threads / (warps * target.warp)));
  const double waves =
      std::ceil(static_cast<double>(blocks) / static_cast<double>(target.units * resident));
  const hw::GpuRates& rates = target.rates;
  const auto terms = static_cast<double>(ceil_div(sum.terms, threads));
  // One thread after the other: its terms, then a barrier and the partial sums.
  double chain = terms / kSumsTogether * rates.latency_ns;
  if (!alone) chain += rates.sync_ns + static_cast<double>(threads) * kPartNs;
  const double loads = static_cast<double>(sum.results) * static_cast<double>(sum.terms) *
                       static_cast<double>(sum.loads);
  const double compute = 2 * loads / rates.peak(sum.dtype);
  const double near = sum.bytes <= static_cast<double>(target.l2_bytes) ? rates.l2 : rates.dram;
  const double memory =
      std::max(sum.bytes / near, loads * bit_width(sum.dtype) / 8 / (4 * rates.l2));
  return std::max({waves * chain, compute, memory}) + rates.launch_ns;
}

}  // namespace tilewright::cost
