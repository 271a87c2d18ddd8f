// A run of the cycle simulator as a trace: one row per module with its instructions and what it
// waited for, and one row with the layers.
#include <algorithm>

#include "tilewright/accel/vta/sim/stream.h"
#include "tilewright/accel/vta/sim/timing.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

std::string_view stall_text(const InsnTime& time, int place) {
  switch (time.stall) {
    case Stall::None:
      return "";
    case Stall::Token:
      return time.token_from < place ? "wait: token from the module before"
                                     : "wait: token from the module after";
    case Stall::Memory:
      return "wait: memory";
    case Stall::Queue:
      return "wait: instruction fetch";
    case Stall::Idle:
      return "idle";
  }
  return "";
}

std::string_view kind(const Insn& insn) {
  constexpr std::string_view kLoads[] = {"LOAD UOP", "LOAD WGT", "LOAD INP",
                                         "LOAD ACC", "LOAD",     "LOAD ACC8"};
  if (const auto* t = std::get_if<Transfer>(&insn.op)) {
    if (!t->moves()) return "NOP";
    return t->store ? "STORE" : kLoads[static_cast<size_t>(t->mem)];
  }
  if (const auto* gemm = std::get_if<Gemm>(&insn.op)) return gemm->reset ? "GEMM reset" : "GEMM";
  return std::holds_alternative<Alu>(insn.op) ? "ALU" : "FINISH";
}

}  // namespace

accel::RunTrace run_trace(const Config& config, const Run& run, const LaunchReport& report) {
  TW_CHECK(report.times.size() == run.insns.size(), "{} times for {} instructions",
           report.times.size(), run.insns.size());
  const std::vector<Module> chain = modules(config);
  accel::RunTrace trace;
  for (const Module module : chain) trace.add_row(std::string(name(module)));
  const size_t layers = trace.add_row("layers");
  for (const InsnTime& time : report.times) {
    const Insn& insn = run.insns[time.insn];
    const auto at = std::find(chain.begin(), chain.end(), module_of(config, insn));
    const auto place = static_cast<int>(at - chain.begin());
    const auto row = static_cast<size_t>(place);
    trace.add({row, std::string(stall_text(time, place)), "stall", time.ready, time.begin, {}});
    const uint64_t alone = alone_cycles(config, insn), took = time.end - time.begin;
    trace.add({row,
               std::string(kind(insn)),
               "insn",
               time.begin,
               time.end,
               {{"insn", uint64_t{time.insn}},
                {"text", disassemble(config, insn)},
                {"waits for memory", took - std::min(took, alone)}}});
  }
  for (const LayerUse& layer : per_layer(config, run, report))
    trace.add({layers,
               layer.name,
               "layer",
               layer.begin,
               layer.end,
               {{"bound", layer.bound.cycles()}, {"gemm %", 100 * gemm_utilisation(layer)}}});
  return trace;
}

}  // namespace tilewright::vta
