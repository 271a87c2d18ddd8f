// The programs of the differential tests, as IR text.
#include <fmt/format.h>

#include "tilewright/base/check.h"
#include "tilewright/codegen/testing/harness.h"
#include "tilewright/ir/testing/corpus.h"
#include "tilewright/ir/testing/random_func.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen::testing {
namespace {

class Cases {
 public:
  void add(const std::string& label, const std::string& text, double tolerance = 0,
           bool real_data = false) {
    Result<Func> func = parse_func(text);
    TW_CHECK(func.has_value(), "{}\n{}", func ? "" : to_string(func.error()), text);
    cases_.push_back(Case{label, std::move(*func), tolerance, real_data});
  }
  void add(Case test) { cases_.push_back(std::move(test)); }
  std::vector<Case> take() { return std::move(cases_); }

 private:
  std::vector<Case> cases_;
};

/// Literal of a type: `3f16`, `3i8`, plain for f32 and i64.
std::string literal(int value, DType dtype) {
  const std::string text = is_float(dtype) ? fmt::format("{}.0", value) : fmt::format("{}", value);
  if (dtype == DType::F32 || dtype == DType::I64) return text;
  return text + std::string(name(dtype));
}

/// `Y0 = f0(A, B)`, ... for i in n vector, with one output of type `out` per expression.
std::string elementwise(DType in, DType out, const std::vector<std::string>& exprs, int n) {
  std::string params = fmt::format("A: {0}[{1}], B: {0}[{1}]", name(in), n), body;
  for (size_t k = 0; k < exprs.size(); ++k) {
    params += fmt::format(", out Y{}: {}[{}]", k, name(out), n);
    body += fmt::format(
        "  for i{0} in {1} vector {{\n    block Y{0}(i: space {1} = i{0}) {{ Y{0}[i] = {2} }}\n  "
        "}}\n",
        k, n, exprs[k]);
  }
  return fmt::format("func f({}) {{\n{}}}\n", params, body);
}

void arithmetic(Cases& cases) {
  for (const DType d : kAllDTypes) {
    if (d == DType::Bool) continue;
    const std::string one = literal(1, d), two = literal(2, d), three = literal(3, d);
    std::vector<std::string> ops = {"A[i] + B[i]",
                                    "A[i] - B[i]",
                                    "A[i] * B[i]",
                                    "min(A[i], B[i])",
                                    "max(A[i], B[i])",
                                    fmt::format("A[i] / (B[i] * B[i] + {})", one),
                                    fmt::format("A[i] % {}", three),
                                    fmt::format("select(A[i] < B[i], A[i] * {}, B[i])", two),
                                    fmt::format("max(A[i], {}) + min({}, B[i])", one, two)};
    if (!is_float(d)) {
      for (const char* op : {"A[i] & B[i]", "A[i] | B[i]", "A[i] ^ B[i]"}) ops.push_back(op);
      ops.push_back(fmt::format("A[i] << (B[i] & {})", three));
      ops.push_back(fmt::format("A[i] >> (B[i] & {})", three));
      ops.push_back(fmt::format("A[i] / {}", three));
      ops.push_back(fmt::format("A[i] % select(B[i] == {0}, {1}, B[i])", literal(0, d), two));
      ops.push_back(fmt::format("A[i] / select(B[i] == {0}, {1}, B[i])", literal(0, d), two));
      ops.push_back(fmt::format("trunc_div(A[i], {})", two));
      ops.push_back(fmt::format("trunc_mod(A[i], {})", three));
      ops.push_back("A[i] << A[i] * A[i] + B[i]");
      ops.push_back("abs(A[i])");
      ops.push_back("popcount(A[i])");
      ops.push_back("~A[i]");
      ops.push_back(fmt::format("pow(A[i], {})", three));
    }
    for (const int n : {1, 7, 16, 37}) {
      const double tolerance = d == DType::F32 ? 1e-6 : d == DType::F64 ? 1e-14 : 0;
      cases.add(fmt::format("ops_{}_{}", name(d), n), elementwise(d, d, ops, n), tolerance);
    }
    cases.add(fmt::format("compare_{}", name(d)),
              elementwise(
                  d, DType::Bool,
                  {"A[i] < B[i]", "A[i] <= B[i]", "A[i] > B[i]", "A[i] >= B[i]", "A[i] == B[i]",
                   "A[i] != B[i]", "A[i] < B[i] && B[i] != A[i]", "!(A[i] < B[i]) || A[i] == B[i]"},
                  19));
  }
}

void casts(Cases& cases) {
  for (const DType from : kAllDTypes) {
    for (const DType to : kAllDTypes) {
      if (from == to) continue;
      const std::string scale = from == DType::Bool ? "" : " * " + literal(37, from);
      cases.add(
          fmt::format("cast_{}_{}", name(from), name(to)),
          elementwise(
              from, to,
              {fmt::format("{}(A[i])", name(to)), fmt::format("{}(A[i]{})", name(to), scale)}, 21),
          0, is_float(from));
    }
  }
  cases.add("bitcast",
            "func f(A: f32[9], B: f16[9], C: bf16[9], out X: i32[9], out Y: u16[9], out Z: i16[9], "
            "out W: f32[9]) {\n  for i in 9 vector {\n    block X(k: space 9 = i) {\n"
            "      X[k] = bitcast(i32, A[k])\n      Y[k] = bitcast(u16, B[k])\n"
            "      Z[k] = bitcast(i16, C[k])\n"
            "      W[k] = bitcast(f32, bitcast(i32, A[k]) & 65535i32)\n    }\n  }\n}\n",
            0, true);
}

void functions(Cases& cases) {
  for (const DType d : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    std::vector<std::string> exprs;
    for (const char* fn : {"abs", "exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh",
                           "asinh", "erf", "sigmoid", "floor", "ceil", "round", "trunc"})
      exprs.push_back(fmt::format("{}(A[i])", fn));
    for (const char* fn : {"log", "sqrt", "rsqrt", "acosh"})
      exprs.push_back(fmt::format("{}(abs(A[i]) + {})", fn, literal(1, d)));
    exprs.push_back(fmt::format("pow(abs(A[i]), B[i])"));
    exprs.push_back(fmt::format("asin(A[i] / {}) + acos(A[i] / {})", literal(4, d), literal(4, d)));
    exprs.push_back(fmt::format("A[i] % {}", literal(2, d)));
    exprs.push_back("trunc_mod(A[i], B[i])");
    const double tolerance = d == DType::F64   ? 1e-13
                             : d == DType::F32 ? 2e-6
                             : d == DType::F16 ? 2e-3
                                               : 1.6e-2;
    cases.add(fmt::format("math_{}", name(d)), elementwise(d, d, exprs, 35), tolerance, true);
  }
  cases.add("special",
            "func f(A: f32[24], out Y: f32[24], out Z: bool[24]) {\n"
            "  for i in 24 vector {\n    block Y(k: space 24 = i) {\n"
            "      Y[k] = max(select(k % 3 == 0, nan, A[k]), 0.0) + min(log(A[k]), 5.0)\n"
            "      Z[k] = isnan(log(A[k])) || isinf(A[k] / (A[k] - A[k]))\n    }\n  }\n}\n",
            1e-6);
}

void reductions(Cases& cases) {
  for (const DType d : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8,
                        DType::I32, DType::I64}) {
    int serial = 0;
    for (const char* combine : {"+=", "max=", "min=", "*="})
      for (const int n : {1, 37}) {
        cases.add(
            fmt::format("reduce_{}_{}", name(d), serial++),
            fmt::format("func f(A: {0}[5,{1}], out S: {0}[5]) {{\n  for S.init.i in 5 {{\n"
                        "    block S.init(i: space 5 = S.init.i) {{ S[i] = {3} }}\n  }}\n"
                        "  for S.i in 5, S.j in {1} {{\n    block S(i: space 5 = S.i, j: reduce "
                        "{1} = S.j) {{ S[i] {2} A[i, j] % {4} }}\n  }}\n}}\n",
                        name(d), n, combine, literal(1, d), literal(2, d)));
      }
  }
}

/// Every way a lane may reach memory, on a vector of 21.
void vector_accesses(Cases& cases) {
  for (const DType d : kAllDTypes) {
    std::string body;
    int k = 0;
    std::string params = fmt::format("X: {0}[96], M: {0}[4,24], I: i32[21]", name(d));
    auto access = [&](const std::string& value, const std::string& target, int size) {
      params += fmt::format(", out Y{}: {}[{}]", k, name(d), size);
      body += fmt::format(
          "  for v{0} in 21 vector {{\n    block Y{0}(i: space 21 = v{0}) {{ "
          "Y{0}[{1}] = {2} }}\n  }}\n",
          k, target, value);
      ++k;
    };
    const std::string zero = d == DType::Bool ? "false" : literal(0, d);
    access("X[i]", "i", 21);
    access("X[i + 3]", "i", 21);
    access("X[2 * i + 1]", "i", 21);
    access("X[3 * i]", "i", 21);
    access("X[95 - i]", "20 - i", 21);
    access("X[i / 4]", "i", 21);
    access("X[i * i % 96]", "i", 21);
    access("X[7]", "i", 21);
    access("X[min(max(i64(I[i]), 0), 95)]", "i", 21);
    access("X[min(max(i64(I[i]), 0), 55) + 2 * i]", "i", 21);
    access("M[min(max(i64(I[i]), 0), 3), i]", "i", 21);
    access("M[min(max(i64(I[i]), 0), 3), 20 - i]", "i", 21);
    access(fmt::format("select(i < 5, {}, X[i - 5])", zero), "i", 21);
    access(fmt::format("select(I[i] < 2i32 && X[i] != X[i + 1], {}, X[i])", zero), "i", 21);
    access(fmt::format("select(5 <= i && i < 9, X[i - 5], {})", zero), "i", 21);
    access(fmt::format("select(i < 9, X[i], select(i < 12, {}, X[i + 1]))", zero), "i", 21);
    access(zero, "i", 21);
    if (d != DType::Bool) {
      access(literal(3, d), "i", 21);
      access(fmt::format("select(i < 5, {}, X[i])", literal(3, d)), "i", 21);
    }
    access("X[i]", "i * 2 % 21", 21);
    cases.add(fmt::format("lanes_{}", name(d)), fmt::format("func f({}) {{\n{}}}\n", params, body));
  }
}

void nests(Cases& cases) {
  for (const auto& [label, text] :
       {std::pair<const char*, std::string_view>{"matmul", ::tilewright::testing::kMatmul},
        {"conv", ::tilewright::testing::kConv},
        {"conv_scheduled", ::tilewright::testing::kConvScheduled},
        {"softmax", ::tilewright::testing::kSoftmax},
        {"lstm", ::tilewright::testing::kLstm}})
    cases.add(label, std::string(text), 2e-6);
  for (const int n : {13, 24, 50})
    for (const char* kind : {"", " unroll", " vector", " parallel"})
      cases.add(fmt::format("split_{}{}", n, kind[0] ? kind + 1 : "serial"),
                fmt::format("func f(A: f32[{0}], out Y: f32[{0}]) {{\n"
                            "  for o in {1}{2}, i in 8 vector {{\n"
                            "    block Y(k: space {0} = 8 * o + i) where 8 * o + i < {0} {{\n"
                            "      Y[k] = A[k] * A[k] + 1.0\n    }}\n  }}\n}}\n",
                            n, (n + 7) / 8, kind));
  cases.add(
      "workspace",
      "func f(A: f32[40,300], out Y: f32[40]) {\n  alloc T: f32[40,300]\n"
      "  for T.i in 40 parallel, T.j in 300 vector {\n"
      "    block T(i: space 40 = T.i, j: space 300 = T.j) { T[i, j] = A[i, j] * 2.0 }\n  }\n"
      "  for o in 10 parallel {\n    alloc U: f32[40,300]\n"
      "    for U.i in 4, U.j in 300 {\n      block U(i: space 40 = 4 * o + U.i, j: space 300 "
      "= U.j) { U[i, j] = T[i, 299 - j] + 1.0 }\n    }\n"
      "    for Y.init.i in 4 {\n      block Y.init(i: space 40 = 4 * o + Y.init.i) { Y[i] = "
      "0.0 }\n    }\n    for Y.i in 4, Y.j in 300 {\n      block Y(i: space 40 = 4 * o + Y.i, "
      "j: reduce 300 = Y.j) { Y[i] += U[i, j] }\n    }\n  }\n}\n");
  cases.add("dynamic",
            "func f(n: int in 0..70, A: f32[n,3], out Y: f32[n,3], out Z: f32[3,n]) {\n"
            "  for o in (n + 7) / 8 parallel, i in 8, c in 3 {\n"
            "    block Y(r: space n = 8 * o + i, c: space 3 = c) where 8 * o + i < n { Y[r, c] = "
            "A[r, c] + 1.0 }\n  }\n"
            "  for d in 3, j in n vector {\n"
            "    block Z(c: space 3 = d, r: space n = j) { Z[c, r] = A[r, c] * 3.0 }\n  }\n}\n");
  cases.add("registers",
            "func f(A: f32[10,6], B: f32[6,29], out Y: f32[10,29]) {\n  for io in 5 {\n"
            "    alloc C: f32[10,29] local\n"
            "    for C.init.i in 2 unroll, C.init.j in 29 vector {\n      block C.init(i: space 10 "
            "= 2 * io + C.init.i, j: space 29 = C.init.j) { C[i, j] = 0.0 }\n    }\n"
            "    for k in 6, ii in 2 unroll, j in 29 vector {\n      block C(i: space 10 = 2 * io "
            "+ ii, j: space 29 = j, k: reduce 6 = k) { C[i, j] += A[i, k] * B[k, j] }\n    }\n"
            "    for Y.i in 2 unroll, Y.j in 29 vector {\n      block Y(i: space 10 = 2 * io + "
            "Y.i, j: space 29 = Y.j) { Y[i, j] = max(C[i, j], 0.0) }\n    }\n  }\n}\n");
  cases.add("per_lane",
            "func f(A: f32[37], B: f32[37], out Y: f32[37], out Z: f32[37]) {\n"
            "  for i in 37 vector {\n    alloc t: f32[37] local\n    alloc u: f32[2] local\n"
            "    block t(k: space 37 = i) where i < 30 { t[k] = A[k] * 2.0 }\n"
            "    for j in 2 {\n      block u(l: space 2 = j, k: space 37 = i) { u[l] = "
            "B[k] + f32(l) }\n    }\n"
            "    block Z(k: space 37 = i) { Z[k] = u[1] - u[0] }\n"
            "    block Y(k: space 37 = i) { Y[k] = select(k < 30, t[k], u[0]) }\n  }\n}\n");
  cases.add("nested_functions",
            "func f(A: f32[45], out Y: f32[45], out Z: f16[45]) {\n  for i in 45 vector {\n"
            "    block Y(k: space 45 = i) {\n      Y[k] = A[k] * tanh(log(1.0 + exp(A[k])))\n"
            "      Z[k] = sigmoid(f16(select(k < 40, erf(A[k + 5 - k / 40 * 5]), exp(A[k]))))\n"
            "    }\n  }\n}\n",
            2e-3, true);
  cases.add("lazy",
            "func f(A: i32[8], I: i32[8], out Y: i32[8], out Z: bool[8]) {\n  for i in 8 {\n"
            "    block Y(k: space 8 = i) {\n      Y[k] = select(0i32 <= I[k], A[i64(I[k])], 0i32)\n"
            "      Z[k] = 0i32 <= I[k] && A[i64(I[k])] < 3i32 || k == 2\n    }\n  }\n}\n");
}

}  // namespace

std::vector<Case> random_cases(uint64_t first, uint64_t last) {
  Cases cases;
  for (uint64_t seed = first; seed <= last; ++seed) {
    Rng rng(seed);
    Func func = ::tilewright::testing::random_func(rng);
    func.body = rewrite(func.body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      if (loop == nullptr || loop->kind != ForKind::Serial || !rng.chance(0.3)) return s;
      For copy = *loop;
      copy.kind = ForKind::Unroll;
      return make(std::move(copy));
    });
    cases.add(Case{fmt::format("random_{}", seed), std::move(func), 2e-6, false});
  }
  return cases.take();
}

std::vector<Case> standard_cases() {
  Cases cases;
  arithmetic(cases);
  casts(cases);
  functions(cases);
  reductions(cases);
  vector_accesses(cases);
  nests(cases);
  std::vector<Case> out = cases.take();
  for (Case& test : random_cases(1, 60)) out.push_back(std::move(test));
  return out;
}

}  // namespace tilewright::codegen::testing
