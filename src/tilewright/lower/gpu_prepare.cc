#include "tilewright/lower/gpu_prepare.h"

#include <algorithm>
#include <set>

namespace tilewright::lower {

std::vector<bool> prepared_calls(const Func& func, const GpuLaunches& plan) {
  const std::set<Buffer> temporaries(plan.temporaries.begin(), plan.temporaries.end());
  std::set<Buffer> constants;
  for (const Param& param : func.params)
    if (param.mode == ParamMode::Const) constants.insert(param.buffer);
  std::set<Buffer> changing;  // temporaries that a call of every run writes
  std::vector<bool> prepared(plan.calls.size(), true);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < plan.calls.size(); ++i) {
      if (!prepared[i]) continue;
      const GpuCallSite& call = plan.calls[i];
      const std::vector<Param>& params = plan.kernels[call.kernel].func.params;
      for (size_t p = 0; p < params.size(); ++p) {
        const Buffer& buffer = call.args[p];
        const bool stays = temporaries.contains(buffer) && !changing.contains(buffer);
        const bool known = params[p].mode == ParamMode::In && constants.contains(buffer);
        if (!stays && !known) prepared[i] = false;
      }
      if (prepared[i]) continue;
      changed = true;
      for (size_t p = 0; p < params.size(); ++p)
        if (params[p].mode != ParamMode::In) changing.insert(call.args[p]);
    }
  }
  return prepared;
}

}  // namespace tilewright::lower
