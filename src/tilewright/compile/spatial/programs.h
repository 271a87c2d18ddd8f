// Programs of spatial accelerators by themselves, from packages, dumps or text: for the verb `sim`.
#pragma once

#include "tilewright/compile/device_backend.h"

namespace tilewright::compile {

const ProgramReader& spatial_programs();

}  // namespace tilewright::compile
