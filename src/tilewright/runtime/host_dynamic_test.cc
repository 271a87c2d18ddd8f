#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tilewright/base/rng.h"
#include "tilewright/runtime/executor.h"
#include "tilewright/runtime/host_ops.h"

namespace tilewright::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Doubles = std::vector<double>;

Array numbers(DType dtype, Shape shape, const Doubles& values) {
  return Array::of(dtype, values).reshaped(std::move(shape));
}
Array list(const Doubles& values) {
  return numbers(DType::I64, {static_cast<int64_t>(values.size())}, values);
}
Array flag(bool value) { return numbers(DType::Bool, {}, {value ? 1.0 : 0.0}); }
/// 0, 1, 2, ... in `shape`.
Array counting(Shape shape, DType dtype = DType::F32) {
  Array out(dtype, std::move(shape));
  for (int64_t i = 0; i < out.size(); ++i) out.set(i, static_cast<double>(i));
  return out;
}

Array run_one(const std::string& name, const std::string& attrs, const std::vector<Array>& inputs) {
  const auto out = run_host_op(name, attrs, inputs);
  EXPECT_TRUE(out) << to_string(out.error());
  return out ? (*out)[0] : Array(DType::F32, {0});
}
std::string refusal_of(const std::string& name, const std::string& attrs,
                       const std::vector<Array>& inputs) {
  const auto out = run_host_op(name, attrs, inputs);
  EXPECT_FALSE(out);
  return out ? "" : to_string(out.error());
}

TEST(HostDynamic, ShapeGivesExtentsFromStartToEnd) {
  const Array x = counting({2, 3, 5});
  EXPECT_THAT(run_one("Shape", "", {x}).to_ints(), ElementsAre(2, 3, 5));
  EXPECT_THAT(run_one("Shape", R"({"start": 1, "end": -1})", {x}).to_ints(), ElementsAre(3));
  EXPECT_EQ(run_one("Shape", R"({"start": 2, "end": 1})", {x}).size(), 0);
}

TEST(HostDynamic, SlicesAreThoseOfNumPy) {
  const Array x = counting({2, 5});
  const auto sliced = [&](double start, double end, double axis, double step) {
    return run_one("Slice", "", {x, list({start}), list({end}), list({axis}), list({step})});
  };
  EXPECT_THAT(sliced(1, 3, 1, 1).to_doubles(), ElementsAre(1, 2, 6, 7));
  EXPECT_THAT(sliced(-2, 100, -1, 1).to_doubles(), ElementsAre(3, 4, 8, 9));
  EXPECT_THAT(sliced(4, 0, 1, -2).to_doubles(), ElementsAre(4, 2, 9, 7));
  EXPECT_THAT(sliced(-1, -100, 0, -1).to_doubles(), ElementsAre(5, 6, 7, 8, 9, 0, 1, 2, 3, 4));
  EXPECT_EQ(sliced(3, 3, 1, 1).shape(), (Shape{2, 0}));
  EXPECT_EQ(sliced(5, 9, 1, 1).shape(), (Shape{2, 0}));
  Array least(DType::I64, {1}), most(DType::I64, {1});
  least.set_int(0, std::numeric_limits<int64_t>::min());
  most.set_int(0, std::numeric_limits<int64_t>::max());
  EXPECT_THAT(run_one("Slice", "", {x, most, least, list({0}), list({-1})}).to_doubles(),
              ElementsAre(5, 6, 7, 8, 9, 0, 1, 2, 3, 4));
  EXPECT_EQ(run_one("Slice", "", {x, list({0}), most, list({1}), most}).shape(), (Shape{2, 1}));
  EXPECT_EQ(run_one("Slice", "", {x, most, least, list({1}), least}).shape(), (Shape{2, 1}));
  EXPECT_THAT(refusal_of("Slice", "", {x, list({0}), list({1}), list({0}), list({0})}),
              HasSubstr("a step is 0"));
  EXPECT_THAT(refusal_of("Slice", "", {x, list({0}), list({1, 2})}), HasSubstr("in length"));
}

TEST(HostDynamic, GatherCountsFromBothEndsAndRefusesTheRest) {
  const Array x = counting({2, 3});
  const std::string attrs = R"({"axis": 1, "bound": [2, 2]})";
  EXPECT_THAT(run_one("Gather", attrs, {x, list({2, -3})}).to_doubles(), ElementsAre(2, 0, 5, 3));
  EXPECT_THAT(refusal_of("Gather", attrs, {x, list({0, 3})}), HasSubstr("index 3 is out of range"));
  EXPECT_THAT(refusal_of("Gather", attrs, {x, list({0, 3}), flag(true)}), HasSubstr("index 3"));
  // In a branch that is not taken nobody reads what it gives.
  EXPECT_THAT(run_one("Gather", attrs, {x, list({1, 3}), flag(false)}).to_doubles(),
              ElementsAre(1, 0, 4, 0));
  EXPECT_THAT(refusal_of("Gather", attrs, {x, list({0, 1, 2})}),
              HasSubstr("there is room for [2, 2]"));
}

TEST(HostDynamic, ConcatJoinsPartsOfAnyExtent) {
  const std::string attrs = R"({"axis": 1, "bound": [2, 9]})";
  const Array a = counting({2, 2}), none(DType::F32, {2, 0}), b = counting({2, 1});
  EXPECT_THAT(run_one("Concat", attrs, {a, none, b}).to_doubles(), ElementsAre(0, 1, 0, 2, 3, 1));
  EXPECT_THAT(refusal_of("Concat", attrs, {a, counting({1, 2})}), HasSubstr("does not fit"));
  EXPECT_THAT(refusal_of("Concat", R"({"axis": 1, "bound": [2, 2]})", {a, b}),
              HasSubstr("there is room"));
}

TEST(HostDynamic, ExpandBroadcastsAsTheDefinitionSays) {
  Rng rng(7);
  for (int round = 0; round < 300; ++round) {
    const auto rank = static_cast<size_t>(rng.between(0, 4));
    Shape full, from, asked;
    for (size_t i = 0; i < rank; ++i) {
      full.push_back(rng.between(0, 4));
      from.push_back(rng.below(2) != 0 ? 1 : full[i]);
      asked.push_back(from[i] == full[i] && rng.below(2) != 0 ? 1 : full[i]);
    }
    const auto cut = static_cast<std::ptrdiff_t>(rng.between(0, static_cast<int64_t>(rank)));
    bool ones = true;
    for (std::ptrdiff_t i = 0; i < cut; ++i) ones = ones && from[static_cast<size_t>(i)] == 1;
    if (ones) from.erase(from.begin(), from.begin() + cut);
    const DType dtype = rng.below(2) != 0 ? DType::F32 : DType::U8;
    const Array x = counting(from, dtype);
    Array shape(DType::I64, {static_cast<int64_t>(rank)});
    for (size_t i = 0; i < rank; ++i) shape.set_int(static_cast<int64_t>(i), asked[i]);
    const Array y =
        run_one("Expand", fmt::format(R"({{"bound": {}}})", to_string(full)), {x, shape});
    ASSERT_EQ(y.shape(), full);
    for (int64_t at = 0; at < y.size(); ++at) {
      int64_t rest = at, source = 0, step = 1;
      for (size_t i = rank; i-- > 0;) {
        const int64_t index = rest % full[i];
        rest /= full[i];
        const size_t missing = rank - from.size();
        if (i < missing) continue;
        source += from[i - missing] == 1 ? 0 : index * step;
        step *= from[i - missing];
      }
      ASSERT_EQ(y.get(at), x.get(source)) << to_string(from) << " to " << to_string(full);
    }
  }
  EXPECT_THAT(refusal_of("Expand", R"({"bound": [3]})", {counting({2}), list({3})}),
              HasSubstr("does not broadcast"));
  EXPECT_THAT(refusal_of("Expand", R"({"bound": [3]})", {counting({}), list({1e12})}),
              HasSubstr("there is room for [3]"));
  EXPECT_THAT(refusal_of("Expand", R"({"bound": [3]})", {counting({}), list({-1})}),
              HasSubstr("extents [-1]"));
}

TEST(HostDynamic, RangeCountsWithoutOverflow) {
  const std::string attrs = R"({"bound": [4]})";
  const auto scalar = [](int64_t v) {
    Array a(DType::I64, {});
    a.set_int(0, v);
    return a;
  };
  EXPECT_THAT(run_one("Range", attrs, {scalar(1), scalar(8), scalar(2)}).to_ints(),
              ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(run_one("Range", attrs, {scalar(3), scalar(-1), scalar(-2)}).to_ints(),
              ElementsAre(3, 1));
  EXPECT_EQ(run_one("Range", attrs, {scalar(3), scalar(1), scalar(2)}).size(), 0);
  const int64_t least = std::numeric_limits<int64_t>::min();
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(run_one("Range", attrs, {scalar(least), scalar(most), scalar(most)}).to_ints(),
              ElementsAre(least, -1, most - 1));
  EXPECT_THAT(refusal_of("Range", attrs, {scalar(least), scalar(most), scalar(1)}),
              HasSubstr("there is room for [4]"));
  EXPECT_THAT(refusal_of("Range", attrs, {scalar(0), scalar(1), scalar(0)}), HasSubstr("is 0"));
}

TEST(HostDynamic, ReshapeFindsWhatIsLeft) {
  const Array x = counting({2, 6});
  const auto shape_of = [&](const Doubles& asked, const char* bound) {
    return run_one("Reshape", fmt::format(R"({{"bound": {}}})", bound), {x, list(asked)}).shape();
  };
  EXPECT_EQ(shape_of({-1}, "[24]"), (Shape{12}));
  EXPECT_EQ(shape_of({0, -1, 3}, "[4, 2, 3]"), (Shape{2, 2, 3}));
  EXPECT_THAT(refusal_of("Reshape", R"({"bound": [24]})", {x, list({7})}), HasSubstr("become [7]"));
  EXPECT_THAT(refusal_of("Reshape", R"({"bound": [5, 5]})", {x, list({-1, -1})}),
              HasSubstr("cannot become"));
  EXPECT_THAT(refusal_of("Reshape", R"({"bound": [5, 5]})", {x, list({4e9, 4e9})}),
              HasSubstr("cannot become"));
  const Array none(DType::F32, {0, 6});
  EXPECT_EQ(run_one("Reshape", R"({"bound": [4, 3]})", {none, list({-1, 3})}).shape(),
            (Shape{0, 3}));
}

TEST(HostDynamic, PadToStaticFillsWithWhatChangesNoReduction) {
  const auto padded = [](DType dtype, const char* fill) {
    return run_one("PadToStatic",
                   fmt::format(R"({{"axis": 1, "bound": [2, 2], "fill": "{}"}})", fill),
                   {numbers(dtype, {2, 1}, {1, 1})});
  };
  const double inf = std::numeric_limits<double>::infinity();
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    EXPECT_THAT(padded(dtype, "zero").to_doubles(), ElementsAre(1, 0, 1, 0));
    EXPECT_THAT(padded(dtype, "one").to_doubles(), ElementsAre(1, 1, 1, 1));
    EXPECT_THAT(padded(dtype, "lowest").to_doubles(), ElementsAre(1, -inf, 1, -inf));
    EXPECT_THAT(padded(dtype, "highest").to_doubles(), ElementsAre(1, inf, 1, inf));
  }
  EXPECT_THAT(padded(DType::I8, "lowest").to_ints(), ElementsAre(1, -128, 1, -128));
  EXPECT_THAT(padded(DType::U16, "highest").to_ints(), ElementsAre(1, 65535, 1, 65535));
  EXPECT_EQ(padded(DType::I64, "lowest").to_ints()[1], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(padded(DType::U64, "highest").to_ints()[1], -1);  // its bits
  EXPECT_THAT(padded(DType::Bool, "highest").to_ints(), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(refusal_of("PadToStatic", R"({"bound": [1], "fill": "some"})", {counting({1})}),
              HasSubstr("no filling 'some'"));
  EXPECT_THAT(refusal_of("PadToStatic", R"({"bound": [1]})", {counting({2})}),
              HasSubstr("does not fit"));
}

TEST(HostDynamic, SelectTakesOneOfTwo) {
  const Array a = counting({2}), b = counting({3, 1});
  EXPECT_EQ(run_one("Select", "", {flag(true), a, b}).shape(), (Shape{2}));
  EXPECT_EQ(run_one("Select", "", {flag(false), a, b}).shape(), (Shape{3, 1}));
  EXPECT_THAT(refusal_of("Select", "", {a, a, b}), HasSubstr("input 0 is not one bool"));
}

TEST(HostDynamic, ACheckThatDoesNotCountRefusesNothing) {
  const std::string attrs = R"({"least": [0], "most": [1], "what": "index"})";
  EXPECT_THAT(refusal_of("CheckRange", attrs, {list({2}), flag(true)}), HasSubstr("out of range"));
  EXPECT_THAT(run_one("CheckRange", attrs, {list({2}), flag(false)}).to_ints(), ElementsAre(2));
}

TEST(HostDynamic, HandedOnWithoutTheArena) {
  // What CheckRange hands on is read after the arena's first bytes belong to somebody else.
  Program program;
  program.name = "held";
  program.values = {
      {ValueSpec::Place::Input, "x", DType::I64, {6}, 0, -1},
      {ValueSpec::Place::Arena, "found", DType::I64, {6}, 0, 0},
      {ValueSpec::Place::Arena, "checked", DType::I64, {6}, 64, 0},
      {ValueSpec::Place::Arena, "again", DType::I64, {6}, 0, 0},
      {ValueSpec::Place::Output, "both", DType::I64, {12}, 0, 0},
      {ValueSpec::Place::Arena, "seen", DType::I64, {6, 1}, 0, 0},  // a view of `again`
      {ValueSpec::Place::Output, "view", DType::I64, {6, 1}, 0, 0}};
  program.inputs = {0};
  program.outputs = {4, 6};
  program.steps = {{"unique", "", "Unique", "{}", {0, 1}, 1},
                   {"check", "", "CheckRange", R"({"least": [0], "most": [9]})", {1, 2}, 1},
                   {"unique again", "", "Unique", R"({"sorted": 1})", {2, 3}, 1},
                   {"join", "", "Concat", R"({"axis": 0, "bound": [12]})", {2, 3, 4}, 1},
                   {"show", "", "Copy", "{}", {5, 6}, 1}};
  program.arena_bytes = 128;
  for (const bool viewed : {true, false}) {
    if (!viewed) {
      program.steps.pop_back();
      program.outputs = {4};
    }
    const auto made =
        Session::create(std::make_shared<Program>(program),
                        [](const std::string&) { return nullptr; }, {}, {.threads = 1});
    ASSERT_TRUE(made) << to_string(made.error());
    Session* session = made->get();
    for (double last : {9.0, 3.0}) {
      ASSERT_TRUE(session->set_input("x", list({5, 3, 5, 3, 5, last})));
      ASSERT_TRUE(session->run());
      if (last == 9)
        EXPECT_THAT(session->get_output("both")->to_ints(), ElementsAre(3, 5, 9, 3, 5, 9));
      else
        EXPECT_THAT(session->get_output("both")->to_ints(), ElementsAre(3, 5, 3, 5));
      if (viewed) {
        EXPECT_EQ(session->get_output("view")->shape(), (Shape{last == 9 ? 3 : 2, 1}));
        EXPECT_EQ(session->get_output("view")->to_ints()[1], 5);
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::runtime
