#include "tilewright/driver/fleet/device_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tilewright/compile/backends.h"
#include "tilewright/compile/devices.h"
#include "tilewright/hw/gpu_target.h"
#include "tilewright/hw/target_file.h"

namespace tilewright::driver {
namespace {

/// The name of the back-end whose code a device runs; behind a runner is a processor.
std::string kind_of(const fleet::Device& device) {
  const std::string kind = compile::backend_name(device.device);
  return kind == "runner" ? "cpu" : kind;
}

/// The processor of a device, as far as it is known.
std::optional<hw::CpuTarget> processor_of(const fleet::Device& device) {
  if (device.device.starts_with("runner:")) {
    const Result<hw::CpuTarget> known = hw::find_target(device.target);
    return known ? std::optional(*known) : std::nullopt;
  }
  if (device.target_file.empty()) return std::nullopt;
  const Result<hw::Target> written = hw::parse_target(device.target_file, device.name);
  const auto* cpu = written ? std::get_if<hw::CpuTarget>(&written->special) : nullptr;
  return cpu != nullptr ? std::optional(*cpu) : std::nullopt;
}

std::string architecture(const std::string& triple) { return triple.substr(0, triple.find('-')); }

/// Code that has to run on a device.
struct Code {
  std::string name;                   ///< of the subject
  std::set<std::string> kinds;        ///< of devices; all of them must be there
  std::string triple;                 ///< of the processor; empty: any
  std::vector<std::string> features;  ///< of the processor
};

/// Why a processor does not run code; empty: it does, as far as one can know.
std::string lacks(const hw::CpuTarget& processor, const Code& code, bool by_features) {
  if (code.triple.empty()) return "";
  if (architecture(processor.triple) != architecture(code.triple))
    return fmt::format("the code of {} is for {}", code.name, architecture(code.triple));
  if (!by_features) return "";
  for (const std::string& feature : code.features)
    if (feature.starts_with('+') && std::find(processor.features.begin(), processor.features.end(),
                                              feature) == processor.features.end())
      return fmt::format("the code of {} needs {}", code.name, feature);
  return "";
}

/// Why a device does not run all of this code; empty: it does.
std::string unsuited(const fleet::Device& device, const std::vector<Code>& all) {
  const std::string kind = kind_of(device);
  for (const Code& code : all) {
    for (const std::string& wanted : code.kinds)
      if (wanted != kind) return fmt::format("the code of {} is for {}", code.name, wanted);
    // Of a processor behind a runner only its architecture is known.
    if (const auto processor = processor_of(device); processor && kind == "cpu")
      if (std::string why = lacks(*processor, code, device.device == "cpu"); !why.empty())
        return why;
  }
  return "";
}

/// Of a package, by what it says of itself. Code without launches is the processor's.
std::optional<Code> code_of_package(const std::string& path) {
  runtime::OpenOptions open;
  open.load_code = false;
  const auto package = runtime::Package::open(path, open);
  if (!package) return std::nullopt;
  const runtime::Program& program = (*package)->program();
  Code code{path, {}, program.target.triple, program.target.features};
  for (const auto& [name, launch] : program.launches) code.kinds.insert(launch.device);
  if (code.kinds.empty()) code.kinds = {"cpu"};
  return code;
}

/// Of what is compiled for a target that the user chose; absent: it follows the device.
std::optional<Code> code_of_target(const SubjectOptions& options) {
  if (options.target == "cpu") return std::nullopt;
  const Result<hw::Target> target = compile::find_target(
      options.target,
      {options.hw, !options.quantize.empty(), options.tf32, options.designs == "own"});
  if (!target) return std::nullopt;
  Code code{"--target " + options.target, {target->backend}, "", {}};
  if (const hw::CpuTarget* cpu = target->cpu()) {
    code.kinds = {"cpu"};
    code.triple = cpu->triple;
    code.features = cpu->features;
  }
  return code;
}

/// Kernels are measured where time is time.
std::string cannot_measure(const fleet::Device& device, const std::vector<Code>& all) {
  if (is_model(device)) return "";
  const std::string kind = kind_of(device);
  const auto gpu = hw::find_gpu_target(kind);
  if (kind == "cpu" || (gpu && gpu->language == hw::GpuLanguage::OpenCl))
    return unsuited(device, all);
  if (compile::keeps_time(device.device))
    return "it is a simulator, which counts the same cycles on every machine";
  return "its kind is tuned by the machine that has it, without --worker";
}

using Cannot = std::function<std::string(const fleet::Device&)>;

/// `cannot` for a fleet of a thousand devices, most of which are alike.
Cannot remembered(Cannot cannot) {
  const auto known = std::make_shared<std::map<std::string, std::string>>();
  return [cannot = std::move(cannot), known](const fleet::Device& device) {
    const std::string key = device.device + "\n" + device.target + "\n" + device.target_file;
    const auto found = known->find(key);
    return found != known->end() ? found->second : (*known)[key] = cannot(device);
  };
}

/// A worker's own processor is what code is for by default; behind a runner may be an emulator.
bool is_processor(const fleet::Device& device) { return device.device == "cpu"; }

}  // namespace

bool is_model(const fleet::Device& device) { return device.device.starts_with("model"); }

fleet::Need package_need(const SubjectOptions& options) {
  std::vector<Code> all;
  bool packages = !options.paths.empty();
  for (const std::string& path : options.paths) {
    const bool is_package = path.ends_with(".twm");
    packages = packages && is_package;
    if (!is_package) continue;
    if (auto code = code_of_package(path)) all.push_back(*std::move(code));
  }
  if (!packages)
    if (auto code = code_of_target(options)) all.push_back(*std::move(code));
  fleet::Need need{all.empty() ? "run packages" : "run " + all.at(0).name,
                   remembered([all](const fleet::Device& device) {
                     return is_model(device) ? "it answers by a model, and runs nothing"
                                             : unsuited(device, all);
                   }),
                   {}};
  const auto on_processor = [](const Code& code) {
    return code.kinds == std::set<std::string>{"cpu"};
  };
  if (std::all_of(all.begin(), all.end(), on_processor)) need.rather = is_processor;
  return need;
}

fleet::Need measuring_need(const SubjectOptions& options) {
  std::vector<Code> all;
  if (auto code = code_of_target(options)) all.push_back(*std::move(code));
  fleet::Need need{
      "measure candidates",
      remembered([all](const fleet::Device& device) { return cannot_measure(device, all); }),
      {}};
  need.rather = [by_target = !all.empty()](const fleet::Device& device) {
    return by_target ? !is_model(device) : is_processor(device);
  };
  return need;
}

}  // namespace tilewright::driver
