// Where kernels wait for products that run while threads go on.
#include "tilewright/lower/gpu_products.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/expr.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_async.h"
#include "tilewright/lower/gpu_fragments.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

const char* const kWarpGroups = "cuda.wgmma256_f16_t_panels";

Stmt call_of(std::shared_ptr<const Func> callee) {
  Call call;
  call.callee = std::move(callee);
  return make(std::move(call));
}
/// A call as the lanes of a warp make it.
Stmt lanes_call(const std::string& name) {
  return call_of(lanes_form(*hw::find_gpu_intrinsic(name)));
}
Stmt loop_of(Stmt body, Marks marks = {}) {
  For around{Var("i"), int_imm(4)};
  around.marks = std::move(marks);
  around.body = std::move(body);
  return make(std::move(around));
}

TEST(GpuProducts, ThoseThatRunOnAreThoseOfGroups) {
  EXPECT_TRUE(is_product(lanes_call(kWarpGroups)));
  EXPECT_FALSE(is_product(lanes_call("cuda.mma_bf16")));
  const auto meaning =
      std::make_shared<const Func>(hw::find_gpu_intrinsic("cuda.dp4a_u8i8")->meaning);
  EXPECT_FALSE(is_product(call_of(meaning)));
  EXPECT_TRUE(is_products(loop_of(seq({lanes_call(kWarpGroups), lanes_call(kWarpGroups)}))));
  EXPECT_FALSE(is_products(loop_of(seq({lanes_call(kWarpGroups), lanes_call("cuda.mma_bf16")}))));
  EXPECT_FALSE(is_products(seq({}))) << "nothing to wait for";
}

/// What stands in the kernel, in order: `(` and `)` around a loop, `w<n>` and `p<n>` for waits for
/// copies and products, `|` for a barrier, `*` for products, `s` for a store, `c` for a commit.
std::string sequence_of(const Stmt& s) {
  if (is_product(s)) return "*";
  if (is_commit(s)) return "c";
  if (is_sync(s)) return "|";
  if (const auto groups = waits_for(s)) return "w" + std::to_string(*groups);
  if (const auto runs = waits_for_products(s)) return "p" + std::to_string(*runs);
  if (s.as<Store>()) return "s";
  std::string inside;
  for (const Stmt& child : children(s)) inside += sequence_of(child);
  return s.as<For>() ? "(" + inside + ")" : inside;
}

/// A kernel that goes over rounds: a barrier, `parts`. Copies go to `S`, of the engine with `bulk`.
std::string waits_in(bool bulk, const std::vector<std::string>& parts) {
  const Buffer shared("S", DType::F16, {int_imm(4)}, "shared"),
      other("T", DType::F16, {int_imm(4)}, "shared");
  std::vector<Stmt> body = {make_sync()};
  for (const std::string& part : parts) {
    const Buffer& to = part == "other" ? other : shared;
    body.push_back(part == "products"
                       ? lanes_call(kWarpGroups)
                       : make(Store{to, {int_imm(0)}, float_imm(0, DType::F16), Combine::Set}));
  }
  Alloc engine{shared, {{MarkKind::Async, int64_t{1}}}};
  if (bulk) engine.marks.back().value = hw::kBulk;
  Func kernel;
  kernel.name = "kernel";
  kernel.body = seq({make(std::move(engine)), make(Alloc{other, {}}),
                     loop_of(seq(std::move(body)), {{MarkKind::Pipeline, int64_t{3}}})});
  const auto waits = insert_waits(kernel);
  EXPECT_TRUE(waits);
  const auto out = wait_for_products(*waits);
  EXPECT_TRUE(out);
  return sequence_of(out->body);
}

TEST(GpuProducts, RunBesideTheNextRoundWhereTheEngineCopies) {
  EXPECT_EQ(waits_in(true, {"copy", "products"}), "(w1*p1|sc)p0");
  EXPECT_EQ(waits_in(true, {"products", "copy"}), "(w1*p1|sc)p0");
}

TEST(GpuProducts, AreWaitedForAtOnceElsewhere) {
  EXPECT_EQ(waits_in(false, {"copy", "products"}), "(w1|sc*p0)") << "threads copy: a barrier first";
  EXPECT_EQ(waits_in(true, {"copy", "other", "products"}), "(w1|scs*p0)")
      << "threads write what products may read";
  EXPECT_EQ(waits_in(true, {"products", "copy", "products"}), "(w1|*p0sc*p0)") << "two runs";
}

}  // namespace
}  // namespace tilewright::lower
