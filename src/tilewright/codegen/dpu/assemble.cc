// The order of a launch: steps, weights between them, and tokens.
//
// By addresses: tile after tile, as if one instruction ran at a time; units run ahead by
// themselves. Weights of the next layers come as soon as PM has room, a part with each tile. By
// barriers: group g has the loads of tile g, the CONVs of tile g-1 and the POOLs of tile g-2; each
// group waits for the one before.
#include <algorithm>
#include <optional>

#include "tilewright/accel/dpu/builder.h"
#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {
namespace {

/// Words of a LOAD of weights: small enough that rows of maps come in between.
constexpr int64_t kChunk = 256;

/// LOADs of weights, in the order of their passes, each as soon as PM has room.
class Parameters {
 public:
  Parameters(const Lowered& lowered, const Config& config, const Plan& plan,
             const EmittedCode& code)
      : lowered_(lowered), config_(config), plan_(plan), code_(code), begin_(code.weights.size()) {}

  /// PM word of the first word of pass `w`.
  int64_t base(int w) const { return begin_[static_cast<size_t>(w)] % config_.pm_depth; }

  /// What must be loaded before pass `w` computes.
  std::vector<Step> need(int w) {
    std::vector<Step> steps = std::move(ready_);
    ready_.clear();
    while (next_ <= w) load_next(steps);
    return steps;
  }
  /// Queues what may load while pass `w` computes, `last`: the last one of its group.
  void ahead(int w) {
    while (next_ < static_cast<int>(code_.weights.size()) && may_overlap(w) && fits(w))
      load_next(ready_);
  }
  /// Queues the next layer's first weights, once the layer before has computed.
  void after_layer(int w) {
    if (next_ < static_cast<int>(code_.weights.size()) && next_ == w + 1) load_next(ready_);
  }
  /// A share of what is queued, for one of `tiles` tiles that are left.
  std::vector<Step> share(size_t tiles) {
    const size_t count = (ready_.size() + tiles - 1) / std::max<size_t>(1, tiles);
    std::vector<Step> steps(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(count));
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(count));
    return steps;
  }

 private:
  const WeightPass& pass(int w) const { return code_.weights[static_cast<size_t>(w)]; }
  bool may_overlap(int w) const {
    const bool same = pass(next_).group == pass(w).group;
    if (pass(next_).single && !config_.compiler.overlap_fc) return false;
    return same || config_.compiler.prefetch || beside(w);
  }
  /// Layers wait for what they read. One of another branch reads nothing that those before it make,
  /// from the one of pass `w` on: with branches in parallel its weights come while that computes.
  bool beside(int w) const {
    return config_.compiler.parallel_branches &&
           independent(lowered_, plan_, pass(w).group, pass(next_).group);
  }
  int64_t position(int w) const {
    // In turn means over what was there before: so the load waits for the last CONV that reads it.
    return may_overlap(std::max(0, w)) ? end_ : begin_[static_cast<size_t>(std::max(0, w))];
  }
  bool fits(int w) const {
    return end_ + pass(next_).words - begin_[static_cast<size_t>(w)] <= config_.pm_depth;
  }

  void load_next(std::vector<Step>& steps) {
    const WeightPass& what = pass(next_);
    if (next_ > 0) end_ = position(next_ - 1);
    begin_[static_cast<size_t>(next_)] = end_;
    for (int64_t done = 0; done < what.words;) {
      const int64_t words = std::min(kChunk, what.words - done);
      Load op;
      op.mode = 1;
      op.bank_addr = static_cast<int>((end_ + done) % config_.pm_depth);
      op.jump_read = static_cast<int>(words * kLanes);
      op.jump_write = static_cast<int>(words);
      op.length = 1;
      op.channel = static_cast<int>(words * kLanes);
      op.reg_id = static_cast<int>(Reg::Params);
      op.ddr_addr = static_cast<int>(what.addr + done * kPmWordBytes);
      steps.push_back({op, Nop{}});
      done += words;
    }
    end_ += what.words;
    ++next_;
  }

  const Lowered& lowered_;
  const Config& config_;
  const Plan& plan_;
  const EmittedCode& code_;
  std::vector<int64_t> begin_;  ///< by pass, not yet wrapped at PM's depth
  int64_t end_ = 0;
  int next_ = 0;
  std::vector<Step> ready_;
};

class Assembler {
 public:
  Assembler(const Lowered& lowered, const Config& config, const Plan& plan, const EmittedCode& code)
      : lowered_(lowered),
        config_(config),
        plan_(plan),
        code_(code),
        builder_(config),
        parameters_(lowered, config, plan, code) {}

  Result<Run> run() {
    for (size_t p = 0; p < code_.passes.size(); ++p) {
      const PassCode& pass = code_.passes[p];
      const bool new_group = p == 0 || code_.passes[p - 1].group != pass.group;
      if (new_group) builder_.begin_span(span_name(pass.group));
      const bool last = p + 1 == code_.passes.size() || code_.passes[p + 1].group != pass.group;
      weights_ = std::max(weights_, pass.weights);
      // A pass without weights of its own keeps what is on the way.
      if (pass.weights >= 0) TW_TRY_STATUS(add_all(parameters_.need(pass.weights), true));
      if (new_group && config_.compiler.layer_barrier) builder_.barrier();
      if (config_.compiler.address_tokens) {
        TW_TRY_STATUS(by_addresses(pass, last));
      } else {
        TW_TRY_STATUS(by_barriers(pass, last));
      }
    }
    return builder_.finish(config_.compiler.address_tokens);
  }

 private:
  std::string span_name(size_t group) const {
    std::string name;
    for (const int n : plan_.groups[group].nodes) {
      const std::string& layer = lowered_.nodes[static_cast<size_t>(n)].layer;
      if (name.empty())
        name = layer;
      else if (layer != lowered_.nodes[static_cast<size_t>(plan_.groups[group].nodes[0])].layer)
        name += "+" + layer;
    }
    return name;
  }

  /// Adds a step, its INIT first if it is not the one that holds.
  Status add(const Step& step) {
    if (!std::holds_alternative<Nop>(step.init)) {
      std::optional<Op>& held = held_[step.init.index()];
      if (!held || !(*held == step.init)) {
        TW_TRY_STATUS(builder_.add(step.init));
        held = step.init;
      }
    }
    const auto* conv = std::get_if<Conv>(&step.op);
    if (conv == nullptr) return builder_.add(step.op);
    Conv placed = *conv;
    const int64_t base = parameters_.base(weights_);
    const int64_t bias = base + conv->bank_addr_bias / 4;
    placed.bank_addr_weights =
        static_cast<int>((base + conv->bank_addr_weights) % config_.pm_depth);
    placed.bank_addr_bias =
        static_cast<int>(bias % config_.pm_depth * 4 + conv->bank_addr_bias % 4);
    return builder_.add(placed);
  }
  Status add_all(const std::vector<Step>& steps, bool group = false) {
    if (steps.empty()) return {};
    if (group && !config_.compiler.address_tokens) builder_.begin_group();
    for (const Step& step : steps) TW_TRY_STATUS(add(step));
    return {};
  }

  Status by_addresses(const PassCode& pass, bool last) {
    if (pass.weights >= 0) parameters_.ahead(pass.weights);
    for (size_t i = 0; i < pass.tiles.size(); ++i)
      for (size_t stage = 0; stage < pass.tiles[i].size(); ++stage) {
        TW_TRY_STATUS(add_all(pass.tiles[i][stage]));
        // After the tile's own rows, before what waits for them.
        if (stage == 0) TW_TRY_STATUS(add_all(parameters_.share(pass.tiles.size() - i)));
      }
    if (last && pass.weights >= 0 && !config_.compiler.prefetch) {
      parameters_.after_layer(pass.weights);
      TW_TRY_STATUS(add_all(parameters_.share(1)));
    }
    return {};
  }

  static bool computes(const std::vector<const std::vector<Step>*>& group) {
    for (const std::vector<Step>* steps : group)
      for (const Step& step : *steps)
        if (std::holds_alternative<Conv>(step.op)) return true;
    return false;
  }

  /// Stages of tiles that are side by side, in the order of groups.
  std::vector<std::vector<const std::vector<Step>*>> side_by_side(const PassCode& pass) const {
    const size_t tiles = pass.tiles.size(), stages = pass.tiles[0].size();
    std::vector<std::vector<const std::vector<Step>*>> groups;
    const auto append = [&](std::vector<const std::vector<Step>*> group) {
      bool empty = true;
      for (const auto* steps : group) empty = empty && steps->empty();
      if (!empty) groups.push_back(std::move(group));
    };
    if (!plan_.groups[pass.group].skewed) {
      for (const auto& tile : pass.tiles)
        for (const std::vector<Step>& steps : tile) append({&steps});
      return groups;
    }
    for (size_t g = 0; g + 1 < tiles + stages; ++g) {
      std::vector<const std::vector<Step>*> group;
      for (size_t s = 0; s < stages && s <= g; ++s)
        if (g - s < tiles) group.push_back(&pass.tiles[g - s][s]);
      append(std::move(group));
    }
    return groups;
  }

  Status by_barriers(const PassCode& pass, bool last) {
    const auto groups = side_by_side(pass);
    size_t last_conv = groups.size();
    for (size_t g = 0; g < groups.size(); ++g)
      if (computes(groups[g])) last_conv = g;
    if (pass.weights >= 0) parameters_.ahead(pass.weights);
    for (size_t g = 0; g < groups.size(); ++g) {
      builder_.begin_group();
      const bool tail = last && g == last_conv + 1 && pass.weights >= 0;
      if (tail && !config_.compiler.prefetch) parameters_.after_layer(pass.weights);
      for (const std::vector<Step>* steps : groups[g]) TW_TRY_STATUS(add_all(*steps));
      TW_TRY_STATUS(add_all(parameters_.share(tail ? 1 : groups.size() - g)));
    }
    return {};
  }

  const Lowered& lowered_;
  const Config& config_;
  const Plan& plan_;
  const EmittedCode& code_;
  Builder builder_;
  Parameters parameters_;
  std::map<size_t, std::optional<Op>> held_;  ///< INITs by opcode
  int weights_ = -1;
};

}  // namespace

Result<Run> assemble(const Lowered& lowered, const Config& config, const Plan& plan,
                     const EmittedCode& code) {
  return Assembler(lowered, config, plan, code).run();
}

}  // namespace tilewright::dpu
