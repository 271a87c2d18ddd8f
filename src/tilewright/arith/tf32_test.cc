#include "tilewright/arith/tf32.h"

#include <gtest/gtest.h>

#include "tilewright/ir/text.h"

namespace tilewright::arith {
namespace {

TEST(Tf32, IsRecognised) {
  const Var i("i");
  const Buffer a("A", DType::F32, {int_imm(4)});
  const Expr x = load(a, {ref(i)});
  const Expr rounded = round_to_tf32(x);
  ASSERT_TRUE(rounded_to_tf32(rounded));
  EXPECT_TRUE(equal(rounded_to_tf32(rounded), x));
  EXPECT_FALSE(rounded_to_tf32(x));
  EXPECT_FALSE(rounded_to_tf32(select(bool_imm(true), x, x)));
  EXPECT_FALSE(rounded_to_tf32(x * x));
}

}  // namespace
}  // namespace tilewright::arith
