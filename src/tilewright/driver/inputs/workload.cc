#include "tilewright/driver/inputs/workload.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/names.h"
#include "tilewright/graph/ir/edit.h"
#include "tilewright/tensor/workload.h"

namespace tilewright::driver {
namespace {

/// Operators whose second operand is no weight: all inputs come at run time.
const std::set<std::string> kAllInputsVary = {"mttkrp", "ttm"};

/// Weights scaled so that outputs stay of order one; shift indices within the window.
Array constant_input(const std::string& op, const nlohmann::json& params,
                     const tensor::InputInfo& info, int64_t terms, uint64_t seed) {
  Array array = random_array(info.dtype, info.shape, seed);
  if (op == "shift_conv2d") {
    const int64_t taps = params.value("kernel_h", 1) * params.value("kernel_w", 1);
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, (i * 7 + 3) % taps);
  } else if (is_float(info.dtype)) {
    const double scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(terms, 1)));
    for (int64_t i = 0; i < array.size(); ++i) array.set(i, array.get(i) * scale);
  }
  return array;
}

Result<Subject> load_case(const nlohmann::json& entry, uint64_t seed) {
  Subject subject;
  subject.name = entry.value("id", "");
  subject.single_operator = true;
  std::map<std::string, int64_t> params;
  for (const auto& [key, value] : entry.at("params").items())
    if (value.is_number_integer()) params[key] = value.get<int64_t>();
  const std::string op = entry.value("operator", ""), dtype_name = entry.value("dtype", "float32");
  const std::map<std::string, DType> dtypes = {{"float32", DType::F32}, {"float16", DType::F16},
                                               {"float64", DType::F64}, {"int8", DType::I8},
                                               {"uint8", DType::U8},    {"bfloat16", DType::BF16}};
  if (!dtypes.contains(dtype_name))
    return fail(ErrorKind::Unsupported, fmt::format("{} has dtype {}", subject.name, dtype_name));
  const tensor::OpCall call = TW_TRY(tensor::workload_call(op, params, dtypes.at(dtype_name)));
  graph::Graph graph;
  graph.name = subject.name;
  graph::Node node{"op", call.domain, call.op, call.attrs, {}, {}};
  const int64_t outputs = element_count(entry.at("output_shape").get<Shape>());
  const int64_t terms = entry.value("macs", int64_t{0}) / std::max<int64_t>(outputs, 1);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const tensor::InputInfo& info = call.inputs[i];
    const std::string name = fmt::format("x{}", i);
    const tensor::TensorType type{info.dtype, info.shape};
    if (i == 0 || kAllInputsVary.contains(op)) {
      graph.inputs.push_back(graph.add_value(name, type));
      node.inputs.push_back(graph.inputs.back());
    } else {
      const Array value = constant_input(op, entry["params"], info, terms, seed + i);
      node.inputs.push_back(graph.add_value(name, type, value));
    }
  }
  graph::FreshNames names(graph);
  graph.outputs = TW_TRY(graph::append_node(graph, names, std::move(node), call.num_outputs));
  subject.anchor_op = call.op;
  subject.graph = std::move(graph);
  return subject;
}

}  // namespace

Result<std::vector<Subject>> load_workload(const SubjectOptions& options) {
  const nlohmann::json file = parse_json(TW_TRY(read_file(options.workload)), std::nothrow);
  if (file.is_discarded() || !file.is_object() || !file.contains("cases"))
    return fail(ErrorKind::Parse, fmt::format("'{}' is no workload file", options.workload),
                "it must be a JSON object with a list `cases`");
  std::vector<Subject> subjects;
  std::vector<std::string> suites, ids;
  for (const nlohmann::json& entry : file["cases"]) {
    const std::string id = entry.value("id", ""), suite = entry.value("suite", "");
    suites.push_back(suite);
    ids.push_back(id);
    if (!options.suite.empty() && suite != options.suite) continue;
    if (!options.id.empty() && id != options.id) continue;
    if (!entry.contains("params") || !entry.contains("output_shape"))
      return fail(ErrorKind::Parse, fmt::format("case '{}' lacks params or output_shape", id));
    Result<Subject> subject = load_case(entry, options.seed);
    if (!subject) return tl::unexpected<Error>(std::move(subject.error()).at(id));
    subjects.push_back(*std::move(subject));
  }
  if (subjects.empty()) {
    const bool by_id = !options.id.empty();
    return fail(ErrorKind::Usage,
                fmt::format("no case with {} '{}' in '{}'", by_id ? "id" : "suite",
                            by_id ? options.id : options.suite, options.workload),
                {}, by_id ? did_you_mean(options.id, ids) : did_you_mean(options.suite, suites));
  }
  return subjects;
}

}  // namespace tilewright::driver
