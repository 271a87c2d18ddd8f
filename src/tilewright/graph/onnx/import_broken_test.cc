// Models with defects, and files with damage: each gives errors that name what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/base/file.h"
#include "tilewright/graph/onnx/attributes.h"
#include "tilewright/graph/testing/models.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

struct Broken {
  const char* title;
  void (*spoil)(onnx::ModelProto&);
  std::vector<const char*> says;  ///< all of these are in the message
};

const Broken kBroken[] = {
    {"unknown operator and its dependents",
     [](onnx::ModelProto& m) {
       add_node(m, "Frobnicate", {"x"}, {"f"}, "frob");
       add_node(m, "Relu", {"f"}, {"g"}, "after");
       add_node(m, "Twiddle", {"g"}, {"h"}, "twid");
     },
     {"Frobnicate", "node 'frob'", "Twiddle", "node 'twid'"}},
    {"unknown domain",
     [](onnx::ModelProto& m) { add_node(m, "Relu", {"x"}, {"z"}, "n1").set_domain("com.acme"); },
     {"com.acme", "node 'n1'"}},
    {"opset too new",
     [](onnx::ModelProto& m) { m.mutable_opset_import(0)->set_version(99); },
     {"opset 99", "--allow-newer-opset"}},
    {"opset one above the newest tested",
     [](onnx::ModelProto& m) { m.mutable_opset_import(0)->set_version(kMaxOpset + 1); },
     {"newer than the newest tested", "--allow-newer-opset"}},
    {"opset too old",
     [](onnx::ModelProto& m) { m.mutable_opset_import(0)->set_version(6); },
     {"opset 6", "version_converter"}},
    {"no opset", [](onnx::ModelProto& m) { m.clear_opset_import(); }, {"no operator set"}},
    {"only a foreign opset",
     [](onnx::ModelProto& m) { m.mutable_opset_import(0)->set_domain("com.acme"); },
     {"does not import its operator set", "node 'relu1'"}},
    {"input dtype",
     [](onnx::ModelProto& m) { add_input(m, "s", {2}, 8); },
     {"input 's'", "string"}},
    {"weight dtype",
     [](onnx::ModelProto& m) {
       auto& w = *m.mutable_graph()->add_initializer();
       w.set_name("w"), w.set_data_type(14), w.add_dims(1);
       add_node(m, "Relu", {"w"}, {"q"}, "reader");
     },
     {"weight 'w'", "complex64"}},
    {"unbound dimension",
     [](onnx::ModelProto& m) { add_input(m, "b", {-1, 3}); },
     {"input 'b' has no fixed size: its dimension 0 is called N", "--dim N=1, or --shape b:1x3"}},
    {"unbound dimensions of several inputs",
     [](onnx::ModelProto& m) {
       add_input(m, "b", {-1, 3, -2, 8});
       add_input(m, "c", {-1, 3});
       add_input(m, "d", {-2});
     },
     {"its dimension 0 is called N, its dimension 2 is called M",
      "--dim N=1 --dim M=224, or --shape b:1x3x224x8", "input 'c' has it too",
      "input 'd' has it too"}},
    {"dimension without a name",
     [](onnx::ModelProto& m) {
       add_input(m, "b", {2, 3});
       auto& type = *m.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type();
       type.mutable_shape()->mutable_dim(1)->clear_dim_value();
     },
     {"its dimension 1 has neither extent nor name", "fix: --shape b:2x16"}},
    {"operators of other domains",
     [](onnx::ModelProto& m) {
       add_node(m, "Loop", {"x"}, {"l"}, "loop1");
       add_node(m, "FusedConv", {"x"}, {"f"}, "fused1").set_domain("com.microsoft");
       add_node(m, "TreeEnsemble", {"x"}, {"t"}, "tree1").set_domain("ai.onnx.ml");
       add_node(m, "Frob", {"x"}, {"u"}, "own1").set_domain("com.acme");
       add_node(m, "Rellu", {"x"}, {"r"}, "typo1");
     },
     {"node 'loop1'", "Loop has no body", "node 'fused1'", "Conv and its activation",
      "node 'tree1'", "node 'own1'", "model function", "node 'typo1'", "did you mean Relu?"}},
    {"shapes that do not fit",
     [](onnx::ModelProto& m) {
       add_weight(m, "w", Array(DType::F32, {4, 5}));
       add_node(m, "MatMul", {"x", "w"}, {"p"}, "mm");
       add_weight(m, "v", Array(DType::F32, {7}));
       add_node(m, "Add", {"x", "v"}, {"q"}, "sum");
     },
     {"node 'mm'", "node 'sum'"}},
    {"shape that is computed from an input",
     [](onnx::ModelProto& m) {
       add_input(m, "target", {2}, 7);
       add_node(m, "Reshape", {"x", "target"}, {"r"}, "rs");
     },
     {"node 'rs'", "compile time", "input 'target'"}},
    {"circle",
     [](onnx::ModelProto& m) {
       add_node(m, "Add", {"x", "b"}, {"a"}, "first");
       add_node(m, "Relu", {"a"}, {"b"}, "second");
     },
     {"circle", "first", "second"}},
    {"node that feeds itself",
     [](onnx::ModelProto& m) { add_node(m, "Add", {"x", "a"}, {"a"}, "self"); },
     {"circle: self"}},
    {"undefined value",
     [](onnx::ModelProto& m) { add_node(m, "Relu", {"nowhere"}, {"z"}, "lost"); },
     {"'nowhere' is never defined", "node 'lost'"}},
    {"value defined twice",
     [](onnx::ModelProto& m) { add_node(m, "Relu", {"x"}, {"y"}, "again"); },
     {"'y' is defined twice", "node 'again'"}},
    {"node output with the name of an input",
     [](onnx::ModelProto& m) { add_node(m, "Relu", {"y"}, {"x"}, "shadow"); },
     {"'x' is defined twice", "node 'shadow'"}},
    {"two inputs of one name",
     [](onnx::ModelProto& m) { add_input(m, "x", {2, 3}); },
     {"two inputs are named 'x'"}},
    {"two weights of one name",
     [](onnx::ModelProto& m) {
       add_weight(m, "w", Array(DType::F32, {1}));
       add_weight(m, "w", Array(DType::F32, {1}));
     },
     {"two weights are named 'w'"}},
    {"output never produced",
     [](onnx::ModelProto& m) { add_output(m, "ghost"); },
     {"output 'ghost' is never produced"}},
    {"no output", [](onnx::ModelProto& m) { m.mutable_graph()->clear_output(); }, {"no output"}},
    {"no graph", [](onnx::ModelProto& m) { m.clear_graph(); }, {"no graph"}},
    {"missing external file",
     [](onnx::ModelProto& m) {
       auto& w = *m.mutable_graph()->add_initializer();
       w.set_name("w"), w.set_data_type(1), w.add_dims(4), w.set_data_location(1);
       auto& e = *w.add_external_data();
       e.set_key("location"), e.set_value("not_there.bin");
     },
     {"weight 'w'", "not_there.bin"}},
    {"external file outside the folder",
     [](onnx::ModelProto& m) {
       for (const char* path : {"../secret.bin", "/etc/passwd", "a/../../b", ""}) {
         auto& w = *m.mutable_graph()->add_initializer();
         w.set_name(std::string("w") + path), w.set_data_type(1), w.add_dims(4);
         w.set_data_location(1);
         auto& e = *w.add_external_data();
         e.set_key("location"), e.set_value(path);
       }
     },
     {"'../secret.bin' lies outside", "'/etc/passwd' lies outside", "'a/../../b' lies outside",
      "'' lies outside"}},
    {"raw data of the wrong size",
     [](onnx::ModelProto& m) {
       add_weight(m, "w", Array(DType::F32, {4}));
       m.mutable_graph()->mutable_initializer(0)->set_dims(0, 5);
     },
     {"weight 'w'", "16 bytes", "20"}},
    {"typed data of the wrong size",
     [](onnx::ModelProto& m) {
       auto& w = *m.mutable_graph()->add_initializer();
       w.set_name("w"), w.set_data_type(1), w.add_dims(3), w.add_float_data(1);
     },
     {"weight 'w'", "1 element,"}},
    {"huge and negative dimensions",
     [](onnx::ModelProto& m) {
       add_input(m, "big", {int64_t{1} << 40, int64_t{1} << 40});
       add_input(m, "wide", {int64_t{1} << 39});
       auto& w = *m.mutable_graph()->add_initializer();
       w.set_name("w"), w.set_data_type(1), w.add_dims(-4);
     },
     {"input 'big'", "impossible", "input 'wide'", "weight 'w'"}},
    {"values that are huge together",
     [](onnx::ModelProto& m) {
       add_input(m, "v", {int64_t{1} << 37});
       add_node(m, "Relu", {"v"}, {"v1"}, "r1");
       add_node(m, "Relu", {"v1"}, {"v2"}, "r2");
     },
     {"node 'r1'", "exceed"}},
    {"a result that is huge",
     [](onnx::ModelProto& m) {
       add_weight(m, "s", ints({int64_t{1} << 40, int64_t{1} << 30}));
       add_node(m, "ConstantOfShape", {"s"}, {"c"}, "fill");
     },
     {"node 'fill'"}},
    {"loop", [](onnx::ModelProto& m) { add_node(m, "Loop", {"x"}, {"l"}, "loop1"); }, {"Loop"}},
    {"condition that is no bool, known only at run time",
     [](onnx::ModelProto& m) {
       add_input(m, "c", {}, 7);
       add_node(m, "If", {"c"}, {"i"}, "branch");
     },
     {"node 'branch'", "run time", "input 'c'"}},
    {"sequence input",
     [](onnx::ModelProto& m) {
       auto& info = *m.mutable_graph()->add_input();
       info.set_name("q");
       info.mutable_type()->mutable_sequence_type();
     },
     {"input 'q' is a sequence"}},
    {"sparse weight",
     [](onnx::ModelProto& m) {
       onnx::SparseTensorProto& sparse = *m.mutable_graph()->add_sparse_initializer();
       sparse.mutable_values()->set_name("sp"), sparse.mutable_values()->set_data_type(8);
       add_node(m, "Relu", {"sp"}, {"q"}, "reader");
     },
     {"sparse weight 'sp'", "string"}},
    {"sparse weight of too many zeros",
     [](onnx::ModelProto& m) {
       onnx::SparseTensorProto& sparse = *m.mutable_graph()->add_sparse_initializer();
       sparse.mutable_values()->set_name("sp"), sparse.mutable_values()->set_data_type(1);
       sparse.mutable_values()->add_dims(0);
       sparse.mutable_indices()->set_data_type(7), sparse.mutable_indices()->add_dims(0);
       sparse.add_dims(1 << 30);
     },
     {"sparse weight 'sp'", "4294967296 bytes"}},
    {"functions that call each other",
     [](onnx::ModelProto& m) {
       for (const char* name : {"F", "G"}) {
         auto& f = *m.add_functions();
         f.set_name(name), f.set_domain("own"), f.add_input("i"), f.add_output("o");
         auto& call = *f.add_node() = make_node(name[0] == 'F' ? "G" : "F", {"i"}, {"o"});
         call.set_domain("own");
       }
       add_node(m, "F", {"x"}, {"z"}, "call").set_domain("own");
     },
     {"function 'own.F' calls itself", "'own.F' -> 'own.G' -> 'own.F'"}},
    {"function that is called with too much",
     [](onnx::ModelProto& m) {
       auto& f = *m.add_functions();
       f.set_name("F"), f.set_domain("own"), f.add_input("i"), f.add_output("o");
       *f.add_node() = make_node("Relu", {"i"}, {"o"});
       add_node(m, "F", {"x", "x"}, {"p", "q"}, "call").set_domain("own");
     },
     {"node 'call'", "it has 1 input and 1 output, the call 2 inputs and 2 outputs"}},
    {"attribute that is a graph, where there is none",
     [](onnx::ModelProto& m) {
       auto& a = *add_node(m, "Relu", {"x"}, {"p"}, "odd").add_attribute();
       a.set_name("body"), a.set_type(5), a.mutable_g()->set_name("g");
     },
     {"node 'odd'", "Relu has no attribute 'body'"}},
    {"condition of several values",
     [](onnx::ModelProto& m) {
       auto& w = *m.mutable_graph()->add_initializer();
       w.set_name("two"), w.set_data_type(9), w.add_dims(2), w.set_raw_data(std::string("\1\0", 2));
       add_node(m, "If", {"two"}, {"p"}, "branch");
     },
     {"node 'branch'", "not a single value"}},
    {"too many outputs",
     [](onnx::ModelProto& m) { add_node(m, "Relu", {"x"}, {"p", "q"}, "two"); },
     {"node 'two'"}},
    {"missing input",
     [](onnx::ModelProto& m) { add_node(m, "Add", {"x"}, {"p"}, "lonely"); },
     {"node 'lonely'"}},
    {"attribute that the operator does not have, in any opset",
     [](onnx::ModelProto& m) {
       auto& a = *add_node(m, "LeakyRelu", {"x"}, {"p"}, "leaky").add_attribute();
       a.set_name("alhpa"), a.set_type(1), a.set_f(0.5F);
     },
     {"node 'leaky'", "no attribute 'alhpa'", "did you mean 'alpha'?"}},
    {"attributes of other types than the operator's",
     [](onnx::ModelProto& m) {
       onnx::NodeProto& node = add_node(m, "Transpose", {"x"}, {"p"}, "turn");
       auto& perm = *node.add_attribute();
       perm.set_name("perm"), perm.set_type(2), perm.set_i(1);
       auto& axis = *add_node(m, "Softmax", {"x"}, {"q"}, "soft").add_attribute();
       axis.set_name("axis"), axis.set_type(1), axis.set_f(1.5F);
     },
     {"'perm' of Transpose is an integer instead of a list of integers", "node 'soft'",
      "'axis' of Softmax is a float instead of an integer"}},
    {"attribute tensor that is damaged",
     [](onnx::ModelProto& m) {
       auto& a = *add_node(m, "Constant", {}, {"c"}, "const1").add_attribute();
       a.set_name("value"), a.set_type(4);
       a.mutable_t()->set_data_type(1), a.mutable_t()->add_dims(1000);
       add_node(m, "Relu", {"c"}, {"q"}, "reader");
     },
     {"node 'const1'", "1000"}},
};

TEST(ImportBroken, B1_EachModelGivesAllItsDefects) {
  ASSERT_TRUE(import(sound_model()));
  for (const Broken& broken : kBroken) {
    SCOPED_TRACE(broken.title);
    onnx::ModelProto model = sound_model();
    broken.spoil(model);
    const auto graph = import(model);
    ASSERT_FALSE(graph);
    for (const char* text : broken.says) EXPECT_THAT(to_string(graph.error()), HasSubstr(text));
  }
}

TEST(ImportBroken, AttributesOfEveryOperatorAreKnown) {
  const std::vector<std::string> known = operators_with_known_attributes();
  for (const tensor::OpDef& op : tensor::all_ops())
    if (op.domain.empty()) {
      EXPECT_NE(std::find(known.begin(), known.end(), op.name), known.end()) << op.name;
    }
}

TEST(ImportBroken, B1_SeveralDefectsAreReportedTogether) {
  onnx::ModelProto model = sound_model();
  int spoiled = 0;
  for (const char* title : {"unknown operator and its dependents", "input dtype", "circle",
                            "shapes that do not fit", "missing external file"})
    for (const Broken& broken : kBroken)
      if (title == std::string(broken.title)) broken.spoil(model), ++spoiled;
  ASSERT_EQ(spoiled, 5);
  const auto graph = import(model);
  ASSERT_FALSE(graph);
  const std::string text = to_string(graph.error());
  for (const char* part : {"Frobnicate", "Twiddle", "input 's'", "circle", "'sum'"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(ImportBroken, AnOperatorIsExplainedOnceButNamedAtEveryNode) {
  onnx::ModelProto m = sound_model();
  for (const char* name : {"first", "second", "third"})
    add_node(m, "Bernoulli", {"x"}, {name}, name);
  const std::string text = to_string(import(m).error());
  for (const char* name : {"node 'first'", "node 'second'", "node 'third'"})
    EXPECT_THAT(text, HasSubstr(name));
  EXPECT_THAT(text, HasSubstr("differ in every run"));
  EXPECT_EQ(text.find("give the random"), text.rfind("give the random")) << text;
}

TEST(ImportBroken, ADimensionIsReportedOnce) {
  onnx::ModelProto m = sound_model();
  for (const char* name : {"a", "b", "c"}) add_input(m, name, {-1, 3});
  const std::string text = to_string(import(m).error());
  EXPECT_EQ(text.find("called N"), text.rfind("called N")) << text;
}

TEST(ImportBroken, EmptyCutAndDamagedFiles) {
  EXPECT_THAT(import_onnx_bytes("").error().what, HasSubstr("empty"));
  const std::string good = sound_model().SerializeAsString();
  const auto cut = import_onnx_bytes(std::string_view(good).substr(0, good.size() - 5));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().kind, ErrorKind::Parse);
  EXPECT_THAT(cut.error().why, HasSubstr("needs"));
  const auto noise = import_onnx_bytes("this is not a model at all");
  ASSERT_FALSE(noise);
  EXPECT_EQ(noise.error().kind, ErrorKind::Parse);
  EXPECT_EQ(import_onnx("/no/such/file.onnx").error().kind, ErrorKind::Io);
}

TEST(ImportBroken, OptionsThatNameNoInput) {
  ImportOptions options;
  options.shapes["nope"] = {1};
  options.constants["neither"] = Array(DType::F32, {1});
  const auto graph = import(sound_model(), options);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().kind, ErrorKind::Usage);
  EXPECT_THAT(to_string(graph.error()), HasSubstr("'neither'"));
  EXPECT_THAT(to_string(graph.error()), HasSubstr("its inputs: x"));
}

/// Byte mutations of real files: an error or a graph, never a crash.
TEST(ImportFuzzSlow, B2_MutatedModels) {
  std::vector<std::string> seeds = {sound_model().SerializeAsString()};
  for (const Broken& broken : kBroken) {
    onnx::ModelProto model = sound_model();
    broken.spoil(model);
    seeds.push_back(model.SerializeAsString());
  }
  namespace fs = std::filesystem;
  const fs::path data = "/usr/share/libonnx-testdata/data/node";
  std::vector<fs::path> files;
  if (fs::exists(data))
    for (const auto& entry : fs::directory_iterator(data)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files)
    if (const auto bytes = read_file((file / "model.onnx").string())) seeds.push_back(*bytes);
  Rng rng(2024);
  int imported = 0;
  for (int round = 0; round < 10000; ++round) {
    std::string bytes = seeds[static_cast<size_t>(rng.below(std::ssize(seeds)))];
    const int64_t edits = rng.between(1, 4);
    for (int64_t e = 0; e < edits && !bytes.empty(); ++e) {
      const auto at = static_cast<size_t>(rng.below(std::ssize(bytes)));
      switch (rng.below(4)) {
        case 0:
          bytes[at] = static_cast<char>(rng.below(256));
          break;
        case 1:
          bytes.erase(at, static_cast<size_t>(rng.between(1, 8)));
          break;
        case 2:
          bytes.insert(at, 1, static_cast<char>(rng.below(256)));
          break;
        default:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.below(8)));
      }
    }
    ImportOptions options;
    if (round % 2 == 0) options.evaluate = interp_evaluate;
    const auto graph = import_onnx_bytes(bytes, testing::TempDir(), options);
    if (!graph) {
      EXPECT_FALSE(graph.error().what.empty());
      continue;
    }
    ++imported;
    const Status sound = verify(*graph);
    EXPECT_TRUE(sound) << "round " << round << "\n" << to_string(sound.error());
  }
  EXPECT_GT(imported, 50);
}

}  // namespace
}  // namespace tilewright::graph
