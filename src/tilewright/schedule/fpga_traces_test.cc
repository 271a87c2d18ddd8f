// Convolutions and products become processes by steps alone, and processes of
// random programs keep their meaning.
#include "tilewright/schedule/testing/fpga_traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/lower/lower.h"
#include "tilewright/lower/testing/run_processes.h"
#include "tilewright/schedule/testing/property.h"

namespace tilewright::schedule {
namespace {

using ::testing::HasSubstr;
using testing::kFpgaConv;
using testing::kFpgaProduct;
using testing::scheduled;

std::string names_of(const lower::DataflowRegion& region) {
  std::string all;
  for (const lower::Process& p : region.processes) all += p.name + " ";
  for (const lower::Channel& c : region.channels)
    all += fmt::format("{}*{} ", c.buffer.name(), c.slots);
  return all;
}

/// What differs between a program in order and its processes; empty if nothing
/// does.
std::string processes_differ(const Func& func, const lower::testing::RunOptions& options) {
  const interp::Arguments arguments = testing::make_arguments(func, options.seed);
  const auto expected = interp::run(func, arguments);
  if (!expected) return "in order: " + to_string(expected.error());
  const auto program = lower::processes_of(func);
  if (!program) return to_string(program.error());
  const auto got = lower::testing::run_processes(func, *program, arguments, options);
  if (!got) return got.error().what;
  for (const auto& [name, array] : expected->outputs)
    for (int64_t i = 0; i < array.size(); ++i)
      if (const double a = array.get(i), b = got->outputs.at(name).get(i);
          a != b && !(std::isnan(a) && std::isnan(b)))
        return fmt::format("{}[{}]: {} in order, {} as processes", name, i, a, b);
  return "";
}

TEST(FpgaTraces, AConvolution) {
  const Func func = scheduled(kFpgaConv, testing::conv_trace({}));
  const Func lowered = lower::run_pipeline(func, "fpga").value();
  const std::string text = tilewright::print(lowered);
  EXPECT_THAT(text, HasSubstr("C.k.o in 2 @(pipeline=dataflow)"));
  EXPECT_THAT(text, HasSubstr("alloc C: f32[4,3,6] fpga.bram @(slots=2, partition=c2_c1_c1)"));
  EXPECT_THAT(text, HasSubstr("alloc P: f32[2,5,8] fpga.bram @(slots=2, partition=c2_c1_c1)"));
  EXPECT_THAT(text, HasSubstr("alloc W.t: f32[4,2,3,3] fpga.lutram @(slots=2, "
                              "partition=c2_c2_c1_c1)"));
  EXPECT_THAT(text, HasSubstr("@(ii)"));
  for (const Func& f : {func, lowered})
    EXPECT_EQ(names_of(lower::processes_of(f).value().regions.at(0)),
              "read_X read_W compute write_Y C*2 P*2 W.t*2 ");
}

TEST(FpgaTraces, AProduct) {
  const Func func = scheduled(kFpgaProduct, testing::product_trace({}));
  EXPECT_EQ(names_of(lower::processes_of(func).value().regions.at(0)),
            "read_A read_B compute write_C C.t*2 A.t*2 B.t*2 ");
}

TEST(FpgaTracesSlow, RandomConvolutionsEqualTheProgramInOrder) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    const std::string trace = testing::conv_trace(testing::random_conv(rng));
    const Func lowered = lower::run_pipeline(scheduled(kFpgaConv, trace), "fpga").value();
    const int slots = 1 + static_cast<int>(seed % 3);
    EXPECT_EQ(processes_differ(lowered, {slots, seed, 5}), "") << trace;
  }
}

TEST(FpgaTraces, RandomProductsEqualTheProgramInOrder) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    const std::string trace = testing::product_trace(testing::random_product(rng));
    const Func lowered = lower::run_pipeline(scheduled(kFpgaProduct, trace), "fpga").value();
    const int slots = 1 + static_cast<int>(seed % 3);
    EXPECT_EQ(processes_differ(lowered, {slots, seed, 5}), "") << trace;
  }
}

/// Outermost loops of a program.
Names outermost(const Func& func) {
  Names names;
  const Tree tree(func);
  for (const Id loop : tree.loops())
    if (tree.loops_around(loop).empty()) names.push_back(tree.loop(loop).var.name());
  return names;
}

/// A random trace, then copies with slots, then all loops as dataflow that can
/// be.
Func random_processes(uint64_t seed, int64_t& cut, int64_t& refused) {
  Func now = testing::operator_graphs().make(seed, {});
  Rng rng(seed);
  for (int i = 0; i < 24; ++i) {
    Step step = testing::RandomStep(rng, now, i).draw();
    if (testing::in_place({step})) continue;
    if (i >= 12 && !std::holds_alternative<FpgaBuffer>(step)) {
      const Tree tree(now);
      const Id block = tree.blocks()[static_cast<size_t>(rng.below(std::ssize(tree.blocks())))];
      const std::vector<Id> around = tree.loops_around(block);
      const std::vector<Buffer> from = sources(tree.block(block));
      if (around.empty() || from.empty()) continue;
      step = FpgaBuffer{
          tree.block(block).name,
          from[static_cast<size_t>(rng.below(std::ssize(from)))].name(),
          fmt::format("N{}", i),
          tree.loop(around[static_cast<size_t>(rng.below(std::ssize(around)))]).var.name(),
          "bram",
          rng.between(1, 3)};
    }
    if (const auto next = schedule::apply(step, now)) now = *next;
  }
  for (const Name& loop : outermost(now)) {
    const auto next = schedule::apply(Dataflow{loop}, now);
    ++(next ? cut : refused);
    if (next) now = *next;
  }
  return now;
}

TEST(FpgaTracesSlow, ProcessesOfRandomProgramsEqualTheProgramInOrder) {
  int64_t cut = 0, refused = 0, channels = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Func func = random_processes(seed, cut, refused);
    const auto program = lower::processes_of(func);
    if (!program) continue;
    int64_t here = 0;
    for (const lower::DataflowRegion& r : program->regions) here += std::ssize(r.channels);
    if (here == 0) continue;
    channels += here;
    const int slots = 1 + static_cast<int>(seed % 3);
    ASSERT_EQ(processes_differ(func, {slots, seed, 2}), "") << seed << tilewright::print(func);
  }
  EXPECT_GE(channels, 50) << cut << " loops cut, " << refused << " refused";
  EXPECT_GE(refused, 50);
}

}  // namespace
}  // namespace tilewright::schedule
