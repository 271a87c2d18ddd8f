// NonMaxSuppression: boxes by falling score, without those that overlap a better one.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tilewright/runtime/host_op.h"

namespace tilewright::runtime {
namespace {

struct Box {
  float y0, x0, y1, x1;
  float area() const { return (y1 - y0) * (x1 - x0); }
};

/// Corners in any order ([y, x, y, x]), or [x, y, width, height] of the centre form.
Box make_box(const float* values, bool center) {
  if (center) {
    const float half_width = values[2] / 2, half_height = values[3] / 2;
    return {values[1] - half_height, values[0] - half_width, values[1] + half_height,
            values[0] + half_width};
  }
  return {std::min(values[0], values[2]), std::min(values[1], values[3]),
          std::max(values[0], values[2]), std::max(values[1], values[3])};
}

/// Intersection over union; boxes without area overlap nothing.
float overlap(const Box& a, const Box& b) {
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (!(height > 0) || !(width > 0) || !(a.area() > 0) || !(b.area() > 0)) return 0;
  const float common = height * width;
  return common / (a.area() + b.area() - common);
}

struct Limits {
  int64_t max_boxes;
  double iou, score;
};

/// Positions of the chosen boxes of one class, best first; ties go to the lower position.
std::vector<int64_t> suppress(const std::vector<Box>& boxes, const float* scores,
                              const Limits& limits) {
  std::vector<int64_t> order, chosen;
  for (size_t i = 0; i < boxes.size(); ++i)
    if (scores[i] > limits.score) order.push_back(static_cast<int64_t>(i));
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  for (int64_t candidate : order) {
    if (static_cast<int64_t>(chosen.size()) >= limits.max_boxes) break;
    const Box& box = boxes[static_cast<size_t>(candidate)];
    const bool covered = std::any_of(chosen.begin(), chosen.end(), [&](int64_t better) {
      return overlap(box, boxes[static_cast<size_t>(better)]) > limits.iou;
    });
    if (!covered) chosen.push_back(candidate);
  }
  return chosen;
}

std::vector<float> floats_of(const Array& array) {
  std::vector<float> values(static_cast<size_t>(array.size()));
  for (int64_t i = 0; i < array.size(); ++i)
    values[static_cast<size_t>(i)] = static_cast<float>(array.get(i));
  return values;
}

}  // namespace

HostResult non_max_suppression(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array boxes = TW_TRY(inputs.get(0)), scores = TW_TRY(inputs.get(1));
  const bool shapes_fit = boxes.shape().size() == 3 && scores.shape().size() == 3 &&
                          boxes.shape()[2] == 4 && boxes.shape()[0] == scores.shape()[0] &&
                          boxes.shape()[1] == scores.shape()[2];
  if (!shapes_fit || !is_float(boxes.dtype()) || !is_float(scores.dtype()))
    return fail(
        ErrorKind::Invalid, "boxes and scores do not fit together",
        fmt::format("boxes {} should be floats [batch, n, 4], scores {} [batch, classes, n]",
                    to_string(boxes.shape()), to_string(scores.shape())));
  Limits limits{};
  limits.max_boxes = TW_TRY(inputs.integer(2, 0));
  limits.iou = TW_TRY(inputs.real(3, 0.0));
  limits.score = TW_TRY(inputs.real(4, -std::numeric_limits<double>::infinity()));
  const bool center = TW_TRY(attrs.integer("center_point_box", 0)) != 0;
  if (!(limits.iou >= 0 && limits.iou <= 1))
    return fail(ErrorKind::Usage, fmt::format("iou_threshold {} is not in [0, 1]", limits.iou));

  const int64_t batches = boxes.shape()[0], count = boxes.shape()[1], classes = scores.shape()[1];
  const std::vector<float> box_values = floats_of(boxes), score_values = floats_of(scores);
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < batches; ++b) {
    std::vector<Box> batch_boxes;
    for (int64_t i = 0; i < count; ++i)
      batch_boxes.push_back(make_box(box_values.data() + (b * count + i) * 4, center));
    for (int64_t c = 0; c < classes; ++c)
      for (int64_t i :
           suppress(batch_boxes, score_values.data() + (b * classes + c) * count, limits))
        rows.insert(rows.end(), {b, c, i});
  }
  Array result(DType::I64, {static_cast<int64_t>(rows.size() / 3), 3});
  std::copy(rows.begin(), rows.end(), result.as<int64_t>().begin());
  return std::vector<Array>{result};
}

}  // namespace tilewright::runtime
