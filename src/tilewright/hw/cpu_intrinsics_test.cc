#include "tilewright/hw/cpu_intrinsics.h"

#include <gtest/gtest.h>

namespace tilewright::hw {
namespace {

TEST(CpuIntrinsics, EveryOneCanBeCalled) {
  ASSERT_GE(cpu_intrinsics().size(), 10u);
  for (const Intrinsic& in : cpu_intrinsics()) {
    const auto call = cpu_call(in);
    ASSERT_TRUE(call) << to_string(call.error());
    EXPECT_EQ(call->call.substr(0, 5), "llvm.") << in.name();
    EXPECT_FALSE(in.compute.at("needs").empty());
  }
}

TEST(CpuIntrinsics, TargetsHaveWhatTheirFeaturesSay) {
  CpuTarget target = *find_target("x86-64-v4");
  EXPECT_TRUE(dots_of(target).empty());
  target.features.push_back("+avx512vnni");
  const auto wide = find_dot(target, DType::U8, DType::I8);
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->lanes, 16);
  EXPECT_EQ(wide->depth, 4);
  EXPECT_EQ(find_dot(target, DType::U8, DType::I8, 24)->lanes, 8);
  EXPECT_FALSE(find_dot(target, DType::U8, DType::I8, 20));
  EXPECT_FALSE(find_dot(target, DType::I8, DType::I8));
  EXPECT_FALSE(find_dot(target, DType::BF16, DType::BF16));
  EXPECT_EQ(find_intrinsic(target, wide->intrinsic->meaning), wide->intrinsic);
  // The same name with another meaning is another function.
  Func other = wide->intrinsic->meaning;
  other.math = other.math == MathMode::Fast ? MathMode::Exact : MathMode::Fast;
  EXPECT_EQ(find_intrinsic(target, other), nullptr);
  EXPECT_EQ(find_intrinsic(*find_target("x86-64-v4"), wide->intrinsic->meaning), nullptr);
}

TEST(CpuIntrinsics, ArmTargetsDifferByVersion) {
  EXPECT_TRUE(dots_of(*find_target("aarch64")).empty());
  const CpuTarget older = *find_target("aarch64-v8.2"), newer = *find_target("aarch64-v8.6");
  EXPECT_TRUE(find_dot(older, DType::I8, DType::I8));
  EXPECT_FALSE(find_dot(older, DType::U8, DType::I8));
  EXPECT_TRUE(find_dot(newer, DType::U8, DType::I8));
  EXPECT_EQ(find_dot(newer, DType::BF16, DType::BF16)->depth, 2);
}

TEST(CpuIntrinsics, TilesHaveRowsToo) {
  EXPECT_TRUE(dots_of(*find_target("x86-64-v4"), DotKind::Tile).empty());
  EXPECT_TRUE(dots_of(*find_target("aarch64-v8.2"), DotKind::Tile).empty());
  const CpuTarget target = *find_target("aarch64-v8.6");
  for (const DType a : {DType::I8, DType::U8, DType::BF16}) {
    const DType b = is_float(a) ? a : DType::I8;
    const auto tile = find_dot(target, a, b, 4, DotKind::Tile);
    ASSERT_TRUE(tile) << name(a);
    EXPECT_EQ(tile->rows, 2);
    EXPECT_EQ(tile->lanes, 2);
    EXPECT_EQ(tile->depth, is_float(a) ? 4 : 8);
    EXPECT_EQ(find_dot(target, a, b)->rows, 1);
  }
}

/// Rules count on it: what multiplies bytes does so tap by tap too.
TEST(CpuIntrinsics, ProductsOfBytesHaveFormsForWindows) {
  for (const char* name : {"aarch64-v8.2", "aarch64-v8.6"})
    EXPECT_FALSE(dots_of(*find_target(name), DotKind::Taps).empty());
  CpuTarget x86 = *find_target("x86-64-v4");
  x86.features.push_back("+avx512vnni");
  for (const CpuTarget& target : {x86, *find_target("aarch64-v8.6"), *find_target("aarch64-v8.2")})
    for (const Dot& dot : dots_of(target)) {
      if (is_float(dot.a)) continue;
      const auto taps = find_dot(target, dot.a, dot.b, dot.lanes, DotKind::Taps);
      ASSERT_TRUE(taps) << dot.intrinsic->name();
      EXPECT_EQ(taps->depth, dot.depth);
      EXPECT_EQ(taps->intrinsic->compute.at("call"), dot.intrinsic->compute.at("call"));
      const auto call = cpu_call(*taps->intrinsic);
      ASSERT_TRUE(call);
      EXPECT_TRUE(call->operands[1].turned);
      EXPECT_FALSE(call->operands[2].turned);
    }
}

TEST(CpuIntrinsics, FieldsThatDoNotFitAreRefused) {
  const Intrinsic good = cpu_intrinsics().front();
  struct Row {
    const char* key;
    const char* value;
    const char* part;
  };
  for (const Row& row : {Row{"operands", "acc a", "leaves some out"}, Row{"call", "", "no field"},
                         Row{"operands", "acc a q", "no parameter q"},
                         Row{"operands", "a acc b", "not the whole result"}}) {
    Intrinsic in = good;
    in.compute[row.key] = row.value;
    const auto call = cpu_call(in);
    ASSERT_FALSE(call) << row.value;
    EXPECT_NE(to_string(call.error()).find(row.part), std::string::npos) << row.part;
  }
  Intrinsic narrow = good;
  narrow.layout["b"] = "v8i32";
  EXPECT_FALSE(cpu_call(narrow));
  Intrinsic turned = good;
  turned.compute["turned"] = "a";  // four bytes, repeated
  EXPECT_FALSE(cpu_call(turned));
  for (const char* text : {"", "v", "16i32", "v0i8", "v16", "v16int"})
    EXPECT_FALSE(parse_register_type(text)) << text;
}

}  // namespace
}  // namespace tilewright::hw
