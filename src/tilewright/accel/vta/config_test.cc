#include "tilewright/accel/vta/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/vta/isa.h"
#include "tilewright/accel/vta/testing/random_config.h"
#include "tilewright/base/file.h"
#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

using ::testing::HasSubstr;
using testing::random_config;

std::string message(const Status& status) { return status ? "" : to_string(status.error()); }
template <class T>
std::string message(const Result<T>& result) {
  return result ? "" : to_string(result.error());
}

TEST(Config, SizesOfTheDefault) {
  const Config config;
  EXPECT_TRUE(check(config)) << message(check(config));
  struct Expected {
    Mem mem;
    int64_t depth, bytes;
  };
  for (const auto& [mem, depth, bytes] :
       {Expected{Mem::Uop, 8192, 4}, Expected{Mem::Inp, 2048, 16}, Expected{Mem::Wgt, 1024, 256},
        Expected{Mem::Acc, 2048, 64}, Expected{Mem::Out, 2048, 16},
        Expected{Mem::Acc8, 2048, 16}}) {
    EXPECT_EQ(config.depth(mem), depth) << name(mem);
    EXPECT_EQ(config.element_bytes(mem), bytes) << name(mem);
  }
  EXPECT_EQ(label(config), "vta_1x16_i8w8a32_15_15_18_17");
}

// What upstream's tests and random programs showed to work.
TEST(Config, KnownGoodSizes) {
  const auto good = [](auto&& change) {
    Config config;
    change(config);
    EXPECT_TRUE(check(config)) << message(check(config));
  };
  const auto buffers = [](Config& c, int uop, int inp, int wgt, int acc) {
    c.log_uop_buff = uop;
    c.log_inp_buff = inp;
    c.log_wgt_buff = wgt;
    c.log_acc_buff = acc;
  };
  const auto block = [](Config& c, int log) { c.log_block_in = c.log_block_out = log; };
  good([&](Config& c) { c.log_batch = 1; });
  good([&](Config& c) {
    c.log_batch = 2;
    block(c, 3);
    buffers(c, 15, 16, 16, 18);
  });
  good([&](Config& c) {
    block(c, 5);
    buffers(c, 15, 15, 19, 18);
  });
  good([&](Config& c) { c.log_block_in = 5; });
  good([&](Config& c) {
    c.log_inp_width = c.log_out_width = 2;
    c.log_wgt_width = 2;
    c.log_inp_buff = 14;
    c.log_wgt_buff = 17;
  });
  good([&](Config& c) { c.log_inp_width = c.log_out_width = 4; });
}

TEST(Config, OneStepMoreOverflowsTheEncoding) {
  struct Case {
    int Config::* buffer;
    std::string field;
  };
  for (const auto& [buffer, field] :
       {Case{&Config::log_inp_buff, "`wgt_inner` of a GEMM"},
        Case{&Config::log_inp_buff, "`wgt` of a micro-op"},
        Case{&Config::log_wgt_buff, "`wgt_inner` of a GEMM"},
        Case{&Config::log_wgt_buff, "`wgt` of a micro-op"},
        Case{&Config::log_acc_buff, "`imm` of an ALU"},
        Case{&Config::log_acc_buff, "`wgt` of a micro-op"},
        Case{&Config::log_uop_buff, "of a GEMM"}, Case{&Config::log_uop_buff, "of an ALU"}}) {
    Config config;
    ++(config.*buffer);
    EXPECT_THAT(message(check(config)), HasSubstr(field));
    EXPECT_THAT(message(check(config)), HasSubstr(" too many"));
    config.*buffer -= 2;
    EXPECT_TRUE(check(config)) << message(check(config));
  }
  Config inp;
  ++inp.log_inp_buff;
  EXPECT_THAT(message(check(inp)), HasSubstr("2 bits too many"));  // two source factors
  EXPECT_THAT(message(check(inp)), HasSubstr("1 bit too many"));   // one index
  Config narrow;                                                   // 4-bit weights double the depth
  narrow.log_wgt_width = 2;
  EXPECT_THAT(message(check(narrow)), HasSubstr("overflows"));
}

TEST(Config, ADisplacedLoopCountMayStillFit) {
  Config config;
  config.log_uop_buff = 16;  // `inner` moves to the upper word
  config.log_inp_buff -= 3;
  config.log_wgt_buff -= 3;
  config.log_acc_buff -= 4;
  EXPECT_TRUE(check(config)) << message(check(config));
  for (const FieldInfo& field : field_layout(config, "gemm")) {
    if (field.name == "inner") {
      EXPECT_EQ(field.begin, 64);
    }
  }
}

TEST(Config, AllProblemsAtOnce) {
  Config config;
  config.log_acc_width = 4;
  config.log_batch = -1;
  config.timing.bus_bytes = 24;
  config.timing.gemm_ii = 0;
  const Status status = check(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Invalid);
  EXPECT_EQ(status.error().others.size(), 3u);
  for (const char* text : {"log_acc_width", "log_batch", "bus_bytes", "gemm_ii"})
    EXPECT_THAT(message(status), HasSubstr(text));
}

TEST(Config, ElementsBetweenAByteAndAPage) {
  Config tiny;
  tiny.log_inp_width = tiny.log_out_width = 0;
  tiny.log_block_in = tiny.log_block_out = 2;
  EXPECT_THAT(message(check(tiny)), HasSubstr("element of inp has 4 bits"));
  Config large;
  large.log_block_in = large.log_block_out = 7;
  large.log_wgt_buff = 20;
  EXPECT_THAT(message(check(large)), HasSubstr("element of wgt has 16384 bytes"));
  Config small;
  small.log_inp_buff = 4;
  EXPECT_THAT(message(check(small)), HasSubstr("inp has room for less than two elements"));
}

TEST(Config, SramAddressesHave16Bits) {
  Config config;
  config.log_inp_buff = 15 + 6;
  config.log_acc_buff = 17 - 9;
  config.log_wgt_buff = 18 - 9;
  EXPECT_THAT(message(check(config)), HasSubstr("field `sram`"));
}

TEST(Builtin, FilesAreTheBuiltIns) {
  for (const std::string& name : builtin_configs()) {
    const std::string path = std::string(TILEWRIGHT_ROOT_DIR) + "/hw/" + name + ".toml";
    const Result<Config> file = load_config(path);
    ASSERT_TRUE(file) << message(file);
    const Result<Config> builtin = load_config(name);
    ASSERT_TRUE(builtin) << message(builtin);
    EXPECT_EQ(*file, *builtin) << path;
    EXPECT_TRUE(check(*builtin)) << message(check(*builtin));
    EXPECT_EQ(builtin->name, name);
  }
}

TEST(Builtin, AreWhatTheirPapersSay) {
  const Config paper = *load_config("vta-paper");
  EXPECT_EQ(paper.depth(Mem::Uop) * 4, 16 << 10);
  EXPECT_EQ(paper.depth(Mem::Wgt) * paper.element_bytes(Mem::Wgt), 256 << 10);
  const Config vdla = *load_config("vdla");
  EXPECT_EQ(vdla.clock_mhz, 200);
  for (const Mem mem : {Mem::Uop, Mem::Inp, Mem::Wgt})
    EXPECT_EQ(vdla.depth(mem) * vdla.element_bytes(mem), 32 << 10) << name(mem);
  EXPECT_EQ(vdla.depth(Mem::Acc) * vdla.element_bytes(Mem::Acc), 128 << 10);
  const Config extended = *load_config("vta-extended");
  EXPECT_EQ(extended.extensions, (Extensions{true, true, true}));
  EXPECT_GE(extended.timing.bus_bytes, 16);
}

TEST(Builtin, UnknownNamesGetTheNearest) {
  const Result<Config> config = load_config("vta-papr");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().kind, ErrorKind::Usage);
  EXPECT_THAT(message(config), HasSubstr("vta-paper"));
  EXPECT_EQ(load_config("./no-such-file.toml").error().kind, ErrorKind::Io);
}

TEST(Presets, HlsPaysForShortLoops) {
  const Timing chisel = *timing_preset("chisel-64"), hls = *timing_preset("hls-pynq");
  EXPECT_EQ(chisel, Timing{});
  EXPECT_EQ(chisel.loop_fill, 0);
  EXPECT_GT(hls.loop_fill, 0);
  EXPECT_EQ(hls.alu_imm_ii, 2);
  EXPECT_EQ(hls.alu_reg_ii, 2);
  EXPECT_EQ(hls.gemm_ii, 1);
  EXPECT_FALSE(timing_preset("chisel"));
}

TEST(Toml, RoundTrips) {
  Rng rng(1);
  for (int i = 0; i < 100; ++i) {
    Config config = random_config(rng, {.extensions = true, .features = true, .timing = true});
    config.name = "ra\"nd\\om \xc3\xa4 " + std::to_string(i);
    config.clock_mhz = rng.uniform() * 1000 + 1;
    const Result<Config> back = parse_config(to_toml(config), "text");
    ASSERT_TRUE(back) << message(back) << to_toml(config);
    EXPECT_EQ(*back, config) << to_toml(config);
  }
}

TEST(Toml, DefaultsAndPresets) {
  EXPECT_EQ(*parse_config("", "text"), Config{});
  const Result<Config> config = parse_config(
      "name = \"x\"\nlog_uop_buff = 14\n[timing]\npreset = \"hls-pynq\"\nburst_gap = 3\n", "t");
  ASSERT_TRUE(config) << message(config);
  EXPECT_EQ(config->log_uop_buff, 14);
  EXPECT_EQ(config->timing.preset, "hls-pynq");
  EXPECT_EQ(config->timing.burst_gap, 3);
  EXPECT_GT(config->timing.loop_fill, 0);
  EXPECT_EQ(parse_config("log_inp_width = 4\nlog_inp_buff = 16", "t")->log_out_width, 4);
}

TEST(Toml, BadTexts) {
  const auto error = [](std::string_view text) { return message(parse_config(text, "hw.toml")); };
  EXPECT_THAT(error("log_bacth = 1\n"), HasSubstr("unknown key `log_bacth`"));
  EXPECT_THAT(error("log_bacth = 1\n"), HasSubstr("did you mean 'log_batch'"));
  EXPECT_THAT(error("\n[timing]\nbus_byte = 8\n"), HasSubstr("hw.toml:3:1"));
  EXPECT_THAT(error("[timing]\nbus_byte = 8\n"), HasSubstr("did you mean 'bus_bytes'"));
  EXPECT_THAT(error("[timing]\npreset = \"chisel\"\n"), HasSubstr("chisel-64"));
  EXPECT_THAT(error("[timing]\nbus_bytes = 7\n"), HasSubstr("bus_bytes"));
  EXPECT_THAT(error("log_batch = 1.5\n"), HasSubstr("`log_batch` must be an integer"));
  EXPECT_THAT(error("log_batch = 99999999999\n"), HasSubstr("too large"));
  EXPECT_THAT(error("has_mul = 1\n"), HasSubstr("true or false"));
  EXPECT_THAT(error("timing = 3\n"), HasSubstr("must be a table"));
  EXPECT_THAT(error("log_batch = \n"), HasSubstr("hw.toml:1"));
  EXPECT_THAT(error("log_batch = 1\nlog_batch = 2"), HasSubstr("hw.toml:2"));
  EXPECT_THAT(error("log_batch = 1\n[[[timing]]]"), HasSubstr("hw.toml:2"));
  EXPECT_THAT(error("log_wgt_buff = 19"), HasSubstr("overflows"));
  EXPECT_THAT(error("\nlog_batch = 99\n"), HasSubstr("hw.toml:2:13"));
  EXPECT_THAT(error("[timing]\nbus_bytes = 7\n"), HasSubstr("hw.toml:2:13"));
  EXPECT_THAT(error("[timing]\nclock = 3\n"), HasSubstr("the keys here are preset, bus_bytes"));
  EXPECT_EQ(parse_config("log_batch = 99", "t").error().kind, ErrorKind::Parse);
  const Result<Config> two = parse_config("a = 1\nb = 2\nclock_mhz = \"x\"", "t");
  EXPECT_EQ(two.error().others.size(), 2u);
}

// VTA's own sample, as it is shipped.
constexpr std::string_view kSample = R"({
  "TARGET" : "sim",
  "HW_VER" : "0.0.2",
  "LOG_INP_WIDTH" : 3,
  "LOG_WGT_WIDTH" : 3,
  "LOG_ACC_WIDTH" : 5,
  "LOG_BATCH" : 0,
  "LOG_BLOCK" : 4,
  "LOG_UOP_BUFF_SIZE" : 15,
  "LOG_INP_BUFF_SIZE" : 15,
  "LOG_WGT_BUFF_SIZE" : 18,
  "LOG_ACC_BUFF_SIZE" : 17
})";

TEST(Json, TheSampleIsTheDefault) {
  EXPECT_EQ(*parse_config(kSample, "vta_config.json"), Config{});
}

TEST(Json, RoundTrips) {
  Rng rng(2);
  for (int i = 0; i < 100; ++i) {
    const Config config = random_config(rng, {.extensions = true, .features = true});
    Result<Config> back = parse_config(to_json(config), "text");
    ASSERT_TRUE(back) << message(back) << to_json(config);
    back->name = config.name;  // JSON has neither name nor timing
    back->timing = config.timing;
    EXPECT_EQ(*back, config) << to_json(config);
  }
}

TEST(Json, BadTexts) {
  const auto error = [](std::string_view text) { return message(parse_config(text, "vta.json")); };
  const auto edit = [](std::string_view from, std::string_view to) {
    std::string text(kSample);
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(error("{\n \"LOG_BATCH\" 0}"), HasSubstr("vta.json:2"));
  EXPECT_THAT(error("{}"), HasSubstr("`LOG_INP_WIDTH` is missing"));
  EXPECT_THAT(error("{}"), HasSubstr("`LOG_BLOCK`, or both"));
  EXPECT_THAT(error(edit("\"LOG_BATCH\" : 0", "\"LOG_BATCH\" : \"0\"")), HasSubstr("integer"));
  EXPECT_THAT(error(edit("\"LOG_BATCH\" : 0", "\"LOG_BATCH\" : 1e30")), HasSubstr("integer"));
  EXPECT_THAT(error(edit("\"LOG_BATCH\" : 0", "\"LOG_BATCH\" : 99999999999")), HasSubstr("large"));
  EXPECT_THAT(error(edit("\"LOG_BATCH\" : 0", "\"LOG_BATCH\" : 0, \"PIPELINE\": 5")),
              HasSubstr("PIPELINE"));
  EXPECT_THAT(error(edit("18", "19")), HasSubstr("overflows"));
  const Config uneven =
      *parse_config(edit("\"LOG_BLOCK\" : 4", "\"LOG_BLOCK_IN\": 4, \"LOG_BLOCK_OUT\": 5"), "t");
  EXPECT_EQ(uneven.block_in(), 16);
  EXPECT_EQ(uneven.block_out(), 32);
}

TEST(Text, MutationsNeverCrash) {
  Rng rng(3);
  const std::vector<std::string> seeds = {to_toml(*load_config("vta-extended")),
                                          std::string(kSample), to_json(*load_config("vdla"))};
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = seeds[static_cast<size_t>(rng.below(3))];
    for (int64_t edits = rng.between(1, 4); edits > 0; --edits) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      switch (rng.below(4)) {
        case 0:
          text[at] = static_cast<char>(rng.below(256));
          break;
        case 1:
          text.erase(at, static_cast<size_t>(rng.below(20)));
          break;
        case 2:
          text.insert(at, text.substr(static_cast<size_t>(rng.below(30)), 20));
          break;
        default:
          text.insert(at, 1, "[]{}\"=,\n.-0123456789"[rng.below(20)]);
      }
      if (text.empty()) text = " ";
    }
    if (const Result<Config> config = parse_config(text, "fuzz")) {
      ++accepted;
      EXPECT_TRUE(check(*config));
    } else {
      EXPECT_FALSE(message(config).empty());
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(Text, DeepNestingIsRefused) {
  EXPECT_FALSE(parse_config("{" + std::string(100'000, '['), "deep"));
  EXPECT_FALSE(parse_config("a = " + std::string(100'000, '['), "deep"));
  EXPECT_FALSE(
      parse_config("{\"x\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", "d"));
}

TEST(SameArchitecture, LooksAtMeaningOnly) {
  Config other;
  other.name = "other";
  other.clock_mhz = 5;
  other.timing.bus_bytes = 64;
  other.extensions.pipelined_alu = true;
  EXPECT_TRUE(same_architecture({}, other));
  other.extensions.pipeline4 = true;
  EXPECT_FALSE(same_architecture({}, other));
  Config smaller;
  smaller.log_uop_buff = 14;
  EXPECT_FALSE(same_architecture({}, smaller));
}

}  // namespace
}  // namespace tilewright::vta
