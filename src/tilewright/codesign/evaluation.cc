#include "tilewright/codesign/evaluation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/operands.h"
#include "tilewright/rules/vta/mapping_text.h"

namespace tilewright::codesign {
namespace {

constexpr double kInt32Bytes = 4;

/// Every access of one run times what it costs. A LOAD writes the scratchpad, a step reads it;
/// sums are read and written by each step, and read once more by the STORE.
void add_energy(const spatial::Design& design, const cost::SpatialLayer& layer,
                const Energies& energies, LayerResult& result) {
  const cost::SpatialCost& cost = result.cost;
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  double spad = number(cost.spad_reads[0] + cost.spad_reads[1]), dram = 0;
  for (int t = 0; t < cost::kSpatialTensors; ++t) {
    const cost::SpatialTraffic& traffic = cost.dram[t];
    dram += number(traffic.bytes);
    if (t != cost::kSpatialResult) spad += number(traffic.bytes + traffic.padding);
  }
  const cost::SpatialTensor& out = layer.tensors[cost::kSpatialResult];
  const double stored = number(cost.dram[cost::kSpatialResult].bytes / out.element_bytes);
  const double local = kInt32Bytes * (2 * number(spatial::sum_parts(design) * cost.steps) + stored);
  result.energy = {energies.mac * number(cost.steps * design.units()),
                   energies.spad_byte * spad,
                   energies.local_byte * local,
                   energies.dma_byte * dram,
                   energies.command * number(cost.instructions),
                   dram * energies.dram_byte};
}

double host_cycles(const WorkloadLayer& layer, const spatial::Host& host) {
  return static_cast<double>(layer.layer.macs()) / host.macs_per_cycle;
}

/// Whichever module works longest.
cost::SpatialBinds vta_binds(const rules::VtaCost& cost) {
  if (cost.load >= cost.compute && cost.load >= cost.store) return cost::SpatialBinds::Load;
  return cost.compute >= cost.store ? cost::SpatialBinds::Steps : cost::SpatialBinds::Store;
}

/// On the array.
void set_cost(const spatial::Design& design, const cost::SpatialLayer& layer,
              const Technology& technology, const cost::SpatialCost& cost, LayerResult& result) {
  result.cost = cost;
  result.binds = cost.binds;
  result.dram_bytes = static_cast<double>(cost.dram_bytes());
  result.cycles = cost.cycles;
  add_energy(design, layer, energies(design, technology), result);
}

void set_run(const vta::Config& config, const Technology& technology, VtaRun run,
             LayerResult& result) {
  const VtaBytes bytes = vta_bytes(run, config);
  result.cycles = static_cast<double>(run.cost.cycles);
  result.binds = vta_binds(run.cost);
  result.dram_bytes = bytes.read + bytes.written;
  result.energy = vta_energy(run, config, energies(config, technology));
  result.vta = std::move(run);
}

tl::unexpected<Error> does_not_fit(const WorkloadLayer& layer,
                                   const std::vector<std::string>& misfits) {
  return fail(ErrorKind::Capacity,
              fmt::format("the mapping of `{}` does not fit", layer.layer.name),
              fmt::format("{}", fmt::join(misfits, "; ")));
}

/// `first=input i=x j=k k=c`: a mapping up to its tiles.
std::string choice_text(const cost::SpatialLayer& layer, const cost::SpatialChoice& choice) {
  cost::SpatialMapping mapping;
  mapping.choice = choice;
  const std::string text = cost::to_string(layer, mapping);
  return text.substr(0, text.find(" tile="));
}

Status check_choice(const spatial::Design& design, const cost::SpatialLayer& layer,
                    const cost::SpatialChoice& choice) {
  const std::vector<cost::SpatialChoice> all = cost::choices(design, layer);
  if (std::find(all.begin(), all.end(), choice) != all.end()) return {};
  std::vector<std::string> texts;
  for (const cost::SpatialChoice& one : all) texts.push_back(choice_text(layer, one));
  return fail(
      ErrorKind::Usage,
      fmt::format("`{}` is no choice of {} for `{}`", choice_text(layer, choice),
                  spatial::name(design.unit), layer.name),
      texts.empty() ? "it has none" : fmt::format("its choices: {}", fmt::join(texts, "; ")));
}

Result<LayerResult> judge_on(const spatial::Design& design, const WorkloadLayer& layer,
                             const Technology& technology, std::string_view text) {
  LayerResult result;
  Result<cost::SpatialMapping> mapping = cost::parse_mapping(layer.layer, text);
  if (!mapping) {
    if (mapping.error().kind == ErrorKind::Invalid) mapping.error().kind = ErrorKind::Usage;
    return tl::unexpected<Error>(std::move(mapping.error()));
  }
  TW_TRY_STATUS(check_choice(design, layer.layer, mapping->choice));
  const auto misfits = cost::misfits(design, layer.layer, *mapping);
  if (!misfits.empty()) return does_not_fit(layer, misfits);
  result.mapping = *mapping;
  result.bound = cost::lower_bound(design, layer.layer);
  set_cost(design, layer.layer, technology,
           cost::SpatialEvaluator(design, layer.layer, mapping->choice).cost(*mapping), result);
  return result;
}

Result<LayerResult> judge_on(const vta::Config& config, const WorkloadLayer& layer,
                             const Technology& technology, std::string_view text) {
  VtaRun run;
  run.layer = TW_TRY(vta_layer(layer.layer, config));
  run.mapping = TW_TRY(rules::parse_vta_mapping(run.layer, text));
  const auto misfits = rules::misfits(run.layer, run.mapping, config);
  if (!misfits.empty()) return does_not_fit(layer, misfits);
  run.cost = rules::predict(run.layer, run.mapping, config);
  LayerResult result;
  result.bound = static_cast<double>(rules::layer_bound(run.layer, config));
  set_run(config, technology, std::move(run), result);
  return result;
}

double in_unit(const DesignResult& result, const Limit& limit) {
  return limit.unit == LimitUnit::Seconds ? result.seconds : value(result, limit.objective);
}

/// What decides which mapping of those that fit is the best, beside the array.
std::string without_array_and_memories(spatial::Design design) {
  design.name.clear();
  design.rows = design.cols = 1;
  design.spad_kb = design.local_kb = 0;
  design.clock_mhz = 0;
  design.host = {};
  return to_toml(design);
}

/// The same for arrays that cost the same under every mapping of the layer.
std::string array_of(const spatial::Design& design, const cost::SpatialLayer& layer) {
  int64_t rows = design.rows, cols = design.cols;
  if (spatial::works_as_one_row(design.unit)) rows = 1, cols = design.units();
  // Units of a Dot beyond the longest loop that is summed over have nothing to do; they make
  // the tree higher.
  if (design.unit == spatial::Unit::Dot) {
    int64_t longest = 1;
    for (const cost::SpatialLoop& loop : layer.loops)
      if (loop.reduces) longest = std::max(longest, loop.extent);
    cols = std::min(cols, longest);
  }
  return fmt::format("{} {} {} {} {}", spatial::name(design.unit), spatial::name(design.dataflow),
                     rows, cols, spatial::fill_cycles(design));
}

bool fits(const spatial::Design& design, const cost::SpatialLayer& layer,
          const cost::SpatialMapping& mapping) {
  return cost::SpatialEvaluator(design, layer, mapping.choice).fits(mapping);
}

/// `mapped`: the layer's mapping; nothing: none fits.
LayerResult on_array(const spatial::Design& design, const WorkloadLayer& layer,
                     const Technology& technology, const std::optional<cost::SpatialBest>& mapped) {
  LayerResult result;
  const double host = host_cycles(layer, design.host);
  result.bound = mapped ? cost::lower_bound(design, layer.layer) : host;
  result.on_host = !mapped || host < mapped->cost.cycles;
  if (mapped) {
    result.mapping = mapped->mapping;
    set_cost(design, layer.layer, technology, mapped->cost, result);
  }
  if (result.on_host) result.cycles = host, result.energy = {};
  return result;
}

void remember(const cost::SpatialMapping& mapping, std::vector<cost::SpatialMapping>& latest) {
  constexpr size_t kMost = 6;
  std::erase(latest, mapping);
  latest.push_back(mapping);
  if (latest.size() > kMost) latest.erase(latest.begin());
}

}  // namespace

double value(const DesignResult& result, Objective objective) {
  constexpr double kPico = 1e-12;
  switch (objective) {
    case Objective::Latency:
      return result.cycles();
    case Objective::Power:
      return result.consumption.power_mw;
    case Objective::PeakPower:
      return result.peak_power_mw;
    case Objective::Area:
      return result.area.total();
    case Objective::Energy:
      return result.consumption.energy_pj * kPico;
    case Objective::Edp:
      return result.consumption.energy_pj * kPico * result.seconds;
  }
  return 0;
}

DesignEvaluator::DesignEvaluator(Workload workload, Technology technology, LayerMapper mapper)
    : workload_(std::move(workload)),
      technology_(std::move(technology)),
      mapper_(std::move(mapper)),
      known_(workload_.layers.size()) {}

std::optional<cost::SpatialBest> DesignEvaluator::best(const spatial::Design& design,
                                                       const std::string& others, size_t place) {
  // A space of a million designs has tens of thousands that differ in more than memories.
  constexpr size_t kMostKept = 30000;
  const cost::SpatialLayer& layer = workload_.layers[place].layer;
  const std::string array = array_of(design, layer), key = array + "\n" + others;
  cost::SpatialMapperOptions options;
  {
    const std::scoped_lock lock(mutex_);
    if (known_[place].by_design.size() > kMostKept) known_[place].by_design.clear();
    for (const Solved& solved : known_[place].by_design[key]) {
      if (solved.spad_kb < design.spad_kb || solved.local_kb < design.local_kb) continue;
      if (solved.best && !fits(design, layer, solved.best->mapping)) continue;
      ++reused_;
      return solved.best;
    }
    options.known = known_[place].by_array[array];
  }
  const std::optional<cost::SpatialBest> found = cost::best_mapping(design, layer, options);
  const std::scoped_lock lock(mutex_);
  ++mapped_;
  known_[place].by_design[key].push_back({design.spad_kb, design.local_kb, found});
  if (found) remember(found->mapping, known_[place].by_array[array]);
  return found;
}

LayerResult DesignEvaluator::layer(const spatial::Design& design, size_t place) const {
  const WorkloadLayer& layer = workload_.layers[place];
  return on_array(design, layer, technology_, mapper_(design, layer.layer));
}

LayerResult DesignEvaluator::layer(const vta::Config& config, size_t place) const {
  const WorkloadLayer& layer = workload_.layers[place];
  LayerResult result;
  const double host = host_cycles(layer, host_of(config));
  Result<VtaRun> run = vta_run(layer.layer, config);
  if (!run || host < static_cast<double>(run->cost.cycles)) {
    result.on_host = true;
    result.cycles = host;
    result.bound = run ? static_cast<double>(rules::layer_bound(run->layer, config)) : host;
    return result;
  }
  result.bound = static_cast<double>(rules::layer_bound(run->layer, config));
  set_run(config, technology_, *std::move(run), result);
  return result;
}

LayerResult DesignEvaluator::once(const Hardware& hardware, const std::string& file, size_t place) {
  std::map<std::string, LayerResult>& known = known_[place].by_file;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = known.find(file); found != known.end()) {
      ++reused_;
      return found->second;
    }
  }
  LayerResult result =
      std::visit([&](const auto& design) { return layer(design, place); }, hardware);
  const std::scoped_lock lock(mutex_);
  ++mapped_;
  known.emplace(file, result);
  return result;
}

DesignResult DesignEvaluator::evaluate(const Hardware& hardware) {
  const size_t count = workload_.layers.size();
  std::vector<LayerResult> layers;
  const auto* design = std::get_if<spatial::Design>(&hardware);
  if (design != nullptr && !mapper_) {
    const std::string others = without_array_and_memories(*design);
    for (size_t i = 0; i < count; ++i)
      layers.push_back(
          on_array(*design, workload_.layers[i], technology_, best(*design, others, i)));
  } else {
    Hardware nameless = hardware;
    std::visit([](auto& one) { one.name.clear(); }, nameless);
    const std::string file = to_toml(nameless);
    for (size_t i = 0; i < count; ++i) layers.push_back(once(hardware, file, i));
  }
  return sum_up(workload_, technology_, hardware, std::move(layers));
}

std::string mapping_text(const WorkloadLayer& layer, const LayerResult& result) {
  return result.vta ? rules::to_string(result.vta->mapping)
                    : cost::to_string(layer.layer, result.mapping);
}

Result<LayerResult> judge(const Hardware& hardware, const WorkloadLayer& layer,
                          const Technology& technology, std::string_view mapping) {
  return std::visit(
      [&](const auto& design) { return judge_on(design, layer, technology, mapping); }, hardware);
}

DesignResult sum_up(const Workload& workload, const Technology& technology,
                    const Hardware& hardware, std::vector<LayerResult> layers) {
  const spatial::Host host = host_of(hardware);
  DesignResult result;
  double chip = 0, dram = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const double runs = static_cast<double>(workload.layers[i].runs);
    (layers[i].on_host ? result.host_cycles : result.accelerator_cycles) += runs * layers[i].cycles;
    chip += runs * layers[i].energy.chip();
    dram += runs * layers[i].energy.dram;
  }
  for (const HostNode& node : workload.host)
    result.host_cycles += static_cast<double>(node.bytes) / host.bytes_per_cycle +
                          static_cast<double>(node.macs) / host.macs_per_cycle;
  result.layers = std::move(layers);
  result.seconds = result.cycles() / (clock_mhz(hardware) * 1e6);
  result.consumption = consumption(energies(hardware, technology), chip, dram, result.seconds);
  result.peak_power_mw = peak_power(hardware, technology);
  result.area = area(hardware, technology);
  return result;
}

search::MultiOutcome outcome(const DesignResult& result, const std::vector<Objective>& objectives,
                             const std::vector<Limit>& limits) {
  search::MultiOutcome outcome;
  for (const Objective objective : objectives)
    outcome.objectives.push_back(value(result, objective));
  for (const Limit& limit : limits)
    outcome.violations.push_back(std::log10(in_unit(result, limit) / limit.value));
  return outcome;
}

}  // namespace tilewright::codesign
