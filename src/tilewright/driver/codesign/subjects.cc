#include "tilewright/driver/codesign/subjects.h"

#include <fmt/format.h>

#include "tilewright/base/file.h"

namespace tilewright::driver {
namespace {

Result<CodesignSubject> codesign_subject(Subject subject) {
  if (subject.package)
    return fail(ErrorKind::Usage, fmt::format("'{}' is a package", subject.name),
                "its layers are compiled already", "name the model that it was made from");
  CodesignSubject one{subject.name, std::nullopt, std::move(subject.func)};
  if (subject.single_operator) {
    one.func = TW_TRY(tensor::op_func(graph::op_call(*subject.graph, subject.graph->nodes.at(0))));
  } else {
    one.graph = std::move(subject.graph);
  }
  return one;
}

}  // namespace

Result<std::vector<CodesignSubject>> codesign_subjects(const SubjectOptions& options) {
  std::vector<CodesignSubject> subjects;
  for (Subject& subject : TW_TRY(load_subjects(options)))
    subjects.push_back(TW_TRY(codesign_subject(std::move(subject))));
  return subjects;
}

Result<codesign::Workload> joined_workload(const std::vector<CodesignSubject>& subjects,
                                           int order) {
  bool ordered = order == 0;
  std::vector<codesign::Workload> parts;
  for (const CodesignSubject& subject : subjects) {
    int own = 0;
    if (subject.func && !codesign::chains_of(cost::computations_of(*subject.func)).empty())
      own = order;
    ordered |= own > 0;
    parts.push_back(subject.func ? TW_TRY(codesign::workload_of(*subject.func, own))
                                 : TW_TRY(codesign::workload_of(*subject.graph)));
    parts.back().name = subject.name;
  }
  if (!ordered)
    return fail(ErrorKind::Usage, "there is no product of three or more factors",
                "--order says in which order such a product is contracted");
  if (parts.size() == 1) return std::move(parts[0]);
  codesign::Workload all;
  all.name = fmt::format("{} and {} more", parts[0].name, parts.size() - 1);
  for (codesign::Workload& part : parts) {
    for (codesign::WorkloadLayer& layer : part.layers) {
      layer.layer.name = fmt::format("{}: {}", part.name, layer.layer.name);
      all.layers.push_back(std::move(layer));
    }
    all.host.insert(all.host.end(), part.host.begin(), part.host.end());
  }
  return all;
}

Result<std::string> workload_digest(const SubjectOptions& options, int order) {
  std::vector<std::string> files = options.paths;
  if (!options.workload.empty()) files.push_back(options.workload);
  if (files.size() == 1 && options.suite.empty() && options.id.empty() && order == 0 &&
      options.dims.empty() && options.shapes.empty())
    return sha256(TW_TRY(read_file(files[0])));
  std::string all = fmt::format("{} {} {}", options.suite, options.id, order);
  for (const std::string& file : files) all += " " + sha256(TW_TRY(read_file(file)));
  for (const auto* texts : {&options.dims, &options.shapes, &options.constants})
    for (const std::string& text : *texts) all += " " + text;
  return sha256(all);
}

}  // namespace tilewright::driver
