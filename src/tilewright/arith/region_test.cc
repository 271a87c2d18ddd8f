#include "tilewright/arith/region.h"

#include <gtest/gtest.h>

#include <set>

#include "tilewright/arith/test_util.h"
#include "tilewright/ir/text.h"

namespace tilewright::arith {
namespace {

using testing::evaluate;
using testing::Ranged;
using testing::Values;
using Point = std::vector<int64_t>;

std::string show(const Box& box) {
  std::string out;
  for (const auto& [begin, size] : box.dims)
    out += (out.empty() ? "" : ", ") + print(begin) + ":+" + print(size);
  return out + (box.exact ? "" : " hull");
}

Point values_of(const std::vector<Expr>& exprs, const Values& values) {
  Point out;
  for (const Expr& e : exprs) out.push_back(evaluate(e, values).value());
  return out;
}

/// Every touched element of the buffer is in the box; an exact box holds nothing else.
void check_touched(const std::vector<Expr>& indices, const std::vector<Expr>& shape,
                   const std::vector<Ranged>& outer, const std::vector<Ranged>& inner,
                   const Expr& fact = {}) {
  std::vector<Ranged> all = outer;
  all.insert(all.end(), inner.begin(), inner.end());
  Bounds bounds = testing::bounds_of(all);
  if (fact) bounds.assume(fact);
  std::vector<Var> vars;
  for (const Ranged& r : inner) vars.push_back(r.var);
  const Box box = touched(indices, shape, vars, bounds);
  ASSERT_EQ(box.dims.size(), indices.size());
  testing::for_all(outer, [&](const Values& at) {
    std::set<Point> seen;
    testing::for_all(inner, [&](const Values& in) {
      Values values = at;
      values.insert(in.begin(), in.end());
      if (!fact || evaluate(fact, values) == 1) seen.insert(values_of(indices, values));
      return true;
    });
    const Point n = values_of(shape, at);
    const size_t before = seen.size();
    std::erase_if(seen, [&](const Point& p) {
      for (size_t k = 0; k < p.size(); ++k)
        if (p[k] < 0 || p[k] >= n[k]) return true;
      return false;
    });
    Point begin, size;
    int64_t volume = 1;
    for (const auto& dim : box.dims) {
      begin.push_back(evaluate(dim.begin, at).value());
      size.push_back(evaluate(dim.size, at).value());
      volume *= size.back();
    }
    for (const Point& p : seen)
      for (size_t k = 0; k < p.size(); ++k)
        EXPECT_TRUE(begin[k] <= p[k] && p[k] < begin[k] + size[k])
            << print(indices[k]) << " touches " << p[k] << ", box " << show(box);
    // Accesses outside the buffer only occur where a guard that is not shown keeps them out.
    // The part of an exact box that lies inside the buffer is touched, all of it.
    if (box.exact && !seen.empty() && seen.size() == before) {
      volume = 1;
      for (size_t k = 0; k < n.size(); ++k)
        volume *= std::min(begin[k] + size[k], n[k]) - std::max<int64_t>(begin[k], 0);
      EXPECT_EQ(volume, static_cast<int64_t>(seen.size()))
          << print(indices[0]) << ", box " << show(box);
    }
    return !::testing::Test::HasFailure();
  });
}

class Regions : public ::testing::Test {
 protected:
  Expr x(const char* name, int64_t extent) {
    const Var v(name);
    bounds_.bind(v, int_imm(extent));
    vars_.push_back(v);
    return ref(v);
  }
  Expr outer(const char* name, int64_t extent) {
    const Var v(name);
    bounds_.bind(v, int_imm(extent));
    return ref(v);
  }
  std::string box(const std::vector<Expr>& indices, std::vector<Expr> shape = {}) {
    while (shape.size() < indices.size()) shape.push_back(int_imm(1000));
    return show(touched(indices, shape, vars_, bounds_));
  }

  Bounds bounds_;
  std::vector<Var> vars_;
};

TEST_F(Regions, ATailEndsWithTheAxis) {
  const Expr tile = x("t", 5), i = x("i", 4), o = outer("o", 3);
  EXPECT_EQ(box({tile * 4 + i}, {int_imm(18)}), "0:+18");
  EXPECT_EQ(box({tile * 4 + i - 1}, {int_imm(18)}), "0:+18");
  EXPECT_EQ(box({tile * 5 + i}, {int_imm(18)}), "0:+18 hull");
  EXPECT_EQ(box({o + tile * 4 + i}, {int_imm(18)}), "0:+18 hull");
}

TEST_F(Regions, StencilOfATile) {
  const Expr o = outer("o", 4), h = x("h", 14), r = x("r", 3);
  EXPECT_EQ(box({o * 14 + h + r}), "o * 14:+16");
  EXPECT_EQ(box({(o * 14 + h) * 2 + r}), "o * 28:+29");
  EXPECT_EQ(box({(o * 14 + h) * 4 + r}), "o * 56:+55 hull");
}

TEST_F(Regions, SplitLoopsAreExact) {
  const Expr a = x("a", 5), b = x("b", 4), c = outer("c", 8);
  EXPECT_EQ(box({a * 4 + b}), "0:+20");
  EXPECT_EQ(box({a * 4 + b, c}), "0:+20, c:+1");
  EXPECT_EQ(box({b * 5 + a}), "0:+20");
  EXPECT_EQ(box({a * 4 + b, b}), "0:+20, 0:+4 hull");
}

TEST_F(Regions, CombIsNotExact) {
  const Expr i = outer("i", 4), o = x("o", 5);
  EXPECT_EQ(box({o * 4 + i}), "i:+17 hull");
}

TEST_F(Regions, QuotientsAndRings) {
  const Expr o = outer("o", 4), h = x("h", 14);
  EXPECT_EQ(box({(o * 14 + h) / 2}), "o * 7:+7");
  EXPECT_EQ(box({(o * 14 + h) % 4}), "0:+4");
  EXPECT_EQ(box({(o * 14 + h) / 16, (h + o) % 16}), "o * 7 / 8:+2, 0:+16 hull");
}

TEST_F(Regions, SymbolicExtents) {
  const Var n("n"), i("i");
  bounds_.bind_range(n, int_imm(1), int_imm(64));
  bounds_.bind(i, ref(n));
  vars_.push_back(i);
  const Expr j = x("j", 4);
  EXPECT_EQ(box({ref(i) * 4 + j}, {ref(n) * 4}), "0:+n * 4");
  EXPECT_EQ(box({ref(i) + j}, {ref(n) + 3}), "0:+n + 3");
}

TEST_F(Regions, ClipsConstantHulls) {
  const Expr h = x("h", 10);
  EXPECT_EQ(box({h - 1}, {int_imm(8)}), "0:+8");
}

TEST_F(Regions, LoadedIndexTakesTheWholeAxis) {
  const Expr i = x("i", 4);
  const Buffer table("T", DType::I64, {int_imm(4)});
  EXPECT_EQ(box({load(table, {i}), i}, {int_imm(99), int_imm(4)}), "0:+99, 0:+4 hull");
}

TEST_F(Regions, GuardedTouchesAreAHull) {
  const Expr o = outer("o", 4), i = x("i", 16);
  bounds_.assume(o * 16 + i < 55);
  EXPECT_EQ(box({o * 16 + i}, {int_imm(60)}), "o * 16:+16 hull");
  // The condition of a ragged tail takes away only what the axis does not have.
  EXPECT_EQ(box({o * 16 + i}, {int_imm(55)}), "o * 16:+16");
}

TEST_F(Regions, ClampedEnds) {
  const Expr o = outer("o", 4), i = x("i", 16);
  EXPECT_EQ(box({min(o * 16 + i, int_imm(54))}, {int_imm(55)}), "o * 16:+16 hull");
}

TEST(TouchedSlow, RandomAffine) {
  Rng rng(3);
  for (int n = 0; n < 500 && !::testing::Test::HasFailure(); ++n) {
    std::vector<Ranged> outer = {{Var("a"), 0, rng.below(4)}, {Var("b"), -2, rng.below(3)}};
    std::vector<Ranged> inner = {{Var("x"), 0, rng.below(5)},
                                 {Var("y"), 0, rng.below(4)},
                                 {Var("z"), rng.between(-1, 0), rng.below(4)}};
    auto coefficient = [&] { return rng.chance(0.4) ? 0 : rng.between(-4, 8); };
    std::vector<Expr> indices, shape;
    for (int k = 0; k < 2; ++k) {
      Expr e = int_imm(rng.between(-2, 8));
      for (const auto& r : outer) e = e + ref(r.var) * coefficient();
      for (const auto& r : inner) e = e + ref(r.var) * coefficient();
      if (rng.chance(0.2)) e = e / rng.between(2, 5);
      if (rng.chance(0.2)) e = e % rng.between(2, 9);
      if (rng.chance(0.1)) e = min(e, ref(outer[0].var) + 3);
      if (rng.chance(0.1)) e = max(e, int_imm(0));
      indices.push_back(e);
      // Wide enough for every element, except now and then.
      shape.push_back(int_imm(rng.chance(0.2) ? 6 : 1000));
    }
    check_touched(indices, shape, outer, inner);
  }
}

TEST(Touched, RandomIntegers) {
  Rng rng(4);
  for (int n = 0; n < 800 && !::testing::Test::HasFailure(); ++n) {
    std::vector<Ranged> outer = {{Var("a"), 0, rng.below(5)}};
    std::vector<Ranged> inner = {{Var("x"), 0, rng.below(7)}, {Var("y"), 1, 1 + rng.below(4)}};
    std::vector<Ranged> all = {outer[0], inner[0], inner[1]};
    const Expr e = testing::random_int(rng, all, DType::I64, 3);
    bool defined = true;
    testing::for_all(all, [&](const Values& v) { return defined = evaluate(e, v).has_value(); });
    if (!defined) continue;
    const Expr fact = rng.chance(0.3) ? testing::random_bool(rng, all, DType::I64, 2) : Expr();
    check_touched({e}, {int_imm(rng.chance(0.5) ? 20 : 100000)}, outer, inner, fact);
  }
}

Box random_box(Rng& rng, const std::vector<Ranged>& vars) {
  Box box;
  for (int k = 0; k < 2; ++k) {
    Expr begin = int_imm(rng.below(6));
    if (rng.chance(0.5))
      begin = ref(vars[static_cast<size_t>(rng.below(2))].var) * rng.between(1, 3) + begin;
    if (rng.chance(0.2)) begin = begin % 4;
    box.dims.push_back({begin, int_imm(rng.between(1, 4))});
  }
  return box;
}

std::set<Point> elements(const Box& box, const Values& at) {
  std::set<Point> out;
  const int64_t a = *evaluate(box.dims[0].begin, at), n = *evaluate(box.dims[0].size, at);
  const int64_t b = *evaluate(box.dims[1].begin, at), m = *evaluate(box.dims[1].size, at);
  for (int64_t i = a; i < a + n; ++i)
    for (int64_t j = b; j < b + m; ++j) out.insert({i, j});
  return out;
}

TEST(BoxesSlow, AgreeWithSetsOfElements) {
  Rng rng(9);
  int contained = 0, apart = 0, exact = 0;
  for (int n = 0; n < 1500 && !::testing::Test::HasFailure(); ++n) {
    const std::vector<Ranged> vars = {{Var("p"), 0, 3}, {Var("q"), 0, 2}};
    const Bounds bounds = testing::bounds_of(vars);
    const Box a = random_box(rng, vars);
    Box b = random_box(rng, vars);
    if (rng.chance(0.2)) {
      b = a;
      auto& dim = b.dims[static_cast<size_t>(rng.below(2))];
      const int64_t size = *as_int(dim.size), skip = rng.below(size);
      dim = {dim.begin + skip, int_imm(rng.between(1, size - skip))};
    }
    const Box both = hull(a, b, bounds);
    const bool in = contains(a, b, bounds), off = disjoint(a, b, bounds);
    contained += in;
    apart += off;
    exact += both.exact;
    testing::for_all(vars, [&](const Values& at) {
      const auto x = elements(a, at), y = elements(b, at), z = elements(both, at);
      std::set<Point> all = x;
      all.insert(y.begin(), y.end());
      size_t shared = 0;
      for (const Point& p : y) shared += x.contains(p);
      EXPECT_TRUE(!in || shared == y.size()) << show(a) << " and " << show(b);
      EXPECT_TRUE(!off || shared == 0) << show(a) << " and " << show(b);
      for (const Point& p : all) EXPECT_TRUE(z.contains(p));
      EXPECT_TRUE(!both.exact || z.size() == all.size())
          << show(a) << " and " << show(b) << " give " << show(both);
      return !::testing::Test::HasFailure();
    });
  }
  EXPECT_GT(contained, 250);
  EXPECT_GT(apart, 300);
  EXPECT_GT(exact, 10);
}

TEST(Boxes, RingSlotsAreDisjoint) {
  const Var t("t"), k("k");
  Bounds b;
  b.bind(t, int_imm(100));
  b.bind(k, int_imm(4));
  const Expr slot = (ref(t) * 4 + ref(k)) % 8, next = (ref(t) * 4 + ref(k) + 4) % 8;
  EXPECT_TRUE(disjoint(Box{{{slot, int_imm(1)}}}, Box{{{next, int_imm(1)}}}, b));
  EXPECT_FALSE(disjoint(Box{{{slot, int_imm(1)}}}, Box{{{slot, int_imm(1)}}}, b));
}

}  // namespace
}  // namespace tilewright::arith
