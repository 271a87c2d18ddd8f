#include "tilewright/accel/vta/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/vta/device.h"
#include "tilewright/accel/vta/testing/hand_program.h"
#include "tilewright/accel/vta/testing/random_program.h"

namespace tilewright::vta {
namespace {

using namespace testing;  // NOLINT: the helpers of this layer
using ::testing::HasSubstr;

template <class T>
std::string program_message(const T& result) {
  return result ? "" : to_string(result.error());
}

void expect_equal(const std::vector<Region>& a, const std::vector<Region>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].address, b[i].address);
    EXPECT_EQ(a[i].bytes, b[i].bytes);
  }
}

void expect_equal(const Program& a, const Program& b) {
  EXPECT_EQ(a.config, b.config);
  EXPECT_EQ(a.base, b.base);
  EXPECT_TRUE(a.image == b.image);
  ASSERT_EQ(a.runs.size(), b.runs.size());
  for (size_t r = 0; r < a.runs.size(); ++r) {
    EXPECT_EQ(a.runs[r].insns, b.runs[r].insns);
    ASSERT_EQ(a.runs[r].patches.size(), b.runs[r].patches.size());
    for (size_t p = 0; p < a.runs[r].patches.size(); ++p) {
      EXPECT_EQ(a.runs[r].patches[p].address, b.runs[r].patches[p].address);
      EXPECT_EQ(a.runs[r].patches[p].data, b.runs[r].patches[p].data);
    }
    ASSERT_EQ(a.runs[r].spans.size(), b.runs[r].spans.size());
    for (size_t s = 0; s < a.runs[r].spans.size(); ++s) {
      EXPECT_EQ(a.runs[r].spans[s].name, b.runs[r].spans[s].name);
      EXPECT_EQ(a.runs[r].spans[s].begin, b.runs[r].spans[s].begin);
      EXPECT_EQ(a.runs[r].spans[s].end, b.runs[r].spans[s].end);
    }
  }
  expect_equal(a.inputs, b.inputs);
  expect_equal(a.outputs, b.outputs);
  EXPECT_EQ(a.producer, b.producer);
  EXPECT_EQ(a.info, b.info);
}

TEST(Serialise, RoundTrips) {
  Rng rng(1);
  for (int i = 0; i < 30; ++i) {
    const Config config = random_config(
        rng, {.max_log_block = 3, .extensions = true, .features = true, .timing = true});
    const Program program = random_program(rng, config, {.insns = 10, .runs = 1 + i % 3});
    const Result<Program> back = parse_program(serialise(program));
    ASSERT_TRUE(back) << program_message(back);
    expect_equal(*back, program);
  }
}

TEST(Serialise, EveryPrefixIsRefused) {
  Program program = hand_program();
  program.image.resize(20000);
  const std::string bytes = serialise(program);
  EXPECT_TRUE(parse_program(bytes)) << program_message(parse_program(bytes));
  for (size_t size = 0; size < bytes.size(); size += size < 1200 || size > 20900 ? 1 : 997)
    EXPECT_FALSE(parse_program(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_THAT(program_message(parse_program(bytes.substr(0, 100))), HasSubstr("ends too early"));
  EXPECT_THAT(program_message(parse_program(bytes + "x")), HasSubstr("1 bytes follow"));
  EXPECT_THAT(program_message(parse_program("something else")), HasSubstr("not a VTA program"));
}

TEST(Serialise, MutationsNeverCrash) {
  Rng rng(2);
  Config config = random_config(rng, {.max_log_block = 1});
  Program program = random_program(rng, config, {.insns = 5, .runs = 2});
  const std::string bytes = serialise(program);
  const size_t image = bytes.find(program.image);
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bad = bytes;
    for (int64_t edits = rng.between(1, 4); edits > 0; --edits) {
      size_t at = static_cast<size_t>(rng.below(static_cast<int64_t>(bad.size())));
      // Most of the bytes are the image, where anything goes.
      if (at >= image && at < image + program.image.size() && rng.chance(0.95))
        at = image + program.image.size() +
             static_cast<size_t>(
                 rng.below(static_cast<int64_t>(bad.size() - image - program.image.size())));
      if (at >= bad.size()) continue;
      if (rng.chance(0.1))
        bad.resize(at + 1);
      else
        bad[at] = static_cast<char>(rng.chance(0.3) ? 0xff : rng.below(256));
    }
    if (const Result<Program> parsed = parse_program(bad))
      EXPECT_TRUE(validate(*parsed));
    else
      ++refused;
  }
  EXPECT_GT(refused, 1000);
}

TEST(Validate, NamesEveryProblem) {
  const auto with_change = [](auto&& change) {
    Program program = hand_program();
    change(program);
    return program_message(validate(program));
  };
  EXPECT_EQ(with_change([](Program&) {}), "");
  EXPECT_THAT(with_change([](Program& p) { p.base = 4097; }), HasSubstr("multiple of 4096"));
  EXPECT_THAT(with_change([](Program& p) { p.base = 0; }), HasSubstr("multiple of 4096"));
  EXPECT_THAT(with_change([](Program& p) { p.base = 0xfffff000; }), HasSubstr("4 GiB"));
  EXPECT_THAT(with_change([](Program& p) { p.runs.clear(); }), HasSubstr("no run"));
  EXPECT_THAT(with_change([](Program& p) { p.outputs[0].bytes = 1 << 20; }),
              HasSubstr("output 'y'"));
  EXPECT_THAT(with_change([](Program& p) { p.inputs[0].address = ~uint64_t{0}; }),
              HasSubstr("input 'x'"));
  EXPECT_THAT(with_change([](Program& p) { p.outputs.push_back(p.outputs[0]); }),
              HasSubstr("two outputs"));
  EXPECT_THAT(with_change([](Program& p) { p.runs[0].patches = {{0, "x"}}; }),
              HasSubstr("patch of run 0"));
  EXPECT_THAT(with_change([](Program& p) { p.runs[0].spans[0].end = 99; }), HasSubstr("span"));
  EXPECT_THAT(
      with_change([](Program& p) { std::get<Transfer>(p.runs[0].insns[1].op).sram = 1 << 20; }),
      HasSubstr("run 0: instruction 1"));
  EXPECT_THAT(with_change([](Program& p) { ++p.config.log_wgt_buff; }), HasSubstr("overflows"));
  Program program = hand_program();
  program.base = 1;
  program.inputs[0].bytes = program.outputs[0].bytes = 1 << 30;
  EXPECT_EQ(validate(program).error().others.size(), 2u);
}

/// Notes what happens to it.
class FakeDevice : public Device {
 public:
  explicit FakeDevice(const Config& config) : config_(config) {}
  std::string name() const override { return "fake"; }
  const Config& config() const override { return config_; }
  Status write(uint64_t address, std::string_view bytes) override {
    log += "write " + std::to_string(address) + "+" + std::to_string(bytes.size()) + "; ";
    return {};
  }
  Status read(uint64_t, char*, uint64_t) const override { return {}; }
  Result<LaunchReport> launch(const std::vector<Insn>& insns, const LaunchOptions&) override {
    log += "launch " + std::to_string(insns.size()) + "; ";
    if (insns.size() == fail_at) return fail(ErrorKind::Invalid, "stuck");
    LaunchReport report;
    report.cycles = 10;
    report.counters = {1, 2, 3, 4, 5, 6, 7, 8, 9, insns.size()};
    report.times.resize(insns.size());
    return report;
  }

  std::string log;
  size_t fail_at = 0;

 private:
  Config config_;
};

TEST(Execute, PatchesLaunchesAndAddsUp) {
  Program program = hand_program();
  program.runs.push_back(program.runs[0]);
  program.runs[1].insns.pop_back();
  program.runs[1].patches = {{5000, "abc"}, {6000, "d"}};
  FakeDevice device(program.config);
  const Result<LaunchReport> report = execute(device, program);
  ASSERT_TRUE(report) << program_message(report);
  EXPECT_EQ(device.log, "write 4096+28672; launch 8; write 5000+3; write 6000+1; launch 7; ");
  EXPECT_EQ(report->cycles, 20u);
  EXPECT_EQ(report->counters.inp_load_bytes, 2u);
  EXPECT_EQ(report->counters.alu_reg_steps, 18u);
  EXPECT_EQ(report->counters.insns, 15u);
  EXPECT_EQ(report->times.size(), 7u);
  device.fail_at = 7;
  EXPECT_THAT(program_message(execute(device, program)), HasSubstr("run 1"));
}

TEST(Execute, RefusesAnotherDesign) {
  Program program = hand_program();
  Config smaller;
  smaller.log_uop_buff = 14;
  FakeDevice device(smaller);
  EXPECT_THAT(program_message(execute(device, program)), HasSubstr("vta_1x16_i8w8a32_14_15_18_17"));
  EXPECT_EQ(device.log, "");
}

}  // namespace
}  // namespace tilewright::vta
