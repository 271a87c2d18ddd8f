#include "tilewright/driver/codesign/choices_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tilewright/driver/cli.h"

namespace tilewright::driver {
namespace {

using codesign::OperandUse;
using codesign::TensorizeChoice;
using codesign::UnitChoices;
using cost::Computation;
using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

std::vector<UnitChoices> on_units(const cost::Computation& computation,
                                  const std::vector<spatial::Design>& designs, bool cycles) {
  std::vector<UnitChoices> units;
  for (const spatial::Design& design : designs) {
    units.push_back(codesign::choices_of(computation, design));
    if (cycles) codesign::predict_cycles(computation, design, units.back());
  }
  return units;
}

/// `i=x j=k k=c`
std::string loops_text(const TensorizeChoice& choice) {
  std::string text;
  for (const auto& [unit, loop] : choice.loops)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", unit, loop);
  return text;
}

std::string operands_text(const TensorizeChoice& choice) {
  std::string text;
  for (const OperandUse& use : choice.operands)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", use.role, use.tensor);
  return text;
}

/// `A along l, i 64 apart`: elements of l are neighbours, rows of i lie 64 elements apart.
std::string use_text(const OperandUse& use) {
  if (use.packed) return fmt::format("{} packed", use.tensor);
  const std::string rows =
      use.row.empty() ? "" : fmt::format(" ({} {} apart)", use.row, use.row_stride);
  if (!use.gathered) return fmt::format("{} along {}{}", use.tensor, use.lane, rows);
  return fmt::format("{} gathers {} {} apart{}", use.tensor, use.lane, use.stride, rows);
}

/// What would have to move so that nothing is gathered.
std::string change_text(const TensorizeChoice& choice) {
  std::string text;
  for (const OperandUse& use : choice.operands)
    if (use.gathered)
      text += fmt::format("{}{} innermost in {}: {} bytes", text.empty() ? "" : ", ", use.lane,
                          use.tensor, use.change_bytes);
  return text;
}

std::string sizes_text(const cost::Computation& computation) {
  std::string text;
  for (const cost::SpatialLoop& loop : computation.loops)
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", loop.name, loop.extent);
  return fmt::format("{}; {} multiplications", text, computation.macs());
}

void add_rows(const UnitChoices& unit, Rows& rows) {
  if (unit.choices.empty()) rows.push_back({unit.unit, "none: " + unit.none});
  for (size_t i = 0; i < unit.choices.size(); ++i) {
    const TensorizeChoice& choice = unit.choices[i];
    if (choice.same_as) continue;
    const auto ways = 1 + std::count_if(unit.choices.begin(), unit.choices.end(),
                                        [&](const auto& other) { return other.same_as == i; });
    std::string reads;
    for (const OperandUse& use : choice.operands)
      reads += (reads.empty() ? "" : ", ") + use_text(use);
    if (!choice.unusable.empty()) reads = "unusable: " + choice.unusable;
    rows.push_back({unit.unit,
                    loops_text(choice) + (ways > 1 ? fmt::format(" ({} ways)", ways) : ""),
                    operands_text(choice), fmt::format("{:.1f} %", 100 * choice.idle),
                    choice.cycles ? fmt::format("{:.4g}", *choice.cycles) : "", reads,
                    choice.unusable.empty() ? change_text(choice) : ""});
  }
}

constexpr size_t kCycles = 4;  ///< the column

std::string computation_text(const ComputationReport& report) {
  const cost::Computation& c = report.computation;
  std::string text = fmt::format("{}: {}\n  {}\n", report.title, to_string(c), sizes_text(c));
  for (const std::string& note : codesign::notes_on(c)) text += fmt::format("  note: {}\n", note);
  Rows rows = {{"unit", "loops", "operands", "idle lanes", "cycles", "reads", "without gathering"}};
  for (const UnitChoices& unit : report.units) add_rows(unit, rows);
  const bool cycles = std::any_of(rows.begin() + 1, rows.end(), [](const auto& row) {
    return row.size() > kCycles && !row[kCycles].empty();
  });
  const size_t width = rows[0].size();
  for (std::vector<std::string>& row : rows) {
    row.resize(width);
    if (!cycles) row.erase(row.begin() + kCycles);
  }
  return text + table(rows);
}

bool sums(const cost::Computation& c) {
  return std::any_of(c.loops.begin(), c.loops.end(), [](const auto& loop) { return loop.reduces; });
}

/// Sets of loops of each stage on a unit: `2 + 0`.
std::string stage_counts(const codesign::AssociationOrder& order, const spatial::Design& design) {
  std::string text;
  for (const cost::Computation& stage : order.stages)
    text += (text.empty() ? "" : " + ") +
            (sums(stage) ? std::to_string(codesign::choices_of(stage, design).counts.loop_sets)
                         : std::string("host"));
  return text;
}

std::string chain_text(const codesign::Chain& chain, const std::vector<spatial::Design>& designs) {
  std::string text = fmt::format("{}\n  {} orders of contraction; sets of loops stage by stage\n",
                                 to_string(chain.product), chain.orders.size());
  Rows rows = {{"order", "", "multiplications", "bytes between"}};
  for (const spatial::Design& design : designs) rows[0].emplace_back(spatial::name(design.unit));
  for (size_t i = 0; i < chain.orders.size(); ++i) {
    const codesign::AssociationOrder& order = chain.orders[i];
    rows.push_back({std::to_string(i + 1), order.text, std::to_string(order.macs),
                    std::to_string(order.intermediate_bytes)});
    for (const spatial::Design& design : designs)
      rows.back().push_back(stage_counts(order, design));
  }
  return text + table(rows);
}

Json choice_json(const TensorizeChoice& choice) {
  Json json;
  for (const auto& [unit, loop] : choice.loops) json["loops"][unit] = loop;
  for (const OperandUse& use : choice.operands) {
    Json one = {{"role", use.role}, {"tensor", use.tensor}};
    if (choice.unusable.empty()) {
      one["lane"] = use.lane;
      one["stride"] = use.stride;
      if (!use.row.empty()) one["row"] = use.row, one["row_stride"] = use.row_stride;
      one["packed"] = use.packed;
      one["gathered"] = use.gathered;
      one["layout_change_bytes"] = use.change_bytes;
    }
    json["operands"].push_back(std::move(one));
  }
  json["idle_lanes"] = choice.idle;
  if (choice.cycles) json["cycles"] = *choice.cycles;
  if (choice.same_as) json["same_as"] = *choice.same_as;
  json["usable"] = choice.unusable.empty();
  if (!choice.unusable.empty()) json["why"] = choice.unusable;
  return json;
}

Json unit_json(const UnitChoices& unit) {
  Json json = {{"unit", unit.unit},
               {"literal_matches", unit.counts.literal},
               {"sound_matches", unit.counts.sound},
               {"sets_of_loops", unit.counts.loop_sets},
               {"choices", Json::array()}};
  if (!unit.none.empty()) json["why_none"] = unit.none;
  for (const TensorizeChoice& choice : unit.choices) json["choices"].push_back(choice_json(choice));
  return json;
}

}  // namespace

Result<SubjectReport> choices_report(const CodesignSubject& subject,
                                     const std::vector<spatial::Design>& designs, bool cycles) {
  SubjectReport report;
  report.name = subject.name;
  const auto add = [&](std::string title, cost::Computation computation) {
    std::vector<UnitChoices> units = on_units(computation, designs, cycles);
    report.computations.push_back({std::move(title), std::move(computation), std::move(units)});
  };
  if (subject.func) {
    cost::Computations found = cost::computations_of(*subject.func);
    report.chains = codesign::chains_of(found);
    for (const cost::Computation& sum : found.sums) add(sum.name, sum);
    report.others = std::move(found.others);
    return report;
  }
  const codesign::Workload workload = TW_TRY(codesign::workload_of(*subject.graph));
  for (const codesign::WorkloadLayer& layer : workload.layers)
    add(layer.layer.name, cost::computation_of(layer.layer));
  for (const codesign::HostNode& node : workload.host)
    report.others.push_back(
        {node.node + " (" + node.op + ")", node.reason, false, node.bytes, node.macs});
  return report;
}

std::string to_text(const SubjectReport& report, const std::vector<spatial::Design>& designs) {
  std::string text;
  for (const ComputationReport& one : report.computations) text += computation_text(one) + "\n";
  for (const codesign::Chain& chain : report.chains) text += chain_text(chain, designs) + "\n";
  if (report.others.empty()) return text;
  Rows rows = {{"on no unit", "who", "why"}};
  for (const cost::OtherStage& other : report.others)
    rows.push_back({other.name, other.free ? "free" : "host", other.reason});
  return text + table(rows);
}

Json to_json(const SubjectReport& report, const std::vector<spatial::Design>& designs) {
  Json json = {{"subject", report.name}, {"computations", Json::array()}};
  for (const ComputationReport& one : report.computations) {
    Json computation = {{"name", one.title},
                        {"computation", to_string(one.computation)},
                        {"macs", one.computation.macs()}};
    for (const cost::SpatialLoop& loop : one.computation.loops)
      computation["loops"][loop.name] = loop.extent;
    computation["notes"] = codesign::notes_on(one.computation);
    for (const UnitChoices& unit : one.units) computation["units"].push_back(unit_json(unit));
    json["computations"].push_back(std::move(computation));
  }
  for (const codesign::Chain& chain : report.chains) {
    Json one = {{"product", to_string(chain.product)}};
    for (size_t i = 0; i < chain.orders.size(); ++i) {
      const codesign::AssociationOrder& order = chain.orders[i];
      Json item = {{"order", i + 1},
                   {"text", order.text},
                   {"macs", order.macs},
                   {"intermediate_bytes", order.intermediate_bytes}};
      for (const cost::Computation& stage : order.stages) {
        Json part = {{"computation", to_string(stage)}, {"on_host", !sums(stage)}};
        for (const spatial::Design& design : designs)
          part["sets_of_loops"][std::string(spatial::name(design.unit))] =
              codesign::choices_of(stage, design).counts.loop_sets;
        item["stages"].push_back(std::move(part));
      }
      one["orders"].push_back(std::move(item));
    }
    json["orders_of_contraction"].push_back(std::move(one));
  }
  for (const cost::OtherStage& other : report.others)
    json["others"].push_back({{"name", other.name},
                              {"free", other.free},
                              {"why", other.reason},
                              {"bytes", other.bytes},
                              {"macs", other.macs}});
  return json;
}

}  // namespace tilewright::driver
