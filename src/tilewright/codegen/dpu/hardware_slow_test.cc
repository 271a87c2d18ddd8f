// Small networks on random legal hardware: right results, or an error that says what does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/accel/dpu/check.h"
#include "tilewright/accel/dpu/config_keys.h"
#include "tilewright/codegen/dpu/compile.h"
#include "tilewright/codegen/dpu/testing/random.h"

namespace tilewright::dpu {
namespace {

using ::testing::HasSubstr;

/// Small values as often as large ones, the limits themselves now and then.
double drawn(const Key& key, Rng& rng) {
  if (rng.chance(0.1)) return key.low;
  if (rng.chance(0.1)) return key.high;
  const double low = std::log2(key.low + 1), high = std::log2(key.high + 1);
  return std::exp2(low + rng.uniform() * (high - low)) - 1;
}

/// Every key of hw/dpu.toml with any value that is legal.
Config legal_hardware(Rng& rng) {
  Config config;
  config.name = "random";
  for (const Key& key : config_keys()) {
    if (const auto* number = std::get_if<IntOf>(&key.value))
      (*number)(config) = static_cast<int>(drawn(key, rng));
    else if (const auto* real = std::get_if<DoubleOf>(&key.value))
      (*real)(config) = std::floor(drawn(key, rng) * 16) / 16;
    else if (const auto* flag = std::get_if<BoolOf>(&key.value))
      (*flag)(config) = rng.chance(0.5);
    else
      for (int& depth : std::get<DepthsOf>(key.value)(config))
        depth = static_cast<int>(drawn(key, rng));
  }
  config.ddr_bytes_per_cycle = 16 << rng.below(6);
  return config;
}

/// Empty: the results are those of the network's definition, and the checker finds nothing.
std::string problem_on(const Network& network, const Compiled& compiled, const Config& config,
                       Rng& rng) {
  for (const Finding& finding : check_program(compiled.program)) return finding.text;
  const Images images = random_images(network, config, rng);
  const Result<Images> results = run_program(compiled.program, images);
  return results ? difference(network, images, *results) : to_string(results.error());
}

TEST(DpuHardware, FiftyRandomLegalConfigurations) {
  int fitting = 0, refused = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    const Config config = legal_hardware(rng);
    ASSERT_TRUE(check(config)) << to_string(check(config).error());
    const Network network = random_network(rng, 5, 20);
    const std::string what = "seed " + std::to_string(seed) + "\n" + to_toml(config);
    CompileOptions options;
    options.most_attempts = 4;
    const Result<Compiled> compiled = compile(network, config, options);
    if (compiled) {
      ++fitting;
      EXPECT_EQ(problem_on(network, *compiled, config, rng), "") << what << describe(network);
      continue;
    }
    ++refused;
    const Error& error = compiled.error();
    EXPECT_EQ(error.kind, ErrorKind::Capacity) << what << to_string(error);
    EXPECT_THAT(error.what, HasSubstr("layer ")) << what;
    EXPECT_THAT(error.why, HasSubstr("there")) << what << to_string(error);
    EXPECT_THAT(error.why, HasSubstr("tried")) << what << to_string(error);
  }
  RecordProperty("fitting", fitting);
  EXPECT_GT(fitting, 30);
  RecordProperty("refused", refused);  // on the smallest memories, if any
}

}  // namespace
}  // namespace tilewright::dpu
