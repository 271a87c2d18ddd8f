// GPU programs as packages hold them: an error, or one that reads back alike.
#include "fuzz_common.h"
#include "tilewright/runtime/gpu/program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  fuzz::round_trip(
      fuzz::as_text(data, size),
      [](std::string_view bytes) { return runtime::parse_gpu_program(bytes); },
      [](const runtime::GpuProgram& program) { return runtime::serialise(program); });
  return 0;
}
