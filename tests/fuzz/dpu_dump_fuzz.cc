// Dumps of DPU programs: an error, or a program that is written and read back and does no harm.
#include "dpu_common.h"
#include "dump_common.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  const auto dump = fuzz::round_trip_dump(
      fuzz::as_text(data, size), [](const std::string& folder) { return dpu::read_dump(folder); },
      [](const std::string& folder, const dpu::Program& program) {
        return dpu::write_dump(folder, program);
      });
  if (dump) fuzz::try_program(dump->program);
  return 0;
}
