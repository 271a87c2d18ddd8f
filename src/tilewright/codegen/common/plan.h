// What every back-end for CPUs decides the same way: symbols, where allocations live, what a
// parallel body captures, the meaning of intrinsic calls.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tilewright/ir/stmt.h"
#include "tilewright/runtime/kernel_abi.h"

namespace tilewright::codegen {

/// The exported symbol: the Func's name with everything but letters, digits and _ replaced by _.
std::string symbol_of(const Func& func);

/// Where an allocation lives. Stack: a local array of the function that contains it; Shared,
/// Worker: at `offset` of the workspace's shared part or of the running worker's part.
struct AllocPlacement {
  enum class Where { Stack, Shared, Worker } where = Where::Stack;
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct KernelPlan {
  KernelInfo info;
  std::map<Buffer, AllocPlacement> places;  ///< every Alloc of the Func
};

/// Bytes of allocations one function (the kernel, or one parallel body) may put on its stack.
inline constexpr int64_t kStackBudget = 16 << 10;

/// Places all allocations: `local` scope first on the stack, then small ones, the rest in the
/// workspace; allocations whose lifetimes are disjoint share it. errors: Unsupported (an extent
/// without a constant upper bound).
Result<KernelPlan> plan_kernel(const Func& func);

/// True if the kernel runs `loop` through services->parallel_for: parallel and not inside another.
/// Others run serially.
bool is_outlined(const For& loop, bool inside_parallel);

/// What the body of an outlined loop takes from outside, in order of first appearance.
struct Captures {
  std::vector<Buffer> buffers;
  std::vector<Var> vars;  ///< loop variables and scalars; not the loop's own variable
};
Captures captures(const For& loop);

/// The Func with every intrinsic call, but those that `keeps` wants, replaced by its callee's body
/// on the regions. errors: Unsupported (a region whose rank does not fit).
Result<Func> inline_calls(const Func& func, const std::function<bool(const Call&)>& keeps = {});

/// Number of elements if every extent is constant.
std::optional<int64_t> const_elements(const Buffer& buffer);
/// Strides in elements: as given by the parameter, else dense row-major over the shape.
std::vector<Expr> strides_of(const Buffer& buffer, const std::vector<Expr>& given);

}  // namespace tilewright::codegen
