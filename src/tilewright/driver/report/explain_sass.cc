#include "tilewright/driver/report/explain_sass.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/codegen/gpu/sass.h"
#include "tilewright/compile/gpu/backend.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/console.h"

namespace tilewright::driver {
namespace {

/// Instructions of a loop that the table names; the rest is a number.
constexpr size_t kNamed = 6;

struct KernelRow {
  codegen::CudaKernelUse use;
  codegen::SassKernel code;
  std::vector<std::string> steps;
};

/// Kernels of a launch in the order of the program.
Result<std::vector<KernelRow>> rows_of(const compile::GpuLaunchCode& launch) {
  if (launch.program.binary.empty()) {
    TW_TRY(codegen::nvrtc_version());
    return fail(ErrorKind::Tool, "the kernels are not compiled");
  }
  std::vector<codegen::SassKernel> codes = TW_TRY(codegen::disassemble(launch.program.binary));
  std::vector<KernelRow> rows;
  for (const runtime::GpuKernelCode& kernel : launch.program.kernels) {
    KernelRow row;
    row.use.symbol = kernel.symbol;
    for (const codegen::CudaKernelUse& use : launch.uses)
      if (use.symbol == kernel.symbol) row.use = use;
    for (codegen::SassKernel& code : codes)
      if (code.symbol == kernel.symbol) row.code = std::move(code);
    row.steps = steps_of(launch.program, kernel.symbol);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string most_frequent(const codegen::SassCounts& counts) {
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [name, times] : counts) order.emplace_back(-times, name);
  std::sort(order.begin(), order.end());
  std::vector<std::string> parts;
  int64_t rest = codegen::total(counts);
  for (size_t i = 0; i < std::min(order.size(), kNamed); ++i) {
    parts.push_back(fmt::format("{} {}", -order[i].first, order[i].second));
    rest += order[i].first;
  }
  if (rest > 0) parts.push_back(fmt::format("{} more", rest));
  return fmt::format("{}", fmt::join(parts, ", "));
}

nlohmann::ordered_json to_json(const KernelRow& row) {
  nlohmann::ordered_json json{
      {"kernel", row.use.symbol},           {"steps", row.steps},
      {"registers", row.use.registers},     {"shared_bytes", row.use.shared_bytes},
      {"stack_bytes", row.use.stack_bytes}, {"spill_bytes", row.use.spill_bytes},
      {"instructions", row.code.all},       {"loops", nlohmann::ordered_json::array()}};
  for (const codegen::SassLoop& loop : row.code.loops)
    json["loops"].push_back(
        {{"begin", loop.begin}, {"end", loop.end}, {"instructions", loop.counts}});
  return json;
}

void print_rows(const std::vector<KernelRow>& rows) {
  std::vector<std::vector<std::string>> lines = {
      {"kernel", "registers", "shared", "stack", "spills", "instructions", "steps"}};
  for (const KernelRow& row : rows)
    lines.push_back({row.use.symbol, std::to_string(row.use.registers),
                     std::to_string(row.use.shared_bytes), std::to_string(row.use.stack_bytes),
                     std::to_string(row.use.spill_bytes),
                     std::to_string(codegen::total(row.code.all)),
                     fmt::format("{}", fmt::join(row.steps, ", "))});
  fmt::print("{}\n", table(lines));
  lines = {{"kernel", "innermost loop", "instructions"}};
  for (const KernelRow& row : rows)
    for (const codegen::SassLoop& loop : row.code.loops)
      lines.push_back({row.use.symbol, fmt::format("{:#06x}-{:#06x}", loop.begin, loop.end),
                       most_frequent(loop.counts)});
  fmt::print("{}", table(lines));
}

}  // namespace

std::vector<std::string> steps_of(const runtime::GpuProgram& program, const std::string& symbol) {
  std::vector<std::string> steps;
  for (const std::vector<runtime::GpuCall>* calls : {&program.prepare, &program.calls})
    for (const runtime::GpuCall& call : *calls)
      if (program.kernels[static_cast<size_t>(call.kernel)].symbol == symbol &&
          std::find(steps.begin(), steps.end(), call.step) == steps.end())
        steps.push_back(call.step);
  return steps;
}

Result<int> explain_sass(const compile::CompiledModel& model, const std::string& node,
                         bool as_json) {
  std::vector<KernelRow> rows;
  std::vector<std::string> names;
  for (const auto& [name, launch] : model.launches) {
    const compile::GpuLaunchCode* code = compile::gpu_code(launch);
    if (code == nullptr || launch.device != hw::name(hw::GpuLanguage::Cuda)) continue;
    for (KernelRow& row : TW_TRY(rows_of(*code))) {
      names.insert(names.end(), row.steps.begin(), row.steps.end());
      const auto& steps = row.steps;
      if (node.empty() || std::find(steps.begin(), steps.end(), node) != steps.end())
        rows.push_back(std::move(row));
    }
  }
  if (names.empty())
    return fail(ErrorKind::Usage, "--sass is about kernels for CUDA", "this model has none",
                "--target cuda");
  if (rows.empty()) return unknown_node(node, names);
  if (!as_json) {
    print_rows(rows);
    return 0;
  }
  nlohmann::ordered_json json = document("explain");
  for (const KernelRow& row : rows) json["kernels"].push_back(to_json(row));
  print_json(json);
  return 0;
}

}  // namespace tilewright::driver
