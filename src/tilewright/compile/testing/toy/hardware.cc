#include "tilewright/compile/testing/toy/hardware.h"

#include <fmt/format.h>

#include "tilewright/accel/common/program_bytes.h"

namespace tilewright::toy {
namespace {

constexpr std::string_view kMagic = "TWTOYPR1";
constexpr const char* kWhat = "toy program";
constexpr size_t kInsnBytes = 8 * (1 + std::tuple_size_v<decltype(Insn::fields())>);

accel::Access bytes_at(int memory, int64_t begin, int64_t bytes, bool write) {
  return accel::one_row(memory, static_cast<uint64_t>(begin), static_cast<uint64_t>(begin + bytes),
                        write);
}

Result<Insn> read_insn(ByteReader& in) {
  Insn insn;
  const uint64_t op = TW_TRY(in.number());
  if (op > static_cast<uint64_t>(Op::Dot))
    return fail(ErrorKind::Parse, fmt::format("there is no instruction {}", op));
  insn.op = static_cast<Op>(op);
  Status status;
  for_each_field(insn, [&](std::string_view, int64_t& value) {
    const Result<uint64_t> number = in.number();
    if (number) value = static_cast<int64_t>(*number);
    if (!number && status) status = tl::unexpected<Error>(number.error());
  });
  TW_TRY_STATUS(status);
  return insn;
}

Result<std::vector<Insn>> read_insns(ByteReader& in) {
  std::vector<Insn> insns(TW_TRY(in.count(kInsnBytes, "instructions")));
  for (Insn& insn : insns) insn = TW_TRY(read_insn(in));
  return insns;
}

}  // namespace

int queue_of(const Insn& insn) { return insn.op == Op::Dot ? kComputeQueue : kLoadQueue; }

std::string to_string(const Insn& insn) {
  static constexpr const char* kNames[] = {"load", "store", "dot"};
  std::string text = kNames[static_cast<size_t>(insn.op)];
  for_each_field(insn, [&](std::string_view name, int64_t value) {
    if (value != 0) text += fmt::format(" {}={}", name, value);
  });
  return text;
}

const accel::Queues& queues() {
  static const accel::Queues queues = {
      .list = {{"load", {kDram, kOut}, {kBuf, kDram}}, {"compute", {kBuf}, {kOut}}},
      .memories = {"buf", "out", "dram"}};
  return queues;
}

accel::Footprint footprint(const Insn& insn) {
  switch (insn.op) {
    case Op::Load:
      return {bytes_at(kDram, insn.dram, insn.bytes, false),
              bytes_at(kBuf, insn.at, insn.bytes, true)};
    case Op::Store:
      return {bytes_at(kOut, insn.at, insn.bytes, false),
              bytes_at(kDram, insn.dram, insn.bytes, true)};
    case Op::Dot:
      break;
  }
  return {bytes_at(kBuf, insn.x, insn.depth, false),
          bytes_at(kBuf, insn.w, insn.depth * insn.count, false),
          bytes_at(kBuf, insn.bias, 4 * insn.count, false),
          bytes_at(kOut, insn.y, insn.count, true)};
}

std::string serialise(const Program& program) {
  std::string out(kMagic);
  accel::put_body(out, program, [](std::string& into, const std::vector<Insn>& insns) {
    put_number(into, insns.size());
    for (const Insn& insn : insns) {
      put_number(into, static_cast<uint64_t>(insn.op));
      for_each_field(insn, [&](std::string_view, int64_t value) {
        put_number(into, static_cast<uint64_t>(value));
      });
    }
  });
  accel::put_end(out, program);
  return out;
}

Result<Program> parse_program(std::string_view bytes) {
  ByteReader in(bytes, ErrorKind::Parse, kWhat);
  TW_TRY_STATUS(accel::read_signature(in, kMagic, kWhat));
  Program program;
  TW_TRY_STATUS(accel::read_body(in, program, read_insns));
  TW_TRY_STATUS(accel::read_end(in, kWhat, program));
  accel::Problems problems;
  accel::check_image(program, program.runs.size(), uint64_t{1} << 32, problems);
  for (size_t r = 0; r < program.runs.size(); ++r) {
    const accel::Run<Insn>& run = program.runs[r];
    accel::check_run(program, r, run.patches, run.spans, run.insns.size(), problems);
  }
  TW_TRY_STATUS(std::move(problems).status());
  return program;
}

}  // namespace tilewright::toy
