// For tests: random programs at stage Tensor, chains and graphs of the usual operators on small odd
// sizes. Values stay small integers, so every order of additions gives the same bits.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::schedule::testing {

/// Builds one program from a seed. Sizes come from a list that can be overridden, so that a failing
/// program shrinks without changing its structure.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed, std::vector<int64_t> sizes = {})
      : rng_(seed), given_(std::move(sizes)) {}

  Func make_func() {
    static constexpr DType kTypes[] = {DType::F32, DType::F32, DType::F32, DType::F64, DType::I32,
                                       DType::I8,  DType::U8,  DType::I64, DType::I16};
    dtype_ = kTypes[rng_.below(std::size(kTypes))];
    func_.name = "random";
    func_.math = rng_.chance(0.25) ? MathMode::Exact : MathMode::Fast;
    if (rng_.chance(0.15)) {
      func_.scalars.push_back({Var("n"), 1, 8});
      symbolic_ = true;
    }
    const int64_t inputs = rng_.between(1, 2);
    for (int64_t i = 0; i < inputs; ++i) {
      std::vector<Expr> shape;
      const int64_t rank = rng_.between(1, 3);
      for (int64_t d = 0; d < rank; ++d)
        shape.push_back(d == 0 && symbolic_ ? ref(func_.scalars[0].var) : size());
      input(shape);
    }
    const int64_t ops = rng_.between(2, 6);
    for (int64_t i = 0; i < ops; ++i) add_op();
    finish();
    return func_;
  }
  /// The sizes that were used, in order.
  const std::vector<int64_t>& sizes() const { return used_; }

 private:
  struct Tensor {
    Buffer buffer;
    int64_t bound;  ///< largest magnitude of an element
    bool used = false;
    bool param = false;
    const std::vector<Expr>& shape() const { return buffer.shape(); }
  };
  using Indices = std::vector<Expr>;

  Expr size() {
    const size_t k = used_.size();
    int64_t n = rng_.chance(0.1) ? 1 : rng_.between(2, 7);
    if (k < given_.size()) n = given_[k];
    used_.push_back(n);
    return int_imm(n);
  }
  std::string fresh() { return fmt::format("T{}", ++names_); }

  size_t input(std::vector<Expr> shape, ParamMode mode = ParamMode::In) {
    const Buffer b(fmt::format("I{}", ++names_), dtype_, std::move(shape));
    func_.params.push_back({b, mode, {}, {}});
    tensors_.push_back({b, 2, true, true});
    return tensors_.size() - 1;
  }
  /// An existing tensor; later ones are likelier, so that chains form.
  size_t pick() {
    const int64_t n = static_cast<int64_t>(tensors_.size());
    const size_t i = static_cast<size_t>(std::max(rng_.below(n), rng_.below(n)));
    tensors_[i].used = true;
    return i;
  }
  /// A read that keeps magnitudes small.
  Expr read(size_t t, Indices indices) {
    Expr e = load(tensors_[t].buffer, std::move(indices));
    if (tensors_[t].bound <= 64 || !(is_float(e.dtype()) || is_signed_int(e.dtype()))) return e;
    return min(max(e, const_of(e.dtype(), -3)), const_of(e.dtype(), 3));
  }
  int64_t bound(size_t t) const { return std::min<int64_t>(tensors_[t].bound, 64); }

  static std::vector<std::string> axis_names(size_t rank, const char* letters) {
    std::vector<std::string> names;
    for (size_t d = 0; d < rank; ++d) names.push_back(std::string(1, letters[d]));
    return names;
  }

  /// One block with its nest: iterations `names`, loops `<block>.<iteration>`.
  Stmt nest(const std::string& block, const std::vector<std::string>& names,
            const std::vector<IterKind>& kinds, const std::vector<Expr>& extents,
            const std::function<Store(const Indices&)>& store) {
    Block b;
    b.name = block;
    std::vector<Var> loops;
    Indices iters;
    for (size_t d = 0; d < names.size(); ++d) {
      loops.emplace_back(block + "." + names[d]);
      b.iters.push_back({Var(names[d]), kinds[d], extents[d], ref(loops[d])});
      iters.push_back(ref(b.iters[d].var));
    }
    b.body = make(store(iters));
    Stmt s = make(std::move(b));
    for (size_t d = names.size(); d-- > 0;)
      s = make(For{loops[d], extents[d], ForKind::Serial, "", {}, s});
    return s;
  }

  size_t result(const std::string& name, std::vector<Expr> shape, DType dtype, int64_t limit) {
    tensors_.push_back({Buffer(name, dtype, std::move(shape)), limit});
    return tensors_.size() - 1;
  }

  /// out[i...] = f(i...).
  void map(std::vector<Expr> shape, int64_t limit, const std::function<Expr(const Indices&)>& f) {
    const std::string name = fresh();
    const size_t t = result(name, shape, dtype_, limit);
    const Buffer buffer = tensors_[t].buffer;
    body_.push_back(
        {t, nest(name, axis_names(shape.size(), "hwcxyz"),
                 std::vector<IterKind>(shape.size(), IterKind::Space), shape,
                 [&](const Indices& i) { return Store{buffer, i, f(i), Combine::Set}; })});
  }

  /// out[i...] = init, then combined over r... with f(i, r).
  void reduce(std::vector<Expr> shape, std::vector<Expr> over, Combine combine, int64_t limit,
              const std::function<Expr(const Indices&, const Indices&)>& f) {
    const std::string name = fresh();
    const size_t t = result(name, shape, dtype_, limit);
    const Buffer buffer = tensors_[t].buffer;
    const double start = combine == Combine::Max   ? (is_unsigned_int(dtype_) ? 0 : -100)
                         : combine == Combine::Min ? 100
                                                   : rng_.below(2);
    const std::vector<std::string> space = axis_names(shape.size(), "hwcxyz");
    std::vector<IterKind> kinds(shape.size(), IterKind::Space);
    body_.push_back({t, nest(name + ".init", space, kinds, shape, [&](const Indices& i) {
                       return Store{buffer, i, const_of(dtype_, start), Combine::Set};
                     })});
    std::vector<std::string> names = space;
    std::vector<Expr> extents = shape;
    for (size_t d = 0; d < over.size(); ++d) {
      names.push_back(std::string(1, "rsuv"[d]));
      kinds.push_back(IterKind::Reduce);
      extents.push_back(over[d]);
    }
    body_.push_back({t, nest(name, names, kinds, extents, [&](const Indices& all) {
                       const Indices i(all.begin(), all.begin() + static_cast<long>(shape.size()));
                       const Indices r(all.begin() + static_cast<long>(shape.size()), all.end());
                       return Store{buffer, i, f(i, r), combine};
                     })});
  }

  // --- Operators. Each may fall back to an element-wise one where shapes do not fit.

  void add_op() {
    switch (rng_.below(13)) {
      case 0:
        return pad();
      case 1:
        return conv();
      case 2:
        return matmul();
      case 3:
      case 4:
        return reduce_axis();
      case 5:
        return binary_op();
      case 6:
        return transpose();
      case 7:
        return slice();
      case 8:
        return stencil();
      case 9:
        return pool();
      case 10:
        return rng_.chance(0.5) ? scan() : gather();
      case 11:
        return rng_.chance(0.5) ? concat() : broadcast();
      default:
        return unary_op();
    }
  }

  Expr value(double v) { return const_of(dtype_, v); }
  static bool constant(const Expr& e) { return as_int(e).has_value(); }

  void unary_op() {
    const size_t t = pick();
    const int64_t kind = rng_.below(3);
    map(tensors_[t].shape(), bound(t) * 2 + 1, [&](const Indices& i) {
      const Expr x = read(t, i);
      if (kind == 0) return max(x, value(0));
      return kind == 1 ? x * value(2) + value(1) : x - value(1);
    });
  }
  void binary_op() {
    const size_t a = pick(), b = pick();
    const auto &x = tensors_[a].shape(), &y = tensors_[b].shape();
    // Trailing axes of b are those of a where sizes agree; else b is read at 0.
    const bool mul = rng_.chance(0.4);
    const int64_t limit = mul ? bound(a) * bound(b) : bound(a) + bound(b);
    map(x, limit, [&](const Indices& i) {
      Indices j;
      for (size_t d = 0; d < y.size(); ++d) {
        const size_t k = d + x.size() - y.size();
        const bool fits = y.size() <= x.size() && as_int(x[k]) == as_int(y[d]) &&
                          (constant(x[k]) || equal(x[k], y[d]));
        j.push_back(fits ? i[k] : int_imm(0));
      }
      return mul ? read(a, i) * read(b, j) : read(a, i) + read(b, j);
    });
  }
  void broadcast() {
    const size_t t = pick();
    if (tensors_[t].shape().size() > 2) return unary_op();
    std::vector<Expr> shape = tensors_[t].shape();
    shape.push_back(size());
    map(shape, bound(t), [&](Indices i) {
      i.pop_back();
      return read(t, i);
    });
  }
  void pad() {
    const size_t t = pick();
    std::vector<Expr> shape = tensors_[t].shape();
    for (Expr& e : shape)
      if (!constant(e)) return unary_op();
    for (Expr& e : shape) e = int_imm(*as_int(e) + 2);
    map(shape, bound(t), [&](const Indices& i) {
      Expr inside;
      Indices j;
      for (size_t d = 0; d < i.size(); ++d) {
        const Expr here = logical_and(int_imm(1) <= i[d], i[d] < *as_int(shape[d]) - 1);
        inside = inside ? logical_and(inside, here) : here;
        j.push_back(i[d] - 1);
      }
      return select(inside, read(t, j), value(0));
    });
  }
  /// Sliding window sums along the last one or two axes, over the first one, with weights.
  void conv() {
    const size_t t = pick();
    const std::vector<Expr> in = tensors_[t].shape();
    if (in.size() < 2) return stencil();
    std::vector<Expr> shape{size()}, over{in[0]}, weights{shape[0], in[0]};
    for (size_t d = 1; d < in.size(); ++d) {
      if (!constant(in[d])) return unary_op();
      const int64_t n = *as_int(in[d]), window = std::min<int64_t>(n, 1 + rng_.below(3));
      shape.push_back(int_imm(n - window + 1));
      over.push_back(int_imm(window));
      weights.push_back(int_imm(window));
    }
    const size_t w = input(weights, ParamMode::Const);
    reduce(shape, over, Combine::Add, 4096, [&](const Indices& i, const Indices& r) {
      Indices x{r[0]}, k{i[0], r[0]};
      for (size_t d = 1; d < in.size(); ++d) x.push_back(i[d] + r[d]), k.push_back(r[d]);
      return read(t, x) * read(w, k);
    });
  }
  void matmul() {
    const size_t a = pick();
    const std::vector<Expr> x = tensors_[a].shape();
    if (x.size() != 2) return reduce_axis();
    const Expr columns = size();
    const size_t b = input({x[1], columns}, rng_.chance(0.5) ? ParamMode::Const : ParamMode::In);
    reduce({x[0], columns}, {x[1]}, Combine::Add, 4096, [&](const Indices& i, const Indices& r) {
      return read(a, {i[0], r[0]}) * read(b, {r[0], i[1]});
    });
  }
  void reduce_axis() {
    const size_t t = pick();
    const std::vector<Expr> in = tensors_[t].shape();
    if (in.size() < 2) return unary_op();
    const size_t first = static_cast<size_t>(rng_.below(static_cast<int64_t>(in.size())));
    const bool two = in.size() > 2 && rng_.chance(0.5);
    std::vector<bool> gone(in.size(), false);
    gone[first] = true;
    if (two) gone[(first + 1) % in.size()] = true;
    std::vector<Expr> shape, over;
    for (size_t d = 0; d < in.size(); ++d) (gone[d] ? over : shape).push_back(in[d]);
    static constexpr Combine kCombines[] = {Combine::Add, Combine::Add, Combine::Max, Combine::Min};
    const Combine combine = kCombines[rng_.below(4)];
    reduce(shape, over, combine, 4096, [&](const Indices& i, const Indices& r) {
      Indices all;
      size_t s = 0, k = 0;
      for (size_t d = 0; d < in.size(); ++d) all.push_back(gone[d] ? r[k++] : i[s++]);
      return read(t, all);
    });
  }
  void transpose() {
    const size_t t = pick();
    std::vector<Expr> shape(tensors_[t].shape().rbegin(), tensors_[t].shape().rend());
    map(shape, bound(t), [&](const Indices& i) { return read(t, Indices(i.rbegin(), i.rend())); });
  }
  void slice() {
    const size_t t = pick();
    std::vector<Expr> shape = tensors_[t].shape();
    const size_t d = shape.size() - 1;
    if (!constant(shape[d]) || *as_int(shape[d]) < 3) return unary_op();
    const int64_t n = *as_int(shape[d]);
    const bool strided = rng_.chance(0.5);
    shape[d] = int_imm(strided ? (n + 1) / 2 : n - 1);
    map(shape, bound(t), [&](Indices i) {
      i[d] = strided ? i[d] * 2 : i[d] + 1;
      return read(t, i);
    });
  }
  void stencil() {
    const size_t t = pick();
    const std::vector<Expr> shape = tensors_[t].shape();
    const size_t d = static_cast<size_t>(rng_.below(static_cast<int64_t>(shape.size())));
    map(shape, bound(t) * 3, [&](const Indices& i) {
      Indices before = i, after = i;
      before[d] = i[d] - 1, after[d] = i[d] + 1;
      return read(t, i) + select(i[d] >= 1, read(t, before), value(0)) +
             select(after[d] < shape[d], read(t, after), value(1));
    });
  }
  void pool() {
    const size_t t = pick();
    std::vector<Expr> shape = tensors_[t].shape();
    const size_t d = shape.size() - 1;
    if (!constant(shape[d]) || *as_int(shape[d]) < 3) return unary_op();
    const int64_t window = rng_.between(2, 3), stride = rng_.between(1, 2);
    shape[d] = int_imm((*as_int(shape[d]) - window) / stride + 1);
    reduce(shape, {int_imm(window)}, Combine::Max, bound(t) + 100,
           [&](Indices i, const Indices& r) {
             i[d] = i[d] * stride + r[0];
             return read(t, i);
           });
  }
  /// h[0] = 0; h[t + 1] = max(h[t], x[t]) along the first axis, in order.
  void scan() {
    const size_t x = pick();
    std::vector<Expr> shape = tensors_[x].shape();
    if (!constant(shape[0])) return unary_op();
    const Expr steps = shape[0];
    shape[0] = int_imm(*as_int(steps) + 1);
    const std::string name = fresh();
    const size_t t = result(name, shape, dtype_, bound(x) + 3);
    const Buffer h = tensors_[t].buffer;
    std::vector<Expr> first = shape, rest = shape;
    first[0] = int_imm(1), rest[0] = steps;
    std::vector<std::string> names = axis_names(shape.size(), "twcxyz");
    std::vector<IterKind> kinds(shape.size(), IterKind::Space);
    body_.push_back({t, nest(name + ".start", names, kinds, first, [&](const Indices& i) {
                       return Store{h, i, value(0), Combine::Set};
                     })});
    kinds[0] = IterKind::Scan;
    body_.push_back({t, nest(name, names, kinds, rest, [&](Indices i) {
                       const Indices now = i;
                       i[0] = i[0] + 1;
                       const Expr old = load(h, now);
                       return Store{h, i, max(old, read(x, now)), Combine::Set};
                     })});
  }
  void gather() {
    const size_t t = pick();
    const std::vector<Expr> in = tensors_[t].shape();
    if (!constant(in[0])) return unary_op();
    const Expr n = size();
    const Buffer index(fmt::format("I{}", ++names_), DType::I64, {n});
    func_.params.push_back({index, ParamMode::In, {}, {}});
    std::vector<Expr> shape = in;
    shape[0] = n;
    map(shape, bound(t), [&](Indices i) {
      i[0] = min(max(load(index, {i[0]}), int_imm(0)), in[0] - 1);
      return read(t, i);
    });
  }
  /// Two blocks write the halves of one result.
  void concat() {
    const size_t a = pick(), b = pick();
    const std::vector<Expr> x = tensors_[a].shape(), y = tensors_[b].shape();
    bool fits = x.size() == y.size() && constant(x[0]) && constant(y[0]);
    for (size_t d = 1; fits && d < x.size(); ++d) fits = equal(x[d], y[d]);
    if (!fits) return unary_op();
    std::vector<Expr> shape = x;
    shape[0] = int_imm(*as_int(x[0]) + *as_int(y[0]));
    const std::string name = fresh();
    const size_t t = result(name, shape, dtype_, std::max(bound(a), bound(b)));
    const Buffer buffer = tensors_[t].buffer;
    const std::vector<std::string> names = axis_names(shape.size(), "hwcxyz");
    const std::vector<IterKind> kinds(shape.size(), IterKind::Space);
    body_.push_back({t, nest(name + ".a", names, kinds, x, [&](const Indices& i) {
                       return Store{buffer, i, read(a, i), Combine::Set};
                     })});
    body_.push_back({t, nest(name + ".b", names, kinds, y, [&](const Indices& i) {
                       Indices j = i;
                       j[0] = j[0] + *as_int(x[0]);
                       return Store{buffer, j, read(b, i), Combine::Set};
                     })});
  }

  /// Unread tensors become outputs, the others allocations; some read ones are outputs too.
  void finish() {
    std::vector<Stmt> stmts;
    std::vector<bool> declared(tensors_.size(), false);
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t].param) continue;
      if (!tensors_[t].used || rng_.chance(0.1)) {
        func_.params.push_back({tensors_[t].buffer, ParamMode::Out, {}, {}});
        declared[t] = true;
      }
    }
    for (const auto& [t, s] : body_) {
      if (!declared[t]) stmts.push_back(make(Alloc{tensors_[t].buffer, {}}));
      declared[t] = true;
      stmts.push_back(s);
    }
    func_.body = seq(std::move(stmts));
  }

  Rng rng_;
  std::vector<int64_t> given_, used_;
  Func func_;
  DType dtype_ = DType::F32;
  bool symbolic_ = false;
  int names_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<std::pair<size_t, Stmt>> body_;
};

}  // namespace tilewright::schedule::testing
