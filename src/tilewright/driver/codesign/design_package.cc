#include "tilewright/driver/codesign/design_package.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/compile/backends.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/inputs/samples.h"

namespace tilewright::driver {
namespace {

constexpr const char* kCalibration = "random:4";

/// The target whose hardware a file describes. errors: of the hardware; Unsupported (nobody
/// compiles for it).
Result<std::string> target_of_file(const std::string& path) {
  const compile::LoadedHardware loaded = TW_TRY(compile::load_hardware(path));
  for (const compile::Backend* backend : compile::backends())
    if (backend->runtime().hardware() == loaded.reader) return backend->target_names()[0];
  return fail(ErrorKind::Unsupported, "there is no compiler for such hardware");
}

/// Cases of workload files are called `suite/id`.
std::string file_of(std::string name) {
  std::replace(name.begin(), name.end(), '/', '-');
  return name + ".twm";
}

std::string one_line(const Error& error) {
  return error.why.empty() ? error.what : fmt::format("{}: {}", error.what, error.why);
}

/// What `compile` would be told, for each file of the inputs.
std::vector<SubjectOptions> options_of(const SearchInputs& inputs, const std::string& target,
                                       const std::string& hw) {
  SubjectOptions common;
  static_cast<ModelOptions&>(common) = inputs.model;
  common.target = target;
  common.hw = hw;
  common.fallback = "cpu";
  std::vector<SubjectOptions> all;
  // Each by itself: one that cannot be compiled does not take the others with it.
  for (const std::string& path : inputs.model.paths) {
    SubjectOptions& one = all.emplace_back(common);
    one.paths = {path};
    one.workload.clear();
    if (!path.ends_with(".tw")) one.quantize = kCalibration;
  }
  if (!inputs.model.workload.empty()) all.emplace_back(common).paths.clear();
  return all;
}

}  // namespace

Result<DesignPackages> DesignPackages::compile(const SearchInputs& inputs, const std::string& toml,
                                               const std::string& command) {
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  const std::string hw = folder.file("hw.toml");
  TW_TRY_STATUS(write_file(hw, toml));
  DesignPackages packages;
  const auto add = [&](const std::string& name, std::string problem,
                       std::shared_ptr<const Compiled> compiled) {
    packages.packages_.push_back({file_of(name), std::move(problem)});
    packages.compiled_.push_back(std::move(compiled));
  };
  for (const SubjectOptions& options : options_of(inputs, TW_TRY(target_of_file(hw)), hw)) {
    Result<std::vector<Subject>> subjects = load_subjects(options);
    TW_TRY_STATUS(check_interrupt());
    if (!subjects) {
      const std::string& path = options.paths.empty() ? options.workload : options.paths[0];
      add(std::filesystem::path(path).stem().string(), one_line(subjects.error()), nullptr);
      continue;
    }
    compile::CompileOptions compile = TW_TRY(compile_options(options));
    compile.command = command;
    for (Subject& subject : *subjects) {
      say(fmt::format("compiling {} for the design", subject.name));
      Result<compile::CompiledModel> model = compile_subject(subject, compile);
      TW_TRY_STATUS(check_interrupt());
      const std::string name = subject.name;
      if (!model)
        add(name, one_line(model.error()), nullptr);
      else
        add(name, {},
            std::make_shared<Compiled>(Compiled{std::move(subject), compile, *std::move(model)}));
    }
  }
  return packages;
}

Status DesignPackages::write(const std::string& folder) const {
  for (size_t i = 0; i < packages_.size(); ++i) {
    if (!compiled_[i]) continue;
    say(fmt::format("making samples to verify {} by", compiled_[i]->subject.name));
    TW_TRY_STATUS(save_with_samples(folder + "/" + packages_[i].file, compiled_[i]->subject,
                                    compiled_[i]->model, compiled_[i]->options, "auto"));
  }
  return {};
}

}  // namespace tilewright::driver
