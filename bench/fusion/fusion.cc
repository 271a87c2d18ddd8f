// Figure 4 of the TVM paper on this CPU or a GPU: groups of operators as one kernel and as one
// each. Usage: bench_fusion [--threads N] [--seconds S] [--json FILE] [--device opencl|cuda]. Both
// forms run in turn, so that a slow moment of the machine hits both; medians and their ratio are
// printed. Times on a GPU are those of its kernels, by its own clock.
#include <fmt/format.h>
#include <fmt/os.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/base/statistics.h"
#include "tilewright/compile/backends.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/devices.h"
#include "tilewright/compile/gpu/backend.h"
#include "tilewright/graph/ir/builder.h"
#include "tilewright/runtime/executor.h"

namespace tilewright {
namespace {

using graph::Builder;
using graph::ValueId;

struct Options {
  int threads = hw::host().cores;
  double seconds = 2;  ///< of each form of each workload
  std::string json;
  std::string device;  ///< empty: this CPU
};

struct Workload {
  std::string name, shape;
  Result<graph::Graph> graph;
};

/// Values between -1 and 1, always the same.
Array values(Shape shape, uint64_t seed) {
  Array array(DType::F32, std::move(shape));
  Rng rng(seed);
  for (int64_t i = 0; i < array.size(); ++i)
    array.set(i, static_cast<double>(rng.between(-1000, 1000)) / 1000);
  return array;
}

/// Convolution, batch normalisation and ReLU.
Result<graph::Graph> conv_bn_relu(int64_t channels, int64_t filters, int64_t size, int64_t kernel,
                                  int64_t groups) {
  Builder b("conv_bn_relu");
  const ValueId x = b.input("x", DType::F32, {1, channels, size, size});
  const ValueId w = b.constant("w", values({filters, channels / groups, kernel, kernel}, 1));
  const int64_t pad = kernel / 2;
  const ValueId conv = b.node(
      "Conv", {x, w}, {{"group", groups}, {"pads", std::vector<int64_t>{pad, pad, pad, pad}}});
  // Batch normalisation at inference: a scale and a shift of each channel.
  const auto channel = [&](const char* name, uint64_t seed) {
    return b.constant(name, values({1, filters, 1, 1}, seed));
  };
  const ValueId scaled = b.node("Mul", {conv, channel("scale", 2)});
  const ValueId bn = b.node("Add", {scaled, channel("shift", 3)});
  b.output(b.node("Relu", {bn}), "y");
  return b.finish();
}

/// One step of a recurrent cell, h' = tanh(W x + U h + b).
Result<graph::Graph> rnn_cell(int64_t hidden) {
  Builder b("rnn_cell");
  const ValueId x = b.input("x", DType::F32, {1, hidden}),
                h = b.input("h", DType::F32, {1, hidden});
  const auto product = [&](ValueId v, uint64_t seed) {
    return b.node("MatMul", {v, b.constant("w", values({hidden, hidden}, seed))});
  };
  const ValueId sum = b.node("Add", {product(x, 1), product(h, 2)});
  b.output(b.node("Tanh", {b.node("Add", {sum, b.constant("b", values({hidden}, 3))})}), "next");
  return b.finish();
}

/// One step of a long short-term memory cell.
Result<graph::Graph> lstm_cell(int64_t hidden) {
  Builder b("lstm_cell");
  const ValueId x = b.input("x", DType::F32, {1, hidden}),
                h = b.input("h", DType::F32, {1, hidden});
  const ValueId c = b.input("c", DType::F32, {1, hidden});
  uint64_t seed = 0;
  const auto gate = [&](const char* activation) {
    const ValueId wx = b.node("MatMul", {x, b.constant("w", values({hidden, hidden}, ++seed))});
    const ValueId uh = b.node("MatMul", {h, b.constant("u", values({hidden, hidden}, ++seed))});
    const ValueId sum =
        b.node("Add", {b.node("Add", {wx, uh}), b.constant("b", values({hidden}, ++seed))});
    return b.node(activation, {sum});
  };
  const ValueId input = gate("Sigmoid"), forget = gate("Sigmoid"), output = gate("Sigmoid");
  const ValueId candidate = gate("Tanh");
  const ValueId next =
      b.node("Add", {b.node("Mul", {forget, c}), b.node("Mul", {input, candidate})});
  b.output(next, "c_next");
  b.output(b.node("Mul", {output, b.node("Tanh", {next})}), "h_next");
  return b.finish();
}

std::vector<Workload> workloads() {
  std::vector<Workload> all;
  all.push_back({"conv+bn+relu", "128x28x28 1x1x128x256", conv_bn_relu(128, 256, 28, 1, 1)});
  all.push_back(
      {"depthwise-conv+bn+relu", "512x14x14 3x3x512", conv_bn_relu(512, 512, 14, 3, 512)});
  all.push_back({"rnn cell", "hidden 128", rnn_cell(128)});
  all.push_back({"lstm cell", "hidden 128", lstm_cell(128)});
  return all;
}

/// A compiled form with inputs bound.
struct Form {
  compile::CompiledModel model;
  std::unique_ptr<runtime::Session> session;
  std::shared_ptr<compile::LaunchLog> log = std::make_shared<compile::LaunchLog>();
  size_t kernels = 0;
  std::vector<double> us;

  /// Time of all kernels on the GPU so far.
  double device_ns() const {
    double ns = 0;
    for (const auto& launch : log->entries) ns += launch.record->runs_ns();
    return ns;
  }
};

Result<Form> compile(const graph::Graph& graph, const Options& options, bool fuse) {
  compile::CompileOptions compile;
  compile.threads = options.threads;
  compile.fuse = fuse;
  if (!options.device.empty())
    compile.target =
        TW_TRY(compile::find_target(options.device.substr(0, options.device.find(':'))));
  Form form;
  form.model = TW_TRY(compile::compile_graph(graph, compile));
  form.kernels = form.model.program->steps.size();
  for (const auto& [name, launch] : form.model.launches)
    form.kernels += compile::gpu_code(launch)->program.calls.size() - 1;
  runtime::SessionOptions session;
  session.load_launch = compile::make_launch_loader({options.device, true, ""}, form.log);
  session.threads = options.threads;
  session.flush_denormals = true;
  form.session = TW_TRY(compile::open_session(form.model, session));
  uint64_t seed = 7;
  for (ValueId id : graph.inputs) {
    const graph::Value& value = graph.values[static_cast<size_t>(id)];
    TW_TRY_STATUS(form.session->set_input(value.name, values(value.type.shape, ++seed)));
  }
  return form;
}

/// The largest difference between the outputs of two forms.
Result<double> difference(const graph::Graph& graph, Form& a, Form& b) {
  double most = 0;
  for (ValueId id : graph.outputs) {
    const std::string& name = graph.values[static_cast<size_t>(id)].name;
    const std::vector<double> x = TW_TRY(a.session->get_output(name)).to_doubles();
    const std::vector<double> y = TW_TRY(b.session->get_output(name)).to_doubles();
    for (size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
  }
  return most;
}

Status time_in_turn(Form& a, Form& b, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(2 * seconds);
  for (int round = 0; round < 20 || Clock::now() < end; ++round)
    for (Form* form : {&a, &b})
      for (int run = 0; run < 12; ++run) {
        const auto start = Clock::now();
        const double before = form->device_ns();
        TW_TRY_STATUS(form->session->run());
        const std::chrono::duration<double, std::micro> took = Clock::now() - start;
        const double on_device = (form->device_ns() - before) / 1e3;
        if (run >= 2)  // the other form's data left the cache
          form->us.push_back(form->log->entries.empty() ? took.count() : on_device);
      }
  return {};
}

Result<nlohmann::ordered_json> measure(const Workload& workload, const Options& options) {
  if (!workload.graph) return tl::unexpected<Error>(workload.graph.error());
  const graph::Graph& graph = *workload.graph;
  Form fused = TW_TRY(compile(graph, options, true));
  Form apart = TW_TRY(compile(graph, options, false));
  TW_TRY_STATUS(time_in_turn(fused, apart, options.seconds));
  const double differs = TW_TRY(difference(graph, fused, apart));
  const double a = median(fused.us), b = median(apart.us);
  fmt::print("{:<24}{:<24}{:>3} {:>10.2f} {:>3} {:>10.2f} {:>8.2f}x {:>10.1e}\n", workload.name,
             workload.shape, fused.kernels, a, apart.kernels, b, b / a, differs);
  return nlohmann::ordered_json{{"workload", workload.name},    {"shape", workload.shape},
                                {"threads", options.threads},   {"fused_us", a},
                                {"fused_steps", fused.kernels}, {"apart_us", b},
                                {"apart_steps", apart.kernels}, {"speedup", b / a},
                                {"max_difference", differs}};
}

int run(const Options& options) {
  fmt::print("{:<24}{:<24}{:>14} {:>14} {:>9} {:>10}\n", "workload", "shape", "fused: n us",
             "apart: n us", "speedup", "max diff");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Workload& workload : workloads()) {
    Result<nlohmann::ordered_json> row = measure(workload, options);
    if (!row) {
      fmt::print(stderr, "{}: {}\n", workload.name, to_string(row.error()));
      return 1;
    }
    rows.push_back(*std::move(row));
  }
  if (!options.json.empty()) fmt::output_file(options.json).print("{}\n", rows.dump(2));
  return 0;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  tilewright::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    if (key == "--threads") {
      options.threads = std::max(1, std::atoi(argv[i + 1]));
    } else if (key == "--seconds") {
      options.seconds = std::atof(argv[i + 1]);
    } else if (key == "--json") {
      options.json = argv[i + 1];
    } else if (key == "--device") {
      options.device = argv[i + 1];
    } else {
      fmt::print(stderr,
                 "usage: bench_fusion [--threads N] [--seconds S] [--json FILE] "
                 "[--device opencl|cuda]\n");
      return 2;
    }
  }
  return tilewright::run(options);
}
