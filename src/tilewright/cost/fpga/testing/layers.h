// Layers that models of FPGAs are compared on.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tilewright/cost/spatial/layer.h"

namespace tilewright::cost {

/// The convolutions of YOLO-v1 that FlexTensor's table 4 calls C1 to C15; padded so that stride 1
/// keeps the size.
struct YoloConv {
  int64_t inputs, outputs, size, kernel, stride;
};
inline constexpr YoloConv kYoloConvs[] = {
    {3, 64, 448, 7, 2},     {64, 192, 112, 3, 1},   {192, 128, 56, 1, 1},  {128, 256, 56, 3, 1},
    {256, 256, 56, 1, 1},   {256, 512, 56, 3, 1},   {512, 256, 28, 1, 1},  {256, 512, 28, 3, 1},
    {512, 512, 28, 1, 1},   {512, 1024, 28, 3, 1},  {1024, 512, 14, 1, 1}, {512, 1024, 14, 3, 1},
    {1024, 1024, 14, 3, 1}, {1024, 1024, 14, 3, 2}, {1024, 1024, 7, 3, 1}};

inline std::vector<SpatialLayer> yolo_layers() {
  std::vector<SpatialLayer> layers;
  for (const YoloConv& conv : kYoloConvs) {
    layers.push_back(conv2d({.inputs = conv.inputs,
                             .outputs = conv.outputs,
                             .height = conv.size,
                             .width = conv.size,
                             .kernel = conv.kernel,
                             .stride = conv.stride,
                             .pad = conv.kernel / 2}));
    layers.back().name = "C" + std::to_string(layers.size());
  }
  return layers;
}

/// Zhang et al. (FPGA 2015): AlexNet's convolutions, half of each where there are two groups.
inline std::vector<SpatialLayer> alexnet_halves() {
  constexpr std::array<int64_t, 5> kLayers[] = {// outputs, inputs, size of the result, kernel
                                                {48, 3, 55, 11, 4},
                                                {128, 48, 27, 5, 1},
                                                {192, 256, 13, 3, 1},
                                                {192, 192, 13, 3, 1},
                                                {128, 192, 13, 3, 1}};
  std::vector<SpatialLayer> layers;
  for (const auto& [outputs, inputs, size, kernel, stride] : kLayers) {
    const int64_t image = (size - 1) * stride + kernel - (stride == 1 ? kernel - 1 : 0);
    layers.push_back(conv2d({.inputs = inputs,
                             .outputs = outputs,
                             .height = image,
                             .width = image,
                             .kernel = kernel,
                             .stride = stride,
                             .pad = stride == 1 ? kernel / 2 : 0}));
  }
  return layers;
}

}  // namespace tilewright::cost
