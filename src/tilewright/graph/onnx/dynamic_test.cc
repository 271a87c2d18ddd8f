#include "tilewright/graph/onnx/dynamic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

constexpr int kExtentId = 7;  // of the input's axis

/// A view of an f32 tensor with an axis that the run decides.
struct RunTimeView {
  std::string op;
  Shape from;
  int axis;                    ///< of the input
  std::vector<int64_t> asked;  ///< the second input; of Flatten its attribute
  int expected;                ///< axis of the result; -1: refused
  std::string reason = {};
};

Result<std::vector<Extent>> extents_of(const RunTimeView& view) {
  tensor::OpCall call;
  call.op = view.op;
  call.inputs.push_back({.dtype = DType::F32, .shape = view.from, .value = {}});
  Array list(DType::I64, {static_cast<int64_t>(view.asked.size())});
  std::copy(view.asked.begin(), view.asked.end(), list.as<int64_t>().begin());
  if (view.op == "Flatten") {
    call.attrs.values["axis"] = view.asked[0];
  } else if (view.op != "Squeeze" || !view.asked.empty()) {
    call.inputs.push_back({.dtype = DType::I64, .shape = list.shape(), .value = list});
  }
  const auto types = TW_TRY(tensor::find_op("", view.op)->infer(call));
  std::vector<Extent> inputs(call.inputs.size());
  inputs[0] = {view.axis, kExtentId};
  int next = kExtentId + 1;
  return dynamic_extents(call, inputs, types, next);
}

TEST(DynamicExtents, ViewsCarryTheAxisOrSayWhyNot) {
  const RunTimeView views[] = {
      {"Reshape", {5, 4}, 0, {-1, 2, 2}, 0},
      {"Reshape", {3, 5}, 1, {3, 1, -1}, 2},
      {"Reshape", {3, 5}, 1, {1, 0, 3}, -1, "mixes"},
      {"Reshape", {3, 5}, 1, {3, 0}, 1},
      {"Reshape", {5, 4}, 0, {5, 4}, -1, "exactly [5, 4]"},
      {"Reshape", {5, 4}, 0, {-1, 2}, -1, "mixes"},
      {"Reshape", {3, 5}, 1, {-1, 3}, -1, "mixes"},
      {"Reshape", {1, 4}, 0, {1, -1, 4}, 1},  // which of the ones, the -1 says
      {"Reshape", {1, 4}, 0, {0, 1, 4}, 0},
      {"Reshape", {1, 4}, 0, {4, -1}, 1},  // one element at most: no rows
      {"Reshape", {1, 4}, 0, {1, 4}, -1, "exactly"},
      {"Reshape", {1, 4}, 0, {2, -1}, -1, "mixes"},
      {"Flatten", {5, 4, 2}, 0, {1}, 0},
      {"Flatten", {1, 1, 5}, 2, {-1}, 1},
      {"Flatten", {1, 1, 2}, 0, {2}, 0},
      {"Flatten", {1, 3, 2}, 0, {2}, -1, "mixes"},
      {"Flatten", {2, 1}, 1, {0}, -1, "mixes"},
      {"Flatten", {1, 1}, 1, {0}, 1},
      {"Squeeze", {1, 1, 3}, 1, {0}, 0},
      {"Squeeze", {1, 5, 1}, 1, {-1}, 1},
      {"Squeeze", {1, 1, 3}, 1, {1}, -1, "whether there is one element"},
      {"Squeeze", {5, 1}, 0, {}, -1, "without axes"},
      {"Unsqueeze", {1, 3}, 0, {0}, 1},
      {"Unsqueeze", {1, 3}, 0, {1, -1}, 0},
      {"Unsqueeze", {3, 5}, 1, {0, 2}, 3},
  };
  for (const RunTimeView& view : views) {
    SCOPED_TRACE(view.op + " " + to_string(view.from) + " by " + to_string(view.asked));
    const auto found = extents_of(view);
    if (view.expected < 0) {
      ASSERT_FALSE(found);
      EXPECT_THAT(to_string(found.error()), HasSubstr(view.reason));
      continue;
    }
    ASSERT_TRUE(found) << to_string(found.error());
    EXPECT_EQ((*found)[0], (Extent{view.expected, kExtentId}));
  }
}

}  // namespace
}  // namespace tilewright::graph
