// A run of the cycle simulator as a trace for ui.perfetto.dev: one row per module with its
// instructions and what it waited for, and one row with the layers. One cycle is one unit of time.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tilewright/accel/vta/sim/stream.h"
#include "tilewright/accel/vta/sim/timing.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

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

class Trace {
 public:
  void row(size_t id, std::string_view row_name) {
    add(fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
                    id, quoted(std::string(row_name))));
    add(fmt::format(
        R"({{"ph":"M","pid":1,"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
        id, id));
  }
  void slice(size_t id, const std::string& slice_name, std::string_view category, uint64_t begin,
             uint64_t end, const std::string& args) {
    if (end <= begin) return;
    add(fmt::format(
        R"({{"ph":"X","pid":1,"tid":{},"name":{},"cat":"{}","ts":{},"dur":{},"args":{{{}}}}})", id,
        quoted(slice_name), category, begin, end - begin, args));
  }
  std::string finish() && { return text_ + "\n]}\n"; }

 private:
  void add(const std::string& event) {
    text_ += text_.back() == '[' ? "\n" : ",\n";
    text_ += event;
  }
  std::string text_ = R"({"displayTimeUnit":"ns","traceEvents":[)";
};

}  // namespace

std::string perfetto_trace(const Config& config, const Run& run, const LaunchReport& report) {
  TW_CHECK(report.times.size() == run.insns.size(), "{} times for {} instructions",
           report.times.size(), run.insns.size());
  const std::vector<Module> chain = modules(config);
  Trace trace;
  for (size_t m = 0; m < chain.size(); ++m) trace.row(m + 1, name(chain[m]));
  const size_t spans = chain.size() + 1;
  trace.row(spans, "layers");
  for (const InsnTime& time : report.times) {
    const Insn& insn = run.insns[time.insn];
    const auto at = std::find(chain.begin(), chain.end(), module_of(config, insn));
    const auto place = static_cast<int>(at - chain.begin());
    const size_t row = static_cast<size_t>(place) + 1;
    trace.slice(row, std::string(stall_text(time, place)), "stall", time.ready, time.begin, "");
    const uint64_t alone = alone_cycles(config, insn), took = time.end - time.begin;
    trace.slice(row, std::string(kind(insn)), "insn", time.begin, time.end,
                fmt::format(R"("insn":{},"text":{},"waits for memory":{})", time.insn,
                            quoted(disassemble(config, insn)), took - std::min(took, alone)));
  }
  for (const LayerUse& layer : per_layer(config, run, report))
    trace.slice(spans, layer.name, "layer", layer.begin, layer.end,
                fmt::format(R"("bound":{},"gemm %":{:.2f})", layer.bound.cycles(),
                            100 * gemm_utilisation(layer)));
  return std::move(trace).finish();
}

}  // namespace tilewright::vta
