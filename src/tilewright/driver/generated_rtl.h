// Hardware of any kind as Verilog.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/codesign/hardware.h"
#include "tilewright/compile/fpga/backend.h"
#include "tilewright/driver/inputs/fpga_program.h"

namespace tilewright::driver {

/// What the generators make of one piece of hardware.
struct GeneratedRtl {
  std::string label, top, verilog;
  std::string folder;      ///< inside of the one for all; empty: there is one design
  std::string bitstream;   ///< its name where boards look for it; empty: it is for none
  std::string file, text;  ///< what it was made from: its name in the folder, and what it holds
  std::vector<std::pair<std::string, std::string>> benches;  ///< name, text for Icarus
  /// Name, text: the module at the top on a board, and what vendors' tools need.
  std::vector<std::pair<std::string, std::string>> board;
};

/// What `rtl` and `synth` take: an accelerator, or with `--target fpga` a program; `rtl` a package
/// as well (package_rtl.h).
struct HardwareOrProgram {
  FpgaProgramOptions program;
  bool is_program() const { return program.subject.target == compile::kFpgaTarget; }
  /// A name or a file. requires: !is_program(). errors: Usage (not one).
  Result<codesign::Hardware> hardware() const;
};
void add_hardware_or_program(Verb verb, HardwareOrProgram& input);

/// errors: what the hardware's own checks say; Unsupported (the generator cannot build it).
Result<GeneratedRtl> generated_rtl(const codesign::Hardware& hardware);
/// The design of a program for an FPGA. errors: Unsupported (what the Verilog lacks).
Result<GeneratedRtl> generated_rtl(const LoadedFpgaProgram& program);
/// Either. errors: besides these, those of reading it.
Result<GeneratedRtl> generated_rtl(const HardwareOrProgram& input);
/// TOP.v, what it was made from, the benches and the files for a board in `folder`, which is made.
/// errors: Io.
Status write_rtl(const GeneratedRtl& made, const std::string& folder);

}  // namespace tilewright::driver
