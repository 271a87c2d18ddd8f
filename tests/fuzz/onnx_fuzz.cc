// ONNX import of arbitrary bytes: an error or a sound graph that is written and read back alike.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tilewright/graph/onnx/export.h"
#include "tilewright/graph/onnx/import.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/partition/memory.h"
#include "tilewright/graph/passes/passes.h"

namespace {

[[noreturn]] void report(const char* what, const tilewright::Error& error) {
  std::fprintf(stderr, "%s\n%s", what, tilewright::to_string(error).c_str());
  std::abort();
}

/// Graphs of this size are transformed as well; larger ones would only make the fuzzer slow.
bool is_small(const tilewright::graph::Graph& graph) {
  int64_t bytes = 0;
  for (const auto& value : graph.values)
    bytes += tilewright::graph::checked_bytes(value.type.dtype, value.type.shape).value_or(0);
  return bytes < (1 << 20);
}

/// What importing makes of extents that the run decides is not read back.
bool has_runtime_extents(const tilewright::graph::Graph& graph) {
  return std::any_of(graph.values.begin(), graph.values.end(),
                     [](const auto& value) { return value.type.dynamic_axis >= 0; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  // An empty folder name for weights would be the working directory: no file of it is wanted here.
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto imported = graph::import_onnx_bytes(bytes, "/nonexistent");
  if (!imported) return 0;
  if (const Status sound = graph::verify(*imported); !sound)
    report("the imported graph is not sound", sound.error());
  (void)graph::print(*imported);
  if (!is_small(*imported)) return 0;
  const std::string written = graph::to_onnx(*imported);
  if (!has_runtime_extents(*imported)) {
    const auto again = graph::import_onnx_bytes(written, "/nonexistent");
    if (!again) report("the exported graph does not import", again.error());
  }
  graph::PassContext context;
  context.verify_each = true;
  const auto passed = graph::run_passes(*imported, graph::default_passes(), context);
  if (!passed) report("a pass fails on a sound graph", passed.error());
  const auto groups = graph::fuse(passed->graph);
  const auto plan = graph::plan_memory(passed->graph, groups);
  if (const Status sound = graph::verify_plan(passed->graph, groups, plan); !sound)
    report("the memory plan is not sound", sound.error());
  return 0;
}
