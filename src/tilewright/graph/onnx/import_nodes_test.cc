// Every model of Debian's ONNX test data: imported, or refused with a reason that names a node.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tilewright_onnx.pb.h>

#include <algorithm>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/graph/onnx/export.h"
#include "tilewright/graph/onnx/import.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

namespace fs = std::filesystem;
namespace onnx = tilewright_onnx;
const char* const kData = "/usr/share/libonnx-testdata/data";

/// The inputs that come with a case, by name.
std::map<std::string, Array> test_inputs(const fs::path& model) {
  std::map<std::string, Array> arrays;
  const auto bytes = read_file(model.string());
  onnx::ModelProto proto;
  proto.ParseFromString(*bytes);
  for (int i = 0; i < proto.graph().input_size(); ++i) {
    const fs::path file = model.parent_path() / fmt::format("test_data_set_0/input_{}.pb", i);
    if (!fs::exists(file)) continue;
    if (const auto array = read_onnx_tensor(file.string()))
      arrays[proto.graph().input(i).name()] = *array;
  }
  return arrays;
}

TEST(ImportNodesSlow, B2_EveryCaseImportsOrSaysWhyNot) {
  if (!fs::exists(kData)) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<fs::path> models;
  for (const char* set : {"node", "simple", "pytorch-operator", "pytorch-converted"})
    for (const auto& entry : fs::directory_iterator(fs::path(kData) / set))
      if (fs::exists(entry.path() / "model.onnx")) models.push_back(entry.path() / "model.onnx");
  std::sort(models.begin(), models.end());
  std::map<std::string, int> reasons;
  int imported = 0, node_models = 0, node_imported = 0;
  for (const fs::path& model : models) {
    const bool node_case = model.string().find("/node/") != std::string::npos;
    node_models += node_case;
    ImportOptions options;
    options.evaluate = interp_evaluate;
    options.constants_if_needed = test_inputs(model);
    const auto graph = import_onnx(model.string(), options);
    if (graph) {
      ++imported;
      node_imported += node_case;
      const Status sound = verify(*graph);
      EXPECT_TRUE(sound) << model << "\n" << (sound ? "" : to_string(sound.error()));
      // What is written must read back as the same graph.
      ImportOptions plain;
      const auto again = import_onnx_bytes(to_onnx(*graph), ".", plain);
      EXPECT_TRUE(again) << model << "\n" << (again ? "" : to_string(again.error()));
      if (again) {
        EXPECT_EQ(print(*again), print(*graph)) << model;
      }
      continue;
    }
    EXPECT_FALSE(graph.error().what.empty()) << model;
    EXPECT_NE(graph.error().place.find(model.string()), std::string::npos) << model;
    std::string reason = graph.error().what;
    if (getenv("TILEWRIGHT_LIST_IMPORTS") != nullptr)
      fmt::print("{}: {} ({})\n", model.parent_path().filename().string(), reason,
                 graph.error().why);
    ++reasons[reason];
  }
  fmt::print("imported {} of {} models, {} of {} node cases\n", imported, models.size(),
             node_imported, node_models);
  for (const auto& [reason, count] : reasons) fmt::print("{:5} {}\n", count, reason);
  EXPECT_EQ(node_models, 932);
  EXPECT_GE(node_imported, 735);
}

}  // namespace
}  // namespace tilewright::graph
