// Dependence tokens from conflicting addresses: a sequential program becomes one whose modules run
// concurrently. Queues and tokens: docs/vta-timing.md 1.
#pragma once

#include <vector>

#include "tilewright/accel/vta/footprint.h"

namespace tilewright::vta {

struct TokenOptions {
  bool serial = false;        ///< every instruction waits for the one before
  int max_outstanding = 254;  ///< tokens in one queue; at least 2; hardware counts in 8 bits
};

struct Annotated {
  std::vector<Insn> insns;    ///< with flags and no-ops; FINISH last
  std::vector<size_t> index;  ///< of each given instruction in `insns`
};

/// A transfer of size zero that `module` executes: it only passes tokens.
Insn no_op(Module module);

/// Orders exactly the conflicting pairs of different modules (and what follows from them), with no
/// token that others imply, all queues empty at the end, and FINISH after the last instruction of
/// every module. A dependence between modules that are not neighbours passes through no-ops.
///   linear: right when run one after the other; its flags are ignored; no FINISH.
///   footprints: one per instruction.
///   keeps: the order of `linear`; every token goes forward in it, so nothing can deadlock.
/// errors: Invalid (a FINISH in `linear`, not as many footprints as instructions).
Result<Annotated> insert_tokens(const Config& config, const std::vector<Insn>& linear,
                                const std::vector<Footprint>& footprints,
                                const TokenOptions& options = {});

}  // namespace tilewright::vta
