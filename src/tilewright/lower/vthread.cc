#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// Iterations a virtual-thread loop may have: all pairs of them are compared.
constexpr int64_t kMostThreads = 64;

/// A load, store or region, in terms of loops; `vars` run over the region.
struct ThreadAccess {
  std::string block;
  Buffer buffer;
  std::vector<Expr> indices;
  bool write = false;
};

/// Everything that a loop's iterations share, and what may run at different values in each.
class Shared {
 public:
  Shared(const For& loop, const arith::Bounds& outer) : bounds_(outer) {
    stmt(loop.body, {}, "an if");
    std::erase_if(touches_, [&](const ThreadAccess& t) {
      return std::find(own_.begin(), own_.end(), t.buffer) != own_.end();
    });
  }

  /// Two uses of one element by different iterations, one of them writing, in words.
  std::optional<std::string> conflict(const Var& thread, int64_t threads) const {
    for (size_t i = 0; i < touches_.size(); ++i)
      for (size_t j = i; j < touches_.size(); ++j) {
        const ThreadAccess &a = touches_[i], &b = touches_[j];
        if (!(a.buffer == b.buffer) || !(a.write || b.write)) continue;
        if (!apart(a, b, thread, threads))
          return fmt::format("{} {} an element of {} that {} may {} in another iteration", a.block,
                             a.write ? "writes" : "reads", a.buffer.name(), b.block,
                             b.write ? "write" : "read");
      }
    return std::nullopt;
  }

 private:
  void add_var(const Var& var, const Expr& extent) {
    bounds_.bind(var, extent);
    inside_.push_back(var);
  }
  void add_loads(const Expr& e, const VarMap& values, const std::string& block) {
    if (!e) return;
    walk(e, [&](const Expr& x) {
      if (const Load* l = x.as<Load>()) add(block, l->buffer, l->indices, values, false);
    });
  }
  void add(const std::string& block, const Buffer& buffer, const std::vector<Expr>& indices,
           const VarMap& values, bool write) {
    ThreadAccess t{block, buffer, {}, write};
    for (const Expr& e : indices) t.indices.push_back(substitute(e, values));
    touches_.push_back(std::move(t));
  }
  void stmt(const Stmt& s, const VarMap& values, const std::string& where) {
    if (!s) return;
    match(
        s,
        [&](const For& x) {
          add_var(x.var, x.extent);
          stmt(x.body, values, where);
        },
        [&](const Block& x) {
          const std::string block = "block " + x.name;
          VarMap bindings;
          for (const Iter& iter : x.iters) bindings[iter.var] = iter.binding;
          add_loads(x.guard, {}, block);
          stmt(x.body, bindings, block);
        },
        [&](const Store& x) {
          add(where, x.buffer, x.indices, values, true);
          for (const Expr& index : x.indices) add_loads(index, values, where);
          add_loads(x.value, values, where);
        },
        [&](const Alloc& x) { own_.push_back(x.buffer); },
        [&](const If& x) {
          add_loads(x.condition, values, where);
          stmt(x.then_body, values, where), stmt(x.else_body, values, where);
        },
        [&](const Seq& x) {
          for (const Stmt& child : x.stmts) stmt(child, values, where);
        },
        [&](const Call& x) { call(x, values, where); });
  }
  void call(const Call& x, const VarMap& values, const std::string& where) {
    size_t param = 0;
    for (const auto& arg : x.args) {
      if (const Expr* e = std::get_if<Expr>(&arg)) add_loads(*e, values, where);
      const Region* region = std::get_if<Region>(&arg);
      if (region == nullptr) continue;
      const ParamMode mode = x.callee->params[param++].mode;
      std::vector<Expr> indices;
      for (const auto& [begin, size] : region->dims) {
        add_loads(begin, values, where), add_loads(size, values, where);
        const Var v("region");
        add_var(v, substitute(size, values));
        indices.push_back(begin + ref(v));
      }
      add(where, region->buffer, indices, values,
          mode == ParamMode::Out || mode == ParamMode::InOut);
    }
  }

  /// constant + sum of coefficient * [0, range]
  struct Spread {
    int64_t constant = 0;
    std::vector<std::pair<int64_t, std::pair<int64_t, int64_t>>> terms;
    bool bounded = true;
  };

  bool apart(const ThreadAccess& a, const ThreadAccess& b, const Var& thread,
             int64_t threads) const {
    for (int64_t x = 0; x < threads; ++x)
      for (int64_t y = 0; y < threads; ++y) {
        if (x == y) continue;
        bool differs = false;
        for (size_t d = 0; d < a.indices.size() && !differs; ++d)
          differs = never_zero(difference(a.indices[d], x, b.indices[d], y, thread));
        if (!differs) return false;
      }
    return true;
  }

  bool varies(const Expr& e) const {
    return std::any_of(inside_.begin(), inside_.end(), [&](const Var& v) { return uses(e, v); });
  }

  /// a in iteration x of `thread` minus b in iteration y; inner loops run independently.
  Spread difference(const Expr& a, int64_t x, const Expr& b, int64_t y, const Var& thread) const {
    Spread out;
    std::vector<std::pair<Expr, int64_t>> fixed;
    auto add_side = [&](const Expr& e, int64_t value, int64_t sign) {
      const Expr here = arith::simplify(substitute(e, {{thread, int_imm(value)}}), bounds_);
      const arith::Affine affine = arith::as_affine(here);
      out.constant += sign * affine.constant;
      for (const auto& [term, c] : affine.terms) {
        if (!varies(term)) {
          const Expr key = term;
          const auto known = std::find_if(fixed.begin(), fixed.end(),
                                          [&](const auto& f) { return equal(f.first, key); });
          if (known == fixed.end()) {
            fixed.emplace_back(term, sign * c);
          } else {
            known->second += sign * c;
          }
          continue;
        }
        const auto range = arith::const_range(term, bounds_);
        out.bounded &= range.has_value();
        if (range) out.terms.emplace_back(sign * c, *range);
      }
    };
    add_side(a, x, 1), add_side(b, y, -1);
    for (const auto& [term, c] : fixed) {
      if (c == 0) continue;
      const auto range = arith::const_range(term, bounds_);
      out.bounded &= range.has_value();
      if (range) out.terms.emplace_back(c, *range);
    }
    return out;
  }

  /// True if no choice of terms gives 0: the sum without the multiples of some m misses those of m.
  static bool never_zero(const Spread& s) {
    if (!s.bounded) return false;
    std::vector<int64_t> moduli{0};
    for (const auto& [c, range] : s.terms) moduli.push_back(std::abs(c));
    return std::any_of(moduli.begin(), moduli.end(), [&](int64_t m) {
      // __int128: coefficients and ranges of hostile programs multiply beyond 64 bits.
      __int128 lo = s.constant, hi = s.constant;
      for (const auto& [c, range] : s.terms) {
        if (m != 0 && c % m == 0) continue;
        const __int128 p = static_cast<__int128>(c) * range.first;
        const __int128 q = static_cast<__int128>(c) * range.second;
        lo += std::min(p, q), hi += std::max(p, q);
      }
      if (m == 0) return lo > 0 || hi < 0;
      const __int128 below = ((hi % m) + m) % m;  // distance from hi down to a multiple of m
      return hi - below < lo;
    });
  }

  arith::Bounds bounds_;
  std::vector<Var> inside_;
  std::vector<ThreadAccess> touches_;
  std::vector<Buffer> own_;
};

/// Gives accesses to some buffers one more index in front.
class Widener {
 public:
  Widener(const std::map<Buffer, Buffer>& wide, const std::set<std::string>& taken)
      : wide_(wide), taken_(taken) {}

  Stmt run(const Stmt& s, const Expr& index) const {
    if (!s) return s;
    return match(
        s,
        [&](const For& x) {
          For out = x;
          out.body = run(x.body, index);
          return make(std::move(out));
        },
        [&](const Block& x) { return block(x, index); },
        [&](const Store& x) {
          Store out = x;
          prefix(out.buffer, out.indices, index);
          for (Expr& e : out.indices) e = expr(e, index);
          out.value = expr(x.value, index);
          return make(std::move(out));
        },
        [&](const Alloc&) { return s; },
        [&](const If& x) {
          return make(
              If{expr(x.condition, index), run(x.then_body, index), run(x.else_body, index)});
        },
        [&](const Seq& x) {
          std::vector<Stmt> out;
          for (const Stmt& child : x.stmts) out.push_back(run(child, index));
          return seq(std::move(out));
        },
        [&](const Call& x) { return call(x, index); });
  }

 private:
  void prefix(Buffer& buffer, std::vector<Expr>& indices, const Expr& index) const {
    const auto it = wide_.find(buffer);
    if (it == wide_.end()) return;
    buffer = it->second;
    indices.insert(indices.begin(), index);
  }
  Expr expr(const Expr& e, const Expr& index) const {
    if (!e) return e;
    return rewrite(e, [&](const Expr& x) {
      const Load* l = x.as<Load>();
      if (l == nullptr || !wide_.contains(l->buffer)) return x;
      Load out = *l;
      prefix(out.buffer, out.indices, index);
      return load(out.buffer, out.indices);
    });
  }
  Stmt call(const Call& x, const Expr& index) const {
    Call out = x;
    for (auto& arg : out.args) {
      if (Expr* e = std::get_if<Expr>(&arg)) *e = expr(*e, index);
      Region* region = std::get_if<Region>(&arg);
      if (region == nullptr) continue;
      for (auto& [begin, size] : region->dims) begin = expr(begin, index), size = expr(size, index);
      const auto it = wide_.find(region->buffer);
      if (it == wide_.end()) continue;
      region->buffer = it->second;
      region->dims.insert(region->dims.begin(), {index, int_imm(1)});
    }
    return make(std::move(out));
  }
  bool touches(const Stmt& s) const {
    bool found = false;
    walk(
        s,
        [&](const Stmt& x) {
          if (const Store* store = x.as<Store>()) found |= wide_.contains(store->buffer);
          if (const Call* c = x.as<Call>())
            for (const auto& arg : c->args)
              if (const Region* r = std::get_if<Region>(&arg)) found |= wide_.contains(r->buffer);
        },
        [&](const Expr& e) {
          if (const Load* l = e.as<Load>()) found |= wide_.contains(l->buffer);
        });
    return found;
  }
  /// A block sees the thread through an iteration: one it has already, or one more.
  Stmt block(const Block& x, const Expr& index) const {
    Block out = x;
    if (x.guard) out.guard = expr(x.guard, index);
    if (!touches(x.body)) return make(std::move(out));
    const Var thread = index.as<VarRef>()->var;
    for (const Iter& iter : x.iters) {
      const VarRef* v = iter.binding.as<VarRef>();
      if (v == nullptr || v->var != thread || iter.kind != IterKind::Space) continue;
      out.body = run(x.body, ref(iter.var));
      return make(std::move(out));
    }
    std::string name = "thread";
    auto used = [&](const std::string& text) {
      return taken_.contains(text) ||
             std::any_of(x.iters.begin(), x.iters.end(),
                         [&](const Iter& i) { return i.var.name() == text; });
    };
    for (int n = 1; used(name); ++n) name = fmt::format("thread{}", n);
    const Var iter(name);
    out.iters.insert(out.iters.begin(),
                     {iter, IterKind::Space, wide_.begin()->second.shape()[0], index});
    out.body = run(x.body, ref(iter));
    return make(std::move(out));
  }

  const std::map<Buffer, Buffer>& wide_;
  const std::set<std::string>& taken_;
};

/// Distributes one loop of virtual threads over the statements inside it.
class Distributor {
 public:
  Distributor(const For& loop, Namer& namer, const std::set<std::string>& scalars)
      : loop_(loop), namer_(namer), scalars_(scalars) {}

  Result<Stmt> run() { return split(loop_.body); }

 private:
  static bool several(const Stmt& s) {
    if (const For* f = s.as<For>()) return several(f->body);
    const Seq* list = s.as<Seq>();
    if (list == nullptr) return false;
    std::vector<Stmt> working;
    for (const Stmt& child : list->stmts)
      if (!child.as<Alloc>()) working.push_back(child);
    return working.size() > 1 || (working.size() == 1 && several(working[0]));
  }

  Result<Stmt> split(const Stmt& s) {
    if (!several(s)) return one(s);
    if (const For* f = s.as<For>()) {
      if (uses(f->extent, loop_.var) || (f->kind != ForKind::Serial && f->kind != ForKind::Unroll))
        return one(s);
      For out = *f;
      out.body = TW_TRY(split(f->body));
      return make(std::move(out));
    }
    std::vector<Stmt> out;
    for (const Stmt& child : s.as<Seq>()->stmts) {
      if (const Alloc* a = child.as<Alloc>()) {
        out.push_back(TW_TRY(widen(*a)));
      } else {
        out.push_back(TW_TRY(split(child)));
      }
    }
    return seq(std::move(out));
  }

  Result<Stmt> widen(const Alloc& a) {
    std::vector<Expr> shape{loop_.extent};
    for (const Expr& e : a.buffer.shape()) {
      if (uses(e, loop_.var))
        return fail(ErrorKind::NotApplicable,
                    fmt::format("vthread loop {} cannot be distributed", loop_.var.name()),
                    fmt::format("the size of {} depends on it", a.buffer.name()));
      shape.push_back(e);
    }
    const Buffer wide(a.buffer.name(), a.buffer.dtype(), shape, a.buffer.scope());
    wide_[a.buffer] = wide;
    return make(Alloc{wide, a.marks});
  }

  /// The statement in every thread, one after the other: repeated in the code, so that a back-end
  /// keeps them apart.
  Result<Stmt> one(const Stmt& s) {
    const Var copy(first_ ? loop_.var.name() : namer_.fresh(loop_.var.name(), ".t"));
    first_ = false;
    Stmt body = substitute(s, {{loop_.var, ref(copy)}});
    if (!wide_.empty()) body = Widener(wide_, scalars_).run(body, ref(copy));
    return make(For{copy, loop_.extent, ForKind::Unroll, "", loop_.marks, body});
  }

  const For& loop_;
  Namer& namer_;
  const std::set<std::string>& scalars_;
  std::map<Buffer, Buffer> wide_;
  bool first_ = true;
};

Result<Stmt> distribute(const For& loop, const arith::Bounds& bounds, Namer& namer,
                        const std::set<std::string>& scalars) {
  const auto cannot = [&](std::string why) {
    return fail(ErrorKind::NotApplicable,
                fmt::format("vthread loop {} cannot be distributed", loop.var.name()),
                std::move(why));
  };
  const auto extent = as_int(loop.extent);
  if (!extent || *extent > kMostThreads)
    return cannot(fmt::format("its extent is not a constant up to {}", kMostThreads));
  if (auto conflict = Shared(loop, bounds).conflict(loop.var, *extent)) return cannot(*conflict);
  return Distributor(loop, namer, scalars).run();
}

}  // namespace

Result<Func> vthread(const Func& func, const hw::CpuTarget&) {
  const arith::Bounds bounds(func);
  Namer namer(func);
  std::set<std::string> scalars;
  for (const Scalar& s : func.scalars) scalars.insert(s.var.name());
  std::optional<Error> error;
  Func out = func;
  // Inner loops first: what they become is distributed again by the outer ones.
  out.body = rewrite(func.body, [&](const Stmt& s) {
    const For* loop = s.as<For>();
    if (loop == nullptr || loop->kind != ForKind::VThread || error) return s;
    Result<Stmt> done = distribute(*loop, bounds, namer, scalars);
    if (done) return *done;
    error = std::move(done).error();
    return s;
  });
  if (error) return tl::unexpected<Error>(*std::move(error));
  return out;
}

}  // namespace tilewright::lower
