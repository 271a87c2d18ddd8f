// Code for a device that is told every address: the loops of a scheduled Func outside of its
// innermost nests run here, at compile time; what is left of a nest is for the device to express.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/codegen/stream/buffers.h"
#include "tilewright/codegen/stream/concrete.h"

namespace tilewright::codegen::stream {

/// A nest that is being read: its loops that are not run here, outermost first.
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

/// Loops that move a form.
size_t loops_in(const Form& f);

/// A device derives from it and says what becomes of a block.
class Walk {
 public:
  virtual ~Walk() = default;

 protected:
  /// requires: `func` outlives the walk.
  Walk(const Func& func, Memories memories) : func_(func), memories_(std::move(memories)) {}

  /// Reads scalars and allocations; before `measure_rings`. errors: Unsupported.
  Status prepare();
  /// Sizes of all rings. `copies`: of those whose buffers do not say. errors: Unsupported.
  Status measure_rings(int copies);
  /// The whole Func. `addresses`: of the parameters, in bytes. requires: rings that have places
  /// (lay_out). errors: Invalid (as many addresses as parameters), Unsupported, those of the
  /// device.
  Status emit_all(const std::vector<uint64_t>& addresses);

  /// The instructions of a nest whose loops are open: `body` is a Store or a Call.
  virtual Result<Attempt> leaf(const Stmt& body, const Open& open) = 0;
  /// Room in DRAM for an allocation there.
  virtual Result<uint64_t> allocate(const std::string& name, uint64_t bytes) = 0;
  /// An allocation on chip begins anew, at `place`.
  virtual void begin(const Buffer& buffer, const PlacedBox& place) = 0;

  /// The outermost loop is to be run here.
  Attempt unroll(const Open& open) const;
  /// The loop that a condition joins with others: one that reduces, then the shortest.
  Attempt unroll_for(const Form& condition, const Open& open) const;
  /// The flat address of an element, in scalars; absent: no sum of loops.
  std::optional<Form> address(const Buffer& buffer, const std::vector<Expr>& indices) const;
  const PlacedBox& place(const Buffer& buffer) const { return places_.at(buffer.id()); }
  /// errors: Unsupported about block `name`.
  tl::unexpected<Error> unsupported(const std::string& name, const std::string& why,
                                    const std::string& fix = {}) const;

  const Func& func_;
  Env env_;
  OnChip on_chip_;

 private:
  Status walk(const Stmt& s);
  Status loop(const For& f);
  Status execute(const For& f, const std::function<Status()>& body);
  Status alloc(const Buffer& buffer);
  Status alloc_in_dram(const Buffer& buffer);
  bool holds_alloc(const Stmt& s);
  Status nest(std::vector<const For*> loops, const Stmt& leaf_stmt);
  Result<Attempt> attempt(const std::vector<const For*>& loops, const Stmt& leaf_stmt);
  std::optional<Attempt> open_loops(const std::vector<const For*>& loops, Open& open);
  std::optional<Attempt> open_block(const Block& block, Open& open);
  std::optional<Attempt> open_guard(const Expr& guard, Open& open);
  Range range_of(const For& loop, int64_t extent) const;
  Status in_two(const For& loop, int64_t at, const std::function<Status()>& body);

  Memories memories_;
  bool measuring_ = false;  ///< only allocations matter
  std::map<const void*, PlacedBox> places_;
  std::map<const void*, bool> holds_alloc_;
  std::map<const For*, Range> cuts_;  ///< parts of loops that were cut in two
};

}  // namespace tilewright::codegen::stream
