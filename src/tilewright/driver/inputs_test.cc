#include "tilewright/driver/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/base/names.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/process.h"

namespace tilewright::driver {
namespace {

using testing::HasSubstr;

const std::vector<InputType> kTypes = {{"image", DType::F32, {2, 3}}, {"index", DType::I64, {40}}};

template <class T>
Error error_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Error{} : result.error();
}

TEST(ExitCode, IsTheTableOfTheManual) {
  const std::vector<std::pair<ErrorKind, int>> table = {
      {ErrorKind::Usage, 2},        {ErrorKind::Parse, 2},         {ErrorKind::Io, 2},
      {ErrorKind::Invalid, 3},      {ErrorKind::Unsupported, 3},   {ErrorKind::Device, 4},
      {ErrorKind::Mismatch, 5},     {ErrorKind::NotApplicable, 6}, {ErrorKind::Capacity, 6},
      {ErrorKind::Tool, 7},         {ErrorKind::Package, 8},       {ErrorKind::Limit, 9},
      {ErrorKind::Interrupted, 130}};
  for (const auto& [kind, code] : table) EXPECT_EQ(exit_code(kind), code) << static_cast<int>(kind);
}

TEST(Nearest, SmallestEditDistance) {
  const std::vector<std::string> words = {"compile", "check", "verify"};
  EXPECT_EQ(nearest("chek", words), "check");
  EXPECT_EQ(nearest("verfy", words), "verify");
  EXPECT_EQ(nearest("compiler", words), "compile");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(InputSpecs, SplitAtTheFirstEqualsSign) {
  const auto specs = parse_input_specs({"x=@a=b.npy", "gpu_0/data_0=random", "y="});
  ASSERT_TRUE(specs);
  ASSERT_EQ(specs->size(), 3u);
  EXPECT_EQ((*specs)[0].name, "x");
  EXPECT_EQ((*specs)[0].value, "@a=b.npy");
  EXPECT_EQ((*specs)[1].name, "gpu_0/data_0");
  EXPECT_EQ((*specs)[2].value, "");
}

TEST(InputSpecs, WithoutNameOrValueIsAUsageError) {
  for (const std::string text : {"x", "=random", ""}) {
    const Error error = error_of(parse_input_specs({"good=ones", text}));
    EXPECT_EQ(error.kind, ErrorKind::Usage) << text;
    EXPECT_THAT(error.what, HasSubstr("'" + text + "'"));
  }
}

TEST(RandomArray, FloatsAreStandardNormal) {
  const Array array = random_array(DType::F32, {100, 100}, 7);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < array.size(); ++i) {
    sum += array.get(i);
    squares += array.get(i) * array.get(i);
  }
  EXPECT_NEAR(sum / 1e4, 0, 0.05);
  EXPECT_NEAR(std::sqrt(squares / 1e4), 1, 0.05);
}

TEST(RandomArray, IntegersAndBoolsStayInRange) {
  const Array integers = random_array(DType::I32, {1000}, 7),
              bools = random_array(DType::Bool, {1000}, 7);
  std::vector<int> seen(10);
  int64_t ones = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_GE(integers.get_int(i), 0);
    ASSERT_LE(integers.get_int(i), 9);
    ++seen[static_cast<size_t>(integers.get_int(i))];
    ASSERT_LE(bools.get_int(i), 1);
    ones += bools.get_int(i);
  }
  for (int count : seen) EXPECT_GT(count, 50);
  EXPECT_NEAR(static_cast<double>(ones), 500, 100);
}

TEST(MakeInputs, EveryInputHasItsOwnStreamOfTheSeed) {
  const std::vector<InputType> twins = {{"a", DType::F32, {16}}, {"b", DType::F32, {16}}};
  const auto first = make_inputs(twins, {}, 1), again = make_inputs(twins, {}, 1),
             other = make_inputs(twins, {}, 2);
  ASSERT_TRUE(first && again && other);
  EXPECT_TRUE(identical(first->at("a"), again->at("a")));
  EXPECT_FALSE(identical(first->at("a"), first->at("b")));
  EXPECT_FALSE(identical(first->at("a"), other->at("a")));
}

TEST(MakeInputs, ZerosOnesAndFiles) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  Array image(DType::F32, {2, 3});
  for (int64_t i = 0; i < 6; ++i) image.set(i, static_cast<double>(i) * 0.5);
  ASSERT_TRUE(write_npy(folder->file("image.npy"), image));
  const auto inputs =
      make_inputs(kTypes, {{"image", "@" + folder->file("image.npy")}, {"index", "ones"}}, 1);
  ASSERT_TRUE(inputs) << to_string(inputs.error());
  EXPECT_TRUE(identical(inputs->at("image"), image));
  EXPECT_EQ(inputs->at("index").to_ints(), std::vector<int64_t>(40, 1));
  const auto zeros = make_inputs(kTypes, {{"image", "zeros"}}, 1);
  ASSERT_TRUE(zeros);
  EXPECT_EQ(zeros->at("image").to_doubles(), std::vector<double>(6, 0.0));
}

TEST(MakeInputs, UnknownInputNamesTheNearest) {
  const Error error = error_of(make_inputs(kTypes, {{"imag", "zeros"}}, 1));
  EXPECT_EQ(error.kind, ErrorKind::Usage);
  EXPECT_THAT(error.what, HasSubstr("'imag'"));
  EXPECT_THAT(error.why, HasSubstr("'image'"));
}

TEST(MakeInputs, UnknownValueIsAUsageError) {
  const Error error = error_of(make_inputs(kTypes, {{"image", "twos"}}, 1));
  EXPECT_EQ(error.kind, ErrorKind::Usage);
  EXPECT_THAT(error.what, HasSubstr("'twos'"));
}

TEST(MakeInputs, FilesThatDoNotFit) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->file("x.npy");
  ASSERT_TRUE(write_npy(path, Array(DType::F32, {3, 2})));
  const Error shape = error_of(make_inputs(kTypes, {{"image", "@" + path}}, 1));
  EXPECT_EQ(shape.kind, ErrorKind::Invalid);
  EXPECT_THAT(shape.why, HasSubstr("[3, 2]"));
  EXPECT_THAT(shape.why, HasSubstr("[2, 3]"));
  ASSERT_TRUE(write_npy(path, Array(DType::F64, {2, 3})));
  const Error dtype = error_of(make_inputs(kTypes, {{"image", "@" + path}}, 1));
  EXPECT_EQ(dtype.kind, ErrorKind::Invalid);
  EXPECT_THAT(dtype.why, HasSubstr("f64"));
  const Error missing = error_of(make_inputs(kTypes, {{"image", "@" + path + ".gone"}}, 1));
  EXPECT_EQ(missing.kind, ErrorKind::Io);
}

}  // namespace
}  // namespace tilewright::driver
