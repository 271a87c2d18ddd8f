// Text of DPU programs: every error names a line; what is accepted prints back, and does no harm.
#include <algorithm>

#include "dpu_common.h"
#include "tilewright/accel/dpu/assembly.h"
#include "tilewright/accel/dpu/operands.h"

namespace {

using namespace tilewright;

/// How far the transfers reach: so much DDR is made for a text by itself.
uint64_t reach(const std::vector<dpu::Insn>& insns) {
  uint64_t most = 0;
  for (const dpu::Insn& insn : insns)
    if (const auto ddr = dpu::ddr_of({}, insn.op)) most = std::max(most, ddr->end());
  return most;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto insns = dpu::parse_asm(text, "F.asm");
  if (!insns) {
    if (!insns.error().place.starts_with("F.asm:")) fuzz::report("an error without a line");
    return 0;
  }
  fuzz::round_trip(
      text, [](std::string_view lines) { return dpu::parse_asm(lines, "F.asm"); },
      [](const std::vector<dpu::Insn>& read) { return dpu::disassemble(read); });
  if (reach(*insns) > fuzz::kSmallImage / 4) return 0;
  const auto parse = [](std::string_view lines) { return dpu::parse_assembly(lines, {}, "F.asm"); };
  fuzz::round_trip(text, parse,
                   [](const dpu::Program& program) { return dpu::assembly(program.runs); });
  if (const auto program = parse(text)) fuzz::try_program(*program);
  return 0;
}
