#include "tilewright/tensor/recurrent.h"

#include <cctype>

#include "tilewright/base/check.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

/// Name as ONNX compares it (any case), how many parameters it takes, and their defaults.
struct ActivationRow {
  std::string_view name;
  int parameters;
  double alpha, beta;
};
constexpr ActivationRow kActivations[] = {
    {"relu", 0, 0, 0},       {"tanh", 0, 0, 0},          {"sigmoid", 0, 0, 0},
    {"affine", 2, 1, 0},     {"leakyrelu", 1, .01, 0},   {"thresholdedrelu", 1, 1, 0},
    {"scaledtanh", 2, 1, 1}, {"hardsigmoid", 2, .2, .5}, {"elu", 1, 1, 0},
    {"softsign", 0, 0, 0},   {"softplus", 0, 0, 0}};

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

Status expect_shape(const OpCall& call, size_t index, const char* what, const Shape& shape) {
  const InputInfo* in = call.input(index);
  if (in == nullptr || in->shape == shape) return {};
  return invalid(
      call, fmt::format("{} does not fit", what),
      fmt::format("its shape is {}, expected {}", to_string(in->shape), to_string(shape)));
}

}  // namespace

Result<std::vector<Activation>> recurrent_activations(const OpCall& call, int64_t directions,
                                                      const std::vector<std::string>& defaults) {
  std::vector<std::string> names = call.attrs.get_strings("activations");
  const size_t needed = defaults.size() * static_cast<size_t>(directions);
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d)
      names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() < needed)
    return fail(
        ErrorKind::Invalid, fmt::format("{} lacks activation functions", call.op),
        fmt::format("{} given, {} needed for {} direction(s)", names.size(), needed, directions));
  const std::vector<double> alphas = call.attrs.get_floats("activation_alpha");
  const std::vector<double> betas = call.attrs.get_floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> out;
  for (size_t i = 0; i < needed; ++i) {
    const std::string key = lower_case(names[i]);
    const ActivationRow* row = nullptr;
    for (const ActivationRow& r : kActivations)
      if (r.name == key) row = &r;
    if (row == nullptr)
      return unsupported(call, fmt::format("has no activation function {}", names[i]));
    Activation a{key, row->alpha, row->beta};
    if (row->parameters >= 1 && next_alpha < alphas.size()) a.alpha = alphas[next_alpha++];
    if (row->parameters >= 2 && next_beta < betas.size()) a.beta = betas[next_beta++];
    out.push_back(std::move(a));
  }
  return out;
}

Expr activate_by(const Activation& f, const Expr& x) {
  const DType t = x.dtype();
  auto num = [&](double v) { return float_imm(v, t); };
  const std::string& n = f.name;
  if (n == "relu") return max(x, num(0));
  if (n == "tanh") return math(MathFn::Tanh, {x});
  if (n == "sigmoid") return math(MathFn::Sigmoid, {x});
  if (n == "affine") return num(f.alpha) * x + num(f.beta);
  if (n == "leakyrelu") return select(x >= num(0), x, num(f.alpha) * x);
  if (n == "thresholdedrelu") return select(x >= num(f.alpha), x, num(0));
  if (n == "scaledtanh") return num(f.alpha) * math(MathFn::Tanh, {num(f.beta) * x});
  if (n == "hardsigmoid") return min(max(num(f.alpha) * x + num(f.beta), num(0)), num(1));
  if (n == "elu") return select(x >= num(0), x, num(f.alpha) * (math(MathFn::Exp, {x}) - num(1)));
  if (n == "softsign") return x / (num(1) + math(MathFn::Abs, {x}));
  // log(1 + e^x) without overflow for large x.
  TW_CHECK(n == "softplus", "activation {}", n);
  return max(x, num(0)) +
         math(MathFn::Log, {num(1) + math(MathFn::Exp, {-math(MathFn::Abs, {x})})});
}

Expr sequence_length(const RecurrentLayer& layer, const Tensor& lengths, const Expr& b) {
  return min(max(cast(DType::I64, lengths({b})), int_imm(0)), int_imm(layer.steps));
}

RecurrentKind recurrent_kind(const std::string& op) {
  if (op == "LSTM") return {4, {"Sigmoid", "Tanh", "Tanh"}, true};
  if (op == "GRU") return {3, {"Sigmoid", "Tanh"}, false};
  return {1, {"Tanh"}, false};
}

Result<RecurrentLayer> recurrent_layer(const OpCall& call) {
  const RecurrentKind kind = recurrent_kind(call.op);
  for (size_t i = 0; i < 3; ++i)
    if (!call.input(i) || call.input(i)->shape.size() != 3)
      return invalid(call, "X, W and R must have rank 3",
                     call.input(i)
                         ? fmt::format("input {} is {}", i, to_string(call.input(i)->shape))
                         : fmt::format("input {} is absent", i));
  RecurrentLayer l;
  l.direction = call.attrs.get_string("direction", "forward");
  if (l.direction != "forward" && l.direction != "reverse" && l.direction != "bidirectional")
    return invalid(call, fmt::format("direction is '{}'", l.direction),
                   "expected forward, reverse or bidirectional");
  l.batch_first = call.attrs.get_int("layout", 0) != 0;
  const Shape& x = call.inputs[0].shape;
  l.steps = x[l.batch_first ? 1 : 0];
  l.batch = x[l.batch_first ? 0 : 1];
  l.input = x[2];
  l.directions = l.direction == "bidirectional" ? 2 : 1;
  l.hidden = call.inputs[2].shape[2];
  if (const int64_t h = call.attrs.get_int("hidden_size", l.hidden); h != l.hidden)
    return invalid(call, fmt::format("hidden_size is {}", h),
                   fmt::format("R is {}", to_string(call.inputs[2].shape)));
  const int64_t rows = kind.gates * l.hidden;
  const Shape state = l.batch_first ? Shape{l.batch, l.directions, l.hidden}
                                    : Shape{l.directions, l.batch, l.hidden};
  TW_TRY_STATUS(expect_shape(call, 1, "W", {l.directions, rows, l.input}));
  TW_TRY_STATUS(expect_shape(call, 2, "R", {l.directions, rows, l.hidden}));
  TW_TRY_STATUS(expect_shape(call, 3, "B", {l.directions, 2 * rows}));
  TW_TRY_STATUS(expect_shape(call, 4, "sequence_lens", {l.batch}));
  TW_TRY_STATUS(expect_shape(call, 5, "initial_h", state));
  TW_TRY_STATUS(expect_shape(call, 6, "initial_c", state));
  TW_TRY_STATUS(expect_shape(call, 7, "P", {l.directions, 3 * l.hidden}));
  return l;
}

}  // namespace tilewright::tensor
