// VTA instructions for what the walk over a scheduled Func leaves.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/codegen/stream/walk.h"
#include "tilewright/codegen/vta/epilogue.h"
#include "tilewright/codegen/vta/loops.h"
#include "tilewright/codegen/vta/vta.h"

namespace tilewright::codegen::vta_code {

using stream::Attempt;
using stream::Open;
using stream::PlacedBox;
using stream::Ring;

/// The memory a scope names: `vta.inp`, `vta.wgt`, `vta.acc`.
std::optional<vta::Mem> memory_of(const Buffer& buffer);
/// Whether a place is in that memory.
bool in(const PlacedBox& place, vta::Mem mem);
/// Width of one scalar of a memory; units: bits.
int scalar_bits(const vta::Config& config, vta::Mem mem);
/// A weight element with `value` on its diagonal: its product with an input is value * input.
std::string diagonal_element(const vta::Config& config, int64_t value);
/// stream::emit_transfers as instructions.
Status emit_transfers(ConcreteNest nest, vta::Mem mem, bool store, vta::Builder& builder);

class Emitter : public stream::Walk {
 public:
  /// requires: all references outlive the emitter.
  Emitter(const Func& func, const vta::Config& config, const VtaOptions& options);

  /// Elements of each on-chip memory that the Func needs, by number. errors: Unsupported.
  Result<std::map<int, int64_t>> measure();
  /// errors: Capacity (fewer elements than `use`).
  Status check_capacity(const std::map<int, int64_t>& use) const;
  /// requires: `measure` succeeded. errors: Unsupported, Capacity (a field of an instruction).
  Status emit(const std::vector<uint64_t>& addresses, vta::Builder& builder);

 private:
  /// An operand of a block of element-wise operations.
  struct Operands {
    ConcreteNest nest;  ///< forms: stored address, then one per load
    std::vector<const Load*> loads;
  };
  /// Per element of an instance of an accumulator: overwritten in place by the block that stores
  /// its final value (empty: none), and last written by an instruction that also writes what a
  /// STORE reads.
  struct Accumulators {
    std::vector<bool> consumed, storable;
  };

  // vta.cc: memory.
  Result<uint64_t> allocate(const std::string& name, uint64_t bytes) override;
  void begin(const Buffer& buffer, const PlacedBox& place) override;
  void find_weights(const Stmt& s);
  void find_weights(const Store& s, const Expr& value);

  // leaf.cc: what the block of a nest is decides the instructions.
  Result<Attempt> leaf(const Stmt& body, const Open& open) override;
  Result<Attempt> store(const Store& s, const Open& open);
  Result<Attempt> copy(const Store& s, const Expr& value, const Open& open);
  Result<Attempt> zeros(const Store& s, const Open& open);
  Result<Attempt> call(const Call& c, const Open& open);
  Result<Attempt> fill(const Call& c, const Open& open);
  std::optional<Form> element(const Region& r, vta::Mem mem, std::string& problem) const;
  Status gemm(ConcreteNest nest, const Buffer& target);

  // compute.cc: blocks of element-wise operations.
  Result<Attempt> compute(const Store& s, const Expr& value, const Open& open);
  Attempt divide(const Expr& condition, const Open& open) const;
  Result<std::optional<Operands>> operands(const Store& s, const Expr& value) const;
  Result<size_t> choose_target(const Store& s, const Operands& o) const;
  Status run_steps(const std::vector<AluStep>& steps, const Operands& o, size_t target);
  Status run_step(const AluStep& step, const Operands& o, size_t target);
  Status reset(ConcreteNest nest, const Buffer& target);
  Status flush_reset(const Buffer& buffer);
  void wrote(const ConcreteNest& nest, const Form& form, const Buffer& buffer, bool storable);
  void consume(const ConcreteNest& nest, const Form& form, const Buffer& buffer);
  bool may_store(const ConcreteNest& nest, const Form& form, const Buffer& buffer) const;
  Status check_unconsumed(const ConcreteNest& nest, const Form& form, const Buffer& buffer) const;
  Status load_weights();

  vta::Config config_;
  VtaOptions options_;
  vta::Builder* builder_ = nullptr;  ///< absent while measuring
  StepLoops step_loops_;
  std::map<const void*, Accumulators> accumulators_;
  /// Extensions::fused_reset: accumulators whose reset waits for the first accumulation.
  std::map<const void*, ConcreteNest> waiting_resets_;
  std::vector<int64_t> weights_;  ///< of diagonal elements, in the last slots of the weight memory
  bool weights_loaded_ = false;
};

}  // namespace tilewright::codegen::vta_code
