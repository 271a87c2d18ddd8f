// Forms against the evaluation of the expression at every point of the loops.
#include "tilewright/codegen/stream/concrete.h"

#include <gtest/gtest.h>

#include <random>

#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"

namespace tilewright::codegen::stream {
namespace {

/// Two loops and an outer variable with a value.
struct Scene {
  Var h{"h"}, w{"w"}, o{"o"};
  int64_t nh = 5, nw = 3, vo = 2;
  Env env;
  Scene() {
    env.set(o, vo);
    env.add_loop(h, nh);
    env.add_loop(w, nw);
  }
  Expr parse(const std::string& text) const {
    auto e = parse_expr(text, {h, w, o});
    EXPECT_TRUE(e) << text;
    return *e;
  }
  template <class F>
  void each(F&& f) const {
    for (int64_t i = 0; i < nh; ++i)
      for (int64_t j = 0; j < nw; ++j) f(i, j);
  }
  int64_t at(const Expr& e, int64_t i, int64_t j) const {
    return static_cast<int64_t>(*interp::evaluate(e, {{h, i}, {w, j}, {o, vo}}));
  }
};

TEST(Forms, AgreeWithTheExpression) {
  const Scene s;
  for (const char* text :
       {"h * 6 + w - o * 7", "(h * 6 + w + o * 6) / 3", "(h * 6 + w + 12) % 3", "(h - 10) / 5 * w",
        "(h * 4 + w - 40) % 4", "min(h, 7) + max(w, o + 1)", "select(h < 5, w * o, h)",
        "-(h - o) * 3", "min(h * 2, o * 10) - max(5, h)"}) {
    const Expr e = s.parse(text);
    const auto f = s.env.form(e);
    ASSERT_TRUE(f) << text;
    s.each([&](int64_t i, int64_t j) {
      EXPECT_EQ(f->c + f->k[0] * i + f->k[1] * j, s.at(e, i, j))
          << text << " at " << i << ", " << j;
    });
  }
}

TEST(Forms, RefuseWhatIsNoSum) {
  const Scene s;
  for (const char* text : {"h * w", "h / 2", "(h + w) % 4", "min(h, w)", "select(h < 2, 1, 0)",
                           "h / o", "w % (h + 1)"})
    EXPECT_FALSE(s.env.form(s.parse(text))) << text;
  EXPECT_FALSE(s.env.form(ref(Var("other"))));
}

TEST(Forms, RangesHoldEveryValue) {
  const Scene s;
  for (const char* text : {"h * 6 - w", "h / 2", "(h + w) % 4", "min(h, w)", "h * w - 3",
                           "select(h < 2, 7, w)", "max(h - w, o)", "min(8 - h * 2, o + 3)"}) {
    const Expr e = s.parse(text);
    const auto r = s.env.range(e);
    ASSERT_TRUE(r) << text;
    s.each([&](int64_t i, int64_t j) {
      EXPECT_LE(r->lo, s.at(e, i, j)) << text;
      EXPECT_GE(r->hi, s.at(e, i, j)) << text;
    });
  }
}

TEST(Conditions, AreConjunctionsOfInequalities) {
  const Scene s;
  for (const char* text :
       {"h < 3", "h <= 3 && w > 0", "h >= o && h * 2 + w < 7", "!(h < 2)", "!(h < 2 || w >= 1)",
        "h == 3", "h != 9", "h < 9", "h > 9", "w == o && h > 1", "o == 2 || h < 2",
        "o == 3 || h < 2", "!(h == 7)", "h == w", "true", "h < 3 && false"}) {
    const Expr e = s.parse(text);
    for (const bool wanted : {true, false}) {
      std::vector<Form> forms;
      const auto truth = s.env.collect(e, wanted, forms);
      if (truth == Env::Truth::Unknown) {
        // A negated conjunction or equality is no conjunction.
        EXPECT_FALSE(wanted) << text;
        continue;
      }
      s.each([&](int64_t i, int64_t j) {
        bool all = truth == Env::Truth::If;
        for (const Form& f : forms) all &= f.c + f.k[0] * i + f.k[1] * j >= 0;
        EXPECT_EQ(all, (s.at(e, i, j) != 0) == wanted) << text << " at " << i << ", " << j;
      });
    }
  }
  EXPECT_EQ(s.env.decide(s.parse("h < 5 && o == 2")), true);
  EXPECT_EQ(s.env.decide(s.parse("h >= 5 || o > 2")), false);
  EXPECT_EQ(s.env.decide(s.parse("h < 4")), std::nullopt);
}

}  // namespace
}  // namespace tilewright::codegen::stream
