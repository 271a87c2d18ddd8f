// Integer products with zero points as kernels of GPUs have them, for tests.
#pragma once

#include <string>
#include <vector>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/rules/common/testing/kernels.h"

namespace tilewright::rules {

struct ZeroPointCase {
  std::string name, op;
  Shape x, w;
  DType x_type = DType::U8, w_type = DType::I8;
  int64_t x_zero = 0, w_zero = 0;
};

inline std::vector<ZeroPointCase> zero_point_cases() {
  const std::string conv = "ConvInteger", product = "MatMulInteger";
  return {{"conv", conv, {1, 16, 6, 6}, {16, 16, 3, 3}, DType::U8, DType::I8, 113, 0},
          {"conv_odd", conv, {2, 5, 7, 6}, {11, 5, 3, 3}, DType::I8, DType::I8, -7, 0},
          {"conv_both", conv, {1, 16, 6, 5}, {24, 16, 3, 3}, DType::U8, DType::U8, 113, 120},
          {"product", product, {24, 70}, {70, 40}, DType::U8, DType::I8, 100, 0},
          {"product_both", product, {40, 64}, {64, 24}, DType::U8, DType::U8, 100, 131}};
}

/// The kernel of the product itself, with what takes the zero points off its sums.
inline Func func_of(const ZeroPointCase& c) {
  graph::Builder b("quantised");
  Rng rng(5);
  Array w(c.w_type, c.w);
  const int64_t least = c.w_type == DType::I8 ? -128 : 0;
  for (int64_t i = 0; i < w.size(); ++i) w.set_int(i, rng.between(least, least + 255));
  const auto point = [&](const std::string& name, DType dtype, int64_t zero) {
    Array array(dtype, {});
    array.set_int(0, zero);
    return b.constant(name, array);
  };
  graph::AttrList attrs;
  if (c.x.size() == 4) attrs = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  b.output(b.node(c.op,
                  {b.input("x", c.x_type, c.x), b.constant("w", w),
                   point("x_zero", c.x_type, c.x_zero), point("w_zero", c.w_type, c.w_zero)},
                  attrs),
           "y");
  graph::PassContext context;
  context.zero_points_apart = true;
  context.dot_depth = [](DType, DType) -> int64_t { return 1; };
  const auto apart = graph::zero_points(*b.finish(), context);
  EXPECT_TRUE(apart) << to_string(apart.error());
  for (const graph::Group& group : graph::fuse(*apart)) {
    const graph::Node& anchor = apart->nodes[static_cast<size_t>(group.anchor)];
    const bool product = anchor.op == "ConvBytes" || anchor.op == "MatMulInteger";
    const Shape& to = apart->values[static_cast<size_t>(anchor.outputs[0])].type.shape;
    if (product && to[c.x.size() == 4 ? 1 : 0] > 1) return graph::group_func(*apart, group)->func;
  }
  ADD_FAILURE() << c.name;
  return {};
}

}  // namespace tilewright::rules
