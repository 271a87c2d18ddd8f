// Generated kernels against the interpreter for the operators of published evaluations:
// FlexTensor's twelve and two, MTTKRP, TTM, pools, element-wise ones, in five types, on odd shapes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "tilewright/codegen/hls/testing/cases.h"
#include "tilewright/tensor/workload.h"

namespace tilewright::codegen {
namespace {

using Sizes = std::map<std::string, int64_t>;

struct Operator {
  const char* name;  ///< of a workload
  std::vector<Sizes> sizes;
};

/// A window of `kernel` on images of `size` and `size` + 2, padded by `pad`.
Sizes window(int rank, int64_t channels, int64_t outputs, int64_t size, int64_t kernel,
             int64_t stride, int64_t pad, Sizes more = {}) {
  more.insert({{"batch", 1}, {"in_channels", channels}, {"out_channels", outputs}});
  const std::vector<std::pair<std::string, std::string>> axes =
      rank == 1 ? std::vector<std::pair<std::string, std::string>>{{"length", "_l"}}
      : rank == 2
          ? std::vector<std::pair<std::string, std::string>>{{"height", "_h"}, {"width", "_w"}}
          : std::vector<std::pair<std::string, std::string>>{
                {"depth", "_d"}, {"height", "_h"}, {"width", "_w"}};
  int64_t at = size;
  for (const auto& [axis, suffix] : axes) {
    more.insert({{axis, at},
                 {"kernel" + suffix, kernel},
                 {"stride" + suffix, stride},
                 {"pad" + suffix, pad}});
    at = size + 2;
  }
  return more;
}

const std::vector<Operator>& operators() {
  static const std::vector<Operator> all = {
      {"gemv", {{{"m", 7}, {"k", 13}}, {{"batch", 3}, {"m", 1}, {"k", 5}}}},
      {"gemm", {{{"m", 5}, {"n", 7}, {"k", 11}}, {{"m", 1}, {"n", 13}, {"k", 3}}}},
      {"bilinear",
       {{{"batch", 3}, {"out_features", 5}, {"in1_features", 7}, {"in2_features", 2}},
        {{"batch", 1}, {"out_features", 1}, {"in1_features", 3}, {"in2_features", 5}}}},
      {"conv1d", {window(1, 3, 5, 11, 3, 1, 1), window(1, 2, 3, 13, 5, 2, 0)}},
      {"conv_transpose1d", {window(1, 3, 5, 7, 3, 1, 1), window(1, 2, 3, 5, 4, 3, 0)}},
      {"conv2d", {window(2, 3, 5, 7, 3, 1, 1), window(2, 5, 2, 9, 3, 2, 0)}},
      {"conv_transpose2d", {window(2, 3, 5, 5, 3, 1, 0), window(2, 2, 3, 3, 3, 2, 1)}},
      {"conv3d", {window(3, 2, 3, 5, 3, 1, 1), window(3, 3, 1, 5, 2, 2, 0)}},
      {"conv_transpose3d", {window(3, 2, 3, 3, 2, 1, 0), window(3, 1, 2, 3, 3, 2, 1)}},
      {"group_conv2d",
       {window(2, 6, 9, 5, 3, 1, 1, {{"groups", 3}}),
        window(2, 4, 2, 7, 1, 1, 0, {{"groups", 2}})}},
      {"depthwise_conv2d",
       {window(2, 5, 5, 7, 3, 1, 1, {{"groups", 5}}),
        window(2, 3, 6, 7, 3, 2, 0, {{"groups", 3}})}},
      {"dilated_conv2d",
       {window(2, 3, 5, 9, 3, 1, 2, {{"dilation_h", 2}, {"dilation_w", 2}}),
        window(2, 1, 3, 11, 3, 1, 0, {{"dilation_h", 3}, {"dilation_w", 1}})}},
      {"block_circulant_matrix",
       {{{"rows", 6}, {"cols", 9}, {"block", 3}}, {{"rows", 10}, {"cols", 5}, {"block", 5}}}},
      {"shift_conv2d", {window(2, 0, 0, 7, 3, 1, 1, {{"channels", 5}})}},
      {"mttkrp",
       {{{"i", 3}, {"j", 5}, {"k", 7}, {"l", 2}}, {{"i", 1}, {"j", 3}, {"k", 5}, {"l", 11}}}},
      {"ttm",
       {{{"i", 3}, {"j", 5}, {"k", 7}, {"l", 2}}, {{"i", 1}, {"j", 3}, {"k", 5}, {"l", 11}}}},
  };
  return all;
}

/// In i16 an operator is what it is in i8, with wider elements: ONNX has none of its own.
Func widened(const Func& func) {
  std::string text = print(func);
  const auto in_name = [](char c) {
    return c == '_' || std::isalpha(static_cast<unsigned char>(c));
  };
  const auto goes_on = [&](char c) {
    return in_name(c) || std::isdigit(static_cast<unsigned char>(c));
  };
  for (size_t at = 0; (at = text.find("i8", at)) != std::string::npos; at += 3)
    if (at > 0 && !in_name(text[at - 1]) && !goes_on(text[at + 2])) text.replace(at, 2, "i16");
  Result<Func> wide = parse_func(text);
  EXPECT_TRUE(wide) << to_string(wide.error()) << text;
  return wide ? *wide : func;
}

/// By how much sums may differ that are not in the order of the program. Rounding of the type.
double tolerance_of(DType dtype) {
  return dtype == DType::F32 ? 1e-5 : dtype == DType::F16 ? 2e-3 : is_float(dtype) ? 1.6e-2 : 0;
}

/// `call` in the type and, of floats, in both modes of arithmetic. Sums that keep their order have
/// equal bits; functions (`exact_tolerance`) are right up to rounding only.
void add_cases(std::vector<testing::Case>& cases, const std::string& name, DType dtype,
               const Result<tensor::OpCall>& call, double exact_tolerance = 0) {
  ASSERT_TRUE(call) << name << ": " << to_string(call.error());
  for (const MathMode math : {MathMode::Fast, MathMode::Exact}) {
    const bool exact = math == MathMode::Exact;
    if (exact && !is_float(dtype)) continue;
    Result<Func> func = tensor::op_func(*call, math);
    ASSERT_TRUE(func) << name << ": " << to_string(func.error());
    const std::string label = fmt::format("{}_{}_{}{}", name, tilewright::name(dtype),
                                          exact ? "exact_" : "", cases.size());
    cases.push_back({label, dtype == DType::I16 ? widened(*func) : *func,
                     exact ? exact_tolerance : tolerance_of(dtype), is_float(dtype)});
  }
}

DType asked(DType dtype) { return dtype == DType::I16 ? DType::I8 : dtype; }

tensor::OpCall onnx(const std::string& op, DType dtype, std::vector<Shape> shapes,
                    std::map<std::string, tensor::AttrValue> attributes = {}) {
  tensor::OpCall call;
  call.op = op;
  call.attrs.values = std::move(attributes);
  for (Shape& shape : shapes) call.inputs.push_back({true, dtype, std::move(shape), std::nullopt});
  return call;
}

/// Pools (of floats, and the largest of integers) and element-wise operators.
void add_others(std::vector<testing::Case>& cases, DType dtype) {
  using Ints = std::vector<int64_t>;
  const DType type = asked(dtype);
  add_cases(
      cases, "MaxPool", dtype,
      onnx("MaxPool", type, {{1, 3, 7, 9}},
           {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 0, 1}}}));
  for (const char* op : {"Add", "Sub", "Mul", "Max", "Min"})
    add_cases(cases, op, dtype, onnx(op, type, {{3, 1, 7}, {5, 1}}));
  add_cases(cases, "Abs", dtype, onnx("Abs", type, {{13}}));
  if (!is_float(dtype)) return;
  add_cases(cases, "AveragePool", dtype,
            onnx("AveragePool", type, {{1, 3, 7, 9}},
                 {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}));
  add_cases(cases, "GlobalAveragePool", dtype, onnx("GlobalAveragePool", type, {{1, 3, 5, 7}}));
  add_cases(cases, "Relu", dtype, onnx("Relu", type, {{3, 7}}));
  for (const char* op : {"Sigmoid", "Tanh", "Exp"})
    add_cases(cases, op, dtype, onnx(op, type, {{3, 7}}), tolerance_of(dtype));
}

/// The operator library has these for floats only, as ONNX has transposed convolutions.
bool has_no_integers(std::string_view op) {
  return op.starts_with("conv_transpose") || op == "block_circulant_matrix";
}

std::vector<testing::Case> cases_of(DType dtype) {
  std::vector<testing::Case> cases;
  for (const Operator& op : operators()) {
    if (!is_float(dtype) && has_no_integers(op.name)) continue;
    for (const Sizes& sizes : op.sizes)
      add_cases(cases, op.name, dtype, tensor::workload_call(op.name, sizes, asked(dtype)));
  }
  add_others(cases, dtype);
  return cases;
}

TEST(HlsOperatorsSlow, AllAreThere) {
  std::vector<std::string> known = tensor::workload_operators(), here;
  for (const Operator& op : operators()) here.emplace_back(op.name);
  std::sort(known.begin(), known.end());
  std::sort(here.begin(), here.end());
  EXPECT_EQ(known, here);
}

TEST(HlsOperatorsSlow, F32) { testing::check_all(cases_of(DType::F32), {}); }
TEST(HlsOperatorsSlow, Bf16) { testing::check_all(cases_of(DType::BF16), {}); }
TEST(HlsOperatorsSlow, F16) { testing::check_all(cases_of(DType::F16), {}); }
TEST(HlsOperatorsSlow, I16) { testing::check_all(cases_of(DType::I16), {}); }
TEST(HlsOperatorsSlow, I8) { testing::check_all(cases_of(DType::I8), {}); }

}  // namespace
}  // namespace tilewright::codegen
