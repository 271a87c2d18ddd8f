// VTA programs by themselves, for the verb `sim`.
#pragma once

#include "tilewright/compile/device_backend.h"

namespace tilewright::compile {

const ProgramReader& vta_programs();

}  // namespace tilewright::compile
