#include "tilewright/zoo/zoo.h"

#include <fmt/format.h>

#include "tilewright/base/names.h"
#include "tilewright/zoo/net.h"

namespace tilewright::zoo {
namespace {

template <int kStage2, int kStage3, bool kBottleneck, int kVariant, int kStage1 = 3,
          int kStage4 = 3>
graph::Graph resnet_of(const Options& options) {
  constexpr int kLayers = (kStage1 + kStage2 + kStage3 + kStage4) * (kBottleneck ? 3 : 2) + 2;
  const char* suffix = kVariant == kSlim                   ? "_slim"
                       : kVariant == kTorch && kBottleneck ? "_v1.5"
                                                           : "";
  return resnet(options, fmt::format("resnet{}{}", kLayers, suffix),
                {kStage1, kStage2, kStage3, kStage4}, kBottleneck, kVariant);
}

graph::Graph vgg16(const Options& options) { return vgg(options, "vgg16", {2, 2, 3, 3, 3}); }
graph::Graph vgg19(const Options& options) { return vgg(options, "vgg19", {2, 2, 4, 4, 4}); }

}  // namespace

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = {
      {"resnet18", "ResNet-18 (He et al., Caffe's v1)", 224, 32,
       resnet_of<2, 2, false, kCaffe, 2, 2>},
      {"resnet34", "ResNet-34", 224, 32, resnet_of<4, 6, false, kCaffe>},
      {"resnet50", "ResNet-50, stride in the first 1x1 of a block", 224, 32,
       resnet_of<4, 6, true, kCaffe>},
      {"resnet101", "ResNet-101", 224, 32, resnet_of<4, 23, true, kCaffe>},
      {"resnet152", "ResNet-152", 224, 32, resnet_of<8, 36, true, kCaffe>},
      {"resnet50_v1.5", "ResNet-50 v1.5, stride in the 3x3", 224, 32,
       resnet_of<4, 6, true, kTorch>},
      {"resnet50_slim", "ResNet-50 of TF-slim, stride in a stage's last block", 224, 32,
       resnet_of<4, 6, true, kSlim>},
      {"resnet101_slim", "ResNet-101 of TF-slim", 224, 32, resnet_of<4, 23, true, kSlim>},
      {"resnet152_slim", "ResNet-152 of TF-slim", 224, 32, resnet_of<8, 36, true, kSlim>},
      {"mobilenet_v1", "MobileNet 1.0", 224, 32, mobilenet_v1},
      {"mobilenet_v2", "MobileNet v2 1.0", 224, 32, mobilenet_v2},
      {"vgg16", "VGG-16 with its fully connected layers", 224, 32, vgg16},
      {"vgg19", "VGG-19 with its fully connected layers", 224, 32, vgg19},
      {"inception_v1", "GoogLeNet", 224, 47, inception_v1},
      {"inception_v1_bn", "GoogLeNet with batch norms instead of LRN", 224, 47, inception_v1_bn},
      {"inception_v3", "Inception v3", 299, 75, inception_v3},
      {"inception_v4", "Inception v4", 299, 75, inception_v4},
      {"squeezenet1.1", "SqueezeNet 1.1", 224, 32, squeezenet},
      {"xception", "Xception", 299, 71, xception},
      {"densenet121", "DenseNet-121", 224, 32, densenet121},
      {"alexnet", "AlexNet with two groups and LRN", 227, 67, alexnet},
      {"overfeat", "OverFeat, fast model on 192x192", 192, 64, overfeat},
      {"yolov1", "YOLO v1: 24 convolutions, 2 fully connected layers", 448, 64, yolov1},
      {"yolov3", "YOLO v3 on Darknet-53, three scales", 416, 32, yolov3},
      {"yolov3_voc", "YOLO v3 for 20 classes", 416, 32, yolov3_voc},
      {"yolov3_tiny", "YOLO v3 tiny, two scales", 416, 32, yolov3_tiny},
      {"dcgan", "DCGAN generator; size is the width of the image", 64, 16, dcgan},
      {"dqn", "Deep Q-network on four 84x84 frames", 84, 36, dqn},
      {"lstm_lm", "LSTM language model, 2 layers of 650; size is the sequence length", 35, 1,
       lstm_lm},
      {"bert_base", "BERT base encoder; size is the sequence length", 128, 1, bert_base},
      {"unet", "U-Net with valid convolutions", 572, 188, unet},
      {"shift_net", "Shift-Net inpainting generator", 256, 256, shift_net},
      {"lenet5", "LeNet-5", 32, 20, lenet5},
  };
  return table;
}

Result<graph::Graph> build(const std::string& name, Options options) {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    if (options.size == 0) options.size = entry.default_size;
    if (options.size < entry.smallest_size || options.size > 8192)
      return fail(ErrorKind::Usage, fmt::format("{} cannot have size {}", name, options.size),
                  fmt::format("its sizes go from {} to 8192", entry.smallest_size));
    if (options.batch < 1 || options.batch > 65536)
      return fail(ErrorKind::Usage,
                  fmt::format("batch {} is not between 1 and 65536", options.batch));
    return entry.build(options);
  }
  const std::string like = did_you_mean(name, names);
  return fail(ErrorKind::Usage, fmt::format("there is no network '{}' in the zoo", name), {},
              like.empty() ? "tilewright zoo list" : like);
}

}  // namespace tilewright::zoo
