#include "tilewright/tune/spatial/layouts.h"

#include <algorithm>

namespace tilewright::tune {
namespace {

using cost::kSpatialResult;
using cost::SpatialDim;
using cost::SpatialLayer;
using cost::SpatialTensor;

/// The factor that lies packed: weights. -1: none.
int packed_factor(const SpatialLayer& layer) {
  for (const int factor : {0, 1})
    if (layer.tensors[factor].packed) return factor;
  return -1;
}

/// Axes of an image; of four the first one counts the images.
struct ImageAxes {
  std::vector<SpatialDim> batch, pixels;
  SpatialDim channels;
  bool last = false;   ///< as they are now
  bool clear = false;  ///< it is an image: channels stand first or last, pixels together
};

ImageAxes axes_of(const SpatialLayer& layer, int tensor, int weights) {
  ImageAxes axes;
  int found = 0;
  size_t place = 0;
  const std::vector<SpatialDim>& dims = layer.tensors[tensor].dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int loop = dims[d].terms[0].loop;
    if (dims[d].terms.size() == 1 && layer.moves(weights, loop)) {
      axes.channels = dims[d];
      place = d;
      ++found;
    } else if (d == 0 && dims.size() == 4) {
      axes.batch.push_back(dims[d]);
    } else {
      axes.pixels.push_back(dims[d]);
    }
  }
  axes.last = place + 1 == dims.size();
  axes.clear = found == 1 && axes.pixels.size() == 2 && (axes.last || place == axes.batch.size());
  return axes;
}

std::vector<SpatialDim> ordered(const ImageAxes& axes, bool last) {
  std::vector<SpatialDim> dims = axes.batch;
  if (!last) dims.push_back(axes.channels);
  dims.insert(dims.end(), axes.pixels.begin(), axes.pixels.end());
  if (last) dims.push_back(axes.channels);
  return dims;
}

}  // namespace

std::vector<LayoutVariant> layout_variants(const SpatialLayer& layer) {
  const int weights = packed_factor(layer);
  if (weights < 0) return {{"as given", layer}};
  const int image = 1 - weights;
  const ImageAxes in = axes_of(layer, image, weights),
                  out = axes_of(layer, kSpatialResult, weights);
  if (!in.clear || !out.clear) return {{"as given", layer}};
  std::vector<LayoutVariant> variants;
  for (const bool in_last : {in.last, !in.last})
    for (const bool out_last : {out.last, !out.last}) {
      LayoutVariant variant{in_last ? "last" : "first", layer};
      variant.name += out_last ? ",last" : ",first";
      variant.layer.tensors[image].dims = ordered(in, in_last);
      variant.layer.tensors[kSpatialResult].dims = ordered(out, out_last);
      variants.push_back(std::move(variant));
    }
  return variants;
}

}  // namespace tilewright::tune
