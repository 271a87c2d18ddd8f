#include "tilewright/accel/vta/uop_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tilewright/accel/vta/uop_cache.h"
#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

/// Uses [begin, end) whose kernels are on chip together.
struct Part {
  size_t begin = 0, end = 0;
};

class Planner {
 public:
  Planner(const std::vector<std::vector<Uop>>& kernels, const std::vector<UopUse>& uses,
          const std::vector<size_t>& spans, uint32_t depth)
      : kernels_(kernels), uses_(uses), spans_(spans), depth_(depth), at_(kernels.size()) {}

  UopPlan run() {
    for (Part part; part.begin < uses_.size(); part.begin = part.end) {
      part.end = end_of(part.begin);
      TW_CHECK(part.end > part.begin, "kernel {} does not fit", uses_[part.begin].kernel);
      load(part);
      for (size_t u = part.begin; u < part.end; ++u) plan_.begin.push_back(*at_[uses_[u].kernel]);
    }
    return std::move(plan_);
  }

 private:
  uint32_t size(size_t kernel) const { return static_cast<uint32_t>(kernels_[kernel].size()); }
  size_t fitting(size_t begin) const;
  size_t span_of(size_t use) const;
  size_t end_of(size_t begin) const;
  std::optional<uint32_t> find_gap(const std::vector<size_t>& kept, uint32_t room) const;
  void load(const Part& part);

  const std::vector<std::vector<Uop>>& kernels_;
  const std::vector<UopUse>& uses_;
  const std::vector<size_t>& spans_;
  uint32_t depth_;
  std::vector<std::optional<uint32_t>> at_;  ///< where the kernels on chip begin
  UopPlan plan_;
};

/// The end of the longest part that begins at use `begin`.
size_t Planner::fitting(size_t begin) const {
  std::set<size_t> seen;
  uint64_t room = 0;
  for (size_t u = begin; u < uses_.size(); ++u) {
    if (!seen.insert(uses_[u].kernel).second) continue;
    room += size(uses_[u].kernel);
    if (room > depth_) return u;
  }
  return uses_.size();
}

/// The first instruction of the span of a use; 0 before all spans.
size_t Planner::span_of(size_t use) const {
  const auto after = std::upper_bound(spans_.begin(), spans_.end(), uses_[use].insn);
  return after == spans_.begin() ? 0 : *std::prev(after);
}

size_t Planner::end_of(size_t begin) const {
  const size_t end = fitting(begin);
  if (end == uses_.size()) return end;
  const size_t span = span_of(end);
  const auto insn_before = [](const UopUse& use, size_t insn) { return use.insn < insn; };
  const auto first = static_cast<size_t>(
      std::lower_bound(uses_.begin(), uses_.end(), span, insn_before) - uses_.begin());
  if (first <= begin) return end;
  // A span that does not fit is cut in any case: an earlier cut would only add one.
  const size_t reach = fitting(first);
  return reach == uses_.size() || span_of(reach) != span ? first : end;
}

/// The first gap of `room` micro-ops beside the kernels `kept`.
std::optional<uint32_t> Planner::find_gap(const std::vector<size_t>& kept, uint32_t room) const {
  std::map<uint32_t, uint32_t> taken;
  for (const size_t kernel : kept) taken[*at_[kernel]] = *at_[kernel] + size(kernel);
  uint32_t begin = 0;
  for (const auto& range : taken) {
    if (range.first - begin >= room) return begin;
    begin = range.second;
  }
  if (depth_ - begin >= room) return begin;
  return std::nullopt;
}

/// Brings the kernels of a part on chip.
void Planner::load(const Part& part) {
  std::set<size_t> seen;
  std::vector<size_t> all, kept, missing;
  uint32_t room = 0;
  for (size_t u = part.begin; u < part.end; ++u) {
    const size_t kernel = uses_[u].kernel;
    if (!seen.insert(kernel).second) continue;
    all.push_back(kernel);
    if (at_[kernel]) {
      kept.push_back(kernel);
    } else {
      missing.push_back(kernel);
      room += size(kernel);
    }
  }
  if (missing.empty()) return;
  const std::optional<uint32_t> gap = find_gap(kept, room);
  if (!gap) {
    std::fill(at_.begin(), at_.end(), std::nullopt);
    missing = all;
  }
  UopLoad load{uses_[part.begin].insn, gap.value_or(0), std::move(missing)};
  uint32_t end = load.begin;
  for (const size_t kernel : load.kernels) end += size(kernel);
  for (size_t kernel = 0; kernel < at_.size(); ++kernel)
    if (at_[kernel] && *at_[kernel] < end && load.begin < *at_[kernel] + size(kernel))
      at_[kernel] = std::nullopt;
  uint32_t begin = load.begin;
  for (const size_t kernel : load.kernels) {
    at_[kernel] = begin;
    begin += size(kernel);
  }
  plan_.loads.push_back(std::move(load));
}

}  // namespace

UopPlan plan_merged(const std::vector<std::vector<Uop>>& kernels, const std::vector<UopUse>& uses,
                    const std::vector<size_t>& spans, uint32_t depth) {
  return Planner(kernels, uses, spans, depth).run();
}

UopPlan plan_one_by_one(const std::vector<std::vector<Uop>>& kernels,
                        const std::vector<UopUse>& uses, uint32_t depth) {
  UopPlan plan;
  UopCache cache(depth);
  for (const UopUse& use : uses) {
    const Result<UopCache::Place> place = cache.use(kernels[use.kernel]);
    TW_CHECK(place, "{}", to_string(place.error()));
    if (place->load) plan.loads.push_back({use.insn, place->begin, {use.kernel}});
    plan.begin.push_back(place->begin);
  }
  return plan;
}

}  // namespace tilewright::vta
