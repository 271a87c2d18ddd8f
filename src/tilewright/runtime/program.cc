#include "tilewright/runtime/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "tilewright/base/json.h"
#include "tilewright/runtime/limits.h"

namespace tilewright::runtime {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
using Place = ValueSpec::Place;

struct PlaceName {
  Place place;
  const char* text;
};
constexpr PlaceName kPlaces[] = {{Place::Input, "input"},
                                 {Place::Output, "output"},
                                 {Place::Arena, "arena"},
                                 {Place::Weights, "weights"},
                                 {Place::View, "view"}};

const char* place_name(Place place) {
  for (const PlaceName& row : kPlaces)
    if (row.place == place) return row.text;
  return "?";
}

/// Reads members of JSON objects and collects every problem with its path.
class Reader {
 public:
  void problem(const std::string& path, std::string what) {
    if (problems_.size() < kMaxProblems)
      problems_.push_back(Error{ErrorKind::Package, std::move(what), path, {}, {}, {}});
  }
  bool ok() const { return problems_.empty(); }

  const Json* member(const Json& object, const std::string& path, const char* key) {
    const auto it = object.is_object() ? object.find(key) : object.end();
    if (object.is_object() && it != object.end()) return &*it;
    problem(path, object.is_object() ? fmt::format("the key '{}' is missing", key)
                                     : std::string("an object is expected"));
    return nullptr;
  }
  std::string text(const Json& object, const std::string& path, const char* key,
                   const char* fallback = nullptr) {
    if (fallback != nullptr && object.is_object() && !object.contains(key)) return fallback;
    const Json* value = member(object, path, key);
    if (value == nullptr) return {};
    if (const auto* string = value->get_ptr<const Json::string_t*>()) return *string;
    problem(path + "." + key, "a string is expected");
    return {};
  }
  int64_t integer(const Json& object, const std::string& path, const char* key, int64_t lo,
                  int64_t hi, std::optional<int64_t> fallback = std::nullopt) {
    if (fallback && object.is_object() && !object.contains(key)) return *fallback;
    const Json* value = member(object, path, key);
    return value == nullptr ? lo : number(*value, path + "." + key, lo, hi);
  }
  int64_t number(const Json& value, const std::string& path, int64_t lo, int64_t hi) {
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX});
    if (fits && value.get<int64_t>() >= lo && value.get<int64_t>() <= hi)
      return value.get<int64_t>();
    problem(path, fmt::format("an integer from {} to {} is expected", lo, hi));
    return lo;
  }
  /// Elements of an array member; empty with a problem if it is none.
  const Json& list(const Json& object, const std::string& path, const char* key) {
    static const Json empty = Json::array();
    const Json* value = member(object, path, key);
    if (value == nullptr) return empty;
    if (value->is_array() && value->size() <= kMaxEntries) return *value;
    problem(path + "." + key,
            fmt::format("an array of at most {} entries is expected", kMaxEntries));
    return empty;
  }
  std::vector<int> ids(const Json& object, const std::string& path, const char* key, int lo,
                       size_t count) {
    std::vector<int> result;
    for (const Json& entry : list(object, path, key))
      result.push_back(
          static_cast<int>(number(entry, fmt::format("{}.{}[{}]", path, key, result.size()), lo,
                                  static_cast<int64_t>(count) - 1)));
    return result;
  }
  std::vector<std::string> texts(const Json& object, const std::string& path, const char* key) {
    std::vector<std::string> result;
    for (const Json& entry : list(object, path, key)) {
      if (!entry.is_string())
        problem(fmt::format("{}.{}[{}]", path, key, result.size()), "a string is expected");
      result.push_back(entry.is_string() ? entry.get<std::string>() : std::string());
    }
    return result;
  }

  /// requires: !ok().
  Error error() && {
    Error first = std::move(problems_.front());
    first.others.assign(std::make_move_iterator(problems_.begin() + 1),
                        std::make_move_iterator(problems_.end()));
    return first;
  }

 private:
  static constexpr size_t kMaxProblems = 100, kMaxEntries = 1 << 22;
  std::vector<Error> problems_;
};

/// Bytes of a value, or -1 if that exceeds kMaxBytes. Extents of 0 count as 1 in that test, so that
/// strides cannot overflow either.
int64_t checked_bytes(DType dtype, const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, std::max<int64_t>(extent, 1), &count) || count > kMaxBytes)
      return -1;
  const int64_t bytes = storage_bytes(dtype, element_count(shape));
  return bytes > kMaxBytes ? -1 : bytes;
}

ValueSpec read_value(Reader& in, const Json& json, const std::string& path,
                     const Program& program) {
  ValueSpec value;
  value.name = in.text(json, path, "name");
  const std::string place = in.text(json, path, "place"), dtype = in.text(json, path, "dtype");
  const auto row = std::find_if(std::begin(kPlaces), std::end(kPlaces),
                                [&](const PlaceName& entry) { return place == entry.text; });
  if (row != std::end(kPlaces))
    value.place = row->place;
  else
    in.problem(path + ".place",
               fmt::format("'{}' is not one of input, output, arena, weights, view", place));
  if (const auto parsed = parse_dtype(dtype))
    value.dtype = *parsed;
  else
    in.problem(path + ".dtype", fmt::format("unknown element type '{}'", dtype));
  for (const Json& extent : in.list(json, path, "shape"))
    value.shape.push_back(
        in.number(extent, fmt::format("{}.shape[{}]", path, value.shape.size()), 0, kMaxBytes));
  if (value.shape.size() > kMaxRank)
    in.problem(path + ".shape", fmt::format("rank {} exceeds {}", value.shape.size(), kMaxRank));
  value.offset = in.integer(json, path, "offset", 0, kMaxBytes, 0);
  value.dynamic_axis = static_cast<int>(
      in.integer(json, path, "dynamic_axis", -1, static_cast<int64_t>(value.shape.size()) - 1, -1));
  value.of = static_cast<int>(in.integer(json, path, "of", 0, INT32_MAX, -1));
  const int64_t bytes = checked_bytes(value.dtype, value.shape);
  if (bytes < 0)
    in.problem(path,
               fmt::format("'{}': shape {} is too large", value.name, to_string(value.shape)));
  const bool arena = value.place == Place::Arena, weights = value.place == Place::Weights;
  if (!arena && !weights) return value;
  if (value.offset % 64 != 0)
    in.problem(path + ".offset", fmt::format("{} is not a multiple of 64", value.offset));
  const int64_t room = arena ? program.arena_bytes : program.weights_bytes;
  if (bytes >= 0 && value.offset + bytes > room)
    in.problem(path, fmt::format("'{}' needs bytes {} to {} of {}, which has {}", value.name,
                                 value.offset, value.offset + bytes, place, room));
  return value;
}

KernelInfo read_kernel(Reader& in, const Json& json, const std::string& path,
                       const std::string& symbol) {
  KernelInfo kernel;
  kernel.symbol = symbol;
  kernel.shared_bytes = in.integer(json, path, "shared_bytes", 0, kMaxBytes);
  kernel.per_worker_bytes = in.integer(json, path, "per_worker_bytes", 0, kMaxBytes);
  if (kernel.per_worker_bytes % 64 != 0)
    in.problem(path + ".per_worker_bytes",
               fmt::format("{} is not a multiple of 64", kernel.per_worker_bytes));
  return kernel;
}

/// What is known of a kernel's arithmetic; nothing in packages that do not say.
std::optional<KernelWork> read_work(Reader& in, const Json& json, const std::string& path) {
  if (!json.is_object() || !json.contains("operations")) return std::nullopt;
  KernelWork work;
  work.operations = in.integer(json, path, "operations", 0, INT64_MAX);
  const std::string dtype = in.text(json, path, "computes");
  if (const auto parsed = parse_dtype(dtype))
    work.dtype = *parsed;
  else
    in.problem(path + ".computes", fmt::format("unknown element type '{}'", dtype));
  work.algorithm = in.text(json, path, "algorithm", "");
  return work;
}

void check_args(Reader& in, const StepSpec& step, const std::string& path, const Program& program) {
  const size_t first_output = step.args.size() - static_cast<size_t>(step.num_outputs);
  for (size_t i = 0; i < step.args.size(); ++i) {
    const std::string where = fmt::format("{}.args[{}]", path, i);
    if (step.args[i] < 0) {
      if (step.host.empty()) in.problem(where, "only a host function has absent arguments");
      continue;
    }
    const ValueSpec& value = program.values[static_cast<size_t>(step.args[i])];
    const bool written = i >= first_output;
    const bool view = value.place == Place::View && value.of >= 0 &&
                      static_cast<size_t>(value.of) < program.values.size();
    const Place place = view ? program.values[static_cast<size_t>(value.of)].place : value.place;
    if (written && (place == Place::Input || place == Place::Weights))
      in.problem(where, fmt::format("step '{}' writes '{}', which is {}", step.name, value.name,
                                    place == Place::Input ? "an input" : "a constant"));
  }
}

/// A view shows an input or output that has as many bytes.
void check_views(Reader& in, const Program& program) {
  for (size_t i = 0; i < program.values.size(); ++i) {
    const ValueSpec& value = program.values[i];
    if (value.place != Place::View) continue;
    const std::string path = fmt::format("$.values[{}].of", i);
    if (value.of < 0 || static_cast<size_t>(value.of) >= program.values.size()) {
      in.problem(path, fmt::format("there is no value {}", value.of));
      continue;
    }
    const ValueSpec& whole = program.values[static_cast<size_t>(value.of)];
    if (whole.place != Place::Input && whole.place != Place::Output)
      in.problem(path, fmt::format("'{}' is no input or output", whole.name));
    else if (checked_bytes(value.dtype, value.shape) > checked_bytes(whole.dtype, whole.shape))
      in.problem(path, fmt::format("'{}' is larger than '{}'", value.name, whole.name));
  }
}

StepSpec read_step(Reader& in, const Json& json, const std::string& path, const Program& program) {
  StepSpec step;
  step.name = in.text(json, path, "name");
  step.kernel = in.text(json, path, "kernel", "");
  step.host = in.text(json, path, "host", "");
  step.launch = in.text(json, path, "launch", "");
  step.attrs = in.text(json, path, "attrs", "");
  step.args = in.ids(json, path, "args", -1, program.values.size());
  step.num_outputs = static_cast<int>(in.integer(json, path, "num_outputs", 0,
                                                 static_cast<int64_t>(step.args.size()),
                                                 step.args.empty() ? 0 : 1));
  if (!step.kernel.empty() + !step.host.empty() + !step.launch.empty() != 1)
    in.problem(path, fmt::format("step '{}' must name a kernel, a host function or a launch, and "
                                 "only one of them",
                                 step.name));
  if (!step.launch.empty() && program.launches.count(step.launch) == 0)
    in.problem(path + ".launch", fmt::format("there is no launch '{}'", step.launch));
  if (!step.kernel.empty() && program.kernels.count(step.kernel) == 0)
    in.problem(path + ".kernel", fmt::format("there is no kernel '{}'", step.kernel));
  if (!step.attrs.empty() && !parse_json(step.attrs, std::nothrow).is_object())
    in.problem(path + ".attrs", "the text of a JSON object is expected");
  check_args(in, step, path, program);
  return step;
}

void check_interface(Reader& in, const Program& program) {
  std::set<int> inputs, outputs(program.outputs.begin(), program.outputs.end());
  std::map<std::string, int> input_names, output_names;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const int id = program.inputs[i];
    const ValueSpec& value = program.values[static_cast<size_t>(id)];
    const std::string path = fmt::format("$.inputs[{}]", i);
    if (value.place != Place::Input)
      in.problem(
          path, fmt::format("'{}' is in place {}, not input", value.name, place_name(value.place)));
    if (!inputs.insert(id).second)
      in.problem(path, fmt::format("'{}' is listed twice", value.name));
    else if (!input_names.emplace(value.name, id).second)
      in.problem(path, fmt::format("two inputs are called '{}'", value.name));
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const int id = program.outputs[i];
    const std::string& name = program.values[static_cast<size_t>(id)].name;
    if (output_names.emplace(name, id).first->second != id)
      in.problem(fmt::format("$.outputs[{}]", i), fmt::format("two outputs are called '{}'", name));
  }
  for (size_t i = 0; i < program.values.size(); ++i) {
    const ValueSpec& value = program.values[i];
    const int id = static_cast<int>(i);
    if ((value.place == Place::Input && inputs.count(id) == 0) ||
        (value.place == Place::Output && outputs.count(id) == 0))
      in.problem(fmt::format("$.values[{}]", i),
                 fmt::format("'{}' is in place {} but not listed as one", value.name,
                             place_name(value.place)));
  }
}

void read_target(Reader& in, const Json& json, TargetSpec& target) {
  const Json* object = in.member(json, "$", "target");
  if (object == nullptr) return;
  target.name = in.text(*object, "$.target", "name");
  target.triple = in.text(*object, "$.target", "triple");
  target.cpu = in.text(*object, "$.target", "cpu");
  target.features = in.texts(*object, "$.target", "features");
}

/// The members of object `key`, if it is one.
const Json* object_member(Reader& in, const Json& json, const char* key) {
  const Json* object = in.member(json, "$", key);
  if (object == nullptr || object->is_object()) return object;
  in.problem(fmt::format("$.{}", key), "an object is expected");
  return nullptr;
}

void read_header(Reader& in, const Json& json, Program& program) {
  program.name = in.text(json, "$", "name");
  read_target(in, json, program.target);
  program.math = in.text(json, "$", "math", "fast");
  program.arena_bytes = in.integer(json, "$", "arena_bytes", 0, kMaxBytes);
  program.arena_lower_bound = in.integer(json, "$", "arena_lower_bound", 0, kMaxBytes, 0);
  program.weights_bytes = in.integer(json, "$", "weights_bytes", 0, kMaxBytes);
  if (const Json* notes = object_member(in, json, "notes"))
    for (const auto& [key, value] : notes->items()) {
      if (!value.is_string()) in.problem("$.notes." + key, "a string is expected");
      program.notes[key] = value.is_string() ? value.get<std::string>() : std::string();
    }
  if (const Json* kernels = object_member(in, json, "kernels"))
    for (const auto& [symbol, info] : kernels->items()) {
      program.kernels[symbol] = read_kernel(in, info, "$.kernels." + symbol, symbol);
      if (auto work = read_work(in, info, "$.kernels." + symbol)) program.works[symbol] = *work;
    }
  if (!json.contains("launches")) return;
  if (const Json* launches = object_member(in, json, "launches"))
    for (const auto& [launch, info] : launches->items()) {
      const std::string path = "$.launches." + launch;
      if (launch.empty() || launch.find('/') != std::string::npos)
        in.problem(path, "a name without '/' is expected");
      program.launches[launch].device = in.text(info, path, "device");
    }
}

OrderedJson value_json(const ValueSpec& value) {
  OrderedJson json{{"name", value.name},
                   {"place", place_name(value.place)},
                   {"dtype", name(value.dtype)},
                   {"shape", value.shape}};
  if (value.offset != 0) json["offset"] = value.offset;
  if (value.dynamic_axis >= 0) json["dynamic_axis"] = value.dynamic_axis;
  if (value.of >= 0) json["of"] = value.of;
  return json;
}

OrderedJson kernel_json(const KernelInfo& kernel, const Program& program) {
  OrderedJson json = {{"shared_bytes", kernel.shared_bytes},
                      {"per_worker_bytes", kernel.per_worker_bytes}};
  if (const auto work = program.works.find(kernel.symbol); work != program.works.end()) {
    json["operations"] = work->second.operations;
    json["computes"] = std::string(name(work->second.dtype));
    if (!work->second.algorithm.empty()) json["algorithm"] = work->second.algorithm;
  }
  return json;
}

OrderedJson step_json(const StepSpec& step) {
  OrderedJson json{{"name", step.name}};
  if (!step.kernel.empty()) json["kernel"] = step.kernel;
  if (!step.host.empty()) json["host"] = step.host;
  if (!step.launch.empty()) json["launch"] = step.launch;
  if (!step.attrs.empty()) json["attrs"] = step.attrs;
  json["args"] = step.args;
  if (step.num_outputs != 1) json["num_outputs"] = step.num_outputs;
  return json;
}

/// A list or an object with one entry per line.
template <class Items, class ToText>
std::string lines(char open, const Items& items, char close, ToText&& to_text) {
  std::string text(1, open);
  const char* separator = "\n  ";
  for (const auto& item : items) {
    text += separator + to_text(item);
    separator = ",\n  ";
  }
  return text + "\n " + close;
}

}  // namespace

std::string to_json(const Program& program) {
  auto text = [](const auto& json) { return json_text(OrderedJson(json)); };
  const TargetSpec& target = program.target;
  const OrderedJson target_json{{"name", target.name},
                                {"triple", target.triple},
                                {"cpu", target.cpu},
                                {"features", target.features}};
  OrderedJson launches = OrderedJson::object();
  for (const auto& [name, info] : program.launches) launches[name] = {{"device", info.device}};
  const std::pair<const char*, std::string> members[] = {
      {"name", text(program.name)},
      {"target", text(target_json)},
      {"math", text(program.math)},
      {"arena_bytes", text(program.arena_bytes)},
      {"arena_lower_bound", text(program.arena_lower_bound)},
      {"weights_bytes", text(program.weights_bytes)},
      {"inputs", text(program.inputs)},
      {"outputs", text(program.outputs)},
      {"notes",
       lines('{', program.notes, '}',
             [&](const auto& note) { return text(note.first) + ": " + text(note.second); })},
      {"kernels", lines('{', program.kernels, '}',
                        [&](const auto& kernel) {
                          return text(kernel.first) + ": " +
                                 text(kernel_json(kernel.second, program));
                        })},
      {"launches", text(launches)},
      {"values", lines('[', program.values, ']',
                       [&](const ValueSpec& value) { return text(value_json(value)); })},
      {"steps", lines('[', program.steps, ']',
                      [&](const StepSpec& step) { return text(step_json(step)); })}};
  std::string result;
  for (const auto& [key, value] : members)
    result += fmt::format("{}\"{}\": {}", result.empty() ? "{\n " : ",\n ", key, value);
  return result + "\n}";
}

Result<Program> program_from_json(std::string_view text) {
  Json json;
  try {
    json = parse_json(text);
  } catch (const Json::exception& e) {
    return fail(ErrorKind::Package, "the program is not valid JSON", e.what());
  }
  Reader in;
  Program program;
  if (!json.is_object()) return fail(ErrorKind::Package, "the program is not a JSON object");
  read_header(in, json, program);
  size_t index = 0;
  for (const Json& value : in.list(json, "$", "values"))
    program.values.push_back(read_value(in, value, fmt::format("$.values[{}]", index++), program));
  check_views(in, program);
  program.inputs = in.ids(json, "$", "inputs", 0, program.values.size());
  program.outputs = in.ids(json, "$", "outputs", 0, program.values.size());
  index = 0;
  for (const Json& step : in.list(json, "$", "steps"))
    program.steps.push_back(read_step(in, step, fmt::format("$.steps[{}]", index++), program));
  if (in.ok()) check_interface(in, program);
  if (!in.ok()) return tl::unexpected<Error>(std::move(in).error());
  return program;
}

}  // namespace tilewright::runtime
