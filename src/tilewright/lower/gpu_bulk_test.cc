// Copies of whole tiles: told to a copy engine, they bring what the loops mean; what an engine
// cannot do is refused.
#include "tilewright/lower/gpu_bulk.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/gpu.h"

namespace tilewright::lower {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Func func_of(const std::string& text) {
  const auto func = parse_func(text);
  if (!func) throw std::runtime_error(to_string(func.error()));
  return *func;
}

/// A panel of `rows` rows in each of `rounds` places, filled with `value`.
Func panels(int64_t rounds, int64_t rows, const std::string& shape, const std::string& value) {
  return func_of(fmt::format(
      "func f(A: bf16[{}], out P: bf16[{},{},64]) {{\n  for t in {}, r in {}, c in 64 {{\n    "
      "P[t, r, c] = {}\n  }}\n}}\n",
      shape, rounds, rows, rounds, rows, value));
}

/// The nest over rows of such a Func, and what is known around it.
std::optional<BulkCopy> copy_of(const Func& func) {
  const For& rounds = *func.body.as<For>();
  arith::Bounds bounds(func);
  bounds.bind(rounds.var, rounds.extent);
  return bulk_copy_of(*rounds.body.as<For>(), bounds);
}

int64_t value_of(const Expr& e, const Var& var, int64_t value) {
  return *as_int(arith::simplify(substitute(e, {{var, int_imm(value)}})));
}

/// What an engine does with `copy` in round `t`: a box of the map, zeros beyond its ends.
void engine(const BulkCopy& copy, const Var& round, int64_t t, const Array& from, Array& to) {
  const TensorMap& map = copy.map;
  std::vector<int64_t> at;
  for (const Expr& place : copy.at) at.push_back(value_of(place, round, t));
  int64_t start = 0;
  for (size_t axis = 0; axis < copy.to_at.size(); ++axis)
    start = start * to.shape()[axis] + value_of(copy.to_at[axis], round, t);
  int64_t elements = 1;
  for (const int64_t extent : map.box) elements *= extent;
  for (int64_t element = 0; element < elements; ++element) {
    int64_t rest = element, address = 0;
    bool inside = true;
    for (size_t axis = 0; axis < map.box.size(); ++axis) {
      const int64_t index = at[axis] + rest % map.box[axis];
      rest /= map.box[axis];
      inside = inside && index >= 0 && index < map.dims[axis];
      address += index * (axis == 0 ? 2 : map.strides[axis - 1]);
    }
    to.set(start + element, inside ? from.get(address / 2) : 0);
  }
}

struct Tiles {
  const char* name;
  int64_t rounds, rows;
  Shape shape;
  std::string value;
};

class BulkCopies : public ::testing::TestWithParam<Tiles> {};

TEST_P(BulkCopies, BringWhatTheLoopsMean) {
  const Tiles& c = GetParam();
  std::string shape;
  for (const int64_t extent : c.shape)
    shape += fmt::format("{}{}", shape.empty() ? "" : ",", extent);
  const Func func = panels(c.rounds, c.rows, shape, c.value);
  const auto copy = copy_of(func);
  ASSERT_TRUE(copy) << print(func);
  EXPECT_EQ(copy->bytes, c.rows * 128);
  Array from(DType::BF16, c.shape);
  for (int64_t i = 0; i < from.size(); ++i) from.set(i, static_cast<double>(i % 251 + 1));
  interp::Arguments arguments;
  arguments.arrays["A"] = from;
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected) << to_string(expected.error());
  Array got(DType::BF16, {c.rounds, c.rows, 64});
  for (int64_t i = 0; i < got.size(); ++i) got.set(i, -1);
  for (int64_t t = 0; t < c.rounds; ++t) engine(*copy, func.body.as<For>()->var, t, from, got);
  for (int64_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got.get(i), expected->outputs.at("P").get(i)) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Tiles, BulkCopies,
    ::testing::Values(
        Tiles{"inside", 3, 8, {8, 192}, "A[r, t * 64 + c]"},
        Tiles{"down", 2, 16, {32, 64}, "A[t * 16 + r, c]"},
        Tiles{"ragged", 2, 16, {20, 72}, "select(r + t * 16 < 20, A[t * 16 + r, c + 8], 0.0bf16)"},
        Tiles{"both_ends",
              3,
              24,
              {20, 136},
              "select(t * 64 + c < 136, select(r < 20, A[r, t * 64 + c], 0.0bf16), 0.0bf16)"},
        Tiles{"joined",
              3,
              24,
              {20, 136},
              "select(t * 64 + c < 136 && r < 20, A[r, t * 64 + c], 0.0bf16)"},
        Tiles{"part_of_it", 2, 8, {40, 128}, "select(r < 5, A[r + 9, t * 64 + c], 0.0bf16)"},
        Tiles{"whole_panels", 3, 8, {8, 128}, "select(t < 2, A[r, t * 64 + c], 0.0bf16)"},
        Tiles{"moved", 2, 8, {9, 128}, "select(t * 64 + c < 100, A[r + 1, t * 64 + c], 0.0bf16)"},
        Tiles{"batch", 3, 8, {3, 8, 64}, "A[t, r, c]"},
        Tiles{"other_rows", 2, 8, {8, 2, 64}, "A[r, t, c]"}),
    [](const auto& test) { return test.param.name; });

TEST(BulkCopy, SaysHowTheBufferLies) {
  const auto copy = copy_of(
      panels(2, 16, "3,20,72", "select(r + t * 16 < 20, A[1, t * 16 + r, c + 8], 0.0bf16)"));
  ASSERT_TRUE(copy);
  EXPECT_THAT(copy->map.dims, ElementsAre(72, 20, 3));
  EXPECT_THAT(copy->map.strides, ElementsAre(144, 2880));
  EXPECT_THAT(copy->map.box, ElementsAre(64, 16, 1));
}

TEST(BulkCopy, IsNoneOfWhatEnginesCannotDo) {
  const auto refused = [](int64_t rows, const std::string& shape, const std::string& value) {
    return !copy_of(panels(2, rows, shape, value));
  };
  EXPECT_FALSE(refused(8, "8,128", "A[r, t * 64 + c]"));
  EXPECT_TRUE(refused(8, "64,16", "A[c, r + t]"));                 // turned round
  EXPECT_TRUE(refused(8, "8,130", "A[r, t * 64 + c]"));            // rows of 260 bytes
  EXPECT_TRUE(refused(8, "8,256", "A[r, t * 128 + 2 * c]"));       // every other element
  EXPECT_TRUE(refused(8, "16,128", "A[2 * r, t * 64 + c]"));       // every other row
  EXPECT_TRUE(refused(8, "128", "A[t * 64 + c]"));                 // the same row
  EXPECT_TRUE(refused(8, "8,136", "A[r, t * 64 + c + r]"));        // slanting
  EXPECT_TRUE(refused(264, "264,128", "A[r, t * 64 + c]"));        // a box of 264
  EXPECT_TRUE(refused(8, "8,128", "A[r, t * 64 + c] + 1.0bf16"));  // computed
  EXPECT_TRUE(refused(8, "8,128", "select(c < 9, A[r, t * 64 + c], 1.0bf16)"));
  EXPECT_TRUE(refused(8, "8,128", "select(r + c < 9, A[r, t * 64 + c], 0.0bf16)"));
  EXPECT_TRUE(refused(8, "8,128", "select(t < 1, A[r, t * 32 + c], 0.0bf16)"));
  EXPECT_TRUE(refused(8, "8,128", "select(3 < c, A[r, t * 64 + c], 0.0bf16)"));
  EXPECT_TRUE(refused(8, "1,1,1,1,8,128", "A[0, 0, 0, 0, r, t * 64 + c]"));  // six axes
  // Elements that a guard leaves out keep what they had.
  EXPECT_FALSE(copy_of(func_of(
      "func f(A: bf16[8,128], inout P: bf16[2,8,64]) {\n  for t in 2, r in 8, c in 64 {\n    if r "
      "< 5 {\n      P[t, r, c] = A[r, t * 64 + c]\n    }\n  }\n}\n")));
  // Panels are swizzled by eight rows.
  const char* shifted =
      "func f(A: bf16[8,128], out P: bf16[2,24,64]) {{\n  for t in 2, r in 8, c in 64 {{\n    "
      "P[t, r + {}, c] = A[r, t * 64 + c]\n  }}\n}}\n";
  EXPECT_TRUE(copy_of(func_of(fmt::format(fmt::runtime(shifted), 16))));
  EXPECT_FALSE(copy_of(func_of(fmt::format(fmt::runtime(shifted), 4))));
}

/// What bulk_use says of a kernel in which `copy` fills S and `use` is what threads store.
std::string use_of(const std::string& copy, const std::string& use, bool pipelined = true) {
  const Func kernel = func_of(fmt::format(
      R"(
func f(A: bf16[8,256], B: bf16[8,256], inout Y: bf16[8,256]) {{
  for g in 1 bind(block.x) {{
    alloc S: bf16[4,8,64] shared @(async=bulk)
    for t in 4 {0} {{
      for r in 8, c in 64 {{
        S[t, r, c] = {1}
      }}
    }}
    for u in 4 {0} {{
      for r1 in 8, c1 in 64 {{
        S[u, r1, c1] = A[r1, u * 64 + c1]
      }}
    }}
    for r2 in 8 bind(thread.x), c2 in 256 {{
      Y[r2, c2] = {2}
    }}
  }}
}}
)",
      pipelined ? "@(pipeline=4)" : "", copy, use));
  const auto found = bulk_use(kernel);
  return found ? fmt::format("{} maps, {} groups", found->maps.size(), found->groups)
               : to_string(found.error());
}

TEST(BulkUse, RefusesWhatWouldNotBeFilledOrFound) {
  EXPECT_EQ(use_of("A[r, t * 64 + c]", "A[r2, c2]"), "1 maps, 4 groups");
  EXPECT_EQ(use_of("B[r, t * 64 + c]", "A[r2, c2]"), "2 maps, 4 groups");
  EXPECT_THAT(use_of("A[r, t * 64 + c]", "S[c2 / 64, r2, c2 % 64]"),
              HasSubstr("threads read its elements"));
  EXPECT_THAT(use_of("A[r, t * 64 + c] + 1.0bf16", "A[r2, c2]"),
              HasSubstr("'S' of kernel 'f' is marked async=bulk, but not filled by copies"));
  EXPECT_THAT(use_of("A[r, t * 64 + c]", "A[r2, c2]", false),
              HasSubstr("outside of a pipelined loop"));
}

}  // namespace
}  // namespace tilewright::lower
