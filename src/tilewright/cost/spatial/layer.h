// A layer as models of the accelerators `spatial` see it: a sum of products whose operands are
// indexed by sums of strided loops.
//
// Example: `conv2d({.inputs = 64, .outputs = 64, .height = 56, .width = 56, .kernel = 3, .pad =
// 1})` has the loops k, y, x (of the result) and c, r, s (summed over).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::cost {

/// Most loops of a layer, and dimensions of a tensor.
inline constexpr int kSpatialLoops = 8, kSpatialDims = 5;

struct SpatialLoop {
  std::string name;
  int64_t extent = 1;
  bool reduces = false;
};

struct SpatialTerm {
  int loop = 0;
  int64_t stride = 1;
};

/// The index is the sum of stride * loop, less `begin`; outside 0..extent the operand is zero.
struct SpatialDim {
  std::vector<SpatialTerm> terms;
  int64_t extent = 1, begin = 0;
};

/// Two factors and the result, in this order wherever they are counted.
inline constexpr int kSpatialTensors = 3, kSpatialResult = 2;

struct SpatialTensor {
  std::string name;
  std::vector<SpatialDim> dims;  ///< outermost first, the last one contiguous
  int64_t element_bytes = 1;
  /// Weights: stored tile by tile in the order in which the program reads them.
  bool packed = false;
};

struct SpatialLayer {
  std::string name;
  std::vector<SpatialLoop> loops;
  std::array<SpatialTensor, kSpatialTensors> tensors;
  /// LOADs of packed tiles that begin sums bring 32-bit biases with them.
  bool biased = false;

  int find(const std::string& loop) const;  ///< -1: no such loop
  bool moves(int tensor, int loop) const;
  /// Number of the packed factor; -1: there is none.
  int packed_tensor() const;
  /// The loop that moves the packed tensor and the result, whose positions have biases; -1: none.
  int bias_loop() const;
  int64_t macs() const;
};

enum class ImageLayout { ChannelsFirst, ChannelsLast };

struct SpatialConv {
  int64_t batch = 1, inputs = 1, outputs = 1, height = 1, width = 1;  ///< of the image
  int64_t kernel = 1, kernel_width = 0;                               ///< 0: as `kernel`
  int64_t stride = 1, dilation = 1, pad = 0;
  ImageLayout input = ImageLayout::ChannelsFirst, output = ImageLayout::ChannelsFirst;
};

/// Loops k, y, x and c, r, s; n before them where there is more than one image.
SpatialLayer conv2d(const SpatialConv& conv);

/// result[i, j] = sum over k of a[i, k] * b[k, j]; b is packed if it is `constant`.
SpatialLayer matmul(int64_t rows, int64_t columns, int64_t depth, bool constant = true);

}  // namespace tilewright::cost
