// The Program of a compiled graph: values with their places, and the steps to run.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/compile/compile.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/partition/memory.h"

namespace tilewright::compile {

/// Distinct kernels: equal Funcs (names apart) share one symbol.
class KernelTable {
 public:
  /// The symbol of `func`, for the step `name`.
  std::string add(Func func, const std::string& name);
  std::vector<KernelReport>& kernels() { return kernels_; }

 private:
  std::map<std::string, size_t> by_text_;
  std::vector<KernelReport> kernels_;
};

/// Weights laid out one after the other; the same bytes under two value ids are stored once.
class WeightTable {
 public:
  /// Byte offset of the value in weights.bin.
  int64_t add(const Array& value);
  int64_t total() const { return total_; }
  std::vector<std::pair<int64_t, Array>> take() { return std::move(pieces_); }

 private:
  std::map<std::pair<const void*, int64_t>, int64_t> by_data_;
  std::vector<std::pair<int64_t, Array>> pieces_;
  int64_t total_ = 0;
};

/// Makes the code of a launch and says under which name; handed in by who knows the device.
using CompileLaunch = std::function<Result<std::string>(const graph::Group& launch)>;

/// The form of a kernel that rules get to see.
using KernelForm = std::function<Func(const Func&)>;

/// Builds the Program of one graph. The referenced objects must outlive the builder.
class ProgramBuilder {
 public:
  ProgramBuilder(const graph::Graph& graph, const std::vector<graph::Group>& groups, MathMode math,
                 KernelForm form, CompileLaunch compile_launch);
  /// errors: what groups cannot express, with the node; what `compile_launch` reports.
  Status build(runtime::Program& program, KernelTable& kernels, WeightTable& weights);

 private:
  std::set<graph::ValueId> named_values() const;
  void add_values(runtime::Program& program, WeightTable& weights);
  static void show(runtime::Program& program, graph::ValueId view, graph::ValueId source);
  void add_alias(runtime::Program& program, const graph::Group& group) const;
  void add_host(runtime::Program& program, const graph::Group& group);
  Status add_kernel(runtime::Program& program, const graph::Group& group, KernelTable& kernels,
                    WeightTable& weights);
  Status add_launch(runtime::Program& program, const graph::Group& group);

  const graph::Graph& graph_;
  const std::vector<graph::Group>& groups_;
  MathMode math_;
  KernelForm form_;
  CompileLaunch compile_launch_;
  graph::MemoryPlan plan_;
};

}  // namespace tilewright::compile
