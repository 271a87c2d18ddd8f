#include "tilewright/rules/gpu/tf32.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/arith/tf32.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/gpu/mma.h"

namespace tilewright::rules {
namespace {

/// `to[..] = tf32(from[..])`, block and loops named after `to`.
Stmt rounding_nest(const Buffer& from, const Buffer& to) {
  Block block;
  block.name = to.name();
  std::vector<Var> loops;
  std::vector<Expr> at;
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    const std::string name = fmt::format("a{}", axis);
    const Var iter(name);
    loops.emplace_back(to.name() + "." + name);
    block.iters.push_back({iter, IterKind::Space, from.shape()[axis], ref(loops.back())});
    at.push_back(ref(iter));
  }
  block.body = make(Store{to, at, arith::round_to_tf32(load(from, at)), Combine::Set});
  Stmt nest = make(std::move(block));
  for (size_t axis = from.rank(); axis-- > 0;)
    nest = make(For{loops[axis], from.shape()[axis], ForKind::Serial, "", {}, nest});
  return nest;
}

bool holds(const Stmt& s, const std::string& name) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    const auto* block = x.as<Block>();
    found |= block != nullptr && block->name == name;
  });
  return found;
}

}  // namespace

Func with_tf32(const Func& func, const hw::GpuTarget& target) {
  const auto* body = func.body.as<Seq>();
  if (!target.tf32 || func.math == MathMode::Exact || body == nullptr) return func;
  std::map<std::string, BufferMap> rounded;  // by block, what it reads instead
  std::map<Buffer, Buffer> known;
  std::vector<std::vector<Stmt>> before(body->stmts.size());
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  for (const BlockFacts& block : blocks) {
    const auto mma = choose_gpu_mma(block, target);
    if (!mma || mma->types != kTf32) continue;
    const auto at = std::find_if(body->stmts.begin(), body->stmts.end(),
                                 [&](const Stmt& s) { return holds(s, block.name); });
    for (const Load& factor : block.loads) {
      const Buffer& from = factor.buffer;
      const Buffer to(from.name() + ".tf32", from.dtype(), from.shape(), "global");
      if (const auto [it, fresh] = known.try_emplace(from, to); fresh) {
        std::vector<Stmt>& here = before[static_cast<size_t>(at - body->stmts.begin())];
        here.push_back(make(Alloc{to, {}}));
        here.push_back(rounding_nest(from, to));
      }
      rounded[block.name].emplace(from, known.at(from));
    }
  }
  std::vector<Stmt> out;
  for (size_t i = 0; i < body->stmts.size(); ++i) {
    out.insert(out.end(), before[i].begin(), before[i].end());
    out.push_back(rewrite(body->stmts[i], [&](const Stmt& s) {
      const auto* block = s.as<Block>();
      const auto it = block != nullptr ? rounded.find(block->name) : rounded.end();
      return it == rounded.end() ? s : replace_buffers(s, it->second);
    }));
  }
  Func changed = func;
  changed.body = seq(std::move(out));
  return changed;
}

}  // namespace tilewright::rules
