#include "tilewright/codegen/gpu/speculate.h"

#include <algorithm>
#include <map>
#include <string>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::codegen {
namespace {

/// What holds where a statement stands; conditions are not used for the ranges of variables.
struct Place {
  arith::Bounds bounds;
  std::set<Var> vars;
  std::vector<Expr> conditions;

  Place inside(const For& loop) const {
    Place out = *this;
    out.bounds.bind(loop.var, loop.extent);
    out.vars.insert(loop.var);
    return out;
  }
};

/// A thread's own array.
struct Own {
  std::set<Var> around;                        ///< variables of the loops around its allocation
  std::vector<Var> axes;                       ///< stand for an element's indices
  std::vector<std::set<std::string>> setters;  ///< by store that sets: conditions, of `axes`
};

class Finder {
 public:
  Finder(const Func& kernel, const lower::SharedPlan& shared) : kernel_(kernel), shared_(shared) {}

  std::set<const If*> run() {
    Place top{arith::Bounds(kernel_), {}, {}};
    for (const Scalar& s : kernel_.scalars) top.vars.insert(s.var);
    visit(kernel_.body, top, false);
    visit(kernel_.body, top, true);
    return std::move(found_);
  }

 private:
  /// First gathers who sets elements, then judges conditions.
  void visit(const Stmt& s, const Place& place, bool judge) {
    if (const auto* loop = s.as<For>()) return visit(loop->body, place.inside(*loop), judge);
    if (const auto* list = s.as<Seq>())
      for (const Stmt& child : list->stmts) visit(child, place, judge);
    if (const auto* alloc = s.as<Alloc>(); alloc && !judge && alloc->buffer.scope() == "local") {
      Own& own = own_[alloc->buffer];
      own.around = place.vars;
      for (size_t axis = 0; axis < alloc->buffer.rank(); ++axis)
        own.axes.emplace_back("axis " + std::to_string(axis));  // as no loop is called
    }
    if (const auto* store = s.as<Store>(); store && !judge && store->combine == Combine::Set) {
      const auto it = own_.find(store->buffer);
      if (it == own_.end()) return;
      std::set<std::string>& known = it->second.setters.emplace_back();
      for (const Expr& condition : place.conditions)
        if (const auto text = of_element(condition, *store, it->second, place)) known.insert(*text);
    }
    if (const auto* call = s.as<Call>(); call && !judge)  // sets elements without conditions
      for (const auto& arg : call->args)
        if (const auto* region = std::get_if<Region>(&arg); region && own_.contains(region->buffer))
          own_.at(region->buffer).setters.emplace_back();
    const auto* branch = s.as<If>();
    if (branch == nullptr) return;
    Place inside = place;
    for (const Expr& condition : lower::conjuncts(branch->condition))
      inside.conditions.push_back(condition);
    if (judge && !branch->else_body && harmless(branch->then_body, *branch, place))
      found_.insert(branch);
    visit(branch->then_body, inside, judge);
    if (branch->else_body) visit(branch->else_body, place, judge);
  }

  /// The condition in terms of the element that `store` writes; absent if it depends on more.
  std::optional<std::string> of_element(const Expr& condition, const Store& store, const Own& own,
                                        const Place& place) const {
    VarMap digits;
    arith::Bounds bounds = place.bounds;
    for (size_t axis = 0; axis < store.indices.size(); ++axis) {
      bounds.bind(own.axes[axis], store.buffer.shape()[axis]);
      arith::Affine sum = arith::as_affine(store.indices[axis]);
      if (sum.constant != 0) continue;
      std::sort(sum.terms.begin(), sum.terms.end(),
                [](const auto& a, const auto& b) { return a.second < b.second; });
      int64_t span = 1;  // of the smaller digits
      VarMap here;
      for (const auto& [term, step] : sum.terms) {
        const auto* var = term.as<VarRef>();
        const auto range = arith::const_range(term, place.bounds);
        if (var == nullptr || step < span || !range || range->first != 0) {
          here.clear();
          break;
        }
        here[var->var] = ref(own.axes[axis]) / step % (range->second + 1);
        span = step * (range->second + 1);
      }
      digits.merge(here);
    }
    for (const Var& var : free_vars(condition))
      if (!own.around.contains(var) && !digits.contains(var)) return std::nullopt;
    return print(arith::simplify(substitute(condition, digits), bounds));
  }

  bool harmless(const Stmt& s, const If& test, const Place& place) const {
    if (const auto* loop = s.as<For>()) return harmless(loop->body, test, place.inside(*loop));
    if (const auto* branch = s.as<If>())
      return !branch->else_body && readable(branch->condition, place) &&
             harmless(branch->then_body, test, place);
    if (const auto* list = s.as<Seq>())
      return std::all_of(list->stmts.begin(), list->stmts.end(),
                         [&](const Stmt& child) { return harmless(child, test, place); });
    const auto* store = s.as<Store>();
    const auto it = store ? own_.find(store->buffer) : own_.end();
    if (it == own_.end() || !within(store->buffer, store->indices, place) ||
        !readable(store->value, place) || it->second.setters.empty())
      return false;
    for (const Expr& condition : lower::conjuncts(test.condition)) {
      const auto text = of_element(condition, *store, it->second, place);
      for (const std::set<std::string>& known : it->second.setters)
        if (!text || !known.contains(*text)) return false;
    }
    return true;
  }

  static bool within(const Buffer& buffer, const std::vector<Expr>& indices, const Place& place) {
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      const auto range = arith::const_range(indices[axis], place.bounds);
      const auto extent = as_int(buffer.shape()[axis]);
      if (!range || !extent || range->first < 0 || range->second >= *extent) return false;
    }
    return true;
  }

  /// Whether there is shared memory wherever `load` may read.
  bool reserved(const Load& load, const Place& place) const {
    const auto at = shared_.buffers.find(load.buffer);
    if (at == shared_.buffers.end()) return false;
    const auto reach = lower::shared_reach(load, at->second, place.bounds);
    return reach && *reach <= at->second.elements;
  }

  /// Whether `e` can be computed anywhere: nothing divides by what memory holds.
  bool readable(const Expr& e, const Place& place) const {
    bool fine = true;
    walk(e, [&](const Expr& x) {
      if (const auto* l = x.as<Load>())
        fine &= l->buffer.scope() == "local" ? within(l->buffer, l->indices, place)
                                             : reserved(*l, place);
      const auto* b = x.as<Binary>();
      const bool divides = b && (b->op == BinaryOp::Div || b->op == BinaryOp::Mod);
      fine &= !divides || is_float(x.dtype()) || as_int(b->b).value_or(0) != 0;
      fine &= x.as<MathCall>() == nullptr;
    });
    return fine;
  }

  const Func& kernel_;
  const lower::SharedPlan& shared_;
  std::map<Buffer, Own> own_;
  std::set<const If*> found_;
};

}  // namespace

std::set<const If*> needless_tests(const Func& kernel, const lower::SharedPlan& shared) {
  return Finder(kernel, shared).run();
}

}  // namespace tilewright::codegen
