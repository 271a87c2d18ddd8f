#include "tilewright/measure/evaluator.h"

#include <array>

namespace tilewright::measure {
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

std::optional<OutcomeKind> outcome_kind(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(OutcomeKind::Lost); ++i)
    if (const auto kind = static_cast<OutcomeKind>(i); to_string(kind) == text) return kind;
  return std::nullopt;
}

}  // namespace tilewright::measure
