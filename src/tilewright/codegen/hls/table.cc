// Walks the programs side by side and builds the common one; what differs in numbers alone is left
// to loop_sums.h.
#include "tilewright/codegen/hls/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "tilewright/codegen/hls/loop_sums.h"

namespace tilewright::codegen {
namespace {

/// `select(c < 3, select(h >= 1, x, 0), 0)`: x where the sums `where` are at least 0, else 0.
struct Chosen {
  std::vector<LoopSum> where;
  Expr value, otherwise;
};

class TableMaker {
 public:
  explicit TableMaker(const std::vector<Func>& funcs)
      : funcs_(funcs), sums_(funcs.size()), buffers_of_(funcs.size()) {}

  Result<HlsTable> run() {
    HlsTable out;
    out.func.name = funcs_[0].name, out.func.math = funcs_[0].math;
    std::vector<Stmt> bodies;
    for (const Func& func : funcs_) {
      if (!func.scalars.empty()) return differ("a program has scalars of its own");
      if (func.math != funcs_[0].math) return differ("the order of additions is free in one alone");
      if (func.params.size() != funcs_[0].params.size()) return differ("the number of parameters");
      bodies.push_back(func.body);
    }
    for (size_t i = 0; i < funcs_[0].params.size(); ++i)
      out.func.params.push_back(TW_TRY(param(i)));
    out.func.body = TW_TRY(stmt(bodies));
    out.func.scalars = sums_.columns();
    out.rows.resize(funcs_.size());
    for (const Numbers& column : sums_.values())
      for (size_t p = 0; p < funcs_.size(); ++p) out.rows[p].push_back(column[p]);
    return out;
  }

 private:
  using Exprs = std::vector<Expr>;
  using Stmts = std::vector<Stmt>;

  tl::unexpected<Error> differ(const std::string& what) const {
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' and others are not one program with a table", funcs_[0].name),
                fmt::format("they differ in {}", what));
  }
  Result<Numbers> constants(const Exprs& exprs, const std::string& what) const {
    Numbers out;
    for (const Expr& e : exprs) {
      const auto value = as_int(e);
      if (!value) return differ(fmt::format("{}, which is no constant", what));
      out.push_back(*value);
    }
    return out;
  }

  // --- Values.

  Chosen chosen(size_t program, Expr e) const {
    Chosen out;
    for (const auto* s = e.as<Select>(); s != nullptr; s = e.as<Select>()) {
      const bool constant =
          s->on_false.as<IntImm>() != nullptr || s->on_false.as<FloatImm>() != nullptr;
      if (!constant || (out.otherwise && !equal(out.otherwise, s->on_false))) break;
      if (!sums_.add_conditions(program, s->condition, out.where)) break;
      out.otherwise = s->on_false;
      e = s->on_true;
    }
    out.value = e;
    return out;
  }

  Result<Expr> value(const Exprs& exprs) {
    if (const auto sums = sums_.sums_of(exprs)) return sums_.index(*sums);
    std::vector<std::vector<LoopSum>> where;
    Exprs values;
    Expr otherwise;
    for (size_t p = 0; p < exprs.size(); ++p) {
      Chosen one = chosen(p, exprs[p]);
      if (one.otherwise && otherwise && !equal(one.otherwise, otherwise))
        return differ("what stands where a condition fails");
      if (one.otherwise) otherwise = one.otherwise;
      where.push_back(std::move(one.where));
      values.push_back(one.value);
    }
    if (!otherwise) return node(exprs);
    const Expr inside = TW_TRY(value(values));
    return select(sums_.conditions(where), inside, otherwise);
  }

  Result<Exprs> list(const std::vector<Exprs>& lists) {
    Exprs out;
    if (!alike(each(lists, [](const Exprs& l) { return l.size(); })))
      return differ("the number of operands");
    for (size_t i = 0; i < lists[0].size(); ++i)
      out.push_back(TW_TRY(value(each(lists, [&](const Exprs& l) { return l[i]; }))));
    return out;
  }

  template <class T>
  static std::vector<const T*> all_as(const Exprs& exprs) {
    return each(exprs, [](const Expr& e) { return e.as<T>(); });
  }

  /// Operators of the same kind.
  Result<Expr> node(const Exprs& exprs) {
    if (!alike(each(exprs, [](const Expr& e) { return e.get()->op.index(); })) ||
        !alike(each(exprs, [](const Expr& e) { return e.dtype(); })))
      return differ("operators or types");
    if (exprs[0].as<IntImm>() != nullptr || exprs[0].as<FloatImm>() != nullptr)
      return constant(exprs);
    if (exprs[0].as<VarRef>() != nullptr) return differ("a variable");
    if (exprs[0].as<Load>() != nullptr) {
      const auto loads = all_as<Load>(exprs);
      return load(TW_TRY(buffer(each(loads, [](const Load* l) { return l->buffer; }))),
                  TW_TRY(list(each(loads, [](const Load* l) { return l->indices; }))));
    }
    return operation(exprs);
  }

  Result<Expr> operation(const Exprs& exprs) {
    const DType dtype = exprs[0].dtype();
    const auto operands = [&](auto get) { return list(each(exprs, get)); };
    if (exprs[0].as<Unary>() != nullptr) {
      if (!alike(each(exprs, [](const Expr& e) { return e.as<Unary>()->op; })))
        return differ("operators");
      const Exprs in = TW_TRY(operands([](const Expr& e) { return Exprs{e.as<Unary>()->a}; }));
      return unary(exprs[0].as<Unary>()->op, in[0]);
    }
    if (exprs[0].as<Binary>() != nullptr) {
      if (!alike(each(exprs, [](const Expr& e) { return e.as<Binary>()->op; })))
        return differ("operators");
      const Exprs in = TW_TRY(
          operands([](const Expr& e) { return Exprs{e.as<Binary>()->a, e.as<Binary>()->b}; }));
      return binary(exprs[0].as<Binary>()->op, in[0], in[1]);
    }
    if (exprs[0].as<Select>() != nullptr) {
      const Exprs in = TW_TRY(operands([](const Expr& e) {
        const auto* s = e.as<Select>();
        return Exprs{s->condition, s->on_true, s->on_false};
      }));
      return select(in[0], in[1], in[2]);
    }
    if (exprs[0].as<Cast>() != nullptr) {
      if (!alike(each(exprs, [](const Expr& e) { return e.as<Cast>()->bits; })))
        return differ("operators");
      const Exprs in = TW_TRY(operands([](const Expr& e) { return Exprs{e.as<Cast>()->a}; }));
      return exprs[0].as<Cast>()->bits ? bitcast(dtype, in[0]) : cast(dtype, in[0]);
    }
    if (!alike(each(exprs, [](const Expr& e) { return e.as<MathCall>()->fn; })))
      return differ("functions");
    return math(exprs[0].as<MathCall>()->fn,
                TW_TRY(operands([](const Expr& e) { return e.as<MathCall>()->args; })));
  }

  /// Constants of a type; those of f32 are in the table as their bits.
  Result<Expr> constant(const Exprs& exprs) {
    const bool same =
        std::all_of(exprs.begin(), exprs.end(), [&](const Expr& e) { return equal(e, exprs[0]); });
    const DType dtype = exprs[0].dtype();
    if (same) return exprs[0];
    if (dtype == DType::F32)
      return bitcast(dtype, cast(DType::I32, sums_.number(each(exprs, [](const Expr& e) {
                       const auto real = static_cast<float>(e.as<FloatImm>()->value);
                       return int64_t{std::bit_cast<int32_t>(real)};
                     }))));
    if (exprs[0].as<IntImm>() == nullptr || dtype == DType::Bool || dtype == DType::U64)
      return differ("a constant");
    return cast(dtype,
                sums_.number(each(exprs, [](const Expr& e) { return e.as<IntImm>()->value; })));
  }

  // --- Buffers and statements.

  Result<Buffer> buffer(const std::vector<Buffer>& buffers) const {
    const auto known = [&](size_t p) { return buffers_of_[p].at(buffers[p]); };
    for (size_t p = 1; p < buffers.size(); ++p)
      if (!(known(p) == known(0))) return differ("a buffer that is used");
    return known(0);
  }
  Result<Buffer> declare(const std::vector<Buffer>& buffers, Exprs shape) {
    if (!alike(each(buffers, [](const Buffer& b) { return b.dtype(); })) ||
        !alike(each(buffers, [](const Buffer& b) { return b.scope(); })))
      return differ(fmt::format("type or memory of {}", buffers[0].name()));
    const Buffer made(buffers[0].name(), buffers[0].dtype(), std::move(shape), buffers[0].scope());
    for (size_t p = 0; p < buffers.size(); ++p) buffers_of_[p].emplace(buffers[p], made);
    return made;
  }
  Result<std::vector<Numbers>> shapes(const std::vector<Buffer>& buffers) const {
    if (!alike(each(buffers, [](const Buffer& b) { return b.rank(); })))
      return differ(fmt::format("axes of {}", buffers[0].name()));
    std::vector<Numbers> axes;
    for (size_t axis = 0; axis < buffers[0].rank(); ++axis)
      axes.push_back(
          TW_TRY(constants(each(buffers, [&](const Buffer& b) { return b.shape()[axis]; }),
                           "the shape of " + buffers[0].name())));
    return axes;
  }

  Result<Param> param(size_t i) {
    const auto of = [&](auto get) {
      return each(funcs_, [&](const Func& f) { return get(f.params[i]); });
    };
    Param out;
    const auto buffers = of([](const Param& p) { return p.buffer; });
    out.mode = funcs_[0].params[i].mode;
    if (!alike(of([](const Param& p) { return p.mode; })))
      return differ(fmt::format("what is done with {}", buffers[0].name()));
    Exprs shape;
    for (const Numbers& axis : TW_TRY(shapes(buffers))) shape.push_back(sums_.number(axis));
    out.buffer = TW_TRY(declare(buffers, std::move(shape)));
    const auto strides = of([](const Param& p) { return p.strides; });
    if (!alike(each(strides, [](const Exprs& s) { return s.size(); })))
      return differ(fmt::format("strides of {}", buffers[0].name()));
    for (size_t axis = 0; axis < strides[0].size(); ++axis)
      out.strides.push_back(
          sums_.number(TW_TRY(constants(each(strides, [&](const Exprs& s) { return s[axis]; }),
                                        "the strides of " + buffers[0].name()))));
    return out;
  }

  Result<Stmt> stmt(const Stmts& all) {
    for (const Stmt& one : all)
      if (one.as<If>() != nullptr) return branch(all);
    if (!alike(each(all, [](const Stmt& s) { return s.get()->op.index(); })))
      return differ("the kind of a statement");
    const auto of = [&](auto x) {
      using T = decltype(x);
      return each(all, [](const Stmt& s) { return s.as<T>(); });
    };
    if (all[0].as<For>() != nullptr) return loop(of(For()));
    if (all[0].as<Block>() != nullptr) return block(of(Block()));
    if (all[0].as<Store>() != nullptr) return store(of(Store()));
    if (all[0].as<Alloc>() != nullptr) return alloc(of(Alloc()));
    if (all[0].as<Seq>() != nullptr) return sequence(of(Seq()));
    return differ("a call");
  }

  /// A condition that one program has around a statement, all get.
  Result<Stmt> branch(const Stmts& all) {
    std::vector<std::vector<LoopSum>> where(all.size());
    Stmts bodies = all;
    for (size_t p = 0; p < all.size(); ++p) {
      const auto* one = all[p].as<If>();
      if (one == nullptr) continue;
      if (one->else_body || !sums_.add_conditions(p, one->condition, where[p]))
        return differ("a condition around statements, which is no limit");
      bodies[p] = one->then_body;
    }
    Stmt body = TW_TRY(stmt(bodies));
    return make(If{sums_.conditions(where), std::move(body), {}});
  }

  Result<Stmt> loop(const std::vector<const For*>& all) {
    For out = *all[0];
    const auto extents = TW_TRY(
        constants(each(all, [](const For* x) { return x->extent; }), "a loop " + out.var.name()));
    if (!alike(each(all, [](const For* x) { return x->kind; })) ||
        !alike(each(all, [](const For* x) { return x->marks; })))
      return differ(fmt::format("how loop {} runs", out.var.name()));
    if (out.kind != ForKind::Serial && !alike(extents))
      return differ(fmt::format("how often loop {} is there", out.var.name()));
    out.extent = sums_.number(extents);
    out.var = sums_.bind(each(all, [](const For* x) { return x->var; }), extents);
    out.body = TW_TRY(stmt(each(all, [](const For* x) { return x->body; })));
    return make(std::move(out));
  }

  Result<Stmt> block(const std::vector<const Block*>& all) {
    Block out = *all[0];
    if (!alike(each(all, [](const Block* x) { return x->marks; })) ||
        !alike(each(all, [](const Block* x) { return x->iters.size(); })))
      return differ(fmt::format("what block {} is", out.name));
    std::vector<std::vector<LoopSum>> guards(all.size());
    for (size_t p = 0; p < all.size(); ++p)
      if (all[p]->guard && !sums_.add_conditions(p, all[p]->guard, guards[p]))
        return differ(fmt::format("the condition of block {}, which is no limit", out.name));
    out.guard = sums_.conditions(guards);
    for (size_t i = 0; i < out.iters.size(); ++i) {
      const auto of = [&](auto get) {
        return each(all, [&](const Block* x) { return get(x->iters[i]); });
      };
      Iter& iter = out.iters[i];
      if (!alike(of([](const Iter& x) { return x.kind; })))
        return differ(fmt::format("the axes of block {}", out.name));
      const auto extents =
          TW_TRY(constants(of([](const Iter& x) { return x.extent; }), "an axis of " + out.name));
      iter.extent = sums_.number(extents);
      iter.binding = TW_TRY(value(of([](const Iter& x) { return x.binding; })));
      iter.var = sums_.bind(of([](const Iter& x) { return x.var; }), extents);
    }
    out.body = TW_TRY(stmt(each(all, [](const Block* x) { return x->body; })));
    return make(std::move(out));
  }

  Result<Stmt> store(const std::vector<const Store*>& all) {
    Store out = *all[0];
    if (!alike(each(all, [](const Store* x) { return x->combine; }))) return differ("a store");
    out.buffer = TW_TRY(buffer(each(all, [](const Store* x) { return x->buffer; })));
    out.indices = TW_TRY(list(each(all, [](const Store* x) { return x->indices; })));
    out.value = TW_TRY(value(each(all, [](const Store* x) { return x->value; })));
    return make(std::move(out));
  }

  Result<Stmt> alloc(const std::vector<const Alloc*>& all) {
    Alloc out = *all[0];
    if (!alike(each(all, [](const Alloc* x) { return x->marks; })))
      return differ(fmt::format("banks or slots of {}", out.buffer.name()));
    const auto buffers = each(all, [](const Alloc* x) { return x->buffer; });
    Exprs shape;
    for (const Numbers& axis : TW_TRY(shapes(buffers)))
      shape.push_back(int_imm(*std::max_element(axis.begin(), axis.end())));
    out.buffer = TW_TRY(declare(buffers, std::move(shape)));
    return make(std::move(out));
  }

  Result<Stmt> sequence(const std::vector<const Seq*>& all) {
    if (!alike(each(all, [](const Seq* x) { return x->stmts.size(); })))
      return differ("the number of statements");
    Stmts out;
    for (size_t i = 0; i < all[0]->stmts.size(); ++i)
      out.push_back(TW_TRY(stmt(each(all, [&](const Seq* x) { return x->stmts[i]; }))));
    return seq(std::move(out));
  }

  const std::vector<Func>& funcs_;
  LoopSums sums_;
  std::vector<std::map<Buffer, Buffer>> buffers_of_;
};

}  // namespace

Result<HlsTable> hls_table(const std::vector<Func>& funcs) {
  if (funcs.size() == 1) return HlsTable{funcs[0], {{}}};
  return TableMaker(funcs).run();
}

Result<HlsTables> hls_tables(const std::vector<Func>& funcs,
                             const std::function<bool(const Func&)>& fits) {
  HlsTables out;
  std::vector<std::vector<Func>> groups;
  for (const Func& func : funcs) {
    size_t g = 0;
    for (; g < groups.size(); ++g) {
      std::vector<Func> larger = groups[g];
      larger.push_back(func);
      auto table = hls_table(larger);
      if (!table || (fits && !fits(table->func))) continue;
      groups[g] = std::move(larger);
      out.tables[g] = *std::move(table);
      break;
    }
    if (g == groups.size()) {
      groups.push_back({func});
      out.tables.push_back(TW_TRY(hls_table(groups.back())));
    }
    out.places.emplace_back(g, groups[g].size() - 1);
  }
  return out;
}

}  // namespace tilewright::codegen
