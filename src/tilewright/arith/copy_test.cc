#include "tilewright/arith/copy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tilewright/arith/test_util.h"
#include "tilewright/ir/text.h"

namespace tilewright::arith {
namespace {

using testing::evaluate;
using testing::Ranged;
using testing::Values;

// What a copy does: target offset -> source offset, or kFill.
using Effect = std::map<int64_t, int64_t>;
constexpr int64_t kFill = -1000000;

int64_t flat(const Buffer& buffer, const std::vector<Expr>& indices, const Values& values) {
  int64_t out = 0;
  for (size_t k = 0; k < indices.size(); ++k)
    out = out * evaluate(buffer.shape()[k], values).value() + evaluate(indices[k], values).value();
  return out;
}

/// Runs the nest itself.
void run_nest(const Stmt& s, Values& values, Effect& out) {
  if (const auto* loop = s.as<For>()) {
    const int64_t n = evaluate(loop->extent, values).value();
    for (int64_t i = 0; i < n; ++i) {
      values[loop->var] = i;
      run_nest(loop->body, values, out);
    }
    return;
  }
  const auto& block = *s.as<Block>();
  if (block.guard && evaluate(block.guard, values) == 0) return;
  for (const Iter& iter : block.iters) values[iter.var] = evaluate(iter.binding, values).value();
  const auto& store = *block.body.as<Store>();
  Expr value = store.value;
  while (const auto* sel = value.as<Select>())
    value = evaluate(sel->condition, values) == 1 ? sel->on_true : sel->on_false;
  const auto* l = value.as<Load>();
  const int64_t to = flat(store.buffer, store.indices, values);
  EXPECT_FALSE(out.contains(to)) << "the test program writes twice";
  out[to] = l != nullptr ? flat(l->buffer, l->indices, values) : kFill;
}

/// Runs what was recognised.
Effect run_copy(const StridedCopy& copy, const Values& values) {
  Effect out;
  auto at = [&](const Expr& e) { return evaluate(e, values).value(); };
  auto go = [&](auto&& self, size_t k, int64_t to, int64_t from, bool pad) -> void {
    if (k == copy.axes.size()) {
      out[to] = pad ? kFill : from;
      return;
    }
    const CopyAxis& a = copy.axes[k];
    const int64_t n = at(a.size), before = at(a.pad_before), after = at(a.pad_after);
    EXPECT_TRUE(n <= 0 || (before >= 0 && after >= 0 && before + after <= n))
        << before << " + " << after << " of " << n;
    for (int64_t i = 0; i < n; ++i)
      self(self, k + 1, to + i * at(a.target_stride), from + i * at(a.source_stride),
           pad || i < before || i >= n - after);
  };
  go(go, 0, at(copy.target_base), at(copy.source_base), false);
  return out;
}

std::string describe(const StridedCopy& copy) {
  std::string out = print(copy.target_base) + " <- " + print(copy.source_base);
  for (const CopyAxis& a : copy.axes)
    out += " | " + print(a.pad_before) + "+" + print(a.size) + "-" + print(a.pad_after) + " x" +
           print(a.target_stride) + " <- x" + print(a.source_stride);
  return out + (copy.fill ? " fill " + print(copy.fill) : "");
}

/// The innermost nest of a parsed function, its outer loops as variables.
struct Program {
  Func func;
  Stmt nest;
  std::vector<Ranged> outer;
};
Program parse_nest(const std::string& text, int outer_loops) {
  auto f = parse_func(text);
  EXPECT_TRUE(f.has_value()) << to_string(f.error());
  Program out{*f, f->body, {}};
  for (const Scalar& s : f->scalars) out.outer.push_back({s.var, s.lo, s.hi});
  for (int i = 0; i < outer_loops; ++i) {
    const auto& loop = *out.nest.as<For>();
    out.outer.push_back({loop.var, 0, as_int(loop.extent).value() - 1});
    out.nest = loop.body;
  }
  return out;
}

std::string check(const Program& p, bool merge = false) {
  const Bounds bounds = testing::bounds_of(p.outer);
  auto copy = strided_copy(p.nest, bounds);
  if (!copy) return "refused: " + copy.error().why;
  if (merge) copy = coalesce(*copy, bounds);
  testing::for_all(p.outer, [&](const Values& values) {
    Effect want;
    Values scratch = values;
    run_nest(p.nest, scratch, want);
    EXPECT_EQ(run_copy(*copy, values), want) << describe(*copy);
    return !::testing::Test::HasFailure();
  });
  return describe(*copy);
}

TEST(StridedCopy, RowsThatTouchAreOneRun) {
  const auto p = parse_nest(R"(
func f(A: f32[8, 16], out B: f32[8, 16]) {
  for o in 2, i in 4, j in 16 {
    block B(x: space 8 = o * 4 + i, y: space 16 = j) { B[x, y] = A[x, y] }
  }
})",
                            1);
  EXPECT_EQ(check(p), "o * 64 <- o * 64 | 0+4-0 x16 <- x16 | 0+16-0 x1 <- x1");
  EXPECT_EQ(check(p, true), "o * 64 <- o * 64 | 0+64-0 x1 <- x1");
}

TEST(StridedCopy, PaddedTile) {
  const auto p = parse_nest(R"(
func f(X: i8[4, 4, 4], out P: i8[6, 6, 4]) {
  for t in 3, h in 2, w in 6, c in 4 {
    block P(x: space 6 = t * 2 + h, y: space 6 = w, z: space 4 = c) {
      P[x, y, z] = select(1 <= x && x < 5 && 1 <= y && y < 5, X[x - 1, y - 1, z], 0i8)
    }
  }
})",
                            1);
  EXPECT_NE(check(p).find("1+6-1 x4 <- x4"), std::string::npos) << check(p);
  EXPECT_NE(check(p, true).find("fill 0i8"), std::string::npos) << check(p, true);
}

TEST(StridedCopy, SplitLoopsAreOneAxis) {
  const auto p = parse_nest(R"(
func f(X: f32[14], out P: f32[16]) {
  for o in 4, i in 4 {
    block P(x: space 16 = o * 4 + i) { P[x] = select(x >= 1 && x < 15, X[x - 1], 0.0) }
  }
})",
                            0);
  EXPECT_EQ(check(p), "0 <- -1 | 1+16-1 x1 <- x1 fill 0.0");
}

TEST(StridedCopy, GuardClampsTheSize) {
  const auto p = parse_nest(R"(
func f(n: int in 1..21, X: f32[n], out P: f32[n]) {
  for o in 6, i in 4 {
    block P(x: space n = o * 4 + i) where o * 4 + i < n { P[x] = X[n - 1 - x] }
  }
})",
                            1);
  EXPECT_NE(check(p).find("x1 <- x-1"), std::string::npos) << check(p);
}

TEST(StridedCopy, LayoutChange) {
  const auto p = parse_nest(R"(
func f(W: f32[32, 6], out P: f32[4, 6, 8]) {
  for ko in 4, ki in 8, c in 6 {
    block P(k: space 32 = ko * 8 + ki, y: space 6 = c) { P[k / 8, y, k % 8] = W[k, y] }
  }
})",
                            0);
  EXPECT_EQ(check(p), "0 <- 0 | 0+4-0 x48 <- x48 | 0+8-0 x1 <- x6 | 0+6-0 x8 <- x1");
}

TEST(StridedCopy, OuterConditionTurnsTheTileOff) {
  const auto p = parse_nest(R"(
func f(X: f32[4, 4], out P: f32[6, 4]) {
  for t in 6, c in 4 {
    block P(x: space 6 = t, y: space 4 = c) { P[x, y] = select(x >= 1 && x < 5, X[x - 1, y], 2.5) }
  }
})",
                            1);
  EXPECT_NE(check(p).find("fill 2.5"), std::string::npos) << check(p);
}

TEST(StridedCopy, Refusals) {
  auto why = [](const std::string& body) {
    return check(parse_nest("func f(X: f32[64], I: i64[8], out P: f32[64]) {\n" + body + "\n}", 0));
  };
  EXPECT_EQ(why("for i in 8 { block P(x: space 64 = i) { P[x] = X[x] + 1.0 } }"),
            "refused: it computes something");
  EXPECT_EQ(why("for i in 8 { block P(x: space 64 = i) { P[x] = X[x * x] } }"),
            "refused: an index is not a sum of loop variables");
  EXPECT_EQ(why("for i in 8 { block P(x: space 64 = i) { P[x] = X[I[x]] } }"),
            "refused: an index is not a sum of loop variables");
  EXPECT_EQ(why("for i in 8 { block P(x: space 64 = i) { P[x] += X[x] } }"),
            "refused: it accumulates");
  EXPECT_EQ(why("for i in 8, j in 8 { block P(x: space 8 = i, y: space 8 = j) { P[x * 8 + y] = "
                "select(x < y, X[x + y], 0.0) } }"),
            "refused: a condition depends on several loops");
  EXPECT_EQ(why("for i in 8 { block P(x: space 64 = i) { P[x] = select(x < 4, X[x], X[0]) } }"),
            "refused: its fill is not a constant");
  EXPECT_EQ(why("for i in 8 { block P(x: space 64 = i) { P[x] = select(X[x] < 0.0, X[x], 0.0) } }"),
            "refused: a condition is not a bound on one loop");
}

TEST(StridedCopy, RandomPaddedTiles) {
  Rng rng(17);
  int recognised = 0;
  for (int n = 0; n < 400 && !::testing::Test::HasFailure(); ++n) {
    const int64_t tile = rng.between(1, 4), tiles = rng.between(1, 4), w = rng.between(1, 6);
    const int64_t pad = rng.below(3), left = rng.below(3), stride = rng.between(1, 2);
    const int64_t rows = rng.between(1, 8), cols = rng.between(1, 6);
    const bool halves = tile == 4 && rng.chance(0.5);
    const std::string tail = fmt::format("t * {} + {}", tile, halves ? "ho * 2 + hi" : "h");
    const std::string text = fmt::format(
        R"(
func f(X: f32[{rows}, {cols}], out P: f32[{tall}, {w}]) {{
  for t in {tiles}, {h}, w in {w} {{
    block P(x: space {tall} = {index}, y: space {w} = w){guard} {{
      P[x, y] = select({pad} <= x && x * {stride} < {bottom} && y >= {left} && y < {right}, X[x * {stride} - {off}, y - {left}], 0.5)
    }}
  }}
}})",
        fmt::arg("rows", rows), fmt::arg("cols", cols), fmt::arg("tall", tile * tiles),
        fmt::arg("w", w), fmt::arg("tiles", tiles),
        fmt::arg("h", halves ? "ho in 2, hi in 2" : fmt::format("h in {}", tile)),
        fmt::arg("index", tail),
        fmt::arg("guard", rng.chance(0.4)
                              ? fmt::format(" where {} < {}", tail, rng.between(1, tile * tiles))
                              : ""),
        fmt::arg("pad", pad), fmt::arg("stride", stride), fmt::arg("bottom", rows + pad * stride),
        fmt::arg("left", left), fmt::arg("right", left + cols), fmt::arg("off", pad * stride));
    const auto p = parse_nest(text, 1);
    if (::testing::Test::HasFailure()) break;
    const std::string out = check(p, rng.chance(0.5));
    const bool refused = out.rfind("refused", 0) == 0;
    recognised += !refused;
    EXPECT_TRUE(!refused || out == "refused: it only fills") << out << text;
  }
  EXPECT_GT(recognised, 250);
}

}  // namespace
}  // namespace tilewright::arith
