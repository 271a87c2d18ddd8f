// From the times of instructions to the times of layers.
#include "tilewright/accel/dpu/sim/report.h"

#include <algorithm>
#include <limits>

#include "tilewright/accel/dpu/sim/stream.h"
#include "tilewright/accel/dpu/sim/timing.h"

namespace tilewright::dpu {
namespace {

/// Adds instructions [begin, end) to `use`; `inits` holds at `begin`, and at `end` afterwards.
void add_insns(const Config& config, const Run& run, const LaunchReport& report, size_t begin,
               size_t end, Inits& inits, LayerUse& use) {
  Counters counters;
  use.begin = std::numeric_limits<uint64_t>::max();
  for (size_t i = begin; i < end; ++i) {
    const Insn& insn = run.insns[i];
    inits.update(insn.op);
    if (std::holds_alternative<End>(insn.op)) continue;
    use.begin = std::min(use.begin, report.times[i].begin);
    use.end = std::max(use.end, report.times[i].end);
    use.busy[static_cast<size_t>(unit_of(insn))] += busy_cycles(config, insn.op, inits);
    count(config, insn, inits, counters);
  }
  use.begin = std::min(use.begin, use.end);
  use.macs = counters.macs;
}

}  // namespace

uint64_t LayerUse::bound() const {
  const auto of = [&](Unit unit) { return busy[static_cast<size_t>(unit)]; };
  return std::max({of(Unit::Conv), of(Unit::Misc), of(Unit::Load) + of(Unit::Save)});
}

std::string LayerUse::bound_by() const {
  const uint64_t most = bound();
  if (busy[static_cast<size_t>(Unit::Conv)] == most) return "conv";
  return busy[static_cast<size_t>(Unit::Misc)] == most ? "misc" : "ddr";
}

std::vector<LayerUse> per_layer(const Config& config, const Run& run, const LaunchReport& report) {
  std::vector<LayerUse> layers;
  Inits inits;
  size_t at = 0;
  for (const Span& span : run.spans) {
    for (; at < span.begin; ++at) inits.update(run.insns[at].op);
    LayerUse& use = layers.emplace_back();
    use.name = span.name;
    add_insns(config, run, report, span.begin, span.end, inits, use);
    at = span.end;
  }
  return layers;
}

LayerUse whole(const Config& config, const Run& run, const LaunchReport& report) {
  LayerUse use;
  Inits inits;
  add_insns(config, run, report, 0, run.insns.size(), inits, use);
  return use;
}

}  // namespace tilewright::dpu
