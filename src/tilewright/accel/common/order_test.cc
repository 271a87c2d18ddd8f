#include "tilewright/accel/common/order.h"

#include <gtest/gtest.h>

namespace tilewright::accel {
namespace {

/// Three queues that share one memory.
Queues three() {
  Queues queues;
  queues.memories = {"M"};
  queues.list = {{"a", {0}, {0}}, {"b", {0}, {0}}, {"c", {0}, {0}}};
  return queues;
}

std::string text_of(const TokenOrder& order) {
  std::string text;
  for (const TokenFinding& f : order.findings)
    text += std::to_string(static_cast<int>(f.rule)) + " " + std::to_string(f.insn) + " " + f.text;
  return text;
}

TEST(Order, TokensPassOnWhatIsComplete) {
  // a gives to b, b to c: what c's instruction begins after, it knows of both.
  const TokenOrder order = order_by_tokens(
      three(), {{0, 0, 0b010}, {2, 0, 0}, {1, 0b001, 0b100}, {0, 0, 0}, {2, 0b010, 0}});
  EXPECT_EQ(text_of(order), "");
  ASSERT_EQ(order.known.size(), 5);
  EXPECT_EQ(order.known[1], (Waits{0, 0, 0, 0}));
  EXPECT_EQ(order.known[2], (Waits{1, 0, 0, 0}));
  EXPECT_EQ(order.known[4], (Waits{1, 3, 2, 0}));
}

TEST(Order, FindsTokensThatCannotBe) {
  const TokenOrder waits = order_by_tokens(three(), {{0, 0, 0}, {1, 0b001, 0}, {0, 0, 0b010}});
  EXPECT_EQ(text_of(waits), "0 1 waits for token 1 of a, but 0 are given before it");
  EXPECT_EQ(waits.known.size(), 1);
  EXPECT_EQ(text_of(order_by_tokens(three(), {{0, 0, 0b110}, {1, 0b001, 0}})),
            "1 0 1 of 1 tokens from a to c are left at the end");
}

TEST(Order, FindsMoreTokensThanCountersHold) {
  Queues queues = three();
  queues.most_tokens = 3;
  std::vector<Ordered> insns(4, {0, 0, 0b010});
  insns.resize(8, {1, 0b001, 0});
  EXPECT_EQ(text_of(order_by_tokens(queues, insns)),
            "2 3 4 tokens from a to b can be outstanding here; fewer than 4 are safe");
  // The giver knows that the first one is taken.
  insns = {{0, 0, 0b010}, {0, 0, 0b010}, {0, 0, 0b010}, {1, 0b001, 0b001}, {0, 0b010, 0b010}};
  insns.resize(8, {1, 0b001, 0});
  EXPECT_EQ(text_of(order_by_tokens(queues, insns)), "");
}

TEST(Order, FindsWhatNoTokenOrders) {
  const std::vector<int> queue = {0, 1, 2};
  const std::vector<Footprint> footprints = {
      {one_row(0, 0, 10, true)}, {one_row(0, 8, 12, false)}, {one_row(0, 5, 9, true)}};
  const auto races = [&](const std::vector<Ordered>& insns) {
    std::string text;
    for (const Race& race :
         find_races(three(), queue, footprints, order_by_tokens(three(), insns).known))
      text += std::to_string(race.insn) + "-" + std::to_string(race.rival) + " " + race.where + " ";
    return text;
  };
  EXPECT_EQ(races({{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}), "1-0 M, 8..10 2-0 M, 5..9 2-1 M, 8..9 ");
  EXPECT_EQ(races({{0, 0, 0b010}, {1, 0b001, 0}, {2, 0, 0}}), "2-0 M, 5..9 2-1 M, 8..9 ");
  EXPECT_EQ(races({{0, 0, 0b010}, {1, 0b001, 0b100}, {2, 0b010, 0}}), "");
}

}  // namespace
}  // namespace tilewright::accel
