// When the level of synthesis can begin (what becomes of its cells: tests/e2e/codesign.sh), and the
// predicted cells of modules beside what Yosys makes of them.
#include "tilewright/codesign/synth/synth.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tilewright/accel/spatial/cells.h"
#include "tilewright/accel/spatial/rtl/rtl.h"

namespace tilewright::codesign {
namespace {

Workload one_layer() {
  Workload workload;
  workload.layers.push_back({cost::matmul(16, 16, 16), 1, {"a"}});
  return workload;
}

TEST(SynthLevel, WantsATechnologyOfCells) {
  const Level level = synth_level();
  EXPECT_TRUE(level.accepts(*load_technology("hasco-fpga")));
  EXPECT_FALSE(level.accepts(*load_technology("asic45")));
}

TEST(SynthLevel, AMissingToolIsAnErrorOfTheLevel) {
  DesignEvaluator evaluator(one_layer(), *load_technology("hasco-fpga"));
  const spatial::Design design;
  const std::string path = std::getenv("PATH") ? std::getenv("PATH") : "";
  setenv("PATH", "/nowhere", 1);
  const auto result = at_level(synth_level(), evaluator, design, evaluator.evaluate(design));
  const Status before = synth_level().accepts(evaluator.technology());
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Tool) << to_string(result.error());
  ASSERT_FALSE(before);  // a search does not begin
  EXPECT_EQ(before.error().kind, ErrorKind::Tool);
}

using spatial::Dataflow;
using spatial::Design;
using spatial::Links;
using spatial::Unit;

Design small(Unit unit, Dataflow dataflow, Links links, int rows, int cols, int banks) {
  Design design;
  design.unit = unit;
  design.dataflow = dataflow;
  design.links = links;
  design.rows = rows;
  design.cols = cols;
  design.banks = banks;
  design.bank_bytes = 8;
  design.spad_kb = 24;
  design.local_kb = 8;
  EXPECT_TRUE(spatial::problems(design).empty());
  return design;
}

struct Both {
  CellCount yosys, model;
};
/// Cells of the module `top` and of all that it contains; of that name, of the model.
Both cells_of(const Design& design, const std::string& top) {
  Both both;
  accel::SynthesisTask task = spatial::synthesis_task(design);
  task.top = top;
  task.limit_seconds = 3000;
  const Result<accel::Synthesis> done = accel::synthesise(task);
  EXPECT_TRUE(done) << to_string(done.error());
  if (!done) return both;
  const accel::Cells c = done->cells();
  both.yosys = {double(c.lut), double(c.ff), double(c.dsp), double(c.bram18)};
  std::set<std::string, std::less<>> names;
  for (const accel::SynthesisedModule& module : done->modules) names.insert(module.name);
  for (const spatial::ModuleCells& m : spatial::predicted_cells(design))
    if (names.contains(m.name))
      both.model += {m.copies * m.luts, m.copies * m.ffs, m.copies * m.dsps, m.copies * m.brams};
  return both;
}

/// `parts`: by how many parts of Yosys' figure the model's may be off.
void expect_near(const Both& both, double lut_parts, double ff_parts) {
  EXPECT_NEAR(both.model.luts, both.yosys.luts, lut_parts * both.yosys.luts);
  EXPECT_NEAR(both.model.ffs, both.yosys.ffs, ff_parts * both.yosys.ffs);
  EXPECT_EQ(both.model.dsps, both.yosys.dsps);
  EXPECT_EQ(both.model.brams, both.yosys.brams);
}

TEST(SynthCellsSlow, ArraysAndScratchpadsTakeWhatIsPredicted) {
  const Design stays = small(Unit::Gemm, Dataflow::WeightStationary, Links::Systolic, 3, 4, 2);
  expect_near(cells_of(stays, "spatial_array"), 0.1, 0.01);
  expect_near(cells_of(stays, "spatial_spad"), 0.1, 0);
  const Design column = small(Unit::Gemv, Dataflow::WeightStationary, Links::Full, 2, 3, 2);
  expect_near(cells_of(column, "spatial_array"), 0.1, 0.01);
  expect_near(cells_of(column, "spatial_biases"), 0.1, 0);
  const Design taps = small(Unit::Conv2d, Dataflow::WeightStationary, Links::Full, 3, 2, 2);
  expect_near(cells_of(taps, "spatial_array"), 0.1, 0.01);
}

}  // namespace
}  // namespace tilewright::codesign
