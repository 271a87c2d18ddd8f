// A neural network that reads a program's loop tree itself instead of features made by hand.
#pragma once

#include <memory>

#include "tilewright/ir/stmt.h"
#include "tilewright/search/searcher.h"

namespace tilewright::cost {

/// The loops around each block, as `loop_tree_model` reads them: kind, extent, and how far the
/// first accesses move. As many numbers as the program needs.
std::vector<double> loop_tree(const Func& scheduled);

struct LoopTreeOptions {
  int width = 24;   ///< of the embedding of a block
  int epochs = 12;  ///< per fit; weights carry over from one fit to the next
  int batch = 32;   ///< candidates compared with each other in one step
  double learning_rate = 0.01;
  uint64_t seed = 0;
};

/// Embeds each block by a gated recurrent cell that reads the loops around it from the inside out,
/// sums the blocks, and scores the sum; learns which of two candidates is faster. Reads `loop_tree`
/// vectors.
///   source: the TreeRNN of the TVM paper, section 5.2, and arXiv 1805.08166, in the small.
std::unique_ptr<search::Model> loop_tree_model(const LoopTreeOptions& options = {});

}  // namespace tilewright::cost
