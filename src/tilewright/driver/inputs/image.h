// PNG and JPEG files as values of an input.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/array.h"

namespace tilewright::driver {

/// How pixels become numbers. `mean` and `scale` as the user gave them: one number for all
/// channels, or one for each with commas between; a number may be a fraction, `1/255`.
struct ImageOptions {
  std::string mean, scale;
  std::string layout = "nchw";  ///< or `nhwc`: where the input has its channels
  bool resize = false;          ///< to the input's size, whatever the image's proportions
};

/// Whether `bytes` begin as a PNG or JPEG file does.
bool is_image(std::string_view bytes);

/// The picture as an array: (pixel - mean) * scale, pixels being 0 to 255, channels in the order
/// red, green, blue. `shape` has one image of 1, 3 or 4 channels (grey, colour, colour and opacity;
/// the file's own are converted), with or without the leading 1, or no channel axis for grey. For
/// integers results are rounded. errors: Usage (options), Parse (a damaged file), Invalid (the
/// input takes no image, another size without `resize`, results that the dtype cannot hold).
Result<Array> image_array(std::string_view bytes, const std::string& place, DType dtype,
                          const Shape& shape, const ImageOptions& options);

}  // namespace tilewright::driver
