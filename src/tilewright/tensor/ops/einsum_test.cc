// Einsum against one sum over all letters, written as loops.
#include <gmock/gmock.h>

#include <map>

#include "tilewright/tensor/ops/movement_testing.h"

namespace tilewright::tensor::testing {
namespace {

using ::testing::HasSubstr;

/// The definition: for every value of all letters, add the product of the operands to the output.
/// The ellipsis is spelt with digits, as '12'.
Array naive(const std::vector<std::string>& terms, const std::string& output,
            const std::vector<Given>& in) {
  std::map<char, int64_t> extent;
  for (size_t k = 0; k < terms.size(); ++k)
    for (size_t i = 0; i < terms[k].size(); ++i) {
      int64_t& e = extent.emplace(terms[k][i], 1).first->second;
      e = std::max(e, in[k].value.shape()[i]);
    }
  std::string letters;
  Shape all, shape;
  for (const auto& [letter, e] : extent) letters += letter, all.push_back(e);
  for (const char c : output) shape.push_back(extent.at(c));
  auto place = [&](const std::string& term, const Shape& at_all, const Shape& of) {
    int64_t flat = 0;
    for (size_t i = 0; i < term.size(); ++i)
      flat = flat * of[i] + (of[i] == 1 ? 0 : at_all[letters.find(term[i])]);
    return flat;
  };
  Array sum(DType::F64, shape);
  for_each_index(all, [&](const Shape& i, int64_t) {
    double product = 1;
    for (size_t k = 0; k < terms.size(); ++k)
      product *= in[k].value.get(place(terms[k], i, in[k].value.shape()));
    const int64_t to = place(output, i, shape);
    sum.set(to, sum.get(to) + product);
  });
  return sum;
}

void check(const std::string& equation, const std::vector<std::string>& terms,
           const std::string& output, const std::vector<Shape>& shapes, DType dtype = DType::F32) {
  SCOPED_TRACE(equation);
  std::vector<Given> in;
  for (size_t k = 0; k < shapes.size(); ++k) in.emplace_back(random(shapes[k], k + 1, dtype));
  const Array want = naive(terms, output, in);
  const auto y = run("Einsum", {{"equation", equation}}, in);
  ASSERT_EQ(y.size(), 1u);
  // Eighths times eighths, few of them: every order of additions is exact, and rounded once.
  const Array rounded = want.cast(dtype);
  expect_elements(y[0], want.shape(), [&](const Shape& i) { return at(rounded, i); });
}

TEST(Einsum, Equations) {
  check("ij,jk->ik", {"ij", "jk"}, "ik", {{2, 3}, {3, 4}});
  check("ij, jk", {"ij", "jk"}, "ik", {{2, 3}, {3, 4}});
  check("ba", {"ba"}, "ab", {{2, 3}});
  check("ii->i", {"ii"}, "i", {{3, 3}});
  check("ii", {"ii"}, "", {{3, 3}});
  check("ij->", {"ij"}, "", {{3, 2}});
  check("aij,ajk,akl->ail", {"aij", "ajk", "akl"}, "ail", {{2, 2, 3}, {2, 3, 2}, {2, 2, 3}});
  check("bi,bkj,bj->bik", {"bi", "bkj", "bj"}, "bik", {{2, 3}, {2, 2, 4}, {2, 4}});
  check("Aa->aA", {"Aa"}, "aA", {{2, 3}});
  check("...ij,...jk->...ik", {"12ij", "2jk"}, "12ik", {{2, 3, 2, 3}, {3, 3, 2}});
  check("...ij,...jk", {"1ij", "1jk"}, "1ik", {{1, 2, 3}, {4, 3, 2}});
  check("i...->...", {"i12"}, "12", {{3, 2, 2}});
  check("ij,jk->ik", {"ij", "jk"}, "ik", {{2, 3}, {3, 4}}, DType::F64);
  check("ij,jk->ik", {"ij", "jk"}, "ik", {{2, 3}, {3, 4}}, DType::BF16);
}

TEST(Einsum, BadEquations) {
  auto error = [](const std::string& equation, const std::vector<Given>& in) {
    return error_of("Einsum", {{"equation", equation}}, in);
  };
  const Array a = iota({2, 3}), b = iota({4, 2});
  EXPECT_THAT(error("ij,jk->ik", {a, b}), HasSubstr("both 3 and 4"));
  EXPECT_THAT(error("ij->ij", {a, b}), HasSubstr("1 operands, 2"));
  EXPECT_THAT(error("ijk->i", {a}), HasSubstr("[2, 3]"));
  EXPECT_THAT(error("i->i", {a}), HasSubstr("[2, 3]"));
  EXPECT_THAT(error("ij->iz", {a}), HasSubstr("'z'"));
  EXPECT_THAT(error("ij->ii", {a}), HasSubstr("twice"));
  EXPECT_THAT(error("i?->i", {a}), HasSubstr("'?'"));
}

}  // namespace
}  // namespace tilewright::tensor::testing
