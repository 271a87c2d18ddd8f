#include "tilewright/compile/vta/launch.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string_view>

#include "tilewright/base/check.h"
#include "tilewright/codegen/vta/vta.h"
#include "tilewright/graph/partition/moves.h"
#include "tilewright/ir/text.h"
#include "tilewright/rules/vta/mapping_space.h"
#include "tilewright/rules/vta/schedule.h"

namespace tilewright::compile {
namespace {

constexpr uint64_t kPageAlign = 4096;  // a page: every element size divides it

std::string_view bytes_of(const Array& array) {
  return {static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes())};
}

/// Gives every value of a launch its place in DRAM.
class Placer {
 public:
  Placer(const graph::Graph& graph, vta::Builder& builder) : graph_(graph), builder_(builder) {}

  /// Address of a value, allocated (and filled, if constant) when first asked for.
  Result<uint64_t> address(graph::ValueId id) {
    if (const auto it = addresses_.find(id); it != addresses_.end()) return it->second;
    const graph::Value& value = graph_.values[static_cast<size_t>(id)];
    const auto bytes =
        static_cast<uint64_t>(storage_bytes(value.type.dtype, element_count(value.type.shape)));
    const uint64_t at = TW_TRY(builder_.allocate(value.name, bytes, kPageAlign));
    if (value.constant) builder_.write(at, bytes_of(*value.constant));
    return addresses_[id] = at;
  }
  void place(graph::ValueId id, uint64_t at) { addresses_[id] = at; }
  bool placed(graph::ValueId id) const { return addresses_.contains(id); }

  /// A constant table that belongs to an operator, not to the graph.
  Result<uint64_t> table(const std::string& name, const Array& values) {
    const uint64_t at =
        TW_TRY(builder_.allocate(name, static_cast<uint64_t>(values.bytes()), kPageAlign));
    builder_.write(at, bytes_of(values));
    return at;
  }

  vta::Region region(graph::ValueId id) const {
    const graph::Value& value = graph_.values[static_cast<size_t>(id)];
    return {
        value.name, addresses_.at(id),
        static_cast<uint64_t>(storage_bytes(value.type.dtype, element_count(value.type.shape)))};
  }

 private:
  const graph::Graph& graph_;
  vta::Builder& builder_;
  std::map<graph::ValueId, uint64_t> addresses_;
};

/// All that decides how a layer is compiled: its definition without the name, hardware, options.
std::string memo_key(Func func, const vta::Config& config, const VtaLaunchOptions& options) {
  const auto record = options.tuned ? options.tuned(func) : std::nullopt;
  func.name = "layer";
  return fmt::format("{}{}copies {}, {}", print(func), vta::to_toml(config), options.copies,
                     record ? "recorded " + record->point : "");
}

class VtaLaunchCompiler {
 public:
  VtaLaunchCompiler(const graph::Graph& graph, const graph::Group& launch,
                    const vta::Config& config, const VtaLaunchOptions& options)
      : graph_(graph),
        launch_(launch),
        options_(options),
        builder_(config, {.serial = options.serial}),
        places_(graph, builder_) {}

  Result<VtaLaunchCode> run() {
    VtaLaunchCode code;
    for (graph::ValueId id : launch_.inputs) TW_TRY(places_.address(id));
    TW_TRY_STATUS(place_concatenations());
    int64_t done = 0;
    for (const graph::Group& part : launch_.parts) {
      TW_TRY_STATUS(options_.observer.check());
      const std::string& name = graph_.nodes[static_cast<size_t>(part.anchor)].name;
      options_.observer.step("mapping", done++, static_cast<int64_t>(launch_.parts.size()), name);
      if (part.kind == graph::GroupKind::Alias) {
        places_.place(part.outputs[0], TW_TRY(places_.address(part.inputs[0])));
        continue;
      }
      if (const auto move = move_of(part)) {
        TW_TRY_STATUS(emit_move(*move, name));
        continue;
      }
      Result<KernelReport> layer = emit(part, name);
      if (!layer) return tl::unexpected<Error>(std::move(layer.error()).at(name));
      code.layers.push_back(*std::move(layer));
    }
    options_.observer.end("mapping");
    for (graph::ValueId id : launch_.inputs)
      if (!graph_.values[static_cast<size_t>(id)].constant) builder_.add_input(places_.region(id));
    for (graph::ValueId id : launch_.outputs) builder_.add_output(places_.region(id));
    code.program = TW_TRY(builder_.finish());
    return code;
  }

 private:
  Result<KernelReport> emit(const graph::Group& part, const std::string& name) {
    graph::GroupFunc made = TW_TRY(graph::group_func(graph_, part));
    std::vector<uint64_t> addresses;
    for (size_t i = 0; i < made.func.params.size(); ++i)
      addresses.push_back(i < made.args.size()
                              ? TW_TRY(places_.address(made.args[i]))
                              : TW_TRY(places_.table(made.func.params[i].buffer.name(),
                                                     *made.func.params[i].values)));
    VtaLayerMemo::Layer layer = TW_TRY(schedule(std::move(made.func)));
    layer.report.steps = {name};
    builder_.begin_span(name);
    const codegen::VtaOptions emission{.copies = layer.mapping.copies};
    TW_TRY_STATUS(codegen::emit_vta(layer.report.scheduled, addresses, emission, builder_));
    return std::move(layer.report);
  }

  /// Layers with equal text share one mapping and one trace.
  Result<VtaLayerMemo::Layer> schedule(Func func) {
    const std::string key = memo_key(func, builder_.config(), options_);
    auto& known = options_.memo->scheduled;
    if (const auto it = known.find(key); it != known.end()) return it->second;
    VtaLayerMemo::Layer layer = TW_TRY(schedule_layer(func));
    layer.report.func = std::move(func);
    return known[key] = layer;
  }

  Result<VtaLayerMemo::Layer> schedule_layer(const Func& func) const {
    const vta::Config& config = builder_.config();
    rules::MappingOptions search;
    if (options_.copies == 1) search.max_copies = 1;
    const auto space = TW_TRY(rules::MappingSpace::create(func, config, search));
    VtaLayerMemo::Layer layer;
    KernelReport& report = layer.report;
    layer.mapping = space.best();
    if (options_.tuned) report.record = options_.tuned(func);
    if (report.record && !report.record->point.empty()) {
      if (const auto mapping = space.recorded(report.record->point))
        layer.mapping = *mapping;
      else
        report.record.reset();
    }
    report.rules.kernel = TW_TRY(rules::vta_rule(func));
    report.trace = TW_TRY(rules::vta_trace(func, config, layer.mapping));
    report.scheduled = TW_TRY(schedule::replay(func, report.trace));
    report.predicted =
        static_cast<double>(rules::predict(space.layer(), layer.mapping, config).cycles);
    return layer;
  }

  /// Layers write straight into the concatenations they are part of, from the last one on: a
  /// concatenation may itself be part of a later one. What has a place already is copied.
  Status place_concatenations() {
    std::set<graph::ValueId> made;
    for (const graph::Group& part : launch_.parts)
      if (part.kind == graph::GroupKind::Kernel)
        made.insert(part.outputs.begin(), part.outputs.end());
    for (auto part = launch_.parts.rbegin(); part != launch_.parts.rend(); ++part) {
      const auto move = move_of(*part);
      if (!move || !move->gathers) continue;
      const uint64_t base = TW_TRY(places_.address(move->whole));
      for (const graph::SubRange& input : move->parts) {
        const uint64_t at = base + static_cast<uint64_t>(input.offset);
        if (made.contains(input.value) && !places_.placed(input.value))
          places_.place(input.value, at);
      }
    }
    return {};
  }

  std::optional<graph::BlockMove> move_of(const graph::Group& part) const {
    if (part.nodes.size() != 1) return std::nullopt;
    return graph::block_move(graph_, graph_.nodes[static_cast<size_t>(part.nodes[0])]);
  }

  /// A slice is a view; a concatenation copies the parts that were not made in place.
  Status emit_move(const graph::BlockMove& move, const std::string& name) {
    const uint64_t base = TW_TRY(places_.address(move.whole));
    for (const graph::SubRange& part : move.parts) {
      const uint64_t at = base + static_cast<uint64_t>(part.offset);
      if (!move.gathers) {
        places_.place(part.value, at);
        continue;
      }
      const uint64_t from = TW_TRY(places_.address(part.value));
      if (from == at) continue;
      builder_.begin_span(name);
      TW_TRY_STATUS(codegen::emit_vta_copy(from, at, places_.region(part.value).bytes, builder_));
    }
    return {};
  }

  const graph::Graph& graph_;
  const graph::Group& launch_;
  VtaLaunchOptions options_;
  vta::Builder builder_;
  Placer places_;
};

}  // namespace

Result<VtaLaunchCode> compile_vta_launch(const graph::Graph& graph, const graph::Group& launch,
                                         const vta::Config& config,
                                         const VtaLaunchOptions& options) {
  return VtaLaunchCompiler(graph, launch, config, options).run();
}

Status try_vta_layer(const graph::Graph& graph, const graph::Group& layer,
                     const vta::Config& config, const VtaLaunchOptions& options) {
  const std::string key = memo_key(TW_TRY(graph::group_func(graph, layer)).func, config, options);
  auto& tried = options.memo->tried;
  if (const auto it = tried.find(key); it != tried.end()) return it->second;
  graph::Group launch = layer;
  launch.kind = graph::GroupKind::Launch;
  launch.parts = {layer};
  const Result<VtaLaunchCode> code = VtaLaunchCompiler(graph, launch, config, options).run();
  Status status;
  if (!code) status = tl::unexpected<Error>(code.error());
  if (code || code.error().kind != ErrorKind::Interrupted) tried[key] = status;
  return status;
}

}  // namespace tilewright::compile
