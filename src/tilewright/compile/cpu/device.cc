#include "tilewright/compile/cpu/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/compile/cpu/kernels.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/ir/text.h"

namespace tilewright::compile {
namespace {

class CpuRuntime final : public DeviceRuntime {
 public:
  std::vector<DeviceRow> devices() const override { return {{"cpu", "this machine"}}; }

  std::vector<DeviceState> states() const override {
    return {{"cpu", try_code_generator(!has_llvm()), hw::host().cpu}};
  }

  Result<std::vector<TargetSummary>> targets() const override {
    std::vector<TargetSummary> summaries;
    for (const hw::CpuTarget& target : hw::all_targets()) {
      const std::string why = hw::why_not_here(target);
      summaries.push_back({"targets",
                           {{"name", target.name},
                            {"triple", target.triple},
                            {"cpu", target.cpu},
                            {"features", target.features},
                            {"vector_bits", target.vector_bytes * 8},
                            {"runs_here", why.empty()}},
                           {target.name, target.cpu, std::to_string(target.vector_bytes * 8),
                            why.empty() ? "yes" : "no: " + why}});
    }
    return summaries;
  }
};

}  // namespace

const DeviceRuntime& cpu_runtime() {
  static const CpuRuntime runtime;
  return runtime;
}

std::string try_code_generator(bool use_c) {
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

}  // namespace tilewright::compile
