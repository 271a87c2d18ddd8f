// Upper bounds other than 127, by saturating at -128 (layer.h).
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/codegen/gemmini/layer.h"

namespace tilewright::gemmini {
namespace {

/// o: 1 to 128.
int clip_offset(const Layer& layer) { return 128 - layer.high; }

}  // namespace

Status check_clip(const Layer& layer) {
  const auto refuse = [&](std::string why) {
    return fail(ErrorKind::Unsupported,
                fmt::format("it clips to {} at most, {}", layer.high, std::move(why)));
  };
  if (layer.high < 0) return refuse("below 0");
  if (layer.high % 2 != 0 && layer.shift > 0) return refuse("which is odd: ties would change");
  if (layer.shift > 16) return refuse(fmt::format("after a shift by {}", layer.shift));
  if (layer.k * layer.taps() > 32768) return refuse("of sums that may be too large");
  if (!layer.bias || layer.wide) return refuse("of sums without bias");
  return {};
}

std::vector<int32_t> loaded_bias(const Layer& layer, std::span<const int32_t> bias) {
  std::vector<int32_t> loaded(bias.begin(), bias.end());
  if (clips(layer))
    for (int32_t& value : loaded) value += clip_offset(layer) << layer.shift;
  return loaded;
}

std::string clip_offsets(const Config& config, const Layer& layer) {
  return std::string(static_cast<size_t>(config.most_columns(1)),
                     static_cast<char>(-clip_offset(layer)));
}

void emit_clip(const Config& config, const Layer& layer, const LayerPlaces& places,
               std::vector<Insn>& into) {
  const int64_t dim = config.dim, pixels = layer.images * layer.h.out * layer.w.out;
  ConfigMvin offsets, values;
  offsets.narrow = values.narrow = true;
  offsets.block_stride = values.block_stride = static_cast<uint16_t>(dim);
  values.which = 1;
  values.stride = places.y_pitch;
  values.scale = -1;
  ConfigMvout out;
  out.activation = layer.relu ? Activation::Relu : Activation::None;
  out.stride = static_cast<uint32_t>(places.y_pitch);
  into.push_back({offsets});
  into.push_back({values});
  into.push_back({out});
  const int64_t cols = std::min<int64_t>(config.most_columns(1), config.acc_rows() / dim * dim);
  const int64_t rows = cols / dim * dim, turns = config.acc_rows() / rows;
  int64_t turn = 0;
  for (int64_t p = 0; p < pixels; p += dim)
    for (int64_t n = 0; n < layer.n; n += cols, turn = (turn + 1) % turns) {
      const uint64_t at = static_cast<uint64_t>(p) * places.y_pitch + static_cast<uint64_t>(n);
      const auto width = static_cast<uint16_t>(std::min(cols, layer.n - n));
      const auto height = static_cast<uint16_t>(std::min(dim, pixels - p));
      into.push_back({Mvin{0, places.offsets, {Local::acc(turn * rows), width, height}}});
      into.push_back(
          {Mvin{1, places.unclipped + at, {Local::acc(turn * rows, Local::kAdds), width, height}}});
      for (int64_t c = 0; c < width; c += dim)
        into.push_back({Mvout{places.y + at + static_cast<uint64_t>(c),
                              {Local::acc(turn * rows + c),
                               static_cast<uint16_t>(std::min<int64_t>(dim, width - c)), height}}});
    }
}

}  // namespace tilewright::gemmini
