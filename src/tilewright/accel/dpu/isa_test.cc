#include "tilewright/accel/dpu/isa.h"

#include <gtest/gtest.h>

#include <string>

#include "tilewright/accel/dpu/testing/random_insn.h"

namespace tilewright::dpu {
namespace {

TEST(Isa, EncodingIsAsDeclared) {
  // By hand from the table of docs/dpu.md: a field that does not fit a word begins the next.
  Load load;
  load.mode = 1;                    // bit 12
  load.bank_id = 0x2a;              // bits 13 to 18
  load.bank_addr = 0x1555;          // bits 19 to 31
  load.jump_read = 64;              // word 1
  load.jump_write = 4;              // from bit 16 on
  load.length = 224;                // does not fit behind: word 2
  load.channel = 0x3fff;            // from bit 10 on
  load.reg_id = 3;                  // from bit 24 on
  load.ddr_addr = (1 << 29) - 256;  // word 3
  const std::string bytes = encode({Insn{0b1100, 0b0010, load}});
  const auto word = [&](size_t w) {
    uint32_t value = 0;
    for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[4 * w + i]);
    return value;
  };
  ASSERT_EQ(bytes.size(), 16u);
  EXPECT_EQ(word(0), 0u | 0b1100u << 4 | 0b0010u << 8 | 1u << 12 | 0x2au << 13 | 0x1555u << 19);
  EXPECT_EQ(word(1), 64u | 4u << 16);
  EXPECT_EQ(word(2), 224u | 0x3fffu << 10 | 3u << 24);
  EXPECT_EQ(word(3), (1u << 29) - 256);
  ConvInit init;
  init.shift_cut = -32;
  init.shift_bias = -1;
  EXPECT_EQ(std::get<ConvInit>(decode(encode({Insn{0, 0, init}}))->at(0).op), init);
}

TEST(Isa, LengthsInWords) {
  const std::pair<Op, int> expected[] = {{Load{}, 4},     {Save{}, 4}, {ConvInit{}, 4}, {Conv{}, 5},
                                         {PoolInit{}, 4}, {Pool{}, 4}, {ElewInit{}, 5}, {Elew{}, 4},
                                         {Nop{}, 1},      {End{}, 1}};
  for (const auto& [op, words] : expected) {
    EXPECT_EQ(encoded_words(op), words) << op_name(op);
    EXPECT_EQ(encode({Insn{0, 0, op}}).size(), static_cast<size_t>(4 * words));
  }
}

TEST(Isa, RandomInstructionsRoundTrip) {
  Rng rng(1);
  std::vector<Insn> insns;
  for (int i = 0; i < 20'000; ++i) insns.push_back(testing::random_insn(rng));
  for (const Insn& insn : insns) ASSERT_TRUE(check_fields(insn, "")) << disassemble(insn);
  const Result<std::vector<Insn>> decoded = decode(encode(insns));
  ASSERT_TRUE(decoded) << to_string(decoded.error());
  EXPECT_TRUE(*decoded == insns);
  const Result<std::vector<Insn>> parsed = parse_asm(disassemble(insns), "asm");
  ASSERT_TRUE(parsed) << to_string(parsed.error());
  EXPECT_TRUE(*parsed == insns);
}

/// Each field one beyond either end of its values, and in the middle of what is undefined.
TEST(Isa, FieldsAreChecked) {
  Rng rng(2);
  for (int opcode = 0; opcode < 9; ++opcode) {
    const Op legal = testing::random_op(opcode, rng);
    std::visit(
        [](auto op) {
          for (const auto& field : op.fields()) {
            const auto [low, high] = testing::legal_range(field);
            for (const int wrong : {low - 1, high + 1, field.values.hole}) {
              auto changed = op;
              changed.*field.member = wrong;
              const Status status = check_fields(Insn{0, 0, changed}, "here");
              ASSERT_FALSE(status) << op.name << " " << field.name << " " << wrong;
              EXPECT_EQ(status.error().place, "here");
              EXPECT_NE(status.error().what.find(field.name), std::string::npos);
            }
          }
        },
        legal);
  }
}

TEST(Isa, AllProblemsOfAnInstruction) {
  Insn insn{0b0100, 0b0100, ConvInit{}};
  std::get<ConvInit>(insn.op).kernel_w = 17;
  std::get<ConvInit>(insn.op).act_type = 2;
  const Status status = check_fields(insn, "");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().others.size(), 3u);
  EXPECT_FALSE(check_fields({1, 0, End{}}, ""));
  EXPECT_FALSE(check_fields({0, 0x10, Nop{}}, ""));
}

TEST(Isa, DecodingSaysWhere) {
  std::string bytes = encode({Insn{0, 0, Nop{1}}, Insn{0, 0, Load{}}});
  const auto error_of = [](std::string_view text) { return to_string(decode(text).error()); };
  EXPECT_NE(error_of(bytes.substr(0, 19)).find("LOAD at byte 4"), std::string::npos);
  std::string bad = bytes;
  bad[4] = 0xb;
  EXPECT_NE(error_of(bad).find("opcode 11 at byte 4"), std::string::npos);
  bad = bytes;
  bad[1] = static_cast<char>(0x80);
  EXPECT_NE(error_of(bad).find("unused bits"), std::string::npos);
}

TEST(Isa, MutatedBytesNeverCrash) {
  Rng rng(3);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes;
    for (int k = 0; k < 3; ++k) encode(testing::random_insn(rng), bytes);
    for (int64_t n = rng.below(4); n >= 0; --n)
      bytes[static_cast<size_t>(rng.below(std::ssize(bytes)))] = static_cast<char>(rng.next());
    if (rng.chance(0.3)) bytes.resize(static_cast<size_t>(rng.below(std::ssize(bytes))));
    const Result<std::vector<Insn>> insns = decode(bytes);
    EXPECT_TRUE(!insns || encode(*insns) == bytes);
  }
}

TEST(Asm, ReadsWhatAPersonWrites) {
  const auto insns =
      parse_asm("# head\n CONV dpon=LP dpby=S pad_left=1 length=7 # tail\n\nEND\n", "");
  ASSERT_TRUE(insns);
  ASSERT_EQ(insns->size(), 2u);
  EXPECT_EQ(insns->at(0).dpon, 0b1001);
  EXPECT_EQ(insns->at(0).dpby, 0b0010);
  const Conv& conv = std::get<Conv>(insns->at(0).op);
  EXPECT_EQ(conv.pad_left, 1);
  EXPECT_EQ(conv.length, 7);
  EXPECT_EQ(conv.valid_rows, 0);
}

TEST(Asm, EveryWrongLineIsNamed) {
  const auto insns = parse_asm(
      "CONF length=1\nLOAD lenght=2\nEND\nSAVE length=3 length=4\nPOOL dpon=X\nELEW length\n"
      "NOP queue=two\nNOP queue=4\n",
      "f");
  ASSERT_FALSE(insns);
  const std::string text = to_string(insns.error());
  for (const char* part :
       {"f:1", "did you mean 'CONV'", "f:2", "did you mean 'length'", "f:4", "named twice", "f:5",
        "f:6", "not FIELD=VALUE", "f:7", "must be a number", "f:8", "0..3"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("f:3"), std::string::npos);
}

TEST(Asm, MutatedTextIsAnErrorOrRoundTrips) {
  Rng rng(4);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = disassemble({testing::random_insn(rng), testing::random_insn(rng)});
    constexpr std::string_view kLikely = "0123456789 =LSCP_#\nabcdefgh";
    for (int64_t n = rng.below(3); n >= 0; --n)
      text[static_cast<size_t>(rng.below(std::ssize(text)))] =
          rng.chance(0.2) ? static_cast<char>(rng.next())
                          : kLikely[static_cast<size_t>(rng.below(std::ssize(kLikely)))];
    const Result<std::vector<Insn>> insns = parse_asm(text, "");
    if (!insns) continue;
    ++accepted;
    const Result<std::vector<Insn>> again = parse_asm(disassemble(*insns), "");
    ASSERT_TRUE(again);
    EXPECT_TRUE(*again == *insns);
  }
  EXPECT_GT(accepted, 30);
}

}  // namespace
}  // namespace tilewright::dpu
