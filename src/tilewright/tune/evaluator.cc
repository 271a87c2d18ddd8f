#include "tilewright/tune/evaluator.h"

#include <array>

namespace tilewright::tune {
namespace {

constexpr std::array<std::string_view, 8> kNames = {
    "ok", "invalid", "compile_error", "wrong_result", "timeout", "crash", "oom", "lost"};

}  // namespace

std::string_view to_string(OutcomeKind kind) { return kNames.at(static_cast<size_t>(kind)); }

}  // namespace tilewright::tune
