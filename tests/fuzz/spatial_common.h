// What harnesses of spatial accelerators do with a program that was accepted.
#pragma once

#include "fuzz_common.h"
#include "tilewright/accel/spatial/check.h"
#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/operands.h"
#include "tilewright/accel/spatial/sim/fsim.h"

namespace tilewright::fuzz {

inline constexpr uint64_t kSmallImage = 1 << 20;  // larger ones only make the fuzzer slow

inline uint64_t work_of(const spatial::Design& design, const spatial::Insn& insn) {
  const auto* compute = std::get_if<spatial::Compute>(&insn.work);
  if (compute == nullptr) return 1;
  uint64_t work = static_cast<uint64_t>(spatial::taps(*compute) * design.units());
  for (const spatial::Share& share : spatial::shares(design, *compute))
    work += share.steps() * static_cast<uint64_t>(design.units());
  return work;
}

/// The checker takes any program without harm. One in which it finds nothing runs, or reads what
/// nothing wrote; and leaves the same behind with tokens worked out anew.
inline void try_program(const spatial::Program& program) {
  uint64_t insns = 0, work = 0;
  for (const spatial::Run& run : program.runs) {
    insns += run.insns.size();
    for (const spatial::Insn& insn : run.insns) work += work_of(program.design, insn);
  }
  const bool small = program.image.size() <= kSmallImage && insns <= 300 && work < (1 << 22) &&
                     program.runs.size() <= 4;
  if (!small || !spatial::check_program(program).empty()) return;
  const auto run = [&](const spatial::Program& what, std::string& image) {
    const auto device = spatial::make_fsim(what.design);
    const auto done = spatial::execute(*device, what);
    if (!done && to_string(done.error()).find("which nothing wrote") == std::string::npos)
      report_error("what the checker accepts does not run", done.error());
    image.resize(what.image.size());
    if (!device->read(what.base, image.data(), image.size())) report("DRAM cannot be read");
    return done.has_value();
  };
  std::string image, again;
  if (!run(program, image)) return;
  spatial::Program other = program;
  for (spatial::Run& part : other.runs) {
    const auto tokens = spatial::with_tokens(other.design, part.insns);
    if (!tokens) report_error("no tokens for what the checker accepts", tokens.error());
    part.insns = *tokens;
  }
  if (!spatial::check_program(other).empty()) report("the checker refuses tokens that were made");
  if (!run(other, again) || image != again) report("other results with other tokens");
}

}  // namespace tilewright::fuzz
