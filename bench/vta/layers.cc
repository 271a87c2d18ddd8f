// The convolutions of ResNet-18 on VTA: mapping, predicted and simulated cycles against the bound
// of the stream, with and without latency hiding (one copy of each buffer instead of two). Usage:
// bench_vta_layers [--config NAME] [--json]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/codegen/vta/vta.h"
#include "tilewright/rules/vta/schedule.h"
#include "tilewright/tensor/op.h"

namespace tilewright {
namespace {

using tensor::placeholder;
using tensor::Tensor;

struct Shape2d {
  const char* name;
  int64_t size, in, out, kernel, stride, pad;
  int repeats;  ///< in ResNet-18; C3 is in the table of the paper only
};
// source: VTA paper (arXiv 1807.04188), table 1.
constexpr Shape2d kLayers[] = {
    {"C2", 56, 64, 64, 3, 1, 1, 4},    {"C3", 56, 64, 64, 1, 1, 0, 0},
    {"C4", 56, 64, 128, 3, 2, 1, 1},   {"C5", 56, 64, 128, 1, 2, 0, 1},
    {"C6", 28, 128, 128, 3, 1, 1, 3},  {"C7", 28, 128, 256, 3, 2, 1, 1},
    {"C8", 28, 128, 256, 1, 2, 0, 1},  {"C9", 14, 256, 256, 3, 1, 1, 3},
    {"C10", 14, 256, 512, 3, 2, 1, 1}, {"C11", 14, 256, 512, 1, 2, 0, 1},
    {"C12", 7, 512, 512, 3, 1, 1, 3},
};

Tensor apply(const std::string& op, tensor::Attrs attrs, const std::vector<Tensor>& inputs) {
  tensor::OpCall call;
  call.domain = "tilewright", call.op = op, call.attrs = std::move(attrs);
  for (const Tensor& t : inputs) call.inputs.push_back({true, t.dtype(), t.shape(), {}});
  return tensor::find_op(call.domain, op)->define(call, inputs)[0];
}

/// Convolution, bias, rounding shift, clip, int8 store.
Func layer_func(const Shape2d& s, const vta::Config& c) {
  const int64_t in = s.in / c.block_in(), out = s.out / c.block_out();
  const Tensor x = placeholder("x", DType::I8, {1, in, s.size, s.size, c.batch(), c.block_in()});
  const Tensor w = placeholder(
      "w", DType::I8, {out, in, s.kernel, s.kernel, c.block_out(), c.block_in()}, ParamMode::Const);
  const Tensor bias =
      placeholder("bias", DType::I32, {1, out, 1, 1, c.batch(), c.block_out()}, ParamMode::Const);
  tensor::Attrs conv, quantise;
  conv.values["strides"] = std::vector<int64_t>{s.stride, s.stride};
  conv.values["pads"] = std::vector<int64_t>{s.pad, s.pad, s.pad, s.pad};
  quantise.values["shift"] = int64_t{8};
  quantise.values["lo"] = int64_t{0};
  const Tensor y = apply("Requantize", quantise, {apply("TileConv", conv, {x, w}), bias});
  return tensor::make_func(s.name, {x, w, bias}, {y}, MathMode::Fast, {"y"});
}

struct Measured {
  rules::VtaMapping mapping;
  int64_t predicted = 0;
  uint64_t cycles = 0, bound = 0;
  double gemm = 0;     ///< GEMM steps per cycle
  double seconds = 0;  ///< of the mapping search
};

Result<Measured> measure(const Func& func, const vta::Config& config, const Measured* hidden) {
  const schedule::Trace prologue = TW_TRY(rules::vta_prologue(func));
  const rules::VtaLayer layer = TW_TRY(rules::vta_layer(TW_TRY(schedule::replay(func, prologue))));
  Measured m;
  if (hidden != nullptr) {
    m.mapping = hidden->mapping;
    m.mapping.copies = m.mapping.result_copies = 1;
  } else {
    const auto begin = std::chrono::steady_clock::now();
    m.mapping = TW_TRY(rules::best_mapping(layer, config));
    m.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  m.predicted = rules::predict(layer, m.mapping, config).cycles;
  const Func scheduled =
      TW_TRY(schedule::replay(func, TW_TRY(rules::vta_trace(func, config, m.mapping))));
  const vta::Program program = TW_TRY(codegen::vta_program(scheduled, config));
  const std::vector<vta::Insn>& insns = program.runs[0].insns;
  vta::LaunchOptions options;
  options.record_times = true;
  const vta::LaunchReport report = TW_TRY(vta::simulate_time(config, insns, options));
  m.cycles = report.cycles;
  m.bound = vta::bound(config, insns).cycles();
  m.gemm = vta::utilisation(config, insns, report).gemm;
  return m;
}

double ratio(uint64_t a, uint64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

std::string json_of(const Shape2d& s, const Measured& m, const Measured& serial) {
  return fmt::format(
      "  {{\"layer\": \"{}\", \"repeats\": {}, \"mapping\": \"{}\", \"predicted\": {}, "
      "\"cycles\": {}, \"bound\": {}, \"gemm\": {:.4f}, \"cycles_serial\": {}, "
      "\"gemm_serial\": {:.4f}, \"search_seconds\": {:.3f}}}",
      s.name, s.repeats, to_string(m.mapping), m.predicted, m.cycles, m.bound, m.gemm,
      serial.cycles, serial.gemm, m.seconds);
}

Status run(const std::string& config_name, bool json) {
  const vta::Config config = TW_TRY(vta::load_config(config_name));
  uint64_t total = 0;
  double steps = 0;
  std::vector<std::string> rows;
  if (!json)
    fmt::print("{:<5}{:>9}{:>9}{:>9}{:>8}{:>8}{:>10}{:>8}{:>7}  {}\n", "layer", "cycles", "predict",
               "bound", "ratio", "gemm", "serial", "gemm", "search", "mapping");
  for (const Shape2d& s : kLayers) {
    const Func func = layer_func(s, config);
    const Measured m = TW_TRY(measure(func, config, nullptr));
    const Measured serial = TW_TRY(measure(func, config, &m));
    total += m.cycles * static_cast<uint64_t>(s.repeats);
    steps += m.gemm * static_cast<double>(m.cycles) * s.repeats;
    if (json)
      rows.push_back(json_of(s, m, serial));
    else
      fmt::print("{:<5}{:>9}{:>9}{:>9}{:>8.4f}{:>8.3f}{:>10}{:>8.3f}{:>6.2f}s  {}\n", s.name,
                 m.cycles, m.predicted, m.bound, ratio(m.cycles, m.bound), m.gemm, serial.cycles,
                 serial.gemm, m.seconds, to_string(m.mapping));
  }
  const double gemm = steps / static_cast<double>(total);
  if (json) {
    fmt::print(
        "{{\"config\": \"{}\", \"layers\": [\n{}\n], \"total_cycles\": {}, "
        "\"total_gemm\": {:.4f}}}\n",
        config_name, fmt::join(rows, ",\n"), total, gemm);
  } else {
    fmt::print("ResNet-18 (with repeats): {} cycles, GEMM utilisation {:.3f}\n", total, gemm);
  }
  return {};
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  std::string config = "vta";
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) json = true;
    if (std::strcmp(argv[i], "--config") == 0 && i + 1 < argc) config = argv[++i];
  }
  const tilewright::Status done = tilewright::run(config, json);
  if (done) return 0;
  fmt::print(stderr, "{}\n", tilewright::to_string(done.error()));
  return 1;
}
