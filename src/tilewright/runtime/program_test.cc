#include "tilewright/runtime/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tilewright/base/rng.h"
#include "tilewright/runtime/testing/mutate.h"

namespace tilewright::runtime {
namespace {

using Json = nlohmann::json;
using Place = ValueSpec::Place;
using ::testing::HasSubstr;

/// x, w -> kernel -> t (arena) -> host NonZero -> y, dynamic.
Program sample() {
  Program program;
  program.name = "sample \"quoted\" \xc3\xa9";
  program.target = {"x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", {"+avx2", "+fma"}};
  program.values = {{Place::Input, "x", DType::F32, {2, 3}, 0, -1},
                    {Place::Weights, "w", DType::BF16, {3}, 64, -1},
                    {Place::Arena, "t", DType::Bool, {2, 3}, 128, -1},
                    {Place::Output, "y", DType::I64, {2, 6}, 0, 1}};
  program.inputs = {0};
  program.outputs = {3};
  program.kernels["k_0"] = {"k_0", 100, 128};
  program.steps = {{"node_a", "k_0", "", "", {0, 1, 2}, 1},
                   {"node_b", "", "NonZero", "{\"axis\": 1}", {2, 3}, 1}};
  program.arena_bytes = 192;
  program.arena_lower_bound = 6;
  program.weights_bytes = 128;
  program.math = "exact";
  program.notes = {{"seed", "7"}, {"command", "tilewright compile m.onnx"}};
  return program;
}

TEST(Program, JsonRoundTripKeepsEveryField) {
  const Program before = sample();
  const auto after = program_from_json(to_json(before));
  ASSERT_TRUE(after) << to_string(after.error());
  EXPECT_EQ(after->name, before.name);
  EXPECT_EQ(after->target.features, before.target.features);
  EXPECT_EQ(after->target.triple, before.target.triple);
  ASSERT_EQ(after->values.size(), 4u);
  EXPECT_EQ(after->values[1].place, Place::Weights);
  EXPECT_EQ(after->values[1].dtype, DType::BF16);
  EXPECT_EQ(after->values[1].offset, 64);
  EXPECT_EQ(after->values[3].dynamic_axis, 1);
  EXPECT_EQ(after->values[3].shape, (Shape{2, 6}));
  EXPECT_EQ(after->steps[0].kernel, "k_0");
  EXPECT_EQ(after->steps[0].args, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(after->steps[1].host, "NonZero");
  EXPECT_EQ(after->steps[1].attrs, "{\"axis\": 1}");
  EXPECT_EQ(after->kernels.at("k_0").shared_bytes, 100);
  EXPECT_EQ(after->kernels.at("k_0").per_worker_bytes, 128);
  EXPECT_EQ(after->kernels.at("k_0").symbol, "k_0");
  EXPECT_EQ(after->notes, before.notes);
  EXPECT_EQ(after->math, "exact");
  EXPECT_EQ(after->arena_lower_bound, 6);
  EXPECT_EQ(to_json(*after), to_json(before));
}

TEST(Program, EmptyProgramIsFine) {
  const auto program = program_from_json(to_json(Program{}));
  ASSERT_TRUE(program) << to_string(program.error());
  EXPECT_TRUE(program->values.empty());
}

TEST(Program, UnknownKeysAreIgnored) {
  Json json = Json::parse(to_json(sample()));
  json["later_version"] = {{"a", 1}};
  json["values"][0]["colour"] = "red";
  json["steps"][0]["extra"] = {1, 2};
  EXPECT_TRUE(program_from_json(json.dump()));
}

struct BadCase {
  const char* pointer;  // JSON pointer into the sample
  const char* value;    // JSON text, or null to remove
  const char* message;
};

class BadProgram : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadProgram, IsRefusedWithItsPath) {
  Json json = Json::parse(to_json(sample()));
  const Json::json_pointer pointer(GetParam().pointer);
  if (GetParam().value == nullptr)
    json[pointer.parent_pointer()].erase(pointer.back());
  else
    json[pointer] = Json::parse(GetParam().value);
  const auto result = program_from_json(json.dump());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Package);
  EXPECT_THAT(to_string(result.error()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadProgram,
    ::testing::Values(
        BadCase{"/values", nullptr, "the key 'values' is missing"},
        BadCase{"/target", "3", "$.target"}, BadCase{"/target/features", "[1]", "features[0]"},
        BadCase{"/name", "[]", "$.name"}, BadCase{"/arena_bytes", "-1", "$.arena_bytes"},
        BadCase{"/arena_bytes", "1.5", "$.arena_bytes"},
        BadCase{"/arena_bytes", "18446744073709551615", "$.arena_bytes"},
        BadCase{"/arena_bytes", "64", "'t' needs bytes 128 to 134 of arena, which has 64"},
        BadCase{"/weights_bytes", "69", "'w' needs bytes 64 to 70 of weights, which has 69"},
        BadCase{"/values/1/offset", "32", "32 is not a multiple of 64"},
        BadCase{"/values/1/offset", "70368744177664", "of weights"},
        BadCase{"/values/1/offset", "9223372036854775807", "$.values[1].offset"},
        BadCase{"/values/2/shape", "[4611686018427387904, 4]", "$.values[2].shape[0]"},
        BadCase{"/values/2/shape", "[8388608, 8388608, 8388608]", "is too large"},
        BadCase{"/values/2/shape", "[0, 70368744177664, 70368744177664]", "is too large"},
        BadCase{"/values/2/shape", "[-1]", "$.values[2].shape[0]"},
        BadCase{"/values/2/shape", "{}", "$.values[2].shape"},
        BadCase{"/values/2/dtype", "\"f31\"", "unknown element type 'f31'"},
        BadCase{"/values/2/place", "\"disk\"", "'disk' is not one of"},
        BadCase{"/values/2/place", "\"view\"", "there is no value -1"},
        BadCase{"/values/2", R"({"name":"t","place":"view","dtype":"f32","shape":[9],"of":0})",
                "'t' is larger than 'x'"},
        BadCase{"/values/2", R"({"name":"t","place":"view","dtype":"f32","shape":[2],"of":1})",
                "'w' is no input or output"},
        BadCase{"/values/2", R"({"name":"t","place":"view","dtype":"f32","shape":[2],"of":0})",
                "writes 't', which is an input"},
        BadCase{"/values/2/name", nullptr, "the key 'name' is missing"},
        BadCase{"/values/3/dynamic_axis", "2", "$.values[3].dynamic_axis"},
        BadCase{"/values/3", "17", "$.values[3]"}, BadCase{"/inputs", "[4]", "$.inputs[0]"},
        BadCase{"/inputs", "[-1]", "$.inputs[0]"},
        BadCase{"/inputs", "[0, 0]", "'x' is listed twice"},
        BadCase{"/inputs", "[0, 1]", "'w' is in place weights, not input"},
        BadCase{"/inputs", "[]", "'x' is in place input but not listed"},
        BadCase{"/outputs", "[]", "'y' is in place output but not listed"},
        BadCase{"/outputs", "[\"y\"]", "$.outputs[0]"},
        BadCase{"/steps/0/args", "[0, 1, 4]", "$.steps[0].args[2]"},
        BadCase{"/steps/0/args", "[0, 1, -2]", "$.steps[0].args[2]"},
        BadCase{"/steps/0/args", "[0, -1, 2]", "only a host function has absent arguments"},
        BadCase{"/steps/0/args", "[2, 1, 0]", "writes 'x', which is an input"},
        BadCase{"/steps/0/args", "[0, 2, 1]", "writes 'w', which is a constant"},
        BadCase{"/steps/0/num_outputs", "4", "$.steps[0].num_outputs"},
        BadCase{"/steps/0/num_outputs", "-1", "$.steps[0].num_outputs"},
        BadCase{"/steps/0/kernel", "\"k_1\"", "there is no kernel 'k_1'"},
        BadCase{"/steps/0/kernel", nullptr, "must name a kernel, a host function or a launch"},
        BadCase{"/steps/0/host", "\"TopK\"", "must name a kernel, a host function or a launch"},
        BadCase{"/steps/1/attrs", "\"[1]\"", "the text of a JSON object"},
        BadCase{"/steps/1/attrs", "\"{\"", "the text of a JSON object"},
        BadCase{"/steps", "{}", "$.steps"},
        BadCase{"/kernels/k_0/per_worker_bytes", "65", "65 is not a multiple of 64"},
        BadCase{"/kernels/k_0/shared_bytes", "-5", "$.kernels.k_0.shared_bytes"},
        BadCase{"/kernels", "[]", "$.kernels"}, BadCase{"/notes", "{\"a\": 1}", "$.notes.a"}));

TEST(Program, TwoInputsMayNotShareAName) {
  Program program = sample();
  program.values.push_back({Place::Input, "x", DType::F32, {1}, 0, -1});
  program.inputs.push_back(4);
  const auto result = program_from_json(to_json(program));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "two inputs are called 'x'");
}

TEST(Program, AllProblemsAreReportedTogether) {
  Program program = sample();
  program.values[1].offset = 1;
  program.values[2].offset = 6400;
  program.steps[0].kernel = "gone";
  program.kernels["k_0"].per_worker_bytes = 1;
  const auto result = program_from_json(to_json(program));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().others.size(), 3u) << to_string(result.error());
}

TEST(ProgramSlow, TextThatIsNoJsonIsRefused) {
  for (const char* text :
       {"", "{", "[]", "null", "{\"a\":1,}", "\xff\xfe", "{\"name\": \"\xff\"}"}) {
    const auto result = program_from_json(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::Package);
  }
  EXPECT_FALSE(program_from_json(std::string(1 << 20, '[')));
}

TEST(ProgramSlow, MutatedTextNeverCrashes) {
  const std::string good = to_json(sample());
  Rng rng(11);
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = good;
    mutate(rng, text);
    const auto result = program_from_json(text);
    if (!result) {
      EXPECT_EQ(result.error().kind, ErrorKind::Package);
      continue;
    }
    ++accepted;  // whatever is accepted survives a round trip
    const auto again = program_from_json(to_json(*result));
    EXPECT_TRUE(again) << text;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 4000);
}

}  // namespace
}  // namespace tilewright::runtime
