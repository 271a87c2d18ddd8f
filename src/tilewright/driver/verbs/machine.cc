// doctor, devices, targets: what is here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <thread>

#include "tilewright/base/available_cpus.h"
#include "tilewright/base/json.h"
#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/compile/backends.h"
#include "tilewright/compile/cpu/device.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/tuning/record_place.h"
#include "tilewright/driver/verbs/doctor.h"
#include "tilewright/driver/verify/ort_peer.h"

namespace tilewright::driver {
namespace {

ToolFinding finding_of(const compile::Backend& backend) {
  ToolFinding finding{std::string(backend.name()), true, ""};
  for (const compile::DeviceState& state : device_states(backend)) {
    finding.ok = finding.ok && state.reason.empty();
    if (!finding.text.empty()) finding.text += "; ";
    finding.text += state.reason.empty() ? state.detail : state.reason;
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

std::vector<ToolFinding> examine() {
  const hw::CpuTarget& host = hw::host();
  std::vector<ToolFinding> findings;
  findings.push_back(
      {"cpu", true,
       fmt::format("{}, {} cores{}, {}-bit vectors, L2 {} KiB, L3 {} MiB", host.cpu, host.cores,
                   quota_text(), host.vector_bytes * 8, host.l2_bytes >> 10, host.l3_bytes >> 20)});
  const std::string llvm =
      compile::has_llvm() ? compile::try_code_generator(false) : "not in this build";
  findings.push_back({"llvm", llvm.empty(), llvm.empty() ? "compiles and links" : llvm});
  const std::string c = compile::try_code_generator(true);
  findings.push_back({"c", c.empty(), c.empty() ? "compiles and links" : c});
  for (const compile::Backend* backend : compile::backends())
    if (backend->runtime().probed_apart()) findings.push_back(finding_of(*backend));
  const Result<std::string> nvrtc = codegen::nvrtc_version();
  findings.push_back(
      {"nvrtc", nvrtc.has_value(),
       nvrtc ? *nvrtc + " (compiles for cuda)" : nvrtc.error().what + "; " + nvrtc.error().fix});
  for (ToolFinding& tool : find_tools()) findings.push_back(std::move(tool));
  const PlaceState records = state_of_place(record_place(""));
  findings.push_back({"records", records.ok, records.text});
  const auto peer = OrtPeer::start();
  findings.push_back({"onnxruntime", peer.has_value(),
                      peer ? (*peer)->version() + " (reference for verify and bench)"
                           : peer.error().what + "; " + peer.error().fix});
  return findings;
}

Result<int> doctor(bool as_json) {
  nlohmann::ordered_json json = document("doctor");
  std::vector<std::vector<std::string>> rows = {{"what", "state", "detail"}};
  for (const ToolFinding& finding : examine()) {
    rows.push_back({finding.name, finding.ok ? "ok" : "--", finding.text});
    json["findings"].push_back(
        {{"name", finding.name}, {"ok", finding.ok}, {"detail", finding.text}});
  }
  as_json ? print_json(json) : fmt::print("{}", table(rows));
  return 0;
}

Result<int> devices(bool as_json) {
  nlohmann::ordered_json json = document("devices");
  std::vector<std::vector<std::string>> rows = {{"device", "usable", "detail"}};
  for (const compile::Backend* backend : compile::backends())
    for (const compile::DeviceState& row : device_states(*backend)) {
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
  for (const compile::Backend* backend : compile::backends())
    for (compile::TargetSummary& target : TW_TRY(backend->runtime().targets())) {
      rows.push_back(std::move(target.row));
      json[target.list].push_back(std::move(target.json));
    }
  as_json ? print_json(json) : fmt::print("{}", table(rows));
  return 0;
}

}  // namespace

void add_doctor(Verb app, VerbContext& context) {
  Verb verb =
      app.add_verb("doctor", "Checks what works on this machine: processor, drivers, tools");
  verb.callback([&context] { context.action = [&context] { return doctor(context.json); }; });
}

void add_devices(Verb app, VerbContext& context) {
  Verb verb =
      app.add_verb("devices", "Lists devices; the processor and GPUs are tried with a tiny kernel");
  verb.callback([&context] { context.action = [&context] { return devices(context.json); }; });
}

void add_probe(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("probe", "Tries the devices of a back-end for another process");
  verb.hide();
  auto name = std::make_shared<std::string>();
  verb.add_option("backend", *name, "its name").required();
  verb.callback([&context, name] {
    context.action = [name]() -> Result<int> {
      const compile::Backend* backend = compile::find_backend(*name);
      if (backend == nullptr)
        return fail(ErrorKind::Usage, fmt::format("there is no back-end '{}'", *name));
      nlohmann::ordered_json json = document("probe");
      for (const compile::DeviceState& row : backend->runtime().states())
        json["rows"].push_back({row.id, row.reason, row.detail});
      fmt::print("{}\n", json_text(json));
      return 0;
    };
  });
}

void add_targets(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("targets", "Lists what code can be generated for");
  verb.callback([&context] { context.action = [&context] { return targets(context.json); }; });
}

}  // namespace tilewright::driver
