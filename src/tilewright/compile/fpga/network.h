// Layers that an FPGA runs one after the other, as packages hold them: designs, and calls of them.
//
//   conv1 -> conv2 -> conv3, the last two alike   =>   designs  conv_relu, conv_relu_1
//                                                      calls    conv1: 0, conv2: 1, conv3: 1
//
// A call names its design and its values. Designs of one structure differ in numbers alone
// (accel/fpga/merge.h): the device is configured once for all of them, and gets a table for each.
// A network of several launches has structures that serve more than one. Then each launch has all
// of a structure's designs, those that only others call too: so all make the same Verilog.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/hw/fpga_device.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::compile {

struct FpgaNetwork {
  struct Design {
    Func func;           ///< what the C++ and the Verilog are made of
    int64_t cycles = 0;  ///< by the model; 0: it has none for the program
    int structure = 0;
  };
  /// A tensor in memory outside of the chip.
  struct Value {
    int64_t bytes = 0;
    int64_t constant = -1;  ///< where in `constants` it begins; -1: it is computed, or given
  };
  struct Call {
    std::string name;  ///< of the layer
    int design = 0;
    std::vector<int> values;  ///< of the design's parameters without values, in order
  };

  hw::FpgaDevice device;
  std::vector<Design> designs;  ///< those that are called come first
  std::vector<Value> values;
  std::vector<Call> calls;
  std::vector<int> inputs, outputs;  ///< values
  std::string constants;

  int64_t cycles() const;       ///< of all calls, by the model
  size_t used_designs() const;  ///< how many are called
  /// Designs by structure, in the order of their numbers.
  std::vector<std::vector<const Design*>> by_structure() const;
  size_t structures() const { return by_structure().size(); }
};

std::string serialise(const FpgaNetwork& network);
/// errors: Package.
Result<FpgaNetwork> parse_fpga_network(std::string_view code);

/// `5 layers, each a design of its own`, `12 layers on 4 designs`.
std::string layers_text(size_t layers, size_t designs);
/// The same of the calls, and whether other launches have layers on their designs.
std::string layers_text(const FpgaNetwork& network);

/// Bytes of a parameter. errors: Unsupported (a symbolic shape).
Result<int64_t> param_bytes(const Param& param);
/// `func` alone, with `cycles` by the model: parameters without values are inputs and outputs.
/// errors: Unsupported (scalars, strides, parameters that are read and written).
Result<FpgaNetwork> network_of(const Func& func, int64_t cycles, const hw::FpgaDevice& device);

}  // namespace tilewright::compile
