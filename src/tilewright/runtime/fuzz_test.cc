// The package fuzzer's harness on seeded mutations, in every build.
#include <gtest/gtest.h>

#include "tilewright/runtime/testing/fuzz_package.h"
#include "tilewright/runtime/testing/mutate.h"

namespace tilewright::runtime {
namespace {

using Place = ValueSpec::Place;

/// Every host function once, on small tensors.
Program host_program() {
  Program program;
  program.name = "hosts";
  program.target.name = "cpu";
  program.values = {{Place::Input, "x", DType::F32, {2, 4}, 0, -1},
                    {Place::Weights, "k", DType::I64, {1}, 0, -1},
                    {Place::Arena, "top", DType::F32, {2, 4}, 0, 1},
                    {Place::Arena, "at", DType::I64, {2, 4}, 64, 1},
                    {Place::Output, "hits", DType::I64, {2, 8}, 0, 1},
                    {Place::Arena, "unique", DType::F32, {8}, 128, 0},
                    {Place::Weights, "boxes", DType::F32, {1, 2, 4}, 64, -1},
                    {Place::Weights, "scores", DType::F32, {1, 1, 2}, 128, -1},
                    {Place::Output, "kept", DType::I64, {2, 3}, 0, 0},
                    {Place::Weights, "condition", DType::Bool, {2}, 192, -1},
                    {Place::Output, "some", DType::F32, {2, 4}, 0, 0},
                    {Place::Output, "scattered", DType::F32, {2, 4}, 0, -1},
                    {Place::Input, "indices", DType::I64, {2, 4}, 0, -1}};
  program.inputs = {0, 12};
  program.outputs = {4, 8, 10, 11, 2};
  program.steps = {
      {"a", "", "TopK", "{\"axis\":1,\"largest\":0}", {0, 1, 2, 3}, 2},
      {"b", "", "NonZero", "", {2, 4}, 1},
      {"c", "", "Unique", "{\"sorted\":0}", {0, 5, -1, -1, -1}, 4},
      {"d", "", "NonMaxSuppression", "", {6, 7, 1, -1, -1, 8}, 1},
      {"e", "", "Compress", "{\"axis\":0}", {0, 9, 10}, 1},
      {"f", "", "ScatterElements", "{\"reduction\":\"add\"}", {0, 12, 0, 11}, 1},
  };
  program.arena_bytes = 192;
  program.weights_bytes = 256;
  return program;
}

std::string manifest_of(const Program& program) {
  return R"({"format":"tilewright-package","version":1,"members":[{"name":"weights.bin","bytes":256,)"
         R"("sha256":")" +
         sha256(std::string(256, '\0')) + R"("}],"program":)" + to_json(program) + "}";
}

TEST(PackageFuzzSlow, SeedsAndTheirMutations) {
  const std::vector<std::string> seeds = {to_json(host_program()), manifest_of(host_program()),
                                          pack({{"manifest.json", manifest_of(host_program())}})};
  EXPECT_TRUE(fuzz_program(host_program()));
  Rng rng(17);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = seeds[static_cast<size_t>(round % 3)];
    if (round >= 3) mutate(rng, bytes);
    EXPECT_NO_THROW(fuzz_package(bytes)) << bytes;
  }
}

}  // namespace
}  // namespace tilewright::runtime
