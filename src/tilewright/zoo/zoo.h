// The zoo: real networks with seeded weights, written as ONNX files.
#pragma once

#include <string>
#include <vector>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::zoo {

struct Options {
  uint64_t seed = 1;
  int64_t batch = 1;
  int64_t size = 0;  ///< height = width of the input (sequence length for text); 0: the usual one
};

struct Entry {
  std::string name;
  std::string doc;        ///< one line
  int64_t default_size;   ///< of Options::size
  int64_t smallest_size;  ///< below it some layer would have no output
  graph::Graph (*build)(const Options&);
};

/// Every network, in the order `zoo list` prints.
const std::vector<Entry>& entries();

/// Builds a network. errors: Usage (unknown name, with the nearest; size or batch too small).
Result<graph::Graph> build(const std::string& name, Options options = {});

}  // namespace tilewright::zoo
