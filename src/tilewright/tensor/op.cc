#include "tilewright/tensor/op.h"

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/counted.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

template <class T>
const T* find_value(const Attrs& attrs, const std::string& key) {
  const auto it = attrs.values.find(key);
  return it == attrs.values.end() ? nullptr : std::get_if<T>(&it->second);
}

std::vector<OpDef> build_table() {
  std::vector<OpDef> table;
  add_elementwise_ops(table);
  add_nn_ops(table);
  add_norm_ops(table);
  add_reduce_ops(table);
  add_movement_ops(table);
  add_resize_ops(table);
  add_recurrent_ops(table);
  add_quantize_ops(table);
  add_host_ops(table);
  add_blocked_ops(table);
  add_tile_ops(table);
  add_dot_ops(table);
  add_winograd_ops(table);
  add_plain_winograd_ops(table);
  add_paper_ops(table);
  return table;
}

std::map<std::pair<std::string, std::string>, const OpDef*> build_index() {
  std::map<std::pair<std::string, std::string>, const OpDef*> index;
  for (const OpDef& def : all_ops()) {
    const bool fresh = index.emplace(std::pair(def.domain, def.name), &def).second;
    TW_CHECK(fresh, "operator {} is in the table twice", def.name);
  }
  return index;
}

Status check_inputs(const OpDef& def, const OpCall& call) {
  const auto count = static_cast<int>(call.inputs.size());
  if (count < def.min_inputs || (def.max_inputs >= 0 && count > def.max_inputs)) {
    const std::string expected = def.max_inputs < 0 ? fmt::format("at least {}", def.min_inputs)
                                 : def.min_inputs == def.max_inputs
                                     ? std::to_string(def.min_inputs)
                                     : fmt::format("{} to {}", def.min_inputs, def.max_inputs);
    return invalid(call, fmt::format("takes {} input{}, got {}", expected,
                                     expected.ends_with("1") ? "" : "s", count));
  }
  for (int i = 0; i < def.min_inputs; ++i)
    if (!call.inputs[i].present) return invalid(call, fmt::format("input {} is missing", i));
  for (const int i : def.constant_inputs) {
    const InputInfo* in = call.input(i);
    if (in && !in->value)
      return unsupported(call, fmt::format("input {} is computed at run time", i),
                         "its value decides shapes or code and must be known at compile time",
                         "make it an initializer or a value that constant folding can find");
  }
  for (const InputInfo& in : call.inputs)
    for (const int64_t extent : in.shape)
      if (in.present && extent < 0)
        return invalid(call, fmt::format("an input has shape {}", to_string(in.shape)));
  return {};
}

}  // namespace

int64_t Attrs::get_int(const std::string& key, int64_t fallback) const {
  if (const auto* v = find_value<int64_t>(*this, key)) return *v;
  if (const auto* v = find_value<double>(*this, key)) return static_cast<int64_t>(*v);
  return fallback;
}

double Attrs::get_float(const std::string& key, double fallback) const {
  if (const auto* v = find_value<double>(*this, key)) return *v;
  if (const auto* v = find_value<int64_t>(*this, key)) return static_cast<double>(*v);
  return fallback;
}

std::string Attrs::get_string(const std::string& key, const std::string& fallback) const {
  const auto* v = find_value<std::string>(*this, key);
  return v ? *v : fallback;
}

std::vector<int64_t> Attrs::get_ints(const std::string& key, std::vector<int64_t> fallback) const {
  const auto* v = find_value<std::vector<int64_t>>(*this, key);
  return v ? *v : fallback;
}

std::vector<double> Attrs::get_floats(const std::string& key) const {
  const auto* v = find_value<std::vector<double>>(*this, key);
  return v ? *v : std::vector<double>{};
}

std::vector<std::string> Attrs::get_strings(const std::string& key) const {
  const auto* v = find_value<std::vector<std::string>>(*this, key);
  return v ? *v : std::vector<std::string>{};
}

const std::vector<OpDef>& all_ops() {
  static const std::vector<OpDef> table = build_table();
  return table;
}

const OpDef* find_op(const std::string& domain, const std::string& name) {
  static const auto index = build_index();
  const auto it = index.find({domain == "ai.onnx" ? "" : domain, name});
  return it == index.end() ? nullptr : it->second;
}

Result<std::vector<TensorType>> infer(const OpCall& call) {
  const OpDef* def = find_op(call.domain, call.op);
  if (def == nullptr)
    return fail(ErrorKind::Unsupported, fmt::format("operator {}{}{} is not known", call.domain,
                                                    call.domain.empty() ? "" : "::", call.op));
  TW_TRY_STATUS(check_inputs(*def, call));
  std::vector<TensorType> types = TW_TRY(def->infer(call));
  if (call.num_outputs > static_cast<int>(types.size()))
    return invalid(call, fmt::format("has {}, {} are asked for", counted(types.size(), "output"),
                                     call.num_outputs));
  return types;
}

Result<Func> op_func(const OpCall& call, MathMode math) {
  TW_TRY(infer(call));
  const OpDef& def = *find_op(call.domain, call.op);
  if (!def.define)
    return unsupported(call, "has no tensor-expression definition",
                       fmt::format("the runtime executes it as {}", def.host));
  std::vector<Tensor> tensors, params;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const InputInfo& in = call.inputs[i];
    if (!in.present) {
      tensors.emplace_back();
      continue;
    }
    const bool fold =
        std::count(def.constant_inputs.begin(), def.constant_inputs.end(), static_cast<int>(i)) > 0;
    const ParamMode mode = in.value ? ParamMode::Const : ParamMode::In;
    tensors.push_back(placeholder("x" + std::to_string(i), in.dtype, in.shape, mode,
                                  fold ? in.value : std::nullopt));
    // A folded input is a parameter only where the definition reads it: as a constant table.
    if (!fold) params.push_back(tensors.back());
  }
  std::vector<Tensor> outputs = def.define(call, tensors);
  TW_CHECK(static_cast<int>(outputs.size()) >= call.num_outputs, "{} defines {} of {} outputs",
           call.op, outputs.size(), call.num_outputs);
  outputs.resize(static_cast<size_t>(call.num_outputs));
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i) names.push_back("y" + std::to_string(i));
  return make_func(call.op, params, outputs, math, names);
}

}  // namespace tilewright::tensor
