// VTA's programs and their times stay what they are: a change of what accelerators share is not to
// alter them unnoticed. Hashes of the layers of ResNet-18, of random layers, and of what random
// programs leave behind. They depend on no compiler and no processor: everything here is in
// integers, and random numbers are drawn one statement at a time.
//
// A change that is meant changes the texts below: each failure prints the new one.
#include <fmt/format.h>

#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/accel/vta/testing/random_program.h"
#include "tilewright/base/file.h"
#include "tilewright/rules/vta/testing/layers.h"

namespace tilewright::rules {
namespace {

void append_word(std::string& out, uint64_t word) {
  for (int b = 0; b < 8; ++b) out += static_cast<char>(word >> 8 * b & 0xff);
}

/// Instructions of all runs as the hardware gets them, and DRAM with its micro-ops.
std::string bytes_of(const vta::Program& program) {
  std::string bytes;
  for (const vta::Run& run : program.runs)
    for (const vta::Insn& insn : run.insns)
      for (const uint64_t word : vta::encode(program.config, insn)) append_word(bytes, word);
  return bytes + program.image;
}

/// `HASH CYCLES`: of the bytes of the program, and of its runs by themselves.
std::string facts(const vta::Program& program) {
  uint64_t cycles = 0;
  for (const vta::Run& run : program.runs) {
    const auto report = vta::simulate_time(program.config, run.insns);
    EXPECT_TRUE(report) << to_string(report.error());
    if (report) cycles += report->cycles;
  }
  return fmt::format("{} {}", sha256(bytes_of(program)).substr(0, 16), cycles);
}

/// As the compiler makes it: the best mapping of the layer by the model.
std::string compiled(const Func& func, const vta::Config& config) {
  const auto mapping = best_mapping(facts_of(func), config);
  if (!mapping) return "fits nowhere";
  const auto trace = vta_trace(func, config, *mapping);
  EXPECT_TRUE(trace) << to_string(trace.error());
  const auto scheduled = schedule::replay(func, *trace);
  EXPECT_TRUE(scheduled) << to_string(scheduled.error());
  const auto program = codegen::vta_program(*scheduled, config);
  EXPECT_TRUE(program) << to_string(program.error());
  return program ? facts(*program) : "";
}

TEST(VtaPrograms, LayersOfResnet18AreAsEver) {
  const struct {
    TestLayer layer;  ///< blocks of 16 channels
    std::string facts;
  } kLayers[] = {
      {{.in = 1, .out = 4, .h = 224, .w = 224, .kernel = 7, .stride = 2, .pad = 3},
       "977b76e5389b71b0 2772833"},
      {{.in = 4, .out = 4, .h = 56, .w = 56, .kernel = 3, .pad = 1}, "9d9430164683e401 529890"},
      {{.in = 4, .out = 4, .h = 56, .w = 56, .kernel = 3, .pad = 1, .residual = true},
       "14c3a0609bd676ce 543375"},
      {{.in = 4, .out = 8, .h = 56, .w = 56, .stride = 2}, "0357adfa311e174b 64703"},
      {{.in = 4, .out = 8, .h = 56, .w = 56, .kernel = 3, .stride = 2, .pad = 1},
       "2e0b7a6bfd7e5833 266012"},
      {{.in = 8, .out = 8, .h = 28, .w = 28, .kernel = 3, .pad = 1, .residual = true},
       "99da5596c6edfd3d 499190"},
      {{.in = 8, .out = 16, .h = 28, .w = 28, .stride = 2}, "dec41ebab0e96d2c 45182"},
      {{.in = 8, .out = 16, .h = 28, .w = 28, .kernel = 3, .stride = 2, .pad = 1},
       "e7b1d1ea8d98418d 246830"},
      {{.in = 16, .out = 16, .h = 14, .w = 14, .kernel = 3, .pad = 1, .residual = true},
       "36158aebe983f4aa 476757"},
      {{.in = 16, .out = 32, .h = 14, .w = 14, .stride = 2}, "d361b26292804a7c 35657"},
      {{.in = 16, .out = 32, .h = 14, .w = 14, .kernel = 3, .stride = 2, .pad = 1},
       "1c7b9a7885b057d9 237872"},
      {{.in = 32, .out = 32, .h = 7, .w = 7, .kernel = 3, .pad = 1, .residual = true},
       "3888e745bf1bbd6b 467767"},
  };
  const vta::Config config;
  for (const auto& [layer, expected] : kLayers)
    EXPECT_EQ(compiled(make_layer(layer, config), config), expected)
        << layer.in << " to " << layer.out << " blocks, " << layer.h << "x" << layer.w
        << ", kernel " << layer.kernel << ", stride " << layer.stride;
  EXPECT_EQ(compiled(make_pool(4, 112, 112, 3, 2, 1, config), config), "0af17a764e419355 396658");
}

TestLayer random_layer(Rng& rng) {
  TestLayer layer;
  layer.n = rng.between(1, 2);
  layer.in = rng.between(1, 4);
  layer.out = rng.between(1, 4);
  layer.kernel = rng.between(1, 4);
  layer.h = rng.between(layer.kernel, 12);
  layer.w = rng.between(layer.kernel, 12);
  layer.stride = rng.between(1, 2);
  layer.pad = rng.below(layer.kernel);
  layer.dilation =
      layer.kernel * 2 < layer.h && layer.kernel * 2 < layer.w && rng.chance(0.2) ? 2 : 1;
  layer.residual = rng.chance(0.3);
  return layer;
}

TEST(VtaPrograms, TwentyRandomLayersAreAsEver) {
  const std::string kFacts[] = {
      "19280bc527239790 1394",  "cf60d00bc5ab8e7e 12195", "c253a82e79746d97 651",
      "e56c61d4755a004e 17789", "f8137f46f2fa1edc 5780",  "b5e5b519cf93101f 617",
      "c0b657d45ab7dabd 1308",  "a19c88376ab73642 14818", "b956022ed4ae2ddf 507",
      "482ff10854888778 1818",  "8b8064e0c42d64b1 750",   "fab3cfebc2534a95 3685",
      "316cb69752c97a69 4705",  "0edb20518fff1b82 2161",  "9909a69c3b080993 2637",
      "4f78bc531b10902a 10393", "12ca24ce652ed52b 1730",  "26d6c77036c7d2b2 4529",
      "c5c2327c4dd13f40 521",   "b7489d1f1cec417f 786",
  };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    const TestLayer layer = random_layer(rng);
    const auto uop = static_cast<int>(rng.between(5, 9));
    const auto inp = static_cast<int>(rng.between(5, 9));
    const auto wgt = static_cast<int>(rng.between(3, 7));
    const auto acc = static_cast<int>(rng.between(5, 8));
    const vta::Config config = tiny_config(uop, inp, wgt, acc);
    EXPECT_EQ(compiled(make_layer(layer, config), config), kFacts[seed]) << "seed " << seed;
  }
}

/// The program, its time by itself, and DRAM after it ran on the cycle simulator.
std::string random_facts(uint64_t seed) {
  Rng rng(seed);
  vta::testing::RandomConfigOptions options;
  options.extensions = options.features = options.timing = true;
  const vta::Config config = vta::testing::random_config(rng, options);
  vta::testing::RandomProgramOptions how;
  how.runs = 2;
  const vta::Program program = vta::testing::RandomProgram(rng, config, how).make();
  const auto device = vta::make_tsim(config, program.end());
  const auto report = vta::execute(*device, program);
  EXPECT_TRUE(report) << to_string(report.error());
  std::string image(program.image.size(), '\0');
  EXPECT_TRUE(device->read(program.base, image.data(), image.size()));
  return fmt::format("{} {}", facts(program), sha256(image).substr(0, 16));
}

TEST(VtaPrograms, TwentyRandomProgramsDoAsEver) {
  const std::string kFacts[] = {
      "e0343f96b9b2082a 2485 3388efb960ac242c", "d4377708e057508d 2471 0ffab5cf2301abab",
      "77a06d59f73ec40c 2361 7c78b2f7d1cdbc57", "7c5b6e2550141342 3670 dc1cab150b62ab5c",
      "6bacacc43c1d805e 3958 9094e547d77041eb", "f54d0961a3e7f12a 2091 8d10b2ea0442a916",
      "485d11e8014df653 2285 e09a4a766304717f", "15ed404199e16fbb 3728 847f05001bf15ec7",
      "3903712b25a32ca9 2962 7ea6100142c24438", "f34fad5e06ae4879 12757 f3055569cde176b8",
      "3ce73a234eb8c9e8 2029 f93300db97731113", "9291acb6c6ff6d8e 2527 98724883e2c305f9",
      "4ff8d92dfaf3ec69 3703 332f6d1e38e6cd2e", "9f4f353b03c42a64 3773 81151f275376a1d0",
      "a58634c7576b172a 2161 10766b47d65b799f", "19b40790909d6570 3394 eafa8f2a4ced1658",
      "cc41038eef55e673 2373 071127c04e5517f3", "a3839888a6a2f249 2867 b01c93dc83dd547a",
      "3b73b7acaf6b71b2 2824 8965d7e0f39ddf16", "098a370314f616ac 4170 97e0e2550279cfc0",
  };
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(random_facts(seed), kFacts[seed]) << "seed " << seed;
}

}  // namespace
}  // namespace tilewright::rules
