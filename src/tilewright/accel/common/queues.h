// A device as queues that execute their instructions in order, one at a time, beside each other: as
// data, from which the order between queues is worked out (tokens.h).
#pragma once

#include <string>
#include <vector>

#include "tilewright/accel/common/footprint.h"
#include "tilewright/base/result.h"

namespace tilewright::accel {

/// Most queues of a device.
inline constexpr int kMaxQueues = 4;

struct Queue {
  std::string name;
  std::vector<int> reads, writes;  ///< memories, by number
};

/// Between which queues a token can go.
enum class TokenPaths {
  AnyPair,
  Neighbours,  ///< in the list only: a token for another queue passes through those between
};

struct Queues {
  std::vector<Queue> list;
  std::vector<std::string> memories;  ///< names; their places are the numbers
  TokenPaths paths = TokenPaths::AnyPair;
  int most_tokens = 254;  ///< at once from one queue to another; at least 2

  int size() const { return static_cast<int>(list.size()); }
  bool linked(int from, int to) const;
};

/// Whether what two different queues do to a memory can conflict at all.
bool shared(const Queues& queues, int memory);

/// errors: Invalid (no queue, more than kMaxQueues, a memory that is not there, too few tokens).
Status check(const Queues& queues);
/// `queue`: of each instruction. errors: Invalid (a queue that is not there; an access that its
/// queue cannot make).
Status check_accesses(const Queues& queues, const std::vector<int>& queue,
                      const std::vector<Footprint>& footprints);

}  // namespace tilewright::accel
