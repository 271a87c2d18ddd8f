#include "tilewright/compile/fpga/shared.h"

#include <algorithm>
#include <cctype>

#include "tilewright/accel/fpga/merge.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/cost/fpga/common.h"
#include "tilewright/records/workload.h"

namespace tilewright::compile {
namespace {

/// A common design may take so much longer than the best one that its search leaves it.
constexpr double kCommonGap = 0.01;
/// So many sizes side by side are searched, in the order of the time that they need at least, and
/// so many designs of one layer for each. Of resnet50 on vu9p, 300 instead of 40 gain 0.1 %.
constexpr int64_t kMostSizes = 40, kMostLookedCommon = 2'000;

/// `text` without its numbers: `max(v1[i, j] + v2[i], 0.0)` => `max(v#[i, j] + v#[i], #)`.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!number) out += c;
    if (number && (out.empty() || out.back() != '#')) out += '#';
  }
  return out;
}

/// The programs with weights in the order number `order` of weight_orders; 0: as they are. Absent
/// where one has no such order.
struct Ordered {
  std::vector<Func> funcs;
  std::vector<std::optional<AxisOrder>> orders;
};
std::optional<Ordered> in_order(const std::vector<FpgaUse>& uses, size_t order) {
  Ordered out;
  for (const FpgaUse& use : uses) {
    if (order == 0) {
      out.funcs.push_back(use.func);
      out.orders.emplace_back();
      continue;
    }
    std::vector<AxisOrder> orders = weight_orders(use.func);
    if (order > orders.size()) return std::nullopt;
    out.funcs.push_back(with_order(use.func, orders[order - 1]));
    out.orders.emplace_back(std::move(orders[order - 1]));
  }
  return out;
}

/// The best design for all programs in one order of weights.
struct CommonChoice {
  Ordered programs;
  std::vector<cost::FpgaModel> models;
  cost::FpgaCommon common;
};

/// What all programs have steps for.
cost::FpgaSearch common_search(const CommonChoice& choice) {
  cost::FpgaSearch all = rules::steps_search(choice.programs.funcs[0], choice.models[0]);
  for (size_t i = 1; i < choice.models.size(); ++i) {
    const cost::FpgaSearch one = rules::steps_search(choice.programs.funcs[i], choice.models[i]);
    const auto least = [](int64_t a, int64_t b) {
      return a == 0 ? b : b == 0 ? a : std::min(a, b);
    };
    all.most_pixels = least(all.most_pixels, one.most_pixels);
    all.most_inputs = least(all.most_inputs, one.most_inputs);
    all.divisors_only |= one.divisors_only;
  }
  all.gap = kCommonGap;
  all.most_looked = kMostLookedCommon;
  all.most_sizes = kMostSizes;
  return all;
}

std::optional<CommonChoice> best_choice(const std::vector<FpgaUse>& uses,
                                        const hw::FpgaDevice& device) {
  std::optional<CommonChoice> best;
  const auto search = [&](CommonChoice choice, cost::FpgaStays stays) {
    std::vector<cost::FpgaLayerUse> layers;
    for (size_t i = 0; i < uses.size(); ++i) layers.push_back({&choice.models[i], uses[i].times});
    cost::FpgaSearch wanted = common_search(choice);
    wanted.stays = {stays};
    if (best) wanted.limit = (1 - kCommonGap) * best->common.cycles;
    auto common = cost::best_common_fpga_design(layers, wanted);
    if (!common) return;
    choice.common = *std::move(common);
    best = std::move(choice);
  };
  for (size_t order = 0; order <= 2; ++order) {
    auto programs = in_order(uses, order);
    if (!programs) continue;
    CommonChoice choice{*std::move(programs), {}, {}};
    for (const Func& func : choice.programs.funcs) {
      auto model = rules::steps_model(func, device, device.path());
      if (!model) return std::nullopt;
      choice.models.push_back(*std::move(model));
    }
    search(std::move(choice), cost::FpgaStays::Nothing);
  }
  // Copies that stay are made in other loops, so a structure has one order for all layers.
  for (const cost::FpgaStays stays : {cost::FpgaStays::Image, cost::FpgaStays::Weights})
    if (best) search(*best, stays);
  return best;
}

}  // namespace

std::string form_of(const Func& func, const hw::FpgaDevice& device) {
  const auto model = rules::steps_model(func, device, device.path());
  if (!model) return {};
  std::string form = without_numbers(records::workload_text(func));
  // A stride of one is not written.
  for (size_t at; (at = form.find(" * #")) != std::string::npos;) form.erase(at, 4);
  return form + (model->taps() > 1 ? "windows" : "");
}

std::optional<std::vector<FpgaLayer>> shared_layers(const std::vector<FpgaUse>& uses,
                                                    const hw::FpgaDevice& device, int structure) {
  auto choice = best_choice(uses, device);
  if (!choice) return std::nullopt;
  std::vector<FpgaLayer> layers;
  std::vector<fpga::Design> designs;
  for (size_t i = 0; i < uses.size(); ++i) {
    const Func& func = choice->programs.funcs[i];
    auto schedule = rules::fpga_schedule(func, choice->models[i], choice->common.layers[i],
                                         choice->common.buffers);
    if (!schedule) return std::nullopt;
    auto design = fpga_design(schedule->func, device);
    if (!design || !check_cpp(schedule->func, device)) return std::nullopt;
    designs.push_back(*std::move(design));
    layers.push_back({.program = scheduled_program(func, *std::move(schedule), device),
                      .order = std::move(choice->programs.orders[i])});
  }
  const fpga::MergedDesigns merged = fpga::merge_alike(std::move(designs));
  if (static_cast<size_t>(merged.structures) == layers.size()) return std::nullopt;
  for (size_t i = 0; i < layers.size(); ++i) layers[i].structure = structure + merged.structure[i];
  return layers;
}

}  // namespace tilewright::compile
