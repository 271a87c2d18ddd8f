// Rearranging operators against index arithmetic written out by hand.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "tilewright/tensor/ops/movement_testing.h"

namespace tilewright::tensor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Shape reshaped(const Shape& from, const std::vector<int64_t>& to, bool allow_zero = false) {
  const Array x = iota(from);
  const auto y = run("Reshape", {{"allowzero", int64_t{allow_zero}}}, {x, known(ints(to))});
  if (y.empty()) return {};
  // Row-major order is kept: the elements are still 0, 1, 2, ...
  for (int64_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[0].get(i), static_cast<double>(i));
  return y[0].shape();
}

TEST(Reshape, Shapes) {
  EXPECT_THAT(reshaped({2, 3, 4}, {6, 4}), ElementsAre(6, 4));
  EXPECT_THAT(reshaped({2, 3, 4}, {4, 3, 2}), ElementsAre(4, 3, 2));
  EXPECT_THAT(reshaped({2, 3, 4}, {0, -1}), ElementsAre(2, 12));
  EXPECT_THAT(reshaped({2, 1, 3, 5}, {1, 6, -1, 1}), ElementsAre(1, 6, 5, 1));
  EXPECT_THAT(reshaped({6, 35}, {2, 15, 7}), ElementsAre(2, 15, 7));
  EXPECT_THAT(reshaped({1, 1}, {}), ElementsAre());
  EXPECT_THAT(reshaped({}, {1, 1}), ElementsAre(1, 1));
  EXPECT_THAT(reshaped({0, 3}, {3, 0}, true), ElementsAre(3, 0));
}

TEST(Reshape, BadShapes) {
  const Array x = iota({2, 3});
  EXPECT_THAT(error_of("Reshape", {}, {x, known(ints({-1, -1}))}), HasSubstr("more than one"));
  EXPECT_THAT(error_of("Reshape", {}, {x, known(ints({4, -1}))}), HasSubstr("multiples of 4"));
  EXPECT_THAT(error_of("Reshape", {}, {x, known(ints({7}))}), HasSubstr("has 7"));
  EXPECT_THAT(error_of("Reshape", {}, {x, known(ints({2, 3, 0}))}), HasSubstr("axis 2"));
  EXPECT_THAT(error_of("Reshape", {}, {x, known(ints({-2, 3}))}), HasSubstr("negative"));
  EXPECT_THAT(error_of("Reshape", {}, {x, known(ints({int64_t{1} << 40, int64_t{1} << 40}))}),
              HasSubstr("differ"));
  EXPECT_THAT(error_of("Reshape", {}, {x, ints({6})}), HasSubstr("compile time"));
}

TEST(Reshape, Relatives) {
  const Array x = iota({2, 1, 3, 1});
  auto shape = [&](const char* op, std::map<std::string, AttrValue> attrs,
                   std::vector<int64_t> axes) {
    std::vector<Given> in{x};
    if (!axes.empty()) in.push_back(known(ints(axes)));
    const auto y = run(op, std::move(attrs), in);
    return y.empty() ? Shape{} : y[0].shape();
  };
  EXPECT_THAT(shape("Flatten", {{"axis", int64_t{2}}}, {}), ElementsAre(2, 3));
  EXPECT_THAT(shape("Flatten", {{"axis", int64_t{-1}}}, {}), ElementsAre(6, 1));
  EXPECT_THAT(shape("Flatten", {{"axis", int64_t{0}}}, {}), ElementsAre(1, 6));
  EXPECT_THAT(shape("Squeeze", {}, {}), ElementsAre(2, 3));
  EXPECT_THAT(shape("Squeeze", {}, {-3}), ElementsAre(2, 3, 1));
  EXPECT_THAT(shape("Unsqueeze", {}, {0, -1}), ElementsAre(1, 2, 1, 3, 1, 1));
  EXPECT_THAT(error_of("Squeeze", {}, {x, known(ints({0}))}), HasSubstr("2 elements"));
  EXPECT_THAT(error_of("Unsqueeze", {}, {x, known(ints({1, 1}))}), HasSubstr("twice"));
  EXPECT_THAT(error_of("Flatten", {{"axis", int64_t{5}}}, {x}), HasSubstr("rank 4"));
}

TEST(Transpose, AllPermutations) {
  const Array x = iota({2, 3, 4}, DType::I32);
  std::vector<int64_t> perm{0, 1, 2};
  do {
    const auto y = run("Transpose", {{"perm", perm}}, {x});
    Shape shape;
    for (const int64_t p : perm) shape.push_back(x.shape()[static_cast<size_t>(p)]);
    expect_elements(y[0], shape, [&](const Shape& i) {
      Shape from(3);
      for (size_t k = 0; k < 3; ++k) from[static_cast<size_t>(perm[k])] = i[k];
      return at(x, from);
    });
  } while (std::next_permutation(perm.begin(), perm.end()));
  EXPECT_THAT(run("Transpose", {}, {x})[0].shape(), ElementsAre(4, 3, 2));
  EXPECT_THAT(error_of("Transpose", {{"perm", std::vector<int64_t>{0, 1}}}, {x}),
              HasSubstr("2 axes"));
}

TEST(Concat, PartsAndBack) {
  const std::vector<int64_t> sizes{2, 1, 0, 3, 1};
  std::vector<Given> parts;
  for (size_t i = 0; i < sizes.size(); ++i) parts.emplace_back(random({2, sizes[i], 3}, i));
  const auto joined = run("Concat", {{"axis", int64_t{-2}}}, parts);
  expect_elements(joined[0], {2, 7, 3}, [&](const Shape& i) {
    int64_t row = i[1];
    size_t part = 0;
    while (row >= sizes[part]) row -= sizes[part++];
    return at(parts[part].value, {i[0], row, i[2]});
  });
  const auto back = run("Split", {{"axis", int64_t{1}}}, {joined[0], known(ints(sizes))}, 5);
  for (size_t i = 0; i < sizes.size(); ++i) EXPECT_TRUE(identical(back[i], parts[i].value));
  EXPECT_THAT(error_of("Concat", {{"axis", int64_t{0}}}, {iota({2, 3}), iota({2, 4})}),
              HasSubstr("[2, 4]"));
  EXPECT_THAT(error_of("Concat", {{"axis", int64_t{0}}}, {iota({2}), iota({2}, DType::I8)}),
              HasSubstr("i8"));
}

TEST(Split, EqualParts) {
  const Array x = iota({7});
  const auto y = run("Split", {{"num_outputs", int64_t{3}}}, {x}, 3);
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(0, 1, 2));
  EXPECT_THAT(y[1].to_doubles(), ElementsAre(3, 4, 5));
  EXPECT_THAT(y[2].to_doubles(), ElementsAre(6));
  EXPECT_THAT(error_of("Split", {}, {x, known(ints({3, 3}))}, 2), HasSubstr("7 elements"));
  EXPECT_THAT(error_of("Split", {{"num_outputs", int64_t{3}}}, {x}, 2), HasSubstr("3 parts"));
}

// The rule of the ONNX document, one element at a time.
std::vector<double> naive_slice(int64_t n, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += n;
  if (end < 0) end += n;
  start = std::clamp<int64_t>(start, 0, step > 0 ? n : n - 1);
  end = std::clamp<int64_t>(end, step > 0 ? 0 : -1, step > 0 ? n : n - 1);
  std::vector<double> out;
  for (int64_t i = start; step > 0 ? i < end : i > end; i += step)
    out.push_back(static_cast<double>(i));
  return out;
}

TEST(Slice, AllOfOneAxis) {
  const Array x = iota({4});
  for (const int64_t step : {1, 2, 3, -1, -2, -5})
    for (int64_t start = -6; start <= 6; start += 2)
      for (int64_t end = -7; end <= 6; ++end) {
        const auto y = run(
            "Slice", {},
            {x, known(ints({start})), known(ints({end})), known(ints({0})), known(ints({step}))});
        ASSERT_EQ(y[0].to_doubles(), naive_slice(4, start, end, step))
            << start << ":" << end << ":" << step;
      }
}

TEST(Slice, SeveralAxesAndExtremes) {
  const Array x = iota({3, 4, 5});
  const auto y =
      run("Slice", {},
          {x, known(ints({-1, 1}, DType::I32)), known(ints({INT32_MIN, INT32_MAX}, DType::I32)),
           known(ints({-1, 0}, DType::I32)), known(ints({-2, 1}, DType::I32))});
  expect_elements(y[0], {2, 4, 3},
                  [&](const Shape& i) { return at(x, {i[0] + 1, i[1], 4 - 2 * i[2]}); });
  const auto huge = run(
      "Slice", {},
      {x, known(ints({0})), known(ints({INT64_MAX})), known(ints({2})), known(ints({INT64_MAX}))});
  EXPECT_THAT(huge[0].shape(), ElementsAre(3, 4, 1));
  EXPECT_THAT(error_of("Slice", {},
                       {x, known(ints({0})), known(ints({1})), known(ints({0})), known(ints({0}))}),
              HasSubstr("step"));
  EXPECT_THAT(error_of("Slice", {}, {x, known(ints({0, 0})), known(ints({1}))}),
              HasSubstr("length"));
}

TEST(Expand, Broadcasts) {
  const Array x = iota({3, 1});
  const auto y = run("Expand", {}, {x, known(ints({2, 1, 4}))});
  expect_elements(y[0], {2, 3, 4}, [](const Shape& i) { return static_cast<double>(i[1]); });
  EXPECT_THAT(error_of("Expand", {}, {x, known(ints({2, 4}))}), HasSubstr("[2, 4]"));
  EXPECT_THAT(error_of("Expand", {}, {x, known(ints({int64_t{1} << 30, 3, int64_t{1} << 30}))}),
              HasSubstr("too large"));
}

TEST(Tile, Repeats) {
  const Array x = iota({2, 1, 3});
  const auto y = run("Tile", {}, {x, known(ints({1, 4, 2}))});
  expect_elements(y[0], {2, 4, 6}, [&](const Shape& i) { return at(x, {i[0], 0, i[2] % 3}); });
  EXPECT_THAT(run("Tile", {}, {x, known(ints({0, 1, 1}))})[0].shape(), ElementsAre(0, 1, 3));
  EXPECT_THAT(error_of("Tile", {}, {x, known(ints({1, 1}))}), HasSubstr("rank 3"));
}

TEST(DepthToSpace, BothModesAndBack) {
  const Array x = iota({2, 8, 2, 3});
  for (const std::string mode : {"DCR", "CRD"}) {
    const auto y = run("DepthToSpace", {{"blocksize", int64_t{2}}, {"mode", mode}}, {x});
    expect_elements(y[0], {2, 2, 4, 6}, [&](const Shape& i) {
      const int64_t place = i[2] % 2 * 2 + i[3] % 2;
      const int64_t c = mode == "DCR" ? place * 2 + i[1] : i[1] * 4 + place;
      return at(x, {i[0], c, i[2] / 2, i[3] / 2});
    });
    const auto back = run("SpaceToDepth", {{"blocksize", int64_t{2}}, {"mode", mode}}, {y[0]});
    EXPECT_TRUE(identical(back[0], x)) << mode;
  }
  EXPECT_THAT(error_of("DepthToSpace", {{"blocksize", int64_t{3}}}, {x}), HasSubstr("8 channels"));
  EXPECT_THAT(error_of("SpaceToDepth", {{"blocksize", int64_t{2}}}, {x}), HasSubstr("2 x 3"));
}

// --- Indices.

TEST(Gather, AxesAndNegativeIndices) {
  const Array x = iota({3, 4, 2});
  const Array indices = array(DType::I32, {2, 2}, {0, -1, 2, -4});
  const int64_t real[] = {0, 3, 2, 0};
  for (const bool constant : {false, true}) {
    const auto y = run("Gather", {{"axis", int64_t{1}}}, {x, Given(indices, constant)});
    expect_elements(y[0], {3, 2, 2, 2},
                    [&](const Shape& i) { return at(x, {i[0], real[i[1] * 2 + i[2]], i[3]}); });
  }
  const auto row = run("Gather", {}, {x, known(array(DType::I64, {}, {-1}))});
  expect_elements(row[0], {4, 2}, [&](const Shape& i) { return at(x, {2, i[0], i[1]}); });
}

TEST(Gather, IndicesOutOfRange) {
  const Array x = iota({3});
  EXPECT_THAT(error_of("Gather", {}, {x, known(ints({0, 3}))}), HasSubstr("index 3"));
  EXPECT_THAT(error_of("Gather", {}, {x, iota({2})}), HasSubstr("integer"));
  EXPECT_THAT(error_of("Gather", {{"axis", int64_t{1}}}, {x, ints({0})}), HasSubstr("rank 1"));
  // At run time nothing is read outside: the nearest element is taken.
  EXPECT_THAT(run("Gather", {}, {x, ints({9, -9, 1})})[0].to_doubles(), ElementsAre(2, 0, 1));
}

TEST(GatherElements, TakesAlongAnAxis) {
  const Array x = iota({3, 4});
  const Array indices = array(DType::I64, {2, 5}, {0, 1, 2, 3, -1, -4, 0, 0, 2, 1});
  const auto y = run("GatherElements", {{"axis", int64_t{-1}}}, {x, indices});
  expect_elements(y[0], {2, 5}, [&](const Shape& i) {
    const auto k = static_cast<int64_t>(at(indices, i));
    return at(x, {i[0], k < 0 ? k + 4 : k});
  });
  EXPECT_THAT(
      error_of("GatherElements", {{"axis", int64_t{1}}}, {x, array(DType::I64, {4, 1}, {0})}),
      HasSubstr("[4, 1]"));
}

TEST(GatherND, TuplesAndBatches) {
  const Array x = iota({2, 3, 4});
  const Array tuples = array(DType::I64, {3, 2}, {0, -1, 1, 0, -1, -2});
  const auto y = run("GatherND", {}, {x, tuples});
  const int64_t first[] = {0, 1, 1}, second[] = {2, 0, 1};
  expect_elements(y[0], {3, 4},
                  [&](const Shape& i) { return at(x, {first[i[0]], second[i[0]], i[1]}); });
  const Array batched = array(DType::I64, {2, 2, 1}, {2, 0, 1, -1});
  const auto z = run("GatherND", {{"batch_dims", int64_t{1}}}, {x, batched});
  const int64_t rows[] = {2, 0, 1, 2};
  expect_elements(z[0], {2, 2, 4},
                  [&](const Shape& i) { return at(x, {i[0], rows[i[0] * 2 + i[1]], i[2]}); });
  EXPECT_THAT(error_of("GatherND", {}, {x, array(DType::I64, {1, 4}, {0})}),
              HasSubstr("4 elements"));
  EXPECT_THAT(error_of("GatherND", {{"batch_dims", int64_t{2}}}, {x, ints({0})}),
              HasSubstr("batch_dims is 2"));
}

TEST(OneHot, AxesAndNegativeIndices) {
  const Array indices = array(DType::I32, {2, 2}, {0, -1, 5, -4});
  for (const int64_t axis : {-1, 0, 1}) {
    const auto y = run("OneHot", {{"axis", axis}},
                       {indices, known(ints({3})), array(DType::F32, {2}, {2, 7})});
    Shape shape{2, 2};
    const int64_t where = axis < 0 ? 2 : axis;
    shape.insert(shape.begin() + where, 3);
    expect_elements(y[0], shape, [&](const Shape& i) {
      Shape from = i;
      from.erase(from.begin() + where);
      const double k = at(indices, from),
                   place = static_cast<double>(i[static_cast<size_t>(where)]);
      return k == place || k + 3 == place ? 7 : 2;
    });
  }
  for (const Array& depth : {ints({0}), ints({std::numeric_limits<int64_t>::max()}),
                             array(DType::F32, {1}, {std::numeric_limits<double>::quiet_NaN()})})
    EXPECT_THAT(error_of("OneHot", {}, {indices, known(depth), ints({0, 1})}),
                HasSubstr("one positive number"));
}

TEST(ReverseSequence, PerBatchLengths) {
  const Array x = iota({4, 3, 2});
  const Array lengths = ints({4, 1, 3});
  const auto y = run("ReverseSequence", {}, {x, lengths});
  expect_elements(y[0], x.shape(), [&](const Shape& i) {
    const int64_t n = lengths.get_int(i[1]);
    return at(x, {i[0] < n ? n - 1 - i[0] : i[0], i[1], i[2]});
  });
  EXPECT_THAT(error_of("ReverseSequence", {{"time_axis", int64_t{1}}}, {x, lengths}),
              HasSubstr("batch_axis"));
}

TEST(Trilu, UpperAndLower) {
  const Array x = random({2, 3, 4}, 3);
  for (const int64_t upper : {0, 1})
    for (int64_t k = -3; k <= 4; ++k)
      for (const bool constant : {false, true}) {
        const auto y = run("Trilu", {{"upper", upper}},
                           {x, Given(array(DType::I64, {}, {static_cast<double>(k)}), constant)});
        expect_elements(y[0], x.shape(), [&](const Shape& i) {
          const bool kept = upper ? i[2] - i[1] >= k : i[2] - i[1] <= k;
          return kept ? at(x, i) : 0;
        });
      }
}

}  // namespace
}  // namespace tilewright::tensor::testing
