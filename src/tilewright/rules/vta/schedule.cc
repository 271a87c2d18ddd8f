#include "tilewright/rules/vta/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/hw/intrinsic.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/vta/blocks.h"
#include "tilewright/rules/vta/model.h"

namespace tilewright::rules {

using schedule::Step;
using schedule::Trace;

namespace {

/// A Func under a growing trace.
class Steps {
 public:
  explicit Steps(Func func) : func_(std::move(func)) {}
  const Func& func() const { return func_; }
  Trace take() { return std::move(trace_); }

  Status apply(Step step) {
    Result<Func> next = schedule::apply(step, func_);
    if (!next) return tl::unexpected<Error>(std::move(next.error()).at(schedule::print(step)));
    func_ = *std::move(next);
    trace_.push_back(std::move(step));
    return {};
  }

 private:
  Func func_;
  Trace trace_;
};

/// Blocks between the sum and the last block, and others that only feed it, become part of it.
Status fold_epilogue(Steps& steps) {
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<BlockFacts> blocks = collect_blocks(steps.func());
    const VtaBlocks roles = find_vta_blocks(blocks);
    for (const BlockFacts& b : blocks) {
      if (b.kind != BlockFacts::Kind::Injective || &b == roles.last || &b == roles.staged) continue;
      if (is_output(steps.func(), b.store->buffer)) continue;
      TW_TRY_STATUS(steps.apply(schedule::Inline{b.name}));
      changed = true;
      break;
    }
  }
  return {};
}

class VtaScheduler {
 public:
  VtaScheduler(Steps steps, VtaLayer layer, const vta::Config& config, const VtaMapping& mapping)
      : steps_(std::move(steps)),
        layer_(std::move(layer)),
        config_(config),
        map_(mapping),
        depth_(result_depth(layer_, mapping)) {
    const std::vector<BlockFacts> blocks = collect_blocks(steps_.func());
    const VtaBlocks roles = find_vta_blocks(blocks);
    sum_ = roles.reduce->name, init_ = roles.init->name, last_ = roles.last->name;
    result_ = roles.reduce->store->buffer.name();
    if (roles.staged != nullptr) staged_ = roles.staged->name;
    if (layer_.conv) {
      const Product product = *product_of(*roles.reduce);
      input_ = product.a.buffer.name(), weights_ = product.b.buffer.name();
    } else {
      for (const Load& l : roles.staged->loads) input_ = l.buffer.name();
    }
    for (const Load& l : roles.last->loads) {
      const std::string& name = l.buffer.name();
      if (name == result_) continue;
      auto& group = l.buffer.dtype() == DType::I32 ? vectors_ : residuals_;
      if (std::find(group.begin(), group.end(), name) == group.end()) group.push_back(name);
    }
  }

  Result<Trace> run() {
    // What stands on chip moves into its tiles before anything inside is split: its place is then
    // found without looking at the inner tiles, and its size without what they reach over the end.
    TW_TRY_STATUS(tile(0, depth_));
    TW_TRY_STATUS(stage_result());
    TW_TRY_STATUS(layer_.conv ? tile_and_stage() : stage_window());
    TW_TRY_STATUS(cut());
    for (const std::string& suffix : last_suffixes_) TW_TRY_STATUS(pieces(suffix));
    if (!layer_.conv) return steps_.take();
    const vta::Config& c = config_;
    const hw::Intrinsic step = TW_TRY(hw::vta_gemm(c.batch(), c.block_in(), c.block_out(),
                                                   {c.inp_bits(), c.wgt_bits(), c.acc_bits()}));
    for (const std::string& suffix : sum_suffixes_)
      TW_TRY_STATUS(apply(schedule::Tensorize{sum_ + ".b" + suffix, print(step.meaning)}));
    return steps_.take();
  }

 private:
  Status apply(Step step) { return steps_.apply(std::move(step)); }

  std::string loop(TileAxis axis) const {
    static constexpr const char* kNames[kTileAxes] = {"n", "o", "h", "w", "ci", "r", "s"};
    return sum_ + "." + kNames[static_cast<size_t>(axis)];
  }
  std::string outer(TileAxis axis) const { return loop(axis) + ".o"; }
  /// The loop around a copy that stands inside the first `depth` loops.
  std::string around(int depth) const {
    return depth == 0 ? "" : outer(map_.order[static_cast<size_t>(depth) - 1]);
  }

  /// Splits the loops `from` to `to` of the order and puts them there, inside of those before.
  Status tile(int from, int to) {
    for (int i = from; i < to; ++i) {
      const TileAxis axis = map_.order[static_cast<size_t>(i)];
      TW_TRY_STATUS(apply(schedule::Split{loop(axis), map_.tile[axis]}));
    }
    schedule::Names order;
    for (int i = from; i < to; ++i) order.push_back(outer(map_.order[static_cast<size_t>(i)]));
    const auto rest = [&](TileAxis axis) {
      for (int i = 0; i < to; ++i)
        if (map_.order[static_cast<size_t>(i)] == axis) return order.push_back(loop(axis) + ".i");
      order.push_back(loop(axis));
    };
    if (layer_.conv) rest(TileAxis::C);
    for (const TileAxis axis :
         {TileAxis::R, TileAxis::S, TileAxis::N, TileAxis::O, TileAxis::H, TileAxis::W})
      rest(axis);
    for (const char* name : {".b", ".co"}) order.push_back(sum_ + name);
    if (layer_.conv) order.push_back(sum_ + ".bi");
    return apply(schedule::Reorder{order});
  }

  Status copy(const std::string& block, const std::string& buffer, const std::string& name,
              const std::string& at, const std::string& scope) {
    TW_TRY_STATUS(apply(schedule::CacheRead{block, buffer, name, at}));
    return apply(schedule::SetScope{name, scope});
  }

  /// The buffer that `block` fills exists in so many copies, used in turn.
  Status copies(const std::string& block, int depth, int count) {
    if (depth == 0) return {};
    return apply(schedule::SetMark{block, "copies", fmt::format("{}", count)});
  }

  Status stage_result() {
    if (depth_ > 0) {
      TW_TRY_STATUS(apply(schedule::ComputeAt{init_, around(depth_)}));
      TW_TRY_STATUS(apply(schedule::ReverseComputeAt{last_, around(depth_)}));
    }
    TW_TRY_STATUS(apply(schedule::SetScope{result_, "vta.acc"}));
    return copies(init_, depth_, map_.result_copies);
  }

  /// The loops inside of the result, with the copies that stand between them.
  Status tile_and_stage() {
    const auto loops = static_cast<int>(map_.order.size());
    const int input = std::max(map_.input_depth, depth_);
    const int weights = std::max(map_.weight_depth, depth_);
    for (int from = depth_;;) {
      if (from == input) TW_TRY_STATUS(stage_input());
      if (from == weights) TW_TRY_STATUS(stage_weights());
      if (from == loops) return stage_vectors();
      int to = loops;
      for (const int depth : {input, weights})
        if (depth > from) to = std::min(to, depth);
      TW_TRY_STATUS(tile(from, to));
      from = to;
    }
  }

  Status stage_input() {
    const std::string input_loop = around(map_.input_depth);
    if (!staged_.empty()) {
      if (map_.input_depth > 0) TW_TRY_STATUS(apply(schedule::ComputeAt{staged_, input_loop}));
      TW_TRY_STATUS(apply(schedule::SetScope{input_, "vta.inp"}));
      return copies(staged_, map_.input_depth, map_.copies);
    }
    TW_TRY_STATUS(copy(sum_, input_, input_ + ".inp", input_loop, "vta.inp"));
    return copies(input_ + ".inp", map_.input_depth, map_.copies);
  }

  Status stage_weights() {
    TW_TRY_STATUS(copy(sum_, weights_, weights_ + ".wgt", around(map_.weight_depth), "vta.wgt"));
    return copies(weights_ + ".wgt", map_.weight_depth, map_.copies);
  }

  Status stage_vectors() {
    const VtaRegions regions{layer_, map_, config_};
    const int depth = regions.vectors_stay() ? 0 : depth_;
    for (const std::string& name : vectors_) {
      TW_TRY_STATUS(copy(last_, name, name + ".acc", around(depth), "vta.acc"));
      TW_TRY_STATUS(copies(name + ".acc", depth, map_.result_copies));
    }
    return {};
  }

  /// The input of a pooling, and the same as i32.
  Status stage_window() {
    const std::string at = around(depth_);
    if (depth_ > 0) TW_TRY_STATUS(apply(schedule::ComputeAt{staged_, at}));
    TW_TRY_STATUS(apply(schedule::SetScope{staged_, "vta.acc"}));
    TW_TRY_STATUS(copies(staged_, depth_, 1));
    TW_TRY_STATUS(copy(staged_, input_, input_ + ".inp", at, "vta.inp"));
    return copies(input_ + ".inp", depth_, map_.copies);
  }

  /// Ragged loops are cut into full tiles and the rest, so that no tile has a guard.
  Status cut() {
    for (size_t i = 0; i < map_.order.size(); ++i) {
      const TileAxis axis = map_.order[i];
      const int64_t rest = layer_.extent[axis] % map_.tile[axis];
      if (rest == 0) continue;
      const int64_t full = layer_.extent[axis] / map_.tile[axis];
      const bool around_last = static_cast<int>(i) < depth_;
      std::vector<std::string> suffixes;
      for (const std::string& suffix : sum_suffixes_) {
        TW_TRY_STATUS(apply(schedule::Cut{outer(axis) + suffix, {full, 1}}));
        suffixes.push_back(suffix + "@0"), suffixes.push_back(suffix + "@1");
      }
      sum_suffixes_ = suffixes;
      if (around_last) last_suffixes_ = suffixes;
    }
    return {};
  }

  int64_t extent_in(const std::string& name) const {
    int64_t extent = 0;
    walk(steps_.func().body, [&](const Stmt& s) {
      const For* f = s.as<For>();
      if (f != nullptr && f->var.name() == name) extent = as_int(f->extent).value_or(0);
    });
    return extent;
  }

  /// Cuts the nest of `block` into pieces of the result; gives what that adds to its names.
  Result<std::vector<std::string>> cut_pieces(const std::string& block, const std::string& suffix) {
    const VtaRegions regions{layer_, map_, config_};
    const bool blocks = regions.piece_axis() == TileAxis::O;
    const std::string axis = block + (blocks ? ".o" : ".h") + suffix;
    const std::vector<int64_t> sizes = piece_sizes(extent_in(axis), map_.tail);
    if (sizes.size() == 1) return std::vector<std::string>{suffix};
    schedule::Names order = {axis, block + ".n" + suffix};
    if (!blocks) order.push_back(block + ".o" + suffix);
    TW_TRY_STATUS(apply(schedule::Reorder{order}));
    TW_TRY_STATUS(apply(schedule::Cut{axis, sizes}));
    std::vector<std::string> parts;
    for (size_t i = 0; i < sizes.size(); ++i) parts.push_back(suffix + fmt::format("@{}", i));
    return parts;
  }

  /// The part `suffix` of the result: what sets it to zero, and what stores it.
  Status pieces(const std::string& suffix) {
    const VtaRegions regions{layer_, map_, config_};
    const bool blocks = regions.piece_axis() == TileAxis::O;
    const std::string axis = blocks ? ".o" : ".h";
    if (regions.reset_pieces(extent_in(last_ + axis + suffix)).size() > 1)
      TW_TRY(cut_pieces(init_, suffix));
    const std::vector<std::string> parts = TW_TRY(cut_pieces(last_, suffix));
    for (const std::string& part : parts) {
      std::string at = depth_ == 0 ? "" : around(depth_) + suffix;
      if (parts.size() > 1) at = last_ + axis + part;
      for (const std::string& name : residuals_) {
        TW_TRY_STATUS(copy(last_ + part, name, name + ".inp" + part, at, "vta.inp"));
        TW_TRY_STATUS(copies(name + ".inp" + part, 1, map_.copies));
      }
    }
    return {};
  }

  Steps steps_;
  VtaLayer layer_;
  const vta::Config& config_;
  const VtaMapping& map_;
  int depth_;
  std::string sum_, init_, last_, result_, staged_, input_, weights_;
  std::vector<std::string> vectors_, residuals_;
  std::vector<std::string> sum_suffixes_ = {""}, last_suffixes_ = {""};
};

}  // namespace

Result<Trace> vta_prologue(const Func& func) {
  Steps steps(func);
  TW_TRY_STATUS(fold_epilogue(steps));
  return steps.take();
}

Result<RuleChoice> vta_rule(const Func& func) {
  const Func folded = TW_TRY(schedule::replay(func, TW_TRY(vta_prologue(func))));
  RuleChoice choice;
  TW_TRY(vta_layer(folded, &choice));
  return choice;
}

Result<Trace> vta_trace(const Func& func, const vta::Config& config, const VtaMapping& mapping) {
  Trace trace = TW_TRY(vta_prologue(func));
  Func folded = TW_TRY(schedule::replay(func, trace));
  VtaLayer layer = TW_TRY(vta_layer(folded));
  for (size_t i = 0; i < kTileAxes; ++i)
    if (mapping.tile[i] < 1 || mapping.tile[i] > layer.extent[i])
      return fail(ErrorKind::Invalid, fmt::format("tile {} of axis {} is outside of 1..{}",
                                                  mapping.tile[i], "nohwcrs"[i], layer.extent[i]));
  for (const TileAxis axis : {TileAxis::R, TileAxis::S})
    if (layer.extent[axis] % mapping.tile[axis] != 0 ||
        (!layer.conv && tiles(layer, mapping, axis) > 1))
      return fail(ErrorKind::Invalid,
                  fmt::format("a window of {} taps is not cut into groups of {}",
                              layer.extent[axis], mapping.tile[axis]));
  VtaScheduler scheduler(Steps(std::move(folded)), std::move(layer), config, mapping);
  Trace rest = TW_TRY(scheduler.run());
  trace.insert(trace.end(), rest.begin(), rest.end());
  return trace;
}

}  // namespace tilewright::rules
