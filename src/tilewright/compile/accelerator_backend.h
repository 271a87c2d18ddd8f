// What back-ends of accelerators answer alike: `prepare` makes a quantised graph that has been
// through the passes already, and the processor beside the accelerator runs the rest.
#pragma once

#include "tilewright/compile/backend.h"

namespace tilewright::compile {

class AcceleratorBackend : public Backend {
 public:
  std::vector<std::string> target_names() const override { return {std::string(name())}; }
  std::string passes(const CompileOptions&) const override { return {}; }
  void set_up(graph::PassContext&, const CompileOptions&,
              std::vector<records::Record>&) const override {}
  bool always_fuses() const override { return true; }
  /// None, unless its layers are scheduled Funcs.
  std::vector<rules::RuleInfo> schedule_rules() const override { return {}; }
  void describe(runtime::Program& program, const CompileOptions& options) const override;
};

/// A target of the back-end called `name`, with `special` in it; the back-end adds the rest.
hw::Target accelerator_target(const std::string& name, std::any special);

/// The error of a back-end that was given an operator and has no memo of its preparation: Usage.
tl::unexpected<Error> takes_models(std::string_view target);

/// `special` of a target, if it is a T; null for targets of other back-ends.
template <class T>
const T* special_of(const hw::Target& target) {
  const auto* special = std::get_if<std::any>(&target.special);
  return special == nullptr ? nullptr : std::any_cast<T>(special);
}

/// The detail of a launch, if it is a T; null for launches of other back-ends.
template <class T>
const T* detail_of(const LaunchCode& launch) {
  return dynamic_cast<const T*>(launch.detail.get());
}

}  // namespace tilewright::compile
