#include "programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "tilewright/tensor/text.h"

namespace tilewright::bench {

Func conv_program(const std::string& name, const cost::YoloConv& conv, DType dtype) {
  const int64_t pad = conv.kernel / 2,
                result = (conv.size + 2 * pad - conv.kernel) / conv.stride + 1;
  const std::string_view type = tilewright::name(dtype);
  const char* sum = is_float(dtype) ? "f32" : "i32";
  std::string text = fmt::format(
      "tensor {}(X: {}[{}, {}, {}], W: {}[{}, {}, {}, {}]) where c = {}, k = {}, r = {}, m = {} "
      "{{\n",
      name, type, conv.inputs, conv.size, conv.size, type, conv.outputs, conv.inputs, conv.kernel,
      conv.kernel, conv.inputs, conv.outputs, conv.kernel, result);
  if (pad > 0)
    text += fmt::format(
        "  P[i in c, y in {0}, x in {0}] = select(y >= {1} && y < {2} && x >= {1} && x < {2}, "
        "X[i, y - {1}, x - {1}], 0)\n",
        conv.size + 2 * pad, pad, conv.size + pad);
  text += fmt::format(
      "  C[o in k, y in m, x in m] = sum(i in c, p in r, q in r) {0}({1}[i, y * {2} + p, x * {2} + "
      "q]) * {0}(W[o, i, p, q])\n  return C\n}}\n",
      sum, pad > 0 ? "P" : "X", conv.stride);
  Result<Func> func = tensor::parse_tensor_file(text);
  if (!func) {
    fmt::print(stderr, "{}\n{}", to_string(func.error()), text);
    std::exit(2);
  }
  return *std::move(func);
}

std::vector<std::pair<std::string, cost::YoloConv>> yolo_convs(
    const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, cost::YoloConv>> chosen;
  size_t number = 0;
  for (const cost::YoloConv& conv : cost::kYoloConvs) {
    const std::string name = fmt::format("C{}", ++number);
    if (names.empty() || std::find(names.begin(), names.end(), name) != names.end())
      chosen.emplace_back(name, conv);
  }
  if (!names.empty() && chosen.size() != names.size()) {
    fmt::print(stderr, "layers are C1 to C{}\n", number);
    std::exit(2);
  }
  return chosen;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

namespace {

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (size_t i = first; i < end; ++i) rank[order[i]] = static_cast<double>(first + end - 1) / 2;
    first = end;
  }
  return rank;
}

}  // namespace

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 1;
}

}  // namespace tilewright::bench
