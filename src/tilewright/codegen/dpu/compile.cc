// The search for a plan: ways to lower, group, order, split and place are tried until one fits, and
// of those that do the fastest by the cycle simulator wins.
//
// All combinations would be too many. So first come fusion and passes in each form of the network;
// then the orders of layers and the homes of maps for the best of these. As long as nothing fits,
// every order is tried with every home.
#include "tilewright/codegen/dpu/compile.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tilewright/codegen/dpu/candidates.h"

namespace tilewright::dpu {
namespace {

constexpr Form kAllForms[] = {Form::Plain, Form::InputsOnce, Form::StridesReordered};
constexpr Schedule kOtherSchedules[] = {Schedule::BreadthFirst, Schedule::DepthFirst,
                                        Schedule::LeastLive, Schedule::LongestWay};
constexpr Homes kOtherHomes[] = {Homes::Largest, Homes::Earliest};

/// Layers of one tile: CONV and MISC can only work side by side on parts of their channels.
bool has_low_layers(const Lowered& lowered) {
  for (const Node& node : lowered.nodes)
    if (node.kind == NodeKind::Conv && node.out.height <= kBanks) return true;
  return false;
}

/// Fusion and passes, in the given order of layers.
std::vector<Way> first_ways(const Config& config, const Lowered& lowered, Form form) {
  std::vector<Way> all(1);
  all[0].form = form;
  if (config.compiler.prefetch && has_low_layers(lowered))
    for (const int pieces : {2, 4, 8}) {
      Way more = all[0];
      more.pieces = pieces;
      all.push_back(more);
    }
  // The paper's compiler fuses those of branches only.
  if (!config.compiler.layer_barrier || config.compiler.parallel_branches) {
    PlanOptions usual, behind;
    behind.behind_pools = true;
    if (make_groups(lowered, config, behind).size() < make_groups(lowered, config, usual).size()) {
      Way more = all[0];
      more.behind_pools = true;
      all.push_back(more);
    }
  }
  if (config.compiler.fusion) {
    Way apart = all[0];
    apart.fuse = false;
    all.push_back(apart);
  }
  return all;
}

/// Tries one way after the other and keeps the fastest.
class Search {
 public:
  Search(const Candidates& candidates, const CompileOptions& options)
      : candidates_(candidates), options_(options) {}

  /// errors: Capacity (no way fits), what `cancelled` says.
  Status run() {
    if (options_.way) TW_TRY_STATUS(attempt(*options_.way));
    if (!best_) TW_TRY_STATUS(try_all());
    if (!best_) return tl::unexpected<Error>(*first_error_);
    return {};
  }

  Result<Compiled> result() && {
    Compiled out = TW_TRY(candidates_.finish(*best_));
    out.attempts = std::move(attempts_);
    return out;
  }

 private:
  Status try_all() {
    for (const Form form : kAllForms)
      if (const Lowered* lowered = candidates_.lowered(form))
        for (const Way& way : first_ways(candidates_.config(), *lowered, form))
          TW_TRY_STATUS(attempt(way));
    if (best_) {
      TW_TRY_STATUS(try_strides());
      return refine();
    }
    Way way;
    for (const bool fuse : {candidates_.config().compiler.fusion, false})
      for (int s = 0; s < static_cast<int>(std::size(kSchedules)); ++s)
        for (int h = 0; h < static_cast<int>(std::size(kHomes)) && !best_; ++h) {
          way.fuse = fuse;
          way.schedule = static_cast<Schedule>(s);
          way.homes = static_cast<Homes>(h);
          TW_TRY_STATUS(attempt(way));
        }
    return {};
  }

  /// Strided layers one after the other done the other way, which stays if it is faster.
  Status try_strides() {
    const Lowered* all = candidates_.lowered(Form::StridesReordered);
    if (all == nullptr || all->reordered.size() == 1) return {};
    std::set<int> every;
    for (const size_t layer : all->reordered) every.insert(static_cast<int>(layer));
    std::set<int> plain = best_->way.form == Form::StridesReordered ? std::set<int>() : every;
    for (const int layer : every) {
      Way way = best_->way;
      way.form = Form::StridesReordered;
      way.plain_strides = plain;
      if (way.plain_strides.erase(layer) == 0) way.plain_strides.insert(layer);
      if (way.plain_strides == every) continue;  // the plain form
      const uint64_t least = best_->cycles;
      TW_TRY_STATUS(attempt(way));
      if (best_->cycles < least) plain = way.plain_strides;
    }
    return {};
  }

  /// Orders and homes for the best so far.
  Status refine() {
    const Way base = best_->way;
    std::set<std::vector<int>> orders = {candidates_.order(base)};
    for (const Schedule schedule : kOtherSchedules) {
      Way way = base;
      way.schedule = schedule;
      if (orders.insert(candidates_.order(way)).second) TW_TRY_STATUS(attempt(way));
    }
    // Where everything found a place on the chip there is nothing to gain.
    if (best_->plan.swap_bytes == 0) return {};
    for (const Homes homes : kOtherHomes) {
      Way way = best_->way;
      way.homes = homes;
      TW_TRY_STATUS(attempt(way));
    }
    return {};
  }

  Status attempt(const Way& way) {
    if (static_cast<int>(attempts_.size()) >= options_.most_attempts) return {};
    for (const Attempt& before : attempts_)
      if (before.way == way) return {};
    if (options_.cancelled && !attempts_.empty()) TW_TRY_STATUS(options_.cancelled());
    const std::string what = candidates_.describe(way);
    Result<Candidate> candidate = candidates_.make(way);
    if (!candidate) {
      if (!first_error_) first_error_ = candidate.error();
      attempts_.push_back({way, what, to_string(candidate.error()), 0});
      return {};
    }
    const bool chosen = static_cast<int>(attempts_.size()) == options_.only;
    attempts_.push_back({way, what, "", candidate->cycles});
    if (best_ && !chosen && (chosen_ || candidate->cycles >= best_->cycles)) return {};
    chosen_ = chosen;
    best_ = std::move(*candidate);
    return {};
  }

  const Candidates& candidates_;
  const CompileOptions& options_;
  std::optional<Candidate> best_;
  bool chosen_ = false;  ///< it is `only`
  std::optional<Error> first_error_;
  std::vector<Attempt> attempts_;
};

}  // namespace

Result<Candidates> candidates_of(const Network& network, const Config& config) {
  TW_TRY_STATUS(check(config));
  TW_TRY_STATUS(check(network));
  for (const Layer& layer : network.layers) TW_TRY_STATUS(supports(config, network, layer));
  return Candidates::create(config.compiler.parallel_branches ? with_pools_first(network) : network,
                            config);
}

Result<Compiled> compile(const Network& network, const Config& config,
                         const CompileOptions& options) {
  const Candidates candidates = TW_TRY(candidates_of(network, config));
  Search search(candidates, options);
  TW_TRY_STATUS(search.run());
  return std::move(search).result();
}

}  // namespace tilewright::dpu
