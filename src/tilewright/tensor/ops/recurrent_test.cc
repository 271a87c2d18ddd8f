// LSTM, GRU and RNN against step-by-step loops in double precision, one batch element at a time.
#include <gmock/gmock.h>

#include <algorithm>

#include "tilewright/tensor/op_testing.h"
#include "tilewright/tensor/ops/movement_testing.h"

namespace tilewright::tensor::testing {
namespace {

using ::testing::HasSubstr;
using testing::sigmoid;
using Row = std::vector<double>;
using Function = std::function<double(double)>;

/// Everything a layer is given; empty arrays are absent.
struct LayerSpec {
  int64_t steps = 3, batch = 2, input = 3, hidden = 2;
  std::string direction = "forward";
  int64_t layout = 0;
  bool bias = false, lens = false, h0 = false, c0 = false, peep = false;
  double clip = 0;
  bool input_forget = false, linear_before_reset = false;
  std::vector<std::string> activations;
  std::vector<double> alpha, beta;
  std::vector<Function> functions;  ///< what the names mean
};

struct Layer {
  LayerSpec g;
  int64_t gates, directions;
  Array x, w, r, b, lens, h0, c0, p;

  Layer(LayerSpec given, int64_t gate_count)
      : g(std::move(given)), gates(gate_count), directions(g.direction == "bidirectional" ? 2 : 1) {
    const int64_t rows = gates * g.hidden;
    const Shape state =
        g.layout ? Shape{g.batch, directions, g.hidden} : Shape{directions, g.batch, g.hidden};
    x = random(g.layout ? Shape{g.batch, g.steps, g.input} : Shape{g.steps, g.batch, g.input}, 1);
    w = random({directions, rows, g.input}, 2);
    r = random({directions, rows, g.hidden}, 3);
    b = random({directions, 2 * rows}, 4);
    h0 = random(state, 5);
    c0 = random(state, 6);
    p = random({directions, 3 * g.hidden}, 7);
    lens = Array(DType::I32, {g.batch});
    for (int64_t i = 0; i < g.batch; ++i) lens.set_int(i, i % g.steps + 1);
  }
  double input(int64_t t, int64_t n, int64_t i) const {
    return g.layout ? at(x, {n, t, i}) : at(x, {t, n, i});
  }
  double state(const Array& s, bool given, int64_t d, int64_t n, int64_t j) const {
    return !given ? 0 : g.layout ? at(s, {n, d, j}) : at(s, {d, n, j});
  }
  double bias(int64_t d, int64_t row) const { return g.bias ? at(b, {d, row}) : 0; }
  /// Row `row` of W x(t) with the input's bias.
  double project(int64_t d, int64_t t, int64_t n, int64_t row) const {
    double sum = bias(d, row);
    for (int64_t i = 0; i < g.input; ++i) sum += at(w, {d, row, i}) * input(t, n, i);
    return sum;
  }
  /// Row `row` of R h, without bias.
  double recur(int64_t d, const Row& h, int64_t row) const {
    double sum = 0;
    for (int64_t k = 0; k < g.hidden; ++k) sum += at(r, {d, row, k}) * h[static_cast<size_t>(k)];
    return sum;
  }
  double state_bias(int64_t d, int64_t row) const { return bias(d, gates * g.hidden + row); }
  double clipped(double v) const { return g.clip > 0 ? std::clamp(v, -g.clip, g.clip) : v; }
  double activate(int64_t d, int64_t which, double v) const {
    const auto per = static_cast<int64_t>(g.functions.size()) / directions;
    return g.functions[static_cast<size_t>(d * per + which)](v);
  }

  void step(const std::string& op, int64_t d, int64_t t, int64_t n, Row& h, Row& c) const {
    const int64_t hid = g.hidden;
    const Row before = h;
    auto sum = [&](int64_t gate, int64_t j) {
      const int64_t row = gate * hid + j;
      return project(d, t, n, row) + recur(d, before, row) + state_bias(d, row);
    };
    auto peephole = [&](int64_t part, int64_t j, double cell) {
      return g.peep ? at(p, {d, part * hid + j}) * cell : 0;
    };
    Row reset(before.size());
    if (op == "GRU")
      for (int64_t j = 0; j < hid; ++j)
        reset[static_cast<size_t>(j)] = activate(d, 0, clipped(sum(1, j)));
    Row gated = before;
    for (size_t j = 0; j < gated.size(); ++j) gated[j] *= reset[j];
    for (int64_t j = 0; j < hid; ++j) {
      const auto k = static_cast<size_t>(j);
      if (op == "RNN") {
        h[k] = activate(d, 0, clipped(sum(0, j)));
      } else if (op == "LSTM") {
        const double i = activate(d, 0, clipped(sum(0, j) + peephole(0, j, c[k])));
        const double f =
            g.input_forget ? 1 - i : activate(d, 0, clipped(sum(2, j) + peephole(2, j, c[k])));
        c[k] = f * c[k] + i * activate(d, 1, clipped(sum(3, j)));
        const double o = activate(d, 0, clipped(sum(1, j) + peephole(1, j, c[k])));
        h[k] = o * activate(d, 2, c[k]);
      } else {
        const int64_t row = 2 * hid + j;
        const double z = activate(d, 0, clipped(sum(0, j)));
        const double n_in =
            g.linear_before_reset
                ? project(d, t, n, row) + reset[k] * (recur(d, before, row) + state_bias(d, row))
                : project(d, t, n, row) + recur(d, gated, row) + state_bias(d, row);
        h[k] = (1 - z) * activate(d, 1, clipped(n_in)) + z * before[k];
      }
    }
  }
};

void check(const std::string& op, const LayerSpec& given, double tolerance = 2e-5) {
  const Layer l(given, op == "LSTM" ? 4 : op == "GRU" ? 3 : 1);
  const LayerSpec& g = l.g;
  std::map<std::string, AttrValue> attrs{{"direction", g.direction},
                                         {"layout", g.layout},
                                         {"hidden_size", g.hidden},
                                         {"input_forget", int64_t{g.input_forget}},
                                         {"linear_before_reset", int64_t{g.linear_before_reset}}};
  if (!g.activations.empty()) attrs["activations"] = g.activations;
  if (!g.alpha.empty()) attrs["activation_alpha"] = g.alpha;
  if (!g.beta.empty()) attrs["activation_beta"] = g.beta;
  if (g.clip > 0) attrs["clip"] = g.clip;
  auto optional = [](bool present, const Array& a) { return present ? Given(a) : absent(); };
  std::vector<Given> in{
      l.x, l.w, l.r, optional(g.bias, l.b), optional(g.lens, l.lens), optional(g.h0, l.h0)};
  if (op == "LSTM") in.push_back(optional(g.c0, l.c0)), in.push_back(optional(g.peep, l.p));
  const auto y = run(op, attrs, in, op == "LSTM" ? 3 : 2);
  ASSERT_FALSE(y.empty());
  auto near = [&](const Array& got, const Shape& index, double want) {
    ASSERT_NEAR(at(got, index), want, tolerance) << to_string(index);
  };
  for (int64_t d = 0; d < l.directions; ++d)
    for (int64_t n = 0; n < g.batch; ++n) {
      Row h, c;
      for (int64_t j = 0; j < g.hidden; ++j) {
        h.push_back(l.state(l.h0, g.h0, d, n, j));
        c.push_back(l.state(l.c0, g.c0, d, n, j));
      }
      const int64_t length = g.lens ? l.lens.get_int(n) : g.steps;
      const bool backward = g.direction == "reverse" || d == 1;
      auto index = [&](int64_t t, int64_t j) {
        return g.layout ? Shape{n, t, d, j} : Shape{t, d, n, j};
      };
      for (int64_t s = 0; s < length; ++s) {
        const int64_t t = backward ? length - 1 - s : s;
        l.step(op, d, t, n, h, c);
        for (int64_t j = 0; j < g.hidden; ++j) near(y[0], index(t, j), h[static_cast<size_t>(j)]);
      }
      for (int64_t t = length; t < g.steps; ++t)
        for (int64_t j = 0; j < g.hidden; ++j) near(y[0], index(t, j), 0);
      for (int64_t j = 0; j < g.hidden; ++j) {
        const Shape last = g.layout ? Shape{n, d, j} : Shape{d, n, j};
        near(y[1], last, h[static_cast<size_t>(j)]);
        if (op == "LSTM") near(y[2], last, c[static_cast<size_t>(j)]);
      }
    }
}

std::vector<Function> defaults(const std::string& op, int64_t directions) {
  auto tanh_of = [](double x) { return std::tanh(x); };
  std::vector<Function> one{sigmoid, tanh_of, tanh_of};
  if (op == "GRU") one.pop_back();
  if (op == "RNN") one = {tanh_of};
  std::vector<Function> all;
  for (int64_t d = 0; d < directions; ++d) all.insert(all.end(), one.begin(), one.end());
  return all;
}

TEST(Recurrent, DirectionsLengthsLayouts) {
  for (const std::string op : {"LSTM", "GRU", "RNN"})
    for (const std::string direction : {"forward", "reverse", "bidirectional"})
      for (const int64_t layout : {0, 1})
        for (const bool all : {false, true}) {
          SCOPED_TRACE(op + " " + direction);
          LayerSpec g;
          g.direction = direction;
          g.layout = layout;
          g.bias = g.lens = g.h0 = g.c0 = g.peep = all;
          g.functions = defaults(op, direction == "bidirectional" ? 2 : 1);
          check(op, g);
        }
}

TEST(Recurrent, Variants) {
  LayerSpec g;
  g.bias = g.h0 = g.c0 = g.peep = true;
  g.steps = 1;
  g.functions = defaults("GRU", 1);
  g.linear_before_reset = true;
  check("GRU", g);
  g.clip = 0.5;
  check("GRU", g);
  g.functions = defaults("LSTM", 1);
  check("LSTM", g);
  g.input_forget = true;
  check("LSTM", g);
}

TEST(Recurrent, Activations) {
  struct Case {
    std::string name;
    std::vector<double> alpha, beta;
    Function f;
  };
  const Case cases[] = {
      {"Relu", {}, {}, [](double x) { return std::max(x, 0.0); }},
      {"tanh", {}, {}, [](double x) { return std::tanh(x); }},
      {"Sigmoid", {}, {}, sigmoid},
      {"Affine", {0.5}, {0.25}, [](double x) { return 0.5 * x + 0.25; }},
      {"LeakyRelu", {}, {}, [](double x) { return x >= 0 ? x : 0.01 * x; }},
      {"ThresholdedRelu", {}, {}, [](double x) { return x >= 1 ? x : 0; }},
      {"ScaledTanh", {2}, {0.5}, [](double x) { return 2 * std::tanh(0.5 * x); }},
      {"HardSigmoid", {}, {}, [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
      {"Elu", {0.5}, {}, [](double x) { return x >= 0 ? x : 0.5 * std::expm1(x); }},
      {"Softsign", {}, {}, [](double x) { return x / (1 + std::abs(x)); }},
      {"Softplus", {}, {}, [](double x) { return std::log1p(std::exp(x)); }}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    LayerSpec g;
    g.steps = 2;
    g.activations = {c.name};
    g.alpha = c.alpha;
    g.beta = c.beta;
    g.functions = {c.f};
    check("RNN", g, 1e-3);
  }
  // Parameters go, in order, to the functions that take them.
  LayerSpec g;
  g.activations = {"Relu", "Affine", "Elu"};
  g.alpha = {0.5, 0.25};
  g.beta = {0.125};
  g.functions = {[](double x) { return std::max(x, 0.0); },
                 [](double x) { return 0.5 * x + 0.125; },
                 [](double x) { return x >= 0 ? x : 0.25 * std::expm1(x); }};
  check("LSTM", g, 1e-3);
}

TEST(Recurrent, ProjectionOfAllStepsStandsAlone) {
  const Layer l({}, 4);
  const auto func = op_func(make_call("LSTM", {}, {l.x, l.w, l.r}, 1));
  ASSERT_TRUE(func);
  // The product X * W is a nest of its own, before the loop over steps.
  const std::string text = print(*func);
  EXPECT_LT(text.find("block xw.f("), text.find("h.f.step"));
  EXPECT_THAT(text, HasSubstr("scan 3"));
}

TEST(Recurrent, BadInput) {
  const Layer l({}, 4);
  auto error = [&](std::map<std::string, AttrValue> attrs, Array w) {
    return error_of("LSTM", std::move(attrs), {l.x, std::move(w), l.r});
  };
  EXPECT_THAT(error({}, iota({1, 8, 4})), HasSubstr("[1, 8, 4], expected [1, 8, 3]"));
  EXPECT_THAT(error({{"direction", std::string("up")}}, l.w), HasSubstr("'up'"));
  EXPECT_THAT(error({{"direction", std::string("bidirectional")}}, l.w), HasSubstr("[2, 8, 3]"));
  EXPECT_THAT(error({{"hidden_size", int64_t{5}}}, l.w), HasSubstr("hidden_size is 5"));
  EXPECT_THAT(error({{"activations", std::vector<std::string>{"Tanh"}}}, l.w),
              HasSubstr("1 given"));
  EXPECT_THAT(error({{"activations", std::vector<std::string>{"Tanh", "Gelu", "Tanh"}}}, l.w),
              HasSubstr("Gelu"));
  EXPECT_THAT(error_of("LSTM", {}, {iota({3, 2}), l.w, l.r}), HasSubstr("rank 3"));
}

}  // namespace
}  // namespace tilewright::tensor::testing
