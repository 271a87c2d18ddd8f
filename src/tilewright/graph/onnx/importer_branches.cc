// If, whose condition the run decides: both branches stand in the graph, and DynamicSelect takes
// the results of one.
//
// Example: `keep = boxes.size == 0 ? [] : nms(boxes)`: nms runs on no boxes, too, and finds none.
// An index out of range counts only if its branch is taken: there is no first element of nothing.
// Such checks have the branch's condition as one more input. What other host functions refuse (a
// shape that does not fit, places to scatter to) is an error in either branch.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/graph/onnx/importer.h"

namespace tilewright::graph {

Result<Importer::Values> Importer::import_if(const Call& call) {
  if (call.node.inputs.size() != 1) return fail(ErrorKind::Invalid, "If needs one condition");
  const ValueId condition = call.node.inputs[0];
  const std::string what = "the condition of this If";
  const bool decided =
      condition < 0 || !runtime_[static_cast<size_t>(condition)] || bind_if_offered(condition);
  const tensor::TensorType* type =
      condition < 0 ? nullptr : &graph_.values[static_cast<size_t>(condition)].type;
  if (decided || type->dtype != DType::Bool || type->dynamic_axis >= 0 ||
      element_count(type->shape) != 1) {
    const int64_t yes = TW_TRY(known_scalar(condition, what));
    return run_subgraph(TW_TRY(open_subgraph(call, yes != 0 ? "then_branch" : "else_branch")), call,
                        "", {});
  }
  const Values yes = TW_TRY(run_branch(call, "then_branch", condition));
  const ValueId otherwise = TW_TRY(add_part(call, "Not", {condition}));
  const Values no = TW_TRY(run_branch(call, "else_branch", otherwise));
  if (yes.size() != no.size())
    return fail(ErrorKind::Invalid, fmt::format("the branches of this If have {} and {} outputs",
                                                yes.size(), no.size()));
  Values chosen;
  for (size_t i = 0; i < yes.size(); ++i) {
    if (yes[i] == no[i] || yes[i] == kUnknown || no[i] == kUnknown)
      chosen.push_back(yes[i] == no[i] ? yes[i] : kUnknown);
    else if (yes[i] < 0 || no[i] < 0)
      return fail(ErrorKind::Unsupported, "this If gives sequences, and the run decides which",
                  "the condition is known only at run time");
    else
      chosen.push_back(TW_TRY(dynamic_.choose(call.node.name, condition, yes[i], no[i])));
  }
  return chosen;
}

Result<Importer::Values> Importer::run_branch(const Call& call, const char* name, ValueId taken) {
  const Subgraph branch = TW_TRY(open_subgraph(call, name));
  const ValueId outside = dynamic_.guard;
  dynamic_.guard = outside < 0 ? taken : TW_TRY(add_part(call, "And", {outside, taken}));
  Values outputs = run_subgraph(branch, call, name, {});
  dynamic_.guard = outside;
  return outputs;
}

}  // namespace tilewright::graph
