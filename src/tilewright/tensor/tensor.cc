#include "tilewright/tensor/tensor.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "tilewright/base/check.h"
#include "tilewright/ir/walk.h"

namespace tilewright::tensor {

struct AxisVars {
  std::vector<Iter> iters;  ///< bindings are filled in by make_func
  std::vector<std::string> names;
};

/// One nest: `space` loops, then `over` loops, around a block with one store.
struct ComputationNest {
  AxisVars axes;
  bool init = false;
  Stmt store;
  Expr guard;  ///< in terms of the axes; absent means always
};

/// How tensors come about: nests for compute and reduce, a statement for raw.
struct Computation {
  std::vector<ComputationNest> nests;
  Stmt raw;
  std::vector<Buffer> outputs;
  std::vector<Tensor> reads;  ///< keeps what is read alive
};

struct TensorNode {
  Buffer buffer;
  Shape shape;
  ParamMode mode = ParamMode::In;
  std::optional<Array> values;
  std::shared_ptr<const Computation> by;  ///< null for placeholders

  ~TensorNode();
};

namespace {

// Loads name buffers only, so the way from a buffer back to its tensor is a table of those alive.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, std::weak_ptr<const TensorNode>> nodes;
};
Registry& registry() {
  static Registry* table = new Registry;
  return *table;
}

Tensor enter(std::shared_ptr<const TensorNode> node) {
  std::lock_guard lock(registry().mutex);
  registry().nodes[node->buffer.id()] = node;
  return Tensor(std::move(node));
}

Tensor find_tensor(const Buffer& buffer) {
  std::lock_guard lock(registry().mutex);
  const auto it = registry().nodes.find(buffer.id());
  return it == registry().nodes.end() ? Tensor() : Tensor(it->second.lock());
}

std::vector<Expr> extents(const Shape& shape) {
  std::vector<Expr> out;
  for (int64_t d : shape) out.push_back(int_imm(d));
  return out;
}

std::string unique(std::string name, std::set<std::string>& used) {
  std::string candidate = name;
  for (int i = 1; !used.insert(candidate).second; ++i) candidate = name + "_" + std::to_string(i);
  return candidate;
}

AxisVars make_axes(const std::vector<Dim>& space, const std::vector<Dim>& over) {
  AxisVars axes;
  std::set<std::string> used;
  auto add = [&](const Dim& dim, IterKind kind) {
    TW_CHECK(dim.extent >= 0, "axis {} has extent {}", dim.name, dim.extent);
    const std::string name = unique(dim.name, used);
    axes.iters.push_back({Var(name), kind, int_imm(dim.extent), Expr()});
    axes.names.push_back(name);
  };
  for (const Dim& dim : space) add(dim, IterKind::Space);
  for (const Dim& dim : over) add(dim, IterKind::Reduce);
  return axes;
}

Indices refs(const AxisVars& axes, size_t begin, size_t count) {
  Indices out;
  for (size_t i = 0; i < count; ++i) out.push_back(ref(axes.iters[begin + i].var));
  return out;
}

void collect_reads(const Expr& e, const std::vector<Buffer>& own, std::vector<Tensor>& reads) {
  walk(e, [&](const Expr& x) {
    const auto* read = x.as<Load>();
    if (read == nullptr || std::find(own.begin(), own.end(), read->buffer) != own.end()) return;
    for (const Tensor& t : reads)
      if (t.buffer() == read->buffer) return;
    Tensor t = find_tensor(read->buffer);
    TW_CHECK(t, "{} is read, but no tensor of that buffer is alive", read->buffer.name());
    reads.push_back(std::move(t));
  });
}

Expr identity(Combine combine, DType dtype) {
  TW_CHECK(combine != Combine::Set, "a reduction needs a combining store");
  if (combine == Combine::Add) return const_of(dtype, 0);
  if (combine == Combine::Mul) return const_of(dtype, 1);
  return combine == Combine::Max ? lowest(dtype) : highest(dtype);
}

Shape shape_of(const std::vector<Dim>& space) {
  Shape shape;
  for (const Dim& dim : space) shape.push_back(dim.extent);
  return shape;
}

Tensor make_tensor(const Buffer& buffer, Shape shape, std::shared_ptr<const Computation> by) {
  auto node = std::make_shared<TensorNode>();
  node->buffer = buffer;
  node->shape = std::move(shape);
  node->by = std::move(by);
  return enter(std::move(node));
}

}  // namespace

TensorNode::~TensorNode() {
  std::lock_guard lock(registry().mutex);
  registry().nodes.erase(buffer.id());
}

Expr lowest(DType dtype) {
  if (is_float(dtype)) return float_imm(-std::numeric_limits<double>::infinity(), dtype);
  if (dtype == DType::Bool) return bool_imm(false);
  if (is_unsigned_int(dtype)) return int_imm(0, dtype);
  return int_imm(std::numeric_limits<int64_t>::min() >> (64 - bit_width(dtype)), dtype);
}

Expr highest(DType dtype) {
  if (is_float(dtype)) return float_imm(std::numeric_limits<double>::infinity(), dtype);
  if (dtype == DType::Bool) return bool_imm(true);
  const int64_t largest = std::numeric_limits<int64_t>::max();
  if (dtype == DType::U64) return int_imm(-1, dtype);
  return int_imm(largest >> (64 - bit_width(dtype) - (is_unsigned_int(dtype) ? 1 : 0)), dtype);
}

const std::string& Tensor::name() const { return node_->buffer.name(); }
DType Tensor::dtype() const { return node_->buffer.dtype(); }
const Shape& Tensor::shape() const { return node_->shape; }
const Buffer& Tensor::buffer() const { return node_->buffer; }
Expr Tensor::operator()(Indices indices) const { return load(node_->buffer, std::move(indices)); }

Tensor placeholder(std::string name, DType dtype, Shape shape, ParamMode mode,
                   std::optional<Array> values) {
  TW_CHECK(!values || mode == ParamMode::Const, "{} has values but is not const", name);
  auto node = std::make_shared<TensorNode>();
  node->buffer = Buffer(std::move(name), dtype, extents(shape));
  node->shape = std::move(shape);
  node->mode = mode;
  node->values = std::move(values);
  return enter(std::move(node));
}

Tensor compute(std::string name, std::vector<Dim> space,
               const std::function<Expr(const Indices&)>& f) {
  ComputationNest nest;
  nest.axes = make_axes(space, {});
  const Indices indices = refs(nest.axes, 0, space.size());
  Expr value = f(indices);
  Shape shape = shape_of(space);
  const Buffer buffer(std::move(name), value.dtype(), extents(shape));
  auto by = std::make_shared<Computation>();
  collect_reads(value, {buffer}, by->reads);
  nest.store = make(Store{buffer, indices, std::move(value), Combine::Set});
  by->nests = {std::move(nest)};
  by->outputs = {buffer};
  return make_tensor(buffer, std::move(shape), std::move(by));
}

Tensor reduce(std::string name, std::vector<Dim> space, std::vector<Dim> over, Combine combine,
              const std::function<Expr(const Indices&, const Indices&)>& f,
              const std::function<Expr(const Indices&)>& init,
              const std::function<Expr(const Indices&)>& counts) {
  ComputationNest first, update;
  first.init = true;
  first.axes = make_axes(space, {});
  update.axes = make_axes(space, over);
  const Indices at = refs(update.axes, 0, space.size());
  const Indices first_at = refs(first.axes, 0, space.size());
  const Indices terms = refs(update.axes, space.size(), over.size());
  Expr value = f(at, terms);
  if (counts) update.guard = counts(terms);
  Expr start = init ? init(first_at) : identity(combine, value.dtype());
  TW_CHECK(combine != Combine::Set, "{}: a reduction needs a combining store", name);
  TW_CHECK(start.dtype() == value.dtype(), "{}: init is {}, value is {}", name,
           tilewright::name(start.dtype()), tilewright::name(value.dtype()));
  Shape shape = shape_of(space);
  const Buffer buffer(std::move(name), value.dtype(), extents(shape));
  auto by = std::make_shared<Computation>();
  collect_reads(start, {buffer}, by->reads);
  collect_reads(value, {buffer}, by->reads);
  first.store = make(Store{buffer, first_at, std::move(start), Combine::Set});
  update.store = make(Store{buffer, at, std::move(value), combine});
  by->nests = {std::move(first), std::move(update)};
  by->outputs = {buffer};
  return make_tensor(buffer, std::move(shape), std::move(by));
}

std::vector<Tensor> raw(std::vector<Buffer> outputs, Stmt body) {
  auto by = std::make_shared<Computation>();
  std::vector<Buffer> own = outputs;
  walk(body, [&](const Stmt& s) {
    if (const auto* alloc = s.as<Alloc>()) own.push_back(alloc->buffer);
    TW_CHECK(!s.as<Call>(), "raw statements of tensors contain no intrinsic calls");
  });
  walk(body, {}, [&](const Expr& e) {
    if (e.as<Load>()) collect_reads(e, own, by->reads);
  });
  by->raw = std::move(body);
  by->outputs = outputs;
  std::vector<Tensor> tensors;
  for (const Buffer& buffer : outputs) {
    Shape shape;
    for (const Expr& extent : buffer.shape()) {
      TW_CHECK(as_int(extent), "{} has a symbolic extent", buffer.name());
      shape.push_back(*as_int(extent));
    }
    tensors.push_back(make_tensor(buffer, std::move(shape), by));
  }
  return tensors;
}

namespace {

/// Visits computations, sources before users, and placeholders in reading order.
class Order {
 public:
  std::vector<const Computation*> computations;
  std::vector<Tensor> placeholders;

  /// A tensor given from outside: its computation is not entered.
  void stop_at(const Tensor& t) { stops_.insert(t.buffer().id()); }

  void visit(const Tensor& t) {
    if (!t.get()->by || stops_.contains(t.buffer().id())) {
      if (seen_.insert(t.buffer().id()).second) placeholders.push_back(t);
      return;
    }
    const Computation* by = t.get()->by.get();
    if (!seen_.insert(by).second) return;
    for (const Tensor& read : by->reads) visit(read);
    computations.push_back(by);
  }

 private:
  std::set<const void*> seen_, stops_;
};

class FuncBuilder {
 public:
  explicit FuncBuilder(std::set<std::string> reserved) : used_(std::move(reserved)) {}

  std::string claim(const std::string& name) { return unique(name, used_); }
  void set(const Buffer& from, const Buffer& to) { map_[from] = to; }
  const Buffer& at(const Buffer& buffer) const { return map_.at(buffer); }
  bool has(const Buffer& buffer) const { return map_.contains(buffer); }
  void add(Stmt s) { stmts_.push_back(std::move(s)); }
  Stmt body() { return seq(std::move(stmts_)); }

  /// Allocates what is not an output, then emits the nests.
  void emit(const Computation& by) {
    for (const Buffer& b : by.outputs) {
      if (map_.contains(b)) continue;
      const Buffer mine(claim(b.name()), b.dtype(), b.shape(), b.scope());
      set(b, mine);
      add(make(Alloc{mine, {}}));
    }
    if (by.raw) return emit_raw(by);
    for (const ComputationNest& nest : by.nests) emit_nest(nest, at(by.outputs[0]).name());
  }

 private:
  void emit_nest(const ComputationNest& nest, const std::string& tensor) {
    const std::string block_name = tensor + (nest.init ? ".init" : "");
    Block block{block_name, nest.axes.iters, Expr(), {}, replace_buffers(nest.store, map_)};
    std::vector<Var> loops;
    VarMap bindings;
    for (size_t i = 0; i < block.iters.size(); ++i) {
      loops.emplace_back(block_name + "." + nest.axes.names[i]);
      block.iters[i].binding = bindings[block.iters[i].var] = ref(loops[i]);
    }
    if (nest.guard) block.guard = substitute(nest.guard, bindings);
    std::vector<Expr> trip_counts;
    for (const Iter& iter : block.iters) trip_counts.push_back(iter.extent);
    Stmt s = make(std::move(block));
    for (size_t i = loops.size(); i-- > 0;)
      s = make(For{loops[i], trip_counts[i], ForKind::Serial, "", {}, std::move(s)});
    add(std::move(s));
  }

  /// Names that start with an output's name follow the output; others are kept if still free.
  void emit_raw(const Computation& by) {
    std::map<std::string, std::string> names;
    const Stmt body = clone(by.raw, [&](const std::string& old) {
      if (const auto it = names.find(old); it != names.end()) return it->second;
      std::string fresh, best;
      for (const Buffer& b : by.outputs) {
        const bool follows = old == b.name() || old.starts_with(b.name() + ".");
        if (!follows || b.name().size() < best.size()) continue;
        best = b.name();
        fresh = at(b).name() + old.substr(best.size());
      }
      if (fresh.empty()) fresh = claim(old);
      return names[old] = fresh;
    });
    add(replace_buffers(body, map_));
  }

  std::set<std::string> used_;
  BufferMap map_;
  std::vector<Stmt> stmts_;
};

Tensor copy_of(const Tensor& t) {
  std::vector<Dim> space;
  for (size_t i = 0; i < t.rank(); ++i) space.push_back({"i" + std::to_string(i), t.dim(i)});
  return compute(t.name() + ".copy", space, [&](const Indices& i) { return t(i); });
}

}  // namespace

std::vector<Tensor> reached_inputs(const std::vector<Tensor>& outputs) {
  Order order;
  for (const Tensor& t : outputs) order.visit(t);
  return order.placeholders;
}

Func make_func(std::string name, const std::vector<Tensor>& inputs,
               const std::vector<Tensor>& outputs, MathMode math,
               const std::vector<std::string>& output_names) {
  Func func;
  func.name = std::move(name);
  func.math = math;
  FuncBuilder builder({output_names.begin(), output_names.end()});
  for (const Tensor& t : inputs) {
    TW_CHECK(!builder.has(t.buffer()), "{} is listed twice as an input", t.name());
    const std::string unique_name = builder.claim(t.name());
    const Buffer mine =
        unique_name == t.name() ? t.buffer() : Buffer(unique_name, t.dtype(), t.buffer().shape());
    builder.set(t.buffer(), mine);
    const bool computed = t.get()->by != nullptr;
    func.params.push_back({mine, computed ? ParamMode::In : t.get()->mode, {}, t.get()->values});
  }
  std::vector<Tensor> results;
  std::set<const void*> taken;
  for (const Tensor& t : outputs) {
    const bool direct = !builder.has(t.buffer()) && t.get()->by && taken.insert(t.get()).second;
    results.push_back(direct ? t : copy_of(t));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& t = results[i];
    const std::string name_of = i < output_names.size() ? output_names[i] : builder.claim(t.name());
    const Buffer mine(name_of, t.dtype(), t.buffer().shape());
    builder.set(t.buffer(), mine);
    func.params.push_back({mine, ParamMode::Out, {}, std::nullopt});
  }
  Order order;
  for (const Tensor& t : inputs) order.stop_at(t);
  for (const Tensor& t : results) order.visit(t);
  for (const Tensor& t : order.placeholders) {
    if (builder.has(t.buffer())) continue;
    TW_CHECK(t.get()->values, "{} is read but is no input of {}", t.name(), func.name);
    const Buffer mine(builder.claim(t.name()), t.dtype(), t.buffer().shape());
    builder.set(t.buffer(), mine);
    func.params.push_back({mine, ParamMode::Const, {}, t.get()->values});
  }
  for (const Computation* by : order.computations) builder.emit(*by);
  func.body = builder.body();
  return func;
}

}  // namespace tilewright::tensor
