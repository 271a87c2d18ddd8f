// Layers of a network that share a design: one configuration of the device serves them one after
// the other, with a table of numbers for each.
//
//   conv 1: 64 to 64 channels, 56x56      both: 32 x 16 products side by side, the same ports,
//   banks conv 2: 128 to 128, 28x28             and order; tiles of 32x16x8x28 and 32x16x28x28
//
// Layers that may share are of one form: windows or none, padding or none, operands of the same
// types, the same operators behind the sum. The model chooses the design with the least time for
// all of a form; what of it is one structure in the end, fpga::merge says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/compile/fpga/program.h"
#include "tilewright/compile/fpga/weights.h"

namespace tilewright::compile {

struct FpgaLayer {
  FpgaProgram program;
  std::optional<AxisOrder> order;  ///< of the program's weights; absent: as the model has them
  std::optional<Error> no_verilog = {};  ///< why only the C++ has it
  /// Layers with the same number share a design: their programs differ in numbers alone.
  int structure = 0;
};

/// A program of a network, and how many layers have it.
struct FpgaUse {
  Func func;
  double times = 1;
};

/// What layers have in common that may share a design. Empty: the model knows no design of `func`.
std::string form_of(const Func& func, const hw::FpgaDevice& device);

/// Programs of one form with a common design, weights in the order that is best for all; with
/// structures numbered from `structure` on. Absent where none fits, or the Verilog lacks a
/// construct of them.
std::optional<std::vector<FpgaLayer>> shared_layers(const std::vector<FpgaUse>& uses,
                                                    const hw::FpgaDevice& device, int structure);

}  // namespace tilewright::compile
