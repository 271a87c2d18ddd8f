// Ordered tables of schedule rules: what a rule is, who takes a kernel, and why others did not.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace tilewright::rules {

/// What a rule answers: what it made, or the fact that decided against it, as a plain sentence
/// without a full stop ("the target has no such instruction").
template <class T>
using Answer = tl::expected<T, std::string>;
/// Of rules that take their steps on a draft.
struct Done {};

/// An answer of any type that declines.
template <class... Args>
tl::unexpected<std::string> decline(fmt::format_string<Args...> text, Args&&... args) {
  return tl::unexpected<std::string>(fmt::format(text, std::forward<Args>(args)...));
}

/// A row of a table. `schedule` decides whether the rule is for what `Context` holds, and schedules
/// it then; where it declines, nothing has changed.
template <class Context, class Made>
struct Rule {
  const char* name;  ///< in reports: lower case, words joined by hyphens
  const char* what;  ///< one line: which kernels it is for, and what it makes of them
  Answer<Made> (*schedule)(Context& context);
};

/// A row without its function, for lists.
struct RuleInfo {
  std::string name, what;
  friend bool operator==(const RuleInfo&, const RuleInfo&) = default;
};

/// A rule that was asked first, and why it left the kernel to those behind it.
struct Declined {
  std::string rule, reason;
  friend bool operator==(const Declined&, const Declined&) = default;
};

/// Who took a kernel, or one of its sums.
struct RuleChoice {
  std::string rule, what;          ///< its row; empty: nobody was asked, or all declined
  std::string block;               ///< the sum that it was asked about; empty: the kernel
  std::vector<Declined> declined;  ///< those asked before, in order
};

/// The rules behind the schedule of a kernel.
struct RuleReport {
  /// The rule of the whole kernel; where it has none, that of its sum with most work, behind those
  /// for kernels, which declined.
  RuleChoice kernel;
  std::vector<RuleChoice> sums;  ///< of its other sums
};

/// Asks the rules of `table` in order. What the first one that does not decline makes; absent if
/// all decline. Adds to `choice` who declined, and who took it.
template <class Context, class Made, size_t N>
std::optional<Made> ask(const Rule<Context, Made> (&table)[N], Context& context,
                        RuleChoice& choice) {
  for (const Rule<Context, Made>& rule : table) {
    Answer<Made> made = rule.schedule(context);
    if (made) {
      choice.rule = rule.name, choice.what = rule.what;
      return *std::move(made);
    }
    choice.declined.push_back({rule.name, std::move(made.error())});
  }
  return std::nullopt;
}

/// What rules for sums say of kernels without one.
inline constexpr const char* kNoSum = "no sum is left to schedule";

/// All rules of `table` decline for one reason, without being asked.
template <class Context, class Made, size_t N>
void decline_all(const Rule<Context, Made> (&table)[N], const std::string& reason,
                 RuleChoice& choice) {
  for (const Rule<Context, Made>& rule : table) choice.declined.push_back({rule.name, reason});
}

/// Adds the rows of `table` to a list.
template <class Context, class Made, size_t N>
void list_rules(const Rule<Context, Made> (&table)[N], std::vector<RuleInfo>& all) {
  for (const Rule<Context, Made>& rule : table) all.push_back({rule.name, rule.what});
}

/// Collects who took the parts of one kernel.
class RuleLog {
 public:
  /// Of rules for the whole kernel.
  RuleChoice kernel;

  void add_sum(RuleChoice choice, int64_t work);
  /// Whether the kernel or one of its sums has been asked about and taken.
  bool decided() const { return !kernel.rule.empty() || !sums_.empty(); }
  /// Without a rule of the whole kernel, the sum with most work speaks for it.
  RuleReport report() const;

 private:
  std::vector<std::pair<int64_t, RuleChoice>> sums_;  ///< with their work
};

}  // namespace tilewright::rules
