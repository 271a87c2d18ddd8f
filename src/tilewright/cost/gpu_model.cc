#include "tilewright/cost/gpu_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tilewright/base/integers.h"
#include "tilewright/hw/gpu_threads.h"

namespace tilewright::cost {
namespace {

/// Registers of a thread besides its tile: addresses, counters.
constexpr int64_t kOtherRegisters = 24;
/// Instructions of a thread per copied element, or vector of elements: place, test, load, store.
constexpr double kCopySlots = 10;
/// Least time of one iteration of the sum in one thread: a load from shared memory and a
/// multiply-add wait for each other, four iterations overlap; and of one of its instructions.
/// units: ns.
constexpr double kStepNs = 3, kIssueNs = 0.6;
/// Copies that one thread waits for at once.
constexpr double kCopiesTogether = 8;
constexpr int64_t kCopyBytes = 16;  ///< the widest access
/// Rows of a copy that is read in vectors are padded: room for that.
constexpr double kPadding = 1.15;
/// Share of what a resource takes that does not hide behind the slowest one.
constexpr double kVisible = 0.1;

/// Values that `index` takes while its axes move over `sizes` iterations.
int64_t spread_of(const Index& index, const std::vector<int64_t>& sizes) {
  int64_t spread = 1;
  for (const IndexTerm& term : index.terms) {
    int64_t values =
        (sizes[static_cast<size_t>(term.axis)] - 1) / std::max<int64_t>(term.divide, 1);
    if (term.modulo > 0) values = std::min(values, term.modulo - 1);
    spread += std::abs(term.coefficient) * values;
  }
  return std::min(spread, index.extent);
}

}  // namespace

std::string GpuPrediction::bound() const {
  const std::pair<const char*, double> parts[] = {
      {"compute", compute}, {"shared", shared}, {"l2", l2}, {"dram", dram}, {"latency", latency}};
  return std::max_element(std::begin(parts), std::end(parts),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// One tile in numbers.
struct GpuModel::Tile {
  std::vector<int64_t> sizes;   ///< of a round, by axis
  std::vector<int64_t> counts;  ///< blocks along each axis of the result; rounds along the others
  int64_t results = 1, accumulators = 1, steps = 1, rounds = 1, warps = 1;
  int64_t pipelines = 1;  ///< times that copies begin to run ahead
  /// Of one block in one round. units: ns of one unit; bytes.
  double compute = 0, shared = 0, l2_bytes = 0;
  double fetch = 0;  ///< by a unit's share of what the L2 cache gives. units: ns
  double alone = 0;  ///< a round where the unit has no other block. units: ns
};

GpuModel::GpuModel(const Contraction& contraction, const hw::GpuTarget& target)
    : axes_(contraction.axes), dtype_(contraction.dtype), target_(target) {
  for (size_t i = 0; i < contraction.operands.size(); ++i) {
    const Operand& operand = contraction.operands[i];
    Factor factor{operand.indices, {}, operand.element_bytes, 1};
    for (const Index& index : operand.indices)
      factor.elements *= std::max<int64_t>(index.extent, 1);
    for (size_t axis = 0; axis < axes_.size(); ++axis)
      factor.moves.push_back(contraction.moves(static_cast<int>(i), static_cast<int>(axis)));
    operands_.push_back(std::move(factor));
  }
}

int64_t GpuModel::box(const Factor& factor, const std::vector<int64_t>& sizes) const {
  int64_t elements = 1;
  for (const Index& index : factor.indices) elements *= spread_of(index, sizes);
  return elements;
}

/// Rows of the box in whole sectors, unless they are whole rows of the operand.
int64_t GpuModel::fetched_bytes(const Factor& factor, const std::vector<int64_t>& sizes) const {
  const int64_t elements = box(factor, sizes);
  if (factor.indices.empty()) return kSectorBytes;
  const int64_t row = spread_of(factor.indices.back(), sizes);
  if (row == factor.indices.back().extent) return elements * factor.bytes;
  return elements / row * ceil_div(row * factor.bytes, kSectorBytes) * kSectorBytes;
}

/// Elements that one access copies: rows of the operand and of the box are whole vectors, and lie
/// as threads read them.
int64_t GpuModel::copied_at_once(const Factor& factor, const std::vector<int64_t>& sizes,
                                 const GpuBlocking& blocking) const {
  const int64_t lanes = std::max<int64_t>(kCopyBytes / factor.bytes, 1);
  if (factor.indices.empty() || factor.indices.back().terms.size() != 1) return 1;
  const Index& last = factor.indices.back();
  const IndexTerm& term = last.terms[0];
  for (size_t i = 0; i < axes_.size(); ++i)
    if (factor.moves[i] && blocking.axes[i].vector > 1 && static_cast<int>(i) != term.axis)
      return 1;
  const bool plain = term.coefficient == 1 && term.divide <= 1;
  return plain && last.extent % lanes == 0 && spread_of(last, sizes) % lanes == 0 ? lanes : 1;
}

/// What a tile needs of a unit; false where it is too much.
bool GpuModel::lay_out(const GpuBlocking& blocking, Tile& tile, GpuPrediction& out) const {
  out.blocks = blocking.splits;
  out.threads = 1;
  int64_t registers = 0;
  for (size_t i = 0; i < axes_.size(); ++i) {
    const GpuShare& share = blocking.axes[i];
    const int64_t size = share.threads * share.each, count = ceil_div(axes_[i].extent, size);
    tile.sizes.push_back(size);
    tile.counts.push_back(count);
    (axes_[i].reduces ? tile.steps : tile.results) *= size;
    (axes_[i].reduces ? tile.rounds : out.blocks) *= count;
    out.threads *= share.threads;
    if (!axes_[i].reduces) tile.accumulators *= share.each;
  }
  tile.rounds = ceil_div(tile.rounds, blocking.splits);
  tile.warps = ceil_div(out.threads, int64_t{target_.warp});
  for (size_t op = 0; op < 2; ++op) {
    int64_t each = 1;
    bool vectors = false;
    for (size_t i = 0; i < axes_.size(); ++i)
      if (operands_[op].moves[i] && !axes_[i].reduces) {
        each *= blocking.axes[i].each;
        vectors |= blocking.axes[i].vector > 1;
      }
    registers += each;
    const int64_t bytes = box(operands_[op], tile.sizes) * operands_[op].bytes;
    out.shared_bytes +=
        blocking.depth *
        (vectors ? static_cast<int64_t>(kPadding * static_cast<double>(bytes)) : bytes);
  }
  const int64_t words = std::max<int64_t>(1, bit_width(dtype_) / 32);
  out.registers = kOtherRegisters + words * (tile.accumulators + registers);
  if (out.threads > target_.max_threads || out.shared_bytes > target_.shared_bytes ||
      out.registers > target_.registers)
    return false;
  out.resident = std::min({target_.unit_blocks, target_.unit_threads / (tile.warps * target_.warp),
                           target_.unit_shared_bytes / std::max<int64_t>(out.shared_bytes, 1),
                           target_.unit_registers / (out.registers * tile.warps * target_.warp)});
  out.waves = static_cast<double>(out.blocks) /
              static_cast<double>(target_.units * std::max<int64_t>(out.resident, 1));
  return out.resident > 0;
}

/// Bytes of shared memory that a block reads of `factor` in one iteration of the sum: a load of a
/// warp takes a whole row of one word per thread, or more where its threads read more.
double GpuModel::shared_reads(const GpuBlocking& blocking, const Factor& factor,
                              int64_t warps) const {
  int64_t distinct = 1, each = 1, vector = 1, left = target_.warp;
  bool innermost = true;
  for (size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i].reduces) continue;
    const GpuShare& share = blocking.axes[i];
    int64_t covered = std::min(share.threads, left);
    if (share.threads > 1 && std::exchange(innermost, false) &&
        left == hw::kPatchWidth * hw::kPatchHeight && share.threads == hw::kPatchedThreads)
      covered = hw::kPatchWidth;
    left = ceil_div(left, covered);
    if (!factor.moves[i]) continue;
    distinct *= covered;
    each *= share.each;
    vector *= share.vector;
  }
  const int64_t row = std::max(distinct * vector * factor.bytes, target_.warp * factor.bytes);
  const int64_t loads = each / vector;  // no rest: an axis has whole vectors
  return static_cast<double>(warps * loads * row);
}

/// Instructions of a thread per iteration of the sum; where steps go beyond a loop over terms, each
/// is tested.
double GpuModel::slots_of_step(const Tile& tile, double loads) const {
  bool tested = false;
  for (size_t i = 0; i < axes_.size(); ++i)
    tested |= axes_[i].reduces && axes_[i].extent % tile.sizes[i] != 0;
  return static_cast<double>(tile.accumulators) + loads + (tested ? 2 : 0);
}

void GpuModel::cost_round(const GpuBlocking& blocking, Tile& tile) const {
  const hw::GpuRates& rates = target_.rates;
  const auto units = static_cast<double>(target_.units);
  const auto threads = static_cast<double>(tile.warps * target_.warp);
  const auto steps = static_cast<double>(tile.steps);
  double loads = 0, reads = 0, copies = 0;
  for (size_t op = 0; op < 2; ++op) {
    const Factor& factor = operands_[op];
    int64_t each = 1, vector = 1;
    for (size_t i = 0; i < axes_.size(); ++i)
      if (factor.moves[i] && !axes_[i].reduces)
        each *= blocking.axes[i].each, vector *= blocking.axes[i].vector;
    const int64_t vectors = each / vector;  // no rest: an axis has whole vectors
    loads += static_cast<double>(vectors);
    reads += shared_reads(blocking, factor, tile.warps) * steps;
    reads += static_cast<double>(box(factor, tile.sizes) * factor.bytes);  // written once
    // No rest: a box whose rows are not whole vectors is copied element by element.
    const int64_t copied = box(factor, tile.sizes) / copied_at_once(factor, tile.sizes, blocking);
    copies += static_cast<double>(copied);
    tile.l2_bytes += static_cast<double>(fetched_bytes(factor, tile.sizes));
  }
  // A slot is the time of one multiply-add of one thread.
  const double step = slots_of_step(tile, loads);
  const double slots = threads * steps * step + copies * kCopySlots;
  tile.compute = 2 * slots * units / rates.peak(dtype_);
  tile.shared = reads * units / rates.shared;
  const double chain = std::max(kStepNs, kIssueNs * step);
  const double busy = std::max({tile.compute, tile.shared, steps * chain});
  const double waits = std::ceil(copies / threads / kCopiesTogether);
  tile.fetch = tile.l2_bytes * units / rates.l2;
  tile.alone = blocking.depth <= 1
                   ? waits * rates.latency_ns + tile.fetch + 2 * rates.sync_ns + busy
                   : std::max(busy + rates.sync_ns,
                              rates.latency_ns / static_cast<double>(blocking.depth - 1));
  // Copies run ahead along the innermost loop over rounds.
  for (size_t i = axes_.size(); i-- > 0;)
    if (axes_[i].reduces && tile.counts[i] > 1) {
      tile.pipelines = ceil_div(tile.rounds, tile.counts[i]);
      break;
    }
}

/// What the L2 cache fetches: every operand once, or, where they do not all fit, what each wave of
/// blocks reads together, but never more than blocks fetch.
double GpuModel::dram_bytes(const Tile& tile, const GpuPrediction& out,
                            const GpuBlocking& blocking) const {
  double once = 0;
  for (const Factor& operand : operands_)
    once += static_cast<double>(operand.elements * operand.bytes);
  if (once <= static_cast<double>(target_.l2_bytes)) return once;
  const Factor& result = operands_.back();
  double bytes = static_cast<double>(result.elements * result.bytes);
  std::vector<int64_t> panel = tile.sizes;
  for (size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].reduces) panel[i] = axes_[i].extent;
  for (size_t op = 0; op < 2; ++op) {
    const Factor& factor = operands_[op];
    int64_t left = target_.units * out.resident, distinct = 1;
    for (size_t i = axes_.size(); i-- > 0;) {
      if (axes_[i].reduces) continue;
      if (factor.moves[i]) distinct *= std::min(tile.counts[i], left);
      left = ceil_div(left, tile.counts[i]);
    }
    const double whole = static_cast<double>(factor.elements * factor.bytes);
    const double fetched = static_cast<double>(fetched_bytes(factor, tile.sizes)) *
                           static_cast<double>(tile.rounds) * static_cast<double>(out.blocks);
    const double waves = std::ceil(out.waves) *
                         static_cast<double>(distinct * box(factor, panel) * factor.bytes) /
                         static_cast<double>(blocking.splits);
    bytes += std::clamp(waves, std::min(whole, fetched), std::max(whole, fetched));
  }
  return bytes;
}

std::optional<GpuPrediction> GpuModel::predict(const GpuBlocking& blocking) const {
  GpuPrediction out;
  Tile tile;
  if (!lay_out(blocking, tile, out)) return std::nullopt;
  cost_round(blocking, tile);
  const hw::GpuRates& rates = target_.rates;
  const Factor& result = operands_.back();
  const auto written = static_cast<double>(result.elements * result.bytes);
  const double partial = blocking.splits > 1 ? written * static_cast<double>(blocking.splits) : 0;
  const auto rounds = static_cast<double>(tile.rounds), blocks = static_cast<double>(out.blocks);
  const double l2 = (rounds * tile.l2_bytes + (written + partial) / blocks) / rates.l2;
  const double dram = dram_bytes(tile, out, blocking) / blocks / rates.dram;
  const double start = blocking.depth > 1
                           ? static_cast<double>(tile.pipelines) * (rates.latency_ns + tile.fetch)
                           : 0;
  const auto wave = [&](double times, int64_t resident, double of_wave) {
    const auto b = static_cast<double>(resident);
    const double compute = rounds * b * tile.compute, shared = rounds * b * tile.shared;
    const double latency = rounds * tile.alone + start;
    out.compute += times * compute;
    out.shared += times * shared;
    out.latency += times * latency;
    out.l2 += times * of_wave * l2;
    out.dram += times * of_wave * dram;
    const double longest = std::max({compute, shared, latency, of_wave * l2, of_wave * dram});
    const double all = compute + shared + latency + of_wave * (l2 + dram);
    out.total += times * (longest + kVisible * (all - longest));
  };
  const int64_t slots = target_.units * out.resident;
  if (const int64_t full = out.blocks / slots; full > 0)
    wave(static_cast<double>(full), out.resident, static_cast<double>(slots));
  if (const int64_t rest = out.blocks % slots; rest > 0)
    wave(1, ceil_div(rest, int64_t{target_.units}), static_cast<double>(rest));
  out.launch = rates.launch_ns;
  if (blocking.splits > 1) {
    // A second kernel adds up what the blocks of a result have summed.
    const bool near = partial <= static_cast<double>(target_.l2_bytes);
    out.launch += rates.launch_ns + (partial + written) / (near ? rates.l2 : rates.dram);
  }
  out.total += out.launch;
  return out;
}

}  // namespace tilewright::cost
