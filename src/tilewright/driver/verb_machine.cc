// doctor, devices, targets: what is here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/driver/accelerator.h"
#include "tilewright/driver/backend.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/kernels.h"
#include "tilewright/driver/ort_peer.h"
#include "tilewright/driver/process.h"
#include "tilewright/ir/text.h"

namespace tilewright::driver {
namespace {

struct Finding {
  std::string name;
  bool ok;
  std::string text;
};

/// Compiles a tiny kernel with the given back-end; empty if it worked.
std::string try_backend(bool use_c) {
  const Result<Func> func = parse_func(
      "func probe(X: f32[8], out Y: f32[8]) { for Y.i in 8 { block Y(i: space 8 = Y.i) { Y[i] = "
      "X[i] + 1.0 } } }");
  if (!func) return to_string(func.error());
  const Result<ScheduledKernel> kernel = schedule_and_lower(*func, {});
  if (!kernel) return to_string(kernel.error());
  BackendOptions options;
  options.use_c = use_c;
  const Result<SharedCode> code = compile_shared({kernel->lowered}, options);
  return code ? "" : code.error().what + ": " + code.error().why;
}

std::vector<Finding> examine() {
  const hw::CpuTarget& host = hw::host();
  std::vector<Finding> findings;
  findings.push_back(
      {"cpu", true,
       fmt::format("{}, {} cores, {}-bit vectors, L2 {} KiB, L3 {} MiB", host.cpu, host.cores,
                   host.vector_bytes * 8, host.l2_bytes >> 10, host.l3_bytes >> 20)});
  const std::string llvm = has_llvm() ? try_backend(false) : "not in this build";
  findings.push_back({"llvm", llvm.empty(), llvm.empty() ? "compiles and links" : llvm});
  const std::string c = try_backend(true);
  findings.push_back({"c", c.empty(), c.empty() ? "compiles and links" : c});
  for (const char* tool : {"verilator", "iverilog", "yosys"}) {
    const std::string path = find_program(tool);
    findings.push_back({tool, !path.empty(),
                        path.empty() ? "not installed (only for vta:rtl, rtl and synth)" : path});
  }
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
std::string why_not(const DeviceEntry& device) {
  if (device.id == "cpu") return try_backend(!has_llvm());
  if (device.id != "vta:rtl") return "";
  return find_program("verilator").empty() ? "verilator is not installed" : "";
}

Result<int> devices(bool as_json) {
  nlohmann::ordered_json json = document("devices");
  std::vector<std::vector<std::string>> rows = {{"device", "usable", "detail"}};
  for (const DeviceEntry& device : device_table()) {
    const std::string reason = why_not(device);
    const std::string detail = device.id == "cpu" ? hw::host().cpu : device.detail;
    rows.push_back({device.id, reason.empty() ? "yes" : "no", reason.empty() ? detail : reason});
    json["devices"].push_back(
        {{"id", device.id}, {"usable", reason.empty()}, {"reason", reason}, {"name", detail}});
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

void add_targets(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("targets", "Lists what code can be generated for");
  verb->callback([&context] { context.action = [&context] { return targets(context.json); }; });
}

}  // namespace tilewright::driver
