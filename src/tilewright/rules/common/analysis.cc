#include "tilewright/rules/common/analysis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/rules/common/program_facts.h"
#include "tilewright/rules/common/work.h"

namespace tilewright::rules {
namespace {

void add_unique(std::vector<std::string>& list, const std::string& name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

AnalysedNode node_of(const Func& func, const BlockFacts& block) {
  AnalysedNode node;
  node.name = block.name;
  for (const Iter& iter : block.block->iters)
    node.loops.push_back(
        {iter.var.name(), as_int(iter.extent).value_or(0), iter.kind != IterKind::Space});
  node.operations = operations_of(block);
  if (block.store == nullptr) return node;
  node.tensor = block.store->buffer.name();
  node.inlinable =
      block.kind == BlockFacts::Kind::Injective && !is_output(func, block.store->buffer);
  return node;
}

std::string trips(const AnalysedNode& node, bool reduces) {
  std::vector<std::string> all;
  for (const AnalysedLoop& loop : node.loops)
    if (loop.reduces == reduces)
      all.push_back(
          fmt::format("{} {}", loop.name, loop.trips == 0 ? "?" : fmt::format("{}", loop.trips)));
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

int64_t AnalysedNode::spatial() const {
  return std::count_if(loops.begin(), loops.end(), [](const auto& l) { return !l.reduces; });
}

int64_t AnalysedNode::reduce() const { return static_cast<int64_t>(loops.size()) - spatial(); }

Analysis analyse(const Func& func) {
  Analysis out;
  for (const Param& param : func.params)
    ++(param.mode == ParamMode::Out || param.mode == ParamMode::InOut ? out.outputs : out.inputs);
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  for (const BlockFacts& block : blocks)
    if (block.kind != BlockFacts::Kind::Init) out.nodes.push_back(node_of(func, block));
  const auto find = [&](const std::string& name) {
    return std::find_if(out.nodes.begin(), out.nodes.end(),
                        [&](const AnalysedNode& n) { return n.name == name; });
  };
  for (const BlockFacts& block : blocks) {
    // What a sum starts from is read by the sum's node.
    const auto reader = block.kind != BlockFacts::Kind::Init || block.store == nullptr
                            ? find(block.name)
                            : std::find_if(out.nodes.begin(), out.nodes.end(), [&](const auto& n) {
                                return n.tensor == block.store->buffer.name();
                              });
    if (reader == out.nodes.end()) continue;
    for (const Load& load : block.loads)
      for (AnalysedNode& producer : out.nodes)
        if (producer.tensor == load.buffer.name() && producer.name != reader->name) {
          add_unique(reader->producers, producer.name);
          add_unique(producer.consumers, reader->name);
        }
  }
  for (const AnalysedNode& node : out.nodes)
    out.spatial += node.spatial(), out.reduce += node.reduce();
  return out;
}

std::string to_text(const Analysis& a) {
  std::string out = fmt::format("{} nodes, {} inputs, {} outputs; {} spatial and {} reduce loops\n",
                                a.nodes.size(), a.inputs, a.outputs, a.spatial, a.reduce);
  for (const AnalysedNode& node : a.nodes) {
    out += fmt::format("  {}: spatial [{}]", node.name, trips(node, false));
    if (node.reduce() > 0) out += fmt::format(" reduce [{}]", trips(node, true));
    out += fmt::format(", {} consumers{}, {:.4g} operations\n", node.consumers.size(),
                       node.inlinable ? ", inlinable" : "", node.operations);
  }
  return out;
}

}  // namespace tilewright::rules
