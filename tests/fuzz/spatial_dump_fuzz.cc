// Dumps of programs of spatial accelerators: an error, or a program that is written and read back
// and does no harm.
#include "dump_common.h"
#include "spatial_common.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  const auto dump = fuzz::round_trip_dump(
      fuzz::as_text(data, size),
      [](const std::string& folder) { return spatial::read_dump(folder); },
      [](const std::string& folder, const spatial::Program& program) {
        return spatial::write_dump(folder, program);
      });
  if (dump) fuzz::try_program(dump->program);
  return 0;
}
