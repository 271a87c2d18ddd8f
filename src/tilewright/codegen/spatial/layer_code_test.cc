// Instructions against what the layer means, and against the program that the cost model counts.
#include "tilewright/codegen/spatial/layer_code.h"

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/accel/spatial/sim/fsim.h"
#include "tilewright/codegen/spatial/testing/plain_layer.h"
#include "tilewright/cost/spatial/testing/cases.h"
#include "tilewright/cost/spatial/testing/program.h"

namespace tilewright::spatial {
namespace {

using cost::SpatialLayer;
using cost::SpatialMapping;

struct Case {
  Design design;
  SpatialLayer layer;
  SpatialMapping mapping;
};

std::string text(const Case& c) {
  std::string loops;
  for (const auto& loop : c.layer.loops) loops += loop.name + std::to_string(loop.extent) + " ";
  return to_toml(c.design) + "\n" + loops + "\n" + cost::to_string(c.layer, c.mapping);
}

/// Each LOAD and STORE moves the same runs, each COMPUTE has the same loops and addresses.
void expect_same(const Case& c, const std::vector<Insn>& ours) {
  const std::vector<SimInstruction> theirs = cost::program_of(c.design, c.layer, c.mapping);
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t n = 0; n < ours.size(); ++n) {
    const SimInstruction& sim = theirs[n];
    ASSERT_EQ(ours[n].queue(), sim.queue) << n;
    if (const auto* compute = std::get_if<Compute>(&ours[n].work)) {
      std::vector<SimLoop> loops;
      int blocks = 0, at = 0;
      for (const SimLoop& loop : sim.loops) {
        const bool block = at++ < sim.block_loops;
        if (loop.count == 1) continue;
        loops.push_back(loop);
        blocks += block;
      }
      EXPECT_EQ(blocks, int(compute->block_loops));
      std::vector<int64_t> counts, expected;
      for (const ComputeLoop& loop : compute->loops)
        if (loop.count > 1) counts.push_back(loop.count);
      for (const SimLoop& loop : loops) expected.push_back(loop.count);
      EXPECT_EQ(counts, expected);
      EXPECT_EQ(int64_t{compute->spad[0]}, sim.base[0]);
      EXPECT_EQ(int64_t{compute->spad[1]}, sim.base[1]);
      continue;
    }
    std::vector<int64_t> runs;
    int64_t all = 1, there = 1;
    const auto count = [&](const auto& axes, int run_axes, int64_t bytes) {
      int64_t run = bytes, rows = 1;
      for (int a = 0; a < kAxes; ++a) {
        int64_t here = axes[a].count;
        if constexpr (requires { axes[a].there(); }) here = axes[a].there();
        (a >= kAxes - run_axes ? run : rows) *= here;
        all *= axes[a].count;
        there *= here;
      }
      if (there > 0) runs.assign(size_t(rows), run);
    };
    if (const auto* load = std::get_if<Load>(&ours[n].work))
      count(load->axes, load->run_axes, 1);
    else
      count(std::get<Store>(ours[n].work).axes, std::get<Store>(ours[n].work).run_axes,
            std::get<Store>(ours[n].work).wide ? 4 : 1);
    EXPECT_EQ(runs, sim.runs) << n;
    EXPECT_EQ(all - there, sim.padding) << n;
  }
}

/// What the device did is what the model predicts; it does not know of biases.
void expect_counts(const Case& c, bool biased, const Counters& did) {
  const cost::SpatialCost model = cost::evaluate(c.design, c.layer, c.mapping);
  const auto& [a, b, out] = model.dram;
  const auto same = [](uint64_t there, int64_t here, const char* what) {
    EXPECT_EQ(int64_t(there), here) << what;
  };
  same(did.insns, model.instructions, "instructions");
  same(did.loads, a.transfers + b.transfers, "loads");
  same(did.computes, model.computes, "computes");
  same(did.stores, out.transfers, "stores");
  same(did.steps, model.steps, "steps");
  same(did.macs, c.layer.macs(), "macs");
  same(did.zero_bytes, a.padding + b.padding, "zeros");
  same(did.store_bytes, out.bytes, "stored bytes");
  same(did.store_bursts, out.bursts, "bursts of stores");
  same(did.first_bytes, model.spad_reads[c.mapping.choice.first], "first factor");
  same(did.second_bytes, model.spad_reads[c.mapping.choice.second()], "second factor");
  if (biased) return;
  same(did.load_bytes, a.bytes + b.bytes, "loaded bytes");
  same(did.load_bursts, a.bursts + b.bursts, "bursts of loads");
}

TEST(SpatialCode, ComputesWhatLayersMean) {
  cost::CaseDraw draw(7);
  const int wanted = std::getenv("TW_CASES") ? std::atoi(std::getenv("TW_CASES")) : 500;
  int units[4] = {};
  for (int found = 0; found < wanted;) {
    Case c;
    c.design = draw.design();
    c.layer = draw.layer(6, c.design);
    const bool wide = draw.below(4) == 0;
    if (wide) c.layer.tensors[cost::kSpatialResult].element_bytes = 4;
    if (!draw.mapping(c.design, c.layer, c.mapping)) continue;
    ++found;
    ++units[int(c.design.unit)];
    SCOPED_TRACE(text(c));
    PlainLayer plain(c.layer, uint64_t(found));
    LayerOperands operands;
    operands.biased = packed_of(c.layer) >= 0 && draw.below(3) > 0;
    operands.wide = wide;
    operands.shift = int(draw.below(12));
    operands.low = draw.below(2) ? 0 : -128;
    const std::string image = plain.image(c.design, c.mapping, operands);
    const std::vector<Insn> code = layer_code(c.design, c.layer, c.mapping, operands);
    Result<std::vector<Insn>> stream = with_tokens(c.design, code);
    ASSERT_TRUE(stream) << stream.error().what;
    const std::unique_ptr<Device> device = make_fsim(c.design);
    ASSERT_TRUE(device->write(0, image));
    const Result<LaunchReport> report = device->launch(*stream);
    ASSERT_TRUE(report) << report.error().what << " " << report.error().why;
    std::string results(size_t(plain.results()), ' ');
    ASSERT_TRUE(device->read(operands.address[2], results.data(), results.size()));
    ASSERT_EQ(results, plain.expected(operands));
    expect_counts(c, operands.biased, report->counters);
    if (!operands.biased) expect_same(c, code);
    if (testing::Test::HasFailure()) return;
  }
  for (const int count : units) EXPECT_GT(count, wanted / 20);
}

}  // namespace
}  // namespace tilewright::spatial
