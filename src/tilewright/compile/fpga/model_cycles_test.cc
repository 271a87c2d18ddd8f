// The model of time against the cycle simulator, on the designs that are generated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tilewright/base/integers.h"
#include "tilewright/base/rng.h"
#include "tilewright/base/statistics.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/cost/sums/computation.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/rules/fpga/schedule.h"
#include "tilewright/tensor/text.h"

namespace tilewright::compile {
namespace {

constexpr const char* kPrograms[] = {
    R"(tensor f(X: f32[c, n, n], W: f32[k, c, 3, 3]) where c = 8, n = 14, k = 16 {
  P[i in c, y in n + 2, x in n + 2] = select(y >= 1 && y <= n && x >= 1 && x <= n, X[i, y - 1, x - 1], 0)
  C[o in k, y in n, x in n] = sum(i in c, p in 3, q in 3) P[i, y + p, x + q] * W[o, i, p, q]
  return C
})",
    R"(tensor f(A: i8[m, k], B: i8[k, n]) where m = 24, k = 48, n = 32 {
  C[i in m, j in n] = sum(l in k) i32(A[i, l]) * i32(B[l, j])
  return C
})",
    // A batch of one: a loop of one iteration around all tiles.
    R"(tensor f(X: i8[b, c, n, n], W: i8[k, c, 1, 1]) where b = 1, c = 16, n = 12, k = 16 {
  C[a in b, o in k, y in n, x in n] = sum(i in c, p in 1, q in 1) i32(X[a, i, y + p, x + q]) * i32(W[o, i, p, q])
  return C
})"};

/// A part of `extent`, drawn at random: half of them divide it.
int64_t part_of(int64_t extent, Rng& rng) {
  const std::vector<int64_t> sizes = cost::part_sizes(extent, rng.below(2) == 0);
  return sizes[static_cast<size_t>(rng.below(static_cast<int64_t>(sizes.size())))];
}

cost::FpgaDesign random_design(const cost::FpgaModel& model, Rng& rng) {
  const cost::FpgaRoles& roles = model.roles();
  cost::FpgaDesign d;
  d.uo = part_of(model.extent(roles.outputs), rng);
  d.to = d.uo * part_of(ceil_div(model.extent(roles.outputs), d.uo), rng);
  d.ui = part_of(model.extent(roles.inputs), rng);
  d.tc = d.ui * part_of(ceil_div(model.extent(roles.inputs), d.ui), rng);
  d.th = part_of(model.extent(roles.rows), rng);
  d.tw = part_of(model.extent(roles.pixels), rng);
  d.us = rules::reads_windows(model) ? 1 : part_of(d.tw, rng);
  d.tw = d.tw / d.us * d.us;
  d.stays = static_cast<cost::FpgaStays>(rng.below(3));
  for (int* slots : {&d.image_slots, &d.weight_slots, &d.result_slots})
    *slots = static_cast<int>(rng.between(1, 3));
  return d;
}

TEST(FpgaModelCycles, AreThoseOfTheGeneratedDesign) {
  Rng rng(11);
  std::vector<double> errors;
  std::string worst;
  for (const char* text : kPrograms) {
    std::vector<double> own;
    for (const char* device_name : {"vu9p", "zynq7020"}) {
      const hw::FpgaDevice device = *hw::load_fpga_device(device_name);
      const Func func = tensor::parse_tensor_file(text).value();
      const cost::Computation sum = cost::computations_of(func).sums.at(0);
      cost::FpgaOptions options;
      options.dtype = sum.dtypes.front();
      options.as_written = true;
      options.result_bytes = rules::written_bytes(func);
      const auto model =
          cost::FpgaModel::create(device, cost::layer_of(sum).value(), options).value();
      for (int n = 0; n < 12;) {
        const cost::FpgaDesign d = random_design(model, rng);
        if (!model.problem(d).empty() || model.time(d).cycles > 60'000) continue;
        ++n;
        const auto trace = rules::fpga_trace(func, model, d);
        ASSERT_TRUE(trace) << to_string(trace.error());
        const auto design = fpga_design(schedule::replay(func, *trace).value(), device);
        ASSERT_TRUE(design) << to_string(design.error());
        fpga::RunOptions run;
        run.memory = memory_timing(device);
        run.values = false;
        std::vector<std::string> none;
        const auto report = fpga::simulate(*design, run, none);
        ASSERT_TRUE(report) << to_string(report.error());
        const auto cycles = static_cast<double>(report->cycles);
        errors.push_back(std::abs(model.time(d).cycles / cycles - 1));
        own.push_back(errors.back());
        if (errors.back() == *std::max_element(errors.begin(), errors.end()))
          worst = to_string(d) + ", " + std::to_string(cycles) + " in the simulator";
      }
    }
    EXPECT_LE(median(own), 0.055) << text;  // 0.050; 0.03 of more designs
  }
  // 0.021 and 0.074; small tiles are furthest off. Of 360 designs 0.015 and 0.084, of those whose
  // tiles divide their loops 0.017 and 0.070.
  EXPECT_LE(median(errors), 0.03) << worst;
  EXPECT_LE(quantile(errors, 0.9), 0.09) << worst;
}

/// 13 of 20 output channels side by side: what is written behind the sums goes over them 13 by 13,
/// and so over the end of the bias.
TEST(FpgaModelCycles, OperandsHaveRoomForWholeTiles) {
  const Func func = tensor::parse_tensor_file(R"(
tensor f(X: i8[c, n, n], W: i8[k, c, 3, 3], b: i32[k]) where c = 7, n = 8, k = 20 {
  C[o in k, y in n - 2, x in n - 2] = sum(i in c, p in 3, q in 3) i32(X[i, y + p, x + q]) * i32(W[o, i, p, q])
  Y[o in k, y in n - 2, x in n - 2] = i8(min(max((C[o, y, x] + b[o]) >> 6, -128), 127))
  return Y
})")
                        .value();
  const hw::FpgaDevice device = *hw::load_fpga_device("zynq7020");
  const auto model = rules::steps_model(func, device).value();
  cost::FpgaDesign d;
  d.uo = 13, d.to = 26, d.tc = 7, d.th = 6, d.tw = 6;
  const Func made = schedule::replay(func, rules::fpga_trace(func, model, d).value()).value();
  const auto design = fpga_design(made, device);
  ASSERT_TRUE(design) << to_string(design.error());
  fpga::RunOptions run;
  run.memory = memory_timing(device);
  std::vector<std::string> arguments;
  for (const Param& param : func.params)
    arguments.emplace_back(static_cast<size_t>(param_bytes(param).value()), '\1');
  const auto report = fpga::simulate(*design, run, arguments);
  EXPECT_TRUE(report) << to_string(report.error());
}

}  // namespace
}  // namespace tilewright::compile
