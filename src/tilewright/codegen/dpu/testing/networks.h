// Networks as the DPU's compiler takes them, by their public shapes and with weights of zero: for
// timing, which does not depend on values.
#pragma once

#include <string>
#include <vector>

#include "tilewright/codegen/dpu/network.h"

namespace tilewright::dpu {

/// Grows a network, layer by layer. Weights are zeros unless `fill` makes them.
class NetBuilder {
 public:
  ValueId input(int64_t channels, int64_t height, int64_t width);
  ValueId conv(ValueId x, int64_t channels, const Window& window, Activation act = kRelu,
               int groups = 1);
  ValueId deconv(ValueId x, int64_t channels, const Window& window, Activation act = kNone);
  ValueId max_pool(ValueId x, const Window& window);
  /// By POOL's factor: round(2^10 / taps) / 2^10 where it is small, ... `inside`: of the taps
  /// inside of the image only.
  ValueId average_pool(ValueId x, const Window& window, bool inside = false);
  ValueId add(ValueId a, ValueId b, Activation act = kNone);
  ValueId scale(ValueId a, int shift);
  ValueId upsample(ValueId x, int factor);
  ValueId concat(const std::vector<ValueId>& parts);
  /// As many channels, rows and columns as `part` has, from those of `from` on.
  ValueId slice(ValueId x, const SliceLayer& from, const Value& part);
  Network finish(const std::vector<ValueId>& outputs);
  const Value& value(ValueId id) const { return network_.values[static_cast<size_t>(id)]; }

 private:
  ValueId push(const char* kind, std::vector<ValueId> inputs, Value value, decltype(Layer::op) op);
  Network network_;
};

Window square(int kernel, int stride = 1, int pad = 0);
/// Pads as TensorFlow's SAME for an input of `size`.
Window same_window(int kernel, int stride, int64_t size);
/// Rounded up: `square` with further pads below and on the right.
Window ceil_window(int kernel, int stride, int64_t size);

/// resnet18, resnet50, resnet50_slim, vgg16, squeezenet1.1, inception_v1, inception_v3, yolov3_voc;
/// with the parts that the paper runs on the device.
Network known_network(const std::string& name);

}  // namespace tilewright::dpu
