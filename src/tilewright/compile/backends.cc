#include "tilewright/compile/backends.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/names.h"
#include "tilewright/compile/cpu/backend.h"
#include "tilewright/compile/dpu/backend.h"
#include "tilewright/compile/fpga/backend.h"
#include "tilewright/compile/gemmini/backend.h"
#include "tilewright/compile/gpu/backend.h"
#include "tilewright/compile/spatial/backend.h"
#include "tilewright/compile/vta/backend.h"
#include "tilewright/hw/target_file.h"

namespace tilewright::compile {

namespace {

std::vector<const Backend*>& backend_table() {
  static std::vector<const Backend*> table = {
      &cpu_backend(),
      &gpu_backend(hw::GpuLanguage::OpenCl),
      &gpu_backend(hw::GpuLanguage::Cuda),
      &vta_backend(),
      &dpu_backend(),
      &gemmini_backend(),
      &spatial_backend(),
      &fpga_backend(),
  };
  return table;
}

}  // namespace

const std::vector<const Backend*>& backends() { return backend_table(); }

void add_backend(const Backend& backend) {
  TW_CHECK(find_backend(backend.name()) == nullptr, "a second back-end {}", backend.name());
  backend_table().push_back(&backend);
}

const Backend* find_backend(std::string_view name) {
  for (const Backend* backend : backends())
    if (backend->name() == name) return backend;
  return nullptr;
}

const Backend& backend_of(const hw::Target& target) {
  const Backend* backend = find_backend(target.backend);
  TW_CHECK(backend != nullptr, "no back-end {}", target.backend);
  return *backend;
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Backend* backend : backends())
    for (std::string& name : backend->target_names()) names.push_back(std::move(name));
  return names;
}

Result<hw::Target> find_target(const std::string& name, const TargetOptions& options) {
  if (is_path(name)) {
    hw::Target target = TW_TRY(hw::load_target(name));
    const Backend& backend = backend_of(target);
    return backend.accept(std::move(target), options);
  }
  for (const Backend* backend : backends())
    for (const std::string& known : backend->target_names())
      if (known == name) return backend->target(name, options);
  const std::vector<std::string> names = target_names();
  const bool nvidia = name.starts_with("cuda-") || name.starts_with("sm_");
  const std::string near = did_you_mean(name, names);
  return fail(ErrorKind::Device, fmt::format("there is no target '{}'", name),
              fmt::format("the targets are {}{}", fmt::join(names, ", "),
                          nvidia ? "; NVIDIA GPUs before sm_80 are reached by opencl" : ""),
              near.empty() || nvidia ? "tilewright targets" : near);
}

Result<hw::Target> Backend::accept(hw::Target target, const TargetOptions& options) const {
  TW_TRY_STATUS(refuse_accelerator_options(options));
  TW_TRY_STATUS(refuse_options_of_others(target.name, options));
  return target;
}

Result<std::optional<QuantizedModel>> Backend::prepare(const graph::Graph&, const QuantizeSettings&,
                                                       const CompileOptions&) const {
  return std::optional<QuantizedModel>();
}

Result<std::vector<std::string>> Backend::place(const graph::Graph&, const CompileOptions&) const {
  return std::vector<std::string>();
}

bool Backend::joins(const graph::Graph&, const graph::Group&, const CompileOptions&) const {
  return false;
}

Result<LaunchCode> Backend::compile_launch(const graph::Graph&, const graph::Group& launch,
                                           const CompileOptions&) const {
  return fail(ErrorKind::Unsupported, fmt::format("{} has no launches", name()), launch.device);
}

Result<std::optional<LaunchCode>> Backend::compile_func(const Func&, const CompileOptions&) const {
  return std::optional<LaunchCode>();
}

Status refuse_accelerator_options(const TargetOptions& options) {
  if (options.hw.empty() && !options.quantize) return {};
  return fail(ErrorKind::Usage,
              options.hw.empty()  ? "--quantize is for accelerators"
              : !options.quantize ? "--hw is for accelerators"
                                  : "--hw and --quantize are for accelerators",
              {}, "--target vta");
}

Status refuse_tf32(const std::string& target, const TargetOptions& options) {
  if (!options.tf32) return {};
  return fail(ErrorKind::Usage, "--tf32 is for matrix instructions of NVIDIA GPUs",
              fmt::format("the target is {}", target), "--target cuda");
}

Status refuse_own_designs(const std::string& target, const TargetOptions& options) {
  if (!options.own_designs) return {};
  return fail(ErrorKind::Usage, "--designs is for networks on FPGAs",
              fmt::format("the target is {}", target), "--target fpga");
}

Status refuse_options_of_others(const std::string& target, const TargetOptions& options) {
  TW_TRY_STATUS(refuse_tf32(target, options));
  return refuse_own_designs(target, options);
}

}  // namespace tilewright::compile
