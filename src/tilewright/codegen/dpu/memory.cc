// Places for the feature maps of a launch: three circular memories, and DDR for what does not fit.
//
// Example: 224x224x64 takes 28 octets of rows, 25,088 words of each bank where there are 8192: it
// is in DDR, and a window of its rows walks through a memory while a layer reads it. 56x56x256
// takes 6272 and stays from the group that makes it to the last that reads it.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "tilewright/codegen/dpu/lifetimes.h"
#include "tilewright/codegen/dpu/occupancy.h"
#include "tilewright/codegen/dpu/plan.h"
#include "tilewright/codegen/dpu/staging.h"

namespace tilewright::dpu {
namespace {

class MemoryPlanner {
 public:
  MemoryPlanner(const Lowered& lowered, const Config& config, const PlanOptions& options)
      : lowered_(lowered), config_(config), options_(options) {
    plan_.groups = make_groups(lowered, config, options);
    plan_.in_ddr.resize(lowered.roots.size());
    for (size_t r = 0; r < lowered.roots.size(); ++r) {
      const int rows_of = lowered.roots[r].rows_of;
      if (lowered.roots[r].input || rows_of >= 0) plan_.in_ddr[r] = true;
      if (rows_of >= 0) plan_.in_ddr[static_cast<size_t>(rows_of)] = true;
    }
    max_depth_ = *std::max_element(config.fm_depth.begin(), config.fm_depth.end());
  }

  Result<Plan> run() {
    for (GroupPlan& group : plan_.groups) {
      bool wide = false;
      for (const int n : group.nodes) wide = wide || node(n).out.width > kMaxLength;
      if (wide || !split_channels(group, 1)) unfuse_.push_back(&group - plan_.groups.data());
    }
    apply_unfuse();
    for (GroupPlan& group : plan_.groups) TW_TRY_STATUS(first_split(group));
    move_to_ddr();
    // Each round moves a map to DDR, splits a group, or ends.
    for (;;) {
      const Result<bool> done = round();
      if (!done) return tl::unexpected<Error>(done.error());
      if (*done) break;
    }
    give_ddr();
    return std::move(plan_);
  }

 private:
  const Node& node(int n) const { return lowered_.nodes[static_cast<size_t>(n)]; }
  const Root& root(int r) const { return lowered_.roots[static_cast<size_t>(r)]; }

  static int64_t pass_words(const Node& n, Range channels) {
    int64_t words = (channels.size() + 3) / 4;
    for (const Block& block : n.blocks) {
      const Range part{std::max(block.out.begin, channels.begin),
                       std::min(block.out.end, channels.end)};
      words += part.size() * block.words_per_group;
    }
    return words;
  }

  /// Passes over output groups whose weights fit PM; false: not even in passes of one group.
  bool split_channels(GroupPlan& group, int least) {
    const Node& lead = node(group.nodes[0]);
    group.channels.clear();
    const int64_t all = lead.out.groups;
    int64_t later = 0;
    for (size_t j = 1; j < group.nodes.size(); ++j)
      if (node(group.nodes[j]).kind == NodeKind::Conv)
        later += pass_words(node(group.nodes[j]), {0, node(group.nodes[j]).out.groups});
    int64_t limit = config_.pm_depth - later;
    if (lead.kind == NodeKind::Conv && pass_words(lead, {0, all}) > limit) limit /= 2;
    const int64_t most = std::max<int64_t>(1, std::min<int64_t>((all + least - 1) / least, 511));
    for (int64_t begin = 0; begin < all;) {
      int64_t end = begin + 1;
      while (end < all && end - begin < most &&
             (lead.kind != NodeKind::Conv || pass_words(lead, {begin, end + 1}) <= limit))
        ++end;
      if (lead.kind == NodeKind::Conv && pass_words(lead, {begin, end}) > config_.pm_depth - later)
        return false;
      group.channels.push_back({begin, end});
      begin = end;
    }
    bool alone = false;
    for (size_t j = 1; j < group.nodes.size(); ++j) alone = alone || beside(lowered_, group, j);
    return (later == 0 && !alone) || group.channels.size() == 1;
  }

  Status first_split(GroupPlan& group) {
    const Node& lead = node(group.nodes[0]);
    const int64_t words = pass_words(lead, {0, 1});
    if (!split_channels(group, 1))
      return fail(
          ErrorKind::Capacity, fmt::format("the weights of '{}' do not fit PM", lead.layer),
          fmt::format("16 output channels need {} words of {} bytes ({} KiB), PM has {} ({} KiB); "
                      "tried 16 output channels at a time, the fewest that a CONV makes",
                      words, kPmWordBytes, words * kPmWordBytes / 1024, config_.pm_depth,
                      config_.pm_depth * int64_t{kPmWordBytes} / 1024),
          "--hw with a larger pm_depth, or --fallback cpu");
    const bool few = lead.out.height <= kBanks && lead.kind == NodeKind::Conv;
    const auto own = options_.pieces_of.find(group.nodes[0]);
    const int pieces = own != options_.pieces_of.end() ? own->second : few ? options_.pieces : 1;
    if (pieces > 1 && !split_channels(group, pieces)) split_channels(group, 1);
    if (const auto rows = options_.rows.find(group.nodes[0]);
        rows != options_.rows.end() && lead.kind != NodeKind::Zero)
      group.rows = std::clamp(rows->second, 1, kBanks);
    if (lead.out.width > kMaxLength) group.columns = kMaxLength;
    return {};
  }

  /// What the way wants there. Maps inside of one group stay: DDR would have them too late.
  void move_to_ddr() {
    const std::vector<Lifetime> lives = lifetimes(lowered_, plan_.groups);
    for (const auto& [r, memory] : options_.home)
      if (memory == kInDdr && !lives[static_cast<size_t>(r)].internal)
        plan_.in_ddr[static_cast<size_t>(r)] = true;
  }
  /// The memory that the way wants for a map; -1: any.
  int wanted(int r) const {
    const auto found = options_.home.find(r);
    return found == options_.home.end() || found->second == kInDdr ? -1 : found->second;
  }

  void apply_unfuse() {
    std::vector<GroupPlan> groups;
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      const bool split =
          std::find(unfuse_.begin(), unfuse_.end(), static_cast<ptrdiff_t>(g)) != unfuse_.end();
      if (!split || plan_.groups[g].nodes.size() == 1) {
        groups.push_back(plan_.groups[g]);
        continue;
      }
      for (const int n : plan_.groups[g].nodes) {
        GroupPlan one;
        one.nodes = {n};
        one.depth = {1};
        groups.push_back(one);
      }
    }
    unfuse_.clear();
    plan_.groups = std::move(groups);
  }

  /// A map that cannot be whole in any memory, whatever else is there.
  bool too_large(int r) const {
    const Root& m = root(r);
    return row_words(m.height, m.width, m.groups) > max_depth_ || m.width * m.groups > kMaxEndl ||
           m.groups > kMaxJump;
  }

  /// Maps of a group that need a place in it only.
  std::vector<std::pair<int, bool>> staged_maps(const GroupPlan& group,
                                                const std::vector<Lifetime>& lives) const {
    std::vector<std::pair<int, bool>> maps;
    const auto add = [&](int r, bool written) {
      if (std::find(maps.begin(), maps.end(), std::pair(r, written)) == maps.end())
        maps.push_back({r, written});
    };
    for (const int n : group.nodes) {
      for (const View& view : node(n).in)
        if (plan_.in_ddr[static_cast<size_t>(view.root)] && node(n).kind != NodeKind::Fetch)
          add(view.root, false);
      const int out = node(n).out.root;
      const size_t o = static_cast<size_t>(out);
      const bool home = plan_.home[o].memory >= 0;
      if (plan_.in_ddr[o] || (lives[o].internal && !home) ||
          (node(n).out.row_step > 1 && node(n).kind == NodeKind::Conv))
        add(out, true);
    }
    return maps;
  }

  bool stage_group(GroupPlan& group, int g, const std::vector<Lifetime>& lives,
                   Occupancy& memory) const {
    const std::vector<RowTile> tiles = sweep(lowered_, group);
    std::vector<StagedMap> windows;
    for (const auto& [r, written] : staged_maps(group, lives))
      windows.push_back(staged_map(lowered_, group, tiles, r, written,
                                   written && lives[static_cast<size_t>(r)].internal));
    // The largest first: it may need a memory of its own.
    std::stable_sort(windows.begin(), windows.end(), [&](const StagedMap& a, const StagedMap& b) {
      const auto weight = [&](const StagedMap& w) {
        return (w.written && !w.internal ? int64_t{0} : int64_t{1} << 40) +
               w.all_columns * w.all_groups * root(w.root).height;
      };
      return weight(a) > weight(b);
    });
    return stage_all(windows, group, g, memory, false) ||
           stage_all(windows, group, g, memory, true);
  }

  bool stage_all(const std::vector<StagedMap>& windows, GroupPlan& group, int g, Occupancy& memory,
                 bool compact) const {
    const size_t mark = memory.mark();
    group.staged.clear();
    group.skewed = true;
    for (const StagedMap& w : windows) {
      const std::optional<Place> place =
          stage(lowered_, w, group, g, memory, compact, group.skewed);
      if (!place) {
        memory.back_to(mark);
        return false;
      }
      group.staged[{w.root, w.written}] = *place;
    }
    return true;
  }

  /// Tries smaller tiles of a single node, the ones that cost least first.
  bool split_further(GroupPlan& group, int g, const std::vector<Lifetime>& lives,
                     Occupancy& memory) {
    const GroupPlan before = group;
    const int64_t width = node(group.nodes[0]).out.width;
    const int64_t channels = node(group.nodes[0]).out.groups;
    for (int64_t columns = strip_of(lowered_, group); columns >= 1;
         columns = columns == 1 ? 0 : (columns + 1) / 2) {
      for (int64_t pieces = 1; pieces <= channels; pieces *= 2) {
        split_channels(group, static_cast<int>(pieces));
        group.columns = columns == width ? 0 : columns;
        for (int rows = kBanks; rows >= 1; rows /= 2) {
          group.rows = rows;
          if (stage_group(group, g, lives, memory)) return true;
        }
      }
    }
    group = before;
    return false;
  }

  /// The map to move to DDR so that group `g` has more room; -1: none.
  int victim(int g, const std::vector<Lifetime>& lives) const {
    int best = -1;
    int64_t most = 0;
    for (size_t r = 0; r < lives.size(); ++r) {
      const Lifetime& life = lives[r];
      if (plan_.in_ddr[r] || life.internal || life.first > g || life.last < g) continue;
      bool used = false;
      for (const int n : plan_.groups[static_cast<size_t>(g)].nodes) {
        used |= node(n).out.root == static_cast<int>(r);
        for (const View& view : node(n).in) used |= view.root == static_cast<int>(r);
      }
      const Root& m = lowered_.roots[r];
      const int64_t weight = row_words(m.height, m.width, m.groups) + (used ? 0 : 1 << 20);
      if (weight > most) most = weight, best = static_cast<int>(r);
    }
    return best;
  }

  Status no_room(const GroupPlan& group) const {
    const Node& n = node(group.nodes[0]);
    const View& in = n.in.empty() ? n.out : n.in[0];
    const Range columns = n.in.empty() ? Range{0, 1} : input_columns(n, 0, {0, 1});
    const Range rows = n.in.empty() ? Range{0, 1} : input_rows(n, 0, {0, 1});
    const int64_t words =
        row_words(rows.size(), columns.size(), in.groups) * static_cast<int64_t>(n.in.size()) + 1;
    return fail(
        ErrorKind::Capacity,
        fmt::format("layer {} fits no split into the feature memories", n.layer),
        fmt::format("{}: one pixel needs {} bytes of {} and its result, in {} words of each bank; "
                    "there are {} bytes in memories of {}, {} and {} words; tried strips of {} to "
                    "1 columns, 8 to 1 rows and {} to 1 groups of channels",
                    root(in.root).name, words * kBanks * kLanes, root(in.root).name, words,
                    (config_.fm_words(0) + config_.fm_words(1) + config_.fm_words(2)) * kLanes,
                    config_.fm_depth[0], config_.fm_depth[1], config_.fm_depth[2], n.out.width,
                    n.out.groups));
  }

  /// Two nodes that write one map through a window: it belongs to one of them only.
  bool shares_window(const GroupPlan& group) const {
    for (size_t j = 0; j < group.nodes.size(); ++j)
      for (size_t k = 0; k < j; ++k) {
        const int out = node(group.nodes[j]).out.root;
        if (out == node(group.nodes[k]).out.root && plan_.in_ddr[static_cast<size_t>(out)])
          return true;
      }
    return false;
  }

  Status take_apart(size_t g) {
    unfuse_ = {static_cast<ptrdiff_t>(g)};
    apply_unfuse();
    for (GroupPlan& one : plan_.groups)
      if (one.channels.empty()) TW_TRY_STATUS(first_split(one));
    return {};
  }

  /// Places everything, or changes the plan for the next round. True: all is placed.
  Result<bool> round() {
    Occupancy memory(config_, options_.homes == Homes::Largest);
    const std::vector<Lifetime> lives = lifetimes(lowered_, plan_.groups);
    for (size_t r = 0; r < lives.size(); ++r)
      if (!lives[r].internal && (lives[r].readers == 0 || too_large(static_cast<int>(r))))
        plan_.in_ddr[r] = true;
    plan_.home.assign(lowered_.roots.size(), Place{});
    if (!place_homes(lives, memory)) return false;
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      GroupPlan& group = plan_.groups[g];
      const int at = static_cast<int>(g);
      if (shares_window(group)) {
        TW_TRY_STATUS(take_apart(g));
        return false;
      }
      if (stage_group(group, at, lives, memory)) continue;
      const int moved = victim(at, lives);
      if (moved >= 0) {
        plan_.in_ddr[static_cast<size_t>(moved)] = true;
        return false;
      }
      if (group.nodes.size() > 1) {
        TW_TRY_STATUS(take_apart(g));
        return false;
      }
      if (!split_further(group, at, lives, memory))
        return tl::unexpected<Error>(no_room(group).error());
    }
    return true;
  }

  /// Maps that stay on the chip, the largest first. False: one went to DDR instead.
  bool place_homes(const std::vector<Lifetime>& lives, Occupancy& memory) {
    const std::vector<int> over = in_place(lowered_, plan_.groups, lives, plan_.in_ddr);
    // Chains of additions share one place: each names its first.
    std::vector<int> owner(lives.size());
    std::iota(owner.begin(), owner.end(), 0);
    std::vector<Lifetime> life = lives;
    std::vector<bool> placed(lives.size());
    for (size_t r = 0; r < lives.size(); ++r) placed[r] = !lives[r].internal && !plan_.in_ddr[r];
    std::vector<int> by_time(lives.size());
    std::iota(by_time.begin(), by_time.end(), 0);
    std::stable_sort(by_time.begin(), by_time.end(), [&](int a, int b) {
      return lives[static_cast<size_t>(a)].first < lives[static_cast<size_t>(b)].first;
    });
    for (const int r : by_time) {
      if (over[static_cast<size_t>(r)] < 0) continue;
      const int first = owner[static_cast<size_t>(over[static_cast<size_t>(r)])];
      owner[static_cast<size_t>(r)] = first;
      placed[static_cast<size_t>(first)] = true;
      life[static_cast<size_t>(first)].last =
          std::max(life[static_cast<size_t>(first)].last, lives[static_cast<size_t>(r)].last);
    }
    std::vector<int> order;
    for (size_t r = 0; r < lives.size(); ++r)
      if (placed[r] && owner[r] == static_cast<int>(r) && lives[r].first >= 0)
        order.push_back(static_cast<int>(r));
    const auto words = [&](int r) {
      return row_words(root(r).height, root(r).width, root(r).groups);
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const size_t i = static_cast<size_t>(a), j = static_cast<size_t>(b);
      if (options_.homes == Homes::Earliest) return life[i].first < life[j].first;
      return words(a) > words(b);
    });
    for (const int r : order) {
      const Lifetime& l = life[static_cast<size_t>(r)];
      std::optional<Place> place;
      if (!too_large(r)) place = memory.take(words(r), l.first, l.last, wanted(r));
      if (!place) {
        to_ddr(r, owner, lives);
        return false;
      }
      place->columns = {0, root(r).width};
      place->groups = {0, root(r).groups};
      plan_.home[static_cast<size_t>(r)] = *place;
    }
    for (size_t r = 0; r < owner.size(); ++r)
      if (owner[r] != static_cast<int>(r))
        plan_.home[r] = plan_.home[static_cast<size_t>(owner[r])];
    return true;
  }

  /// Moves to DDR the last result of a chain of additions, so that the chain ends before it. What a
  /// group makes and reads itself stays: DDR would have it too late.
  void to_ddr(int r, const std::vector<int>& owner, const std::vector<Lifetime>& lives) {
    int last = -1;
    for (size_t other = 0; other < owner.size(); ++other)
      if (owner[other] == r && !lives[other].internal &&
          (last < 0 || lives[other].last > lives[static_cast<size_t>(last)].last))
        last = static_cast<int>(other);
    plan_.in_ddr[static_cast<size_t>(last)] = true;
  }

  /// Regions for what is in DDR: a result that is a whole map is its own home.
  void give_ddr() {
    plan_.ddr_reg.assign(lowered_.roots.size(), Reg::Swap);
    plan_.ddr_addr.assign(lowered_.roots.size(), -1);
    const std::vector<Lifetime> lives = lifetimes(lowered_, plan_.groups);
    for (size_t r = 0; r < lowered_.roots.size(); ++r) {
      const Root& m = lowered_.roots[r];
      if (m.input) {
        plan_.ddr_reg[r] = Reg::Input;
        plan_.ddr_addr[r] = m.input_addr;
      }
    }
    for (const Store& store : lowered_.stores) {
      const size_t r = static_cast<size_t>(store.view.root);
      if (!plan_.in_ddr[r] || lowered_.roots[r].input || plan_.ddr_addr[r] >= 0 ||
          store.view.group != 0 || store.view.groups != lowered_.roots[r].groups)
        continue;
      plan_.ddr_reg[r] = Reg::Output;
      plan_.ddr_addr[r] = store.addr;
    }
    for (size_t r = 0; r < lowered_.roots.size(); ++r) {
      const Root& m = lowered_.roots[r];
      if (!plan_.in_ddr[r] || plan_.ddr_addr[r] >= 0 || lives[r].readers == 0 || m.rows_of >= 0)
        continue;
      plan_.ddr_addr[r] = static_cast<int64_t>(plan_.swap_bytes);
      plan_.swap_bytes += ddr_room(
          config_, static_cast<uint64_t>(m.height * m.width * m.groups * config_.word_bytes()));
    }
  }

  const Lowered& lowered_;
  const Config& config_;
  const PlanOptions& options_;
  Plan plan_;
  std::vector<ptrdiff_t> unfuse_;
  int64_t max_depth_ = 0;
};

}  // namespace

Result<Plan> plan_memory(const Lowered& lowered, const Config& config, const PlanOptions& options) {
  return MemoryPlanner(lowered, config, options).run();
}

}  // namespace tilewright::dpu
