// Figures of FlexTensor's and Zhang's papers for FPGAs. Every number here is the cost model's.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "figures.h"
#include "tilewright/cost/fpga/common.h"
#include "tilewright/cost/fpga/port.h"
#include "tilewright/cost/fpga/testing/layers.h"
#include "tilewright/cost/sums/computation.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/tune/fpga/space.h"
#include "tilewright/tune/methods.h"

namespace tilewright::bench {
namespace {

using cost::FpgaBest;
using cost::FpgaModel;
using cost::FpgaSearch;
using cost::SpatialLayer;
using Sizes = std::array<int64_t, 3>;

constexpr Sizes kUniform = {64, 16, 1};  ///< the best uniform design of twelve that were tried

hw::FpgaDevice device(const std::string& name) { return hw::load_fpga_device(name).value(); }

FpgaModel model_of(const SpatialLayer& layer, const std::string& on = "vu9p",
                   DType dtype = DType::F32) {
  return FpgaModel::create(device(on), layer, {.dtype = dtype}).value();
}

FpgaBest best(const FpgaModel& model, const FpgaSearch& search = {}) {
  return cost::best_fpga_design(model, search).value();
}

/// A geometric mean.
class Mean {
 public:
  void add(double value) {
    sum_ += std::log(value);
    ++count_;
  }
  double value() const { return std::exp(sum_ / count_); }

 private:
  double sum_ = 0;
  int count_ = 0;
};

}  // namespace

void alexnet() {
  const double published[] = {7.67, 5.35, 3.79, 2.88, 1.93};  // from memory
  fmt::print(
      "| layer | cycles of half | model, computation ms | model, with ports ms | board ms |"
      "\n|---|---|---|---|---|\n");
  double sum = 0, with_ports = 0, board = 0;
  const auto layers = cost::alexnet_halves();
  for (size_t i = 0; i < layers.size(); ++i) {
    cost::FpgaOptions options;
    options.depth = i == 0 ? 0 : 20;
    const FpgaModel model = FpgaModel::create(device("vc707"), layers[i], options).value();
    cost::FpgaDesign design{.uo = 64, .ui = 7, .us = 1, .to = 64, .tc = 7};
    design.th = design.tw = model.extent(model.roles().rows);
    const double ms = 2 * model.time(design).compute / 1e5;
    const double full = 2 * best(model, {.sizes = Sizes{64, 7, 1}, .weight_ports = 1}).time.cycles;
    fmt::print("| {} | {:.0f} | {:.2f} | {:.2f} | {:.2f} |\n", i + 1, model.time(design).compute,
               ms, full / 1e5, published[i]);
    sum += ms;
    with_ports += full / 1e5;
    board += published[i];
  }
  fmt::print("| sum | | {:.2f} | {:.2f} | {:.2f} |\n", sum, with_ports, board);
}

void fig6c() {
  Mean gain, gain_overlap, without_c1, share, one_port;
  double least = 1, total = 0;
  fmt::print(
      "| | bound | uniform, no overlap | uniform | ours | design | share | gain |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const SpatialLayer& layer : cost::yolo_layers()) {
    const FpgaModel model = model_of(layer);
    const double bound = model.macs() / static_cast<double>(model.most_products());
    const FpgaBest ours = best(model), uniform = best(model, {.sizes = kUniform}),
                   alone = best(model, {.sizes = kUniform, .overlap = false});
    const double cycles = ours.time.cycles;
    fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {} | {:.3f} | {:.2f} |\n", layer.name,
               bound / 1e3, alone.time.cycles / 1e3, uniform.time.cycles / 1e3, cycles / 1e3,
               to_string(ours.design), bound / cycles, alone.time.cycles / cycles);
    gain.add(alone.time.cycles / cycles);
    gain_overlap.add(uniform.time.cycles / cycles);
    if (layer.name != "C1") without_c1.add(uniform.time.cycles / cycles);
    one_port.add(best(model, {.sizes = kUniform, .overlap = false, .weight_ports = 1}).time.cycles /
                 best(model, {.weight_ports = 1}).time.cycles);
    share.add(bound / cycles);
    least = std::min(least, bound / cycles);
    total += cycles;
  }
  fmt::print(
      "geometric means: over uniform without overlap {:.3f}, with one weight port on both "
      "sides {:.3f}; with overlap on both sides {:.3f}, without C1 {:.4f}\n",
      gain.value(), one_port.value(), gain_overlap.value(), without_c1.value());
  fmt::print("share of the bound: {:.4f}, worst {:.3f}; all layers {:.2f} ms\n", share.value(),
             least, total / 250e3);
}

void overlap() {
  fmt::print("| | no overlap | 1 slot | 2 slots | 3 slots |\n|---|---|---|---|---|\n");
  Mean none, one, three;
  for (const SpatialLayer& layer : cost::yolo_layers()) {
    const FpgaModel model = model_of(layer);
    const double alone = best(model, {.overlap = false, .gap = 0.01}).time.cycles;
    std::array<double, 4> by_slots{};
    for (int slots = 1; slots <= 3; ++slots)
      by_slots[static_cast<size_t>(slots)] = best(model, {.slots = slots, .gap = 0.01}).time.cycles;
    fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n", layer.name, alone / 1e3,
               by_slots[1] / 1e3, by_slots[2] / 1e3, by_slots[3] / 1e3);
    none.add(alone / by_slots[2]);
    one.add(by_slots[1] / by_slots[2]);
    three.add(by_slots[2] / by_slots[3]);
  }
  fmt::print("two slots over no overlap {:.3f}, over one slot {:.3f}; three over two {:.4f}\n",
             none.value(), one.value(), three.value());
}

namespace {

/// No layer can be faster: products, and bytes at a beat per cycle and port.
double bound_cycles(const FpgaModel& model) {
  double most = model.macs() / static_cast<double>(model.most_products());
  const double ports[] = {1, 2, 1};
  for (size_t t = 0; t < 3; ++t) {
    double bytes = 1;
    for (const cost::SpatialDim& dim : model.layer().tensors[t].dims)
      bytes *= static_cast<double>(dim.extent);
    bytes *= static_cast<double>(model.layer().tensors[t].element_bytes);
    most = std::max(most, bytes / model.device().port.bytes / ports[t]);
  }
  return most;
}

}  // namespace

void widths(const std::vector<std::string>& devices, const std::vector<std::string>& types) {
  const std::vector<std::string> all = {"vu9p", "u250", "zcu104", "zynq7020"};
  fmt::print(
      "| device | type | bound ms | ours ms | ratio | 4096 products ms |\n"
      "|---|---|---|---|---|---|\n");
  for (const std::string& name : devices.empty() ? all : devices)
    for (const DType dtype : {DType::F32, DType::BF16, DType::I16, DType::I8}) {
      const std::string type(tilewright::name(dtype));
      if (!types.empty() && std::find(types.begin(), types.end(), type) == types.end()) continue;
      Mean bound, ours, limited;
      for (const SpatialLayer& layer : cost::yolo_layers()) {
        const FpgaModel model = model_of(layer, name, dtype);
        const double khz = model.device().clock_mhz * 1e3;
        bound.add(bound_cycles(model) / khz);
        ours.add(best(model, {.blocks = {1, 4, 16, 64}, .gap = 0.01}).time.cycles / khz);
        limited.add(best(model, {.most_products = 4096, .blocks = {1, 4, 16, 64}, .gap = 0.01})
                        .time.cycles /
                    khz);
      }
      fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.2f} | {:.3f} |\n", name, type, bound.value(),
                 ours.value(), ours.value() / bound.value(), limited.value());
      std::fflush(stdout);
    }
}

void split() {
  fmt::print("| factor |");
  const auto layers = cost::yolo_layers();
  const std::vector<size_t> chosen = {1, 7, 12};
  for (const size_t at : chosen) fmt::print(" {} GFLOPS |", layers[at].name);
  fmt::print("\n|---|---|---|---|\n");
  for (int64_t factor = 8; factor <= 512; factor *= 2) {
    fmt::print("| {} |", factor);
    for (const size_t at : chosen) {
      // Output channels side by side, with the best of everything else.
      const FpgaModel model = model_of(layers[at]);
      double least = search::kInvalid;
      const auto sizes_of = [&](int loop) { return cost::part_sizes(model.extent(loop)); };
      std::vector<std::pair<double, Sizes>> order;
      for (const int64_t ui : sizes_of(model.roles().inputs))
        for (const int64_t us : sizes_of(model.roles().pixels))
          if (factor * ui * us <= model.most_products())
            order.push_back({model.bound(factor, ui, us), {factor, ui, us}});
      std::sort(order.begin(), order.end());
      for (const auto& [bound, sizes] : order) {
        if (bound >= least) break;
        if (const auto found = cost::best_fpga_design(model, {.sizes = sizes}))
          least = std::min(least, found->time.cycles);
      }
      fmt::print(" {:.0f} |", 2 * model.macs() * model.device().clock_mhz / least / 1e3);
    }
    fmt::print("\n");
  }
}

namespace {

using Uses = std::vector<std::pair<SpatialLayer, double>>;

/// One design for all layers against the best of each, both with the same freedom.
void one_design(const std::string& title, const std::string& on, const Uses& layers,
                const FpgaSearch& search) {
  std::vector<FpgaModel> models;
  for (const auto& [layer, times] : layers) models.push_back(model_of(layer, on));
  std::vector<cost::FpgaLayerUse> uses;
  double optima = 0, arrays = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const double times = layers[i].second;
    uses.push_back({&models[i], times});
    optima += times * best(models[i], search).time.cycles;
  }
  const auto common = cost::best_common_fpga_design(uses, search);
  if (!common) return;
  const cost::FpgaDesign& d = common->structure;
  for (const auto& [model, times] : uses)
    arrays += times * model->bound(d.uo, d.ui, d.us) / d.pipelines;
  const double khz = models[0].device().clock_mhz * 1e3;
  fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:.3f} | {}x{}x{}, {} | {:.2f} | {} |\n", title,
             on, search.pipelines, optima / khz, common->cycles / khz, common->cycles / optima,
             d.uo, d.ui, d.us, d.pipelines, arrays / khz, common->looked_at);
  std::fflush(stdout);
}

}  // namespace

void network() {
  fmt::print(
      "| network | device | pipelines at most | each its own, ms | one design, ms | ratio | "
      "design, "
      "pipelines | products alone, ms | arrays looked at |\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  Uses alexnet, yolo;
  for (const SpatialLayer& layer : cost::alexnet_halves()) alexnet.push_back({layer, 2});
  const double times[] = {1, 1, 1, 1, 1, 1, 4, 4, 1, 1, 2, 2, 1, 1, 2};
  const auto layers = cost::yolo_layers();
  for (size_t i = 0; i < layers.size(); ++i) yolo.push_back({layers[i], times[i]});
  const FpgaSearch four{.pipelines = 4};
  one_design("AlexNet, 5 convolutions", "vc707", alexnet, {});
  one_design("AlexNet, 5 convolutions", "vu9p", alexnet, {});
  one_design("AlexNet, 5 convolutions", "vu9p", alexnet, four);
  one_design("YOLO-v1, 24 convolutions", "vu9p", yolo, {});
}

void searchers(int trials, int seeds) {
  const std::vector<std::string> methods = {"ours", "random", "annealing", "p", "q", "evolution"};
  fmt::print("| | optimum, kcycles | s |");
  for (const std::string& method : methods) fmt::print(" {} |", method);
  fmt::print("\n|---|---|---|---|---|---|---|---|---|\n");
  std::map<std::string, Mean> means;
  std::map<std::string, double> seconds, worst;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto since = [&](auto start) {
    return std::chrono::duration<double>(now() - start).count();
  };
  for (const SpatialLayer& layer : cost::yolo_layers()) {
    auto space = tune::FpgaSpace::create(device("vu9p"), layer).value();
    measure::Task task;
    task.func = cost::func_of(layer.name, {cost::computation_of(layer)});
    const auto begin = now();
    // All that the space has; three slots take memory and no less time by the closed form.
    const double optimum =
        best(model_of(layer),
             {.blocks = {1, 2, 4, 8, 16, 32}, .pipelines = 4, .image_ports = 2, .uram = true})
            .time.cycles;
    fmt::print("| {} | {:.1f} | {:.2f} |", layer.name, optimum / 1e3, since(begin));
    for (const std::string& method : methods) {
      double sum = 0;
      for (int seed = 1; seed <= seeds; ++seed) {
        const auto start = now();
        auto searcher =
            tune::make_searcher(method, *space, task, static_cast<uint64_t>(seed)).value();
        search::Budget budget;
        budget.trials = trials;
        const search::RunResult result = search::run(
            *searcher,
            [&](const std::vector<search::Point>& points) {
              std::vector<search::Evaluation> outcomes;
              for (const search::Point& point : points) outcomes.push_back(space->judge(point));
              return outcomes;
            },
            budget);
        const search::Trial* found = searcher->history().best();
        // Without a point that fits, a design of one product stands in.
        const double cycles =
            found ? found->outcome.cost : space->model(space->space().at(0)).macs();
        sum += std::log(cycles / optimum);
        means[method].add(cycles / optimum);
        worst[method] = std::max(worst[method], cycles / optimum);
        seconds[method] = std::max(seconds[method], since(start));
      }
      fmt::print(" {:.3f} |", std::exp(sum / seeds));
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  for (const std::string& method : methods)
    fmt::print("{}: {:.3f} of the optimum's cycles, worst {:.3f}, at most {:.2f} s\n", method,
               means[method].value(), worst[method], seconds[method]);
}

}  // namespace tilewright::bench
