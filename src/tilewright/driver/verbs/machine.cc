// doctor, devices, targets: what is here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <thread>

#include "tilewright/base/available_cpus.h"
#include "tilewright/base/tool_version.h"
#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/compile/cpu/kernels.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/compile/devices.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/verbs/doctor.h"
#include "tilewright/driver/verify/ort_peer.h"
#include "tilewright/hw/gpu_target.h"
#include "tilewright/ir/text.h"

namespace tilewright::driver {
namespace {

/// Compiles a tiny kernel with the given back-end; empty if it worked.
std::string try_backend(bool use_c) {
  const Result<Func> func = parse_func(
      "func probe(X: f32[8], out Y: f32[8]) { for Y.i in 8 { block Y(i: space 8 = Y.i) { Y[i] = "
      "X[i] + 1.0 } } }");
  if (!func) return to_string(func.error());
  const Result<compile::ScheduledKernel> kernel = compile::schedule_and_lower(*func, {});
  if (!kernel) return to_string(kernel.error());
  compile::BackendOptions options;
  options.use_c = use_c;
  const Result<compile::SharedCode> code = compile::compile_shared({kernel->lowered}, options);
  return code ? "" : code.error().what + ": " + code.error().why;
}

Finding gpu_finding(const std::string& language) {
  Finding finding{language, true, ""};
  for (const DeviceRow& row : gpu_rows(language)) {
    finding.ok = finding.ok && row.reason.empty();
    if (!finding.text.empty()) finding.text += "; ";
    finding.text += row.reason.empty() ? row.detail : row.reason;
  }
  return finding;
}

/// Why there may be fewer cores than the machine has; empty if nothing limits them.
std::string quota_text() {
  const std::optional<double> quota = cpu_quota();
  const size_t allowed = allowed_cpus().size(), all = std::thread::hardware_concurrency();
  std::string text;
  if (allowed < all) text = fmt::format("{} of {} by its affinity", allowed, all);
  if (quota) text += fmt::format("{}a quota of {:.4g}", text.empty() ? "" : ", ", *quota);
  return text.empty() ? "" : " (" + text + ")";
}

std::vector<Finding> examine() {
  const hw::CpuTarget& host = hw::host();
  std::vector<Finding> findings;
  findings.push_back(
      {"cpu", true,
       fmt::format("{}, {} cores{}, {}-bit vectors, L2 {} KiB, L3 {} MiB", host.cpu, host.cores,
                   quota_text(), host.vector_bytes * 8, host.l2_bytes >> 10, host.l3_bytes >> 20)});
  const std::string llvm = compile::has_llvm() ? try_backend(false) : "not in this build";
  findings.push_back({"llvm", llvm.empty(), llvm.empty() ? "compiles and links" : llvm});
  const std::string c = try_backend(true);
  findings.push_back({"c", c.empty(), c.empty() ? "compiles and links" : c});
  for (const char* language : {"opencl", "cuda"}) findings.push_back(gpu_finding(language));
  const Result<std::string> nvrtc = codegen::nvrtc_version();
  findings.push_back(
      {"nvrtc", nvrtc.has_value(),
       nvrtc ? *nvrtc + " (compiles for cuda)" : nvrtc.error().what + "; " + nvrtc.error().fix});
  for (Finding& tool : find_tools()) findings.push_back(std::move(tool));
  const auto peer = OrtPeer::start();
  findings.push_back({"onnxruntime", peer.has_value(),
                      peer ? (*peer)->version() + " (reference for verify and bench)"
                           : peer.error().what + "; " + peer.error().fix});
  return findings;
}

Result<int> doctor(bool as_json) {
  nlohmann::ordered_json json = document("doctor");
  std::vector<std::vector<std::string>> rows = {{"what", "state", "detail"}};
  for (const Finding& finding : examine()) {
    rows.push_back({finding.name, finding.ok ? "ok" : "--", finding.text});
    json["findings"].push_back(
        {{"name", finding.name}, {"ok", finding.ok}, {"detail", finding.text}});
  }
  as_json ? print_json(json) : fmt::print("{}", table(rows));
  return 0;
}

/// Why a device is not usable here; empty if it is. Tools of rtl are only looked for: building the
/// model takes long.
std::string why_not(const compile::DeviceEntry& device) {
  if (device.id == "cpu") return try_backend(!compile::has_llvm());
  if (device.id != "vta:rtl") return "";
  const Result<std::string> version = checked_version(kVerilator);
  return version ? "" : fmt::format("{}: {}", version.error().what, version.error().why);
}

std::vector<DeviceRow> rows_of(const compile::DeviceEntry& device) {
  if (device.id == "opencl" || device.id == "cuda") return gpu_rows(device.id);
  return {{device.id, why_not(device), device.id == "cpu" ? hw::host().cpu : device.detail}};
}

Result<int> devices(bool as_json) {
  nlohmann::ordered_json json = document("devices");
  std::vector<std::vector<std::string>> rows = {{"device", "usable", "detail"}};
  for (const compile::DeviceEntry& device : compile::device_table())
    for (const DeviceRow& row : rows_of(device)) {
      const bool usable = row.reason.empty();
      rows.push_back({row.id, usable ? "yes" : "no", usable ? row.detail : row.reason});
      json["devices"].push_back(
          {{"id", row.id}, {"usable", usable}, {"reason", row.reason}, {"name", row.detail}});
    }
  as_json ? print_json(json) : fmt::print("{}", table(rows));
  return 0;
}

Result<int> targets(bool as_json) {
  nlohmann::ordered_json json = document("targets");
  std::vector<std::vector<std::string>> rows = {
      {"target", "processor", "vector bits", "runs here"}};
  for (const hw::CpuTarget& target : hw::all_targets()) {
    const std::vector<std::string> missing = hw::missing_features(target);
    rows.push_back(
        {target.name, target.cpu, std::to_string(target.vector_bytes * 8),
         missing.empty() ? "yes" : fmt::format("no: lacks {}", fmt::join(missing, ", "))});
    json["targets"].push_back({{"name", target.name},
                               {"triple", target.triple},
                               {"cpu", target.cpu},
                               {"features", target.features},
                               {"vector_bits", target.vector_bytes * 8},
                               {"runs_here", missing.empty()}});
  }
  for (const hw::GpuTarget& target : hw::all_gpu_targets()) {
    const std::string language(hw::name(target.language));
    const std::string processor =
        target.arch.empty() ? "any OpenCL device with these limits" : target.arch;
    rows.push_back({target.name,
                    fmt::format("{}: {} threads, {} KiB shared", processor, target.max_threads,
                                target.shared_bytes >> 10),
                    std::to_string(target.vector_bytes * 8), "see `tilewright devices`"});
    json["gpus"].push_back({{"name", target.name},
                            {"language", language},
                            {"arch", target.arch},
                            {"max_threads", target.max_threads},
                            {"shared_bytes", target.shared_bytes},
                            {"units", target.units},
                            {"f16", target.has_f16},
                            {"f64", target.has_f64}});
  }
  for (const std::string& config : vta::builtin_configs()) {
    const vta::Config hw = TW_TRY(vta::load_config(config));
    rows.push_back({"vta --hw " + config, vta::label(hw),
                    std::to_string(hw.batch() * hw.block_in() * hw.block_out()) + " MAC/cycle",
                    "simulators"});
    json["accelerators"].push_back({{"target", "vta"}, {"hw", config}, {"label", vta::label(hw)}});
  }
  as_json ? print_json(json) : fmt::print("{}", table(rows));
  return 0;
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("doctor", "Checks this machine: processor, back-ends, tools");
  verb->callback([&context] { context.action = [&context] { return doctor(context.json); }; });
}

void add_devices(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("devices", "Lists devices, each tried with a tiny kernel");
  verb->callback([&context] { context.action = [&context] { return devices(context.json); }; });
}

void add_probe(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("probe", "Tries the GPUs of a language for another process");
  verb->group("");  // not in the list of verbs
  auto language = std::make_shared<std::string>();
  verb->add_option("language", *language, "opencl or cuda")->required();
  verb->callback([&context, language] {
    context.action = [language]() -> Result<int> {
      nlohmann::ordered_json json = document("probe");
      for (const DeviceRow& row : gpu_rows_here(*language))
        json["rows"].push_back({row.id, row.reason, row.detail});
      fmt::print("{}\n", json.dump());
      return 0;
    };
  });
}

void add_targets(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("targets", "Lists what code can be generated for");
  verb->callback([&context] { context.action = [&context] { return targets(context.json); }; });
}

}  // namespace tilewright::driver
