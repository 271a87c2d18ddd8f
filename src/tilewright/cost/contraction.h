// A sum of products as cost models see it: its loops, and what each operand touches of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/dtype.h"

namespace tilewright::cost {

struct ContractionAxis {
  std::string name;  ///< of the loop
  int64_t extent = 1;
  bool reduces = false;
};

/// coefficient * (axis / divide % modulo); modulo 0: none.
struct IndexTerm {
  int axis = 0;
  int64_t coefficient = 1, divide = 1, modulo = 0;
};

/// One index of an operand: the sum of its terms, in a dimension of `extent` elements.
struct Index {
  std::vector<IndexTerm> terms;
  int64_t extent = 1;
};

struct Operand {
  std::vector<Index> indices;  ///< row-major, the last one contiguous
  int64_t element_bytes = 4;
  bool constant = false;  ///< weights: read from memory behind the caches the first time
};

/// A term counts only where 0 <= stride * axis + dilation * tap - begin < extent: other taps lie in
/// the padding, and are left out.
struct Inside {
  int axis = 0, tap = 0;
  int64_t stride = 1, dilation = 1, begin = 0, extent = 1;
};

/// result[...] += rows[...] * lanes[...]: the roles are those of a register tile, whose rows each
/// multiply a broadcast element of `row_operand` with the vectors of `lane_operand`.
struct Contraction {
  std::vector<ContractionAxis> axes;
  std::vector<Operand> operands;  ///< the result is the last
  int row_operand = 0, lane_operand = 1;
  /// Axes of the tile: vector lanes, vectors beside each other (or -1: those of `lanes`), rows (or
  /// -1) and a second row axis around them (or -1).
  int lanes = 0, columns = -1, rows = -1, plane = -1;
  DType dtype = DType::F32;  ///< of the operands: decides the peak
  int lane_count = 16;       ///< elements of the sum per vector register
  bool reuse = true;    ///< each vector is used by all rows; false: both operands vary with lanes
  bool narrow = false;  ///< row operand to be widened before it multiplies
  bool fused = true;    ///< a product and its addition are one instruction
  double counted = 1;   ///< part of the terms that count: others fill up blocks of channels
  std::vector<Inside> insides;
  /// Where a copy in the tile leaves the finished result in other order than that of the sum: what
  /// it writes, in the same axes.
  std::optional<Operand> left;

  bool moves(int operand, int axis) const;
};

/// Elements of each axis.
using Sizes = std::vector<int64_t>;

/// Bytes of distinct cache lines that a block of `sizes` iterations touches of an operand.
double footprint(const Operand& operand, const Sizes& sizes);

/// One loop of a nest; its iterations are `trips` steps of what the loops inside cover.
struct NestLoop {
  int axis = 0;
  int64_t trips = 1;
};

/// Bytes per operand that a cache of `capacity` bytes has to fetch while `nest` (outermost first)
/// runs over blocks of `tile` iterations. An operand stays from one iteration of a loop to the next
/// if all that one iteration touches fits.
/// source: closed form as in MOpt (ASPLOS 2021); checked against a simulated cache.
std::vector<double> traffic(const Contraction& contraction, const std::vector<NestLoop>& nest,
                            const Sizes& tile, double capacity);

/// Bytes between what neighbouring iterations of `axis` read; 0 if the operand does not move.
int64_t stride_bytes(const Operand& operand, int axis);

}  // namespace tilewright::cost
