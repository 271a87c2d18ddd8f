#include "tilewright/compile/accelerator_backend.h"

#include <fmt/format.h>

#include <utility>

#include "tilewright/compile/cpu/backend.h"

namespace tilewright::compile {

void AcceleratorBackend::describe(runtime::Program& program, const CompileOptions& options) const {
  cpu_backend().describe(program, options);
}

tl::unexpected<Error> takes_models(std::string_view target) {
  return fail(ErrorKind::Usage, fmt::format("{} takes whole models", target),
              "an operator alone has no scales of its integers", "name a model.onnx");
}

hw::Target accelerator_target(const std::string& name, std::any special) {
  hw::Target target;
  target.kind = hw::TargetKind::Accelerator;
  target.name = target.backend = name;
  target.special = std::move(special);
  return target;
}

}  // namespace tilewright::compile
