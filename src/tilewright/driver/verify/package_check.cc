#include "tilewright/driver/verify/package_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/driver/inputs/samples.h"

namespace tilewright::driver {

Result<std::vector<Row>> verify_by_samples(const Subject& subject, const SubjectOptions& options) {
  const std::optional<PackageSamples> samples = TW_TRY(read_samples(*subject.package));
  if (!samples)
    return fail(ErrorKind::Usage, fmt::format("'{}' has no samples to verify it by", subject.name),
                "`compile` adds them if the code runs on the machine that compiles; with --samples "
                "interp the interpreter computes them",
                "--model MODEL.onnx compares it with the model");
  const Runnable runnable = TW_TRY(make_runnable(subject, options));
  std::vector<Row> rows;
  for (SampleResult& result : TW_TRY(check_samples(*runnable.session, *samples))) {
    Row row;
    row.subject = subject.name;
    row.against = samples->source == "interpreter" ? "samples (interpreter)" : "samples";
    row.output = std::move(result.output);
    row.difference = std::move(result.difference);
    rows.push_back(std::move(row));
  }
  return rows;
}

Status check_made_from(const Subject& package, const Subject& model) {
  const runtime::Program& program = package.package->program();
  const auto differ = [&](const std::string& name, const std::string& there,
                          const std::string& here) {
    return fail(ErrorKind::Package,
                fmt::format("'{}' is not made from '{}'", package.name, model.name),
                fmt::format("{} is {} in the model, {} in the package", name, there, here),
                "give the same --dim and --shape as for compile");
  };
  if (!model.graph)
    return fail(ErrorKind::Usage, fmt::format("'{}' is no ONNX model", model.name),
                "a package is compared with the model that it was made from");
  const auto check = [&](const std::vector<graph::ValueId>& wanted,
                         const std::vector<int>& there) -> Status {
    for (const graph::ValueId id : wanted) {
      const graph::Value& value = model.graph->values[static_cast<size_t>(id)];
      const auto text = [](DType dtype, const Shape& shape) {
        return fmt::format("{} {}", name(dtype), to_string(shape));
      };
      const std::string want = text(value.type.dtype, value.type.shape);
      const auto found = std::find_if(there.begin(), there.end(), [&](int i) {
        return program.values[static_cast<size_t>(i)].name == value.name;
      });
      if (found == there.end()) return differ(value.name, want, "absent");
      const runtime::ValueSpec& spec = program.values[static_cast<size_t>(*found)];
      if (text(spec.dtype, spec.shape) != want)
        return differ(value.name, want, text(spec.dtype, spec.shape));
    }
    return {};
  };
  TW_TRY_STATUS(check(model.graph->inputs, program.inputs));
  return check(model.graph->outputs, program.outputs);
}

}  // namespace tilewright::driver
