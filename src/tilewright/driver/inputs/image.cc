#include "tilewright/driver/inputs/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tilewright/driver/inputs/stb.h"

namespace tilewright::driver {
namespace {

/// Values of pixels, row by row, channels innermost; 0 to 255.
struct Picture {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<float> values;
};

/// Extents of an input that takes one image, and its strides.
struct Frame {
  int64_t height = 1, width = 1, channels = 1;
  int64_t row = 0, column = 0, channel = 0;  ///< elements from one to the next
};

bool is_channel_count(int64_t extent) { return extent == 1 || extent == 3 || extent == 4; }

Result<Frame> frame_of(Shape shape, bool channels_last, const std::string& text) {
  const auto refuse = [&](std::string why, std::string fix) {
    return fail(ErrorKind::Invalid, fmt::format("an input of shape {} takes no image", text),
                std::move(why), std::move(fix));
  };
  if (shape.size() == 4) {
    if (shape[0] != 1)
      return refuse(fmt::format("it takes {} images at once", shape[0]),
                    "put the images into one .npy file");
    shape.erase(shape.begin());
  }
  if (shape.size() == 2) shape.insert(channels_last ? shape.end() : shape.begin(), 1);
  if (shape.size() != 3)
    return refuse("an image has height, width and channels", "give the input by a .npy file");
  const int64_t channels = channels_last ? shape[2] : shape[0];
  const int64_t other = channels_last ? shape[0] : shape[2];
  if (!is_channel_count(channels))
    return refuse(fmt::format("its channels would be {}; images have 1, 3 or 4", channels),
                  is_channel_count(other)
                      ? fmt::format("--layout {}", channels_last ? "nchw" : "nhwc")
                      : "give the input by a .npy file");
  if (channels_last) return Frame{shape[0], shape[1], channels, shape[1] * channels, channels, 1};
  return Frame{shape[1], shape[2], channels, shape[2], 1, shape[1] * shape[2]};
}

/// Whether a JPEG file has a segment that defines a Huffman table (FF C4) of more than the 256
/// codes there can be: older versions of libstb write behind their own table then. Segments are
/// looked for at every byte, since a decoder that skips damaged parts may find one anywhere.
bool has_oversized_huffman_table(std::string_view bytes) {
  const auto at = [&](size_t i) -> size_t {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
  };
  for (size_t start = 0; start + 1 < bytes.size(); ++start) {
    if (at(start) != 0xFF || at(start + 1) != 0xC4) continue;
    const size_t end = start + 2 + (at(start + 2) << 8 | at(start + 3));
    for (size_t table = start + 4; table < end && table < bytes.size();) {
      size_t codes = 0;
      for (size_t length = 1; length <= 16; ++length) codes += at(table + length);
      if (codes > 256) return true;
      table += 17 + codes;
    }
  }
  return false;
}

Result<Picture> decode(std::string_view bytes, const std::string& place, int64_t channels) {
  if (bytes.starts_with("\xFF\xD8") && has_oversized_huffman_table(bytes))
    return fail(ErrorKind::Parse, fmt::format("the image '{}' cannot be read", place),
                "a Huffman table has more than 256 codes");
  int width = 0, height = 0, there = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      bytes.size() > INT_MAX ? nullptr
                             : stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()),
                                                     static_cast<int>(bytes.size()), &width,
                                                     &height, &there, static_cast<int>(channels)),
      stbi_image_free);
  if (pixels == nullptr)
    return fail(ErrorKind::Parse, fmt::format("the image '{}' cannot be read", place),
                bytes.size() > INT_MAX ? "it has 2 GB or more" : stbi_failure_reason());
  Picture picture{height, width, channels, {}};
  picture.values.assign(pixels.get(), pixels.get() + picture.height * picture.width * channels);
  return picture;
}

/// What each element of a resized axis sums up: weights of the elements from `first` on.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

/// Linear interpolation; where the axis shrinks, the triangle is as wide as what an element stands
/// for, so that every element counts.
std::vector<Taps> taps_of(int64_t from, int64_t to) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(step, 1.0);
  std::vector<Taps> all(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * step;
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre - reach)));
    const auto last = std::min<int64_t>(from - 1, static_cast<int64_t>(std::ceil(centre + reach)));
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first = first;
    double sum = 0;
    for (int64_t k = first; k <= last; ++k) {
      const double distance = std::abs(static_cast<double>(k) + 0.5 - centre) / reach;
      taps.weights.push_back(static_cast<float>(std::max(0.0, 1 - distance)));
      sum += taps.weights.back();
    }
    for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
  }
  return all;
}

/// `values` seen as [outer, from, inner] with the middle axis resized.
std::vector<float> resize_axis(const std::vector<float>& values, int64_t outer, int64_t from,
                               int64_t to, int64_t inner) {
  const std::vector<Taps> all = taps_of(from, to);
  std::vector<float> result(static_cast<size_t>(outer * to * inner), 0);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < to; ++i) {
      const Taps& taps = all[static_cast<size_t>(i)];
      float* out = result.data() + (o * to + i) * inner;
      const float* in = values.data() + (o * from + taps.first) * inner;
      for (const float weight : taps.weights) {
        for (int64_t k = 0; k < inner; ++k) out[k] += weight * in[k];
        in += inner;
      }
    }
  return result;
}

Picture resized(const Picture& picture, int64_t height, int64_t width) {
  Picture result{height, width, picture.channels, {}};
  result.values =
      resize_axis(picture.values, picture.height, picture.width, width, picture.channels);
  result.values = resize_axis(result.values, 1, picture.height, height, width * picture.channels);
  return result;
}

std::optional<double> parse_fraction(const std::string& text) {
  const size_t slash = text.find('/');
  const auto number = [](const std::string& digits) -> std::optional<double> {
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != 0 || !std::isfinite(value)) return std::nullopt;
    return value;
  };
  const auto above = number(text.substr(0, slash));
  if (!above || slash == std::string::npos) return above;
  const auto below = number(text.substr(slash + 1));
  if (!below || *below == 0) return std::nullopt;
  return *above / *below;
}

/// One number per channel. errors: Usage.
Result<std::vector<double>> per_channel(const char* option, const std::string& text,
                                        int64_t channels, double without) {
  std::vector<double> numbers;
  for (size_t start = 0; !text.empty() && start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    const auto number = parse_fraction(text.substr(start, end - start));
    if (!number)
      return fail(
          ErrorKind::Usage, fmt::format("{} '{}' is not a list of numbers", option, text), {},
          fmt::format("{} 127.5, or {} 123.7,116.3,103.5, or --scale 1/255", option, option));
    numbers.push_back(*number);
    start = end + 1;
  }
  if (numbers.empty()) numbers.push_back(without);
  if (numbers.size() == 1) numbers.resize(static_cast<size_t>(channels), numbers[0]);
  if (static_cast<int64_t>(numbers.size()) != channels)
    return fail(
        ErrorKind::Usage,
        fmt::format("{} has {} numbers, the input {} channels", option, numbers.size(), channels),
        {}, "give one number for all channels, or one for each");
  return numbers;
}

/// Whether an integer type holds `value`; floats hold all.
bool holds(DType dtype, double value) {
  if (is_float(dtype)) return true;
  const int bits = bit_width(dtype);
  const bool is_signed = is_signed_int(dtype);
  const double top = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  return value >= (is_signed ? -top : 0) && value < top;
}

}  // namespace

bool is_image(std::string_view bytes) {
  return bytes.starts_with("\x89PNG\r\n\x1a\n") || bytes.starts_with("\xff\xd8\xff");
}

Result<Array> image_array(std::string_view bytes, const std::string& place, DType dtype,
                          const Shape& shape, const ImageOptions& options) {
  const Frame frame = TW_TRY(frame_of(shape, options.layout == "nhwc", to_string(shape)));
  const auto mean = TW_TRY(per_channel("--mean", options.mean, frame.channels, 0));
  const auto scale = TW_TRY(per_channel("--scale", options.scale, frame.channels, 1));
  if (dtype == DType::Bool) return fail(ErrorKind::Invalid, "an input of bool takes no image");
  Picture picture = TW_TRY(decode(bytes, place, frame.channels));
  if (picture.height != frame.height || picture.width != frame.width) {
    if (!options.resize)
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}' is {} wide and {} high, the input {} and {}", place,
                              picture.width, picture.height, frame.width, frame.height),
                  {}, "--resize stretches it to that size; or cut it yourself");
    picture = resized(picture, frame.height, frame.width);
  }
  Array array(dtype, shape);
  const float* pixel = picture.values.data();
  for (int64_t y = 0; y < frame.height; ++y)
    for (int64_t x = 0; x < frame.width; ++x)
      for (int64_t c = 0; c < frame.channels; ++c) {
        const auto channel = static_cast<size_t>(c);
        double value = (static_cast<double>(*pixel++) - mean[channel]) * scale[channel];
        if (!is_float(dtype)) value = std::nearbyint(value);
        if (!holds(dtype, value))
          return fail(
              ErrorKind::Invalid,
              fmt::format("'{}' has the value {}, which {} cannot hold", place, value, name(dtype)),
              {}, "--mean and --scale bring pixels from 0 to 255 into its range");
        array.set(y * frame.row + x * frame.column + c * frame.channel, value);
      }
  return array;
}

}  // namespace tilewright::driver
