#include "tilewright/hw/gpu_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "tilewright/base/is_path.h"
#include "tilewright/hw/target_file.h"

namespace tilewright::hw {
std::string_view name(GpuLanguage language) {
  return language == GpuLanguage::Cuda ? "cuda" : "opencl";
}

bool copies_asynchronously(const GpuTarget& target) {
  constexpr std::string_view kPrefix = "sm_";
  return target.language == GpuLanguage::Cuda && target.arch.starts_with(kPrefix) &&
         std::atoi(target.arch.c_str() + kPrefix.size()) >= 80;
}

std::vector<GpuTarget> all_gpu_targets() { return file_gpus(); }

Result<GpuTarget> find_gpu_target(const std::string& name) {
  if (is_path(name)) {
    const Target target = TW_TRY(load_target(name));
    if (target.gpu() != nullptr) return *target.gpu();
    return fail(ErrorKind::Device, fmt::format("'{}' is no GPU target", name));
  }
  std::vector<std::string> names;
  for (const GpuTarget& target : all_gpu_targets()) {
    if (target.name == name) return target;
    names.push_back(target.name);
  }
  return fail(ErrorKind::Device, fmt::format("there is no GPU target '{}'", name),
              fmt::format("the targets are {}", fmt::join(names, ", ")), "tilewright targets");
}

}  // namespace tilewright::hw
