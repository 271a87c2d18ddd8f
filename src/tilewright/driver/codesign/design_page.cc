#include "tilewright/driver/codesign/design_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/driver/codesign/report.h"
#include "tilewright/driver/report/html_page.h"
#include "tilewright/driver/report/svg_chart.h"

namespace tilewright::driver {
namespace {

using codesign::DesignResult;
using codesign::LayerResult;
using codesign::Objective;
using Rows = std::vector<std::vector<std::string>>;

constexpr Objective kPageObjectives[] = {Objective::Latency, Objective::Power, Objective::Area,
                                         Objective::Energy};

double number(int64_t value) { return static_cast<double>(value); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string kib(int64_t bytes) { return fmt::format("{:.1f} KiB", number(bytes) / 1024); }

std::string totals(const SearchSubject& subject, const DesignResult& result) {
  Rows rows = {{"", ""}};
  for (const Objective objective : kPageObjectives)
    rows.push_back({objective_axis(objective, subject.space.file().technology),
                    fmt::format("{:.4g}", codesign::value(result, objective))});
  rows.push_back({"time (ms)", fmt::format("{:.4g}", result.seconds * 1e3)});
  rows.push_back({"of it on the host", percent(result.host_cycles / result.cycles())});
  rows.push_back(
      {"pJ per multiplication",
       fmt::format("{:.3g}", result.consumption.energy_pj / number(subject.workload.macs()))});
  return html_table(rows);
}

std::string energy_by_level(const SearchSubject& subject, const DesignResult& result) {
  using codesign::EnergyLevels;
  const std::pair<const char*, double EnergyLevels::*> levels[] = {
      {"array", &EnergyLevels::array},           {"scratchpad", &EnergyLevels::scratchpad},
      {"private memory", &EnergyLevels::local},  {"memory port", &EnergyLevels::dma},
      {"instructions", &EnergyLevels::commands}, {"DRAM", &EnergyLevels::dram}};
  Rows rows = {{"energy by level", "uJ", "share of what is counted"}};
  double all = 0;
  std::map<std::string, double> sums;
  for (const auto& [name, level] : levels)
    for (size_t i = 0; i < result.layers.size(); ++i) {
      const double pj = number(subject.workload.layers[i].runs) * (result.layers[i].energy.*level);
      sums[name] += pj;
      all += pj;
    }
  if (all == 0)
    return fmt::format(
        "<p>{:.4g} uJ: this technology has the power of a design, not the energy of what it "
        "does.</p>\n",
        result.consumption.energy_pj * 1e-6);
  for (const auto& [name, level] : levels)
    rows.push_back({name, fmt::format("{:.4g}", sums[name] * 1e-6), percent(sums[name] / all)});
  rows.push_back({"with leakage and the host's time",
                  fmt::format("{:.4g}", result.consumption.energy_pj * 1e-6), ""});
  return html_table(rows);
}

/// Multiplications a cycle over multiplications per byte of DRAM, under the two roofs.
std::string roofline(const SearchSubject& subject, const codesign::Parts& design,
                     const DesignResult& result) {
  PlotSeries layers{"layers", {}, false}, roof{"roof", {}, true};
  const double peak = design.units, bus = design.bus_bytes;
  double least = peak / bus, most = peak / bus;
  for (size_t i = 0; i < result.layers.size(); ++i) {
    const LayerResult& one = result.layers[i];
    if (one.on_host) continue;
    const double macs = number(subject.workload.layers[i].layer.macs());
    const double intensity = macs / one.dram_bytes;
    layers.points.emplace_back(intensity, macs / one.cycles);
    least = std::min(least, intensity), most = std::max(most, intensity);
  }
  roof.points = {{least / 2, least / 2 * bus}, {peak / bus, peak}, {most * 2, peak}};
  return svg({"Roofline",
              "multiplications per byte of DRAM",
              "multiplications per cycle",
              true,
              true,
              {roof, layers}});
}

/// Steps of the array, those on padding included.
double array_steps(const LayerResult& result) {
  if (!result.vta) return number(result.cost.steps);
  double steps = 1;
  for (const int64_t extent : result.vta->layer.extent) steps *= number(extent);
  return steps;
}

/// Of what the banks can give in a cycle; of VTA, whose memories give an element each, nothing.
std::string scratchpad_rate(const codesign::Hardware& hardware, const LayerResult& result) {
  const auto* design = std::get_if<spatial::Design>(&hardware);
  if (design == nullptr) return {};
  return fmt::format("{:.3g} of {}",
                     number(result.cost.spad_reads[0] + result.cost.spad_reads[1]) / result.cycles,
                     design->banks * design->bank_bytes);
}

std::string layer_table(const SearchSubject& subject, const codesign::Hardware& hardware,
                        const DesignResult& result) {
  Rows rows = {{"layer", "runs", "cycles", "share of time", "of the bound", "units busy", "binds",
                "wasted on padding", "DRAM KiB", "scratchpad bytes/cycle", "uJ"}};
  const double units = codesign::Parts(hardware).units;
  for (size_t i = 0; i < result.layers.size(); ++i) {
    const codesign::WorkloadLayer& layer = subject.workload.layers[i];
    const LayerResult& one = result.layers[i];
    const double runs = number(layer.runs), macs = number(layer.layer.macs());
    std::vector<std::string> row = {
        layer.layer.name, std::to_string(layer.runs), fmt::format("{:.4g}", one.cycles),
        percent(runs * one.cycles / result.cycles()), percent(one.bound / one.cycles)};
    if (one.on_host) {
      row.insert(row.end(), {"", "host", "", "", "", ""});
    } else {
      row.insert(row.end(),
                 {percent(macs / (one.cycles * units)), std::string(cost::name(one.binds)),
                  percent(1 - macs / (array_steps(one) * units)),
                  fmt::format("{:.4g}", one.dram_bytes / 1024), scratchpad_rate(hardware, one),
                  fmt::format("{:.4g}", 1e-6 * (one.energy.chip() + one.energy.dram))});
    }
    rows.push_back(std::move(row));
  }
  return html_table(rows);
}

std::string what_binds(const SearchSubject& subject, const DesignResult& result) {
  std::map<std::string, double> cycles;
  for (size_t i = 0; i < result.layers.size(); ++i) {
    const LayerResult& one = result.layers[i];
    cycles[one.on_host ? "host: layers" : std::string(cost::name(one.binds))] +=
        number(subject.workload.layers[i].runs) * one.cycles;
  }
  double layers = 0;
  for (const auto& [name, of] : cycles) layers += of;
  cycles["host: everything else"] = result.cycles() - layers;
  Rows rows = {{"what binds", "cycles", "share"}};
  for (const auto& [name, of] : cycles)
    rows.push_back({name, fmt::format("{:.4g}", of), percent(of / result.cycles())});
  return html_table(rows);
}

/// `spad_kb 256 -> 192`: the parameters in which two points differ.
std::string difference(const codesign::DesignSpace& space, const search::Point& from,
                       const search::Point& to) {
  std::string text;
  const auto& decisions = space.points().decisions();
  for (size_t d = 0; d < decisions.size(); ++d)
    if (from[d] != to[d])
      text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", decisions[d].name,
                          decisions[d].values[static_cast<size_t>(from[d])].text,
                          decisions[d].values[static_cast<size_t>(to[d])].text);
  return text;
}

std::string sensitivity(const SearchSubject& subject, codesign::DesignEvaluator& evaluator,
                        const search::Point& point, const DesignResult& here) {
  Rows rows = {{"one step", "latency", "power", "area", "energy", ""}};
  for (const search::Point& next : subject.space.points().neighbours(point)) {
    if (next == point) continue;
    rows.push_back({difference(subject.space, point, next)});
    if (!subject.space.legal(next)) {
      rows.back().insert(rows.back().end(), {"", "", "", "", subject.space.reasons(next)[0]});
      continue;
    }
    const DesignResult there = evaluator.evaluate(subject.space.hardware(next));
    for (const Objective objective : kPageObjectives)
      rows.back().push_back(fmt::format(
          "{:+.1f} %",
          100 * (codesign::value(there, objective) / codesign::value(here, objective) - 1)));
    const auto outcome = codesign::outcome(there, subject.goals.objectives, subject.goals.limits);
    rows.back().emplace_back(search::feasible(outcome) ? "" : "breaks a limit");
  }
  return html_table(rows);
}

}  // namespace

std::string loop_nest(const spatial::Design& design, const cost::SpatialLayer& layer,
                      const cost::SpatialMapping& mapping) {
  const cost::SpatialUnit unit(design, layer, mapping.choice);
  std::string text = "DRAM\n", indent = "  ";
  for (int place = 0; place < unit.loops; ++place) {
    const auto loop = static_cast<size_t>(mapping.order[static_cast<size_t>(place)]);
    const int64_t extent = layer.loops[loop].extent, tile = mapping.tile[loop];
    if (tile >= extent) continue;
    text += fmt::format("{}for {} in 0..{} by {}\n", indent, layer.loops[loop].name, extent, tile);
    indent += "  ";
  }
  text += fmt::format("{}scratchpad, {} KiB:", indent, design.spad_kb);
  for (const int tensor : {0, 1})
    text += fmt::format(
        "{} {} {} x {}", tensor == 0 ? "" : ",", layer.tensors[static_cast<size_t>(tensor)].name,
        mapping.copies[static_cast<size_t>(tensor)], kib(unit.buffer_bytes(tensor, mapping.tile)));
  text += fmt::format("\n{}private memory, {} KiB: result {} x {}", indent, design.local_kb,
                      mapping.copies[cost::kSpatialResult],
                      kib(4 * unit.sums_per_part(mapping.tile) * unit.parts));
  if (const int64_t stays = unit.stationary_per_part(mapping.tile) * unit.parts)
    text += fmt::format(" {} {}", layer.tensors[static_cast<size_t>(mapping.choice.second())].name,
                        kib(stays));
  text += fmt::format("\n{}one COMPUTE\n", indent);
  for (int place = unit.loops; place-- > 0;) {
    const int number = unit.inner[static_cast<size_t>(place)];
    const auto loop = static_cast<size_t>(number);
    const int64_t tile = mapping.tile[loop], lanes = unit.lanes[loop];
    if (cost::ceil_div(tile, lanes) == 1) continue;
    indent += "  ";
    text += fmt::format("{}for {} in 0..{}{}\n", indent, layer.loops[loop].name, tile,
                        lanes > 1 ? fmt::format(" by {}", lanes) : "");
  }
  indent += "  ";
  text += fmt::format("{}array {} x {}:", indent, design.rows, design.cols);
  bool any = false;
  for (size_t loop = 0; loop < layer.loops.size(); ++loop)
    if (unit.lanes[loop] > 1) {
      text += fmt::format(" {} {}", layer.loops[loop].name,
                          std::min(unit.lanes[loop], mapping.tile[loop]));
      any = true;
    }
  return text + (any ? " at once\n" : " one product\n");
}

namespace {

std::string mappings(const SearchSubject& subject, const codesign::Hardware& hardware,
                     const DesignResult& result) {
  const auto* design = std::get_if<spatial::Design>(&hardware);
  std::string page;
  for (size_t i = 0; i < result.layers.size(); ++i) {
    const codesign::WorkloadLayer& layer = subject.workload.layers[i];
    const LayerResult& one = result.layers[i];
    if (one.on_host) continue;
    const std::string nest =
        design != nullptr ? loop_nest(*design, layer.layer, one.mapping) + "\n" : "";
    page += fmt::format("<details><summary>{}</summary><pre>{}{}</pre></details>\n",
                        html_text(layer.layer.name), html_text(nest),
                        html_text(codesign::mapping_text(layer, one)));
  }
  return page;
}

std::string programs(const std::vector<DesignPackage>& packages) {
  std::string page;
  for (const DesignPackage& package : packages)
    page += package.problem.empty()
                ? fmt::format(
                      "<p>Its program: <code>{}</code>, mapped by the compiler. Models are "
                      "calibrated with random inputs.</p>\n",
                      html_text(package.file))
                : fmt::format("<p>No {}: {}</p>\n", html_text(package.file),
                              html_text(package.problem));
  return page;
}

}  // namespace

std::string design_page(const SearchSubject& subject, codesign::LayerMapper mapper,
                        const search::Point& point, const std::string& name,
                        const std::vector<DesignPackage>& packages) {
  codesign::DesignEvaluator evaluator(subject.workload, subject.space.file().technology,
                                      std::move(mapper));
  const codesign::Hardware hardware = subject.space.hardware(point);
  const DesignResult result = evaluator.evaluate(hardware);
  std::string page = html_head("design " + name);
  page += fmt::format("<h1>Design {} for {}</h1>\n<p>All figures are those of the model.</p>\n",
                      html_text(name), html_text(subject.workload.name));
  page += programs(packages);
  page += totals(subject, result) + "<h2>Energy</h2>\n" + energy_by_level(subject, result);
  page += "<h2>Time</h2>\n" + what_binds(subject, result) + roofline(subject, hardware, result);
  page += layer_table(subject, hardware, result);
  page += "<h2>What one step of each parameter changes</h2>\n" +
          sensitivity(subject, evaluator, point, result);
  page += "<h2>Mappings</h2>\n" + mappings(subject, hardware, result);
  page +=
      fmt::format("<h2>The design</h2>\n<pre>{}</pre>\n", html_text(codesign::to_toml(hardware)));
  return page + technology_note(subject.space.file().technology) + "</body></html>\n";
}

}  // namespace tilewright::driver
