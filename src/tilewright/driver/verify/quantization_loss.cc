#include "tilewright/driver/verify/quantization_loss.h"

#include <algorithm>
#include <cmath>

#include "tilewright/compile/compile.h"
#include "tilewright/driver/console.h"
#include "tilewright/runtime/executor.h"

namespace tilewright::driver {
namespace {

constexpr double kMostDb = 200;

double decibel(double signal, double noise) {
  if (noise == 0) return kMostDb;
  return signal == 0 ? 0 : std::min(kMostDb, 10 * std::log10(signal / noise));
}

/// A graph on this CPU with some of its values as outputs.
Result<std::unique_ptr<runtime::Session>> open_with(const graph::Graph& graph,
                                                    const std::vector<std::string>& names,
                                                    const compile::CompileOptions& options) {
  graph::Graph watched = graph;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const auto id = static_cast<graph::ValueId>(v);
    const auto in = [id](const std::vector<graph::ValueId>& ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    const bool wanted = std::find(names.begin(), names.end(), graph.values[v].name) != names.end();
    if (wanted && !in(watched.outputs) && !in(watched.inputs)) watched.outputs.push_back(id);
  }
  compile::CompileOptions cpu = options;
  cpu.target = hw::as_target(options.host);
  return compile::open_session(TW_TRY(compile::compile_graph(watched, cpu)), {});
}

void add(ValueLoss& loss, const Array& exact, const Array& rounded, double scale) {
  double signal = 0, noise = 0;
  for (int64_t i = 0; i < exact.size(); ++i) {
    const double x = exact.get(i), difference = rounded.get(i) * scale - x;
    signal += x * x, noise += difference * difference;
  }
  loss.signal += signal, loss.noise += noise;
  loss.least_db = std::min(loss.least_db, decibel(signal, noise));
}

/// The scores of one output, sample after sample.
struct Scores {
  std::vector<Array> exact, rounded;
};

ClassLoss class_loss(const Scores& scores) {
  ClassLoss loss;
  double square = 0;
  int64_t count = 0;
  for (size_t s = 0; s < scores.exact.size(); ++s)
    for (int64_t i = 0; i < scores.exact[s].size(); ++i, ++count) {
      const double difference = scores.rounded[s].get(i) - scores.exact[s].get(i);
      square += difference * difference;
    }
  const double deviation = count == 0 ? 0 : std::sqrt(square / static_cast<double>(count));
  for (size_t s = 0; s < scores.exact.size(); ++s) {
    const Array &exact = scores.exact[s], &rounded = scores.rounded[s];
    const int64_t classes = exact.shape().empty() ? 1 : exact.shape().back();
    if (classes < 2) continue;
    for (int64_t row = 0; row < exact.size(); row += classes) {
      int64_t first = 0, got = 0;
      for (int64_t c = 1; c < classes; ++c) {
        if (exact.get(row + c) > exact.get(row + first)) first = c;
        if (rounded.get(row + c) > rounded.get(row + got)) got = c;
      }
      double second = -INFINITY;
      for (int64_t c = 0; c < classes; ++c)
        if (c != first) second = std::max(second, exact.get(row + c));
      const bool clear = exact.get(row + first) - second > 3 * deviation;
      ++loss.rows, loss.agree += got == first;
      loss.clear += clear, loss.clear_agree += clear && got == first;
    }
  }
  return loss;
}

/// A value of the integer graph and the f32 value it stands for.
struct Layer {
  std::string integer, exact;
  double scale = 1;
};

std::vector<Layer> layers_of(const graph::QuantizedGraph& quantized) {
  std::vector<Layer> layers;
  const auto add_layer = [&](graph::ValueId id) {
    const auto v = static_cast<size_t>(id);
    if (id < 0 || quantized.origins[v].empty() || quantized.scales[v].size() != 1) return;
    layers.push_back(
        {quantized.graph.values[v].name, quantized.origins[v], quantized.scales[v][0]});
  };
  for (const graph::Node& node : quantized.graph.nodes)
    for (const graph::ValueId id : node.outputs) add_layer(id);
  return layers;
}

}  // namespace

double ValueLoss::sqnr_db() const { return decibel(signal, noise); }

Result<QuantizationLoss> quantization_loss(const compile::QuantizedModel& model,
                                           const compile::Samples& samples,
                                           const compile::CompileOptions& options) {
  const graph::Graph &f32 = *model.prepared, &integer = model.quantized.graph;
  const std::vector<Layer> layers = layers_of(model.quantized);
  std::vector<std::string> exact_names, integer_names;
  for (const Layer& layer : layers)
    exact_names.push_back(layer.exact), integer_names.push_back(layer.integer);
  const auto exact = TW_TRY(open_with(f32, exact_names, options));
  const auto rounded = TW_TRY(open_with(integer, integer_names, options));
  QuantizationLoss loss;
  loss.samples = samples.size();
  for (const Layer& layer : layers) loss.layers.push_back({layer.exact, 0, 0, kMostDb});
  std::vector<Scores> scores(f32.outputs.size());
  for (size_t o = 0; o < f32.outputs.size(); ++o) {
    const std::string& name = f32.values[static_cast<size_t>(f32.outputs[o])].name;
    loss.outputs.push_back({{name, 0, 0, kMostDb}, {}});
  }
  const auto is_input = [&](const std::string& name) {
    return std::any_of(f32.inputs.begin(), f32.inputs.end(), [&](graph::ValueId id) {
      return f32.values[static_cast<size_t>(id)].name == name;
    });
  };
  Progress progress("comparing");
  for (size_t s = 0; s < samples.size(); ++s) {
    TW_TRY_STATUS(check_interrupt());
    progress.update(static_cast<int64_t>(s), static_cast<int64_t>(samples.size()), "");
    for (const auto& [name, value] : samples[s]) {
      TW_TRY_STATUS(exact->set_input(name, value));
      TW_TRY_STATUS(rounded->set_input(name, value));
    }
    TW_TRY_STATUS(exact->run());
    TW_TRY_STATUS(rounded->run());
    for (size_t l = 0; l < layers.size(); ++l)
      add(loss.layers[l],
          is_input(layers[l].exact) ? samples[s].at(layers[l].exact)
                                    : TW_TRY(exact->get_output(layers[l].exact)),
          TW_TRY(rounded->get_output(layers[l].integer)), layers[l].scale);
    for (size_t o = 0; o < scores.size(); ++o) {
      // The next run overwrites what a session hands out.
      scores[o].exact.push_back(TW_TRY(exact->get_output(loss.outputs[o].value.name)).clone());
      scores[o].rounded.push_back(
          TW_TRY(rounded->get_output(integer.values[static_cast<size_t>(integer.outputs[o])].name))
              .clone());
      add(loss.outputs[o].value, scores[o].exact.back(), scores[o].rounded.back(), 1);
    }
  }
  for (size_t o = 0; o < scores.size(); ++o) loss.outputs[o].classes = class_loss(scores[o]);
  return loss;
}

}  // namespace tilewright::driver
