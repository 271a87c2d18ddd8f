#include "tilewright/graph/layout/border.h"

#include <fmt/format.h>

#include <map>

#include "tilewright/base/check.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/tensor/tile.h"

namespace tilewright::graph {
namespace {

class BorderTiler : private Rewriter {
 public:
  BorderTiler(const Graph& graph, const std::vector<int>& launch, const TileShape& tile)
      : Rewriter(graph), launch_(launch), tile_(tile), maker_(producers(graph)) {}

  Result<Launched> run() {
    for (const Node& node : old().nodes) release(node);
    for (size_t n = 0; n < old().nodes.size(); ++n) {
      const Node& node = old().nodes[n];
      std::vector<ValueId> inputs;
      for (const ValueId id : node.inputs) inputs.push_back(TW_TRY(seen_by(launch_[n], id)));
      copy(node, std::move(inputs));
      launches_[graph().nodes.back().name] = launch_[n];
      for (const ValueId id : node.outputs)
        if (id >= 0) origins_[now(id)] = id;
    }
    for (const ValueId id : old().outputs) {
      const ValueId made = TW_TRY(seen_by(-1, id));
      if (made != now(id)) {
        new_value(now(id)).name = value_name(value(id).name + ".launch");
        new_value(made).name = value(id).name;
      }
      output(made);
    }
    return result();
  }

 private:
  /// Launches and origins follow by name: finish() drops what nobody needs.
  Launched result() {
    for (const ValueId id : old().inputs) origins_[keep(id)] = id;
    std::map<std::string, ValueId> by_name;
    for (const auto& [made, id] : origins_) by_name[new_value(made).name] = id;
    Launched made;
    made.graph = finish();
    for (const Node& node : made.graph.nodes) made.launch.push_back(launches_.at(node.name));
    for (const Value& v : made.graph.values) {
      const auto found = by_name.find(v.name);
      made.origin.push_back(found == by_name.end() ? -1 : found->second);
    }
    return made;
  }

  int launch_of(ValueId id) const {
    const int p = maker_[static_cast<size_t>(id)];
    return p < 0 ? -1 : launch_[static_cast<size_t>(p)];
  }

  /// The value as nodes of `launch` read it.
  Result<ValueId> seen_by(int launch, ValueId id) {
    if (id < 0 || known(id) || launch_of(id) == launch) return keep(id);
    if (const auto found = seen_.find({launch, id}); found != seen_.end()) return found->second;
    const Shape& s = shape(id);
    if (s.size() != 4)
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' of shape {} passes the border of a launch", value(id).name,
                              to_string(s)),
                  "only images [n, c, h, w] have tiles");
    if (!tiles_.contains(id))
      tiles_[id] = TW_TRY(converted(launch_of(id), keep(id), "ToTiles", id,
                                    {{"batch", tile_.batch}, {"block", tile_.block_in}}));
    return seen_[{launch, id}] = TW_TRY(
               converted(launch, tiles_[id], "FromTiles", id, {{"n", s[0]}, {"channels", s[1]}}));
  }

  Result<ValueId> converted(int launch, ValueId from, const char* op, ValueId id,
                            std::map<std::string, tensor::AttrValue> attrs) {
    if (tile_.order == TileOrder::PixelsFirst) attrs["order"] = std::string(tensor::kPixelsFirst);
    const ValueId made =
        TW_TRY(append_own(value(id).name + "/" + op, op, {from}, attrs_of(std::move(attrs))));
    launches_[graph().nodes.back().name] = launch;
    origins_[made] = id;
    return made;
  }

  const std::vector<int>& launch_;
  const TileShape tile_;
  const std::vector<int> maker_;
  std::map<ValueId, ValueId> tiles_;                 ///< of old values at borders
  std::map<std::pair<int, ValueId>, ValueId> seen_;  ///< by launch and old value
  std::map<std::string, int> launches_;              ///< of new nodes
  std::map<ValueId, ValueId> origins_;               ///< of new values
};

}  // namespace

Result<Launched> tile_borders(const Graph& graph, const std::vector<int>& launch,
                              const TileShape& tile) {
  TW_CHECK(launch.size() == graph.nodes.size(), "{} launches for {} nodes", launch.size(),
           graph.nodes.size());
  return BorderTiler(graph, launch, tile).run();
}

}  // namespace tilewright::graph
