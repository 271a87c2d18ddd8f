// The pass vthread: before and after as text, refusals, and random programs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/lower.h"

namespace tilewright::lower {
namespace {

using ::testing::HasSubstr;

Result<Func> lowered(const Func& func) {
  PipelineOptions options;
  options.passes = "vthread";
  options.verify_each = true;
  return run_pipeline(func, hw::CpuTarget{}, options);
}

std::string after(std::string_view text) {
  const auto func = parse_func(text);
  if (!func) return to_string(func.error());
  const auto out = lowered(*func);
  return out ? print(*out) : to_string(out.error());
}

TEST(VThread, DistributesOverStatementsAndWidensAllocations) {
  EXPECT_EQ(after(R"(func f(X: i32[2,3,4], out Y: i32[2,4]) {
  for t in 2 vthread {
    alloc S: i32[4] vta.acc
    for i in 4 {
      block S.init(i: space 4 = i) {
        S[i] = 0i32
      }
    }
    for k in 3 {
      alloc T: i32[4] vta.inp
      for j in 4 {
        block T(t: space 2 = t, k: space 3 = k, j: space 4 = j) {
          T[j] = X[t, k, j]
        }
      }
      for l in 4 {
        block S(l: space 4 = l, k: reduce 3 = k) {
          S[l] += T[l]
        }
      }
    }
    for m in 4 {
      block Y(t: space 2 = t, m: space 4 = m) {
        Y[t, m] = S[m]
      }
    }
  }
}
)"),
            R"(func f(X: i32[2,3,4], out Y: i32[2,4]) {
  alloc S: i32[2,4] vta.acc
  for t in 2 unroll, i in 4 {
    block S.init(thread: space 2 = t, i: space 4 = i) {
      S[thread, i] = 0i32
    }
  }
  for k in 3 {
    alloc T: i32[2,4] vta.inp
    for t.t in 2 unroll, j in 4 {
      block T(t: space 2 = t.t, k: space 3 = k, j: space 4 = j) {
        T[t, j] = X[t, k, j]
      }
    }
    for t.t2 in 2 unroll, l in 4 {
      block S(thread: space 2 = t.t2, l: space 4 = l, k: reduce 3 = k) {
        S[thread, l] += T[thread, l]
      }
    }
  }
  for t.t3 in 2 unroll, m in 4 {
    block Y(t: space 2 = t.t3, m: space 4 = m) {
      Y[t, m] = S[t, m]
    }
  }
}
)");
}

TEST(VThread, KeepsWholeWhatDependsOnTheThreadAndRegionsGetAnAxis) {
  EXPECT_EQ(after(R"(func twice(A: i32[4], out B: i32[4]) {
  for l in 4 {
    block I(i: space 4 = l) {
      B[i] = A[i] * 2i32
    }
  }
}

func f(X: i32[4], out Y: i32[3,4]) {
  for t in 3 vthread {
    alloc P: i32[4]
    block P() {
      call twice(X[0:+4], P[0:+4])
    }
    for i in t + 1 {
      alloc Q: i32[4]
      block Q() {
        call twice(P[0:+4], Q[0:+4])
      }
      for j in 4 {
        block Y(t: space 3 = t, j: space 4 = j) where i == t {
          Y[t, j] = Q[j]
        }
      }
    }
  }
}
)"),
            R"(func twice(A: i32[4], out B: i32[4]) {
  for l in 4 {
    block I(i: space 4 = l) {
      B[i] = A[i] * 2i32
    }
  }
}

func f(X: i32[4], out Y: i32[3,4]) {
  alloc P: i32[3,4]
  for t in 3 unroll {
    block P(thread: space 3 = t) {
      call twice(X[0:+4], P[thread:+1, 0:+4])
    }
  }
  for t.t in 3 unroll, i in t.t + 1 {
    alloc Q: i32[4]
    block Q(thread: space 3 = t.t) {
      call twice(P[thread:+1, 0:+4], Q[0:+4])
    }
    for j in 4 {
      block Y(t: space 3 = t.t, j: space 4 = j) where i == t.t {
        Y[t, j] = Q[j]
      }
    }
  }
}
)");
}

TEST(VThread, NestsOfThreadsAreDistributedTogether) {
  const std::string text = after(R"(func f(X: i32[2,2,4], out Y: i32[2,2,4]) {
  for a in 2 vthread, b in 2 vthread {
    alloc T: i32[4]
    for i in 4 {
      block T(a: space 2 = a, b: space 2 = b, i: space 4 = i) {
        T[i] = X[a, b, i]
      }
    }
    for j in 4 {
      block Y(a: space 2 = a, b: space 2 = b, j: space 4 = j) {
        Y[a, b, j] = T[j]
      }
    }
  }
}
)");
  EXPECT_THAT(text, HasSubstr("alloc T: i32[2,2,4]"));
  EXPECT_THAT(text, HasSubstr("for a in 2 unroll, b in 2 unroll, i in 4 {"));
  EXPECT_THAT(text, HasSubstr("for a.t in 2 unroll, b.t in 2 unroll, j in 4 {"));
}

TEST(VThread, RefusesDependentIterations) {
  const auto refusal = [](const char* extent, const char* row, const char* more) {
    return after(fmt::format(R"(func f(n: int in 1..2, X: i32[8], inout Y: i32[16]) {{
  for o in 4, t in {} vthread, i in 2 {{
    block Y(o: scan 4 = o, t: scan 2 = t, i: space 2 = i) {{
      Y[{}] = Y[{}] * 2i32 + X[i]{}
    }}
  }}
}}
)",
                             extent, row, row, more));
  };
  EXPECT_THAT(refusal("2", "4 * o + 2 * t + i", ""),
              HasSubstr("for o in 4, t in 2 unroll, i in 2 {"));
  EXPECT_THAT(refusal("2", "4 * o + t + 2 * i", ""),
              HasSubstr("for o in 4, t in 2 unroll, i in 2 {"));
  EXPECT_THAT(refusal("2", "4 * o + t + i", ""),
              HasSubstr("block Y writes an element of Y that block Y may write in another"));
  EXPECT_THAT(refusal("2", "2 * o + i", ""), HasSubstr("in another iteration"));
  EXPECT_THAT(refusal("2", "4 * o + 2 * t + i", " + Y[2 * o]"), HasSubstr("may read in another"));
  EXPECT_THAT(refusal("n", "4 * o + 2 * t + i", ""), HasSubstr("is not a constant"));
  EXPECT_THAT(refusal("2", "4 * o + 2 * t + i", " + Y[15 - X[0]]"), HasSubstr("error"));
}

/// Programs with one vthread loop whose iterations may or may not depend on one another.
class RandomThreads {
 public:
  explicit RandomThreads(uint64_t seed) : rng_(seed) {}

  std::string text() {
    const std::string first = allocation();
    return fmt::format(
        "func f(X: i32[4,6], inout Y: i32[4,6], inout Z: i32[6]) {{\n"
        "for a in 2 {{\nfor v in 2 vthread {{\n{}{}}}\n}}\n}}\n",
        first, body(2));
  }

 private:
  std::string pick(std::vector<std::string> all) {
    return all[static_cast<size_t>(rng_.below(static_cast<int64_t>(all.size())))];
  }
  std::string row() {
    if (rng_.chance(0.9)) return pick({"2 * a + v", "a + 2 * v", "2 * a + v"});
    return pick({"a", "v", "a + v", "2 * v"});
  }
  std::string value() {
    std::string out = fmt::format("X[x, j] * {}i32", rng_.between(-2, 3));
    for (const std::string& t : temporaries_)
      if (rng_.chance(0.5)) out += fmt::format(" + {}[{}]", t, pick({"j", "5 - j"}));
    if (rng_.chance(0.05)) out += " - Z[j]";
    return out;
  }
  /// One nest storing to `target`; in it j is 0..5, y and x are rows.
  std::string nest(const std::string& target, bool fresh) {
    const int id = count_++;
    std::string v = value();
    if (!fresh) v = fmt::format("{} * 3i32 + {}", target, v);
    return fmt::format(
        "for j{0} in 6 {{\nblock B{0}(j: scan 6 = j{0}, y: scan 4 = {1}, x: scan 4 "
        "= {2}){3} {{\n{4} = {5}\n}}\n}}\n",
        id, row(), row(),
        fresh || rng_.chance(0.8) ? "" : fmt::format(" where {}", pick({"a < 1", "v < 1"})), target,
        v);
  }
  std::string allocation() {
    const std::string t = fmt::format("T{}", count_);
    std::string out = fmt::format("alloc {}: i32[6]\n", t) + nest(t + "[j]", true);
    temporaries_.push_back(t);
    return out;
  }
  std::string body(int depth) {
    std::string out;
    const size_t alive = temporaries_.size();
    for (int64_t i = rng_.between(1, 4); i > 0; --i) {
      const int64_t kind = rng_.below(6);
      if (kind == 0) {
        out += allocation();
      } else if (kind == 1 && depth > 0) {
        const int id = count_++;
        const std::string extent = pick({"2", "3", "v + 1", "a + 1"});
        out += fmt::format("for k{} in {} {{\n{}}}\n", id, extent, body(depth - 1));
      } else if (kind == 2 && depth > 0) {
        const std::string condition = pick({"a == 0", "v == 1"});
        out += fmt::format("if {} {{\n{}}}\n", condition, body(depth - 1));
      } else if (kind == 3) {
        out += nest(pick(temporaries_) + "[j]", false);
      } else {
        out += nest(rng_.chance(0.97) ? "Y[y, j]" : "Z[j]", false);
      }
    }
    temporaries_.resize(alive);
    return out;
  }

  Rng rng_;
  int count_ = 0;
  std::vector<std::string> temporaries_;
};

TEST(VThread, RandomProgramsKeepTheirMeaning) {
  int accepted = 0, refused = 0, several = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    const std::string text = RandomThreads(seed).text();
    const auto func = parse_func(text);
    ASSERT_TRUE(func) << to_string(func.error()) << text;
    const auto out = lowered(*func);
    if (!out) {
      ASSERT_EQ(out.error().kind, ErrorKind::NotApplicable) << to_string(out.error()) << text;
      ++refused;
      continue;
    }
    ++accepted;
    Rng rng(seed);
    interp::Arguments args;
    for (const Param& p : func->params) {
      Shape shape;
      for (const Expr& e : p.buffer.shape()) shape.push_back(*as_int(e));
      Array a(DType::I32, shape);
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, static_cast<double>(rng.between(-9, 9)));
      args.arrays[p.buffer.name()] = a;
    }
    const auto before = interp::run(*func, args), now = interp::run(*out, args);
    ASSERT_TRUE(before && now) << to_string((before ? now : before).error()) << text;
    int loops = 0;
    walk(out->body, [&](const Stmt& s) {
      const For* f = s.as<For>();
      loops += f != nullptr && f->var.name().starts_with("v");
      EXPECT_TRUE(f == nullptr || f->kind != ForKind::VThread);
    });
    several += loops > 1;
    for (const auto& [name, array] : before->outputs)
      for (int64_t i = 0; i < array.size(); ++i)
        ASSERT_EQ(array.get(i), now->outputs.at(name).get(i)) << name << "\n"
                                                              << print(*out) << text;
    const auto again = parse_func(print(*out));
    ASSERT_TRUE(again && equal(*again, *out));
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
  EXPECT_GT(several, 100);
}

/// A back-end that does not know virtual threads runs them as plain loops.
TEST(VThread, OtherPassesTakeThemAsSerialLoops) {
  const auto func = parse_func(R"(func f(X: i32[2,4], out Y: i32[2,4]) {
  for t in 2 vthread {
    alloc T: i32[4]
    for i in 4 {
      block T(t: space 2 = t, i: space 4 = i) {
        T[i] = X[t, i] + 1i32
      }
    }
    for j in 4 {
      block Y(t: space 2 = t, j: space 4 = j) {
        Y[t, j] = T[3 - j]
      }
    }
  }
}
)");
  ASSERT_TRUE(func);
  const auto out = run_pipeline(*func, hw::CpuTarget{});
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_THAT(print(*out), HasSubstr("for t in 2 vthread {\n    alloc T: i32[4]"));
}

}  // namespace
}  // namespace tilewright::lower
