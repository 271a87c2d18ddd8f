// The checks of one instruction that need no other instruction. Internal.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/accel/vta/check.h"

namespace tilewright::vta::check_detail {

/// A finding without its place.
struct Note {
  Rule rule;
  bool error;
  std::string text;
};

/// Fields, flags, ranges of transfers and what a form does not allow. `portable`: also what some
/// implementation does otherwise.
std::vector<Note> check_form(const Program& program, const Insn& insn, bool portable);

/// Whether a transfer is inside of its memory and the image, and of a kind that can run.
bool runnable(const Program& program, const Transfer& move);

/// Indices of GEMM and ALU beyond their memories. requires: uop range within `uops`.
std::vector<Note> check_indices(const Config& config, const Insn& insn, std::span<const Uop> uops,
                                bool portable);

/// What some implementation does otherwise with these micro-ops: destinations too close to each
/// other, immediate operands from elsewhere. requires: as check_indices, at least one step.
std::vector<Note> check_steps(const Insn& insn, std::span<const Uop> uops);

}  // namespace tilewright::vta::check_detail
