// What learned models see of a scheduled program: its loops, and what each access touches at each.
#pragma once

#include <vector>

#include "tilewright/ir/stmt.h"

namespace tilewright::cost {

/// One loop around a block.
struct LoopFact {
  int64_t extent = 1;
  ForKind kind = ForKind::Serial;
};

/// All accesses of a block to one buffer.
struct AccessFact {
  Buffer buffer;
  bool writes = false, reads = false;
  bool in_registers = false;  ///< a `local` buffer
  int count = 0;              ///< loads and stores of one instance
  /// Per loop, outermost first, and for one instance of the block at the end: bytes of the cache
  /// lines that one run of all that is inside touches (element 0: the whole nest).
  std::vector<double> touched;
  /// Per loop: elements between what two iterations touch; 0 if the access does not move.
  std::vector<double> strides;
};

/// A block with the loops around it.
struct NestFact {
  std::vector<LoopFact> loops;  ///< outermost first
  std::vector<AccessFact> accesses;
  double operations = 0;  ///< of one instance: loads, stores and arithmetic

  /// Instances that one run of all inside loop `depth` executes; all of them for 0.
  double instances(size_t depth = 0) const;
};

/// One entry per block, in program order. Where extents or indices are not constant, their largest
/// values with all outer loops at 0 count.
std::vector<NestFact> nest_facts(const Func& scheduled);

/// A fixed number of features of the block with most work and sums over all others: per access the
/// bytes touched, reuse and stride at fixed numbers of iterations, the work that fits each size of
/// cache and what moves across it, and extents by annotation. As logarithms.
///   source: TVM paper, section 5.2; relation features as in arXiv 1805.08166.
std::vector<double> loop_features(const Func& scheduled);
std::vector<double> loop_features(const std::vector<NestFact>& nests);
size_t loop_feature_count();

}  // namespace tilewright::cost
