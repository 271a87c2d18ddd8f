// What the checker finds in small changes of the hand program.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/testing/hand_program.h"

namespace tilewright::vta::testing {

using Insns = std::vector<Insn>;

inline std::string print(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings)
    text += std::string(name(f.rule)) + (f.error ? " error " : " warning ") +
            std::to_string(f.run) + ":" + std::to_string(f.insn) + " " + f.text + "\n";
  return text;
}

inline std::vector<Finding> check_insns(const Insns& insns, const Config& config = {}) {
  Program program = hand_program(config);
  program.runs[0].insns = insns;
  return check_program(program);
}

/// The hand program with a change.
inline std::vector<Finding> changed(const std::function<void(Insns&)>& change,
                                    const Config& config = {}) {
  Insns insns = hand_program(config).runs[0].insns;
  change(insns);
  return check_insns(insns, config);
}

inline Transfer& transfer(Insn& insn) { return std::get<Transfer>(insn.op); }

inline void expect_clean(const std::vector<Finding>& findings) { EXPECT_EQ(print(findings), ""); }

/// A finding of this rule at this instruction, with this in its text.
inline void expect_finding(const std::vector<Finding>& findings, Rule rule, size_t insn,
                           const std::string& text, bool error = true) {
  for (const Finding& f : findings)
    if (f.rule == rule && f.insn == insn && f.error == error &&
        f.text.find(text) != std::string::npos)
      return;
  ADD_FAILURE() << "no finding " << name(rule) << " at " << insn << " with '" << text << "' in:\n"
                << print(findings);
}

}  // namespace tilewright::vta::testing
