// The model level of the importer: file, opsets, inputs, weights, outputs.
#include "tilewright/graph/onnx/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "tilewright/graph/onnx/importer.h"

namespace tilewright::graph {
namespace {

namespace onnx = tilewright_onnx;

/// Reads a base-128 number of the wire format; nothing at the end of the bytes.
std::optional<uint64_t> read_varint(std::string_view bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// Why `bytes` is no message: walks its top-level fields to tell a cut file from a wrong one.
std::string explain_parse_failure(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t start = at;
    const auto key = read_varint(bytes, at);
    if (!key) return fmt::format("the file ends inside a field that starts at byte {}", start);
    const uint64_t kind = *key & 7;
    uint64_t length = kind == 1 ? 8 : kind == 5 ? 4 : 0;
    if (kind == 2 || kind == 0) {
      const auto value = read_varint(bytes, at);
      if (!value) return fmt::format("the file ends inside a field that starts at byte {}", start);
      if (kind == 2) length = *value;
    } else if (kind != 1 && kind != 5) {
      return fmt::format("byte {} starts no field of the format", start);
    }
    if (length > bytes.size() - at)
      return fmt::format("the file is cut: field {} at byte {} needs {} bytes, {} are left",
                         *key >> 3, start, length, bytes.size() - at);
    at += length;
  }
  return fmt::format("its {} bytes contradict the format", bytes.size());
}

int64_t count_nans(const Array& array) {
  int64_t count = 0;
  if (array.dtype() == DType::F32) {
    for (float value : array.as<float>()) count += value != value;
  } else if (is_float(array.dtype())) {
    for (int64_t i = 0; i < array.size(); ++i) count += array.get(i) != array.get(i);
  }
  return count;
}

std::string input_names(const onnx::GraphProto& graph) {
  std::set<std::string> weights;
  for (const auto& tensor : graph.initializer()) weights.insert(tensor.name());
  std::vector<std::string> names;
  for (const auto& input : graph.input())
    if (!weights.contains(input.name())) names.push_back(printable(input.name()));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What to suggest for a dimension without an extent: one example, or the usual size of an image.
int64_t likely_extent(int axis, int rank) {
  if (axis == 0) return 1;
  if (rank == 4) return axis == 1 ? 3 : 224;
  return 16;
}

const char* kind_of(const onnx::TypeProto& type) {
  switch (type.value_case()) {
    case onnx::TypeProto::kSequenceType:
      return "a sequence";
    case onnx::TypeProto::kMapType:
      return "a map";
    case onnx::TypeProto::kSparseTensorType:
      return "a sparse tensor";
    case onnx::TypeProto::kOptionalType:
      return "an optional value";
    default:
      return "of no known type";
  }
}

/// A type as the model writes it, like `to_string` of a TensorType: `i32[2, n, ?]`.
std::string declared_text(const onnx::TypeProto_Tensor& declared) {
  const auto dtype = dtype_of_onnx(declared.elem_type());
  std::vector<std::string> dims;
  for (const auto& dim : declared.shape().dim())
    dims.push_back(dim.has_dim_value()       ? std::to_string(dim.dim_value())
                   : dim.dim_param().empty() ? "?"
                                             : printable(dim.dim_param()));
  const std::string type = dtype ? std::string(name(*dtype)) : onnx_type_name(declared.elem_type());
  return declared.has_shape() ? fmt::format("{}[{}]", type, fmt::join(dims, ", ")) : type;
}

}  // namespace

Importer::Importer(onnx::ModelProto& model, std::string folder, const ImportOptions& options)
    : model_(model), options_(options), external_(std::move(folder)) {}

void Importer::report(Error error, const std::string& where) {
  errors_.push_back(where.empty() ? std::move(error) : std::move(error).at(where));
}

void Importer::report(ErrorKind kind, std::string what, const std::string& where, std::string why,
                      std::string fix) {
  errors_.push_back(Error{kind, std::move(what), where, std::move(why), std::move(fix), {}});
}

Result<Graph> Importer::run() {
  if (!model_.has_graph()) {
    report(ErrorKind::Parse, "the file holds no graph", "", "field 7 (graph) is missing",
           "check that it is an ONNX model");
    return finish();
  }
  GraphProto& graph = *model_.mutable_graph();
  graph_.name = printable(graph.name());
  Body body;
  read_opsets(body);
  check_options(graph);
  body.read = names_read(graph);
  read_initializers(graph, body);
  read_inputs(graph, body);
  import_nodes(graph.node(), body);
  read_outputs(graph, body);
  return finish();
}

Result<Graph> Importer::finish() {
  if (!errors_.empty()) {
    Error first = std::move(errors_.front());
    first.others.assign(std::make_move_iterator(errors_.begin() + 1),
                        std::make_move_iterator(errors_.end()));
    return tl::unexpected<Error>(std::move(first));
  }
  for (const auto& [dim, extent] : options_.dims)
    if (!used_dims_.contains(dim))
      graph_.warnings.push_back(
          fmt::format("--dim {}={} has no effect: no input has such a dimension", dim, extent));
  return compact(graph_);
}

void Importer::check_opset(const std::string& domain, int64_t version) {
  if (!domain.empty()) return;
  if (version < kMinOpset)
    report(ErrorKind::Unsupported,
           fmt::format("opset {} is older than the oldest supported one ({})", version, kMinOpset),
           "opset_import", {}, "convert the model with onnx.version_converter");
  if (version > kMaxOpset && !options_.allow_newer_opset)
    report(ErrorKind::Unsupported,
           fmt::format("opset {} is newer than the newest tested one ({})", version, kMaxOpset),
           "opset_import", {},
           fmt::format("export the model with opset {}; --allow-newer-opset reads this one as if "
                       "operators had not changed since",
                       kMaxOpset));
}

void Importer::read_opsets(Body& body) {
  for (const auto& entry : model_.opset_import()) {
    const std::string domain = entry.domain() == "ai.onnx" ? "" : printable(entry.domain());
    const auto [place, inserted] = body.opsets.emplace(domain, entry.version());
    if (!inserted && place->second != entry.version())
      report(ErrorKind::Invalid,
             fmt::format("domain '{}' is imported as opset {} and {}", domain, place->second,
                         entry.version()),
             "opset_import");
  }
  if (body.opsets.empty()) {
    report(ErrorKind::Invalid, "the model imports no operator set", "opset_import");
    body.opsets[""] = kMaxOpset;
  }
  for (const auto& [domain, version] : body.opsets) check_opset(domain, version);
}

void Importer::check_options(const GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& input : graph.input()) names.insert(printable(input.name()));
  const auto check = [&](const std::string& name, const char* what) {
    if (!names.contains(name))
      report(ErrorKind::Usage, fmt::format("{} for '{}': the model has no such input", what, name),
             "", {}, "its inputs: " + input_names(graph));
  };
  for (const auto& [name, shape] : options_.shapes) check(name, "a shape is given");
  for (const auto& [name, value] : options_.constants) check(name, "a value is given");
  for (const auto& [name, extent] : options_.dims)
    if (extent < 0)
      report(ErrorKind::Usage, fmt::format("dimension {}={} is negative", name, extent), "");
}

void Importer::read_initializers(GraphProto& graph, Body& body) {
  for (auto& sparse : *graph.mutable_sparse_initializer())
    read_initializer(sparse.values().name(), "sparse weight", body,
                     [&] { return take_sparse_tensor(sparse, external_); });
  for (auto& tensor : *graph.mutable_initializer())
    read_initializer(tensor.name(), "weight", body, [&] { return take_tensor(tensor, external_); });
}

void Importer::read_initializer(const std::string& id, const char* what, Body& body,
                                const std::function<Result<Array>()>& take) {
  const std::string name = printable(id);
  const std::string where =
      fmt::format("{} '{}'{}", what, name, body.path.empty() ? "" : " of " + body.path);
  if (body.scope.values.contains(id))
    return report(ErrorKind::Invalid, fmt::format("two weights are named '{}'", name), where);
  body.scope.values[id] = kUnknown;
  Result<Array> array = take();
  if (!array) {
    // What nobody reads may be of a type that there is no room for.
    if (array.error().kind != ErrorKind::Unsupported || body.read.contains(id))
      report(std::move(array.error()), where);
    return;
  }
  if (Status fits = add_bytes({array->dtype(), array->shape()}); !fits)
    return report(std::move(fits.error()), where);
  if (const int64_t nans = count_nans(*array); nans > 0)
    graph_.warnings.push_back(
        fmt::format("weight '{}' has {} NaN of {} values", name, nans, array->size()));
  body.scope.values[id] = add_constant(body.prefix + name, *std::move(array));
}

std::optional<Shape> Importer::input_shape(const onnx::ValueInfoProto& info,
                                           const std::string& name) {
  const auto& type = info.type().tensor_type();
  const auto given = options_.shapes.find(name);
  const std::string where = "input '" + name + "'";
  if (!type.has_shape()) {
    if (given != options_.shapes.end()) return given->second;
    report(ErrorKind::Invalid, fmt::format("input '{}' has no shape", name), where, {},
           fmt::format("--shape {}:1x3x224x224 (its real shape)", name));
    return std::nullopt;
  }
  const int rank = type.shape().dim_size();
  if (given != options_.shapes.end() && static_cast<int>(given->second.size()) != rank) {
    report(ErrorKind::Usage,
           fmt::format("--shape {}: {} has rank {}, the model says rank {}", name,
                       to_string(given->second), given->second.size(), rank),
           where);
    return std::nullopt;
  }
  Shape shape;
  bool known = true;
  std::map<int, std::string> unbound;
  for (int axis = 0; axis < rank; ++axis) {
    const auto& dim = type.shape().dim(axis);
    const bool fixed = dim.has_dim_value() && dim.dim_value() >= 0;
    // Some exporters write `?` for every unknown extent: that names no dimension.
    const std::string symbol = dim.dim_param() == "?" ? "" : printable(dim.dim_param());
    const auto bound = options_.dims.find(symbol);
    if (bound != options_.dims.end()) used_dims_.insert(symbol);
    if (given != options_.shapes.end()) {
      shape.push_back(given->second[static_cast<size_t>(axis)]);
      if (!fixed || shape.back() == dim.dim_value()) continue;
      report(ErrorKind::Usage,
             fmt::format("--shape {}: axis {} is {}, the model fixes it to {}", name, axis,
                         shape.back(), dim.dim_value()),
             where);
      known = false;
    } else if (fixed) {
      shape.push_back(dim.dim_value());
    } else if (bound != options_.dims.end() && !symbol.empty()) {
      shape.push_back(bound->second);
    } else {
      unbound[axis] = symbol;
      shape.push_back(likely_extent(axis, rank));
    }
  }
  if (!unbound.empty()) report_unbound(name, shape, unbound);
  if (!known || !unbound.empty()) return std::nullopt;
  return shape;
}

void Importer::report_unbound(const std::string& name, const Shape& likely,
                              const std::map<int, std::string>& unbound) {
  std::vector<std::string> says, dims;
  for (const auto& [axis, symbol] : unbound) {
    if (symbol.empty()) {
      says.push_back(fmt::format("its dimension {} has neither extent nor name", axis));
      continue;
    }
    const auto [reported, is_new] = unbound_dims_.try_emplace(symbol, errors_.size());
    if (!is_new) continue;
    says.push_back(fmt::format("its dimension {} is called {}", axis, symbol));
    dims.push_back(fmt::format("--dim {}={}", symbol, likely[static_cast<size_t>(axis)]));
  }
  if (says.empty()) {  // all of them are reported with another input
    Error& first = errors_[unbound_dims_.at(unbound.begin()->second)];
    first.why += fmt::format("{}input '{}' has it too", first.why.empty() ? "" : ", ", name);
    return;
  }
  const std::string by_shape = fmt::format("--shape {}:{}", name, fmt::join(likely, "x"));
  report(ErrorKind::Invalid,
         fmt::format("input '{}' has no fixed size: {}", name, fmt::join(says, ", ")),
         "input '" + name + "'", {},
         dims.size() == unbound.size() ? fmt::format("{}, or {}", fmt::join(dims, " "), by_shape)
                                       : by_shape);
}

bool Importer::check_binding(const std::string& name, const Array& array,
                             const onnx::ValueInfoProto& info) {
  const auto& type = info.type().tensor_type();
  const std::string where = "input '" + name + "'";
  if (const auto dtype = dtype_of_onnx(type.elem_type()); dtype && *dtype != array.dtype()) {
    report(ErrorKind::Usage,
           fmt::format("the value given for '{}' is {}, the model wants {}", name,
                       tilewright::name(array.dtype()), tilewright::name(*dtype)),
           where);
    return false;
  }
  if (!type.has_shape()) return true;
  bool fits = type.shape().dim_size() == static_cast<int>(array.shape().size());
  for (int axis = 0; fits && axis < type.shape().dim_size(); ++axis) {
    const auto& dim = type.shape().dim(axis);
    fits = !dim.has_dim_value() || dim.dim_value() < 0 ||
           dim.dim_value() == array.shape()[static_cast<size_t>(axis)];
    if (dim.has_dim_param()) used_dims_.insert(printable(dim.dim_param()));
  }
  if (!fits)
    report(ErrorKind::Usage,
           fmt::format("the value given for '{}' has shape {}, which the model does not allow",
                       name, to_string(array.shape())),
           where);
  return fits;
}

void Importer::read_input(const onnx::ValueInfoProto& info, Body& body) {
  const std::string name = printable(info.name());
  const std::string where = "input '" + name + "'";
  if (const ValueId* weight = body.scope.find(info.name())) {
    if (*weight >= 0 && runtime_[static_cast<size_t>(*weight)])
      report(ErrorKind::Invalid, fmt::format("two inputs are named '{}'", name), where);
    return;  // an initializer gives its value
  }
  body.scope.values[info.name()] = kUnknown;
  if (info.name().empty())
    return report(ErrorKind::Invalid, "an input of the graph has no name", where);
  if (!info.type().has_tensor_type())
    return report(ErrorKind::Unsupported,
                  fmt::format("input '{}' is {}", name, kind_of(info.type())), where);
  const int number = info.type().tensor_type().elem_type();
  const std::optional<DType> dtype = dtype_of_onnx(number);
  if (!dtype)
    return report(
        ErrorKind::Unsupported,
        fmt::format("input '{}' has the unsupported type {}", name, onnx_type_name(number)), where);
  if (const auto bound = options_.constants.find(name); bound != options_.constants.end()) {
    if (check_binding(name, bound->second, info))
      body.scope.values[info.name()] = add_constant(name, bound->second);
    return;
  }
  const std::optional<Shape> shape = input_shape(info, name);
  if (!shape) return;
  const tensor::TensorType type{*dtype, *shape};
  if (Status fits = add_bytes(type); !fits) return report(std::move(fits.error()), where);
  const ValueId id = graph_.add_value(names_.value(name), type);
  producer_.push_back(-1);
  runtime_.push_back(true);
  graph_.inputs.push_back(id);
  body.scope.values[info.name()] = id;
}

void Importer::read_inputs(const GraphProto& graph, Body& body) {
  for (const auto& info : graph.input()) read_input(info, body);
}

Result<ValueId> Importer::output_value(ValueId id, const std::string& name) {
  const auto is_listed = [](const std::vector<ValueId>& ids, ValueId wanted) {
    return std::find(ids.begin(), ids.end(), wanted) != ids.end();
  };
  for (const ValueId other : graph_.outputs)
    if (graph_.values[static_cast<size_t>(other)].name == name)
      return fail(ErrorKind::Invalid, fmt::format("two outputs are named '{}'", name));
  if (graph_.values[static_cast<size_t>(id)].name == name) return id;
  // What a function or a branch made may take the name; inputs, weights and other outputs keep
  // theirs, and the output is a copy.
  if (producer_[static_cast<size_t>(id)] < 0 || is_listed(graph_.outputs, id))
    id = TW_TRY(add({name + "/Identity", "", "Identity", {}, {id}, {}}, 1))[0];
  (void)names_.value(name);  // from here on it is taken
  for (Value& other : graph_.values)
    if (other.name == name) other.name = names_.value(name);
  graph_.values[static_cast<size_t>(id)].name = name;
  return id;
}

void Importer::read_outputs(const GraphProto& graph, const Body& body) {
  if (graph.output_size() == 0) report(ErrorKind::Invalid, "the graph has no output", "");
  for (const auto& info : graph.output()) {
    const std::string name = printable(info.name());
    const std::string where = "output '" + name + "'";
    const ValueId* id = body.scope.find(info.name());
    if (id == nullptr) {
      report(ErrorKind::Invalid, fmt::format("output '{}' is never produced", name), where);
      continue;
    }
    if (*id <= kSequence) {
      report(ErrorKind::Unsupported, fmt::format("output '{}' is a sequence", name), where,
             "a package has tensors only",
             "make a tensor of it (ConcatFromSequence), or an output of each element (SequenceAt)");
      continue;
    }
    if (*id < 0) {  // what is behind it has an error; if nothing has, this is one
      if (errors_.empty())
        report(ErrorKind::Invalid, fmt::format("output '{}' is never produced", name), where);
      continue;
    }
    const auto made = output_value(*id, name);
    if (!made) {
      report(Error(made.error()), where);
      continue;
    }
    graph_.outputs.push_back(*made);
    const tensor::TensorType& type = graph_.values[static_cast<size_t>(*made)].type;
    const auto& declared = info.type().tensor_type();
    const auto dtype = dtype_of_onnx(declared.elem_type());
    bool agrees = !dtype || *dtype == type.dtype;
    if (declared.has_shape()) {
      agrees = agrees && declared.shape().dim_size() == static_cast<int>(type.shape.size());
      for (int axis = 0; agrees && axis < declared.shape().dim_size(); ++axis) {
        const auto& dim = declared.shape().dim(axis);
        agrees = !dim.has_dim_value() || dim.dim_value() <= 0 ||
                 dim.dim_value() == type.shape[static_cast<size_t>(axis)];
      }
    }
    if (!agrees)
      graph_.warnings.push_back(fmt::format("output '{}' is {}, but the model declares {}", name,
                                            to_string(type), declared_text(declared)));
  }
}

Result<Graph> import_onnx_bytes(std::string_view bytes, const std::string& folder,
                                const ImportOptions& options) {
  if (bytes.empty())
    return fail(ErrorKind::Parse, "the file is empty", "0 bytes", "an ONNX model is needed");
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return fail(ErrorKind::Unsupported,
                fmt::format("the file has {} bytes; the format allows 2 GiB", bytes.size()), {},
                "save the model with external data");
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail(ErrorKind::Parse, "the file is cut off, damaged or no ONNX model",
                explain_parse_failure(bytes),
                "an ONNX model is needed; packages end in .twm, programs in .tw");
  return Importer(model, folder, options).run();
}

Result<Graph> import_onnx(const std::string& path, const ImportOptions& options) {
  const MappedFile file = TW_TRY(map_file(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  auto graph = import_onnx_bytes({file.bytes.data(), file.bytes.size()},
                                 folder.empty() ? "." : folder, options);
  if (graph) return graph;
  Error all = std::move(graph.error()).at(path);
  for (Error& other : all.others) other = std::move(other).at(path);
  return tl::unexpected<Error>(std::move(all));
}

Result<Array> read_onnx_tensor(const std::string& path) {
  const MappedFile file = TW_TRY(map_file(path));
  onnx::TensorProto tensor;
  if (file.bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !tensor.ParseFromArray(file.bytes.data(), static_cast<int>(file.bytes.size())))
    return fail(ErrorKind::Parse, fmt::format("'{}' holds no ONNX tensor", path));
  ExternalData external(std::filesystem::path(path).parent_path().string());
  auto array = take_tensor(tensor, external);
  if (!array) return tl::unexpected<Error>(std::move(array.error()).at(path));
  return array;
}

}  // namespace tilewright::graph
