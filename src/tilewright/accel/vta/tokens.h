// VTA as queues with tokens, and its instructions with the tokens that their order needs
// (accel/common/tokens.h). Queues and tokens: docs/vta-timing.md 1.
#pragma once

#include <vector>

#include "tilewright/accel/common/tokens.h"
#include "tilewright/accel/vta/footprint.h"

namespace tilewright::vta {

/// The modules of this design in the order of the chain; tokens go between neighbours.
accel::Queues queues(const Config& config);

struct Annotated {
  std::vector<Insn> insns;    ///< with flags and no-ops; FINISH last
  std::vector<size_t> index;  ///< of each given instruction in `insns`
};

/// A transfer of size zero that `module` executes: it only passes tokens.
Insn no_op(Module module);

/// accel::insert_tokens, with FINISH after the last instruction of every module.
///   linear: right when run one after the other; its flags are ignored; no FINISH.
///   serial: every instruction waits for the one before.
/// errors: Invalid (a FINISH in `linear`; as accel::insert_tokens).
Result<Annotated> insert_tokens(const Config& config, const std::vector<Insn>& linear,
                                const std::vector<accel::Footprint>& footprints,
                                bool serial = false);

}  // namespace tilewright::vta
