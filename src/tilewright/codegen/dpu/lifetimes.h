// When feature maps are alive, in groups of a plan, and which may share a place.
#pragma once

#include <vector>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {

struct Lifetime {
  int first = -1, last = -1;  ///< groups that write and read it
  int readers = 0;            ///< nodes
  bool stored = false;        ///< it, or a part of it, is a result
  bool internal = false;      ///< one group makes and reads it, whole rows at a time
};

std::vector<Lifetime> lifetimes(const Lowered& lowered, const std::vector<GroupPlan>& groups);

/// By root: the operand whose place an addition takes for its result; -1: none. The operand dies
/// with it and nothing else of its group reads it.
std::vector<int> in_place(const Lowered& lowered, const std::vector<GroupPlan>& groups,
                          const std::vector<Lifetime>& lives, const std::vector<bool>& in_ddr);

/// Addresses of a bank that rows take.
int64_t row_words(int64_t rows, int64_t columns, int64_t groups);

}  // namespace tilewright::dpu
