// When the level of synthesis can begin. What becomes of its cells: tests/e2e/codesign.sh.
#include "tilewright/codesign/synth/synth.h"

#include <gtest/gtest.h>

#include <cstdlib>

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

}  // namespace
}  // namespace tilewright::codesign
