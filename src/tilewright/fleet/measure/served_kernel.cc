#include "tilewright/fleet/measure/served_kernel.h"

#include <fmt/format.h>

#include <cmath>

#include "tilewright/hw/target.h"
#include "tilewright/ir/text.h"
#include "tilewright/measure/job.h"
#include "tilewright/measure/target_text.h"

namespace tilewright::fleet {
namespace {

constexpr int64_t kMostOperandBytes = int64_t{1} << 30;

/// Bytes from the first to the last element. errors: Unsupported, Limit.
Result<int64_t> parameter_bytes(const Param& param) {
  const Result<int64_t> span = measure::span_of(param);
  if (!span && span.error().kind != ErrorKind::Limit) return span;
  const int64_t each = (bit_width(param.buffer.dtype()) + 7) / 8;
  if (span && *span <= kMostOperandBytes / each) return *span * each;
  return fail(ErrorKind::Limit, "this kernel is too large for a worker of a fleet",
              fmt::format("{} has more than {} MiB", param.buffer.name(), kMostOperandBytes >> 20));
}

Status runs_on(const hw::CpuTarget& target) {
  std::string why = hw::why_not_here(target);
  if (why.empty()) return {};
  return fail(ErrorKind::Device, fmt::format("this machine cannot run code for {}", target.name),
              std::move(why));
}

}  // namespace

Result<measure::Task> served_task(const MeasuredKernel& kernel, ServedBy by,
                                  const std::string& triple) {
  measure::Task task;
  task.func = TW_TRY(parse_func(kernel.func));
  task.name = task.func.name;
  task.target = TW_TRY(measure::parse_target(kernel.target));
  task.threads = kernel.threads;
  task.host = hw::host();
  const hw::CpuTarget* cpu = task.target.cpu();
  if (by == ServedBy::Gpu ? task.target.gpu() == nullptr : cpu == nullptr)
    return fail(ErrorKind::Device, fmt::format("this device runs no code for {}", task.target.name),
                by == ServedBy::Gpu ? "it is a GPU" : "it is a processor");
  if (by == ServedBy::Processor) TW_TRY_STATUS(runs_on(*cpu));
  if (by == ServedBy::Runner && cpu->triple != triple)
    return fail(ErrorKind::Device, fmt::format("this device runs no code for {}", task.target.name),
                fmt::format("that is for {}, the runner for {}", cpu->triple, triple));
  return task;
}

Result<int64_t> operand_bytes(const Func& func) {
  int64_t bytes = 0;
  for (const Param& param : func.params) {
    bytes += TW_TRY(parameter_bytes(param));
    if (bytes > kMostOperandBytes)
      return fail(ErrorKind::Limit, "this kernel is too large for a worker of a fleet",
                  fmt::format("its operands have more than {} MiB", kMostOperandBytes >> 20));
  }
  return bytes;
}

ItemResult item_of(int item, const measure::Reading& reading) {
  ItemResult result{.item = item,
                    .outcome = std::string(measure::to_string(reading.kind)),
                    .reason = shown(reading.reason)};
  if (reading.kind != measure::OutcomeKind::Ok) return result;
  const auto measurable = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!(measurable(reading.cost) && reading.cost > 0 && measurable(reading.least) &&
        measurable(reading.spread) && measurable(reading.fastest) &&
        reading.least <= reading.cost && reading.readings > 0))
    return {.item = item, .outcome = "lost", .reason = "its numbers are none of a measurement"};
  result.cost = reading.cost;
  result.least = reading.least;
  result.spread = reading.spread;
  result.fastest = reading.fastest;
  result.readings = reading.readings;
  return result;
}

std::string shown(const std::string& text) {
  constexpr size_t kLongest = 4000;
  std::string kept = text.substr(0, kLongest);
  for (char& c : kept)
    if (c != '\n' && c != '\t' && (c < ' ' || c > '~')) c = '?';
  return kept;
}

}  // namespace tilewright::fleet
