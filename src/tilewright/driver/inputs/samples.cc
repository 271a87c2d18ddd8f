#include "tilewright/driver/inputs/samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/json.h"
#include "tilewright/base/rng.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/inputs/npz.h"
#include "tilewright/driver/verify/reference.h"
#include "tilewright/rules/common/work.h"

namespace tilewright::driver {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kAbout = "samples/about.json", *kOutputs = "samples/outputs.npz";
constexpr int64_t kElements = 4096;      // of one output that are kept, and
constexpr int64_t kAllElements = 65536;  // of all together
/// Operations and elements that the interpreter does in about a tenth of a second.
constexpr double kInterpreted = 1e6;
constexpr uint64_t kSeed = 1;

SampleInput sample_of(const InputType& type, uint64_t seed) {
  SampleInput input{type.name, seed};
  if (type.limits) {
    input.low = type.limits->low;
    input.high = std::max(type.limits->low, type.limits->high);
  } else if (!is_float(type.dtype)) {
    input.low = 0;
    input.high = type.dtype == DType::Bool ? 1 : 9;
  }
  return input;
}

/// Every stride-th element.
Array every(const Array& array, int64_t stride) {
  const int64_t count = (array.size() + stride - 1) / stride;
  Array result(array.dtype(), {count});
  for (int64_t i = 0; i < count; ++i) {
    if (is_float(array.dtype()))
      result.set(i, array.get(i * stride));
    else
      result.set_int(i, array.get_int(i * stride));
  }
  return result;
}

/// Odd, so that it meets all positions of axes whose extents are powers of two.
int64_t stride_for(int64_t size, size_t outputs) {
  const int64_t kept = std::max<int64_t>(
      64, std::min(kElements, kAllElements / std::max<int64_t>(1, static_cast<int64_t>(outputs))));
  return size <= kept ? 1 : ((size + kept - 1) / kept) | 1;
}

/// Whether the interpreter is quick with all of the model: operations and elements, since moving a
/// value is work, too.
bool is_small(const Subject& subject, const compile::CompiledModel& model) {
  double work = 0;
  for (const compile::KernelReport* kernel : compile::all_kernels(model)) {
    if (kernel->symbol.empty()) return false;  // an accelerator's layer
    work += rules::work_of(kernel->func).operations * static_cast<double>(kernel->steps.size());
  }
  for (const runtime::ValueSpec& value : model.program->values)
    work += static_cast<double>(element_count(value.shape));
  if (subject.graph)
    for (const graph::Value& value : subject.graph->values)
      if (!value.constant) work += static_cast<double>(element_count(value.type.shape));
  return work <= kInterpreted;
}

std::map<std::string, Array> arrays_of(const runtime::Program& program,
                                       const std::vector<SampleInput>& inputs) {
  std::map<std::string, Array> arrays;
  for (size_t i = 0; i < inputs.size() && i < program.inputs.size(); ++i) {
    const auto& value = program.values[static_cast<size_t>(program.inputs[i])];
    arrays[value.name] = sample_array(inputs[i], value.dtype, value.shape);
  }
  return arrays;
}

/// Outputs of a session, by name.
Result<std::map<std::string, Array>> run_session(runtime::Session& session,
                                                 const std::map<std::string, Array>& inputs) {
  for (const auto& [name, value] : inputs) TW_TRY_STATUS(session.set_input(name, value));
  TW_TRY_STATUS(session.run());
  const runtime::Program& program = session.program();
  std::map<std::string, Array> outputs;
  for (const int id : program.outputs) {
    const std::string& name = program.values[static_cast<size_t>(id)].name;
    outputs[name] = TW_TRY(session.get_output(name));
  }
  return outputs;
}

Result<std::map<std::string, Array>> run_compiled(const compile::CompiledModel& model,
                                                  const compile::CompileOptions& options,
                                                  const std::map<std::string, Array>& inputs) {
  runtime::SessionOptions session;
  session.threads = options.threads;
  session.flush_denormals = true;
  compile::LaunchSettings launch;
  launch.observer = options.observer;
  session.load_launch = compile::make_launch_loader(launch, std::make_shared<compile::LaunchLog>());
  const auto opened = TW_TRY(compile::open_session(model, session));
  std::map<std::string, Array> outputs = TW_TRY(run_session(*opened, inputs));
  for (auto& [name, value] : outputs) value = value.clone();
  return outputs;
}

std::map<std::string, RoundingLimit> limits_of(const Subject& subject) {
  std::map<std::string, RoundingLimit> limits;
  if (!subject.graph || subject.quantized) return limits;
  const std::vector<RoundingLimit> all = rounding_limits(*subject.graph);
  for (const graph::ValueId id : subject.graph->outputs)
    limits[subject.graph->values[static_cast<size_t>(id)].name] = all[static_cast<size_t>(id)];
  return limits;
}

/// NumPy has no bfloat16; f32 holds its values.
DType stored_as(DType dtype) { return dtype == DType::BF16 ? DType::F32 : dtype; }

std::string key_of(size_t output) { return fmt::format("output_{}", output); }

}  // namespace

Array sample_array(const SampleInput& input, DType dtype, const Shape& shape) {
  Array array(dtype, shape);
  Rng rng(input.seed);
  for (int64_t i = 0; i < array.size(); ++i) {
    const int64_t number =
        input.low ? rng.between(*input.low, *input.high) : rng.between(-128, 127);
    if (is_float(dtype))
      array.set(i, static_cast<double>(number) / (input.low ? 1 : 64));
    else
      array.set_int(i, number);
  }
  return array;
}

Result<std::optional<PackageSamples>> make_samples(const Subject& subject,
                                                   const compile::CompiledModel& model,
                                                   const compile::CompileOptions& options,
                                                   const std::string& by) {
  const runtime::Program& program = *model.program;
  const bool runs = options.target.gpu() == nullptr && hw::missing_features(options.cpu()).empty();
  const bool interpreted = by == "interp" || (by == "auto" && is_small(subject, model));
  if (!interpreted && !runs) return std::nullopt;
  PackageSamples samples;
  samples.source = interpreted ? "interpreter" : "package";
  for (const InputType& type : input_types(program, subject))
    samples.inputs.push_back(sample_of(type, kSeed + samples.inputs.size()));
  const std::map<std::string, Array> inputs = arrays_of(program, samples.inputs);
  const std::map<std::string, Array> all =
      TW_TRY(!interpreted    ? run_compiled(model, options, inputs)
             : subject.graph ? run_reference(*subject.graph, inputs)
                             : run_reference(*subject.func, inputs));
  const std::map<std::string, RoundingLimit> limits = limits_of(subject);
  for (const int id : program.outputs) {
    const std::string& name = program.values[static_cast<size_t>(id)].name;
    const auto value = all.find(name);
    if (value == all.end())
      return fail(ErrorKind::Invalid, fmt::format("the interpreter has no output '{}'", name));
    SampleOutput output{name, value->second.shape(), 1, {}, {}};
    output.stride = stride_for(value->second.size(), program.outputs.size());
    output.values = every(value->second, output.stride);
    if (const auto limit = limits.find(name); limit != limits.end()) output.limit = limit->second;
    samples.outputs.push_back(std::move(output));
  }
  return samples;
}

Result<std::map<std::string, std::string>> sample_members(const PackageSamples& samples) {
  Json about = {{"version", 1},
                {"source", samples.source},
                {"inputs", Json::array()},
                {"outputs", Json::array()}};
  for (const SampleInput& input : samples.inputs) {
    Json json = {{"name", input.name}, {"seed", input.seed}};
    if (input.low) json.update({{"low", *input.low}, {"high", *input.high}});
    about["inputs"].push_back(std::move(json));
  }
  std::map<std::string, Array> arrays;
  for (const SampleOutput& output : samples.outputs) {
    about["outputs"].push_back({{"name", output.name},
                                {"dtype", std::string(name(output.values.dtype()))},
                                {"shape", output.shape},
                                {"stride", output.stride},
                                {"absolute", output.limit.absolute},
                                {"relative", output.limit.relative}});
    arrays[key_of(arrays.size())] = output.values.cast(stored_as(output.values.dtype()));
  }
  return std::map<std::string, std::string>{{kAbout, json_text(about, 1) + "\n"},
                                            {kOutputs, TW_TRY(npz_bytes(arrays))}};
}

Result<std::optional<PackageSamples>> read_samples(const runtime::Package& package) {
  const runtime::PackageMember *about = package.member(kAbout), *outputs = package.member(kOutputs);
  if (about == nullptr || outputs == nullptr) return std::nullopt;
  const std::map<std::string, Array> arrays = TW_TRY(parse_npz(outputs->bytes, kOutputs));
  PackageSamples samples;
  try {
    const Json json = parse_ordered_json(about->bytes);
    samples.source = json.at("source").get<std::string>();
    for (const Json& entry : json.at("inputs")) {
      SampleInput input{entry.at("name").get<std::string>(), entry.at("seed").get<uint64_t>()};
      if (entry.contains("low")) {
        input.low = entry.at("low").get<int64_t>();
        input.high = entry.at("high").get<int64_t>();
      }
      samples.inputs.push_back(std::move(input));
    }
    for (const Json& entry : json.at("outputs")) {
      const std::optional<DType> dtype = parse_dtype(entry.at("dtype").get<std::string>());
      SampleOutput output{entry.at("name").get<std::string>(),
                          entry.at("shape").get<Shape>(),
                          entry.at("stride").get<int64_t>(),
                          {},
                          {entry.at("absolute").get<double>(), entry.at("relative").get<double>()}};
      const auto values = arrays.find(key_of(samples.outputs.size()));
      if (!dtype || values == arrays.end() || output.stride < 1)
        return fail(ErrorKind::Package, fmt::format("'{}' is damaged", kAbout));
      output.values = values->second.cast(*dtype);
      samples.outputs.push_back(std::move(output));
    }
  } catch (const Json::exception& problem) {
    return fail(ErrorKind::Package, fmt::format("'{}' is damaged", kAbout), problem.what());
  }
  return samples;
}

std::map<std::string, InputLimits> sample_limits(const runtime::Package& package) {
  std::map<std::string, InputLimits> limits;
  const auto samples = read_samples(package);
  if (!samples || !*samples) return limits;
  for (const SampleInput& input : (*samples)->inputs)
    if (input.low && *input.low <= *input.high) limits[input.name] = {*input.low, *input.high};
  return limits;
}

Result<std::vector<SampleResult>> check_samples(runtime::Session& session,
                                                const PackageSamples& samples) {
  const runtime::Program& program = session.program();
  bool fits = samples.inputs.size() == program.inputs.size();
  for (size_t i = 0; fits && i < samples.inputs.size(); ++i) {
    const SampleInput& input = samples.inputs[i];
    fits = input.name == program.values[static_cast<size_t>(program.inputs[i])].name &&
           (!input.low || *input.low <= *input.high);
  }
  if (!fits) return fail(ErrorKind::Package, "the package's samples are not for its inputs");
  const std::map<std::string, Array> actual =
      TW_TRY(run_session(session, arrays_of(program, samples.inputs)));
  const MathMode math = program.math == "exact" ? MathMode::Exact : MathMode::Fast;
  std::vector<SampleResult> results;
  for (const SampleOutput& output : samples.outputs) {
    SampleResult result{output.name, {}};
    const auto value = actual.find(output.name);
    if (value == actual.end())
      result.difference.problem = "the package has no such output";
    else if (value->second.shape() != output.shape)
      result.difference.problem = fmt::format(
          "shape {} instead of {}", to_string(value->second.shape()), to_string(output.shape));
    else
      result.difference = within(
          measure::compare(every(value->second, output.stride), output.values, math), output.limit);
    results.push_back(std::move(result));
  }
  return results;
}

Status save_with_samples(const std::string& path, const Subject& subject,
                         const compile::CompiledModel& model,
                         const compile::CompileOptions& options, const std::string& by) {
  std::map<std::string, std::string> members;
  if (by != "none") {
    const auto samples = [&] {
      const PromptEnd prompt;
      return make_samples(subject, model, options, by);
    }();
    TW_TRY_STATUS(check_interrupt());
    if (!samples)
      say(fmt::format("note: the package has no samples to verify it by: {}",
                      samples.error().what));
    else if (*samples)
      members = TW_TRY(sample_members(**samples));
    else
      detail("no samples to verify the package by: its code does not run on this CPU");
  }
  return compile::save_package(path, model, members);
}

}  // namespace tilewright::driver
