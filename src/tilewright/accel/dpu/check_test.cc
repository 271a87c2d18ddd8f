#include "tilewright/accel/dpu/check.h"

#include <gtest/gtest.h>

#include "tilewright/accel/dpu/sim/testing/run_device.h"
#include "tilewright/accel/dpu/testing/example_layer.h"
#include "tilewright/accel/dpu/testing/random_program.h"

namespace tilewright::dpu {
namespace {

using testing::Scheme;

std::string print(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings)
    text += std::string(name(f.rule)) + " " + std::to_string(f.run) + ":" + std::to_string(f.insn) +
            " " + f.text + "\n";
  return text;
}

/// What the checker says about hand-written streams, one per run.
std::string check_text(std::initializer_list<const char*> runs) {
  Rng rng(1);
  Program program = testing::empty_program({}, rng);
  for (const char* text : runs) program.runs.push_back({{}, parse_asm(text, "").value(), {}});
  return print(check_program(program));
}

constexpr const char* kLoad = "LOAD dpby=S jump_read=16 jump_write=1 length=4 channel=16\n";

TEST(Check, RightProgramsHaveNoFindings) {
  EXPECT_EQ(check_text({"LOAD dpby=S jump_read=16 jump_write=1 length=4 channel=16\n"
                        "SAVE dpon=L jump_read=1 jump_write=16 length=4 channel=16 reg_id=2\nEND",
                        "LOAD jump_read=16 jump_write=1 length=4 channel=16 reg_id=2\nEND"}),
            "");
  for (const bool addresses : {false, true})
    EXPECT_EQ(print(check_program(testing::example_layer(28, addresses, true))), "");
}

TEST(Check, EachRule) {
  const std::pair<std::string, const char*> cases[] = {
      {check_text({"NOP queue=1 dpby=S\nEND"}), "field 0:0"},
      {check_text({"LOAD\nEND"}), "field 0:0"},
      {check_text({"CONV length=1 out_groups=1 valid_rows=1\nEND"}), "order 0:0"},
      {check_text({"NOP\n"}), "order 0:0"},
      {check_text({"END\nNOP\nEND"}), "order 0:0 END, but 2 follow"},
      {check_text({"NOP dpon=C\nNOP queue=2 dpby=L\nEND"}),
       "deadlock 0:0 waits for token 1 of CONV"},
      {check_text({"END", "NOP dpby=C\nEND"}), "leftover-token 1:0 1 of 1 tokens"},
      {check_text({"LOAD bank_id=24 jump_read=16 jump_write=1 length=4 channel=16\nEND"}),
       "range 0:0"},
      {check_text({"LOAD jump_read=16 jump_write=1 length=4 channel=16 ddr_addr=16192\nEND"}),
       "range 0:0 touches bytes"},
      {check_text({"LOAD jump_read=16 jump_write=1 length=4 channel=16\n"
                   "SAVE jump_read=1 jump_write=16 length=4 channel=16 reg_id=1\nEND"}),
       "race 0:1 SAVE and instruction 0 (LOAD) meet in FM 0, 0..4"},
      {check_text({"SAVE jump_read=1 jump_write=16 length=4 channel=16 reg_id=1\nEND"}),
       "undefined 0:0 reads FM 0, 0"},
      {check_text({"LOAD jump_read=16 jump_write=1 length=4 channel=16 reg_id=1\nEND"}),
       "undefined 0:0 reads output, 0"},
      {check_text({(std::string(kLoad) + "NOP queue=1 dpon=L\nEND").c_str(),
                   "SAVE jump_read=1 jump_write=16 length=4 channel=16 reg_id=1\nEND"}),
       "undefined 1:0"},
  };
  for (const auto& [findings, part] : cases)
    EXPECT_NE(findings.find(part), std::string::npos) << part << "\n" << findings;
}

TEST(Check, TokensThatCanPileUp) {
  const auto findings = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "NOP dpby=C\n";
    for (int i = 0; i < count; ++i) text += "NOP queue=2 dpon=L\n";
    return check_text({(text + "END").c_str()});
  };
  EXPECT_EQ(findings(254), "");
  EXPECT_NE(findings(255).find("token-overflow 0:254 255 tokens from LOAD to CONV"),
            std::string::npos);
}

TEST(Check, PatchesAndEarlierRunsDefineDdr) {
  Rng rng(1);
  Program program = testing::empty_program({}, rng);
  const auto run = [](const char* text) { return dpu::Run{{}, parse_asm(text, "").value(), {}}; };
  program.runs = {run("LOAD jump_read=16 jump_write=1 length=2 channel=16 reg_id=1\nEND")};
  program.runs[0].patches = {{program.regions[1].address, std::string(127, 'x')}};
  EXPECT_NE(print(check_program(program)).find("undefined 0:0 reads output, 112"),
            std::string::npos);
  program.runs[0].patches[0].data += 'x';
  EXPECT_EQ(print(check_program(program)), "");
}

TEST(Check, RandomProgramsAreRight) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    const Config config = testing::small_config(rng);
    const Program empty = testing::empty_program(config, rng);
    const std::vector<Op> ops = testing::RandomOps(config, rng).make(40);
    for (const Scheme scheme : {Scheme::Addresses, Scheme::Serial})
      ASSERT_EQ(print(check_program(testing::program_of(empty, ops, scheme))), "") << seed;
  }
}

/// Whether a changed program is wrong in a way that somebody notices: the checker, or a simulator
/// that stops or computes something else. `harmless`: the checker accepts it, and rightly.
struct Verdict {
  bool flagged = false, seen = false;
};
Verdict judge(const Program& program, const std::string& expected) {
  Verdict verdict;
  verdict.flagged = !check_program(program).empty();
  for (uint64_t jitter = 0; jitter < 4 && !verdict.seen; ++jitter) {
    const Result<std::string> image = testing::tsim_image(program, {jitter, jitter == 0 ? 0 : 100});
    verdict.seen = !image || *image != expected;
  }
  return verdict;
}

/// Drops each single bit of a mask: the checker flags it, for a token is missing or left over.
TEST(Check, EveryDroppedBitIsFlagged) {
  int bits = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Rng rng(seed);
    const Config config = testing::small_config(rng);
    // One after the other: compilers evaluate arguments in different orders.
    const auto ops = testing::RandomOps(config, rng).make(25);
    const Program program =
        testing::program_of(testing::empty_program(config, rng), ops, Scheme::Addresses);
    for (size_t i = 0; i < program.runs[0].insns.size(); ++i)
      for (uint8_t Insn::* mask : {&Insn::dpon, &Insn::dpby})
        for (int u = 0; u < kUnits; ++u) {
          if ((program.runs[0].insns[i].*mask >> u & 1) == 0) continue;
          Program changed = program;
          uint8_t& value = changed.runs[0].insns[i].*mask;
          value = static_cast<uint8_t>(value & ~(1u << u));
          ASSERT_FALSE(check_program(changed).empty()) << "seed " << seed << " insn " << i;
          ++bits;
        }
  }
  EXPECT_GT(bits, 150);
}

/// Drops a token with both its bits. The builder leaves out what others imply, so the order of some
/// conflict is lost: a race. What the checker accepts must compute the same under any time.
TEST(Check, EveryDroppedTokenIsARace) {
  int dropped = 0, seen = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Rng rng(seed);
    const Config config = testing::small_config(rng);
    // One after the other: compilers evaluate arguments in different orders.
    const auto ops = testing::RandomOps(config, rng).make(25);
    const Program program =
        testing::program_of(testing::empty_program(config, rng), ops, Scheme::Addresses);
    const std::string expected = testing::fsim_image(program).value();
    const std::vector<Insn>& insns = program.runs[0].insns;
    for (size_t a = 0; a < kUnits; ++a)
      for (size_t b = 0; b < kUnits; ++b) {
        std::vector<size_t> givers, takers;
        for (size_t i = 0; i + 1 < insns.size(); ++i) {
          if (static_cast<size_t>(unit_of(insns[i])) == a && (insns[i].dpby >> b & 1) != 0)
            givers.push_back(i);
          if (static_cast<size_t>(unit_of(insns[i])) == b && (insns[i].dpon >> a & 1) != 0)
            takers.push_back(i);
        }
        ASSERT_EQ(givers.size(), takers.size());
        for (size_t k = 0; k < givers.size(); ++k) {
          Program changed = program;
          std::vector<Insn>& out = changed.runs[0].insns;
          out[givers[k]].dpby = static_cast<uint8_t>(out[givers[k]].dpby & ~(1u << b));
          out[takers[k]].dpon = static_cast<uint8_t>(out[takers[k]].dpon & ~(1u << a));
          const Verdict verdict = judge(changed, expected);
          EXPECT_TRUE(verdict.flagged)
              << "seed " << seed << " token " << givers[k] << " to " << takers[k];
          ++dropped;
          seen += verdict.seen;
        }
      }
  }
  EXPECT_GT(dropped, 30);
  EXPECT_GT(seen, dropped / 10) << "simulators see some";
}

/// Another address for an operand in FM; false if it has none.
bool move_address(const Config& config, Op& op) {
  const auto next = [&](int bank_id, int& address) {
    address = (address + 1) % config.fm_depth[static_cast<size_t>(bank_id / kBanks)];
    return true;
  };
  if (auto* load = std::get_if<Load>(&op))
    return load->mode == 0 && next(load->bank_id, load->bank_addr);
  if (auto* save = std::get_if<Save>(&op)) return next(save->bank_id, save->bank_addr);
  if (auto* conv = std::get_if<Conv>(&op)) return next(conv->bank_id_out, conv->bank_addr_out);
  if (auto* pool = std::get_if<Pool>(&op)) return next(pool->bank_id_in, pool->bank_addr_in);
  if (auto* elew = std::get_if<Elew>(&op)) return next(elew->bank_id_a, elew->bank_addr_a);
  return false;
}

/// Whoever reads or writes elsewhere races, reads what nothing wrote, or leaves another result,
/// except where the result is overwritten before anybody looks. What the checker accepts computes
/// the same under any time.
TEST(CheckSlow, MovedAddressesAreFlaggedOrSeen) {
  int moved = 0, flagged = 0, seen = 0, neither = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed + 100);
    const Config config = testing::small_config(rng);
    // One after the other: compilers evaluate arguments in different orders.
    const auto ops = testing::RandomOps(config, rng).make(25);
    const Program program =
        testing::program_of(testing::empty_program(config, rng), ops, Scheme::Addresses);
    const std::string expected = testing::fsim_image(program).value();
    for (size_t i = 0; i < program.runs[0].insns.size(); ++i) {
      Program changed = program;
      if (!move_address(config, changed.runs[0].insns[i].op)) continue;
      const Verdict verdict = judge(changed, expected);
      ++moved;
      flagged += verdict.flagged;
      seen += verdict.seen;
      neither += !verdict.flagged && !verdict.seen;
      if (verdict.flagged) continue;
      const Result<std::string> untimed = testing::fsim_image(changed);
      ASSERT_TRUE(untimed) << to_string(untimed.error());
      for (uint64_t jitter = 0; jitter < 4; ++jitter)
        ASSERT_EQ(testing::tsim_image(changed, {jitter, 60}).value(), *untimed);
    }
  }
  EXPECT_GT(moved, 300);
  EXPECT_GT(flagged, 25);
  EXPECT_GT(seen, 25);
  EXPECT_LT(neither, moved / 50);
}

}  // namespace
}  // namespace tilewright::dpu
