// Designs from programs: the processes of a scheduled Func as `fpga::Design`, from which the cycle
// simulator and the Verilog are made.
//
//   read_X:  for t in 4 { take a free T;  for i in 16 { T[i] = X[t*16 + i] };  hand it over }
//     ->  process read_X:  loop 4 { acquire T; nest [4] II 1: 4 lanes of X -> 4 banks; release T }
//
// A perfect nest of loops is one nest of the design (nest.h), its body a graph of operators
// (graph.h); loops around channels and around several nests are loops of the process.
#pragma once

#include "tilewright/accel/fpga/design.h"
#include "tilewright/hw/fpga_device.h"
#include "tilewright/lower/processes.h"

namespace tilewright::codegen {

/// `program` is of `func`, which went through the pipeline `fpga`; argument i of the design is
/// Func::params[i]. errors: Unsupported: what the Verilog lacks, with the construct and the
/// process.
Result<fpga::Design> design_of(const Func& func, const lower::ProcessProgram& program,
                               const hw::FpgaDevice& device);

}  // namespace tilewright::codegen
