#include "tilewright/accel/spatial/program.h"

#include <fmt/format.h>

#include "tilewright/accel/common/program_bytes.h"

namespace tilewright::spatial {
namespace {

constexpr std::string_view kMagic = "TWSPAPR1";
constexpr const char* kWhat = "program of a spatial accelerator";

void put_insns(std::string& out, const std::vector<Insn>& insns) {
  std::string bytes;
  bytes.reserve(insns.size() * kInsnBytes);
  for (const Insn& insn : insns) bytes += encode(insn);
  put_bytes(out, bytes);
}

Result<std::vector<Insn>> read_insns(ByteReader& in) {
  return decode_all(TW_TRY(in.bytes("instructions")));
}

}  // namespace

Status validate(const Program& program) {
  accel::Problems problems;
  const std::vector<std::string> of_design = spatial::problems(program.design);
  for (const std::string& problem : of_design) problems.add(problem);
  accel::check_image(program, program.runs.size(), kDramBytes, problems);
  for (size_t i = 0; i < program.runs.size(); ++i) {
    const Run& run = program.runs[i];
    accel::check_run(program, i, run.patches, run.spans, run.insns.size(), problems);
    for (size_t k = 0; of_design.empty() && k < run.insns.size(); ++k)
      if (Status status = check_fields(program.design, run.insns[k]); !status)
        problems.add(std::move(status.error()).at(fmt::format("run {}: instruction {}", i, k)));
  }
  return std::move(problems).status();
}

std::string serialise(const Program& program) {
  std::string out(kMagic);
  put_bytes(out, to_toml(program.design));
  accel::put_body(out, program, put_insns);
  accel::put_end(out, program);
  return out;
}

Result<Program> parse_program(std::string_view bytes) {
  ByteReader in(bytes, ErrorKind::Parse, kWhat);
  TW_TRY_STATUS(accel::read_signature(in, kMagic, kWhat));
  Program program;
  const std::string design = TW_TRY(in.bytes("the design"));
  program.design = TW_TRY(read_design(design, "design"));
  TW_TRY_STATUS(accel::read_body(in, program, read_insns));
  TW_TRY_STATUS(accel::read_end(in, kWhat, program));
  TW_TRY_STATUS(validate(program));
  return program;
}

}  // namespace tilewright::spatial
