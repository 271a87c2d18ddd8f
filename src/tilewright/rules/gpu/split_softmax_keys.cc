#include "tilewright/rules/gpu/split_softmax_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/attention.h"
#include "tilewright/rules/gpu/attention.h"

namespace tilewright::rules {
namespace {

/// Queries of a block that are enough for the keys and values it reads; keys of a part, at least.
constexpr int64_t kEnoughRows = 32, kLeastKeys = 64;

/// The blocks of a softmax between two products.
struct Chain {
  const BlockFacts *scores = nullptr, *top = nullptr, *exps = nullptr, *sum = nullptr,
                   *weights = nullptr, *result = nullptr;
  std::vector<const BlockFacts*> finishers;  ///< element by element, before the softmax
  int64_t keys = 0;
};

const Load* load_of(const Expr& e) { return e.as<Load>(); }

bool reads(const Expr& e, const BlockFacts& from) {
  const Load* load = load_of(e);
  return load != nullptr && load->buffer == from.store->buffer;
}

bool is_difference(const Expr& e, const BlockFacts& a, const BlockFacts& b, BinaryOp op) {
  const auto* both = e.as<Binary>();
  return both != nullptr && both->op == op && reads(both->a, a) && reads(both->b, b);
}

/// The iteration along the keys: the only one summed over, or the last of the result.
Var key_of(const BlockFacts& block, bool summed) {
  if (!summed) {
    const auto* last = block.store->indices.back().as<VarRef>();
    return last == nullptr ? Var() : last->var;
  }
  Var key;
  for (const Iter& iter : block.block->iters) {
    if (iter.kind != IterKind::Reduce) continue;
    if (key) return Var();
    key = iter.var;
  }
  return key;
}

/// Whether all that `block` reads of `made` it reads at its own key, or at none.
bool at_own_key(const BlockFacts& block, const Var& key, const std::vector<Buffer>& made) {
  return std::all_of(block.loads.begin(), block.loads.end(), [&](const Load& load) {
    if (std::find(made.begin(), made.end(), load.buffer) == made.end()) return true;
    const auto* last = load.indices.back().as<VarRef>();
    const bool own = last != nullptr
                         ? last->var == key || is_const_int(load.buffer.shape().back(), 1)
                         : is_const_int(load.indices.back(), 0);
    return own && std::none_of(load.indices.begin(), load.indices.end() - 1,
                               [&](const Expr& e) { return uses(e, key); });
  });
}

std::optional<Chain> find_chain(const Func& func, const std::vector<BlockFacts>& blocks) {
  const Answer<AttentionBlocks> found = find_attention(func, blocks);
  if (!found || found->between.size() < 4) return std::nullopt;
  Chain c;
  c.scores = find_block(blocks, found->scores), c.result = find_block(blocks, found->result);
  const auto at = [&](size_t from_end) {
    return find_block(blocks, found->between[found->between.size() - from_end]);
  };
  c.top = at(4), c.exps = at(3), c.sum = at(2), c.weights = at(1);
  for (size_t i = 0; i + 4 < found->between.size(); ++i)
    c.finishers.push_back(find_block(blocks, found->between[i]));
  const BlockFacts& x = c.finishers.empty() ? *c.scores : *c.finishers.back();
  const auto* exp = c.exps->store->value.as<MathCall>();
  const std::optional<Product> product = product_of(*c.result);
  const bool softmax =
      found->sums.size() == 2 && c.top->store->combine == Combine::Max &&
      reads(c.top->store->value, x) && exp != nullptr && exp->fn == MathFn::Exp &&
      is_difference(exp->args[0], x, *c.top, BinaryOp::Sub) &&
      c.sum->store->combine == Combine::Add && reads(c.sum->store->value, *c.exps) &&
      is_difference(c.weights->store->value, *c.exps, *c.sum, BinaryOp::Div) &&
      product->a.buffer == c.weights->store->buffer && !(product->b.buffer == product->a.buffer);
  const auto& shape = c.scores->store->buffer.shape();
  const auto& out = c.result->store->buffer.shape();
  c.keys = as_int(shape.back()).value_or(0);
  bool same = softmax && shape.size() == out.size() && shape.size() >= 2 && c.keys > 0;
  for (size_t d = 0; same && d + 1 < shape.size(); ++d)
    same = as_int(shape[d]).has_value() && as_int(shape[d]) == as_int(out[d]);
  return same ? std::optional(c) : std::nullopt;
}

class KeyParts {
 public:
  KeyParts(const Func& func, const std::vector<BlockFacts>& blocks, const Chain& chain,
           int64_t parts)
      : func_(func), blocks_(blocks), c_(chain), parts_(parts), length_(chain.keys / parts) {}

  /// Nothing where a block uses the keys in another way.
  std::optional<Func> run() {
    std::vector<const BlockFacts*> rows = {c_.scores};
    rows.insert(rows.end(), c_.finishers.begin(), c_.finishers.end());
    for (const BlockFacts* block : rows) add_part(*block);
    for (const BlockFacts* block : {c_.top, c_.exps, c_.sum}) add_part(*block);
    for (const BlockFacts* block : rows)
      if (!computed(*block, false)) return std::nullopt;
    if (!computed(*c_.top, true) || !computed(*c_.exps, false) || !computed(*c_.sum, true))
      return std::nullopt;
    const Buffer kept = keep();
    // The product takes the exponentials themselves.
    parted_[c_.weights->store->buffer] = parted_.at(c_.exps->store->buffer);
    known_.push_back(c_.weights->store->buffer);
    const Buffer result = c_.result->store->buffer;
    parted_[result] = with_parts(result, result.name() + ".part");
    made_.push_back(make(Alloc{parted_.at(result), {}}));
    if (!computed(*c_.result, true, ".part")) return std::nullopt;
    add_up(kept, parted_.at(result));
    return assembled();
  }

 private:
  Buffer with_parts(const Buffer& b, const std::string& name) const {
    std::vector<Expr> shape = b.shape();
    shape.insert(shape.end() - 2, int_imm(parts_));
    const bool along_keys = !(b == c_.result->store->buffer) && is_const_int(shape.back(), c_.keys);
    if (along_keys) shape.back() = int_imm(length_);
    return Buffer(name, b.dtype(), std::move(shape), b.scope());
  }

  void add_part(const BlockFacts& block) {
    const Buffer& b = block.store->buffer;
    parted_[b] = with_parts(b, b.name());
    known_.push_back(b);
    made_.push_back(make(Alloc{parted_.at(b), {}}));
  }

  static std::vector<Expr> with(std::vector<Expr> indices, const Var& part) {
    indices.insert(indices.end() - 2, ref(part));
    return indices;
  }

  /// A nest of its own for `store` over `iters`.
  static Stmt nest(const std::string& name, std::vector<Iter> iters, Store store) {
    std::vector<Var> loops;
    for (Iter& iter : iters) {
      loops.emplace_back(name + "." + iter.var.name());
      iter.binding = ref(loops.back());
    }
    Stmt s = make(Block{name, iters, {}, {}, make(std::move(store))});
    for (size_t i = iters.size(); i-- > 0;)
      s = make(For{loops[i], iters[i].extent, ForKind::Serial, "", {}, s});
    return s;
  }

  /// `block` and its initial values for every part; `summed`: it sums over the keys.
  bool computed(const BlockFacts& block, bool summed, const std::string& suffix = "") {
    const Var key = key_of(block, summed);
    if (!key || !at_own_key(block, key, known_)) return false;
    if (const BlockFacts* init = find_block(blocks_, block.name + ".init")) {
      const Var along = summed ? Var() : key_of(*init, false);
      made_.push_back(for_parts(*init, along, block.name + suffix + ".init"));
    }
    made_.push_back(for_parts(block, key, block.name + suffix));
    return true;
  }

  Stmt for_parts(const BlockFacts& block, const Var& key, const std::string& name) {
    const Var part("p");
    std::vector<Iter> iters = block.block->iters;
    for (Iter& iter : iters)
      if (key && iter.var == key) iter.extent = int_imm(length_);
    iters.insert(iters.begin(), Iter{part, IterKind::Space, int_imm(parts_), {}});
    const VarMap whole = key ? VarMap{{key, ref(part) * length_ + ref(key)}} : VarMap{};
    Store store = *block.store;
    store.indices = with(store.indices, part);
    store.buffer = parted_.at(store.buffer);
    store.value = rewrite(substitute(store.value, whole), [&](const Expr& e) {
      const Load* l = load_of(e);
      const auto to = l != nullptr ? parted_.find(l->buffer) : parted_.end();
      if (to == parted_.end()) return e;
      std::vector<Expr> indices = with(l->indices, part);
      if (key && uses(indices.back(), key)) indices.back() = ref(key);
      return load(to->second, std::move(indices));
    });
    // Where a mask hides a whole part, differences stay numbers.
    if (name == c_.top->name + ".init")
      store.value = float_imm(std::numeric_limits<float>::lowest(), store.value.dtype());
    return nest(name, std::move(iters), std::move(store));
  }

  /// Greatest scores and sums of each part for others to read, side by side.
  Buffer keep() {
    const Buffer &top = parted_.at(c_.top->store->buffer), &sum = parted_.at(c_.sum->store->buffer);
    std::vector<Expr> shape = top.shape();
    shape.back() = int_imm(2);
    const Buffer to(top.name() + ".parts", top.dtype(), std::move(shape), top.scope());
    const BlockFacts& init = *find_block(blocks_, c_.top->name + ".init");
    const Var part("p"), which("which");
    std::vector<Iter> iters = init.block->iters;
    iters.insert(iters.begin(), Iter{part, IterKind::Space, int_imm(parts_), {}});
    iters.push_back({which, IterKind::Space, int_imm(2), {}});
    std::vector<Expr> at = with(init.store->indices, part);
    const Expr value = select(eq(ref(which), int_imm(0)), load(top, at), load(sum, at));
    at.back() = ref(which);
    made_.push_back(make(Alloc{to, {}}));
    made_.push_back(nest(to.name(), std::move(iters), Store{to, at, value, Combine::Set}));
    return to;
  }

  /// The sums and results of all parts, as if the greatest score had been known.
  void add_up(const Buffer& kept, const Buffer& results) {
    const Buffer top = whole(*c_.top), sum = whole(*c_.sum);
    const auto column = [](std::vector<Expr> at, int64_t index) {
      at.back() = int_imm(index);
      return at;
    };
    const auto share = [&](const std::vector<Expr>& at, const std::vector<Expr>& in_part) {
      return math(MathFn::Exp, {load(kept, column(in_part, 0)) - load(top, column(at, 0))});
    };
    over_parts(*c_.top, top, Combine::Max,
               [&](const auto&, const auto& in_part) { return load(kept, column(in_part, 0)); });
    over_parts(*c_.sum, sum, Combine::Add, [&](const auto& at, const auto& in_part) {
      return share(at, in_part) * load(kept, column(in_part, 1));
    });
    over_parts(*c_.result, c_.result->store->buffer, Combine::Add,
               [&](const auto& at, const auto& in_part) {
                 return share(at, in_part) / load(sum, column(at, 0)) * load(results, in_part);
               });
  }

  Buffer whole(const BlockFacts& block) {
    const Buffer& b = block.store->buffer;
    const Buffer out(b.name() + ".all", b.dtype(), b.shape(), b.scope());
    made_.push_back(make(Alloc{out, {}}));
    return out;
  }

  /// `to` combines `value(at, at in the part)` over all parts, from the initial values of `block`.
  template <class Value>
  void over_parts(const BlockFacts& block, const Buffer& to, Combine combine, const Value& value) {
    const std::string name = block.name + (to == c_.result->store->buffer ? "" : ".all");
    const BlockFacts& init = *find_block(blocks_, block.name + ".init");
    const Expr start = combine == Combine::Max
                           ? float_imm(std::numeric_limits<float>::lowest(), to.dtype())
                           : init.store->value;
    const std::vector<Expr>& at = init.store->indices;
    made_.push_back(nest(name + ".init", init.block->iters, Store{to, at, start, Combine::Set}));
    // Iterations are seen in one block only.
    const Var part("p");
    std::vector<Iter> iters;
    VarMap fresh;
    for (const Iter& iter : init.block->iters) {
      iters.push_back(iter);
      iters.back().var = Var(iter.var.name());
      fresh[iter.var] = ref(iters.back().var);
    }
    std::vector<Expr> mine;
    for (const Expr& index : at) mine.push_back(substitute(index, fresh));
    iters.push_back({part, IterKind::Reduce, int_imm(parts_), {}});
    made_.push_back(
        nest(name, std::move(iters), Store{to, mine, value(mine, with(mine, part)), combine}));
  }

  /// The program with what was made in the place of the result.
  Func assembled() const {
    std::vector<Stmt> out;
    for (const Stmt& s : func_.body.as<Seq>()->stmts) {
      const auto* alloc = s.as<Alloc>();
      if (alloc != nullptr && parted_.contains(alloc->buffer) &&
          !(alloc->buffer == c_.result->store->buffer))
        continue;
      std::string block;
      walk(s, [&](const Stmt& x) {
        if (const auto* b = x.as<Block>()) block = b->name;
      });
      if (block == c_.result->name) out.insert(out.end(), made_.begin(), made_.end());
      if (!replaced(block)) out.push_back(s);
    }
    Func changed = func_;
    changed.body = clone(seq(std::move(out)), [](const std::string& name) { return name; });
    return changed;
  }

  bool replaced(const std::string& block) const {
    std::vector<const BlockFacts*> gone = {c_.scores, c_.top,     c_.exps,
                                           c_.sum,    c_.weights, c_.result};
    gone.insert(gone.end(), c_.finishers.begin(), c_.finishers.end());
    return std::any_of(gone.begin(), gone.end(), [&](const BlockFacts* b) {
      return block == b->name || block == b->name + ".init";
    });
  }

  const Func& func_;
  const std::vector<BlockFacts>& blocks_;
  const Chain& c_;
  const int64_t parts_, length_;
  std::map<Buffer, Buffer> parted_;  ///< with an axis of parts
  std::vector<Buffer> known_;        ///< of those, what parts have computed
  std::vector<Stmt> made_;
};

/// Parts of equal length whose scores fit for enough queries, of which blocks have equally many; 1:
/// the keys need none.
int64_t choose_parts(const Func& func, const Chain& chain, const hw::GpuTarget& target) {
  const int64_t queries = row_extent(*chain.result);
  const int64_t enough = std::min(kEnoughRows, (queries + 1) / 2);
  for (int64_t parts = 1; parts * kLeastKeys <= chain.keys; ++parts) {
    if (chain.keys % parts != 0) continue;
    const int64_t rows = gpu_attention_rows(func, chain.keys / parts, target);
    if (rows >= enough) return queries % rows == 0 ? parts : 1;
  }
  return 1;
}

}  // namespace

Func with_key_parts(const Func& func, const hw::GpuTarget& target) {
  if (func.math == MathMode::Exact || func.body.as<Seq>() == nullptr) return func;
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  const std::optional<Chain> chain = find_chain(func, blocks);
  const int64_t parts = chain ? choose_parts(func, *chain, target) : 1;
  if (parts < 2) return func;
  return KeyParts(func, blocks, *chain, parts).run().value_or(func);
}

}  // namespace tilewright::rules
