#include "tilewright/accel/vta/program.h"

#include <fmt/format.h>

#include <utility>

#include "tilewright/accel/common/program_bytes.h"

namespace tilewright::vta {
namespace {

constexpr std::string_view kMagic = "TWVTAPR1";
constexpr const char* kWhat = "VTA program";

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
  accel::put_body(out, program, [&](std::string& into, const std::vector<Insn>& insns) {
    put_number(into, insns.size());
    for (const Insn& insn : insns)
      for (const uint64_t word : encode(program.config, insn)) put_number(into, word);
  });
  accel::put_end(out, program);
  return out;
}

Result<Program> parse_program(std::string_view bytes) {
  ByteReader in(bytes, ErrorKind::Parse, kWhat);
  TW_TRY_STATUS(accel::read_signature(in, kMagic, kWhat));
  Program program;
  const std::string config = TW_TRY(in.bytes("the configuration"));
  program.config = TW_TRY(parse_config(config, "configuration"));
  TW_TRY_STATUS(accel::read_body(
      in, program, [&](ByteReader& insns) { return read_insns(insns, program.config); }));
  TW_TRY_STATUS(accel::read_end(in, kWhat, program));
  TW_TRY_STATUS(validate(program));
  return program;
}

}  // namespace tilewright::vta
