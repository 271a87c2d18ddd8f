// What tokens make of a stream of instructions: which is complete before which, and where nothing
// orders instructions that meet in a memory.
#pragma once

#include <string>
#include <vector>

#include "tilewright/accel/common/hazards.h"
#include "tilewright/accel/common/queues.h"

namespace tilewright::accel {

/// An instruction as far as order goes. Bit q of `takes`: it waits for a token of queue q; of
/// `gives`: it gives one to queue q.
struct Ordered {
  int queue = 0;
  uint32_t takes = 0, gives = 0;
};

enum class TokenRule {
  Deadlock,  ///< the stream, run one instruction at a time, waits for ever
  Leftover,  ///< more given than taken
  Overflow,  ///< more than `Queues::most_tokens` between two queues can be outstanding
};
struct TokenFinding {
  TokenRule rule = TokenRule::Deadlock;
  size_t insn = 0;
  std::string text;
};

struct TokenOrder {
  /// Per instruction and queue, its last instruction that is complete before this one begins, as
  /// in Waits. Fewer than instructions if one waits for ever.
  std::vector<Waits> known;
  std::vector<TokenFinding> findings;
};

/// Runs the stream one instruction at a time: the k-th token taken is the k-th one given, whatever
/// time instructions take. requires: queues that are there, masks without the own one.
TokenOrder order_by_tokens(const Queues& queues, const std::vector<Ordered>& insns);

/// Two instructions of different queues that meet in a memory, though no chain of tokens orders
/// them.
struct Race {
  size_t insn = 0, rival = 0;  ///< `rival` stands before
  std::string where;           ///< memory and places
};
/// By instruction. `known`: of each.
std::vector<Race> find_races(const Queues& queues, const std::vector<int>& queue,
                             const std::vector<Footprint>& footprints,
                             const std::vector<Waits>& known);

}  // namespace tilewright::accel
