// Programs as one byte string, in packages: what the formats of accelerators have in common. A
// string begins with a signature and the configuration, then come base, image, runs and regions,
// then whatever the accelerator has besides, and at last `put_end`.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/accel/common/image.h"

namespace tilewright::accel {

/// `what` names the program: `VTA program`. errors: Parse.
Status read_signature(ByteReader& in, std::string_view signature, std::string_view what);

/// Base, image, runs, inputs and outputs. `put_insns(out, insns)` writes the instructions of a run.
template <class Insn, class PutInsns>
void put_body(std::string& out, const Program<Insn>& program, const PutInsns& put_insns) {
  put_number(out, program.base);
  put_bytes(out, program.image);
  put_number(out, program.runs.size());
  for (const Run<Insn>& run : program.runs) {
    put(out, run.patches);
    put_insns(out, run.insns);
    put(out, run.spans);
  }
  put(out, program.inputs);
  put(out, program.outputs);
}

/// One run, its instructions by `read_insns(in)`.
template <class Insn, class ReadInsns>
Result<Run<Insn>> read_run(ByteReader& in, const ReadInsns& read_insns) {
  Run<Insn> run;
  run.patches = TW_TRY(read_patches(in));
  run.insns = TW_TRY(read_insns(in));
  run.spans = TW_TRY(read_spans(in));
  return run;
}

/// What `put_body` wrote. errors: those of `read_insns`, at their run, and of ByteReader.
template <class Insn, class ReadInsns>
Status read_body(ByteReader& in, Program<Insn>& program, const ReadInsns& read_insns) {
  program.base = TW_TRY(in.number());
  program.image = TW_TRY(in.bytes("the image"));
  const size_t runs = TW_TRY(in.count(24, "runs"));
  for (size_t i = 0; i < runs; ++i) {
    Result<Run<Insn>> run = read_run<Insn>(in, read_insns);
    if (!run) return tl::unexpected<Error>(std::move(run.error()).at(fmt::format("run {}", i)));
    program.runs.push_back(*std::move(run));
  }
  program.inputs = TW_TRY(read_regions(in));
  program.outputs = TW_TRY(read_regions(in));
  return {};
}

/// Producer and information.
void put_end(std::string& out, const Image& image);
/// errors: Parse, also where bytes follow.
Status read_end(ByteReader& in, std::string_view what, Image& image);

}  // namespace tilewright::accel
