// Where allocations live, for all back-ends for CPUs.
//
//   alloc T: f32[64] local      ->  256 bytes on the stack of its function
//   alloc S: f32[8192] inside a parallel loop  ->  the running worker's part of the workspace
//
// What does not fit 16 KiB of stack goes to the workspace, outside of parallel loops to its shared
// part. Places there are given in program order, and what is allocated in one scope is free again
// after it, so lifetimes that do not overlap share bytes.
#include "tilewright/codegen/common/plan.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/check.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

constexpr int64_t kAlign = 64;

int64_t align_up(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Assigns places in two walks: sizes and stack first, workspace offsets second.
class Planner {
 public:
  explicit Planner(const Func& func) : bounds_(func) {}

  Status run(const Func& func) {
    TW_TRY_STATUS(collect(func.body, nullptr));
    // Registers first, then small buffers: what does not fit goes to the workspace.
    for (const bool registers : {true, false})
      for (const Entry& entry : allocs_)
        if ((entry.buffer.scope() == "local") == registers) choose(entry);
    shared_peak_ = worker_peak_ = 0;
    assign(func.body, false, 0, 0);
    plan_.info.symbol = symbol_of(func);
    plan_.info.shared_bytes = shared_peak_;
    plan_.info.per_worker_bytes = worker_peak_;
    return {};
  }

  KernelPlan take() { return std::move(plan_); }

 private:
  struct Entry {
    Buffer buffer;
    int64_t bytes;
    const void* context;  // the outlined loop around it, null for the kernel itself
  };

  void choose(const Entry& entry) {
    AllocPlacement& place = plan_.places[entry.buffer];
    place.bytes = entry.bytes;
    int64_t& stack = stack_used_[entry.context];
    if (stack + place.bytes <= kStackBudget) {
      stack += place.bytes;
      return;
    }
    place.bytes = align_up(place.bytes);
    place.where = entry.context ? AllocPlacement::Where::Worker : AllocPlacement::Where::Shared;
  }

  Status collect(const Stmt& s, const void* context) {
    if (const auto* alloc = s.as<Alloc>()) {
      allocs_.push_back(Entry{alloc->buffer, TW_TRY(bytes_of(alloc->buffer)), context});
      return {};
    }
    const auto* loop = s.as<For>();
    if (loop && is_outlined(*loop, context != nullptr)) context = s.get();
    for (const Stmt& child : children(s)) TW_TRY_STATUS(collect(child, context));
    return {};
  }

  Result<int64_t> bytes_of(const Buffer& buffer) const {
    int64_t elements = 1;
    for (size_t axis = 0; axis < buffer.rank(); ++axis) {
      const auto range = arith::const_range(buffer.shape()[axis], bounds_);
      if (!range)
        return fail(ErrorKind::Unsupported,
                    fmt::format("allocation {} has no upper bound on axis {}", buffer.name(), axis),
                    "a kernel's workspace is sized at compile time",
                    "give the scalars in its shape a range");
      elements *= std::max<int64_t>(range->second, 0);
    }
    return storage_bytes(buffer.dtype(), elements);
  }

  void assign(const Stmt& s, bool inside_parallel, int64_t shared, int64_t worker) {
    if (const auto* list = s.as<Seq>()) {
      for (const Stmt& child : list->stmts) {
        if (const auto* alloc = child.as<Alloc>()) {
          place(alloc->buffer, shared, worker);
        } else {
          assign(child, inside_parallel, shared, worker);
        }
      }
      return;
    }
    if (const auto* alloc = s.as<Alloc>()) return place(alloc->buffer, shared, worker);
    const auto* loop = s.as<For>();
    if (loop && is_outlined(*loop, inside_parallel)) inside_parallel = true;
    for (const Stmt& child : children(s)) assign(child, inside_parallel, shared, worker);
  }

  void place(const Buffer& buffer, int64_t& shared, int64_t& worker) {
    AllocPlacement& p = plan_.places.at(buffer);
    if (p.where == AllocPlacement::Where::Stack) return;
    int64_t& offset = p.where == AllocPlacement::Where::Shared ? shared : worker;
    p.offset = offset;
    offset += p.bytes;
    shared_peak_ = std::max(shared_peak_, shared);
    worker_peak_ = std::max(worker_peak_, worker);
  }

  arith::Bounds bounds_;
  KernelPlan plan_;
  std::vector<Entry> allocs_;
  std::map<const void*, int64_t> stack_used_;
  int64_t shared_peak_ = 0, worker_peak_ = 0;
};

/// The callee's buffers as views of regions: `p[i, j]` means `buffer[begin0 + i, begin1 + j]`.
using Views = std::map<Buffer, Region>;

std::vector<Expr> through(const Region& region, const std::vector<Expr>& indices) {
  const size_t rank = region.dims.size();
  std::vector<Expr> out;
  size_t next = 0;
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto& [begin, size] = region.dims[axis];
    // Axes of size one may be left out by the callee; they go first.
    const bool skip = rank - axis > indices.size() - next && is_const_int(size, 1);
    out.push_back(skip ? begin : begin + indices[next++]);
  }
  return out;
}

Expr view_loads(const Expr& e, const Views& views) {
  return rewrite(e, [&](const Expr& x) {
    const auto* l = x.as<Load>();
    if (l == nullptr) return x;
    const auto it = views.find(l->buffer);
    return it == views.end() ? x : load(it->second.buffer, through(it->second, l->indices));
  });
}

Result<Stmt> expand_call(const Call& call, int serial) {
  const Func& callee = *call.callee;
  VarMap scalars;
  Views views;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (const auto* e = std::get_if<Expr>(&call.args[i])) {
      scalars[callee.scalars.at(i).var] = *e;
      continue;
    }
    const Region& region = std::get<Region>(call.args[i]);
    const Buffer& formal = callee.params.at(i - callee.scalars.size()).buffer;
    size_t wide = 0;
    for (const auto& dim : region.dims) wide += is_const_int(dim.second, 1) ? 0 : 1;
    if (formal.rank() > region.dims.size() || wide > formal.rank())
      return fail(
          ErrorKind::Unsupported,
          fmt::format("intrinsic {}: argument {} has {} axes, parameter {} has {}", callee.name,
                      region.buffer.name(), region.dims.size(), formal.name(), formal.rank()));
    views[formal] = region;
  }
  const Stmt body = clone(
      callee.body, [&](const std::string& text) { return fmt::format("{}.call{}", text, serial); });
  return rewrite(
      body,
      [&](const Stmt& x) {
        const auto* store = x.as<Store>();
        if (store == nullptr) return x;
        const auto it = views.find(store->buffer);
        if (it == views.end()) return x;
        return make(Store{it->second.buffer, through(it->second, store->indices), store->value,
                          store->combine});
      },
      [&](const Expr& e) { return view_loads(substitute(e, scalars), views); });
}

bool holds_stores(const Stmt& body) {
  if (const auto* list = body.as<Seq>())
    return std::all_of(list->stmts.begin(), list->stmts.end(),
                       [](const Stmt& s) { return s.as<Store>() != nullptr; });
  return body.as<Store>() != nullptr;
}

/// Calls become the nest of the callee; a block around one becomes its guard.
Result<Stmt> expand_calls(const Stmt& s, const std::function<bool(const Call&)>& keeps,
                          int& serial) {
  Status status;
  Stmt out = rewrite(s, [&](const Stmt& x) -> Stmt {
    if (!status) return x;
    if (const auto* call = x.as<Call>()) {
      if (keeps && keeps(*call)) return x;
      Result<Stmt> body = expand_call(*call, serial++);
      if (body) return *body;
      status = tl::unexpected<Error>(body.error());
      return x;
    }
    const auto* block = x.as<Block>();
    if (block == nullptr || holds_stores(block->body)) return x;
    VarMap iters;
    for (const Iter& iter : block->iters) iters[iter.var] = iter.binding;
    const Stmt body = substitute(block->body, iters);
    return block->guard ? make(If{block->guard, body, Stmt()}) : body;
  });
  if (!status) return tl::unexpected<Error>(status.error());
  return out;
}

}  // namespace

std::string symbol_of(const Func& func) {
  std::string out = func.name;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "_");
  return out;
}

Result<KernelPlan> plan_kernel(const Func& func) {
  Planner planner(func);
  TW_TRY_STATUS(planner.run(func));
  return planner.take();
}

bool is_outlined(const For& loop, bool inside_parallel) {
  return loop.kind == ForKind::Parallel && !inside_parallel;
}

Captures captures(const For& loop) {
  Captures out;
  std::set<Var> bound = {loop.var};
  std::set<Buffer> allocated;
  walk(loop.body, [&](const Stmt& s) {
    if (const auto* f = s.as<For>()) bound.insert(f->var);
    if (const auto* b = s.as<Block>())
      for (const Iter& iter : b->iters) bound.insert(iter.var);
    if (const auto* a = s.as<Alloc>()) allocated.insert(a->buffer);
  });
  std::set<Buffer> buffers;
  std::set<Var> vars;
  auto expr = [&](const Expr& e) {
    if (const auto* r = e.as<VarRef>(); r && !bound.contains(r->var) && vars.insert(r->var).second)
      out.vars.push_back(r->var);
  };
  // Extents of a buffer's shape take part in addressing, so their variables are captured too.
  auto buffer = [&](const Buffer& b) {
    if (allocated.contains(b) || !buffers.insert(b).second) return;
    out.buffers.push_back(b);
    for (const Expr& extent : b.shape()) walk(extent, expr);
  };
  walk(
      loop.body,
      [&](const Stmt& s) {
        if (const auto* store = s.as<Store>()) buffer(store->buffer);
        if (const auto* call = s.as<Call>())
          for (const auto& arg : call->args)
            if (const auto* region = std::get_if<Region>(&arg)) buffer(region->buffer);
      },
      [&](const Expr& e) {
        expr(e);
        if (const auto* l = e.as<Load>()) buffer(l->buffer);
      });
  return out;
}

Result<Func> inline_calls(const Func& func, const std::function<bool(const Call&)>& keeps) {
  Func out = func;
  int serial = 0;
  out.body = TW_TRY(expand_calls(func.body, keeps, serial));
  return out;
}

std::optional<int64_t> const_elements(const Buffer& buffer) {
  int64_t elements = 1;
  for (const Expr& extent : buffer.shape()) {
    const auto value = as_int(extent);
    if (!value) return std::nullopt;
    elements *= *value;
  }
  return elements;
}

std::vector<Expr> strides_of(const Buffer& buffer, const std::vector<Expr>& given) {
  if (!given.empty()) return given;
  std::vector<Expr> strides(buffer.rank());
  Expr stride = int_imm(1);
  for (size_t axis = buffer.rank(); axis-- > 0;) {
    strides[axis] = stride;
    const Expr& extent = buffer.shape()[axis];
    const auto a = as_int(stride), b = as_int(extent);
    stride = a && b ? int_imm(*a * *b) : (a == 1 ? extent : stride * extent);
  }
  return strides;
}

}  // namespace tilewright::codegen
