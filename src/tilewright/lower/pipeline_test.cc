// Pipelines: their names, and that all passes of the one for processors keep what programs mean.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/interp/interp.h"
#include "tilewright/ir/testing/corpus.h"
#include "tilewright/ir/testing/random_func.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/lower.h"
#include "tilewright/lower/testing/after.h"
#include "tilewright/lower/testing/meaning.h"

namespace tilewright::lower {
namespace {

using testing::after;
using ::testing::HasSubstr;
using testing::lower_parsed;
using ::testing::Not;

TEST(Pipeline, UnknownPassIsNamed) {
  EXPECT_THAT(after("simplify, simplifi", "func f(out Y: f32[1]) {\n  Y[0] = 1.0\n}\n"),
              HasSubstr("no pass is called 'simplifi'"));
}

TEST(Pipeline, UnknownPipelineIsNamed) {
  const auto out = run_pipeline(lower_parsed(::tilewright::testing::kMatmul), "gpus");
  ASSERT_FALSE(out);
  EXPECT_THAT(to_string(out.error()), HasSubstr("no pipeline is called 'gpus'"));
  EXPECT_THAT(to_string(out.error()), HasSubstr("cpu, gpu, gpu-kernel"));
}

TEST(Pipeline, ObserverSeesEveryPass) {
  std::vector<std::string> seen;
  PassOptions options;
  options.observer = [&](const std::string& name, const Func&, bool) { seen.push_back(name); };
  ASSERT_TRUE(run_pipeline(lower_parsed(::tilewright::testing::kConv), "cpu", options));
  EXPECT_EQ(seen, (*find_pipeline("cpu"))->passes);
}

std::string cpu_passes() {
  return fmt::format("{}", fmt::join((*find_pipeline("cpu"))->passes, ","));
}

TEST(Pipeline, RegistersOfTheScheduledConvolutionAreSmall) {
  const std::string out = after(cpu_passes(), ::tilewright::testing::kConvScheduled);
  EXPECT_THAT(out, HasSubstr("alloc C: f32[6,1,4] local"));
  EXPECT_THAT(out, HasSubstr("alloc P: f32[4,4,11]"));
  EXPECT_THAT(out, Not(HasSubstr("unroll")));
}

void expect_same_meaning(const Func& func, uint64_t seed) {
  const interp::Arguments arguments = testing::arguments_of(func, seed);
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected) << to_string(expected.error());
  PassOptions options;
  options.verify_each = true;
  std::string failed;
  options.observer = [&](const std::string& name, const Func& now, bool) {
    if (!failed.empty()) return;
    const auto got = interp::run(now, arguments);
    const std::string text = got ? testing::difference(*expected, *got, testing::tolerance_of(name))
                                 : to_string(got.error());
    if (!text.empty()) failed = fmt::format("pass {}: {}\n{}", name, text, print(now));
  };
  const auto lowered = run_pipeline(func, "cpu", options);
  ASSERT_TRUE(lowered) << to_string(lowered.error()) << print(func);
  EXPECT_EQ(failed, "") << "seed " << seed << "\n" << print(func);
}

TEST(Pipeline, EveryPassKeepsTheMeaningOfKnownPrograms) {
  using namespace ::tilewright::testing;
  for (const std::string_view text : {kMatmul, kConv, kConvScheduled, kSoftmax, kLstm})
    expect_same_meaning(lower_parsed(text), 3);
}

TEST(Pipeline, EveryPassKeepsTheMeaningOfRandomPrograms) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    Func func = ::tilewright::testing::random_func(rng);
    func.body = rewrite(func.body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      if (loop == nullptr || loop->kind != ForKind::Serial || !rng.chance(0.3)) return s;
      For copy = *loop;
      copy.kind = ForKind::Unroll;
      return make(std::move(copy));
    });
    expect_same_meaning(func, seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tilewright::lower
