// Programs that the figures are about.
#pragma once

#include "tilewright/cost/fpga/testing/layers.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::bench {

/// `conv` with operands of `dtype`, padded; sums in f32, or in i32 for integers.
Func conv_program(const std::string& name, const cost::YoloConv& conv, DType dtype);

/// C1 to C15 by name; `names` empty: all. Ends the program for a name that is none.
std::vector<std::pair<std::string, cost::YoloConv>> yolo_convs(
    const std::vector<std::string>& names);

}  // namespace tilewright::bench
