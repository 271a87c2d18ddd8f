// synth --bitstream: a program as the file that configures an iCE40.
#pragma once

#include "tilewright/driver/inputs/fpga_program.h"

namespace tilewright::driver {

struct BitstreamRequest {
  FpgaProgramOptions program;
  std::string output;  ///< the bitstream; empty: none is wanted
  std::string pins;    ///< a PCF file; empty: the pins of common boards
  double limit = 600;  ///< seconds for synthesis, placing and routing
};

/// Synthesises, places, routes, runs the same Verilog with made-up inputs against the interpreter,
/// and then writes the bitstream; prints cells, clock, cycles and times. Exit status 5 where values
/// differ. errors: Unsupported (a device that no open tool routes); Capacity; Tool; Limit; Io.
Result<int> write_bitstream(const BitstreamRequest& request, bool as_json);

}  // namespace tilewright::driver
