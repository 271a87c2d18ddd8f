// Text of programs of spatial accelerators: every error names a line; what is accepted prints back,
// and does no harm.
#include "spatial_common.h"
#include "tilewright/accel/spatial/assembly.h"
#include "tilewright/accel/spatial/operands.h"

namespace {

using namespace tilewright;

/// Lines that alone make a program of much DRAM only make the fuzzer slow.
bool reaches_far(std::string_view text) {
  uint64_t low = ~uint64_t{0}, high = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const auto insn = spatial::parse_insn(text.substr(at, end - at));
    at = end + 1;
    if (!insn || !spatial::check_fields({}, *insn)) continue;
    spatial::Runs runs;
    if (const auto* load = std::get_if<spatial::Load>(&insn->work)) runs = spatial::runs(*load);
    if (const auto* store = std::get_if<spatial::Store>(&insn->work)) runs = spatial::runs(*store);
    if (runs.bytes == 0) continue;
    low = std::min(low, static_cast<uint64_t>(runs.begins.first()));
    high = std::max(high, static_cast<uint64_t>(runs.begins.last()) + runs.bytes);
  }
  return high > low && high - low > fuzz::kSmallImage;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  if (reaches_far(text)) return 0;
  const auto parse = [](std::string_view lines) {
    return spatial::parse_assembly(lines, {}, "F.asm");
  };
  fuzz::round_trip(text, parse,
                   [](const spatial::Program& program) { return spatial::assembly(program.runs); });
  if (const auto program = parse(text)) fuzz::try_program(*program);
  return 0;
}
