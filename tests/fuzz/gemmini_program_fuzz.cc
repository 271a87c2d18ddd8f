// Gemmini programs as packages hold them, or commands as text: an error, or a program that reads
// back, and that the checker and the simulator take without harm. Where the checker finds nothing,
// it runs.
#include "fuzz_common.h"
#include "tilewright/accel/gemmini/check.h"
#include "tilewright/accel/gemmini/fsim.h"

namespace {

using namespace tilewright;

constexpr uint64_t kSmall = 1 << 20;  // larger ones only make the fuzzer slow

void try_program(const gemmini::Program& program) {
  size_t insns = 0;
  for (const gemmini::Run& run : program.runs) insns += run.insns.size();
  const bool small = program.end() <= kSmall && insns <= 300 && program.runs.size() <= 4 &&
                     program.config.spad_kb + program.config.acc_kb <= 1024;
  if (!small) return;
  const bool right = gemmini::check_program(program).empty();
  const auto device = gemmini::make_fsim(program.config, program.end());
  const auto report = gemmini::execute(*device, program);
  if (right && !report) fuzz::report_error("what the checker accepts does not run", report.error());
}

void try_text(std::string_view text) {
  const auto runs = gemmini::parse_lines(text, "input");
  if (!runs) return;
  gemmini::Program program;
  program.image.assign(1 << 14, '\1');
  for (const auto& insns : *runs) program.runs.push_back({{}, insns, {}});
  const std::string printed = gemmini::assembly(program);
  const auto again = gemmini::parse_lines(printed, "printed");
  if (!again) fuzz::report_error("what was printed is not accepted", again.error());
  if (again->size() != runs->size()) fuzz::report("another number of runs");
  for (size_t r = 0; r < again->size(); ++r) program.runs[r].insns = again->at(r);
  if (gemmini::assembly(program) != printed) fuzz::report("it does not print back:\n" + printed);
  try_program(program);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto program = gemmini::parse_program(text);
  if (!program) {
    try_text(text);
    return 0;
  }
  const std::string bytes = gemmini::serialise(*program);
  const auto again = gemmini::parse_program(bytes);
  if (!again || gemmini::serialise(*again) != bytes) fuzz::report("the program does not read back");
  try_program(*program);
  return 0;
}
