// Attempts: each is a way to group, order and split; the fastest by the cycle simulator wins.
#include "tilewright/codegen/dpu/compile.h"

#include <fmt/format.h>

#include <optional>

#include "tilewright/accel/dpu/sim/tsim.h"
#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {
namespace {

/// DDR in the order of registers: inputs, outputs, swap, weights, what the format unit reads.
Result<Program> make_program(const Lowered& lowered, const Config& config, const Plan& plan,
                             const EmittedCode& code, Run run) {
  Program program;
  accel::ImageBuilder image(accel::kPage, uint64_t{1} << 36);
  const uint64_t bytes[kRegs] = {lowered.input_region, lowered.output_region, plan.swap_bytes,
                                 code.params.size(),   lowered.format_bytes,  0};
  for (int reg = 0; reg < kRegs; ++reg) {
    const std::string region_name(name(static_cast<Reg>(reg)));
    const uint64_t address =
        bytes[reg] == 0 ? image.end() : TW_TRY(image.allocate(region_name, bytes[reg]));
    program.regions[static_cast<size_t>(reg)] = {region_name, address, bytes[reg]};
  }
  image.write(program.regions[static_cast<size_t>(Reg::Params)].address, code.params);
  const auto address = [&](const DdrTensor& tensor) {
    return program.regions[static_cast<size_t>(tensor.reg)].address + tensor.addr;
  };
  for (size_t i = 0; i < lowered.inputs.size(); ++i)
    image.add_input({lowered.inputs[i].name, address(lowered.inputs[i]), lowered.input_bytes[i]});
  for (const DdrTensor& tensor : lowered.outputs)
    image.add_output({tensor.name, address(tensor), bytes_of(config, tensor)});
  static_cast<accel::Image&>(program) = image.take();
  program.producer = "tilewright";
  program.config = config;
  program.formats = lowered.formats;
  program.input_tensors = lowered.inputs;
  program.output_tensors = lowered.outputs;
  program.runs.push_back(std::move(run));
  return program;
}

/// Layers of one tile: CONV and MISC can only work side by side on parts of their channels.
bool has_low_layers(const Lowered& lowered) {
  for (const Node& node : lowered.nodes)
    if (node.kind == NodeKind::Conv && node.out.height <= kBanks) return true;
  return false;
}

std::vector<PlanOptions> options_to_try(const Config& config, const Lowered& lowered) {
  std::vector<PlanOptions> all(1);
  all[0].name = config.compiler.fusion ? "in order, fused" : "in order";
  if (config.compiler.prefetch && has_low_layers(lowered))
    for (const int pieces : {2, 4, 8}) {
      PlanOptions more = all[0];
      more.pieces = pieces;
      more.name += fmt::format(", low layers in {} passes", pieces);
      all.push_back(more);
    }
  // The paper's compiler fuses those of branches only.
  if (!config.compiler.layer_barrier || config.compiler.parallel_branches) {
    PlanOptions behind = all[0];
    behind.behind_pools = true;
    behind.name += ", pools with the convolutions behind them";
    if (make_groups(lowered, config, behind).size() < make_groups(lowered, config, all[0]).size())
      all.push_back(behind);
  }
  if (config.compiler.fusion) {
    PlanOptions apart;
    apart.fuse = false;
    apart.name = "in order, not fused";
    all.push_back(apart);
  }
  return all;
}

std::string home_of(const Plan& plan, int root) {
  const size_t r = static_cast<size_t>(root);
  if (plan.in_ddr[r]) return "DDR";
  if (plan.home[r].memory < 0) return "window";
  return fmt::format("FM{}", plan.home[r].memory);
}

std::vector<LayerPlan> describe(const Lowered& lowered, const Plan& plan) {
  std::vector<LayerPlan> layers;
  for (const GroupPlan& group : plan.groups)
    for (size_t j = 0; j < group.nodes.size(); ++j) {
      const Node& node = lowered.nodes[static_cast<size_t>(group.nodes[j])];
      LayerPlan layer;
      layer.name = node.layer;
      for (size_t k = 0; k < group.nodes.size(); ++k)
        if (k != j && lowered.nodes[static_cast<size_t>(group.nodes[k])].layer != node.layer)
          layer.with += (layer.with.empty() ? "" : ", ") +
                        lowered.nodes[static_cast<size_t>(group.nodes[k])].layer;
      layer.home = home_of(plan, node.out.root);
      layer.how = fmt::format("tiles of {} rows", group.rows);
      if (group.columns > 0) layer.how += fmt::format(", strips of {} columns", group.columns);
      if (group.channels.size() > 1)
        layer.how += fmt::format(", {} passes over channels", group.channels.size());
      if (!node.note.empty()) layer.how += ", " + node.note;
      layers.push_back(std::move(layer));
    }
  return layers;
}

struct Candidate {
  Plan plan;
  EmittedCode code;
  Run run;
  uint64_t cycles = 0;
};

Result<Candidate> attempt(const Lowered& lowered, const Config& config,
                          const PlanOptions& options) {
  Candidate candidate;
  candidate.plan = TW_TRY(plan_memory(lowered, config, options));
  candidate.code = TW_TRY(emit(lowered, config, candidate.plan));
  candidate.run = TW_TRY(assemble(lowered, config, candidate.plan, candidate.code));
  candidate.cycles = TW_TRY(simulate_time(config, candidate.run.insns)).cycles;
  return candidate;
}

/// Tries one way after the other and keeps the fastest.
class Search {
 public:
  Search(const Network& network, const Config& config, const CompileOptions& options)
      : network_(network), config_(config), options_(options) {}

  /// errors: Capacity (no way fits), Unsupported, what `cancelled` says.
  Status run() {
    const Lowered plain = TW_TRY(lower(network_, config_));
    TW_TRY_STATUS(try_all(plain, ""));
    LowerOptions once;
    once.fetch_inputs = true;
    const Lowered fetched = TW_TRY(lower(network_, config_, once));
    if (fetched.roots.size() != plain.roots.size())
      TW_TRY_STATUS(try_all(fetched, ", inputs loaded once"));
    if (config_.compiler.reorder_stride && best_) TW_TRY_STATUS(try_strides(plain));
    if (!best_) return tl::unexpected<Error>(*first_error_);
    return {};
  }

  Result<Compiled> result() && {
    Compiled out;
    out.attempts = std::move(attempts_);
    out.layers = describe(lowered_, best_->plan);
    out.program =
        TW_TRY(make_program(lowered_, config_, best_->plan, best_->code, std::move(best_->run)));
    return out;
  }

 private:
  /// All strided layers reordered; then one after the other done the other way, which stays if it
  /// is faster.
  Status try_strides(const Lowered& plain) {
    LowerOptions options;
    for (size_t v = 0; v < plain.root_of.size(); ++v)
      if (plain.root_of[v] >= 0 && in_ddr_[static_cast<size_t>(plain.root_of[v])])
        options.in_ddr.insert(static_cast<ValueId>(v));
    options.reorder = worth_reordering(network_);
    const Lowered all = TW_TRY(lower(network_, config_, options));
    if (all.reordered.empty()) return {};
    const uint64_t before = best_->cycles;
    TW_TRY_STATUS(try_all(all, ", strided layers reordered"));
    if (all.reordered.size() == 1) return {};
    std::set<size_t> now;
    if (best_->cycles < before) now.insert(all.reordered.begin(), all.reordered.end());
    for (const size_t layer : all.reordered) {
      options.reorder = now;
      if (options.reorder.erase(layer) == 0) options.reorder.insert(layer);
      const uint64_t least = best_->cycles;
      const Lowered other = TW_TRY(lower(network_, config_, options));
      TW_TRY_STATUS(try_ways({best_way_}, other, reordered_name(all.reordered, options.reorder)));
      if (best_->cycles < least) now = options.reorder;
    }
    return {};
  }

  std::string reordered_name(const std::vector<size_t>& all, const std::set<size_t>& some) const {
    std::string names;
    for (const size_t layer : all)
      if (!some.contains(layer)) names += (names.empty() ? "" : ", ") + network_.layers[layer].name;
    return ", strided layers reordered but " + names;
  }

  Status try_all(const Lowered& lowered, const std::string& suffix) {
    return try_ways(options_to_try(config_, lowered), lowered, suffix);
  }

  Status try_ways(const std::vector<PlanOptions>& ways, const Lowered& lowered,
                  const std::string& suffix) {
    for (const PlanOptions& way : ways) {
      if (static_cast<int>(attempts_.size()) >= options_.most_attempts) break;
      if (options_.cancelled && !attempts_.empty()) TW_TRY_STATUS(options_.cancelled());
      Result<Candidate> candidate = attempt(lowered, config_, way);
      if (!candidate) {
        if (!first_error_) first_error_ = candidate.error();
        attempts_.push_back({way.name + suffix, to_string(candidate.error()), 0});
        continue;
      }
      const bool chosen = static_cast<int>(attempts_.size()) == options_.only;
      attempts_.push_back({way.name + suffix, "", candidate->cycles});
      if (in_ddr_.empty()) in_ddr_ = candidate->plan.in_ddr;
      if (best_ && !chosen && (chosen_ || candidate->cycles >= best_->cycles)) continue;
      chosen_ = chosen;
      best_ = std::move(*candidate);
      best_way_ = way;
      lowered_ = lowered;
    }
    return {};
  }

  const Network& network_;
  const Config& config_;
  const CompileOptions& options_;
  Lowered lowered_;       ///< of the best
  PlanOptions best_way_;  ///< likewise
  std::optional<Candidate> best_;
  bool chosen_ = false;       ///< it is `only`
  std::vector<bool> in_ddr_;  ///< roots of the first way that worked
  std::optional<Error> first_error_;
  std::vector<Attempt> attempts_;
};

}  // namespace

Result<Compiled> compile(const Network& network, const Config& config,
                         const CompileOptions& options) {
  TW_TRY_STATUS(check(config));
  TW_TRY_STATUS(check(network));
  for (const Layer& layer : network.layers) TW_TRY_STATUS(supports(config, network, layer));
  const Network ordered = config.compiler.parallel_branches ? with_pools_first(network) : network;
  Search search(ordered, config, options);
  TW_TRY_STATUS(search.run());
  return std::move(search).result();
}

}  // namespace tilewright::dpu
