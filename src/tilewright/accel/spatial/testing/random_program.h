// Random programs, and what they leave behind.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/accel/spatial/program.h"
#include "tilewright/accel/spatial/testing/naive_machine.h"
#include "tilewright/accel/spatial/testing/random_insn.h"

namespace tilewright::spatial::testing {

struct RandomProgram {
  Program program;       ///< one run, with tokens
  std::string expected;  ///< DRAM afterwards
  uint64_t steps = 0, macs = 0;
};

/// So many instructions at least, which read only what was written.
inline RandomProgram random_program(uint64_t seed, size_t insns) {
  Rng rng(seed);
  RandomProgram out;
  Program& program = out.program;
  program.design = small_design(rng);
  program.image = std::string(kRandomDram, '\0');
  for (char& byte : program.image) byte = static_cast<char>(rng.next());
  const auto base = static_cast<int64_t>(program.base);
  NaiveMachine naive(program.design, base, program.image);
  RandomInsns random(program.design, base, rng);
  std::vector<Insn> all = random.prologue();
  for (const Insn& insn : all) TW_CHECK(naive.run(insn), "{}", to_string(insn));
  while (all.size() < insns) {
    const Insn insn = random.next();
    NaiveMachine after = naive;
    if (!after.run(insn)) continue;
    naive = std::move(after);
    all.push_back(insn);
  }
  Run run;
  run.insns = with_tokens(program.design, std::move(all)).value();
  run.spans = {{"random", 0, run.insns.size()}};
  program.runs = {std::move(run)};
  program.outputs = {{"all", program.base, program.image.size()}};
  program.producer = "random";
  out.expected = naive.dram;
  out.steps = naive.steps;
  out.macs = naive.macs;
  return out;
}

/// The same, each instruction waiting for the one before.
inline std::vector<Insn> in_order(std::vector<Insn> insns) {
  for (Insn& insn : insns) insn.takes = insn.gives = 0;
  for (size_t i = 1; i < insns.size(); ++i) {
    const auto before = static_cast<int>(insns[i - 1].queue()),
               own = static_cast<int>(insns[i].queue());
    if (before == own) continue;
    insns[i - 1].gives = static_cast<uint8_t>(insns[i - 1].gives | 1u << own);
    insns[i].takes = static_cast<uint8_t>(insns[i].takes | 1u << before);
  }
  return insns;
}

}  // namespace tilewright::spatial::testing
