// The pass `wait_for_products`: products of groups of warps that finish later.
//
//   for t @(pipeline=4) { sync.wait(2)  sync  copy t + 3 into its slot  sync.commit  products t }
//   =>
//   for t @(pipeline=4) {
//     sync.wait(2)  products t  sync.products(1)  sync  copy t + 3 ..  sync.commit
//   }
//   sync.products(0)
//
// The products of an iteration run beside the next one's, so that tensor units never wait for
// threads. The barrier that came before them now comes behind: the slot that the next copy
// overwrites is that of the iteration before, whose products all threads have then waited for. That
// products find their factors takes no barrier where the copy engine brings them: each thread waits
// for the engine itself. Products anywhere else are waited for at once.
#include "tilewright/lower/gpu_products.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_async.h"
#include "tilewright/lower/gpu_fragments.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

Stmt make_products_wait(int64_t runs) {
  static const Scalar count{Var("n"), 0, 64};
  return make_sync_call(kSyncProducts, {count}, {int_imm(runs)});
}

void flatten(const Stmt& s, std::vector<Stmt>& out) {
  if (const auto* list = s.as<Seq>(); list != nullptr && !is_products(s)) {
    for (const Stmt& child : list->stmts) flatten(child, out);
    return;
  }
  out.push_back(s);
}

class ProductWaiter {
 public:
  explicit ProductWaiter(std::set<Buffer> bulk) : bulk_(std::move(bulk)) {}

  Stmt run(const Stmt& s) const {
    if (is_products(s)) return seq({s, make_products_wait(0)});
    if (const auto* loop = s.as<For>()) {
      if (const auto late = with_late_wait(*loop)) return seq({*late, make_products_wait(0)});
      For out = *loop;
      out.body = run(loop->body);
      return make(std::move(out));
    }
    if (const auto* branch = s.as<If>()) {
      If out = *branch;
      out.then_body = run(branch->then_body);
      if (branch->else_body) out.else_body = run(branch->else_body);
      return make(std::move(out));
    }
    const auto* list = s.as<Seq>();
    if (list == nullptr) return s;
    std::vector<Stmt> out;
    for (const Stmt& child : list->stmts) out.push_back(run(child));
    return seq(std::move(out));
  }

 private:
  /// The loop with the products of an iteration beside those of the next; absent where it is not
  /// `wait, barrier, one run of products and copies of the engine`.
  std::optional<Stmt> with_late_wait(const For& loop) const {
    if (!pipeline_depth(loop)) return std::nullopt;
    std::vector<Stmt> parts;
    flatten(loop.body, parts);
    if (parts.size() < 3 || !waits_for(parts[0]) || !is_sync(parts[1])) return std::nullopt;
    std::vector<Stmt> copies(parts.begin() + 2, parts.end());
    const auto at = std::find_if(copies.begin(), copies.end(), is_products);
    if (at == copies.end()) return std::nullopt;
    std::vector<Stmt> out = {parts[0], *at, make_products_wait(1), parts[1]};
    copies.erase(at);
    if (!std::all_of(copies.begin(), copies.end(), [&](const Stmt& s) { return copies_bulk(s); }))
      return std::nullopt;
    out.insert(out.end(), copies.begin(), copies.end());
    For late = loop;
    late.body = seq(std::move(out));
    return make(std::move(late));
  }

  /// Whether `s` starts copies of the engine, or closes a group of them, and does nothing else.
  bool copies_bulk(const Stmt& s) const {
    if (is_commit(s)) return true;
    bool other = false;
    walk(s, [&](const Stmt& x) {
      if (const auto* store = x.as<Store>()) other |= !bulk_.contains(store->buffer);
      other |= x.as<Call>() != nullptr && !is_commit(x);
    });
    return !other;
  }

  std::set<Buffer> bulk_;
};

}  // namespace

std::optional<int64_t> waits_for_products(const Stmt& s) {
  const auto* call = s.as<Call>();
  if (call == nullptr || call->callee->name != kSyncProducts) return std::nullopt;
  return as_int(std::get<Expr>(call->args.at(0)));
}

bool is_product(const Stmt& s) {
  const auto* call = s.as<Call>();
  const hw::Intrinsic* in = call ? find_lanes_form(*call->callee) : nullptr;
  return in != nullptr && hw::gpu_instruction(*in)->asynchronous();
}

bool is_products(const Stmt& s) {
  if (is_product(s)) return true;
  if (!s.as<For>() && !s.as<Seq>()) return false;
  const std::vector<Stmt> parts = children(s);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), is_products);
}

Result<Func> wait_for_products(const Func& kernel) {
  if (!contains(kernel.body, is_product)) return kernel;
  std::set<Buffer> bulk;
  walk(kernel.body, [&](const Stmt& s) {
    if (const auto* alloc = s.as<Alloc>(); alloc && is_bulk(*alloc)) bulk.insert(alloc->buffer);
  });
  Func out = kernel;
  out.body = ProductWaiter(std::move(bulk)).run(kernel.body);
  return out;
}

}  // namespace tilewright::lower
