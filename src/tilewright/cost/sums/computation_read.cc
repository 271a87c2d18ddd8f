// From a Func to its computations: products are taken apart, padding and transposes folded into the
// reads of their elements.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/cost/sums/computation.h"
#include "tilewright/cost/sums/loop_reader.h"
#include "tilewright/ir/text.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/tree.h"

namespace tilewright::cost {
namespace {

using schedule::Id;

/// One block beside inits; indices, guard and value in terms of the loops around.
struct Stage {
  std::string name;
  std::vector<SourceLoop> loops;
  Store store;
  Expr guard;
  std::string odd;  ///< why it is nothing but an opaque block; empty: it is a store in a nest
};

struct Element {
  Buffer buffer;
  std::vector<Expr> indices;
};

/// Elements that are multiplied, where conditions hold; elsewhere the product is zero.
struct Product {
  std::vector<Element> elements;
  std::vector<Expr> conditions;
  std::set<Buffer> folded;  ///< copies that were read through
};

bool widens(DType from, DType to) {
  if (is_float(from) || is_float(to)) return is_float(from) == is_float(to);
  return bit_width(to) >= bit_width(from);
}

Stage stage_of(const schedule::Tree& tree, Id id) {
  const Block& block = tree.block(id);
  Stage stage;
  stage.name = block.name;
  stage.guard = block.guard;
  const Store* store = schedule::single_store(block);
  if (store == nullptr) {
    stage.odd = "it is more than one store";
    return stage;
  }
  VarMap bindings;
  for (const Iter& iter : block.iters) {
    bindings[iter.var] = iter.binding;
    if (iter.kind == IterKind::Scan) stage.odd = "it runs through time";
  }
  std::set<std::string> taken;
  for (const Id loop : tree.loops_around(id)) {
    const For& f = tree.loop(loop);
    const std::optional<int64_t> extent = as_int(f.extent);
    if (!extent) stage.odd = fmt::format("the extent of loop {} is no number", f.var.name());
    SourceLoop one{f.var, f.var.name(), extent.value_or(1)};
    bool bound = one.extent == 1;
    for (const Iter& iter : block.iters) {
      const std::vector<Var> free = free_vars(iter.binding);
      if (std::find(free.begin(), free.end(), f.var) == free.end()) continue;
      bound = true;
      one.reduces |= iter.kind == IterKind::Reduce;
      if (iter.binding.as<VarRef>() != nullptr) one.name = iter.var.name();
    }
    if (!bound) stage.odd = fmt::format("every iteration of loop {} does the same", f.var.name());
    one.name = loop_name(one.name, taken);
    stage.loops.push_back(std::move(one));
  }
  stage.store = *store;
  stage.store.value = substitute(store->value, bindings);
  for (Expr& index : stage.store.indices) index = substitute(index, bindings);
  return stage;
}

class FuncReader {
 public:
  explicit FuncReader(const Func& func) : tree_(func), uses_(tree_) {
    std::set<Id> inits;
    for (const Id id : tree_.blocks())
      if (const Store* store = schedule::single_store(tree_.block(id)))
        if (const auto producer = schedule::producer_of(tree_, uses_, store->buffer))
          inits.insert(producer->init);
    for (const Id id : tree_.blocks()) {
      if (inits.contains(id)) continue;
      stages_.push_back(stage_of(tree_, id));
      if (!stages_.back().odd.empty()) continue;
      const Buffer& buffer = stages_.back().store.buffer;
      if (uses_.writers(buffer).size() == 1 + size_t{has_init(buffer)})
        writer_[buffer] = stages_.size() - 1;
    }
  }

  Computations run() {
    for (size_t i = 0; i < stages_.size(); ++i) read(i);
    for (const Unread& unread : unread_) add_other(unread);
    link_sources();
    return std::move(result_);
  }

 private:
  struct Unread {
    size_t stage;
    std::string why;
  };

  bool has_init(const Buffer& buffer) const {
    const auto producer = schedule::producer_of(tree_, uses_, buffer);
    return producer && producer->init != schedule::kNone;
  }

  void read(size_t i) {
    const Stage& stage = stages_[i];
    std::string why = stage.odd;
    if (why.empty()) {
      why = read_sum(stage, true);
      if (!why.empty() && read_sum(stage, false).empty()) why.clear();
    }
    if (!why.empty()) unread_.push_back({i, why});
  }

  /// A buffer that is a copy of one element of another, perhaps with zeros around it.
  const Stage* copy_of(const Buffer& buffer) const {
    const auto found = writer_.find(buffer);
    if (found == writer_.end()) return nullptr;
    const Stage& stage = stages_[found->second];
    if (stage.store.combine != Combine::Set) return nullptr;
    std::set<Var> used;
    for (const Expr& index : stage.store.indices) {
      const auto* var = index.as<VarRef>();
      if (var == nullptr ? as_int(index) != 0 : !used.insert(var->var).second) return nullptr;
    }
    Product product;
    std::string why;
    const bool one = multiply(stage.store.value, false, product, why);
    return one && product.elements.size() == 1 ? &stage : nullptr;
  }

  bool multiply_copy(const Stage& copy, const Load& load, Product& product,
                     std::string& why) const {
    VarMap places;
    for (size_t i = 0; i < load.indices.size(); ++i)
      if (const auto* var = copy.store.indices[i].as<VarRef>()) places[var->var] = load.indices[i];
    for (const SourceLoop& loop : copy.loops)
      if (!places.contains(loop.var)) places[loop.var] = int_imm(0);
    product.folded.insert(load.buffer);
    for (const Expr& condition : schedule::conjuncts(copy.guard))
      product.conditions.push_back(substitute(condition, places));
    return multiply(substitute(copy.store.value, places), true, product, why);
  }

  /// Takes a product apart; `fold`: reads through copies.
  bool multiply(const Expr& e, bool fold, Product& product, std::string& why) const {
    if (const auto* load = e.as<Load>()) {
      const Stage* copy = fold ? copy_of(load->buffer) : nullptr;
      if (copy != nullptr) return multiply_copy(*copy, *load, product, why);
      product.elements.push_back({load->buffer, load->indices});
      return true;
    }
    const auto* cast = e.as<Cast>();
    if (cast != nullptr && !cast->bits && widens(cast->a.dtype(), e.dtype()))
      return multiply(cast->a, fold, product, why);
    const auto* binary = e.as<Binary>();
    if (binary != nullptr && binary->op == BinaryOp::Mul)
      return multiply(binary->a, fold, product, why) && multiply(binary->b, fold, product, why);
    const auto* select = e.as<Select>();
    if (select != nullptr && is_zero(select->on_false)) {
      for (const Expr& condition : schedule::conjuncts(select->condition))
        product.conditions.push_back(condition);
      return multiply(select->on_true, fold, product, why);
    }
    why = "its value is no product of elements";
    return false;
  }

  /// Adds the stage's computation; or says why it is none.
  std::string read_sum(const Stage& stage, bool fold) {
    const bool sums = stage.store.combine == Combine::Add;
    if (!sums && stage.store.combine != Combine::Set)
      return fmt::format("it combines by `{}`", name(stage.store.combine));
    Product product;
    std::string why;
    if (!multiply(stage.store.value, fold, product, why)) return why;
    if (product.elements.size() < 2)
      return sums ? "it adds up single elements, not products" : "it copies elements";
    if (!sums) return "it multiplies element by element, nothing is summed";
    for (const Expr& condition : schedule::conjuncts(stage.guard))
      product.conditions.push_back(condition);
    Computation c;
    c.name = stage.store.buffer.name();
    why = fill(stage, product, c);
    if (!why.empty()) return why;
    buffers_.push_back(stage.store.buffer);
    folded_.insert(product.folded.begin(), product.folded.end());
    result_.sums.push_back(std::move(c));
    return {};
  }

  /// Loops, factors and result. Empty, or why there are none.
  std::string fill(const Stage& stage, const Product& product, Computation& c) {
    LoopReader reader(stage.loops);
    for (const Element& element : product.elements)
      for (const Expr& index : element.indices) reader.find_cuts(index);
    for (const Expr& index : stage.store.indices) reader.find_cuts(index);
    c.loops = reader.make_loops();
    std::string why;
    const auto tensor = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      SpatialTensor out;
      out.name = buffer.name();
      const Param* param = tree_.param_of(buffer);
      out.packed = param != nullptr && param->mode == ParamMode::Const;
      for (size_t i = 0; i < indices.size(); ++i) {
        const std::optional<LoopIndex> index = reader.read(indices[i]);
        const std::optional<int64_t> extent = as_int(buffer.shape()[i]);
        if (!index || !extent) {
          why = fmt::format("the index `{}` of {} is no sum of strided loops", print(indices[i]),
                            out.name);
          return out;
        }
        SpatialDim dim{{}, *extent, -index->constant};
        for (const auto& [loop, stride] : index->terms) dim.terms.push_back({loop, stride});
        out.dims.push_back(std::move(dim));
      }
      return out;
    };
    for (const Element& element : product.elements) {
      c.factors.push_back(tensor(element.buffer, element.indices));
      c.dtypes.push_back(element.buffer.dtype());
    }
    c.result = tensor(stage.store.buffer, stage.store.indices);
    c.result.packed = false;
    c.dtypes.push_back(stage.store.buffer.dtype());
    if (!why.empty()) return why;
    for (const Expr& condition : product.conditions) {
      const std::optional<LoopIndex> index = not_below_zero(reader, condition);
      if (!index || !is_padding(*index, c))
        return fmt::format("it leaves out what is not padding: `{}`", print(condition));
    }
    for (size_t loop = 0; loop < c.loops.size(); ++loop)
      if (c.loops[loop].reduces == moves(c.result, static_cast<int>(loop)) &&
          c.loops[loop].extent > 1)
        return fmt::format("loop {} writes other elements of {} than its kind says",
                           c.loops[loop].name, c.name);
    tidy(c);
    return {};
  }

  void link_sources() {
    std::map<std::string, int> made;
    for (size_t i = 0; i < result_.sums.size(); ++i) {
      Computation& c = result_.sums[i];
      for (const SpatialTensor& factor : c.factors) {
        const auto found = made.find(factor.name);
        c.sources.push_back(found == made.end() ? -1 : found->second);
      }
      made[c.name] = static_cast<int>(i);
    }
  }

  // --- What is no sum of products

  bool is_output(const Buffer& buffer) const { return tree_.param_of(buffer) != nullptr; }

  /// All who read the buffer are sums that read through it.
  bool read_through(const Buffer& buffer) const {
    if (!folded_.contains(buffer) || is_output(buffer)) return false;
    for (const Id reader : uses_.readers(buffer)) {
      const Store* store = schedule::single_store(tree_.block(reader));
      if (store == nullptr) return false;
      const bool sum = std::find(buffers_.begin(), buffers_.end(), store->buffer) != buffers_.end();
      if (!sum && !read_through(store->buffer)) return false;
    }
    return true;
  }

  /// What a STORE does with a sum: scale it, add a vector, clip, convert.
  bool finishes_a_sum(const Stage& stage) const {
    if (stage.store.combine != Combine::Set || stage.guard) return false;
    bool fits = true;
    int sums = 0;
    const size_t rank = stage.store.indices.size();
    walk(stage.store.value, [&](const Expr& e) {
      if (e.as<MathCall>() != nullptr) fits = false;
      const auto* load = e.as<Load>();
      if (load == nullptr) return;
      const bool sum = finished_.contains(load->buffer) ||
                       std::find(buffers_.begin(), buffers_.end(), load->buffer) != buffers_.end();
      if (!sum) {
        fits &= load->indices.size() < std::max<size_t>(rank, 2);
        return;
      }
      ++sums;
      for (size_t i = 0; i < load->indices.size(); ++i)
        fits &= i < rank && equal(load->indices[i], stage.store.indices[i]);
    });
    return fits && sums == 1;
  }

  void add_other(const Unread& unread) {
    const Stage& stage = stages_[unread.stage];
    OtherStage other;
    other.name = stage.name;
    other.reason = unread.why;
    if (!stage.odd.empty()) {
      result_.others.push_back(std::move(other));
      return;
    }
    const Buffer& buffer = stage.store.buffer;
    if (read_through(buffer)) {
      other.free = true;
      other.reason = "LOADs do it: zeros around an operand, or its axes in another order";
    } else if (finishes_a_sum(stage)) {
      finished_.insert(buffer);
      other.free = true;
      other.reason = "a STORE does it: scale, bias, limits, type";
    } else {
      count_work(stage, other);
    }
    result_.others.push_back(std::move(other));
  }

  static int64_t elements(const Buffer& buffer) {
    int64_t count = 1;
    for (const Expr& extent : buffer.shape()) count *= as_int(extent).value_or(1);
    return count;
  }

  static void count_work(const Stage& stage, OtherStage& other) {
    int64_t iterations = 1;
    for (const SourceLoop& loop : stage.loops) iterations *= loop.extent;
    std::set<Buffer> read;
    bool multiplies = false;
    walk(stage.store.value, [&](const Expr& e) {
      if (const auto* load = e.as<Load>()) read.insert(load->buffer);
      const auto* binary = e.as<Binary>();
      multiplies |= binary != nullptr && binary->op == BinaryOp::Mul && e.dtype() != DType::I64;
    });
    other.bytes = elements(stage.store.buffer);
    for (const Buffer& buffer : read) other.bytes += elements(buffer);
    if (multiplies || stage.store.combine == Combine::Add) other.macs = iterations;
  }

  schedule::Tree tree_;
  schedule::Uses uses_;
  std::vector<Stage> stages_;
  std::map<Buffer, size_t> writer_;
  std::vector<Unread> unread_;
  std::vector<Buffer> buffers_;  ///< of the sums' results
  std::set<Buffer> folded_, finished_;
  Computations result_;
};

}  // namespace

Computations computations_of(const Func& func) { return FuncReader(func).run(); }

}  // namespace tilewright::cost
