#include "tilewright/driver/codesign/search_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/driver/codesign/subjects.h"

namespace tilewright::driver {
namespace {

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

}  // namespace

Result<SearchSubject> load_search(const SearchInputs& inputs) {
  codesign::DesignSpace space = TW_TRY(codesign::load_space(inputs.space));
  SubjectOptions options;
  static_cast<ModelOptions&>(options) = inputs.model;
  codesign::Workload workload =
      TW_TRY(joined_workload(TW_TRY(codesign_subjects(options)), inputs.order));
  return SearchSubject{
      TW_TRY(workload_digest(options, inputs.order)), std::move(workload), std::move(space), {}};
}

Status write_inputs(const SearchInputs& inputs, const std::string& folder) {
  const ModelOptions& model = inputs.model;
  const std::vector<std::string> names = codesign::builtin_spaces();
  const bool named = std::find(names.begin(), names.end(), inputs.space) != names.end();
  nlohmann::ordered_json json;
  json["paths"] = nlohmann::ordered_json::array();
  for (const std::string& path : model.paths) json["paths"].push_back(absolute(path));
  json["workload"] = absolute(model.workload);
  json["suite"] = model.suite;
  json["id"] = model.id;
  json["dims"] = model.dims;
  json["shapes"] = model.shapes;
  json["constants"] = model.constants;
  json["allow_newer_opset"] = model.allow_newer_opset;
  json["order"] = inputs.order;
  json["space"] = named ? inputs.space : absolute(inputs.space);
  json["mapper"] = {{"method", inputs.mapping.method},
                    {"choices", inputs.mapping.choices},
                    {"trials", inputs.mapping.trials},
                    {"seed", inputs.mapping.seed}};
  return write_file(folder + "/run.json", json_text(json, 1) + "\n");
}

Result<SearchInputs> read_inputs(const std::string& folder) {
  const std::string path = folder + "/run.json";
  const Result<std::string> text = read_file(path);
  if (!text)
    return fail(ErrorKind::Io, "the search did not end, its model is not known", text.error().what);
  SearchInputs inputs;
  try {
    const auto json = parse_json(*text);
    json.at("paths").get_to(inputs.model.paths);
    json.at("workload").get_to(inputs.model.workload);
    json.at("suite").get_to(inputs.model.suite);
    json.at("id").get_to(inputs.model.id);
    json.at("dims").get_to(inputs.model.dims);
    json.at("shapes").get_to(inputs.model.shapes);
    json.at("constants").get_to(inputs.model.constants);
    json.at("allow_newer_opset").get_to(inputs.model.allow_newer_opset);
    json.at("order").get_to(inputs.order);
    json.at("space").get_to(inputs.space);
    const auto& mapper = json.at("mapper");
    mapper.at("method").get_to(inputs.mapping.method);
    mapper.at("choices").get_to(inputs.mapping.choices);
    mapper.at("trials").get_to(inputs.mapping.trials);
    mapper.at("seed").get_to(inputs.mapping.seed);
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorKind::Parse, fmt::format("'{}' cannot be read", path), error.what());
  }
  return inputs;
}

std::optional<codesign::Technology> technology_of(const std::string& folder,
                                                  const std::string& name) {
  if (const auto known = codesign::load_technology(name)) return *known;
  const Result<SearchInputs> inputs = read_inputs(folder);
  if (!inputs) return std::nullopt;
  const Result<codesign::DesignSpace> space = codesign::load_space(inputs->space);
  if (!space || space->file().technology.name != name) return std::nullopt;
  return space->file().technology;
}

}  // namespace tilewright::driver
