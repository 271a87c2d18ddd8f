// The sizes of a convolution, as far as the choice of its algorithm depends on them, and what may
// be chosen.
#pragma once

#include <cstdint>

namespace tilewright::tensor {

/// A convolution of stride 1 over planes of blocked channels, or plain ones.
struct Conv2dShape {
  int64_t batch = 1, channels = 0, filters = 0, height = 0, width = 0;  ///< of the output
  int64_t taps_h = 3, taps_w = 3;                                       ///< of the window
  int64_t dilation_h = 1, dilation_w = 1;
  /// Padding before rows and columns, and extents of the input; 0: not known.
  int64_t pad_h = 0, pad_w = 0, input_h = 0, input_w = 0;
  friend bool operator==(const Conv2dShape&, const Conv2dShape&) = default;

  /// The same as convolutions without dilation, one for each phase of rows and columns; phases of
  /// unequal size are filled up.
  Conv2dShape phases() const {
    return {batch * dilation_h * dilation_w,
            channels,
            filters,
            (height + dilation_h - 1) / dilation_h,
            (width + dilation_w - 1) / dilation_w,
            taps_h,
            taps_w};
  }
};

/// How the direct form of a convolution is computed.
struct DirectForm {
  int64_t parts = 1;  ///< sums over groups of channels, each added to the one before
  bool rows = true;   ///< plain channels are read as they lie, not copied into blocks
  bool skip = false;  ///< taps in the padding are left out, not multiplied with zeros
};

}  // namespace tilewright::tensor
