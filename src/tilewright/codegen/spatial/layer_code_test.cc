// Instructions against what the layer means, and against what the cost model counts.
#include "tilewright/codegen/spatial/layer_code.h"

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/accel/spatial/sim/fsim.h"
#include "tilewright/codegen/spatial/testing/plain_layer.h"
#include "tilewright/cost/spatial/testing/cases.h"

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

/// What the device did is what the model predicts.
void expect_counts(const Case& c, const Counters& did) {
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
  same(did.load_bytes, a.bytes + b.bytes, "loaded bytes");
  same(did.load_bursts, a.bursts + b.bursts, "bursts of loads");
}

TEST(SpatialCodeSlow, ComputesWhatLayersMean) {
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
    operands.biased = c.layer.biased = packed_of(c.layer) >= 0 && draw.below(3) > 0;
    operands.wide = wide;
    operands.shift = int(draw.below(12));
    operands.low = draw.below(2) ? 0 : -128;
    const std::string image = plain.image(c.design, c.mapping, operands);
    const Result<std::vector<Insn>> stream =
        with_tokens(c.design, layer_code(c.design, c.layer, c.mapping, operands));
    ASSERT_TRUE(stream) << stream.error().what;
    const std::unique_ptr<Device> device = make_fsim(c.design);
    ASSERT_TRUE(device->write(0, image));
    const Result<LaunchReport> report = device->launch(*stream);
    ASSERT_TRUE(report) << report.error().what << " " << report.error().why;
    std::string results(size_t(plain.results()), ' ');
    ASSERT_TRUE(device->read(operands.address[2], results.data(), results.size()));
    ASSERT_EQ(results, plain.expected(operands));
    expect_counts(c, report->counters);
    if (testing::Test::HasFailure()) return;
  }
  for (const int count : units) EXPECT_GT(count, wanted / 20);
}

}  // namespace
}  // namespace tilewright::spatial
