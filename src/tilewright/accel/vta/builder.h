// Builds programs without thinking of tokens: instructions are given in an order in which they
// would be right one after the other; dependence tokens follow from conflicting addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/vta/program.h"

namespace tilewright::vta {

struct BuilderOptions {
  uint64_t base = 4096;    ///< first DRAM address
  bool serial = false;     ///< one instruction at a time: for debugging and as a slow reference
  bool merge_uops = true;  ///< one LOAD UOP for many kernels (uop_plan.h); false: one for each
};

/// Not copyable. All operations on elements; SRAM addresses are the caller's.
class Builder {
 public:
  explicit Builder(const Config& config, const BuilderOptions& options = {});
  ~Builder();
  Builder(Builder&&) noexcept;

  const Config& config() const;

  /// DRAM. Addresses are multiples of `align` (a power of two); errors: Capacity beyond 4 GiB.
  Result<uint64_t> allocate(const std::string& name, uint64_t bytes, uint64_t align = 4096);
  void write(uint64_t address, std::string_view bytes);
  void add_input(Region region);
  void add_output(Region region);

  /// Transfers take element addresses; flags of `transfer` are ignored.
  /// errors: Capacity (a field or memory is too small for a value).
  Status transfer(const Transfer& transfer);
  /// A GEMM over `uops` in two hardware loops (uop range of `loops` is filled in here).
  Status gemm(std::vector<Uop> uops, Loops loops, bool reset, bool replace_first = false);
  Status alu(AluOp op, std::vector<Uop> uops, Loops loops, std::optional<int16_t> imm);

  /// The instructions from here on belong to `layer` (Run::spans).
  void begin_span(const std::string& layer);

  /// Micro-ops in DRAM and their loads, tokens, FINISH. The builder is empty afterwards.
  /// errors: Capacity (micro-ops beyond 4 GiB).
  Result<Program> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::vta
