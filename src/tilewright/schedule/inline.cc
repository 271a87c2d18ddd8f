// The step Inline: every read of an element-wise block's result becomes the value itself.
//
//   for i { P[i] = f(A[i]) }  for j { Y[j] = P[2*j] }  =>  for j { Y[j] = f(A[2*j]) }
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/regenerate.h"

namespace tilewright::schedule {
namespace {

/// Loads of `buffer` in `e` replaced by `block`'s value at their indices.
Expr inlined(const Expr& e, const Buffer& buffer, const Block& block,
             const std::vector<Axis>& axes) {
  if (!e) return e;
  return rewrite(e, [&](const Expr& x) {
    const Load* l = x.as<Load>();
    if (l == nullptr || l->buffer != buffer) return x;
    VarMap values;
    for (const Iter& iter : block.iters) values[iter.var] = int_imm(0);
    for (size_t d = 0; d < axes.size(); ++d)
      if (axes[d].iter >= 0)
        values[block.iters[axes[d].iter].var] =
            axes[d].shift == 0 ? l->indices[d] : arith::simplify(l->indices[d] - axes[d].shift);
    return substitute(single_store(block)->value, values);
  });
}

/// Why the sources of `producer` might not be final where `reader` (as rewritten) reads them.
std::optional<std::string> unreadable(const Tree& tree, const Uses& uses, Id producer, Id reader,
                                      const Block& rewritten) {
  const Place place{reader, false};
  const std::vector<Buffer> needed = sources(tree.block(producer));
  arith::Bounds bounds = tree.bounds_at(reader);
  for (const Access& a : accesses(rewritten)) {
    if (std::find(needed.begin(), needed.end(), a.buffer) == needed.end()) continue;
    if (a.write) return fmt::format("block {} overwrites {}", rewritten.name, a.buffer.name());
    if (auto why = not_final(tree, uses, place, a, {}, bounds, producer)) return why;
  }
  return std::nullopt;
}

}  // namespace

Result<Func> run(const Inline& step, const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  const Id id = TW_TRY(tree.find_block(step.block));
  const Block& block = tree.block(id);
  const Store* store = single_store(block);
  if (store == nullptr || store->combine != Combine::Set || !block.marks.empty())
    return refuse(1, fmt::format("block {} is not a plain single assignment", step.block));
  const Buffer& buffer = store->buffer;
  const Id alloc = tree.alloc_of(buffer);
  if (alloc == kNone) return refuse(2, fmt::format("{} is a parameter", buffer.name()));
  if (uses.writers(buffer) != std::vector<Id>{id})
    return refuse(1, fmt::format("{} has other writers than {}", buffer.name(), step.block));
  const auto axes = axes_of(store->indices, block);
  if (!axes)
    return refuse(3, fmt::format("the indices of {} are not the iterations of {}", buffer.name(),
                                 step.block));
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const bool indexes = std::any_of(axes->begin(), axes->end(),
                                     [&](const Axis& a) { return a.iter == static_cast<int>(i); });
    if (block.iters[i].kind != IterKind::Space ||
        (!indexes && !is_const_int(block.iters[i].extent, 1)))
      return refuse(3, fmt::format("iteration {} of {} does not index {}",
                                   block.iters[i].var.name(), step.block, buffer.name()));
  }
  for (const Buffer& source : sources(block))
    if (source == buffer)
      return refuse(1, fmt::format("block {} reads its own result", step.block));
  Edit edit(tree);
  std::vector<std::string> readers;
  for (Id reader : uses.readers(buffer)) {
    const Block& old = tree.block(reader);
    bool call = old.body.as<Call>() != nullptr;
    if (call)
      return refuse(4, fmt::format("block {} hands {} to an intrinsic", old.name, buffer.name()));
    const Stmt changed = rewrite(tree.stmt(reader), {},
                                 [&](const Expr& e) { return inlined(e, buffer, block, *axes); });
    if (auto why = unreadable(tree, uses, id, reader, *changed.as<Block>())) return refuse(5, *why);
    edit.replace(reader, changed);
    readers.push_back(old.name);
  }
  if (readers.empty()) return refuse(4, fmt::format("nothing reads {}", buffer.name()));
  edit.erase(id);
  edit.erase(alloc);
  Func out = edit.func();
  TW_TRY_STATUS(check_concurrency(out, readers, 5));
  return out;
}

}  // namespace tilewright::schedule
