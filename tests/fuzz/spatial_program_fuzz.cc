// Programs of spatial accelerators as packages hold them: an error, or a program that reads back
// and does no harm.
#include "spatial_common.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  const auto program = spatial::parse_program(fuzz::as_text(data, size));
  if (!program) return 0;
  const std::string bytes = spatial::serialise(*program);
  const auto again = spatial::parse_program(bytes);
  if (!again || spatial::serialise(*again) != bytes) fuzz::report("the program does not read back");
  fuzz::try_program(*program);
  return 0;
}
