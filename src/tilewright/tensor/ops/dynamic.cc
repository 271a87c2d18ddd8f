#include "tilewright/tensor/ops/dynamic.h"

#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

/// What the importer says, with the element types of the operator that it stands for.
Inferred infer_dynamic(const OpCall& call) {
  const Shape bound = call.attrs.get_ints("bound");
  const auto axis = static_cast<int>(call.attrs.get_int("dynamic_axis", -1));
  if (axis >= static_cast<int>(bound.size()))
    return invalid(call, "the dynamic axis does not exist", "the bound is " + to_string(bound));
  const DType dtype = call.op == "DynamicShape"    ? DType::I64
                      : call.op == "DynamicSelect" ? call.inputs[1].dtype
                                                   : call.inputs[0].dtype;
  std::vector<TensorType> types{{dtype, bound, axis}};
  if (call.op == "DynamicTopK" && call.num_outputs > 1) types.push_back({DType::I64, bound, axis});
  return types;
}

}  // namespace

void add_dynamic_ops(std::vector<OpDef>& table) {
  struct Row {
    const char* name;
    int min_inputs, max_inputs;
    const char* host;
  };
  const Row rows[] = {{"DynamicShape", 1, 1, "Shape"},    {"DynamicSlice", 3, 5, "Slice"},
                      {"DynamicTopK", 2, 2, "TopK"},      {"DynamicGather", 2, 3, "Gather"},
                      {"DynamicConcat", 1, -1, "Concat"}, {"DynamicExpand", 2, 2, "Expand"},
                      {"DynamicRange", 3, 3, "Range"},    {"DynamicReshape", 2, 2, "Reshape"},
                      {"DynamicSelect", 3, 3, "Select"},  {"PadToStatic", 1, 1, "PadToStatic"}};
  for (const Row& row : rows) {
    OpDef def = movement_row(row.name, row.min_inputs, row.max_inputs, infer_dynamic, nullptr);
    def.domain = "tilewright";
    def.fusion = Fusion::Opaque;
    def.host = row.host;
    table.push_back(std::move(def));
  }
}

}  // namespace tilewright::tensor
