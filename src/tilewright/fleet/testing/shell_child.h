// For tests: a shell in the place of a runner.
#pragma once

#include <string>

#include "tilewright/fleet/open_package.h"

namespace tilewright::fleet {

/// Runs `script`, which reads from its stdin and answers through its stdout.
inline OpenChild shell_child(const std::string& script) {
  return [script](int input, int answers, const ConfinedProcess::Prepare& prepare) {
    Confined confined;
    confined.argv = {"sh", "-c", script};
    confined.limit_seconds = 1e9;
    confined.input = input;
    confined.answers = answers;
    return ConfinedProcess::start(SandboxKind::None, std::move(confined), prepare);
  };
}

}  // namespace tilewright::fleet
