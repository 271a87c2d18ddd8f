#include "tilewright/ir/separate_nests.h"

#include <map>
#include <set>
#include <vector>

#include "tilewright/ir/block_nests.h"
#include "tilewright/ir/walk.h"

namespace tilewright {
namespace {

/// How a statement uses a buffer.
struct Use {
  bool writes = false;
  /// Axes along which every access is at the loop's variable.
  std::set<size_t> along;
  bool seen = false;
};
using Uses = std::map<Buffer, Use>;

void note(const Buffer& buffer, const std::vector<Expr>& indices, const VarMap& bindings,
          const Var& loop, bool writes, Uses& uses) {
  std::set<size_t> along;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const Expr index = substitute(indices[axis], bindings);
    const auto* at = index.as<VarRef>();
    if (at != nullptr && at->var == loop) along.insert(axis);
  }
  Use& use = uses[buffer];
  use.writes |= writes;
  if (use.seen) std::erase_if(use.along, [&](size_t axis) { return !along.contains(axis); });
  if (!use.seen) use.along = along;
  use.seen = true;
}

Uses uses_of(const Stmt& s, const Var& loop) {
  VarMap bindings;
  walk(s, [&](const Stmt& x) {
    if (const auto* block = x.as<Block>())
      for (const Iter& iter : block->iters) bindings[iter.var] = iter.binding;
  });
  Uses uses;
  walk(
      s,
      [&](const Stmt& x) {
        if (const auto* store = x.as<Store>())
          note(store->buffer, store->indices, bindings, loop, true, uses);
      },
      [&](const Expr& e) {
        if (const auto* load = e.as<Load>())
          note(load->buffer, load->indices, bindings, loop, false, uses);
      });
  return uses;
}

/// Whether one may run for all iterations before the other begins.
bool apart(const Uses& a, const Uses& b) {
  for (const auto& [buffer, use] : a) {
    const auto other = b.find(buffer);
    if (other == b.end() || (!use.writes && !other->second.writes)) continue;
    bool together = false;
    for (const size_t axis : use.along) together |= other->second.along.contains(axis);
    if (!together) return false;
  }
  return true;
}

bool can_separate(const For& loop, const std::vector<Stmt>& parts) {
  if (loop.kind != ForKind::Serial || !loop.marks.empty()) return false;
  std::vector<Uses> uses;
  for (const Stmt& part : parts) {
    if (part.as<Alloc>() != nullptr || has_call(part)) return false;
    uses.push_back(uses_of(part, loop.var));
    for (size_t i = 0; i + 1 < uses.size(); ++i)
      if (!apart(uses[i], uses.back())) return false;
  }
  return true;
}

}  // namespace

Func separate_nests(const Func& func) {
  Func out = func;
  out.body = rewrite(func.body, [](const Stmt& s) {
    const auto* loop = s.as<For>();
    const auto* body = loop != nullptr ? loop->body.as<Seq>() : nullptr;
    if (body == nullptr || !can_separate(*loop, body->stmts)) return s;
    std::vector<Stmt> nests;
    for (const Stmt& part : body->stmts) {
      For nest = *loop;
      nest.var = Var(loop->var.name(), loop->var.dtype());
      nest.body = substitute(part, {{loop->var, ref(nest.var)}});
      nests.push_back(make(std::move(nest)));
    }
    return seq(std::move(nests));
  });
  return out;
}

}  // namespace tilewright
