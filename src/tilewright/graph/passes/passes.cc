#include "tilewright/graph/passes/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <sstream>

#include "tilewright/base/check.h"
#include "tilewright/graph/ir/borders.h"
#include "tilewright/graph/ir/edit.h"

namespace tilewright::graph {

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> table = {
      {"simplify", "remove operators that change nothing, merge neighbours", simplify},
      {"fold_constants", "compute operators on known values", fold_constants},
      {"nest_concats", "concatenations that begin with another take it whole", nest_concats},
      {"fold_batch_norm", "batch normalisation and scaling into weights", fold_batch_norm},
      {"fold_pad", "padding into convolutions and pooling", fold_pad},
      {"merge_common", "equal nodes become one", merge_common},
      {"narrow_pools", "average pools behind convolutions that make fewer channels", narrow_pools},
      {"lower_transposed", "transposed convolutions as ordinary ones", lower_transposed},
      {"integer_products", "products of dequantised values as products of bytes", integer_products},
      {"zero_points", "zero points of products of bytes behind their sums", zero_points},
      {"split_bilinear", "bilinear forms as matrix products", split_bilinear},
      {"flatten_pointwise", "1x1 convolutions between plain values as products", flatten_pointwise},
      {"plain_winograd", "convolutions on plain channels by Winograd", plain_winograd},
      {"join_groups", "groups of few channels joined until they fill blocks", join_groups},
      {"block_recurrent", "recurrences with blocked weights", block_recurrent},
      {"block_layout", "blocked channels (NCHWc) and packed weights", block_layout},
      {"split_heads", "products whose results are split and transposed make the parts",
       split_heads},
      {"eliminate_dead", "drop what no output needs", eliminate_dead},
  };
  return table;
}

std::string default_passes() {
  return "simplify,integer_products,zero_points,fold_constants,fold_batch_norm,fold_pad,simplify,"
         "merge_common,"
         "narrow_pools,lower_transposed,split_bilinear,flatten_pointwise,plain_winograd,join_"
         "groups,block_recurrent,nest_"
         "concats,block_layout,split_heads,"
         "fold_constants,merge_common,eliminate_dead";
}

Result<Graph> eliminate_dead(const Graph& graph, PassContext& context) {
  Graph out = compact(graph);
  if (out.nodes.size() < graph.nodes.size())
    context.notes.push_back(
        fmt::format("{} unused nodes dropped", graph.nodes.size() - out.nodes.size()));
  return out;
}

Result<PassResult> run_passes(Graph graph, const std::string& passes, PassContext& context) {
  PassResult result{std::move(graph), {}};
  std::istringstream names(passes);
  for (std::string name; std::getline(names, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    const Pass* pass = nullptr;
    std::vector<std::string> known;
    for (const Pass& row : all_passes()) {
      known.push_back(row.name);
      if (row.name == name) pass = &row;
    }
    if (pass == nullptr)
      return fail(ErrorKind::Usage, fmt::format("there is no graph pass '{}'", name), {},
                  fmt::format("passes: {}", fmt::join(known, ", ")));
    const auto start = std::chrono::steady_clock::now();
    PassReport report{name, result.graph.nodes.size(), 0, 0, {}};
    context.notes.clear();
    auto next = pass->run(result.graph, context);
    if (!next) return tl::unexpected<Error>(std::move(next.error()).at("pass " + name));
    if (context.verify_each) {
      if (Status sound = verify(*next); !sound)
        return tl::unexpected<Error>(std::move(sound.error()).at("after pass " + name));
    }
    const std::string changed = border_difference(result.graph, *next);
    TW_CHECK(changed.empty(), "pass {}: {}", name, changed);
    result.graph = *std::move(next);
    report.nodes_after = result.graph.nodes.size();
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.notes = std::move(context.notes);
    context.notes.clear();
    result.reports.push_back(std::move(report));
  }
  return result;
}

std::vector<std::string> explain(const std::vector<PassReport>& reports) {
  std::vector<std::string> lines;
  for (const PassReport& report : reports) {
    lines.push_back(fmt::format("{}: {} -> {} nodes, {:.0f} ms{}", report.name, report.nodes_before,
                                report.nodes_after, report.seconds * 1e3,
                                report.notes.empty() ? ", nothing to do" : ""));
    for (const std::string& note : report.notes) lines.push_back("  " + note);
  }
  return lines;
}

}  // namespace tilewright::graph
