#include "tilewright/driver/tuning/conv_forms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/base/process.h"
#include "tilewright/compile/conv_record.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/graph/ir/builder.h"
#include "tilewright/records/sqlite/sqlite.h"
#include "tilewright/rules/cpu/conv_algorithm.h"

namespace tilewright::driver {
namespace {

using Ints = std::vector<int64_t>;

Array ones(const Shape& shape) {
  Array values(DType::F32, shape);
  std::fill_n(static_cast<float*>(values.data()), element_count(shape), 1.0F);
  return values;
}

/// A convolution of 3x3 windows over planes of `size`, then a rectifier.
graph::Graph network(int64_t channels, int64_t size) {
  graph::Builder b("net");
  const graph::ValueId x = b.input("x", DType::F32, {1, channels, size, size});
  const graph::ValueId w = b.constant("w", ones({channels, channels, 3, 3}));
  const graph::ValueId y = b.node("Conv", {x, w}, {{"pads", Ints{1, 1, 1, 1}}});
  b.output(b.node("Relu", {y}), "y");
  const auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *graph;
}

/// The tile of the one Winograd convolution; 0 without one.
int64_t tile_in(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes)
    if (node.op == "WinogradConvBlocked") return node.attrs.get_int("m", 0);
  return 0;
}

compile::CompiledModel plan(const graph::Graph& graph, const compile::CompileOptions& options) {
  auto model = compile::plan_graph(graph, options);
  EXPECT_TRUE(model) << to_string(model.error());
  return *std::move(model);
}

const tensor::Conv2dShape kConv{1, 32, 32, 14, 14};

TEST(ConvForms, RecordsSayWhichForm) {
  const compile::CompileOptions options;
  for (const int64_t m : {0, 2, 4}) {
    const records::Record record = form_record(kConv, m, options, 5e3);
    EXPECT_EQ(compile::form_in(record), m);
    EXPECT_EQ(record.workload, compile::conv_key(kConv));
    EXPECT_EQ(record.name, "conv 1x32->32 of 14x14, window 3x3");
    EXPECT_EQ(find_form({record})(kConv), record);
  }
  tensor::Conv2dShape wider = kConv;
  wider.width = 15;
  EXPECT_FALSE(find_form({form_record(kConv, 2, options, 1)})(wider));
}

TEST(ConvForms, OtherRecordsSayNothing) {
  records::Record record = form_record(kConv, 2, {}, 1);
  for (const char* point : {"", "constructive: rows 4", "algorithm: fft", "algorithm: winograd x",
                            "algorithm: winograd -2", "algorithm: winograd 2 "}) {
    record.point = point;
    EXPECT_FALSE(compile::form_in(record)) << point;
  }
  record = form_record(kConv, 2, {}, 1);
  record.kind = records::kScheduleKind;
  EXPECT_FALSE(compile::form_in(record));
}

TEST(ConvForms, CompilersFollowRecords) {
  const graph::Graph graph = network(32, 14);
  compile::CompileOptions options;
  hw::CpuTarget cpu = hw::host();
  cpu.vector_bytes = 64;
  options.target = hw::as_target(cpu);
  std::vector<int64_t> forms = rules::winograd_tiles(kConv);
  ASSERT_GE(forms.size(), 2u);
  forms.push_back(0);
  for (const int64_t m : forms) {
    options.form = find_form({form_record(kConv, m, options, 1)});
    const compile::CompiledModel model = plan(graph, options);
    EXPECT_EQ(tile_in(model.graph), m);
    ASSERT_EQ(model.forms.size(), 1u) << "of " << m;
    EXPECT_EQ(compile::form_in(model.forms[0]), m);
  }
}

TEST(ConvForms, FormsThatDoNotExistAreLeftToTheModel) {
  const graph::Graph graph = network(32, 14);
  compile::CompileOptions options;
  const int64_t usual = tile_in(plan(graph, options).graph);
  options.form = find_form({form_record(kConv, 40, options, 1)});
  const compile::CompiledModel model = plan(graph, options);
  EXPECT_EQ(tile_in(model.graph), usual);
  EXPECT_TRUE(model.forms.empty());
  options.direct = true;
  options.form = find_form({form_record(kConv, 2, options, 1)});
  EXPECT_EQ(tile_in(plan(graph, options).graph), 0) << "although --direct forbids it";
}

TEST(ConvForms, StoresKeepThem) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/records.sqlite";
  auto store = records::open_store(path);
  ASSERT_TRUE(store) << to_string(store.error());
  compile::CompileOptions options;
  options.threads = 2;
  // The last race counts, not the cheapest.
  ASSERT_TRUE((*store)->add(form_record(kConv, 4, options, 10)));
  ASSERT_TRUE((*store)->add(form_record(kConv, 0, options, 20)));
  const auto answers = stored_records(path, {cpu_key(options.cpu(), 2)});
  ASSERT_TRUE(answers) << to_string(answers.error());
  ASSERT_TRUE(answers->forms(kConv));
  EXPECT_EQ(compile::form_in(*answers->forms(kConv)), 0);
  const auto others = stored_records(path, {cpu_key(options.cpu(), 1)});
  ASSERT_TRUE(others);
  EXPECT_FALSE(others->forms(kConv)) << "of other threads";
}

TEST(ConvForms, OtherTilesAreWorthATry) {
  const compile::CompileOptions options;
  size_t most = 0;
  for (const tensor::Conv2dShape& conv :
       {tensor::Conv2dShape{1, 16, 16, 8, 8}, kConv, tensor::Conv2dShape{1, 64, 64, 56, 56},
        tensor::Conv2dShape{1, 512, 512, 7, 7}}) {
    const auto time = [&](int64_t m) {
      return rules::predict_conv(conv, m, options.cpu(), options.threads).total();
    };
    const int64_t usual = rules::winograd_tile(conv, options.cpu(), options.threads);
    const std::vector<int64_t> tiles = other_tiles(conv, usual, options);
    most = std::max(most, tiles.size());
    for (size_t i = 0; i < tiles.size(); ++i) {
      EXPECT_NE(tiles[i], usual) << compile::conv_text(conv);
      EXPECT_LT(time(tiles[i]), 1.6 * time(usual)) << compile::conv_text(conv);
      EXPECT_LE(time(tiles[i == 0 ? 0 : i - 1]), time(tiles[i])) << "the fastest come first";
    }
    // What the model finds nearly as fast takes part, whatever the algorithm.
    for (const int64_t m : rules::winograd_tiles(conv)) {
      const bool near = m != usual && time(m) < 1.29 * time(usual);
      const bool chosen = std::find(tiles.begin(), tiles.end(), m) != tiles.end();
      EXPECT_TRUE(chosen || !near) << compile::conv_text(conv) << ": " << compile::form_name(m);
    }
  }
  EXPECT_GT(most, 0u);
}

TEST(ConvForms, EachOtherFormIsCompiledAndFound) {
  // Few channels: no form is far ahead.
  const tensor::Conv2dShape conv{1, 16, 16, 8, 8};
  Subject subject;
  subject.graph = network(16, 8);
  compile::CompileOptions options;
  const int64_t usual = rules::winograd_tile(conv, options.cpu(), options.threads);
  const std::vector<int64_t> tiles = other_tiles(conv, usual, options);
  ASSERT_FALSE(tiles.empty());
  const auto rule = compile_subject(subject, options);
  ASSERT_TRUE(rule) << to_string(rule.error());
  EXPECT_EQ(tile_in(rule->graph), usual);
  for (size_t rank = 0; rank < tiles.size(); ++rank) {
    const auto forms = compile_other_forms(subject, *rule, {conv, conv}, rank, options);
    ASSERT_TRUE(forms) << to_string(forms.error());
    ASSERT_TRUE(*forms);
    const OtherForms& other = **forms;
    ASSERT_EQ(other.convs.size(), 1u);
    EXPECT_EQ(other.convs[0].rule, usual);
    EXPECT_EQ(other.convs[0].other, tiles[rank]);
    EXPECT_EQ(tile_in(other.compiled.graph), tiles[rank]);
    ASSERT_EQ(other.convs[0].nodes.size(), 1u);
    EXPECT_TRUE(computes(other, *other.convs[0].nodes.begin()));
  }
  const auto beyond = compile_other_forms(subject, *rule, {conv}, tiles.size(), options);
  ASSERT_TRUE(beyond);
  EXPECT_FALSE(*beyond);
  const auto nothing = compile_other_forms(subject, *rule, {}, 0, options);
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
}

TEST(ConvForms, TimesCountWhatStandsAround) {
  ConvForms conv;
  conv.nodes = {"conv", "last"};
  const std::map<std::string, double> steps = {
      {"conv", 1}, {"conv/SpaceToBatch", 2}, {"conv2", 4}, {"last", 8}, {"x/conv", 16}};
  EXPECT_EQ(time_of(conv, steps), 11);
}

}  // namespace
}  // namespace tilewright::driver
