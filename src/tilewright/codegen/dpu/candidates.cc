// One way at a time: order, groups, places, instructions, cycles.
#include "tilewright/codegen/dpu/candidates.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/dpu/sim/tsim.h"

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

std::string home_of(const Plan& plan, int root) {
  const size_t r = static_cast<size_t>(root);
  if (plan.in_ddr[r]) return "DDR";
  if (plan.home[r].memory < 0) return "window";
  return fmt::format("FM{}", plan.home[r].memory);
}

std::vector<LayerPlan> layers_of(const Lowered& lowered, const Plan& plan) {
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

/// Values that are in DDR in the plainest plan that works: LOAD can put their rows anywhere.
std::optional<std::set<ValueId>> values_in_ddr(const Lowered& plain, const Config& config) {
  PlanOptions options;
  Result<Plan> plan = plan_memory(plain, config, options);
  if (!plan) {
    options.fuse = false;
    plan = plan_memory(plain, config, options);
  }
  if (!plan) return {};
  std::set<ValueId> values;
  for (size_t v = 0; v < plain.root_of.size(); ++v)
    if (plain.root_of[v] >= 0 && plan->in_ddr[static_cast<size_t>(plain.root_of[v])])
      values.insert(static_cast<ValueId>(v));
  return values;
}

/// Whether the decisions about single nodes and roots are about some that are there.
bool fits(const Way& way, const Lowered& lowered) {
  const int nodes = static_cast<int>(lowered.nodes.size());
  const int roots = static_cast<int>(lowered.roots.size());
  const auto within = [](const std::map<int, int>& values, int count) {
    return values.empty() || values.rbegin()->first < count;
  };
  return within(way.later, nodes) && within(way.pieces_of, nodes) && within(way.rows, nodes) &&
         within(way.home, roots) && (way.apart.empty() || *way.apart.rbegin() < nodes);
}

}  // namespace

Result<Candidates> Candidates::create(const Network& network, const Config& config) {
  Candidates made(network, config);
  const Lowered& plain = made.forms_[Form::Plain] = TW_TRY(lower(network, config));
  LowerOptions once;
  once.fetch_inputs = true;
  Lowered fetched = TW_TRY(lower(network, config, once));
  if (fetched.roots.size() != plain.roots.size())
    made.forms_[Form::InputsOnce] = std::move(fetched);
  if (!config.compiler.reorder_stride) return made;
  const auto in_ddr = values_in_ddr(plain, config);
  if (!in_ddr) return made;
  made.in_ddr_ = *in_ddr;
  LowerOptions reorder;
  reorder.in_ddr = *in_ddr;
  reorder.reorder = worth_reordering(network);
  Lowered reordered = TW_TRY(lower(network, config, reorder));
  if (!reordered.reordered.empty()) made.forms_[Form::StridesReordered] = std::move(reordered);
  return made;
}

const Lowered* Candidates::lowered(Form form, const std::set<int>& plain) const {
  const auto found = forms_.find(form);
  if (found == forms_.end()) return nullptr;
  return plain.empty() ? &found->second : form == Form::StridesReordered ? strides(plain) : nullptr;
}

const Lowered* Candidates::strides(const std::set<int>& plain) const {
  const std::lock_guard<std::mutex> guard(others_->lock);
  const auto found = others_->made.find(plain);
  if (found != others_->made.end()) return &found->second;
  LowerOptions options;
  options.in_ddr = in_ddr_;
  for (const size_t layer : forms_.at(Form::StridesReordered).reordered)
    if (!plain.contains(static_cast<int>(layer))) options.reorder.insert(layer);
  Result<Lowered> made = lower(network_, config_, options);
  return made ? &others_->made.emplace(plain, *std::move(made)).first->second : nullptr;
}

std::vector<int> Candidates::order(const Way& way) const {
  return order_nodes(*lowered(way.form, way.plain_strides), way);
}

Result<Candidate> Candidates::make(const Way& way) const {
  const Lowered* lowered = this->lowered(way.form, way.plain_strides);
  if (lowered == nullptr || !fits(way, *lowered))
    return fail(ErrorKind::NotApplicable, "the way is about another network", to_string(way));
  PlanOptions options;
  static_cast<Way&>(options) = way;
  if (way.schedule != Schedule::Given || !way.later.empty()) options.order = order(way);
  Candidate candidate;
  candidate.way = way;
  candidate.plan = TW_TRY(plan_memory(*lowered, config_, options));
  candidate.code = TW_TRY(emit(*lowered, config_, candidate.plan));
  candidate.run = TW_TRY(assemble(*lowered, config_, candidate.plan, candidate.code));
  candidate.cycles = TW_TRY(simulate_time(config_, candidate.run.insns)).cycles;
  return candidate;
}

Result<Compiled> Candidates::finish(const Candidate& candidate) const {
  const Lowered& lowered = *this->lowered(candidate.way.form, candidate.way.plain_strides);
  Compiled out;
  out.way = candidate.way;
  out.layers = layers_of(lowered, candidate.plan);
  out.program =
      TW_TRY(make_program(lowered, config_, candidate.plan, candidate.code, candidate.run));
  return out;
}

}  // namespace tilewright::dpu
