#include <algorithm>
#include <set>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_passes.h"

namespace tilewright::lower {
namespace {

/// Buffers used since the last barrier.
struct Used {
  std::set<Buffer> read, written;

  bool conflicts(const Used& later) const {
    const auto meets = [](const std::set<Buffer>& a, const std::set<Buffer>& b) {
      return std::any_of(a.begin(), a.end(), [&](const Buffer& x) { return b.contains(x); });
    };
    return meets(written, later.read) || meets(written, later.written) ||
           meets(read, later.written);
  }
  void add(const Used& other) {
    read.insert(other.read.begin(), other.read.end());
    written.insert(other.written.begin(), other.written.end());
  }
};

/// What `s` uses of memory that threads share.
Used used_by(const Stmt& s) {
  Used used;
  walk(
      s,
      [&](const Stmt& x) {
        const auto* store = x.as<Store>();
        if (store == nullptr || store->buffer.scope() == "local") return;
        used.written.insert(store->buffer);
        if (store->combine != Combine::Set) used.read.insert(store->buffer);
      },
      [&](const Expr& e) {
        if (const auto* l = e.as<Load>(); l && l->buffer.scope() != "local")
          used.read.insert(l->buffer);
      });
  return used;
}

bool has_thread_loop(const Stmt& s) {
  return contains(s, [](const Stmt& x) {
    const auto* loop = x.as<For>();
    return loop != nullptr && is_thread_loop(*loop);
  });
}

/// Whether threads meet inside `s`: it orders statements that threads share out.
bool has_parts(const Stmt& s) {
  return contains(s, [](const Stmt& x) {
    const auto* list = x.as<Seq>();
    return list != nullptr && std::any_of(list->stmts.begin(), list->stmts.end(),
                                          [](const Stmt& child) { return has_thread_loop(child); });
  });
}

class Inserter {
 public:
  /// `pending`: what was used before `s` and no barrier separates; afterwards what was used up to
  /// its end.
  Stmt run(const Stmt& s, Used& pending) {
    if (const auto* list = s.as<Seq>(); list && has_thread_loop(s)) {
      std::vector<Stmt> out;
      for (const Stmt& child : list->stmts) out.push_back(run(child, pending));
      return seq(std::move(out));
    }
    const auto* loop = s.as<For>();
    if (loop && goes_inside(*loop)) {
      For out = *loop;
      const Used before = pending;
      out.body = run(loop->body, pending);
      if (loop->kind != ForKind::Bind) {
        // Round again: the next iteration meets the end of this one.
        pending.add(before);
        out.body = run(loop->body, pending);
        pending.add(before);
      }
      return make(std::move(out));
    }
    if (const auto* branch = s.as<If>(); branch && has_thread_loop(s)) {
      If out = *branch;
      Used other = pending;
      out.then_body = run(branch->then_body, pending);
      if (branch->else_body) out.else_body = run(branch->else_body, other);
      pending.add(other);
      return make(std::move(out));
    }
    const Used now = used_by(s);
    const bool wait = pending.conflicts(now);
    if (wait) pending = {};
    pending.add(now);
    return wait ? seq({make_sync(), s}) : s;
  }

 private:
  /// Whether barriers may be needed between the statements or iterations of `loop`. Iterations of
  /// one statement that reads nothing it writes are free: each element is written once.
  static bool goes_inside(const For& loop) {
    if (has_parts(loop.body)) return true;
    if (is_thread_loop(loop) || !has_thread_loop(loop.body)) return false;
    if (loop.kind == ForKind::Bind) return true;
    const Used used = used_by(loop.body);
    return std::any_of(used.written.begin(), used.written.end(),
                       [&](const Buffer& b) { return used.read.contains(b); });
  }
};

}  // namespace

Stmt insert_syncs(const Stmt& kernel) {
  Used pending;
  return Inserter().run(kernel, pending);
}

}  // namespace tilewright::lower
