// The walk over a scheduled Func: outer loops run here, what is left becomes
// instructions.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/codegen/vta/buffers.h"
#include "tilewright/codegen/vta/epilogue.h"
#include "tilewright/codegen/vta/loops.h"
#include "tilewright/codegen/vta/vta.h"

namespace tilewright::codegen::stream {

/// A weight element with `value` on its diagonal: its product with an input is value * input.
std::string diagonal_element(const vta::Config& config, int64_t value);

class Emitter {
 public:
  /// requires: all references outlive the emitter.
  Emitter(const Func& func, const vta::Config& config, const VtaOptions& options)
      : func_(func), config_(config), options_(options), step_loops_(config) {}

  /// Sizes of all slots. errors: Unsupported.
  Result<VtaUse> measure();
  /// requires: `measure` succeeded. errors: Unsupported, Capacity.
  Status emit(const std::vector<uint64_t>& addresses, vta::Builder& builder);

 private:
  /// A nest that is being read: its loops that are not unrolled, outermost
  /// first.
  struct Open {
    std::vector<const For*> loops;
    std::vector<int64_t> first;  ///< values at which they start
    std::vector<bool> reduces;   ///< whether a reduce iteration depends on them
    std::string name;            ///< of the block
    bool ordered = false;        ///< iterations must run in order
  };
  /// What became of an attempt: done, or a loop that must be run here, or be cut in two.
  struct Attempt {
    const For* unroll = nullptr;
    bool stuck = false;  ///< not affine, and no loop is left
    const For* cut = nullptr;
    int64_t at = 0;  ///< where the second part begins
  };
  /// An operand of a block of element-wise operations.
  struct Operands {
    Nest nest;  ///< forms: stored address, then one per load
    std::vector<const Load*> loads;
  };

  // vta.cc: the walk.
  Status walk(const Stmt& s);
  Status loop(const For& f);
  Status execute(const For& f, const std::function<Status()>& body);
  Status alloc(const Buffer& buffer);
  Status assign_slots();
  void find_weights(const Stmt& s);
  void find_weights(const Store& s, const Expr& value);
  bool holds_alloc(const Stmt& s);

  // nest.. in leaf.cc: one nest around one block.
  Status nest(std::vector<const For*> loops, const Stmt& leaf);
  Result<Attempt> attempt(const std::vector<const For*>& loops, const Stmt& leaf);
  Result<std::optional<Attempt>> open_guard(const Expr& guard, Open& open);
  Range range_of(const For& loop, int64_t extent) const;
  Status in_two(const For& loop, int64_t at, const std::function<Status()>& body);
  Attempt unroll(const Open& open) const;
  Attempt unroll_for(const Form& condition, const Open& open) const;
  std::optional<Form> address(const Buffer& buffer, const std::vector<Expr>& indices) const;
  Result<Attempt> store(const Store& s, const Open& open);
  Result<Attempt> copy(const Store& s, const Expr& value, const Open& open);
  Result<Attempt> zeros(const Store& s, const Open& open);
  Result<Attempt> call(const Call& c, const Open& open);
  Result<Attempt> fill(const Call& c, const Open& open);
  std::optional<Form> element(const Region& r, vta::Mem mem, std::string& problem) const;
  Status gemm(Nest nest, const Buffer& target);

  // compute.cc: blocks of element-wise operations.
  Result<Attempt> compute(const Store& s, const Expr& value, const Open& open);
  Attempt divide(const Expr& condition, const Open& open) const;
  Result<std::optional<Operands>> operands(const Store& s, const Expr& value) const;
  Result<size_t> choose_target(const Store& s, const Operands& o) const;
  Status run_steps(const std::vector<AluStep>& steps, const Operands& o, size_t target);
  Status run_step(const AluStep& step, const Operands& o, size_t target);
  Status reset(Nest nest, const Buffer& target);
  Status flush_reset(const Buffer& buffer);
  void wrote(const Nest& nest, const Form& form, const Buffer& buffer, bool storable);
  void consume(const Nest& nest, const Form& form, const Buffer& buffer);
  bool may_store(const Nest& nest, const Form& form, const Buffer& buffer) const;
  Status check_unconsumed(const Nest& nest, const Form& form, const Buffer& buffer) const;
  Status load_weights();
  Place& place(const Buffer& buffer) { return places_.at(buffer.id()); }
  const Place& place(const Buffer& buffer) const { return places_.at(buffer.id()); }

  const Func& func_;
  vta::Config config_;
  VtaOptions options_;
  vta::Builder* builder_ = nullptr;  ///< absent while measuring
  Env env_;
  StepLoops step_loops_;
  OnChip on_chip_;
  std::map<const void*, Place> places_;
  std::map<const void*, bool> holds_alloc_;
  std::map<const For*, Range> cuts_;  ///< parts of loops that were cut in two
  /// Extensions::fused_reset: accumulators whose reset waits for the first
  /// accumulation.
  std::map<const void*, Nest> waiting_resets_;
  std::vector<int64_t> weights_;  ///< of diagonal elements, in the last slots of
                                  ///< the weight memory
  bool weights_loaded_ = false;
};

/// errors: Unsupported about block `name`.
tl::unexpected<Error> unsupported(const std::string& name, const std::string& why,
                                  const std::string& fix = {});

}  // namespace tilewright::codegen::stream
