// Building blocks of the zoo's networks: layers with seeded weights on top of graph::Builder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/graph/ir/builder.h"
#include "tilewright/zoo/zoo.h"

namespace tilewright::zoo {

using graph::ValueId;
using Ints = std::vector<int64_t>;

/// Attributes of one convolution or pooling window.
struct WindowAttrs {
  int64_t kernel_h, kernel_w;
  int64_t stride = 1;
  Ints pads = {};  ///< top, left, bottom, right; empty: none
  int64_t groups = 1;
  int64_t dilation = 1;
  bool same_upper = false;  ///< auto_pad instead of pads (TensorFlow models)
  bool ceil = false;
};
/// A square window with symmetric padding.
WindowAttrs window(int64_t kernel, int64_t stride = 1, int64_t pad = 0);
/// A square window padded as TensorFlow's SAME.
WindowAttrs same(int64_t kernel, int64_t stride = 1);

/// A network under construction. Weights are He-normal, batch-norm statistics near what the layer's
/// input has, so that activations keep their scale through hundreds of layers.
class Net {
 public:
  Net(std::string name, const Options& options);

  ValueId input(const std::string& name, Shape shape, DType dtype = DType::F32);
  const Shape& shape(ValueId x) const;

  ValueId node(const std::string& op, std::vector<ValueId> inputs, graph::AttrList attrs = {});
  std::vector<ValueId> nodes(const std::string& op, std::vector<ValueId> inputs,
                             graph::AttrList attrs, int outputs);
  ValueId ints(const Ints& values);
  ValueId scalar(double value);
  ValueId constant(Array values);
  /// Normal with mean 0 and the given standard deviation.
  ValueId weights(Shape shape, double deviation);

  ValueId conv(ValueId x, int64_t out, const WindowAttrs& window, bool bias = true);
  ValueId conv_transpose(ValueId x, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                         bool bias = true);
  /// `gain`: scale of the output; small in residual branches, so that sums keep their variance.
  ValueId batch_norm(ValueId x, double gain = 1.0);
  ValueId relu(ValueId x) { return node("Relu", {x}); }
  ValueId leaky(ValueId x, double slope = 0.1);
  /// conv without bias, batch norm, ReLU.
  ValueId conv_bn_relu(ValueId x, int64_t out, const WindowAttrs& window);
  ValueId max_pool(ValueId x, const WindowAttrs& window);
  ValueId avg_pool(ValueId x, const WindowAttrs& window, bool count_pad = false);
  ValueId global_pool(ValueId x) { return node("GlobalAveragePool", {x}); }
  ValueId add(ValueId a, ValueId b) { return node("Add", {a, b}); }
  ValueId concat(std::vector<ValueId> parts, int64_t axis = 1);
  ValueId flatten(ValueId x) { return node("Flatten", {x}); }
  /// Fully connected: Gemm with transposed weights and bias. `deviation` 0: He-normal.
  ValueId dense(ValueId x, int64_t out, double deviation = 0);
  ValueId softmax(ValueId x);

  /// Ends the network. requires: every layer fitted (sizes are checked by `build`).
  graph::Graph finish(const std::vector<ValueId>& outputs);

 private:
  graph::Builder builder_;
  Rng rng_;
};

/// Output channels rounded as MobileNet does: to a multiple of 8, not below 90 %.
int64_t round_channels(double channels);

// One function per network family; the table in zoo.cc names them.
graph::Graph resnet(const Options& options, const std::string& name, const Ints& depths,
                    bool bottleneck, int variant);
enum ResNetVariant { kCaffe, kTorch, kSlim };  ///< where the stride sits in a bottleneck
graph::Graph vgg(const Options& options, const std::string& name, const Ints& depths);
graph::Graph alexnet(const Options& options);
graph::Graph overfeat(const Options& options);
graph::Graph lenet5(const Options& options);
graph::Graph dqn(const Options& options);
graph::Graph squeezenet(const Options& options);
graph::Graph mobilenet_v1(const Options& options);
graph::Graph mobilenet_v2(const Options& options);
graph::Graph xception(const Options& options);
graph::Graph densenet121(const Options& options);
graph::Graph inception_v1(const Options& options);
graph::Graph inception_v1_bn(const Options& options);
graph::Graph inception_v3(const Options& options);
graph::Graph inception_v4(const Options& options);
graph::Graph yolov1(const Options& options);
graph::Graph yolov3(const Options& options);
graph::Graph yolov3_voc(const Options& options);
graph::Graph yolov3_tiny(const Options& options);
graph::Graph dcgan(const Options& options);
graph::Graph unet(const Options& options);
graph::Graph shift_net(const Options& options);
graph::Graph lstm_lm(const Options& options);
graph::Graph bert_base(const Options& options);

}  // namespace tilewright::zoo
