// Verilator's lint.
#include "tilewright/accel/common/rtl/lint.h"

#include "tilewright/accel/vta/rtl/rtl.h"

namespace tilewright::vta {

Status lint(const Config& config) {
  TW_TRY_STATUS(rtl_supports(config));
  return accel::lint_clean(kTop, verilog(config));
}

}  // namespace tilewright::vta
