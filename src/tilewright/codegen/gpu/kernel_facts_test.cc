#include "tilewright/codegen/gpu/kernel_facts.h"

#include <gtest/gtest.h>

#include "tilewright/ir/text.h"

namespace tilewright::codegen {
namespace {

/// A program whose parameters are X, Y and Z, in this order.
Func program(const std::string& body) {
  auto func = parse_func("func f(X: f32[8], inout Y: f32[8], out Z: f32[8]) {" + body + "}");
  EXPECT_TRUE(func) << to_string(func.error());
  return func ? *std::move(func) : Func{};
}

struct Stores {
  const char* body;
  bool only, fills;  ///< only Y; by one nest
};

TEST(KernelFacts, WhatIsStoredAlone) {
  for (const Stores& s : {
           Stores{"for i in 8 { Y[i] = X[i] }", true, true},
           Stores{"if X[0] > 1.0 { for i in 8 { Y[i] = X[i] } }", true, true},
           Stores{"for i in 4 { Y[i] = X[i] }  for i in 4 { Y[i + 4] = X[i] }", true, false},
           Stores{"for i in 8 { Z[i] = Y[i] }", false, false},
           Stores{"for i in 8 { Y[i] = X[i]  Z[i] = X[i] }", false, false},
           Stores{"", false, false},
       }) {
    const Func func = program(s.body);
    const std::set<Buffer> buffers = {func.params[1].buffer};
    EXPECT_EQ(stores_only(func.body, buffers), s.only) << s.body;
    EXPECT_EQ(fills_only(func.body, buffers), s.fills) << s.body;
  }
  const Func func = program("for i in 8 { Y[i] = X[i] }");
  EXPECT_FALSE(stores_only(func.body, {})) << "it stores elsewhere";
}

}  // namespace
}  // namespace tilewright::codegen
