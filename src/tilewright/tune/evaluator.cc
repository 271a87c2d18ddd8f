#include "tilewright/tune/evaluator.h"

#include <array>

namespace tilewright::tune {
namespace {

constexpr std::array<std::string_view, 8> kNames = {
    "ok", "invalid", "compile_error", "wrong_result", "timeout", "crash", "oom", "lost"};

}  // namespace

std::string_view to_string(OutcomeKind kind) { return kNames.at(static_cast<size_t>(kind)); }

std::vector<Reading> Evaluator::evaluate_each(const CandidateSource& next) {
  std::vector<Candidate> candidates;
  while (std::optional<Candidate> candidate = next()) candidates.push_back(*std::move(candidate));
  return evaluate(candidates);
}

}  // namespace tilewright::tune
