#include "tilewright/ir/block_nests.h"

#include <algorithm>

namespace tilewright {
namespace {

std::vector<BlockAccess> accesses_of(const Block& block) {
  std::vector<BlockAccess> all;
  walk(
      block.body,
      [&](const Stmt& s) {
        if (const auto* store = s.as<Store>()) all.push_back({store->buffer, store->indices});
      },
      [&](const Expr& e) {
        if (const auto* at = e.as<Load>()) all.push_back({at->buffer, at->indices});
      });
  return all;
}

/// Loops are of one nest alone where nothing but loops and one block is inside of them.
void find_nests(const Stmt& s, std::vector<const For*> loops, std::vector<BlockNest>& nests) {
  if (const auto* loop = s.as<For>()) {
    loops.push_back(loop);
    return find_nests(loop->body, std::move(loops), nests);
  }
  if (const auto* block = s.as<Block>()) {
    nests.push_back({block, std::move(loops), accesses_of(*block)});
    return;
  }
  for (const Stmt& child : children(s)) find_nests(child, {}, nests);
}

}  // namespace

const Iter* BlockNest::iter_of(const Var& var) const {
  const auto at = std::find_if(block->iters.begin(), block->iters.end(),
                               [&](const Iter& iter) { return iter.var == var; });
  return at == block->iters.end() ? nullptr : &*at;
}

const For* BlockNest::loop_of(const Iter& iter) const {
  const Var* bound = plain_var(iter.binding);
  if (bound == nullptr) return nullptr;
  const auto users = std::count_if(block->iters.begin(), block->iters.end(),
                                   [&](const Iter& i) { return uses(i.binding, *bound); });
  for (const For* loop : loops) {
    if (!(loop->var == *bound)) continue;
    const bool simple = loop->kind == ForKind::Serial && loop->marks.empty();
    const bool whole = as_int(loop->extent) && as_int(loop->extent) == as_int(iter.extent);
    return users == 1 && simple && whole ? loop : nullptr;
  }
  return nullptr;
}

std::vector<BlockNest> block_nests(const Stmt& body) {
  std::vector<BlockNest> nests;
  find_nests(body, {}, nests);
  return nests;
}

const Var* plain_var(const Expr& index) {
  const auto* at = index.as<VarRef>();
  return at != nullptr ? &at->var : nullptr;
}

Func change_axes(const Func& func, const AxisChange& change) {
  const auto now = [&](const Buffer& before) {
    const auto to = change.buffers.find(before);
    return to != change.buffers.end() ? to->second : before;
  };
  const auto new_stmt = [&](const Stmt& s) {
    if (const auto* alloc = s.as<Alloc>()) return make(Alloc{now(alloc->buffer), alloc->marks});
    if (const auto* to = s.as<Store>())
      return make(
          Store{now(to->buffer), change.indices(to->buffer, to->indices), to->value, to->combine});
    return change.other_stmt(s);
  };
  const auto new_expr = [&](const Expr& e) {
    if (const auto* at = e.as<Load>())
      return load(now(at->buffer), change.indices(at->buffer, at->indices));
    return change.other_expr ? change.other_expr(e) : e;
  };
  Func out = func;
  for (Param& param : out.params) param.buffer = now(param.buffer);
  out.body = rewrite(func.body, new_stmt, [&](const Expr& e) { return rewrite(e, new_expr); });
  return out;
}

bool has_call(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) { found |= x.as<Call>() != nullptr; });
  return found;
}

}  // namespace tilewright
