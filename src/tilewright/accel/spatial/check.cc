#include "tilewright/accel/spatial/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tilewright/accel/common/order.h"
#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/accel/spatial/operands.h"

namespace tilewright::spatial {
namespace {

std::string all_texts(const Error& error) {
  std::string text = error.what;
  for (const Error& other : error.others) text += "; " + other.what;
  return text;
}

Rule rule_of(accel::TokenRule rule) {
  switch (rule) {
    case accel::TokenRule::Deadlock:
      return Rule::Deadlock;
    case accel::TokenRule::Leftover:
      return Rule::LeftoverToken;
    case accel::TokenRule::Overflow:
      return Rule::TokenOverflow;
  }
  return Rule::Deadlock;
}

class ProgramChecker {
 public:
  explicit ProgramChecker(const Program& program) : program_(program) {}

  std::vector<Finding> check(size_t most) {
    for (run_ = 0; run_ < program_.runs.size(); ++run_) check_run(program_.runs[run_].insns);
    std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
      return std::pair(a.run, a.insn) < std::pair(b.run, b.insn);
    });
    if (findings_.size() > most) findings_.resize(most);
    return std::move(findings_);
  }

 private:
  void add(Rule rule, size_t insn, std::string text) {
    findings_.push_back({rule, run_, insn, std::move(text)});
  }

  void check_run(const std::vector<Insn>& insns) {
    const size_t before = findings_.size();
    for (size_t i = 0; i < insns.size(); ++i) check_alone(insns[i], i);
    // What an instruction touches is only known if it is right by itself.
    if (findings_.size() > before) return;
    std::vector<accel::Ordered> ordered;
    std::vector<int> queue;
    std::vector<accel::Footprint> footprints;
    for (const Insn& insn : insns) {
      queue.push_back(static_cast<int>(insn.queue()));
      ordered.push_back({queue.back(), insn.takes, insn.gives});
      footprints.push_back(footprint(program_.design, insn));
    }
    const accel::Queues design = queues();
    const accel::TokenOrder order = accel::order_by_tokens(design, ordered);
    for (const accel::TokenFinding& finding : order.findings)
      add(rule_of(finding.rule), finding.insn, finding.text);
    if (order.known.size() < insns.size()) return;
    for (const accel::Race& race : accel::find_races(design, queue, footprints, order.known))
      add(Rule::Race, race.insn,
          fmt::format("{} and instruction {} ({}) meet in {}, and no chain of tokens orders them",
                      name(insns[race.insn].queue()), race.rival, name(insns[race.rival].queue()),
                      race.where));
  }

  void check_alone(const Insn& insn, size_t index) {
    if (Status status = check_fields(program_.design, insn); !status)
      return add(Rule::Field, index, all_texts(status.error()));
    if (const auto* load = std::get_if<Load>(&insn.work)) check_dram(runs(*load), index);
    if (const auto* store = std::get_if<Store>(&insn.work)) check_dram(runs(*store), index);
  }

  void check_dram(const Runs& runs, size_t index) {
    if (runs.bytes == 0) return;
    const auto begin = static_cast<uint64_t>(runs.begins.first());
    const uint64_t end = static_cast<uint64_t>(runs.begins.last()) + runs.bytes;
    if (begin >= program_.base && end <= program_.end()) return;
    add(Rule::Range, index,
        fmt::format("bytes {}..{} of DRAM, but the image has {}..{}", begin, end, program_.base,
                    program_.end()));
  }

  const Program& program_;
  size_t run_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view name(Rule rule) {
  constexpr std::array<std::string_view, 6> kNames = {
      "field", "deadlock", "leftover-token", "token-overflow", "range", "race"};
  return kNames.at(static_cast<size_t>(rule));
}

std::vector<Finding> check_program(const Program& program, size_t most) {
  return ProgramChecker(program).check(most);
}

}  // namespace tilewright::spatial
