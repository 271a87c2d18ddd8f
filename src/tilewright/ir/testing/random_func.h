// Random valid programs: they verify at stage Scheduled, run without fault and are clean in the
// checking mode of interp. For tests only; header-only because no library needs it.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::testing {

/// Random expressions over given variables (with their extents) and fully defined buffers.
class RandomExpr {
 public:
  struct Range {
    Var var;
    int64_t extent;  ///< 0 <= var < extent
  };
  struct Source {
    Buffer buffer;
    std::vector<int64_t> shape;
  };

  RandomExpr(Rng& rng, std::vector<Range> vars, std::vector<Source> sources)
      : rng_(rng), vars_(std::move(vars)), sources_(std::move(sources)) {}

  Expr of(DType dtype, int depth) {
    if (depth <= 0 || rng_.chance(0.15)) return leaf(dtype);
    if (dtype == DType::Bool) return boolean(depth - 1);
    switch (rng_.below(8)) {
      case 0:
        return select(boolean(depth - 1), of(dtype, depth - 1), of(dtype, depth - 1));
      case 1:
        return cast(dtype, of(any_dtype(), depth - 1));
      case 2:
        return load_of(dtype, depth - 1);
      case 3:
        return unary_of(dtype, depth - 1);
      default:
        return binary_of(dtype, depth - 1);
    }
  }

  /// An index in 0..extent-1.
  Expr index(int64_t extent, int depth) {
    if (rng_.chance(0.5))
      for (const Range& r : vars_)
        if (r.extent <= extent && rng_.chance(0.6)) return ref(r.var);
    if (depth <= 0 || rng_.chance(0.2)) return int_imm(rng_.below(extent));
    Expr e = integer(depth - 1);
    if (rng_.chance(0.5)) return e % extent;
    return min(max(e, int_imm(0)), int_imm(extent - 1));
  }

  static constexpr DType kLive[] = {DType::F32, DType::F64, DType::F16, DType::BF16,
                                    DType::I8,  DType::U8,  DType::I16, DType::I32,
                                    DType::U32, DType::I64, DType::U64, DType::Bool};
  DType any_dtype() { return kLive[rng_.below(std::size(kLive))]; }

 private:
  Expr leaf(DType dtype) {
    if (dtype == DType::Bool) return bool_imm(rng_.chance(0.5));
    if (dtype == DType::I64 && !vars_.empty() && rng_.chance(0.6))
      return ref(vars_[rng_.below(vars_.size())].var);
    if (rng_.chance(0.4)) return load_of(dtype, 0);
    if (!is_float(dtype)) {
      const int64_t low = is_signed_int(dtype) ? -9 : 0;
      return int_imm(rng_.between(low, 9), dtype);
    }
    return float_imm(rng_.chance(0.7) ? rng_.between(-9, 9) * 0.25 : rng_.normal(), dtype);
  }
  Expr load_of(DType dtype, int depth) {
    for (int tries = 0; tries < 4 && !sources_.empty(); ++tries) {
      const Source& s = sources_[rng_.below(sources_.size())];
      bool empty = false;
      for (const int64_t extent : s.shape) empty |= extent == 0;
      if (empty) continue;
      std::vector<Expr> indices;
      for (const int64_t extent : s.shape) indices.push_back(index(extent, depth));
      return cast(dtype, load(s.buffer, std::move(indices)));
    }
    return const_of(dtype, 1);
  }
  Expr integer(int depth) {
    Expr a = depth <= 0 || vars_.empty() ? leaf(DType::I64) : of(DType::I64, depth - 1);
    return rng_.chance(0.5) ? a + rng_.between(-3, 3) : a * int_imm(rng_.between(-2, 4));
  }
  Expr boolean(int depth) {
    if (depth <= 0) return leaf(DType::Bool);
    switch (rng_.below(4)) {
      case 0:
        return logical_not(boolean(depth - 1));
      case 1: {
        Expr a = boolean(depth - 1);
        return rng_.chance(0.5) ? logical_and(a, boolean(depth - 1))
                                : logical_or(a, boolean(depth - 1));
      }
      case 2: {
        const DType d = rng_.chance(0.5) ? DType::F32 : DType::F16;
        return math(rng_.chance(0.5) ? MathFn::IsNan : MathFn::IsInf, {of(d, depth - 1)});
      }
      default: {
        const DType d = any_dtype();
        const auto op = static_cast<BinaryOp>(static_cast<int>(BinaryOp::Eq) + rng_.below(6));
        Expr a = of(d, depth - 1);
        return binary(op, a, of(d, depth - 1));
      }
    }
  }
  Expr unary_of(DType dtype, int depth) {
    Expr a = of(dtype, depth);
    if (rng_.chance(0.3)) return -a;
    if (is_float(dtype)) {
      static constexpr MathFn kFns[] = {MathFn::Abs,     MathFn::Exp,  MathFn::Sqrt,  MathFn::Tanh,
                                        MathFn::Floor,   MathFn::Ceil, MathFn::Round, MathFn::Trunc,
                                        MathFn::Sigmoid, MathFn::Erf,  MathFn::Sin};
      return math(kFns[rng_.below(std::size(kFns))], {a});
    }
    if (rng_.chance(0.3)) return unary(UnaryOp::BitNot, a);
    if (rng_.chance(0.3) && bit_width(dtype) == 32)
      return bitcast(dtype, bitcast(DType::F32, of(dtype, depth)));
    return math(rng_.chance(0.5) ? MathFn::Abs : MathFn::Popcount, {a});
  }
  Expr binary_of(DType dtype, int depth) {
    Expr a = of(dtype, depth), b = of(dtype, depth);
    if (is_float(dtype)) {
      if (rng_.chance(0.1)) return math(MathFn::TruncMod, {a, b});
      return binary(static_cast<BinaryOp>(rng_.below(7)), a, b);
    }
    // Divisors are literals: division by zero has no meaning.
    const int64_t nonzero =
        rng_.between(1, 7) * (is_signed_int(dtype) && rng_.chance(0.5) ? -1 : 1);
    switch (rng_.below(10)) {
      case 0:
        return binary(rng_.chance(0.5) ? BinaryOp::Div : BinaryOp::Mod, a, int_imm(nonzero, dtype));
      case 1:
        return math(rng_.chance(0.5) ? MathFn::TruncDiv : MathFn::TruncMod,
                    {a, int_imm(nonzero, dtype)});
      case 2:
        return math(MathFn::Pow, {a, int_imm(rng_.below(4), dtype)});
      case 3:
        return binary(BinaryOp::Shl, a, int_imm(rng_.below(9), dtype));
      case 4:
        return binary(BinaryOp::Shr, a, b);
      case 5:
        return binary(static_cast<BinaryOp>(static_cast<int>(BinaryOp::BitAnd) + rng_.below(3)), a,
                      b);
      case 6:
        return rng_.chance(0.5) ? min(a, b) : max(a, b);
      default:
        return binary(static_cast<BinaryOp>(rng_.below(3)), a, b);
    }
  }

  Rng& rng_;
  std::vector<Range> vars_;
  std::vector<Source> sources_;
};

/// A random program of a few nests, some split and guarded, nested in loops, branches or calls.
class RandomFunc {
 public:
  explicit RandomFunc(Rng& rng) : rng_(rng) {}

  Func make_func() {
    Func f;
    f.name = pick_name("f");
    f.math = rng_.chance(0.5) ? MathMode::Fast : MathMode::Exact;
    if (rng_.chance(0.5)) {
      f.scalars.push_back({Var(pick_name("n")), 1, rng_.between(1, 1000)});
      scalars_.push_back({f.scalars[0].var, f.scalars[0].hi + 1});
    }
    const int64_t inputs = rng_.between(1, 3);
    for (int64_t i = 0; i < inputs; ++i) f.params.push_back(input());
    std::vector<Stmt> body;
    if (rng_.chance(0.3)) body.push_back(scratch_loop());
    const int64_t nests = rng_.between(1, 4);
    for (int64_t i = 0; i < nests; ++i) {
      const bool last = i + 1 == nests;
      const Shaped target = buffer(last || rng_.chance(0.3) ? "global" : scope());
      if (last || rng_.chance(0.2)) {
        f.params.push_back({target.buffer, ParamMode::Out, {}, {}});
      } else {
        Marks all = marks(MarkKind::Partition);
        if (rng_.chance(0.1)) all.push_back({MarkKind::Slots, rng_.between(1, 8)});
        body.push_back(make(Alloc{target.buffer, all}));
      }
      body.push_back(define(target));
      if (rng_.chance(0.2)) body.push_back(touch(target));
      sources_.push_back({target.buffer, target.shape});
    }
    f.body = seq(std::move(body));
    return f;
  }

 private:
  struct Shaped {
    Buffer buffer;
    std::vector<int64_t> shape;
  };

  std::string pick_name(const std::string& stem) {
    static constexpr std::string_view kForms[] = {"{}{}",   "{}.{}",     "{}@{}",   "layer/{}{}",
                                                  "{}*k{}", "{} odd {}", "{}`\\{}", "{}\x01{}"};
    const auto form = kForms[rng_.chance(0.6) ? 0 : rng_.below(std::size(kForms))];
    return fmt::format(fmt::runtime(form), stem, ++names_);
  }
  std::string scope() {
    static constexpr std::string_view kScopes[] = {"global", "local", "shared", "vta.acc",
                                                   "fpga.bram"};
    return std::string(kScopes[rng_.below(std::size(kScopes))]);
  }
  Marks marks(MarkKind kind) {
    if (rng_.chance(0.8)) return {};
    Marks all = {{kind, rng_.between(-2, 5)}};
    if (rng_.chance(0.3)) all.push_back({MarkKind::Pipeline, std::string("data flow")});
    return all;
  }
  DType dtype() { return RandomExpr::kLive[rng_.below(std::size(RandomExpr::kLive))]; }

  Shaped buffer(const std::string& where) {
    std::vector<int64_t> shape;
    std::vector<Expr> extents;
    const int64_t rank = rng_.below(4);
    for (int64_t k = 0; k < rank; ++k) {
      shape.push_back(rng_.chance(0.05) ? 0 : rng_.between(1, 5));
      extents.push_back(int_imm(shape.back()));
    }
    return {Buffer(pick_name("B"), dtype(), extents, where), shape};
  }

  Param input() {
    const Shaped b = buffer("global");
    sources_.push_back({b.buffer, b.shape});
    Param p{b.buffer, rng_.chance(0.3) ? ParamMode::Const : ParamMode::In, {}, {}};
    if (p.mode == ParamMode::Const && rng_.chance(0.7)) {
      Array values(b.buffer.dtype(), b.shape);
      for (int64_t i = 0; i < values.size(); ++i) values.set(i, rng_.normal() * 3);
      p.values = values;
    }
    if (rng_.chance(0.2))
      for (const int64_t stride : dense_strides(b.shape)) p.strides.push_back(int_imm(stride * 2));
    return p;
  }

  /// Statements that give every element of `target` a value.
  Stmt define(const Shaped& target) {
    if (rng_.chance(0.15) && !scalars_.empty()) {
      Expr condition = ref(scalars_[0].var) % 2 < 1;
      Stmt yes = define_simply(target), no = define_simply(target);
      return make(If{condition, yes, no});
    }
    return define_simply(target);
  }
  Stmt define_simply(const Shaped& target) {
    if (target.buffer.dtype() == DType::Bool || rng_.chance(0.5))
      return nest(target, Combine::Set, false);
    const auto combine = static_cast<Combine>(rng_.between(1, 4));
    return seq({nest(target, Combine::Set, false), nest(target, combine, true)});
  }

  struct Axis {
    Iter iter;
    std::vector<std::pair<Var, int64_t>> loops;
    Expr guard;
  };

  /// An iteration of `extent`, over one loop or over two with a guard.
  Axis axis(IterKind kind, int64_t extent) {
    Axis a;
    a.iter = {Var(pick_name("v")), kind, int_imm(extent), Expr()};
    const Var outer(pick_name("L"));
    if (extent < 2 || rng_.chance(0.6)) {
      a.loops.push_back({outer, extent});
      a.iter.binding = ref(outer);
      return a;
    }
    const Var inner(pick_name("L"));
    const int64_t factor = rng_.between(1, extent);
    a.loops = {{outer, (extent + factor - 1) / factor}, {inner, factor}};
    a.iter.binding = ref(outer) * int_imm(factor) + ref(inner);
    if (extent % factor != 0) a.guard = a.iter.binding < int_imm(extent);
    return a;
  }

  Stmt nest(const Shaped& target, Combine combine, bool reduce) {
    std::vector<Axis> axes;
    for (const int64_t extent : target.shape) axes.push_back(axis(IterKind::Space, extent));
    if (reduce) axes.push_back(axis(IterKind::Reduce, rng_.between(0, 4)));
    std::vector<RandomExpr::Range> visible = scalars_;
    std::vector<Expr> indices;
    Block block;
    block.name = pick_name("S");
    block.marks = marks(MarkKind::Prefetch);
    if (rng_.chance(0.05)) block.marks.push_back({MarkKind::Port, rng_.between(0, 3)});
    for (const Axis& a : axes) {
      visible.push_back({a.iter.var, *as_int(a.iter.extent)});
      if (a.iter.kind == IterKind::Space) indices.push_back(ref(a.iter.var));
      block.iters.push_back(a.iter);
      if (a.guard) block.guard = block.guard ? logical_and(block.guard, a.guard) : a.guard;
    }
    RandomExpr exprs(rng_, visible, sources_);
    block.body = make(Store{target.buffer, indices, exprs.of(target.buffer.dtype(), 4), combine});
    return wrap(make(std::move(block)), axes);
  }

  /// The loops of `axes` around `s`, shuffled; loops of space iterations may be concurrent.
  Stmt wrap(Stmt s, const std::vector<Axis>& axes) {
    static constexpr ForKind kKinds[] = {ForKind::Parallel, ForKind::Vector, ForKind::Unroll,
                                         ForKind::Bind, ForKind::Parallel};
    std::vector<For> loops;
    for (const Axis& a : axes) {
      for (const auto& [var, extent] : a.loops) {
        For loop{var, int_imm(extent), ForKind::Serial, "", marks(MarkKind::InitiationInterval),
                 {}};
        if (a.iter.kind == IterKind::Space && rng_.chance(0.4)) {
          loop.kind = kKinds[static_cast<size_t>(rng_.below(std::ssize(kKinds)))];
          if (loop.kind == ForKind::Bind) loop.axis = rng_.chance(0.5) ? "block.x" : "warp";
        }
        loops.push_back(std::move(loop));
      }
    }
    for (size_t i = loops.size(); i > 1; --i)
      std::swap(loops[i - 1], loops[static_cast<size_t>(rng_.below(static_cast<int64_t>(i)))]);
    for (For& loop : loops) {
      loop.body = std::move(s);
      s = make(std::move(loop));
    }
    return s;
  }

  /// A call that updates a row of `target` through an intrinsic.
  Stmt touch(const Shaped& target) {
    if (target.shape.empty() || target.buffer.dtype() == DType::Bool || target.shape.back() == 0)
      return seq({});
    const DType type = target.buffer.dtype();
    auto callee = std::make_shared<Func>();
    callee->name = pick_name("intrinsic");
    const Var k(pick_name("k"));
    callee->scalars = {{k, 1, 16}};
    const Buffer row(pick_name("R"), type, {ref(k)});
    callee->params = {{row, ParamMode::InOut, {}, {}}};
    const Var l(pick_name("l")), v(pick_name("v"));
    callee->body =
        make(For{l,
                 ref(k),
                 ForKind::Vector,
                 "",
                 {},
                 make(Block{pick_name("I"),
                            {{v, IterKind::Space, ref(k), ref(l)}},
                            Expr(),
                            {},
                            make(Store{row, {ref(v)}, const_of(type, 2), Combine::Max})})});
    Call call{callee, {int_imm(target.shape.back())}};
    Region region{target.buffer, {}};
    std::vector<Axis> axes;
    Block block;
    block.name = pick_name("S");
    for (size_t d = 0; d + 1 < target.shape.size(); ++d) {
      axes.push_back(axis(IterKind::Space, target.shape[d]));
      block.iters.push_back(axes.back().iter);
      const Expr& guard = axes.back().guard;
      if (guard) block.guard = block.guard ? logical_and(block.guard, guard) : guard;
      region.dims.emplace_back(ref(axes.back().iter.var), int_imm(1));
    }
    region.dims.emplace_back(int_imm(0), int_imm(target.shape.back()));
    call.args.emplace_back(region);
    block.body = make(std::move(call));
    return wrap(make(std::move(block)), axes);
  }

  /// A loop whose iterations each own a buffer: fresh memory per iteration.
  Stmt scratch_loop() {
    const Shaped b = buffer("local");
    const Var outer(pick_name("T"));
    std::vector<Stmt> body = {make(Alloc{b.buffer, {}}), nest(b, Combine::Set, false)};
    const ForKind kind = rng_.chance(0.5) ? ForKind::Parallel : ForKind::Serial;
    return make(For{outer, int_imm(rng_.between(0, 3)), kind, "", {}, seq(std::move(body))});
  }

  Rng& rng_;
  int64_t names_ = 0;
  std::vector<RandomExpr::Range> scalars_;
  std::vector<RandomExpr::Source> sources_;
};

inline Func random_func(Rng& rng) { return RandomFunc(rng).make_func(); }

}  // namespace tilewright::testing
