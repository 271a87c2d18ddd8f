#include "tilewright/accel/dpu/device.h"

#include <fmt/format.h>

namespace tilewright::dpu {
namespace {

Status format(Device& device, const Program& program, const FormatJob& job) {
  const auto address = [&](Reg reg) { return program.regions[static_cast<size_t>(reg)].address; };
  std::string source(source_bytes(program.config, job), '\0');
  TW_TRY_STATUS(device.read(address(Reg::Format) + job.source, source.data(), source.size()));
  return accel::write_through(device, address(Reg::Input) + job.target,
                              format_bytes(program.config, job, source));
}

}  // namespace

std::string format_bytes(const Config& config, const FormatJob& job, std::string_view source) {
  const auto pe = static_cast<size_t>(config.pe);
  const auto height = static_cast<size_t>(job.height), width = static_cast<size_t>(job.width);
  const auto channels = static_cast<size_t>(job.channels);
  const DdrTensor tensor = formatted(job);
  const auto columns = static_cast<size_t>(tensor.width);
  const auto words = static_cast<size_t>(groups(tensor.channels));
  std::string target(bytes_of(config, tensor), '\0');
  for (size_t h = 0; h < height; ++h)
    for (size_t x = 0; x < columns; ++x)
      for (int kx = 0; kx < job.kernel_w; ++kx) {
        const int64_t column = static_cast<int64_t>(x) * job.stride_w - job.pad_left + kx;
        if (column < 0 || column >= job.width) continue;
        for (size_t b = 0; b < pe; ++b)
          for (size_t c = 0; c < channels; ++c) {
            const size_t channel = static_cast<size_t>(kx) * channels + c;
            const size_t word = (h * columns + x) * words + channel / kLanes;
            target[(word * pe + b) * kLanes + channel % kLanes] =
                source[((b * height + h) * width + static_cast<size_t>(column)) * channels + c];
          }
      }
  return target;
}

uint64_t busy_end(const Config& config, const Insn& insn, const InsnTime& time) {
  const Timing& timing = config.timing;
  if (std::holds_alternative<Load>(insn.op) || std::holds_alternative<Save>(insn.op))
    return time.end - static_cast<uint64_t>(timing.lat_ddr);
  // A NOP is done no earlier than the LOAD or SAVE before it.
  if (std::holds_alternative<Nop>(insn.op))
    return time.begin + static_cast<uint64_t>(timing.lat_init);
  return time.end;
}

Status check_design(const Device& device, const Program& program) {
  if (same_hardware(device.config(), program.config)) return {};
  return fail(ErrorKind::Invalid,
              fmt::format("the program is for other hardware than device '{}' has", device.name()),
              fmt::format("the program is for '{}', the device is '{}'", program.config.name,
                          device.config().name));
}

Status load(Device& device, const Program& program) {
  TW_TRY_STATUS(check_design(device, program));
  device.set_registers(program.regions);
  return accel::write_image(device, program);
}

Status run_format_unit(Device& device, const Program& program) {
  for (const FormatJob& job : program.formats) {
    Status status = format(device, program, job);
    if (!status)
      return tl::unexpected<Error>(
          std::move(status.error()).at(fmt::format("format job '{}'", job.name)));
  }
  return {};
}

Result<LaunchReport> execute(Device& device, const Program& program, const LaunchOptions& options,
                             const accel::AfterRun& after_run) {
  TW_TRY_STATUS(load(device, program));
  TW_TRY_STATUS(run_format_unit(device, program));
  return accel::launch_runs(device, program, options, after_run);
}

}  // namespace tilewright::dpu
