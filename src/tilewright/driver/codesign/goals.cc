#include "tilewright/driver/codesign/goals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tilewright/base/names.h"

namespace tilewright::driver {
namespace {

Result<std::vector<codesign::Objective>> parse_objectives(const std::string& text) {
  std::vector<std::string> known;
  for (const codesign::Objective objective : kObjectives)
    known.emplace_back(codesign::name(objective));
  std::vector<codesign::Objective> objectives;
  for (const std::string& word : words_of(text)) {
    const auto found = std::find(known.begin(), known.end(), word);
    if (found == known.end())
      return fail(ErrorKind::Usage, fmt::format("there is no objective '{}'", word),
                  fmt::format("--objectives takes {}", fmt::join(known, ", ")),
                  did_you_mean(word, known));
    objectives.push_back(kObjectives[found - known.begin()]);
  }
  return objectives;
}

Result<codesign::Limit> parse_goal_limit(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos)
    return fail(ErrorKind::Usage, fmt::format("--limit '{}' is not OBJECTIVE=VALUE", text), {},
                "--limit power=2W");
  const std::string objective = text.substr(0, equals);
  Result<codesign::Limit> limit = codesign::parse_limit(objective, text.substr(equals + 1));
  if (const std::string example = codesign::example_limit(objective); !limit && !example.empty())
    limit.error().fix = fmt::format("--limit {}={}", objective, example);
  return limit;
}

}  // namespace

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Result<codesign::Goals> parse_goals(const std::string& objectives,
                                    const std::vector<std::string>& limits,
                                    const codesign::DesignSpace& space) {
  codesign::Goals goals;
  goals.objectives = TW_TRY(parse_objectives(objectives));
  goals.limits = space.file().limits;
  std::set<codesign::Objective> given;
  for (const std::string& text : limits) {
    const codesign::Limit limit = TW_TRY(parse_goal_limit(text));
    if (!given.insert(limit.objective).second)
      return fail(
          ErrorKind::Usage,
          fmt::format("--limit {} is given more than once", codesign::name(limit.objective)), {},
          "leave all but one out");
    if (const std::string why = misplaced_unit(limit, space.file().technology); !why.empty())
      return fail(ErrorKind::Usage, fmt::format("--limit '{}': {}", text, why));
    std::erase_if(goals.limits,
                  [&](const auto& other) { return other.objective == limit.objective; });
    goals.limits.push_back(limit);
  }
  return goals;
}

Result<codesign::Goals> goals_of(const codesign::StudyKey& key) {
  codesign::Goals goals;
  goals.objectives = TW_TRY(parse_objectives(key.at("objectives")));
  if (!key.at("limits").empty())
    for (const std::string& text : words_of(key.at("limits")))
      goals.limits.push_back(TW_TRY(parse_goal_limit(text)));
  return goals;
}

}  // namespace tilewright::driver
