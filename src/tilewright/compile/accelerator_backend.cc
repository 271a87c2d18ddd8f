#include "tilewright/compile/accelerator_backend.h"

#include <utility>

#include "tilewright/compile/cpu/backend.h"

namespace tilewright::compile {

void AcceleratorBackend::describe(runtime::Program& program, const CompileOptions& options) const {
  cpu_backend().describe(program, options);
}

hw::Target accelerator_target(const std::string& name, std::any special) {
  hw::Target target;
  target.kind = hw::TargetKind::Accelerator;
  target.name = target.backend = name;
  target.special = std::move(special);
  return target;
}

}  // namespace tilewright::compile
