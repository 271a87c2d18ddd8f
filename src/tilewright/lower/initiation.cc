#include "tilewright/lower/initiation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/bank_accesses.h"

namespace tilewright::lower {
namespace {

/// The first of `loops` that the element stored to does not depend on.
const For* repeated_in(const std::vector<const For*>& loops, const Store& store,
                       const VarMap& bindings) {
  for (const For* loop : loops) {
    if (is_const_int(loop->extent, 1)) continue;
    if (std::none_of(store.indices.begin(), store.indices.end(), [&](const Expr& index) {
          return uses(substitute(index, bindings), loop->var);
        }))
      return loop;
  }
  return nullptr;
}

std::optional<std::string> sums_in(const Stmt& s, std::vector<const For*>& unrolled,
                                   const VarMap& bindings) {
  if (const auto* store = s.as<Store>()) {
    const bool ordered = is_float(store->buffer.dtype()) &&
                         (store->combine == Combine::Add || store->combine == Combine::Mul);
    const For* loop = ordered ? repeated_in(unrolled, *store, bindings) : nullptr;
    if (loop == nullptr) return std::nullopt;
    return fmt::format(
        "the math is exact: several products of one reduction in one iteration (loop {}, of {}) "
        "need fast math or integers",
        loop->var.name(), store->buffer.name());
  }
  if (const auto* block = s.as<Block>()) {
    VarMap inside;
    for (const Iter& iter : block->iters) inside[iter.var] = iter.binding;
    return sums_in(block->body, unrolled, inside);
  }
  const auto* loop = s.as<For>();
  if (loop != nullptr) unrolled.push_back(loop);
  std::optional<std::string> why;
  for (const Stmt& child : children(s))
    if (child && !why) why = sums_in(child, unrolled, bindings);
  if (loop != nullptr) unrolled.pop_back();
  return why;
}

bool has_initiation(const For& loop) {
  return find_mark(loop.marks, MarkKind::InitiationInterval) != nullptr;
}

/// A store inside of a counted loop, with what it loads.
struct CountedStore {
  Store store;  ///< over the variables of loops
  std::vector<const For*> unrolled;
};

/// Reads the stores of a counted loop. errors: Invalid (a loop that is not unrolled), Unsupported
/// (a call).
Status read_stores(const Stmt& s, std::vector<const For*>& unrolled, const VarMap& bindings,
                   std::vector<CountedStore>& out) {
  if (s.as<Store>()) {
    Store bound = *substitute(s, bindings).as<Store>();
    out.push_back({std::move(bound), unrolled});
    return {};
  }
  if (const auto* call = s.as<Call>())
    return fail(ErrorKind::Unsupported,
                fmt::format("{} is called in a loop with mark ii", call->callee->name));
  VarMap inside = bindings;
  if (const auto* block = s.as<Block>()) {
    for (const Iter& iter : block->iters) inside[iter.var] = iter.binding;
    return read_stores(block->body, unrolled, inside, out);
  }
  const auto* loop = s.as<For>();
  if (loop != nullptr) {
    if (loop->kind != ForKind::Unroll || !as_int(loop->extent))
      return fail(
          ErrorKind::Invalid,
          fmt::format("loop {}, in a loop with mark ii, is not unrolled", loop->var.name()));
    unrolled.push_back(loop);
  }
  for (const Stmt& child : children(s))
    if (child) TW_TRY_STATUS(read_stores(child, unrolled, bindings, out));
  if (loop != nullptr) unrolled.pop_back();
  return {};
}

/// The type of what is multiplied, before it is made wider.
DType narrow(const Expr& e) {
  const auto* c = e.as<Cast>();
  return c != nullptr && !c->bits && !c->a.as<IntImm>() ? narrow(c->a) : e.dtype();
}

class InitiationReader {
 public:
  InitiationReader(const Process& process, MathMode math, const hw::FpgaDevice& device,
                   hw::FpgaPath path)
      : math_(math), device_(device), path_(path) {
    walk(process.body, [&](const Stmt& s) {
      if (const auto* alloc = s.as<Alloc>()) allocs_.emplace(alloc->buffer, *alloc);
    });
  }

  /// `around`: the loops directly around `s`, each the only statement in the one before.
  Status stmt(const Stmt& s, std::vector<const For*> around) {
    const auto* loop = s.as<For>();
    if (loop == nullptr) {
      for (const Stmt& child : children(s))
        if (child) TW_TRY_STATUS(stmt(child, {}));
      return {};
    }
    around.push_back(loop);
    if (!has_initiation(*loop)) return stmt(loop->body, std::move(around));
    out_.push_back(TW_TRY(of(std::move(around))));
    return {};
  }
  std::vector<Initiation> take() { return std::move(out_); }

 private:
  Result<Initiation> of(std::vector<const For*> nest) {
    const For& loop = *nest.back();
    Initiation out;
    out.loop = loop.var.name();
    out.nest = std::move(nest);
    out.wanted = int_mark(loop.marks, MarkKind::InitiationInterval).value_or(1);
    if (auto why = sums_out_of_order(loop, math_))
      return fail(ErrorKind::Unsupported,
                  fmt::format("loop {} cannot be unrolled inside", out.loop), *why);
    std::vector<CountedStore> stores;
    std::vector<const For*> unrolled;
    TW_TRY_STATUS(read_stores(loop.body, unrolled, {}, stores));
    TW_TRY_STATUS(count_ports(stores, out));
    for (const CountedStore& s : stores) TW_TRY_STATUS(recur(s, out));
    return out;
  }

  Status count_ports(const std::vector<CountedStore>& stores, Initiation& out) {
    std::vector<Buffer> order;
    std::map<std::pair<Buffer, bool>, std::vector<ElementAccess>> accesses;
    auto add = [&](const Buffer& b, bool writes, const std::vector<Expr>& indices,
                   const CountedStore& s) {
      if (!allocs_.contains(b) || fpga_memory(b.scope()) == "reg") return;
      if (std::find(order.begin(), order.end(), b) == order.end()) order.push_back(b);
      accesses[{b, writes}].push_back({indices, s.unrolled});
    };
    for (const CountedStore& s : stores) {
      walk(
          make(Store(s.store)), [](const Stmt&) {},
          [&](const Expr& e) {
            walk(e, [&](const Expr& x) {
              if (const auto* l = x.as<Load>()) add(l->buffer, false, l->indices, s);
            });
          });
      if (s.store.combine != Combine::Set) add(s.store.buffer, false, s.store.indices, s);
      add(s.store.buffer, true, s.store.indices, s);
    }
    for (const Buffer& b : order) {
      const std::vector<Banking> banking = TW_TRY(banking_of(allocs_.at(b)));
      for (const bool writes : {false, true}) {
        const auto some = accesses.find({b, writes});
        if (some == accesses.end()) continue;
        const int64_t most = most_in_a_bank(some->second, b, banking, out.nest);
        if (most <= out.ports) continue;
        out.ports = most;
        out.busiest = fmt::format("{} {} of one bank of {} in an iteration", most,
                                  writes ? "writes" : "reads", b.name());
      }
    }
    return {};
  }

  /// Cycles from reading an element to reading it again when it is updated.
  Result<int64_t> latency_of(const Store& store) const {
    const auto* product = store.value.as<Binary>();
    const bool sum = store.combine == Combine::Add;
    if (sum && product != nullptr && product->op == BinaryOp::Mul) {
      const std::string type(tilewright::name(narrow(product->a)));
      if (const auto* row = device_.find("mac", type, path_)) return row->recurrence;
    }
    const std::string_view op = sum                             ? "add"
                                : store.combine == Combine::Mul ? "mul"
                                : store.combine == Combine::Max ? "max"
                                                                : "min";
    const std::string type(tilewright::name(store.buffer.dtype()));
    const auto* row = device_.find(op, type, path_);
    if (row == nullptr)
      return fail(ErrorKind::Unsupported,
                  fmt::format("{} has no operator {} of {}", device_.name, op, type));
    return row->latency + kBankCycles;
  }

  Status recur(const CountedStore& s, Initiation& out) {
    const Store& store = s.store;
    bool itself = false;
    walk(store.value, [&](const Expr& e) {
      if (const auto* l = e.as<Load>()) itself |= l->buffer == store.buffer;
    });
    if (itself)
      return fail(ErrorKind::Unsupported,
                  fmt::format("loop {} computes elements of {} from elements of {} itself",
                              out.loop, store.buffer.name(), store.buffer.name()));
    if (store.combine == Combine::Set || !allocs_.contains(store.buffer)) return {};
    int64_t distance = 1;
    bool reduces = false;
    for (size_t i = out.nest.size(); i-- > 0 && !reduces;) {
      const For& loop = *out.nest[i];
      const int64_t n = as_int(loop.extent).value_or(1);
      if (n == 1) continue;
      reduces = std::none_of(store.indices.begin(), store.indices.end(),
                             [&](const Expr& index) { return uses(index, loop.var); });
      if (!reduces) distance *= n;
    }
    if (!reduces) return {};
    const int64_t latency = TW_TRY(latency_of(store));
    const int64_t interval = (latency + distance - 1) / distance;
    if (!out.sum.empty() && interval <= out.recurrence) return {};
    out.recurrence = interval;
    out.sum = store.buffer.name();
    out.latency = latency;
    out.distance = distance;
    return {};
  }

  /// To read a bank and to write it, besides the operator between.
  static constexpr int64_t kBankCycles = 3;

  MathMode math_;
  const hw::FpgaDevice& device_;
  hw::FpgaPath path_;
  std::map<Buffer, Alloc> allocs_;
  std::vector<Initiation> out_;
};

}  // namespace

std::optional<std::string> sums_out_of_order(const For& loop, MathMode math) {
  if (math == MathMode::Fast) return std::nullopt;
  std::vector<const For*> unrolled;
  return sums_in(loop.body, unrolled, {});
}

std::string Initiation::why() const {
  if (cycles() == 1) return "";
  if (cycles() == wanted) return fmt::format("{} cycles are wanted", wanted);
  if (cycles() == ports) return busiest;
  return fmt::format(
      "{} cycles from one update of an element of {} to the next, which comes after "
      "{} iteration{}",
      latency, sum, distance, distance == 1 ? "" : "s");
}

Result<std::vector<Initiation>> initiations_of(const Process& process, MathMode math,
                                               const hw::FpgaDevice& device, hw::FpgaPath path) {
  InitiationReader reader(process, math, device, path);
  TW_TRY_STATUS(reader.stmt(process.body, {}));
  return reader.take();
}

}  // namespace tilewright::lower
