// For tests: ONNX models put together field by field.
#pragma once

#include <tilewright_onnx.pb.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tilewright/graph/onnx/import.h"
#include "tilewright/graph/onnx/import_tensor.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {

namespace onnx = tilewright_onnx;
inline onnx::ModelProto empty_model(int64_t opset = 17) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(opset);
  model.mutable_graph()->set_name("g");
  return model;
}

/// A dimension below 0 is symbolic: -1 is N, -2 is M.
inline void set_type(onnx::ValueInfoProto& info, const std::string& name, const Ints& shape,
                     int type) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (int64_t extent : shape) {
    auto& dim = *tensor.mutable_shape()->add_dim();
    if (extent >= 0) dim.set_dim_value(extent);
    if (extent == -1) dim.set_dim_param("N");
    if (extent == -2) dim.set_dim_param("M");
  }
}
inline void add_input(onnx::ModelProto& m, const std::string& name, const Ints& shape,
                      int type = 1) {
  set_type(*m.mutable_graph()->add_input(), name, shape, type);
}
inline void add_output(onnx::ModelProto& m, const std::string& name) {
  m.mutable_graph()->add_output()->set_name(name);
}

inline onnx::NodeProto make_node(const std::string& op, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs,
                                 const std::string& name = "") {
  onnx::NodeProto node;
  node.set_op_type(op);
  node.set_name(name.empty() ? "the_" + op : name);
  for (const auto& input : inputs) node.add_input(input);
  for (const auto& output : outputs) node.add_output(output);
  return node;
}
inline onnx::NodeProto& add_node(onnx::ModelProto& m, const std::string& op,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs,
                                 const std::string& name = "") {
  return *m.mutable_graph()->add_node() = make_node(op, inputs, outputs, name);
}

inline void set_attr(onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto& a = *node.add_attribute();
  a.set_name(name), a.set_type(2), a.set_i(value);
}
inline void set_attr(onnx::NodeProto& node, const std::string& name, float value) {
  auto& a = *node.add_attribute();
  a.set_name(name), a.set_type(1), a.set_f(value);
}
inline void set_attr(onnx::NodeProto& node, const std::string& name, const Ints& values) {
  auto& a = *node.add_attribute();
  a.set_name(name), a.set_type(7);
  for (int64_t v : values) a.add_ints(v);
}
inline onnx::TensorProto tensor_of(const std::string& name, const Array& array) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx_of_dtype(array.dtype()));
  for (int64_t extent : array.shape()) tensor.add_dims(extent);
  tensor.set_raw_data(array.data(), static_cast<size_t>(array.bytes()));
  return tensor;
}
inline void add_weight(onnx::ModelProto& m, const std::string& name, const Array& array) {
  *m.mutable_graph()->add_initializer() = tensor_of(name, array);
}
inline Array ints(const Ints& values) {
  Array array(DType::I64, {std::ssize(values)});
  for (size_t i = 0; i < values.size(); ++i) array.set_int(static_cast<int64_t>(i), values[i]);
  return array;
}

inline Result<Graph> import(const onnx::ModelProto& model, ImportOptions options = {}) {
  if (!options.evaluate) options.evaluate = interp_evaluate;
  return import_onnx_bytes(model.SerializeAsString(),
                           std::filesystem::temp_directory_path().string(), options);
}

/// x -> Relu -> y, to be broken.
inline onnx::ModelProto sound_model() {
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {2, 3});
  add_node(m, "Relu", {"x"}, {"y"}, "relu1");
  add_output(m, "y");
  return m;
}

}  // namespace tilewright::graph
