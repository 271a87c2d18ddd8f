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

constexpr std::string_view kFpgaConv = R"(
func conv(X: f32[4,6,6], const W: f32[8,4,3,3], bias: f32[8], out Y: f32[8,6,6]) {
  alloc P: f32[4,8,8]
  for P.c in 4, P.h in 8, P.w in 8 {
    block P(c: space 4 = P.c, h: space 8 = P.h, w: space 8 = P.w) {
      P[c, h, w] = select(1 <= h && h < 7 && 1 <= w && w < 7, X[c, h - 1, w - 1], 0.0)
    }
  }
  alloc C: f32[8,6,6]
  for C.init.k in 8, C.init.h in 6, C.init.w in 6 {
    block C.init(k: space 8 = C.init.k, h: space 6 = C.init.h, w: space 6 = C.init.w) {
      C[k, h, w] = 0.0
    }
  }
  for C.k in 8, C.h in 6, C.w in 6, C.c in 4, C.r in 3, C.s in 3 {
    block C(k: space 8 = C.k, h: space 6 = C.h, w: space 6 = C.w, c: reduce 4 = C.c, r: reduce 3 = C.r, s: reduce 3 = C.s) {
      C[k, h, w] += P[c, h + r, w + s] * W[k, c, r, s]
    }
  }
  for Y.k in 8, Y.h in 6, Y.w in 6 {
    block Y(k: space 8 = Y.k, h: space 6 = Y.h, w: space 6 = Y.w) {
      Y[k, h, w] = max(C[k, h, w] + bias[k], 0.0)
    }
  }
}
)";

constexpr std::string_view kFpgaProduct = R"(
func product(A: i8[4,6], B: i8[6,8], out C: i32[4,8]) exact {
  for C.init.i in 4, C.init.j in 8 {
    block C.init(i: space 4 = C.init.i, j: space 8 = C.init.j) {
      C[i, j] = 0i32
    }
  }
  for C.i in 4, C.j in 8, C.k in 6 {
    block C(i: space 4 = C.i, j: space 8 = C.j, k: reduce 6 = C.k) {
      C[i, j] += i32(A[i, k]) * i32(B[k, j])
    }
  }
}
)";

/// The program after all steps.
Func scheduled(std::string_view text, const std::string& trace) {
  const auto func = parse_func(text);
  if (!func) throw std::runtime_error(to_string(func.error()));
  const auto after = replay(*func, parse_trace(trace).value());
  if (!after) throw std::runtime_error(to_string(after.error()));
  const Status ok = verify(*after, Stage::Scheduled);
  if (!ok) throw std::runtime_error(to_string(ok.error()) + tilewright::print(*after));
  return *after;
}

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

int64_t divisor(Rng& rng, int64_t n) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) all.push_back(d);
  return all[static_cast<size_t>(rng.below(std::ssize(all)))];
}

TEST(FpgaTraces, RandomConvolutionsEqualTheProgramInOrder) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    testing::FpgaConv d;
    d.to = divisor(rng, 8), d.tc = divisor(rng, 4), d.th = divisor(rng, 6);
    d.tw = divisor(rng, 6);
    d.uo = divisor(rng, d.to), d.ui = divisor(rng, d.tc), d.us = divisor(rng, d.tw);
    if (rng.chance(0.5))
      d.tiles = "C.h.o, C.w.o, C.k.o", d.outermost = "C.h.o", d.innermost = "C.k.o";
    const std::string trace = testing::conv_trace(d);
    const Func lowered = lower::run_pipeline(scheduled(kFpgaConv, trace), "fpga").value();
    const int slots = 1 + static_cast<int>(seed % 3);
    EXPECT_EQ(processes_differ(lowered, {slots, seed, 5}), "") << trace;
  }
}

TEST(FpgaTraces, RandomProductsEqualTheProgramInOrder) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    testing::FpgaProduct d;
    d.ti = divisor(rng, 4), d.tj = divisor(rng, 8), d.tk = divisor(rng, 6);
    d.uj = divisor(rng, d.tj);
    const std::string trace = testing::product_trace(d);
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

TEST(FpgaTraces, ProcessesOfRandomProgramsEqualTheProgramInOrder) {
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
