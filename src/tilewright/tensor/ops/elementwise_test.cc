#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::array_of;
using testing::AttrMap;
using testing::call_of;
using testing::error_of;
using testing::expect_close;
using testing::filled;
using ::testing::HasSubstr;
using testing::Ints;
using testing::random_array;
using testing::run_op;
using testing::sigmoid;
using testing::value_at;

const std::vector<double> kReals = {-3.5, -2.5, -1, -0.75, -0.25, 0, 0.25, 0.5, 0.9, 1.5, 2.5, 7};

struct UnaryCase {
  const char* op;
  double (*want)(double);
  double lo = -INFINITY, hi = INFINITY;  ///< the domain that is tested
  AttrMap attrs = {};
};

double softplus(double x) { return std::log1p(std::exp(x)); }

const std::vector<UnaryCase>& unary_cases() {
  static const std::vector<UnaryCase> cases = {
      {"Neg", [](double x) { return -x; }},
      {"Abs", [](double x) { return std::abs(x); }},
      {"Sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : 0.0; }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Sqrt", [](double x) { return std::sqrt(x); }, 0},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Log", [](double x) { return std::log(x); }, 0},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Round", [](double x) { return std::nearbyint(x); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Sigmoid", sigmoid},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Sin", [](double x) { return std::sin(x); }},
      {"Cos", [](double x) { return std::cos(x); }},
      {"Tan", [](double x) { return std::tan(x); }},
      {"Asin", [](double x) { return std::asin(x); }, -1, 1},
      {"Acos", [](double x) { return std::acos(x); }, -1, 1},
      {"Atan", [](double x) { return std::atan(x); }},
      {"Sinh", [](double x) { return std::sinh(x); }},
      {"Cosh", [](double x) { return std::cosh(x); }},
      {"Asinh", [](double x) { return std::asinh(x); }},
      {"Acosh", [](double x) { return std::acosh(x); }, 1},
      {"Atanh", [](double x) { return std::atanh(x); }, -0.95, 0.95},
      {"Relu", [](double x) { return std::max(x, 0.0); }},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.5 * x : x; }, -9, 9, {{"alpha", 0.5}}},
      {"Elu", [](double x) { return x < 0 ? 2 * std::expm1(x) : x; }, -9, 9, {{"alpha", 2.0}}},
      {"Selu",
       [](double x) {
         return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
       }},
      {"Celu",
       [](double x) { return std::max(0.0, x) + std::min(0.0, 2 * std::expm1(x / 2)); },
       -9,
       9,
       {{"alpha", 2.0}}},
      {"Softplus", softplus},
      {"Softsign", [](double x) { return x / (1 + std::abs(x)); }},
      {"HardSigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
      {"HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0.0; }},
      {"Gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {"Gelu",
       [](double x) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       },
       -9,
       9,
       {{"approximate", std::string("tanh")}}},
      {"Mish", [](double x) { return x * std::tanh(softplus(x)); }},
      {"Swish", [](double x) { return x * sigmoid(x); }},
      {"Shrink",
       [](double x) { return x < -1  ? x + 0.5
                             : x > 1 ? x - 0.5
                                     : 0.0; },
       -9,
       9,
       {{"lambd", 1.0}, {"bias", 0.5}}},
      {"Identity", [](double x) { return x; }},
  };
  return cases;
}

TEST(Elementwise, FunctionsOfOneNumberAgreeWithTheLibrary) {
  for (const UnaryCase& c : unary_cases()) {
    std::vector<double> xs;
    for (const double x : kReals)
      if (x >= c.lo && x <= c.hi) xs.push_back(x);
    for (const auto& [dtype, tolerance] : {std::pair{DType::F32, 2e-6},
                                           {DType::F64, 1e-7},
                                           {DType::F16, 1e-3},
                                           {DType::BF16, 8e-3}}) {
      const Array x = array_of(dtype, {static_cast<int64_t>(xs.size())}, xs);
      Array want(dtype, x.shape());
      for (int64_t i = 0; i < x.size(); ++i) want.set(i, c.want(x.get(i)));
      expect_close(run_op(c.op, {x}, c.attrs)[0], want, tolerance, c.op);
    }
  }
}

TEST(Elementwise, NanAndInfinitiesFollowIeee) {
  const Array x = array_of(DType::F32, {3}, {NAN, INFINITY, -INFINITY});
  expect_close(run_op("Relu", {x})[0], array_of(DType::F32, {3}, {NAN, INFINITY, 0}));
  expect_close(run_op("Sign", {x})[0], array_of(DType::F32, {3}, {NAN, 1, -1}));
  expect_close(run_op("IsNaN", {x})[0], array_of(DType::Bool, {3}, {1, 0, 0}));
  expect_close(run_op("IsInf", {x})[0], array_of(DType::Bool, {3}, {0, 1, 1}));
  expect_close(run_op("IsInf", {x}, {{"detect_negative", int64_t{0}}})[0],
               array_of(DType::Bool, {3}, {0, 1, 0}));
  expect_close(run_op("Softplus", {array_of(DType::F32, {2}, {500, -500})})[0],
               array_of(DType::F32, {2}, {500, 0}));
  const Array half = array_of(DType::F32, {}, {0.5});
  OpCall call = call_of("Pow", {array_of(DType::F32, {2}, {-INFINITY, 9}), half});
  call.inputs[1].value = half;
  expect_close(testing::run_call(call, {array_of(DType::F32, {2}, {-INFINITY, 9}), half})[0],
               array_of(DType::F32, {2}, {INFINITY, 3}));
}

TEST(Elementwise, IntegersDivideTowardsZeroAndModuloFollowsTheFlag) {
  const Array a = array_of(DType::I32, {4}, {7, -7, 7, -7});
  const Array b = array_of(DType::I32, {4}, {3, 3, -3, -3});
  expect_close(run_op("Div", {a, b})[0], array_of(DType::I32, {4}, {2, -2, -2, 2}));
  expect_close(run_op("Mod", {a, b})[0], array_of(DType::I32, {4}, {1, 2, -2, -1}));
  expect_close(run_op("Mod", {a, b}, {{"fmod", int64_t{1}}})[0],
               array_of(DType::I32, {4}, {1, -1, 1, -1}));
  expect_close(run_op("Mod", {a.cast(DType::F32), b.cast(DType::F32)}, {{"fmod", int64_t{1}}})[0],
               array_of(DType::F32, {4}, {1, -1, 1, -1}));
  expect_close(run_op("Mod", {a.cast(DType::F32), b.cast(DType::F32)})[0],
               array_of(DType::F32, {4}, {1, 2, -2, -1}));
  expect_close(run_op("Mod", {array_of(DType::F32, {3}, {5, -5, 6}),
                              array_of(DType::F32, {3}, {INFINITY, INFINITY, -3})})[0],
               array_of(DType::F32, {3}, {5, INFINITY, 0}));
}

TEST(Elementwise, BroadcastsLikeNumPy) {
  const Array a = random_array(DType::F32, {2, 1, 4}, 1), b = random_array(DType::F32, {3, 1}, 2);
  expect_close(run_op("Sub", {a, b})[0], filled(DType::F32, {2, 3, 4}, [&](const Ints& at) {
                 return value_at(a, {at[0], 0, at[2]}) - value_at(b, {at[1], 0});
               }));
  const Array scalar = array_of(DType::F32, {}, {3});
  expect_close(run_op("Mul", {scalar, b})[0],
               filled(DType::F32, {3, 1}, [&](const Ints& at) { return 3 * value_at(b, at); }));
  EXPECT_EQ(run_op("Add", {Array(DType::F32, {0, 3}), Array(DType::F32, {3})})[0].shape(),
            (Shape{0, 3}));
  EXPECT_THAT(error_of(call_of("Add", {a, Array(DType::F32, {3, 3})})),
              HasSubstr("[2, 1, 4] and [3, 3] do not broadcast"));
}

TEST(Elementwise, ComparisonsAndLogic) {
  const Array a = array_of(DType::F32, {3}, {1, 2, 3}), b = array_of(DType::F32, {}, {2});
  const auto bools = [](double x, double y, double z) {
    return array_of(DType::Bool, {3}, {x, y, z});
  };
  expect_close(run_op("Less", {a, b})[0], bools(1, 0, 0));
  expect_close(run_op("LessOrEqual", {a, b})[0], bools(1, 1, 0));
  expect_close(run_op("Greater", {a, b})[0], bools(0, 0, 1));
  expect_close(run_op("GreaterOrEqual", {a, b})[0], bools(0, 1, 1));
  expect_close(run_op("Equal", {a, b})[0], bools(0, 1, 0));
  const Array p = bools(0, 1, 1), q = array_of(DType::Bool, {3}, {1, 0, 1});
  expect_close(run_op("And", {p, q})[0], bools(0, 0, 1));
  expect_close(run_op("Or", {p, q})[0], bools(1, 1, 1));
  expect_close(run_op("Xor", {p, q})[0], bools(1, 1, 0));
  expect_close(run_op("Not", {p})[0], bools(1, 0, 0));
  expect_close(run_op("Where", {p, a, b})[0], array_of(DType::F32, {3}, {2, 2, 3}));
  EXPECT_THAT(error_of(call_of("And", {a, b})), HasSubstr("input 0 must be of bool type"));
}

TEST(Elementwise, BitsAndShifts) {
  const Array a = array_of(DType::U8, {3}, {12, 255, 1}), b = array_of(DType::U8, {3}, {10, 1, 7});
  expect_close(run_op("BitwiseAnd", {a, b})[0], array_of(DType::U8, {3}, {8, 1, 1}));
  expect_close(run_op("BitwiseOr", {a, b})[0], array_of(DType::U8, {3}, {14, 255, 7}));
  expect_close(run_op("BitwiseXor", {a, b})[0], array_of(DType::U8, {3}, {6, 254, 6}));
  expect_close(run_op("BitwiseNot", {a})[0], array_of(DType::U8, {3}, {243, 0, 254}));
  const Array n = array_of(DType::U8, {3}, {1, 2, 7});
  expect_close(run_op("BitShift", {a, n}, {{"direction", std::string("LEFT")}})[0],
               array_of(DType::U8, {3}, {24, 252, 128}));
  expect_close(run_op("BitShift", {a, n}, {{"direction", std::string("RIGHT")}})[0],
               array_of(DType::U8, {3}, {6, 63, 0}));
  const Array s = array_of(DType::I8, {3}, {-8, -1, 100}), m = array_of(DType::I8, {3}, {2, 9, 1});
  expect_close(run_op("BitShift", {s, m}, {{"direction", std::string("RIGHT")}})[0],
               array_of(DType::I8, {3}, {-2, -1, 50}));
  EXPECT_THAT(error_of(call_of("BitShift", {a, n})), HasSubstr("direction"));
}

TEST(Elementwise, VariadicsFoldTheirInputs) {
  const Array a = array_of(DType::F16, {2}, {1, 5}), b = array_of(DType::F16, {}, {3});
  const Array c = array_of(DType::F16, {2, 1}, {2, 8});
  expect_close(run_op("Min", {a, b, c})[0], array_of(DType::F16, {2, 2}, {1, 2, 1, 3}));
  expect_close(run_op("Max", {a, b, c})[0], array_of(DType::F16, {2, 2}, {3, 5, 8, 8}));
  expect_close(run_op("Sum", {a, b, c})[0], array_of(DType::F16, {2, 2}, {6, 10, 12, 16}));
  expect_close(run_op("Mean", {a, b, c})[0],
               array_of(DType::F16, {2, 2}, {2, 10.0 / 3, 4, 16.0 / 3}), 1e-3);
  expect_close(run_op("Sum", {b})[0], b);
}

TEST(Elementwise, PowKeepsTheTypeOfTheBase) {
  const Array base = array_of(DType::I32, {3}, {2, -3, 4});
  expect_close(run_op("Pow", {base, array_of(DType::F32, {3}, {3, 3, 0.5})})[0],
               array_of(DType::I32, {3}, {8, -27, 2}));
  const Array two = array_of(DType::F32, {}, {2}), x = array_of(DType::F32, {2}, {-3, 4});
  OpCall call = call_of("Pow", {x, two});
  call.inputs[1].value = two;
  expect_close(testing::run_call(call, {x, two})[0], array_of(DType::F32, {2}, {9, 16}));
}

TEST(Elementwise, ClipPreluCastDropout) {
  const Array x = array_of(DType::F32, {4}, {-9, -1, 1, 9});
  const Array lo = array_of(DType::F32, {}, {-2}), hi = array_of(DType::F32, {}, {3});
  expect_close(run_op("Clip", {x, lo, hi})[0], array_of(DType::F32, {4}, {-2, -1, 1, 3}));
  expect_close(run_op("Clip", {x, Array(), hi})[0], array_of(DType::F32, {4}, {-9, -1, 1, 3}));
  expect_close(run_op("Clip", {x})[0], x);
  EXPECT_THAT(error_of(call_of("Clip", {x, x})), HasSubstr("input 1 must be a scalar"));
  expect_close(run_op("PRelu", {x, array_of(DType::F32, {4}, {2, 3, 4, 5})})[0],
               array_of(DType::F32, {4}, {-18, -3, 1, 9}));
  EXPECT_THAT(error_of(call_of("PRelu", {x, Array(DType::F32, {2, 4})})),
              HasSubstr("slope of shape [2, 4]"));
  const Array y = array_of(DType::F32, {4}, {-1.75, 0, 0.5, 300});
  expect_close(run_op("Cast", {y}, {{"to", int64_t{6}}})[0],
               array_of(DType::I32, {4}, {-1, 0, 0, 300}));
  expect_close(run_op("Cast", {y}, {{"to", int64_t{9}}})[0],
               array_of(DType::Bool, {4}, {1, 0, 1, 1}));
  expect_close(run_op("CastLike", {y, Array(DType::F16, {1})})[0],
               array_of(DType::F16, {4}, {-1.75, 0, 0.5, 300}));
  EXPECT_THAT(error_of(call_of("Cast", {y}, {{"to", int64_t{8}}})), HasSubstr("string"));
  const auto dropped = run_op("Dropout", {x}, {}, 2);
  expect_close(dropped[0], x);
  expect_close(dropped[1], array_of(DType::Bool, {4}, {1, 1, 1, 1}));
  const Array half = array_of(DType::F32, {}, {0.5}), yes = array_of(DType::Bool, {}, {1});
  EXPECT_THAT(error_of(call_of("Dropout", {x, half, yes})), HasSubstr("random"));
}

TEST(Elementwise, WrongInputsAreNamed) {
  const Array f = Array(DType::F32, {2}), i = Array(DType::I32, {2});
  EXPECT_THAT(error_of(call_of("Add", {f, i})), HasSubstr("inputs 0 and 1 differ in type"));
  EXPECT_THAT(error_of(call_of("Add", {f})), HasSubstr("takes 2 inputs, got 1"));
  EXPECT_THAT(error_of(call_of("Exp", {i})), HasSubstr("floating-point"));
  EXPECT_THAT(error_of(call_of("Add", {f, Array()})), HasSubstr("input 1 is missing"));
  EXPECT_THAT(error_of(call_of("NoSuchOp", {f})), HasSubstr("NoSuchOp is not known"));
  OpCall call = call_of("Exp", {f});
  call.num_outputs = 2;
  EXPECT_THAT(error_of(call), HasSubstr("has 1 output, 2 are asked for"));
}

}  // namespace
}  // namespace tilewright::tensor
