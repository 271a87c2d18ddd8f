// The step Inplace: a block writes its result over the buffer that it reads.
//
//   alloc S  alloc Y  ..  Y[i] = f(S[i])  .. Y[j] ..  =>  alloc S  ..  S[i] = f(S[i])  .. S[j] ..
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/apply.h"

namespace tilewright::schedule {
namespace {

bool all_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return equal(x, y); });
}

}  // namespace

Result<Func> run(const Inplace& step, const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  const Id id = TW_TRY(tree.find_block(step.block));
  const Buffer source = TW_TRY(tree.find_buffer(step.source));
  const Block& block = tree.block(id);
  const Store* store = single_store(block);
  if (store == nullptr || store->combine != Combine::Set)
    return refuse(1, fmt::format("block {} is not a plain single assignment", step.block));
  const Buffer& result = store->buffer;
  if (result == source) return refuse(1, fmt::format("it already writes {}", step.source));
  if (uses.writers(result) != std::vector<Id>{id})
    return refuse(1, fmt::format("{} has other writers than {}", result.name(), step.block));
  const Id own = tree.alloc_of(result), alloc = tree.alloc_of(source);
  if (own == kNone || alloc == kNone)
    return refuse(2, fmt::format("{} is a parameter", own == kNone ? result.name() : step.source));
  if (result.dtype() != source.dtype() || result.scope() != source.scope() ||
      !all_equal(result.shape(), source.shape()))
    return refuse(
        3, fmt::format("{} and {} differ in type, shape or scope", result.name(), step.source));
  bool reads = false;
  for (const Access& a : accesses(block)) reads |= a.buffer == source;
  if (!reads) return refuse(4, fmt::format("block {} does not read {}", step.block, step.source));
  bool same_index = true;
  walk(tree.stmt(id), {}, [&](const Expr& e) {
    if (const Load* l = e.as<Load>(); l && l->buffer == source)
      same_index &= all_equal(l->indices, store->indices);
  });
  if (!same_index)
    return refuse(4, fmt::format("block {} reads {} at other indices than it writes", step.block,
                                 step.source));
  // All other users of the source must be done before any instance of the block runs: they stand in
  // earlier statements of the sequence that allocates it, and the block's statement has none.
  const Id home = tree.parent(alloc);
  if (home == kNone || tree.parent(own) != home)
    return refuse(
        5, fmt::format("{} and {} are not allocated in one sequence", step.source, result.name()));
  const Id mine = tree.child_towards(home, id);
  for (Id user : uses.users(source))
    if (user != id && user >= mine)
      return refuse(5,
                    fmt::format("block {} still uses {} then", tree.block(user).name, step.source));
  Edit edit(tree);
  edit.erase(own);
  for (Id user : uses.users(result))
    edit.replace(user, replace_buffers(tree.stmt(user), {{result, source}}));
  return edit.func();
}

}  // namespace tilewright::schedule
