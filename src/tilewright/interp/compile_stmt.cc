// Statements as trees of objects that run themselves (Exec): one class per kind of statement, each
// with the section of docs/ir.md that it follows. Names are resolved to slots of the Machine once,
// before the run. With a checker, concurrent loops run in random order and accesses are reported.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/interp/checker.h"
#include "tilewright/interp/compile_expr.h"
#include "tilewright/interp/scalar.h"

namespace tilewright::interp {
namespace {

std::vector<int64_t> values_of(const std::vector<Linear>& sums, Machine& m) {
  std::vector<int64_t> values;
  for (const Linear& sum : sums) values.push_back(sum.get(m));
  return values;
}

/// Section 5.6.
struct SeqExec final : Exec {
  void run(Machine& m) const override {
    for (const ExecPtr& s : stmts) s->run(m);
  }
  std::vector<ExecPtr> stmts;
};

/// Section 5.5.
struct IfExec final : Exec {
  void run(Machine& m) const override {
    if (condition->get(m) != 0) {
      then_body->run(m);
    } else if (else_body) {
      else_body->run(m);
    }
  }
  EvalPtr<int64_t> condition;
  ExecPtr then_body, else_body;
};

/// Section 5.1: in order; the checking mode runs concurrent loops in random order (section 7).
struct ForExec final : Exec {
  explicit ForExec(const For& f) : loop(f) {}
  void run(Machine& m) const override {
    const int64_t n = extent.get(m);
    if (n < 0) fault(fmt::format("loop `{}` has the negative extent {}", loop.var.name(), n));
    const bool concurrent = loop.kind != ForKind::Serial && loop.kind != ForKind::Unroll;
    if (concurrent && m.checker != nullptr) return run_shuffled(m, n);
    for (int64_t i = 0; i < n; ++i) {
      m.vars[slot] = i;
      body->run(m);
      poll(m);
    }
  }
  void run_shuffled(Machine& m, int64_t n) const {
    const uint32_t instance = m.checker->enter_loop(loop);
    for (const int64_t i : m.checker->shuffled(n)) {
      const TaskId outer = m.checker->enter_iteration(instance, i);
      m.vars[slot] = i;
      body->run(m);
      m.checker->leave_iteration(outer);
      poll(m);
    }
  }
  static void poll(Machine& m) {
    if ((++m.ticks & 0xfff) != 0) return;
    if (m.stop != nullptr && *m.stop && (*m.stop)())
      throw Fault{{ErrorKind::Interrupted, "the run was stopped", {}, {}, {}, {}}};
    if (m.checker != nullptr && m.checker->full()) throw Fault{{}, true};
  }
  For loop;
  int slot = 0;
  Linear extent;
  ExecPtr body;
};

/// Section 5.2.
struct BlockExec final : Exec {
  explicit BlockExec(const Block& b) : block(b) {}
  void run(Machine& m) const override {
    const std::string* outer = std::exchange(m.block, &block.name);
    if (!guard || guard->get(m) != 0) {
      for (const Bound& b : bounds) {
        const int64_t value = b.binding.get(m), extent = b.extent.get(m);
        if (static_cast<uint64_t>(value) >= static_cast<uint64_t>(extent))
          outside(b, value, extent);
        m.vars[b.slot] = value;
      }
      body->run(m);
    }
    m.block = outer;
  }
  [[noreturn]] void outside(const auto& b, int64_t value, int64_t extent) const {
    throw Fault{{ErrorKind::Invalid,
                 fmt::format("block `{}`: iteration `{}` is {}, outside its extent {}", block.name,
                             b.name, value, extent),
                 {},
                 {},
                 {},
                 {}},
                true};
  }
  struct Bound {
    std::string name;
    int slot;
    Linear binding, extent;
  };
  Block block;
  EvalPtr<int64_t> guard;
  std::vector<Bound> bounds;
  ExecPtr body;
};

/// Section 5.3.
template <class T, Combine C>
struct StoreExec final : Exec {
  using R = typename T::Repr;
  void run(Machine& m) const override {
    const R v = value->get(m);
    const int64_t offset = access.offset(m);
    const BufferState& b = m.buffers[access.slot];
    if (b.shadow != nullptr) m.checker->write(m, access, offset, C, atomic);
    if constexpr (C == Combine::Set) {
      write_element<T>(b.data, offset, v);
    } else {
      write_element<T>(b.data, offset, combine(read_element<T>(b.data, offset), v));
    }
  }
  static R combine(R a, R b) {
    constexpr BinaryOp kOp = C == Combine::Add   ? BinaryOp::Add
                             : C == Combine::Mul ? BinaryOp::Mul
                             : C == Combine::Max ? BinaryOp::Max
                                                 : BinaryOp::Min;
    if constexpr (T::kFloat) {
      return float_binary<T, kOp>(a, b);
    } else {
      return int_binary<T, kOp>(a, b);
    }
  }
  Element access;
  EvalPtr<R> value;
  bool atomic = false;
};

/// Section 5.4.
struct AllocExec final : Exec {
  void run(Machine& m) const override { allocate(m, m.buffers[slot], buffer, values_of(shape, m)); }
  int slot = 0;
  Buffer buffer;
  std::vector<Linear> shape;
};

/// Section 5.7: the callee's body, its parameters bound to views of the regions.
struct CallExec final : Exec {
  struct RegionCode {
    int slot;
    Buffer buffer;
    std::vector<Linear> begins, sizes;
  };
  void run(Machine& m) const override {
    std::vector<int64_t> vars(static_cast<size_t>(program->num_vars));
    std::vector<BufferState> buffers(static_cast<size_t>(program->num_buffers));
    for (size_t i = 0; i < scalars.size(); ++i) {
      vars[i] = scalars[i].get(m);
      const Scalar& s = callee->scalars[i];
      if (vars[i] < s.lo || vars[i] > s.hi)
        fault(fmt::format("call of `{}`: scalar `{}` is {}, outside {}..{}", callee->name,
                          s.var.name(), vars[i], s.lo, s.hi));
    }
    Machine inner = m;
    inner.vars = vars.data();
    inner.buffers = buffers.data();
    for (size_t i = 0; i < regions.size(); ++i)
      bind(m, regions[i], values_of(program->param_shapes[i], inner), callee->params[i],
           buffers[i]);
    program->body->run(inner);
    m.ticks = inner.ticks;
  }

  /// Axes of size 1 that the parameter does not have are dropped.
  void bind(Machine& m, const RegionCode& region, std::vector<int64_t> shape, const Param& param,
            BufferState& view) const {
    const BufferState& source = m.buffers[region.slot];
    const std::vector<int64_t> begins = values_of(region.begins, m);
    const std::vector<int64_t> sizes = values_of(region.sizes, m);
    int64_t origin = 0;
    std::vector<int64_t> strides;
    for (size_t k = 0; k < begins.size(); ++k) {
      if (begins[k] < 0 || sizes[k] < 0 || begins[k] > source.extents[k] - sizes[k])
        throw Fault{{ErrorKind::Invalid,
                     fmt::format("call of `{}`: region {}:+{} on axis {} of `{}` leaves 0..{}",
                                 callee->name, begins[k], sizes[k], k, region.buffer.name(),
                                 source.extents[k]),
                     {},
                     {},
                     {},
                     {}},
                    true};
      origin += begins[k] * source.strides[k];
      while (strides.size() < shape.size() && shape[strides.size()] == 1 && sizes[k] != 1)
        strides.push_back(0);
      if (strides.size() < shape.size() && shape[strides.size()] == sizes[k]) {
        strides.push_back(source.strides[k]);
      } else if (sizes[k] != 1) {
        mismatch(region, sizes, param, shape);
      }
    }
    while (strides.size() < shape.size() && shape[strides.size()] == 1) strides.push_back(0);
    if (strides.size() != shape.size()) mismatch(region, sizes, param, shape);
    const int64_t bytes = bit_width(region.buffer.dtype()) / 8;
    view.data = source.data + origin * bytes;
    view.shadow = source.shadow != nullptr ? source.shadow + origin : nullptr;
    view.extents = std::move(shape);
    view.strides = std::move(strides);
  }

  [[noreturn]] void mismatch(const RegionCode& region, const std::vector<int64_t>& sizes,
                             const Param& param, const std::vector<int64_t>& shape) const {
    fault(
        fmt::format("call of `{}`: a region of `{}` of shape {} does not fit parameter `{}` of "
                    "shape {}",
                    callee->name, region.buffer.name(), to_string(sizes), param.buffer.name(),
                    to_string(shape)));
  }

  std::shared_ptr<const Func> callee;
  ProgramPtr program;
  std::vector<Linear> scalars;
  std::vector<RegionCode> regions;
};

template <class T, Combine C>
ExecPtr store_of(const ExprCompiler& names, const Store& x, bool atomic) {
  auto node = std::make_unique<StoreExec<T, C>>();
  node->access = names.access(x.buffer, x.indices);
  node->value = names.eval<typename T::Repr>(x.value);
  node->atomic = atomic;
  return node;
}

template <class T>
ExecPtr store_to(const ExprCompiler& names, const Store& x, bool atomic) {
  switch (x.combine) {
    case Combine::Set:
      return store_of<T, Combine::Set>(names, x, atomic);
    case Combine::Add:
      return store_of<T, Combine::Add>(names, x, atomic);
    case Combine::Mul:
      return store_of<T, Combine::Mul>(names, x, atomic);
    case Combine::Max:
      return store_of<T, Combine::Max>(names, x, atomic);
    case Combine::Min:
      return store_of<T, Combine::Min>(names, x, atomic);
  }
  TW_CHECK(false, "unknown combine");
}

class FuncCompiler {
 public:
  ProgramPtr func(const Func& f) {
    auto program = std::make_shared<CompiledFunc>();
    for (const Scalar& s : f.scalars) names_.add_var(s.var);
    for (const Param& p : f.params) {
      program->param_shapes.push_back(names_.linear(p.buffer.shape()));
      names_.add_buffer(p.buffer);
    }
    program->body = stmt(f.body);
    program->num_vars = names_.num_vars();
    program->num_buffers = names_.num_buffers();
    return program;
  }

 private:
  ExecPtr stmt(const Stmt& s) {
    if (!s) return std::make_unique<SeqExec>();
    return match(
        s, [&](const For& x) { return loop(x); }, [&](const Block& x) { return block(x); },
        [&](const Store& x) { return store(x); },
        [&](const Alloc& x) -> ExecPtr {
          auto node = std::make_unique<AllocExec>();
          node->shape = names_.linear(x.buffer.shape());
          node->slot = names_.add_buffer(x.buffer);
          node->buffer = x.buffer;
          return node;
        },
        [&](const If& x) -> ExecPtr {
          auto node = std::make_unique<IfExec>();
          node->condition = names_.eval<int64_t>(x.condition);
          node->then_body = stmt(x.then_body);
          if (x.else_body) node->else_body = stmt(x.else_body);
          return node;
        },
        [&](const Seq& x) -> ExecPtr {
          auto node = std::make_unique<SeqExec>();
          for (const Stmt& child : x.stmts) node->stmts.push_back(stmt(child));
          return node;
        },
        [&](const Call& x) { return call(x); });
  }

  ExecPtr loop(const For& x) {
    auto node = std::make_unique<ForExec>(x);
    node->extent = names_.linear(x.extent);
    node->slot = names_.add_var(x.var);
    if (const auto n = as_int(x.extent)) extents_[node->slot] = *n;
    node->body = stmt(x.body);
    return node;
  }

  ExecPtr block(const Block& x) {
    auto node = std::make_unique<BlockExec>(x);
    if (x.guard) node->guard = names_.eval<int64_t>(x.guard);
    // Bindings see only the loops around, so all are compiled before any iteration is declared.
    std::vector<int> aliases;
    for (const Iter& iter : x.iters) {
      aliases.push_back(loop_in_range(iter));
      if (aliases.back() < 0)
        node->bounds.push_back(
            {iter.var.name(), 0, names_.linear(iter.binding), names_.linear(iter.extent)});
    }
    auto bound = node->bounds.begin();
    for (size_t i = 0; i < x.iters.size(); ++i) {
      if (aliases[i] >= 0) {
        names_.alias_var(x.iters[i].var, aliases[i]);
      } else {
        (bound++)->slot = names_.add_var(x.iters[i].var);
      }
    }
    atomic_ = std::any_of(x.marks.begin(), x.marks.end(),
                          [](const Mark& mark) { return mark.kind == MarkKind::Atomic; });
    node->body = stmt(x.body);
    atomic_ = false;
    return node;
  }

  /// The slot of the loop an iteration is bound to directly, if it cannot leave the iteration's
  /// extent; else -1. Such an iteration costs nothing at run time.
  int loop_in_range(const Iter& iter) const {
    const auto* r = iter.binding.as<VarRef>();
    const auto extent = as_int(iter.extent);
    if (r == nullptr || !extent) return -1;
    const int slot = names_.var_slot(r->var);
    const auto known = extents_.find(slot);
    return known != extents_.end() && known->second <= *extent ? slot : -1;
  }

  ExecPtr store(const Store& x) const {
    return with_type(x.buffer.dtype(), [&]<class T>(T) { return store_to<T>(names_, x, atomic_); });
  }

  ExecPtr call(const Call& x) {
    const Func& f = *x.callee;
    if (x.args.size() != f.scalars.size() + f.params.size())
      fault(fmt::format("call of `{}` with {} arguments, not {}", f.name, x.args.size(),
                        f.scalars.size() + f.params.size()));
    auto node = std::make_unique<CallExec>();
    node->callee = x.callee;
    node->program = compile(f);
    for (size_t i = 0; i < x.args.size(); ++i) {
      const auto* scalar = std::get_if<Expr>(&x.args[i]);
      if ((scalar != nullptr) != (i < f.scalars.size()))
        fault(fmt::format("call of `{}`: argument {} is of the wrong kind", f.name, i));
      if (scalar != nullptr) {
        node->scalars.push_back(names_.linear(*scalar));
        continue;
      }
      const Region& region = std::get<Region>(x.args[i]);
      if (region.dims.size() != region.buffer.rank())
        fault(fmt::format("call of `{}`: a region of `{}` has {} axes, not {}", f.name,
                          region.buffer.name(), region.dims.size(), region.buffer.rank()));
      CallExec::RegionCode code{names_.buffer_slot(region.buffer), region.buffer, {}, {}};
      for (const auto& [begin, size] : region.dims) {
        code.begins.push_back(names_.linear(begin));
        code.sizes.push_back(names_.linear(size));
      }
      node->regions.push_back(std::move(code));
    }
    return node;
  }

  ExprCompiler names_;
  std::map<int, int64_t> extents_;  ///< constant extents of loops, by slot
  bool atomic_ = false;
};

}  // namespace

ProgramPtr compile(const Func& func) { return FuncCompiler().func(func); }

}  // namespace tilewright::interp
