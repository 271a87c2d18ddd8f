#include "tilewright/driver/inputs/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/base/file.h"
#include "tilewright/base/names.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/inputs/npz.h"
#include "tilewright/driver/verify/process.h"

namespace tilewright::driver {
namespace {

using ::testing::HasSubstr;

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
      {ErrorKind::Unreachable, 10}, {ErrorKind::Interrupted, 130}};
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

TEST(InputSpecs, MayLeaveTheNameOut) {
  const auto specs = parse_input_specs({"@a=b.npy", "zeros"});
  ASSERT_TRUE(specs);
  EXPECT_EQ((*specs)[0].name, "");
  EXPECT_EQ((*specs)[0].value, "@a=b.npy");
  EXPECT_EQ((*specs)[1].value, "zeros");
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
  EXPECT_THAT(error.fix, HasSubstr("'image'"));
}

TEST(MakeInputs, UnknownValueIsAUsageError) {
  const Error error = error_of(make_inputs(kTypes, {{"image", "twos"}}, 1));
  EXPECT_EQ(error.kind, ErrorKind::Usage);
  EXPECT_THAT(error.what, HasSubstr("'twos'"));
}

TEST(MakeInputs, ByPositionAndInTurn) {
  const std::vector<InputSpec> by_position = {{"1", "ones"}, {"0", "zeros"}},
                               in_turn = {{"", "zeros"}, {"", "ones"}};
  for (const auto& specs : {by_position, in_turn}) {
    const auto inputs = given_inputs(kTypes, specs, 1);
    ASSERT_TRUE(inputs) << to_string(inputs.error());
    EXPECT_EQ(inputs->at("image").to_doubles(), std::vector<double>(6, 0.0));
    EXPECT_EQ(inputs->at("index").to_ints(), std::vector<int64_t>(40, 1));
  }
  EXPECT_EQ(error_of(given_inputs(kTypes, {{"2", "ones"}}, 1)).kind, ErrorKind::Usage);
  EXPECT_THAT(error_of(given_inputs(kTypes, {{"", "ones"}, {"image", "ones"}}, 1)).what,
              HasSubstr("twice"));
}

TEST(MakeInputs, SaysWhatItMadeUp) {
  auto inputs = given_inputs(kTypes, {{"image", "zeros"}}, 1);
  ASSERT_TRUE(inputs);
  EXPECT_EQ(inputs->size(), 1u);
  EXPECT_EQ(make_up(kTypes, *inputs, 1), std::vector<std::string>{"index"});
  EXPECT_EQ(inputs->size(), 2u);
}

TEST(MakeInputs, ArchivesByNameByPositionOrAlone) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->file("x.npz");
  Array image(DType::F32, {2, 3}), index(DType::I64, {40});
  image.set(5, 7);
  index.set_int(3, 8);
  const auto write = [&](const std::map<std::string, Array>& arrays) {
    return write_file(path, *npz_bytes(arrays));
  };
  ASSERT_TRUE(write({{"image", image}, {"arr_1", index}, {"labels", index}}));
  const auto both = given_inputs(kTypes, {{"", "@" + path}}, 1);
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_TRUE(identical(both->at("image"), image));
  EXPECT_TRUE(identical(both->at("index"), index));
  ASSERT_TRUE(write({{"something", index}}));
  const auto alone = given_inputs(kTypes, {{"index", "@" + path}}, 1);
  ASSERT_TRUE(alone) << to_string(alone.error());
  EXPECT_TRUE(identical(alone->at("index"), index));
  EXPECT_THAT(error_of(given_inputs(kTypes, {{"", "@" + path}}, 1)).why, HasSubstr("something"));
}

TEST(MakeInputs, CastsOnlyWhenAskedAndNeverLosesAValue) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->file("x.npy");
  FileOptions cast;
  cast.cast = true;
  Array wide(DType::F64, {2, 3});
  wide.set(0, 0.1);
  ASSERT_TRUE(write_npy(path, wide));
  EXPECT_THAT(error_of(given_inputs(kTypes, {{"image", "@" + path}}, 1)).fix, HasSubstr("--cast"));
  const auto narrow = given_inputs(kTypes, {{"image", "@" + path}}, 1, cast);
  ASSERT_TRUE(narrow) << to_string(narrow.error());
  EXPECT_EQ(narrow->at("image").dtype(), DType::F32);
  EXPECT_NEAR(narrow->at("image").get(0), 0.1, 1e-7);
  wide.set(0, 1e300);
  ASSERT_TRUE(write_npy(path, wide));
  EXPECT_FALSE(given_inputs(kTypes, {{"image", "@" + path}}, 1, cast));
  Array half(DType::F32, {40});
  half.set(0, 0.5);
  ASSERT_TRUE(write_npy(path, half));
  EXPECT_FALSE(given_inputs(kTypes, {{"index", "@" + path}}, 1, cast));
  half.set(0, 2);
  ASSERT_TRUE(write_npy(path, half));
  EXPECT_EQ(given_inputs(kTypes, {{"index", "@" + path}}, 1, cast)->at("index").get_int(0), 2);
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
