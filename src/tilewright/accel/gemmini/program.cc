#include "tilewright/accel/gemmini/program.h"

#include <fmt/format.h>

#include <map>

#include "tilewright/accel/common/program_bytes.h"

namespace tilewright::gemmini {
namespace {

constexpr std::string_view kSignature = "TWGEMPR1";
constexpr const char* kWhat = "Gemmini program";
constexpr size_t kCommandBytes = 24;

void put_commands(std::string& out, const std::vector<Insn>& insns) {
  put_number(out, insns.size());
  for (const Insn& insn : insns) {
    const RawCommand raw = encode(insn);
    put_number(out, raw.funct), put_number(out, raw.rs1), put_number(out, raw.rs2);
  }
}

Result<std::vector<Insn>> read_commands(ByteReader& in) {
  std::vector<Insn> insns(TW_TRY(in.count(kCommandBytes, "commands")));
  for (size_t i = 0; i < insns.size(); ++i) {
    RawCommand raw;
    const uint64_t funct = TW_TRY(in.number());
    raw.funct = funct > 127 ? 127 : static_cast<uint32_t>(funct);
    raw.rs1 = TW_TRY(in.number());
    raw.rs2 = TW_TRY(in.number());
    Result<Insn> insn = decode(raw);
    if (!insn)
      return tl::unexpected<Error>(std::move(insn.error()).at(fmt::format("command {}", i)));
    insns[i] = *std::move(insn);
  }
  return insns;
}

}  // namespace

Status validate(const Program& program) {
  TW_TRY_STATUS(check(program.config));
  accel::Problems problems;
  accel::check_image(program, program.runs.size(), kDramBytes, problems);
  for (size_t r = 0; r < program.runs.size(); ++r) {
    const Run& run = program.runs[r];
    accel::check_run(program, r, run.patches, run.spans, run.insns.size(), problems);
  }
  return std::move(problems).status();
}

std::string serialise(const Program& program) {
  std::string out(kSignature);
  put_bytes(out, to_toml(program.config));
  accel::put_body(out, program, put_commands);
  accel::put_end(out, program);
  return out;
}

Result<Program> parse_program(std::string_view bytes) {
  ByteReader in(bytes, ErrorKind::Parse, kWhat);
  TW_TRY_STATUS(accel::read_signature(in, kSignature, kWhat));
  Program program;
  program.config = TW_TRY(parse_config(TW_TRY(in.bytes("the configuration")), kWhat));
  TW_TRY_STATUS(accel::read_body(in, program, read_commands));
  TW_TRY_STATUS(accel::read_end(in, kWhat, program));
  TW_TRY_STATUS(validate(program));
  return program;
}

std::string assembly(const Program& program) {
  std::string text;
  for (size_t r = 0; r < program.runs.size(); ++r) {
    const Run& run = program.runs[r];
    if (r > 0) text += "fence\n";
    std::multimap<size_t, std::string> layers;
    for (const Span& span : run.spans) layers.emplace(span.begin, span.name);
    for (size_t i = 0; i < run.insns.size(); ++i) {
      for (auto [at, end] = layers.equal_range(i); at != end; ++at)
        text += fmt::format("# layer {}\n", at->second);
      text += line_of(run.insns[i]) + "\n";
    }
  }
  return text;
}

}  // namespace tilewright::gemmini
