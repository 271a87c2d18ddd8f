#include "tilewright/compile/expected_results.h"

namespace tilewright::compile {

Status compare_results(const accel::Memory& memory, const accel::Image& image, size_t last_run,
                       const std::vector<std::string>& expected, SimulatedProgram& done) {
  for (size_t o = 0; o < expected.size(); ++o) {
    std::string actual(expected[o].size(), '\0');
    TW_TRY_STATUS(memory.read(image.outputs[o].address, actual.data(), actual.size()));
    done.compared += actual.size();
    ProgramMismatch mismatch;
    for (size_t i = 0; i < actual.size(); ++i) {
      if (actual[i] == expected[o][i]) continue;
      if (mismatch.count++ > 0) continue;
      mismatch.first = i;
      mismatch.actual = static_cast<signed char>(actual[i]);
      mismatch.expected = static_cast<signed char>(expected[o][i]);
    }
    if (mismatch.count == 0 || done.mismatch) continue;
    mismatch.where = image.outputs[o].name;
    mismatch.run = last_run;
    mismatch.compared = actual.size();
    done.mismatch = mismatch;
  }
  return {};
}

}  // namespace tilewright::compile
