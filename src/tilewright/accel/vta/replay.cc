#include "tilewright/accel/vta/replay.h"

#include <fmt/format.h>

namespace tilewright::vta {
namespace {

/// Compares DRAM from `address` on with `expected`; nothing if they are equal.
Result<std::optional<Mismatch>> compare(const Device& device, uint64_t address,
                                        const std::string& expected) {
  std::string actual(expected.size(), '\0');
  TW_TRY_STATUS(device.read(address, actual.data(), actual.size()));
  std::optional<Mismatch> mismatch;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    if (!mismatch)
      mismatch = Mismatch{"",
                          0,
                          i,
                          static_cast<signed char>(actual[i]),
                          static_cast<signed char>(expected[i]),
                          0,
                          expected.size()};
    ++mismatch->count;
  }
  return mismatch;
}

/// Says a place in the whole image as one in an output, if it is inside one.
void name_place(const Program& program, Mismatch& mismatch) {
  const uint64_t address = program.base + mismatch.first;
  for (const Region& output : program.outputs)
    if (address >= output.address && address - output.address < output.bytes) {
      mismatch.where = output.name;
      mismatch.first = address - output.address;
      return;
    }
  mismatch.where = fmt::format("DRAM from address {}", program.base);
}

class Comparison {
 public:
  Comparison(const Device& device, const Dump& dump, Replay& replay)
      : device_(device), dump_(dump), replay_(replay) {}

  Status after_run(size_t run) {
    for (size_t i = 0; i < dump_.expected.size(); ++i) {
      if (dump_.expected[i].empty() || dump_.after_run[i] != static_cast<int>(run)) continue;
      const Region& output = dump_.program.outputs[i];
      if (auto found = TW_TRY(check(output.address, dump_.expected[i], run)))
        found->where = output.name, note(*std::move(found));
    }
    if (dump_.final_image.empty() || run + 1 < dump_.program.runs.size()) return {};
    if (auto found = TW_TRY(check(dump_.program.base, dump_.final_image, run))) {
      name_place(dump_.program, *found);
      note(*std::move(found));
    }
    return {};
  }

 private:
  Result<std::optional<Mismatch>> check(uint64_t address, const std::string& expected, size_t run) {
    replay_.compared += expected.size();
    auto found = TW_TRY(compare(device_, address, expected));
    if (found) found->run = run;
    return found;
  }
  void note(Mismatch mismatch) {
    if (!replay_.mismatch) replay_.mismatch = std::move(mismatch);
  }

  const Device& device_;
  const Dump& dump_;
  Replay& replay_;
};

}  // namespace

Result<Replay> replay(Device& device, const Dump& dump, const LaunchOptions& options) {
  Replay replay;
  Comparison comparison(device, dump, replay);
  replay.report = TW_TRY(execute(device, dump.program, options,
                                 [&](size_t run) { return comparison.after_run(run); }));
  return replay;
}

}  // namespace tilewright::vta
