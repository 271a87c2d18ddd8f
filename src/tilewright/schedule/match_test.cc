// Counts and meanings of matches: workloads and intrinsics of HASCO, row by row.
#include "tilewright/schedule/match.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <functional>

#include "tilewright/base/file.h"
#include "tilewright/base/rng.h"
#include "tilewright/ir/text.h"

namespace tilewright::schedule {
namespace {

using Env = std::map<char, int64_t>;

/// A tensor and its indices, each a sum of scaled letters: `A[c,x+r,2y+s]`.
struct Spec {
  struct Access {
    char tensor;
    std::vector<std::vector<std::pair<char, int64_t>>> axes;
  };
  std::vector<Access> accesses;  ///< the result, then the factors

  explicit Spec(const std::string& text) {
    int64_t scale = 1;
    for (char c : text) {
      if (std::isupper(c)) accesses.push_back({c, {{}}});
      if (c == ',') accesses.back().axes.emplace_back();
      if (std::isdigit(c)) scale = c - '0';
      if (std::islower(c)) accesses.back().axes.back().emplace_back(c, std::exchange(scale, 1));
    }
  }

  std::string letters() const {
    std::set<char> all;
    for (const Access& a : accesses)
      for (const auto& axis : a.axes)
        for (const auto& [c, s] : axis) all.insert(c);
    return std::string(all.begin(), all.end());
  }
  bool in_result(char letter) const {
    for (const auto& axis : accesses[0].axes)
      for (const auto& [c, s] : axis)
        if (c == letter) return true;
    return false;
  }
  static int64_t index(const std::vector<std::pair<char, int64_t>>& axis, const Env& env) {
    int64_t sum = 0;
    for (const auto& [c, s] : axis) sum += s * env.at(c);
    return sum;
  }

  /// The same as IR.
  Func func(const std::string& name, int64_t extent) const {
    Env last;
    std::string loops, iters;
    for (char c : letters()) {
      last[c] = extent - 1;
      loops += fmt::format("{}l{} in {}", loops.empty() ? "" : ", ", c, extent);
      iters += fmt::format("{}{}: {} {} = l{}", iters.empty() ? "" : ", ", c,
                           in_result(c) ? "space" : "reduce", extent, c);
    }
    std::string params, value;
    for (size_t i = 0; i < accesses.size(); ++i) {
      std::string shape, indices;
      for (const auto& axis : accesses[i].axes) {
        if (axis.empty()) continue;
        shape += fmt::format("{}{}", shape.empty() ? "" : ",", index(axis, last) + 1);
        std::string sum;
        for (const auto& [c, s] : axis)
          sum += fmt::format("{}{}{}", sum.empty() ? "" : " + ",
                             s == 1 ? "" : fmt::format("{} * ", s), c);
        indices += (indices.empty() ? "" : ", ") + sum;
      }
      params += fmt::format("{}{}: i32[{}]", i == 0 ? "inout " : ", ", accesses[i].tensor, shape);
      value += fmt::format("{}{}[{}]",
                           i == 0   ? ""
                           : i == 1 ? " += "
                                    : " * ",
                           accesses[i].tensor, indices);
    }
    const auto out =
        parse_func(fmt::format("func {}({}) {{\n for {} {{\n block B({}) {{\n {}\n }}\n }}\n}}\n",
                               name, params, loops, iters, value));
    EXPECT_TRUE(out) << to_string(out.error());
    return *out;
  }
};

/// Random values, the same for the same element, and zero outside.
class Tensors {
 public:
  explicit Tensors(uint64_t seed) : rng_(seed) {}
  int64_t get(const Spec::Access& a, const Env& env) {
    const auto key = at(a, env);
    const auto it = values_.find(key);
    return it != values_.end() ? it->second : values_[key] = rng_.between(-4, 4);
  }
  static std::pair<char, std::vector<int64_t>> at(const Spec::Access& a, const Env& env) {
    std::vector<int64_t> index;
    for (const auto& axis : a.axes) index.push_back(Spec::index(axis, env));
    return {a.tensor, index};
  }

 private:
  Rng rng_;
  std::map<std::pair<char, std::vector<int64_t>>, int64_t> values_;
};

void each(const std::string& letters, int64_t begin, int64_t end, int64_t step, Env env,
          const std::function<void(const Env&)>& f, size_t i = 0) {
  if (i == letters.size()) return f(env);
  for (int64_t v = begin; v < end; v += step) {
    env[letters[i]] = v;
    each(letters, begin, end, step, env, f, i + 1);
  }
}

using Values = std::map<std::vector<int64_t>, int64_t>;

Values reference(const Spec& w, int64_t extent, Tensors& tensors) {
  Values out;
  each(w.letters(), 0, extent, 1, {}, [&](const Env& env) {
    int64_t product = 1;
    for (size_t i = 1; i < w.accesses.size(); ++i) product *= tensors.get(w.accesses[i], env);
    out[Tensors::at(w.accesses[0], env).second] += product;
  });
  return out;
}

/// The computation with tiles of `tile` per matched loop handed to the intrinsic, zeros past the
/// ends of the loops, and factors that are not operands applied to its result.
Values tiled(const Spec& w, const Spec& q, const Match& m, int64_t extent, int64_t tile,
             Tensors& tensors) {
  std::map<char, char> to;  // of the intrinsic's letters
  std::string matched, outer;
  for (const auto& [from, image] : m.indices) {
    to[from.name()[1]] = image.name()[1];
    matched += image.name()[1];
  }
  for (char c : w.letters())
    if (matched.find(c) == std::string::npos) outer += c;
  Values out;
  auto one_tile = [&](const Env& base) {
    auto place = [&](const Env& inner) {
      Env env = base;
      for (const auto& [from, image] : to) env[image] += inner.at(from);
      return env;
    };
    auto inside = [&](const Env& env, const Spec::Access& a) {
      for (const auto& axis : a.axes)
        for (const auto& [c, s] : axis)
          if (env.at(c) >= extent) return false;
      return true;
    };
    std::map<std::vector<int64_t>, std::pair<int64_t, Env>> result;
    each(q.letters(), 0, tile, 1, {}, [&](const Env& inner) {
      const Env env = place(inner);
      int64_t product = 1;
      for (size_t i = 1; i < q.accesses.size(); ++i) {
        const Spec::Access& a = w.accesses[m.operands[i]];
        product *= inside(env, a) ? tensors.get(a, env) : 0;
      }
      auto& element = result[Tensors::at(q.accesses[0], inner).second];
      element.first += product;
      element.second = env;
    });
    for (const auto& [index, element] : result) {
      if (!inside(element.second, w.accesses[0])) continue;
      int64_t value = element.first;
      for (size_t i = 1; i < w.accesses.size(); ++i)
        if (std::find(m.operands.begin() + 1, m.operands.end(), i) == m.operands.end())
          value *= tensors.get(w.accesses[i], element.second);
      out[Tensors::at(w.accesses[0], element.second).second] += value;
    }
  };
  each(outer, 0, extent, 1, {},
       [&](const Env& fixed) { each(matched, 0, extent, tile, fixed, one_tile); });
  return out;
}

const std::map<std::string, std::string> kIntrinsics = {
    {"gemm", "C[i,j] = M[i,k] * N[k,j]"},
    {"gemv", "C[i] = M[i,j] * V[j]"},
    {"dot", "C = A[i] * B[i]"},
    {"conv2d", "O[k,x,y] = A[c,x+r,y+s] * B[k,c,r,s]"},
};

struct Row {
  std::string workload, intrinsic;
  int leaves;
  int64_t consistent, subsets, literal, sound, loop_sets;  ///< -1: not in the table
};

const std::string kMatchConv = "O[k,x,y] = A[c,x+r,y+s] * B[k,c,r,s]";
const std::string kBatchConv = "O[n,k,x,y] = A[n,c,x+r,y+s] * B[k,c,r,s]";
const std::string kGemm = "C[i,j] = M[i,k] * N[k,j]", kGemv = "C[i] = M[i,j] * V[j]";
const std::string kTtm = "C[i,j,k] = A[i,j,l] * B[l,k]";
const std::string kStage1 = "E[i,k,j] = A[i,k,l] * B[l,j]", kStage2 = "D[i,j] = E[i,k,j] * C[k,j]";
const std::string kMttkrp = "D[i,j] = A[i,k,l] * B[l,j] * C[k,j]";
const std::string kBatched = "C[b,i,j] = A[b,i,k] * B[b,k,j]";
const std::string kDepthwise = "O[c,x,y] = A[c,x+r,y+s] * B[c,r,s]";
const std::string kGroup = "O[g,k,x,y] = A[g,c,x+r,y+s] * B[g,k,c,r,s]";
const std::string kConv1 = "O[k,x] = A[c,x+r] * B[k,c,r]";
const std::string kConv3 = "O[k,x,y,z] = A[c,x+r,y+s,z+t] * B[k,c,r,s,t]";

const std::vector<Row> kTable = {
    {kMatchConv, "gemm", 9, 228, 57, 48, 8, 4},
    {kMatchConv, "gemv", 9, 42, 21, 19, 7, 7},
    {kMatchConv, "dot", 9, 6, 3, 6, 6, 3},
    {kMatchConv, "conv2d", 9, 288, 1, 2, 2, 1},
    {kBatchConv, "gemm", 10, 312, 78, 66, 14, 7},
    {kBatchConv, "gemv", 10, 48, 24, 22, 10, 10},
    {kBatchConv, "dot", 10, 6, 3, 6, 6, 3},
    {"O[k,x,y] = A[c,2x+3r,2y+3s] * B[k,c,r,s]", "gemm", 9, 228, 57, 48, 8, 4},
    {kGemm, "gemm", 4, 4, 1, 2, 2, 1},
    {kGemm, "gemv", 4, 4, 2, 2, 2, 2},
    {kGemm, "dot", 4, 2, 1, 2, 2, 1},
    {kGemm, "conv2d", 4, 0, 0, 0, 0, 0},
    {kGemv, "gemv", 3, 2, 1, 1, 1, 1},
    {kGemv, "gemm", 3, 0, -1, 0, 0, 0},
    {kGemv, "dot", 3, 2, -1, 2, 2, 1},
    {kTtm, "gemm", 5, 12, 3, 4, 4, 2},
    {kTtm, "gemv", 5, 6, 3, 3, 3, 3},
    {kTtm, "dot", 5, 2, 1, 2, 2, 1},
    {kStage1, "gemm", 5, 12, 3, 4, 4, 2},
    {kStage1, "gemv", 5, 6, 3, 3, 3, 3},
    {kStage1, "dot", 5, 2, 1, 2, 2, 1},
    {kStage2, "gemm", 5, 16, 4, 4, 0, 0},
    {kStage2, "gemv", 5, 12, 6, 6, 1, 1},
    {kStage2, "dot", 5, 4, 2, 4, 2, 1},
    {kMttkrp, "gemm", 7, 96, -1, 10, 0, 0},
    {kMttkrp, "gemv", 7, 30, -1, 8, 2, 2},
    {kMttkrp, "dot", 7, 6, -1, 6, 4, 2},
    {kBatched, "gemm", 6, 40, -1, 12, 2, 1},
    {kBatched, "gemv", 6, 16, -1, 8, 2, 2},
    {kBatched, "dot", 6, 4, -1, 4, 2, 1},
    {kDepthwise, "gemm", 8, 156, -1, 28, 0, 0},
    {kDepthwise, "gemv", 8, 36, -1, 16, 2, 2},
    {kDepthwise, "dot", 8, 6, -1, 6, 4, 2},
    {kGroup, "gemm", 11, 528, -1, 120, 8, 4},
    {kGroup, "gemv", 11, 72, -1, 34, 7, 7},
    {kGroup, "dot", 11, 8, -1, 8, 6, 3},
    {kConv1, "gemm", 6, 40, -1, 8, 2, 1},
    {kConv1, "gemv", 6, 16, -1, 7, 3, 3},
    {kConv1, "dot", 6, 4, -1, 4, 4, 2},
    {kConv3, "gemm", 12, 672, -1, 144, 18, 9},
    {kConv3, "gemv", 12, 80, -1, 37, 13, 13},
    {kConv3, "dot", 12, 8, -1, 8, 8, 4},
};

/// The intrinsic as users declare it.
Func declared(const std::string& name) {
  const auto text = read_file(fmt::format("{}/testing/{}.tw", TILEWRIGHT_SOURCE_DIR, name));
  EXPECT_TRUE(text) << name;
  const auto funcs = parse_funcs(*text);
  EXPECT_TRUE(funcs) << to_string(funcs.error());
  return funcs->front();
}

TEST(Match, CountsAreThoseOfTheTable) {
  int64_t sound = 0, rejected = 0;
  for (const Row& row : kTable) {
    const auto counts = count_matches(Spec(row.workload).func("w", 3), declared(row.intrinsic));
    ASSERT_TRUE(counts) << to_string(counts.error());
    const std::string what = row.workload + " to " + row.intrinsic;
    EXPECT_EQ(counts->workload_leaves, row.leaves) << what;
    EXPECT_EQ(counts->consistent, row.consistent) << what;
    if (row.subsets >= 0) {
      EXPECT_EQ(counts->subsets, row.subsets) << what;
    }
    EXPECT_EQ(counts->literal, row.literal) << what;
    EXPECT_EQ(counts->sound, row.sound) << what;
    EXPECT_EQ(counts->loop_sets, row.loop_sets) << what;
    if (row.intrinsic == "conv2d") continue;
    sound += counts->sound;
    rejected += counts->literal - counts->sound;
  }
  EXPECT_EQ(sound, 176);
  EXPECT_EQ(rejected, 548);
}

TEST(MatchSlow, EverySoundMappingComputesTheResult) {
  constexpr int64_t kExtent = 3, kTile = 2;  // the last tile is ragged
  int checked = 0, wrong = 0;
  for (const Row& row : kTable) {
    // Tiles of a convolution overlap, so cutting them at zeros means something else.
    if (row.intrinsic == "conv2d") continue;
    const Spec w(row.workload), q(kIntrinsics.at(row.intrinsic));
    const auto matches = find_matches(w.func("w", kExtent), q.func("q", kTile));
    ASSERT_TRUE(matches) << to_string(matches.error());
    Tensors tensors(17);
    const Values expected = reference(w, kExtent, tensors);
    for (Match m : *matches) {
      EXPECT_EQ(tiled(w, q, m, kExtent, kTile, tensors), expected) << row.workload;
      ++checked;
      // The test can fail: the same operands over another loop.
      if (m.indices.size() < 2 || wrong > 20) continue;
      std::swap(m.indices[0].second, m.indices[1].second);
      wrong += tiled(w, q, m, kExtent, kTile, tensors) != expected;
    }
  }
  EXPECT_EQ(checked, 176);
  EXPECT_GT(wrong, 10);
}

/// The mappings of 3.4 that fit on one line, by name.
TEST(Match, MappingsAreThoseOfThePaper) {
  auto loops = [](const std::string& workload, const std::string& intrinsic) {
    const auto matches =
        find_matches(Spec(workload).func("w", 3), Spec(kIntrinsics.at(intrinsic)).func("q", 2));
    std::set<std::string> out;
    for (const Match& m : *matches) {
      std::string text;
      for (const auto& [from, to] : m.indices) text += to.name()[1];
      for (size_t i = 1; i < m.operands.size(); ++i) text += std::to_string(m.operands[i]);
      out.insert(text);
    }
    return out;
  };
  using Set = std::set<std::string>;
  EXPECT_EQ(loops(kMatchConv, "gemm"),
            (Set{"xkc12", "ykc12", "ykr12", "xks12", "kxc21", "kyc21", "kyr21", "kxs21"}));
  EXPECT_EQ(loops(kMatchConv, "gemv"),
            (Set{"xc12", "xs12", "yc12", "yr12", "kc21", "kr21", "ks21"}));
  EXPECT_EQ(loops(kGemm, "gemv"), (Set{"ik12", "jk21"}));
  EXPECT_EQ(loops(kTtm, "gemm"), (Set{"jkl12", "ikl12", "kjl21", "kil21"}));
  EXPECT_EQ(loops(kStage2, "gemv"), (Set{"ik12"}));
}

TEST(Match, WhatIsLeftOverMustMultiply) {
  auto count = [](const std::string& value, const std::string& combine = "+=") {
    const auto func = parse_func(fmt::format(
        "func w(A: f32[4,4], B: f32[4,4], D: f32[4], inout C: f32[4,4]) {{\n"
        "for i in 4, j in 4, k in 4, u in 4 {{\nblock C(i: space 4 = i, j: space 4 = j, k: reduce "
        "4 = k, u: reduce 4 = u) {{\nC[i, j] {} {}\n}}\n}}\n}}\n",
        combine, value));
    EXPECT_TRUE(func) << to_string(func.error());
    return find_matches(*func, declared("gemm"))->size();
  };
  EXPECT_EQ(count("A[i, k] * B[k, j]"), 2u);
  EXPECT_EQ(count("A[i, k] * D[u] * B[k, j]"), 2u);
  EXPECT_EQ(count("2.0 * (B[k, j] * A[i, k])"), 2u);
  EXPECT_EQ(count("A[i, k] * B[k, j] + D[u]"), 0u);
  EXPECT_EQ(count("A[i, k] * B[k, j] + 1.0"), 0u);
  EXPECT_EQ(count("max(A[i, k] * B[k, j], D[u])"), 0u);
  EXPECT_EQ(count("A[i, k] + B[k, j]"), 0u);
  EXPECT_EQ(count("exp(A[i, k]) * B[k, j]"), 0u);
  EXPECT_EQ(count("A[i, k] * B[k, j] * D[k]"), 0u);
  EXPECT_EQ(count("A[i, k] * B[k, j] * f32(k)"), 0u);
  EXPECT_EQ(count("A[i, k / 2] * B[k, j]"), 0u);
  EXPECT_EQ(count("A[i, k] * B[k, j]", "max="), 0u);
}

TEST(Match, NeedsOneComputation) {
  const auto two = parse_func(
      "func w(out X: f32[4], out Y: f32[4]) {\nfor i in 4 {\nblock X(i: space 4 = i) {\nX[i] = "
      "1.0\n}\n}\nfor j in 4 {\nblock Y(j: space 4 = j) {\nY[j] = 1.0\n}\n}\n}\n");
  const auto init = parse_func(
      "func w(A: f32[4], out Y: f32[1]) {\nblock Y.init() {\nY[0] = 0.0\n}\nfor j in 4 {\nblock "
      "Y(j: reduce 4 = j) {\nY[0] += A[j] * A[j]\n}\n}\n}\n");
  ASSERT_TRUE(two && init);
  const auto refused = find_matches(*two, declared("dot"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Invalid);
  EXPECT_EQ(find_matches(*init, declared("dot"))->size(), 2u);
}

}  // namespace
}  // namespace tilewright::schedule
