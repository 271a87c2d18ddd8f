#include "tilewright/accel/vta/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tilewright/accel/vta/testing/random_config.h"
#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

using ::testing::HasSubstr;
using testing::random_config;

std::string isa_message(const Status& status) { return status ? "" : to_string(status.error()); }

// Golden words: bit positions by hand from the specification's tables for the default sizes.

TEST(Encode, LoadOfDefault) {
  const Insn insn = {{false, true, false, true},
                     Transfer{false, Mem::Inp, 0x123, 0x89abcdef, 3, 14, 56, 1, 2, 3, 4}};
  EXPECT_EQ(encode({}, insn), (Word{0x0226af37bc048d50u, 0x43210038000e0003u}));
}

TEST(Encode, LargestStoreOfDefault) {
  const Insn insn = {{true, false, true, false},
                     Transfer{true, Mem::Out, 65535, 0xffffffff, 65535, 65535, 65535, 0, 0, 0, 0}};
  EXPECT_EQ(encode({}, insn), (Word{0x03fffffffffffe29u, 0x0000ffffffffffffu}));
}

TEST(Encode, GemmOfDefault) {
  const Loops loops = {0x155, 0x2000, 14, 0x3fff, 0x7ff, 1, 0x400, 3, 0x3ff, 0x201};
  EXPECT_EQ(encode({}, {{true, false, false, true}, Gemm{false, false, loops}}),
            (Word{0x7ffe00740001554au, 0x807ff00700000fffu}));
  EXPECT_EQ(encode({}, {{}, Gemm{true, false, {8191, 8192, 1, 2, 0, 0, 0, 0, 0, 0}}}),
            (Word{0x0004000c001fff82u, 0}));
}

TEST(Encode, ReplaceFirstIsTheUnusedBitOfTheLowWord) {
  Config config;
  config.extensions.fused_reset = true;
  const Insn insn = {{}, Gemm{false, true, {0, 1, 1, 1, 0, 0, 0, 0, 0, 0}}};
  EXPECT_EQ(encode(config, insn), (Word{0x8002000800200002u, 0}));
}

TEST(Encode, AluOfDefault) {
  const Insn insn = {{false, true, true, false},
                     Alu{AluOp::Shr, true, -8, {1, 3, 2, 5, 7, 0x7ff, 0x123, 0x456, 0, 0}}};
  EXPECT_EQ(encode({}, insn), (Word{0x000a001000600134u, 0xfff8b8ac48fff807u}));
}

TEST(Encode, FinishAndMicroOpOfDefault) {
  EXPECT_EQ(encode({}, {{true, true, false, false}, Finish{}}), (Word{0x1b, 0}));
  EXPECT_EQ(encode(Config{}, Uop{0x7ff, 0x401, 0x2aa}), 0xaaa00fffu);
}

TEST(Layout, DefaultIsExactlyFull) {
  for (const auto& [form, end] : {std::pair("transfer", 128), std::pair("gemm", 128),
                                  std::pair("alu", 128), std::pair("uop", 32)}) {
    const auto fields = field_layout({}, form);
    EXPECT_EQ(fields.back().begin + fields.back().width, end) << form;
  }
}

/// Fields of one form laid out by the rule of the specification, from widths alone.
std::vector<std::pair<int, int>> packed(const std::vector<int>& widths, int unit) {
  std::vector<std::pair<int, int>> at;
  int bit = 0;
  for (const int width : widths) {
    if (width > 0 && bit / unit != (bit + width - 1) / unit) bit = (bit / unit + 1) * unit;
    at.emplace_back(bit, width);
    bit += width;
  }
  return at;
}

TEST(Layout, FollowsThePackingRule) {
  Rng rng(2);
  for (int i = 0; i < 100; ++i) {
    const Config config = random_config(rng);
    const int lu = config.log_depth(Mem::Uop), li = config.log_depth(Mem::Inp);
    const int lw = config.log_depth(Mem::Wgt), la = config.log_depth(Mem::Acc);
    const std::map<std::string, std::vector<int>> widths = {
        {"transfer", {3, 1, 1, 1, 1, 3, 16, 32, 16, 16, 16, 4, 4, 4, 4}},
        {"gemm", {3, 1, 1, 1, 1, 1, lu, lu + 1, 14, 14, la, la, li, li, lw, lw}},
        {"alu", {3, 1, 1, 1, 1, 1, lu, lu + 1, 14, 14, la, la, la, la, 3, 1, 16}},
        {"uop", {la, std::max(la, li), lw}}};
    for (const auto& [form, list] : widths) {
      std::vector<std::pair<int, int>> at;
      for (const FieldInfo& field : field_layout(config, form))
        at.emplace_back(field.begin, field.width);
      EXPECT_EQ(at, packed(list, form == "uop" ? 32 : 64)) << form << " " << label(config);
    }
  }
}

TEST(Layout, NoTwoFieldsShareABit) {
  Rng rng(3);
  for (int i = 0; i < 100; ++i) {
    const Config config = random_config(rng, {.extensions = true});
    for (const std::string_view form : {"transfer", "gemm", "alu", "uop"}) {
      std::vector<int> used(128, 0);
      for (const FieldInfo& field : field_layout(config, form)) {
        for (int bit = 0; bit < field.width; ++bit)
          EXPECT_EQ(used.at(static_cast<size_t>(field.begin + bit))++, 0) << field.name;
        EXPECT_TRUE(field.width == 0 || field.begin / 64 == (field.begin + field.width - 1) / 64);
      }
    }
  }
}

class RandomInsn {
 public:
  RandomInsn(Rng& rng, const Config& config) : rng_(rng), config_(config) {}

  Insn make() {
    Insn insn;
    insn.deps = {flag(), flag(), flag(), flag()};
    switch (rng_.below(5)) {
      case 0:
        insn.op = transfer(false);
        break;
      case 1:
        insn.op = transfer(true);
        break;
      case 2:
        insn.op = Gemm{flag(), config_.extensions.fused_reset && flag(), loops(Mem::Inp, true)};
        break;
      case 3:
        insn.op = Alu{static_cast<AluOp>(rng_.below(5)), flag(),
                      static_cast<int16_t>(rng_.between(-32768, 32767)), loops(Mem::Acc, false)};
        break;
      default:
        insn.op = Finish{};
    }
    return insn;
  }

 private:
  bool flag() { return rng_.chance(0.5); }
  /// Often the smallest or the largest value.
  uint32_t bits(int width) {
    const uint64_t largest = (uint64_t{1} << width) - 1;
    if (rng_.chance(0.2)) return static_cast<uint32_t>(largest);
    return static_cast<uint32_t>(rng_.next() & largest);
  }
  Transfer transfer(bool store) {
    return {store,    static_cast<Mem>(rng_.below(6)),
            bits(16), bits(32),
            bits(16), bits(16),
            bits(16), bits(4),
            bits(4),  bits(4),
            bits(4)};
  }
  Loops loops(Mem src, bool weights) {
    const int lu = config_.log_depth(Mem::Uop), la = config_.log_depth(Mem::Acc);
    const int ls = config_.log_depth(src), lw = weights ? config_.log_depth(Mem::Wgt) : 0;
    return {bits(lu), bits(lu + 1), bits(14), bits(14), bits(la),
            bits(la), bits(ls),     bits(ls), bits(lw), bits(lw)};
  }

  Rng& rng_;
  const Config& config_;
};

TEST(Encode, DecodeGivesBackEveryField) {
  Rng rng(1);
  for (int c = 0; c < 60; ++c) {
    const Config config = c == 0 ? Config{} : random_config(rng, {.extensions = true});
    RandomInsn random(rng, config);
    for (int i = 0; i < 200; ++i) {
      const Insn insn = random.make();
      ASSERT_TRUE(fits(config, insn)) << isa_message(fits(config, insn)) << label(config);
      const Result<Insn> back = decode(config, encode(config, insn));
      ASSERT_TRUE(back);
      ASSERT_EQ(*back, insn) << label(config) << "\n"
                             << disassemble(config, insn) << "\n"
                             << disassemble(config, *back);
      const auto index = [&](Mem mem) {
        return static_cast<uint32_t>(rng.below(config.depth(mem)));
      };
      const Uop uop = {index(Mem::Acc), rng.chance(0.5) ? index(Mem::Inp) : index(Mem::Acc),
                       index(Mem::Wgt)};
      ASSERT_EQ(decode_uop(config, encode(config, uop)), uop) << label(config);
    }
  }
}

TEST(Encode, EachFieldHasItsOwnBits) {
  // Flipping the bits of one field changes the decoded instruction in no more than that field:
  // encoding it again differs in those bits only.
  Rng rng(4);
  const Config config = random_config(rng);
  for (int i = 0; i < 300; ++i) {
    const Insn insn = RandomInsn(rng, config).make();
    if (std::holds_alternative<Finish>(insn.op)) continue;
    const std::string_view form = std::holds_alternative<Transfer>(insn.op) ? "transfer"
                                  : std::holds_alternative<Gemm>(insn.op)   ? "gemm"
                                                                            : "alu";
    const Word word = encode(config, insn);
    for (const FieldInfo& field : field_layout(config, form)) {
      if (field.name == "opcode" || field.name == "mem" || field.name == "op") continue;
      if (form == "alu" && field.name == "reset") continue;  // nothing reads it
      Word flipped = word;
      const auto ones = field.width == 64 ? ~uint64_t{0} : (uint64_t{1} << field.width) - 1;
      flipped.at(static_cast<size_t>(field.begin / 64)) ^= ones << (field.begin % 64);
      const Result<Insn> decoded = decode(config, flipped);
      ASSERT_TRUE(decoded);
      EXPECT_EQ(encode(config, *decoded), flipped) << field.name;
    }
  }
}

TEST(Decode, IgnoresUnusedBits) {
  const Insn load = {{}, Transfer{false, Mem::Acc, 1, 2, 3, 4, 5, 0, 0, 0, 0}};
  Word word = encode({}, load);
  word[0] |= uint64_t{0x3f} << 58;
  EXPECT_EQ(*decode({}, word), load);
  EXPECT_EQ(*decode({}, {0xffffffffffffff83u, ~uint64_t{0}}), (Insn{{}, Finish{}}));
  const Insn gemm = {{}, Gemm{}};
  word = encode({}, gemm);
  word[0] |= uint64_t{1} << 63;
  EXPECT_EQ(*decode({}, word), gemm);  // replace_first means nothing in the published design
}

TEST(Decode, RefusesWhatIsNotDefined) {
  for (const uint64_t opcode : {5u, 6u, 7u}) {
    const auto insn = decode({}, {opcode, 0});
    ASSERT_FALSE(insn);
    EXPECT_EQ(insn.error().kind, ErrorKind::Invalid);
    EXPECT_THAT(insn.error().what, HasSubstr("opcode"));
  }
  EXPECT_THAT(decode({}, {uint64_t{6} << 7, 0}).error().what, HasSubstr("memory id 6"));
  EXPECT_THAT(decode({}, {4, uint64_t{7} << (108 - 64)}).error().what, HasSubstr("ALU opcode 7"));
}

TEST(Decode, RandomWordsNeverCrash) {
  Rng rng(5);
  for (int i = 0; i < 20'000; ++i) {
    static Config config;
    if (i % 500 == 0) config = random_config(rng, {.extensions = true});
    const Word word = {rng.next(), rng.next()};
    if (const Result<Insn> insn = decode(config, word)) {
      EXPECT_TRUE(fits(config, *insn));
      EXPECT_EQ(*decode(config, encode(config, *insn)), *insn);
      EXPECT_FALSE(disassemble(config, *insn).empty());
    }
  }
}

TEST(Fits, NamesEachFieldThatDoesNot) {
  Transfer move;
  move.sram = 65536;
  move.y_pad_top = 16;
  const Status status = fits({}, {{}, move});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Capacity);
  EXPECT_THAT(status.error().what, HasSubstr("`sram` = 65536 needs more than its 16 bits"));
  EXPECT_THAT(status.error().what, HasSubstr("`y_pad_top` = 16"));
  EXPECT_FALSE(fits({}, {{}, Gemm{false, false, {0, 8193 * 2, 1, 1, 0, 0, 0, 0, 0, 0}}}));
  EXPECT_FALSE(fits({}, {{}, Gemm{false, false, {0, 1, 1 << 14, 1, 0, 0, 0, 0, 0, 0}}}));
  EXPECT_FALSE(fits({}, {{}, Alu{AluOp::Min, true, 0, {0, 1, 1, 1, 0, 0, 2048, 0, 0, 0}}}));
  EXPECT_THAT(isa_message(fits({}, {{}, Gemm{false, true, {}}})), HasSubstr("replace_first"));
}

TEST(Modules, OfThePublishedDesign) {
  const Config config;
  const auto load = [](Mem mem) { return Insn{{}, Transfer{false, mem}}; };
  EXPECT_EQ(modules(config), (std::vector{Module::Load, Module::Compute, Module::Store}));
  EXPECT_EQ(module_of(config, load(Mem::Inp)), Module::Load);
  EXPECT_EQ(module_of(config, load(Mem::Wgt)), Module::Load);
  for (const Mem mem : {Mem::Uop, Mem::Acc, Mem::Acc8})
    EXPECT_EQ(module_of(config, load(mem)), Module::Compute);
  EXPECT_EQ(module_of(config, {{}, Transfer{true, Mem::Uop}}), Module::Store);
  EXPECT_EQ(module_of(config, {{}, Gemm{}}), Module::Compute);
  EXPECT_EQ(module_of(config, {{}, Alu{}}), Module::Compute);
  EXPECT_EQ(module_of(config, {{}, Finish{}}), Module::Compute);
}

TEST(Modules, OfFourInARow) {
  Config config;
  config.extensions.pipeline4 = true;
  const auto load = [](Mem mem) { return Insn{{}, Transfer{false, mem}}; };
  EXPECT_EQ(modules(config),
            (std::vector{Module::Load, Module::Compute, Module::Alu, Module::Store}));
  EXPECT_EQ(module_of(config, load(Mem::Uop)), Module::Compute);
  EXPECT_EQ(module_of(config, load(Mem::Acc)), Module::Alu);
  EXPECT_EQ(module_of(config, load(Mem::Acc8)), Module::Alu);
  EXPECT_EQ(module_of(config, {{}, Gemm{}}), Module::Compute);
  EXPECT_EQ(module_of(config, {{}, Alu{}}), Module::Alu);
  EXPECT_EQ(module_of(config, {{}, Finish{}}), Module::Alu);
}

TEST(Disassemble, ReadsWell) {
  EXPECT_EQ(disassemble({}, {{false, true, false, true},
                             Transfer{false, Mem::Inp, 0, 0x40, 8, 14, 16, 1, 0, 1, 1}}),
            "load.inp   sram 0 dram 0x40 8x14+16 pad top 1 bottom 0 left 1 right 1  "
            "[pop_next push_next]");
  EXPECT_EQ(disassemble({}, {{}, Transfer{true, Mem::Out, 7, 9, 1, 3, 3, 0, 0, 0, 0}}),
            "store.out  sram 7 dram 0x9 1x3");
  EXPECT_EQ(disassemble({}, {{true}, Transfer{false, Mem::Uop}}), "load.uop   none  [pop_prev]");
  EXPECT_EQ(disassemble({}, {{}, Gemm{true, false, {0, 4, 14, 3, 14, 1, 16, 1, 0, 0}}}),
            "gemm.reset uop 0..4 loops 14x3 dst 14,1 src 16,1");
  EXPECT_EQ(disassemble({}, {{}, Alu{AluOp::Shr, true, -8, {2, 3, 1, 1, 0, 0, 0, 0, 0, 0}}}),
            "alu.shr    imm -8 uop 2..3 loops 1x1");
  EXPECT_EQ(disassemble({}, {{}, Finish{}}), "finish");
}

}  // namespace
}  // namespace tilewright::vta
