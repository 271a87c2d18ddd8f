// Where micro-op kernels lie on chip and when they are loaded, for a stream that is known as a
// whole.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {

/// Instruction `insn` of a stream runs kernel `kernel`.
struct UopUse {
  size_t insn = 0, kernel = 0;
};

/// A LOAD UOP of kernels that lie one after the other.
struct UopLoad {
  size_t before = 0;            ///< the instruction in front of which it stands
  uint32_t begin = 0;           ///< in micro-op memory
  std::vector<size_t> kernels;  ///< in this order
};

struct UopPlan {
  std::vector<UopLoad> loads;   ///< in the order of the stream
  std::vector<uint32_t> begin;  ///< of each use: where its kernel begins in micro-op memory
};

/// The stream is cut where the kernels used since the last cut no longer fit together; those of a
/// part that are not on chip are loaded at once in front of the first instruction that needs
/// micro-ops. A cut moves back to the begin of a span (a layer) if that span fits as a whole:
/// compute often waits for data there.
///   kernels: contents; each has 1 to `depth` micro-ops. uses: instructions ascend.
///   spans: the instructions at which they begin, ascending. depth: size of the memory.
///   keeps: one load if all kernels fit together, and never more than `plan_one_by_one` has.
UopPlan plan_merged(const std::vector<std::vector<Uop>>& kernels, const std::vector<UopUse>& uses,
                    const std::vector<size_t>& spans, uint32_t depth);

/// Each kernel is loaded alone, in front of the instruction that needs it, in place of the least
/// recently used ones. Arguments as above.
UopPlan plan_one_by_one(const std::vector<std::vector<Uop>>& kernels,
                        const std::vector<UopUse>& uses, uint32_t depth);

}  // namespace tilewright::vta
