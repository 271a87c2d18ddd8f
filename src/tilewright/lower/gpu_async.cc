// The passes `keep_async_marks` and `insert_waits`: copies into shared memory that finish later.
//
//   for t @(pipeline=3) { sync  use slot t  copy t + 2 into its slot }
//   =>
//   for t @(pipeline=3) { sync.wait(1)  sync  use slot t  copy t + 2 ..  sync.commit }
//
// Copies that stand together are closed as one group by `sync.commit`; `sync.wait(n)` waits for all
// groups but the last n. In a loop of depth d, d - 2 groups may still be on their way at a barrier;
// anywhere else none may.
#include "tilewright/lower/gpu_async.h"

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

const Mark* mark_of(const Marks& marks, MarkKind kind) {
  const auto it =
      std::find_if(marks.begin(), marks.end(), [&](const Mark& m) { return m.kind == kind; });
  return it == marks.end() ? nullptr : &*it;
}

bool is_bulk_mark(const Mark& mark) {
  const auto* word = std::get_if<std::string>(&mark.value);
  return word != nullptr && *word == hw::kBulk;
}

Stmt make_commit() {
  static const Stmt commit = make_sync_call(kSyncCommit, {}, {});
  return commit;
}
Stmt make_wait(int64_t groups) {
  static const Scalar count{Var("n"), 0, 64};
  return make_sync_call(kSyncWait, {count}, {int_imm(groups)});
}

class Waiter {
 public:
  explicit Waiter(std::set<Buffer> async) : async_(std::move(async)) {}

  /// `late`: groups that a barrier in `s` need not wait for.
  Stmt run(const Stmt& s, int64_t late) const {
    if (is_sync(s)) return seq({make_wait(late), s});
    if (const auto* loop = s.as<For>()) {
      const auto depth = pipeline_depth(*loop);
      if (!depth && copies_only(s)) return seq({s, make_commit()});
      For out = *loop;
      out.body = run(loop->body, depth ? *depth - 2 : late);
      return make(std::move(out));
    }
    if (const auto* branch = s.as<If>(); branch && !copies_only(s)) {
      If out = *branch;
      out.then_body = run(branch->then_body, late);
      if (branch->else_body) out.else_body = run(branch->else_body, late);
      return make(std::move(out));
    }
    if (const auto* list = s.as<Seq>()) return run_list(*list, late);
    return copies_only(s) ? seq({s, make_commit()}) : s;
  }

 private:
  /// Copies that stand together are one group.
  Stmt run_list(const Seq& list, int64_t late) const {
    std::vector<Stmt> out;
    bool started = false;
    for (const Stmt& child : list.stmts) {
      if (plain_copies(child) || child.as<Alloc>()) {
        out.push_back(child);
        started |= child.as<Alloc>() == nullptr;
        continue;
      }
      if (std::exchange(started, false)) out.push_back(make_commit());
      out.push_back(run(child, late));
    }
    if (started) out.push_back(make_commit());
    return seq(std::move(out));
  }

  bool plain_copies(const Stmt& s) const {
    return copies_only(s) && !contains(s, [](const Stmt& x) {
             const auto* loop = x.as<For>();
             return loop != nullptr && pipeline_depth(*loop).has_value();
           });
  }

  /// Whether `s` stores, and to asynchronous buffers alone.
  bool copies_only(const Stmt& s) const {
    bool any = false, other = false;
    walk(s, [&](const Stmt& x) {
      if (const auto* store = x.as<Store>()) (async_.contains(store->buffer) ? any : other) = true;
      other |= x.as<Call>() != nullptr;
    });
    return any && !other;
  }

  std::set<Buffer> async_;
};

}  // namespace

Stmt make_sync_call(const char* name, std::vector<Scalar> scalars, std::vector<Expr> values) {
  auto func = std::make_shared<Func>();
  func->name = name;
  func->scalars = std::move(scalars);
  func->body = seq({});
  Call call{std::move(func), {}};
  for (Expr& value : values) call.args.emplace_back(std::move(value));
  return make(std::move(call));
}

bool is_sync_call(const Call& call) { return call.callee->name.starts_with("sync."); }

bool is_commit(const Stmt& s) {
  const auto* call = s.as<Call>();
  return call != nullptr && call->callee->name == kSyncCommit;
}

std::optional<int64_t> waits_for(const Stmt& s) {
  const auto* call = s.as<Call>();
  if (call == nullptr || call->callee->name != kSyncWait) return std::nullopt;
  return as_int(std::get<Expr>(call->args.at(0)));
}

std::optional<int64_t> pipeline_depth(const For& loop) {
  for (const Mark& mark : loop.marks)
    if (const auto* depth = std::get_if<int64_t>(&mark.value);
        depth && mark.kind == MarkKind::Pipeline && *depth >= 2)
      return *depth;
  return std::nullopt;
}

bool is_async(const Alloc& alloc) { return mark_of(alloc.marks, MarkKind::Async) != nullptr; }

bool is_bulk(const Alloc& alloc) {
  const Mark* mark = mark_of(alloc.marks, MarkKind::Async);
  return mark != nullptr && is_bulk_mark(*mark);
}

Result<Func> keep_async_marks(const Func& func) {
  std::set<Buffer> async, bulk, other;
  walk(func.body, [&](const Stmt& s) {
    const auto* block = s.as<Block>();
    if (block == nullptr) return;
    walk(block->body, [&](const Stmt& x) {
      const auto* store = x.as<Store>();
      if (store == nullptr || store->buffer.scope() != "shared") return;
      const Mark* mark = mark_of(block->marks, MarkKind::Async);
      const bool copies = store->combine == Combine::Set && mark != nullptr;
      (!copies ? other : is_bulk_mark(*mark) ? bulk : async).insert(store->buffer);
    });
  });
  Func out = func;
  out.body = rewrite(func.body, [&](const Stmt& s) {
    const auto* alloc = s.as<Alloc>();
    if (alloc == nullptr || other.contains(alloc->buffer) || is_async(*alloc)) return s;
    const bool plain = async.contains(alloc->buffer);
    if (!plain && !bulk.contains(alloc->buffer)) return s;
    Alloc marked = *alloc;
    marked.marks.push_back({MarkKind::Async, int64_t{1}});
    if (!plain) marked.marks.back().value = hw::kBulk;
    return make(std::move(marked));
  });
  return out;
}

Result<Func> insert_waits(const Func& kernel) {
  std::set<Buffer> async;
  walk(kernel.body, [&](const Stmt& s) {
    if (const auto* alloc = s.as<Alloc>(); alloc && is_async(*alloc)) async.insert(alloc->buffer);
  });
  if (async.empty()) return kernel;
  Func out = kernel;
  out.body = Waiter(std::move(async)).run(kernel.body, 0);
  return out;
}

}  // namespace tilewright::lower
