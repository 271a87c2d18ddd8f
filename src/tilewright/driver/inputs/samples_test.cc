#include "tilewright/driver/inputs/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/driver/verify/package_check.h"
#include "tilewright/driver/verify/process.h"
#include "tilewright/tensor/text.h"

namespace tilewright::driver {
namespace {

using ::testing::HasSubstr;

TEST(SampleArray, IsTheSameEverywhere) {
  const Array floats = sample_array({"x", 7}, DType::F32, {1000});
  for (int64_t i = 0; i < floats.size(); ++i) {
    ASSERT_GE(floats.get(i), -2);
    ASSERT_LT(floats.get(i), 2);
    ASSERT_EQ(floats.get(i) * 64, static_cast<double>(static_cast<int64_t>(floats.get(i) * 64)));
  }
  // Worked out from the definition of SplitMix64: the packages of other machines depend on it.
  EXPECT_EQ(sample_array({"x", 0}, DType::F32, {1}).get(0),
            (0xe220a8397b1dcdafu % 256 - 128.0) / 64);
  const Array whole = sample_array({"i", 7, 3, 5}, DType::I64, {1000});
  for (int64_t i = 0; i < whole.size(); ++i) {
    ASSERT_GE(whole.get_int(i), 3);
    ASSERT_LE(whole.get_int(i), 5);
  }
}

/// A package of an expression, with samples made by `by`.
struct Packed {
  Subject subject;
  compile::CompiledModel model;
  compile::CompileOptions options;
};
Packed pack() {
  Packed packed;
  packed.options.use_c = true;  // which every build has
  packed.subject.name = "scale";
  packed.subject.func = *tensor::parse_tensor_file(
      "tensor scale(A: f32[200, 100]) {\n  B[i in 200, j in 100] = A[i, j] * 3.0\n  return B\n}\n");
  packed.model = *compile::compile_func(*packed.subject.func, packed.options);
  return packed;
}

TEST(Samples, BothSourcesAgreeAndSurviveThePackage) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const Packed packed = pack();
  for (const std::string by : {"interp", "package"}) {
    const std::string path = folder->file(by + ".twm");
    ASSERT_TRUE(save_with_samples(path, packed.subject, packed.model, packed.options, by));
    const auto package = runtime::Package::open(path);
    ASSERT_TRUE(package) << to_string(package.error());
    const auto samples = read_samples(**package);
    ASSERT_TRUE(samples && *samples);
    EXPECT_EQ((*samples)->source, by == "interp" ? "interpreter" : "package");
    ASSERT_EQ((*samples)->outputs.size(), 1u);
    const SampleOutput& output = (*samples)->outputs[0];
    EXPECT_EQ(output.shape, (Shape{200, 100}));
    EXPECT_EQ(output.stride % 2, 1);
    EXPECT_LE(output.values.size(), 4096);
    EXPECT_GT(output.values.size(), 3000);
    const auto session = runtime::Session::create(*package);
    ASSERT_TRUE(session);
    const auto results = check_samples(**session, **samples);
    ASSERT_TRUE(results) << to_string(results.error());
    EXPECT_TRUE((*results)[0].difference.ok());
    // Other expectations are seen.
    PackageSamples wrong = **samples;
    wrong.outputs[0].values = wrong.outputs[0].values.clone();
    wrong.outputs[0].values.set(17, 100);
    EXPECT_FALSE((*check_samples(**session, wrong))[0].difference.ok());
    wrong.outputs[0].shape = {100, 200};
    EXPECT_THAT((*check_samples(**session, wrong))[0].difference.problem, HasSubstr("[100, 200]"));
    wrong.inputs.clear();
    EXPECT_FALSE(check_samples(**session, wrong));
  }
}

TEST(Samples, APackageWithoutThemSaysSo) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const Packed packed = pack();
  const std::string path = folder->file("x.twm");
  ASSERT_TRUE(save_with_samples(path, packed.subject, packed.model, packed.options, "none"));
  Subject subject;
  subject.name = "x";
  subject.package = *runtime::Package::open(path);
  const auto rows = verify_by_samples(subject, {});
  ASSERT_FALSE(rows);
  EXPECT_THAT(rows.error().fix, HasSubstr("--model"));
}

TEST(Samples, DamagedOnesAreRefused) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const Packed packed = pack();
  const auto samples = make_samples(packed.subject, packed.model, packed.options, "package");
  ASSERT_TRUE(samples && *samples);
  const auto members = sample_members(**samples);
  ASSERT_TRUE(members);
  for (const std::string text : {"", "{}", "[]", "{\"source\": 3}", "{\"source\": \"package\"}"}) {
    auto changed = *members;
    changed["samples/about.json"] = text;
    const std::string path = folder->file("x.twm");
    ASSERT_TRUE(compile::save_package(path, packed.model, changed));
    const auto package = runtime::Package::open(path);
    ASSERT_TRUE(package);
    const auto read = read_samples(**package);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().kind, ErrorKind::Package);
  }
}

}  // namespace
}  // namespace tilewright::driver
