// Which designs have steps, and which of them is the best for a program.
#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "tilewright/rules/fpga/schedule.h"
#include "tilewright/schedule/apply.h"

namespace tilewright::rules {
namespace {

/// Sizes that do not divide their loops are so far apart, and so many designs are looked at.
constexpr double kApart = 1.15;
constexpr int64_t kMostLooked = 50'000;

/// Side by side. A memory has no more banks (lower/banking.cc), the C++ no more copies of a block
/// (codegen/hls/kernel.cc).
constexpr int64_t kMostProducts = 4096;

/// What divides its loops needs the fewest cells: other sizes must be better.
std::optional<cost::FpgaBest> best_design(const cost::FpgaModel& model, cost::FpgaSearch search) {
  const bool groups = std::exchange(search.divisors_only, true);
  const auto dividing = best_fpga_design(model, search);
  if (groups) return dividing;
  search.divisors_only = false;
  search.most_looked = kMostLooked;
  if (dividing) search.limit = (1 - search.gap) * dividing->time.cycles;
  const auto better = best_fpga_design(model, search);
  return better ? better : dividing;
}

}  // namespace

bool has_groups(const cost::FpgaModel& model) {
  const cost::FpgaRoles& roles = model.roles();
  const cost::SpatialLayer& layer = model.layer();
  for (size_t i = 0; i < layer.loops.size(); ++i) {
    const auto loop = static_cast<int>(i);
    int64_t stride = 0;
    if (!layer.loops[i].reduces && layer.loops[i].extent > 1 && loop != roles.outputs &&
        cost::spatial_dim_of(layer.tensors[static_cast<size_t>(roles.weights)], loop, stride))
      return true;
  }
  return false;
}

std::string no_steps(const cost::FpgaModel& model, const cost::FpgaDesign& design) {
  const cost::FpgaRoles& roles = model.roles();
  const bool groups = has_groups(model);
  const std::tuple<const char*, int, int64_t, int64_t, bool> loops[] = {
      {"output channels", roles.outputs, design.uo, design.to, !groups},
      {"input channels", roles.inputs, design.ui, design.tc, !groups},
      {"rows", roles.rows, 1, design.th, false},
      {"pixels", roles.pixels, design.us, design.tw, false}};
  for (const auto& [what, loop, side, tile, zeros] : loops) {
    const int64_t extent = model.extent(loop);
    if (tile % side != 0)
      return fmt::format("{} side by side do not divide a tile of {} {}", side, tile, what);
    if (!zeros && tile > extent)
      return fmt::format("a tile of {} is more than all {} {}", tile, extent, what);
    if (groups && extent % tile != 0)
      return fmt::format("a tile of {} does not divide {} {} of a group", tile, extent, what);
  }
  if (const int64_t products = design.uo * design.ui * design.us; products > kMostProducts)
    return fmt::format("products side by side {} of {}", products, kMostProducts);
  return "";
}

int64_t written_bytes(const Func& func) {
  int64_t most = 1;
  for (const Param& param : func.params)
    if (param.mode == ParamMode::Out) most = std::max(most, storage_bytes(param.buffer.dtype(), 1));
  return most;
}

bool reads_windows(const cost::FpgaModel& model) {
  const cost::SpatialLayer& layer = model.layer();
  const cost::FpgaRoles& roles = model.roles();
  for (const cost::SpatialDim& dim : layer.tensors[static_cast<size_t>(roles.image)].dims)
    for (const cost::SpatialTerm& term : dim.terms)
      if (term.loop == roles.pixels && (dim.terms.size() > 1 || term.stride > 1)) return true;
  return false;
}

cost::FpgaSearch steps_search(const Func& func, const cost::FpgaModel& model) {
  cost::FpgaSearch search;
  search.weight_ports = 1;
  search.most_products = kMostProducts;
  search.divisors_only = has_groups(model);
  search.apart = kApart;
  search.whole_pixels = true;
  search.blocks = {1};
  if (reads_windows(model)) search.most_pixels = 1;
  // Exact sums of floats keep their order.
  if (func.math == MathMode::Exact && is_float(model.options().dtype)) search.most_inputs = 1;
  return search;
}

Result<FpgaSchedule> fpga_schedule(const Func& func, const cost::FpgaModel& model,
                                   const cost::FpgaBest& design, const cost::FpgaRams& buffers) {
  FpgaSchedule out{TW_TRY(fpga_trace(func, model, design.design)),
                   design.design,
                   design.time,
                   model.cells(design.design, buffers),
                   {},
                   {}};
  cost::FpgaOptions options = model.options();
  options.path = hw::FpgaPath::Rtl;
  if (const auto verilog = cost::FpgaModel::create(model.device(), model.layer(), options))
    out.verilog = verilog->cells(design.design, buffers);
  out.func = TW_TRY(schedule::replay(func, out.trace));
  return out;
}

Result<FpgaSchedule> best_fpga_schedule(const Func& func, const hw::FpgaDevice& device,
                                        hw::FpgaPath path) {
  const cost::FpgaModel model = TW_TRY(steps_model(func, device, path));
  cost::FpgaSearch search = steps_search(func, model);
  // Large tiles come first; small ones that are hardly better are not, by what no model counts.
  search.gap = 0.005;
  const auto best = best_design(model, search);
  if (!best)
    return fail(ErrorKind::Capacity,
                fmt::format("no design for '{}' fits {}", func.name, device.name),
                fmt::format("the smallest one needs {} that a design may take",
                            model.problem(cost::FpgaDesign{})),
                "a larger device, or larger shares in the table [usable] of its file");
  return fpga_schedule(func, model, *best, model.buffers(best->design));
}

}  // namespace tilewright::rules
