// Parallel coordinates: one upright axis per number of a design, one line per design.
#pragma once

#include <string>
#include <vector>

namespace tilewright::driver {

struct ParallelAxis {
  std::string name;
  bool log = false;
  std::vector<std::string> words;  ///< values are positions in it; none: they are numbers
};

struct ParallelLine {
  std::vector<double> values;  ///< one per axis
  int kind = 0;                ///< 0: in the background, 1: of the front, 2: chosen
};

/// `<svg>...</svg>`; lines of a higher kind lie above others.
std::string parallel_chart(const std::vector<ParallelAxis>& axes,
                           const std::vector<ParallelLine>& lines);

}  // namespace tilewright::driver
