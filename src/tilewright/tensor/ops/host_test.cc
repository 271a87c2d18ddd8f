// Shape rules of operators the runtime executes.
#include <gmock/gmock.h>

#include "tilewright/tensor/ops/movement_testing.h"

namespace tilewright::tensor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<TensorType> types_of(std::string op, std::map<std::string, AttrValue> attrs,
                                 const std::vector<Given>& inputs, int outputs = 1) {
  const auto types = infer(make_call(std::move(op), std::move(attrs), inputs, outputs));
  EXPECT_TRUE(types) << to_string(types.error());
  return types ? *types : std::vector<TensorType>{};
}

TEST(HostOps, NamesAndNoDefinition) {
  for (const char* op : {"TopK", "NonMaxSuppression", "NonZero", "Unique", "Compress", "Scatter",
                         "ScatterElements", "ScatterND"}) {
    const OpDef* def = find_op("", op);
    ASSERT_NE(def, nullptr) << op;
    EXPECT_EQ(def->host, std::string(op) == "Scatter" ? "ScatterElements" : op);
    EXPECT_FALSE(def->define);
  }
  const auto func = op_func(make_call("NonZero", {}, {iota({2})}));
  ASSERT_FALSE(func);
  EXPECT_THAT(to_string(func.error()), HasSubstr("NonZero"));
}

TEST(HostOps, TopK) {
  const Array x = iota({2, 5});
  const auto types = types_of("TopK", {}, {x, known(ints({3}))}, 2);
  ASSERT_EQ(types.size(), 2u);
  EXPECT_THAT(types[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(types[1].dtype, DType::I64);
  EXPECT_EQ(types[0].dynamic_axis, -1);
  EXPECT_THAT(error_of("TopK", {{"axis", int64_t{0}}}, {x, known(ints({3}))}),
              HasSubstr("axis 0 has 2 elements"));
}

TEST(HostOps, BoundsOfWhatDataDecides) {
  const Array boxes = iota({2, 6, 4}), scores = iota({2, 3, 6});
  auto bound = [&](const std::vector<Given>& inputs) {
    const auto types = types_of("NonMaxSuppression", {}, inputs);
    EXPECT_EQ(types[0].dynamic_axis, 0);
    return types[0].shape;
  };
  EXPECT_THAT(bound({boxes, scores, known(ints({4}))}), ElementsAre(2 * 3 * 4, 3));
  EXPECT_THAT(bound({boxes, scores, known(ints({99}))}), ElementsAre(2 * 3 * 6, 3));
  EXPECT_THAT(bound({boxes, scores, ints({4})}), ElementsAre(2 * 3 * 6, 3));
  EXPECT_THAT(bound({boxes, scores}), ElementsAre(0, 3));
  EXPECT_THAT(error_of("NonMaxSuppression", {}, {boxes, iota({2, 3, 5})}), HasSubstr("[2, 3, 5]"));

  const auto nonzero = types_of("NonZero", {}, {iota({2, 3})});
  EXPECT_THAT(nonzero[0].shape, ElementsAre(2, 6));
  EXPECT_EQ(nonzero[0].dynamic_axis, 1);

  const auto unique = types_of("Unique", {{"axis", int64_t{1}}}, {iota({2, 3})}, 4);
  ASSERT_EQ(unique.size(), 4u);
  EXPECT_THAT(unique[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(unique[0].dynamic_axis, 1);
  EXPECT_EQ(unique[2].dynamic_axis, -1);  // the inverse has an entry for every slice
  EXPECT_THAT(types_of("Unique", {}, {iota({2, 3})})[0].shape, ElementsAre(6));

  const Array condition = array(DType::Bool, {2}, {1, 0});
  const auto compress = types_of("Compress", {{"axis", int64_t{1}}}, {iota({2, 3}), condition});
  EXPECT_THAT(compress[0].shape, ElementsAre(2, 2));
  EXPECT_EQ(compress[0].dynamic_axis, 1);
  EXPECT_THAT(error_of("Compress", {}, {iota({2}), ints({1, 0})}), HasSubstr("not bool"));
}

TEST(HostOps, Scatter) {
  const Array x = iota({3, 4});
  EXPECT_THAT(types_of("ScatterElements", {{"axis", int64_t{1}}},
                       {x, array(DType::I64, {2, 5}, {0}), iota({2, 5})})[0]
                  .shape,
              ElementsAre(3, 4));
  EXPECT_THAT(error_of("ScatterElements", {}, {x, array(DType::I64, {2, 2}, {0}), iota({2, 3})}),
              HasSubstr("[2, 3]"));
  EXPECT_THAT(
      error_of("ScatterElements", {}, {x, known(array(DType::I64, {1, 1}, {3})), iota({1, 1})}),
      HasSubstr("index 3"));
  EXPECT_THAT(types_of("ScatterND", {}, {x, array(DType::I64, {5, 1}, {0}), iota({5, 4})})[0].shape,
              ElementsAre(3, 4));
  EXPECT_THAT(error_of("ScatterND", {}, {x, array(DType::I64, {5, 1}, {0}), iota({5, 3})}),
              HasSubstr("[5, 3]"));
  EXPECT_THAT(error_of("ScatterND", {{"reduction", std::string("mean")}},
                       {x, array(DType::I64, {5, 1}, {0}), iota({5, 4})}),
              HasSubstr("mean"));
}

}  // namespace
}  // namespace tilewright::tensor::testing
