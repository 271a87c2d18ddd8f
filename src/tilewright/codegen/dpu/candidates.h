// The programs that a network may become: one for each way (way.h), judged by the cycle simulator.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {

struct Candidate {
  Way way;
  Plan plan;
  EmittedCode code;
  Run run;
  uint64_t cycles = 0;
};

/// A network in all forms, each lowered once.
class Candidates {
 public:
  /// requires: `check` and `supports` accept both. errors: Unsupported.
  static Result<Candidates> create(const Network& network, const Config& config);

  /// Null: the network has nothing that this form changes.
  /// `plain`: layers that stay as they are where strides are reordered.
  const Lowered* lowered(Form form, const std::set<int>& plain = {}) const;
  /// The order of nodes by a way.
  std::vector<int> order(const Way& way) const;
  /// errors: Capacity; NotApplicable (a form that the network has not, a node that is not there).
  Result<Candidate> make(const Way& way) const;
  /// The program, without the attempts before it. errors: Capacity.
  Result<Compiled> finish(const Candidate& candidate) const;
  const Config& config() const { return config_; }
  /// For people.
  std::string describe(const Way& way) const {
    return dpu::describe(way, network_, config_.compiler.fusion);
  }

 private:
  Candidates(const Network& network, const Config& config) : network_(network), config_(config) {}
  const Lowered* strides(const std::set<int>& plain) const;

  Network network_;
  Config config_;
  std::map<Form, Lowered> forms_;
  std::set<ValueId> in_ddr_;  ///< in the plainest plan
  /// Further forms of strides, by the layers left out; made when first asked for.
  struct Others {
    std::mutex lock;
    std::map<std::set<int>, Lowered> made;
  };
  std::unique_ptr<Others> others_ = std::make_unique<Others>();
};

/// The same after checks, with the pools of branches first where branches run in parallel.
/// errors: Invalid, Unsupported.
Result<Candidates> candidates_of(const Network& network, const Config& config);

}  // namespace tilewright::dpu
