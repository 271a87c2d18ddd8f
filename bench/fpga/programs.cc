#include "programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

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

}  // namespace tilewright::bench
