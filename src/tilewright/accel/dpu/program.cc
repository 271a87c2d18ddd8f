#include "tilewright/accel/dpu/program.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "tilewright/accel/common/program_bytes.h"

namespace tilewright::dpu {
namespace {

constexpr std::string_view kMagic = "TWDPUPR1";
constexpr const char* kWhat = "DPU program";
constexpr uint64_t kDdrLimit = uint64_t{1} << 36;  // 64 GiB: four kernels of a board share it
// Sizes of a feature map or an image; products of four of them still fit 64 bits.
constexpr int kMostExtent = 1 << 15;

/// The numbers of a job in the order in which they are written.
constexpr auto kJobFields = std::array{
    &FormatJob::channels, &FormatJob::height,   &FormatJob::width,    &FormatJob::kernel_w,
    &FormatJob::stride_w, &FormatJob::pad_left, &FormatJob::pad_right};

bool is_reg(Reg reg) { return static_cast<int>(reg) >= 0 && static_cast<int>(reg) < kRegs; }

bool inside(const Region& region, uint64_t offset, uint64_t bytes) {
  return offset <= region.bytes && bytes <= region.bytes - offset;
}

bool in_range(int64_t value, int64_t low, int64_t high) { return value >= low && value <= high; }

void check_regions(const Program& program, accel::Problems& problems) {
  uint64_t end = program.base;
  for (size_t r = 0; r < kRegs; ++r) {
    const Region& region = program.regions[r];
    const std::string_view label = name(static_cast<Reg>(r));
    if (region.bytes == 0) continue;
    if (static_cast<Reg>(r) == Reg::Instructions) {
      problems.add("region `instructions` is not empty");
    } else if (region.address < end || region.address > program.end() ||
               region.bytes > program.end() - region.address) {
      problems.add(
          fmt::format("region `{}` ({} bytes from {}) overlaps the one before or leaves "
                      "the image ({} bytes from {})",
                      label, region.bytes, region.address, program.image.size(), program.base));
    } else {
      end = region.address + region.bytes;
    }
  }
}

void check_tensors(const Program& program, std::string_view kind,
                   const std::vector<DdrTensor>& tensors, const std::vector<Region>& places,
                   accel::Problems& problems) {
  if (tensors.size() != places.size()) {
    problems.add(
        fmt::format("{} {}s, but {} tensors for them", places.size(), kind, tensors.size()));
    return;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const DdrTensor& tensor = tensors[i];
    const std::string label = fmt::format("{} '{}'", kind, tensor.name);
    if (!is_reg(tensor.reg) || !in_range(tensor.channels, 1, kMostExtent) ||
        !in_range(tensor.height, 1, kMostExtent) || !in_range(tensor.width, 1, kMostExtent)) {
      problems.add(label + " has a size or a register that cannot be");
      continue;
    }
    const Region& region = program.regions[static_cast<size_t>(tensor.reg)];
    const uint64_t bytes = bytes_of(program.config, tensor);
    if (!inside(region, tensor.addr, bytes))
      problems.add(fmt::format("{} ({} bytes at {}) is not inside region `{}` of {} bytes", label,
                               bytes, tensor.addr, name(tensor.reg), region.bytes));
    else if (places[i].address != region.address + tensor.addr || places[i].bytes != bytes ||
             places[i].name != tensor.name)
      problems.add(fmt::format("{} is not where the image says", label));
  }
}

void check_formats(const Program& program, accel::Problems& problems) {
  const Config& config = program.config;
  for (const FormatJob& job : program.formats) {
    const std::string label = fmt::format("format job '{}'", job.name);
    const bool legal =
        in_range(job.channels, 1, config.format_unit) && in_range(job.height, 1, kMostExtent) &&
        in_range(job.width, 1, kMostExtent) && in_range(job.kernel_w, 1, 16) &&
        in_range(job.stride_w, 1, 8) && in_range(job.pad_left, 0, 15) &&
        in_range(job.pad_right, 0, 15) && job.width + job.pad_left + job.pad_right >= job.kernel_w;
    if (!legal) {
      problems.add(label + " has sizes that the format unit cannot do");
      continue;
    }
    const Region& from = program.regions[static_cast<size_t>(Reg::Format)];
    const Region& to = program.regions[static_cast<size_t>(Reg::Input)];
    if (!inside(from, job.source, source_bytes(config, job)))
      problems.add(label + " reads beyond region `format`");
    if (!inside(to, job.target, bytes_of(config, formatted(job))))
      problems.add(label + " writes beyond region `input`");
  }
}

void put_tensors(std::string& out, const std::vector<DdrTensor>& tensors) {
  put_number(out, tensors.size());
  for (const DdrTensor& tensor : tensors) {
    put_bytes(out, tensor.name);
    put_number(out, static_cast<uint64_t>(tensor.reg));
    put_number(out, tensor.addr);
    for (const int64_t size : {tensor.channels, tensor.height, tensor.width})
      put_number(out, static_cast<uint64_t>(size));
    put_number(out, static_cast<uint64_t>(int64_t{tensor.fix_point}));
  }
}

void put_formats(std::string& out, const std::vector<FormatJob>& formats) {
  put_number(out, formats.size());
  for (const FormatJob& job : formats) {
    put_bytes(out, job.name);
    put_number(out, job.source);
    put_number(out, job.target);
    for (int FormatJob::* const field : kJobFields)
      put_number(out, static_cast<uint64_t>(int64_t{job.*field}));
  }
}

Result<int> read_int(ByteReader& in, std::string_view what) {
  const auto value = static_cast<int64_t>(TW_TRY(in.number()));
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    return fail(ErrorKind::Parse, fmt::format("{} {} is out of range", what, value));
  return static_cast<int>(value);
}

Result<std::vector<DdrTensor>> read_tensors(ByteReader& in) {
  std::vector<DdrTensor> tensors(TW_TRY(in.count(56, "tensors")));
  for (DdrTensor& tensor : tensors) {
    tensor.name = TW_TRY(in.bytes("a name"));
    tensor.reg = static_cast<Reg>(TW_TRY(read_int(in, "a register")));
    tensor.addr = TW_TRY(in.number());
    for (int64_t* size : {&tensor.channels, &tensor.height, &tensor.width})
      *size = TW_TRY(read_int(in, "a size"));
    tensor.fix_point = TW_TRY(read_int(in, "a scale"));
  }
  return tensors;
}

Result<std::vector<FormatJob>> read_formats(ByteReader& in) {
  std::vector<FormatJob> formats(TW_TRY(in.count(80, "format jobs")));
  for (FormatJob& job : formats) {
    job.name = TW_TRY(in.bytes("a name"));
    job.source = TW_TRY(in.number());
    job.target = TW_TRY(in.number());
    for (int FormatJob::* const field : kJobFields) job.*field = TW_TRY(read_int(in, "a size"));
  }
  return formats;
}

Result<std::vector<Insn>> read_insns(ByteReader& in) {
  return decode(TW_TRY(in.bytes("instructions")));
}

}  // namespace

std::string_view name(Reg reg) {
  constexpr std::array<std::string_view, kRegs> kNames = {"input",  "output", "swap",
                                                          "params", "format", "instructions"};
  return kNames.at(static_cast<size_t>(reg));
}

uint64_t bytes_of(const Config& config, const DdrTensor& tensor) {
  // Before the format unit, images are as the host has them: one after the other, no padding.
  const int64_t channels =
      tensor.reg == Reg::Format ? tensor.channels : groups(tensor.channels) * kLanes;
  return static_cast<uint64_t>(tensor.height * tensor.width * channels * config.pe);
}

uint64_t source_bytes(const Config& config, const FormatJob& job) {
  return static_cast<uint64_t>(int64_t{config.pe} * job.height * job.width * job.channels);
}

DdrTensor formatted(const FormatJob& job) {
  DdrTensor tensor;
  tensor.name = job.name;
  tensor.reg = Reg::Input;
  tensor.addr = job.target;
  tensor.channels = int64_t{job.kernel_w} * job.channels;
  tensor.height = job.height;
  tensor.width = (job.width + job.pad_left + job.pad_right - job.kernel_w) / job.stride_w + 1;
  return tensor;
}

Status validate(const Program& program) {
  accel::Problems problems;
  if (Status status = check(program.config); !status) problems.add(std::move(status.error()));
  accel::check_image(program, program.runs.size(), kDdrLimit, problems);
  check_regions(program, problems);
  check_tensors(program, "input", program.input_tensors, program.inputs, problems);
  check_tensors(program, "output", program.output_tensors, program.outputs, problems);
  check_formats(program, problems);
  for (size_t i = 0; i < program.runs.size(); ++i) {
    const Run& run = program.runs[i];
    accel::check_run(program, i, run.patches, run.spans, run.insns.size(), problems);
    for (size_t k = 0; k < run.insns.size(); ++k)
      if (Status status = check_fields(run.insns[k], fmt::format("run {}: instruction {}", i, k));
          !status)
        problems.add(std::move(status.error()));
  }
  return std::move(problems).status();
}

std::string serialise(const Program& program) {
  std::string out(kMagic);
  put_bytes(out, to_toml(program.config));
  accel::put_body(out, program, [](std::string& into, const std::vector<Insn>& insns) {
    put_bytes(into, encode(insns));
  });
  accel::put(out, std::vector<Region>(program.regions.begin(), program.regions.end()));
  put_formats(out, program.formats);
  put_tensors(out, program.input_tensors);
  put_tensors(out, program.output_tensors);
  accel::put_end(out, program);
  return out;
}

Result<Program> parse_program(std::string_view bytes) {
  ByteReader in(bytes, ErrorKind::Parse, kWhat);
  TW_TRY_STATUS(accel::read_signature(in, kMagic, kWhat));
  Program program;
  const std::string config = TW_TRY(in.bytes("the configuration"));
  program.config = TW_TRY(parse_config(config, "configuration"));
  TW_TRY_STATUS(accel::read_body(in, program, read_insns));
  const std::vector<Region> regions = TW_TRY(accel::read_regions(in));
  if (regions.size() != kRegs)
    return fail(ErrorKind::Parse,
                fmt::format("{} regions, but there are {} registers", regions.size(), kRegs));
  std::copy(regions.begin(), regions.end(), program.regions.begin());
  program.formats = TW_TRY(read_formats(in));
  program.input_tensors = TW_TRY(read_tensors(in));
  program.output_tensors = TW_TRY(read_tensors(in));
  TW_TRY_STATUS(accel::read_end(in, kWhat, program));
  TW_TRY_STATUS(validate(program));
  return program;
}

}  // namespace tilewright::dpu
