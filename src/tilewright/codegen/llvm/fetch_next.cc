// Weights that are read again and again, and meanwhile those after them.
//
//   for n in 16 { for m in 18 { for k in 3072 @(fetch_next=589824) { .. W[n, k, 0:48] .. } } }
//
// reads 589824 bytes of W 18 times before the next ones come, from memory: the first time takes far
// longer than the others. So step k of pass m also asks for byte 11 * (3072 * m + k) of the next
// part, W[n + 1]: 18 * 3072 steps ask for all of it, and none waits for long.
#include <algorithm>

#include "tilewright/base/integers.h"
#include "tilewright/codegen/llvm/kernel_emitter.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

using llvm::Value;

/// Values of a loop that are tried for the first that reads another place.
constexpr int64_t kMostTried = 1 << 14;

/// Iterations of `loop` from its first on for which `place` stays the same, all others at their
/// first. Its extent if it is always so.
int64_t same_place(const Expr& place, const Var& loop, int64_t extent) {
  VarMap first;
  for (const Var& v : free_vars(place)) first[v] = int_imm(0);
  if (!first.contains(loop)) return extent;
  const auto at = [&](int64_t i) {
    first[loop] = int_imm(i);
    return arith::const_range(substitute(place, first), arith::Bounds{});
  };
  const auto begin = at(0);
  for (int64_t i = 1; i < std::min(extent, kMostTried); ++i)
    if (at(i) != begin) return i;
  return extent;
}

}  // namespace

std::optional<Expr> KernelEmitter::place_of(const Load& x) const {
  Expr place = int_imm(0);
  const VarMap lane = {{lanes_->var, int_imm(lanes_->const_base.value_or(0))}};
  for (size_t axis = 0; axis < x.indices.size(); ++axis) {
    const auto stride = as_int(strides_.at(x.buffer)[axis]);
    if (!stride) return std::nullopt;
    place = place + substitute(x.indices[axis], lane) * *stride;
  }
  return place;
}

/// Asks, once in each step, for the share of this step in what comes after a constant parameter's
/// part that the marked loop reads. An address behind the buffer does no harm.
void KernelEmitter::fetch_next(const Load& x, const Address& at) {
  if (fetched_next_ || fetch_next_->loop < first_loop_ || !lanes_ || at.stride != 1 ||
      lanes_->mask != nullptr)
    return;
  const auto is_weights = [&](const Param& p) {
    return p.buffer == x.buffer && p.mode == ParamMode::Const;
  };
  const std::optional<Expr> place = place_of(x);
  if (!place || std::none_of(func_.params.begin(), func_.params.end(), is_weights)) return;
  Expr step = int_imm(0);
  int64_t steps = 1;
  VarMap next;  // the loops' values where the next part begins
  for (size_t i = fetch_next_->loop; i < loops_.size(); ++i) {
    if (loops_[i].extent < 1) return;
    step = step * loops_[i].extent + ref(loops_[i].var);
    steps *= loops_[i].extent;
    next[loops_[i].var] = int_imm(0);
  }
  Expr pass = int_imm(0);
  int64_t passes = 1;
  bool moves = false;
  for (size_t i = fetch_next_->loop; i-- > first_loop_;) {
    const auto& [loop, extent] = loops_[i];
    if (extent < 1) return;
    if (extent == 1) continue;
    const int64_t same = same_place(*place, loop, extent);
    const Expr here = ref(loop);
    pass = pass + here % same * passes;
    passes *= same;
    if (same == extent) continue;
    next[loop] = here + same;
    moves = true;
    break;
  }
  // Of more passes the first is too small a part to matter.
  if (!moves || passes < 2 || fetch_next_->bytes < passes * steps) return;
  fetched_next_ = true;
  const int64_t bytes = ceil_div(fetch_next_->bytes, passes * steps);
  // Values are remembered by their expressions, so these live until the values are forgotten.
  const Expr begins = substitute(*place, next), offset = (pass * steps + step) * bytes;
  const size_t mark = memo_order_.size();
  Value* part = b_.CreateGEP(element_type(x.buffer), pointers_.at(x.buffer), emit(begins));
  Value* asked = b_.CreateGEP(b_.getInt8Ty(), part, emit(offset));
  constexpr unsigned kRead = 0, kIntoL2 = 2, kData = 1;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {asked->getType()},
                     {asked, b_.getInt32(kRead), b_.getInt32(kIntoL2), b_.getInt32(kData)});
  forget_after(mark);
}

}  // namespace tilewright::codegen
