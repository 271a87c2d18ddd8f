// Lines between tuner and workers, and the file of measured rates: errors, or the same line again.
#include "fuzz_common.h"
#include "tilewright/hw/rates.h"
#include "tilewright/measure/job.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  if (size == 0) return 0;
  const std::string_view text = fuzz::as_text(data + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      fuzz::round_trip(text, measure::parse_job, [](const auto& job) { return to_line(job); });
      break;
    case 1:
      fuzz::round_trip(text, measure::parse_reply,
                       [](const auto& reply) { return to_line(reply); });
      break;
    default:
      static const hw::RatesKey key = hw::rates_key();
      fuzz::round_trip(
          text, [](std::string_view json) { return hw::rates_from_json(json, key); },
          [](const hw::CpuRates& rates) { return hw::rates_to_json(rates, key); });
  }
  return 0;
}
