#include "tilewright/accel/vta/program.h"

#include <fmt/format.h>

#include <utility>

#include "tilewright/base/bytes.h"

namespace tilewright::vta {
namespace {

constexpr std::string_view kMagic = "TWVTAPR1";

void put_run(std::string& out, const Config& config, const Run& run) {
  accel::put(out, run.patches);
  put_number(out, run.insns.size());
  for (const Insn& insn : run.insns)
    for (const uint64_t word : encode(config, insn)) put_number(out, word);
  accel::put(out, run.spans);
}

Result<std::vector<Insn>> read_insns(ByteReader& in, const Config& config) {
  const size_t count = TW_TRY(in.count(16, "instructions"));
  std::vector<Insn> insns;
  insns.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    Word word{};
    for (uint64_t& half : word) half = TW_TRY(in.number());
    Result<Insn> insn = decode(config, word);
    if (!insn)
      return tl::unexpected<Error>(std::move(insn.error()).at(fmt::format("instruction {}", i)));
    insns.push_back(*std::move(insn));
  }
  return insns;
}

Result<Run> read_run(ByteReader& in, const Config& config) {
  Run run;
  run.patches = TW_TRY(accel::read_patches(in));
  run.insns = TW_TRY(read_insns(in, config));
  run.spans = TW_TRY(accel::read_spans(in));
  return run;
}

}  // namespace

Status validate(const Program& program) {
  accel::Problems problems;
  if (Status status = check(program.config); !status) problems.add(std::move(status.error()));
  accel::check_image(program, program.runs.size(), kDramLimit, problems);
  // Fields have widths only if the configuration is legal.
  const bool encodable = problems.empty();
  for (size_t i = 0; i < program.runs.size(); ++i) {
    const Run& run = program.runs[i];
    accel::check_run(program, i, run.patches, run.spans, run.insns.size(), problems);
    for (size_t k = 0; encodable && k < run.insns.size(); ++k)
      if (Status status = fits(program.config, run.insns[k]); !status)
        problems.add(std::move(status.error()).at(fmt::format("run {}: instruction {}", i, k)));
  }
  return std::move(problems).status();
}

std::string serialise(const Program& program) {
  std::string out(kMagic);
  put_bytes(out, to_toml(program.config));
  put_number(out, program.base);
  put_bytes(out, program.image);
  put_number(out, program.runs.size());
  for (const Run& run : program.runs) put_run(out, program.config, run);
  accel::put(out, program.inputs);
  accel::put(out, program.outputs);
  put_bytes(out, program.producer);
  put_bytes(out, program.info);
  return out;
}

Result<Program> parse_program(std::string_view bytes) {
  ByteReader in(bytes, ErrorKind::Parse, "VTA program");
  const Result<std::string_view> magic = in.take(kMagic.size(), "the signature");
  if (!magic || *magic != kMagic)
    return fail(ErrorKind::Parse, "not a VTA program",
                fmt::format("the signature `{}` is not there", kMagic),
                "compile the program again");
  Program program;
  const std::string config = TW_TRY(in.bytes("the configuration"));
  program.config = TW_TRY(parse_config(config, "configuration"));
  program.base = TW_TRY(in.number());
  program.image = TW_TRY(in.bytes("the image"));
  const size_t runs = TW_TRY(in.count(24, "runs"));
  for (size_t i = 0; i < runs; ++i) {
    Result<Run> run = read_run(in, program.config);
    if (!run) return tl::unexpected<Error>(std::move(run.error()).at(fmt::format("run {}", i)));
    program.runs.push_back(*std::move(run));
  }
  program.inputs = TW_TRY(accel::read_regions(in));
  program.outputs = TW_TRY(accel::read_regions(in));
  program.producer = TW_TRY(in.bytes("the producer"));
  program.info = TW_TRY(in.bytes("the information"));
  if (in.left() > 0)
    return fail(ErrorKind::Parse,
                fmt::format("{} bytes follow the VTA program at byte {}", in.left(), in.at()));
  TW_TRY_STATUS(validate(program));
  return program;
}

}  // namespace tilewright::vta
