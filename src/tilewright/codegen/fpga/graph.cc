#include "tilewright/codegen/fpga/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/array.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen::fpga_design {
namespace {

using fpga::Node;
using fpga::Number;
using fpga::Op;

constexpr Number kFlag{Number::Kind::Unsigned, 1};

tl::unexpected<Error> lacks(const std::string& what) {
  return fail(ErrorKind::Unsupported, "the Verilog has no " + what,
              "the C++ has it: device fpga:csim");
}

std::optional<Op> operator_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
      return Op::Add;
    case BinaryOp::Sub:
      return Op::Sub;
    case BinaryOp::Mul:
      return Op::Mul;
    case BinaryOp::Min:
      return Op::Min;
    case BinaryOp::Max:
      return Op::Max;
    case BinaryOp::Shl:
      return Op::Shl;
    case BinaryOp::Shr:
      return Op::Shr;
    default:
      return std::nullopt;
  }
}

std::string_view dtype_name(const Number& number) {
  static const DType all[] = {DType::F32, DType::F16, DType::BF16, DType::F64};
  for (const DType dtype : all)
    if (fpga::number_of(dtype) == number) return name(dtype);
  return "";
}

/// Cycles of an operator: of floats those of the device's product and sum; integers take a register
/// behind adders, two around the multiplier of a DSP.
int latency_of(Op op, const Number& type, const hw::FpgaDevice& device) {
  if (op == Op::Select || op == Op::Shl || op == Op::Shr) return 0;
  if (!type.is_float()) return op == Op::Cast ? 0 : op == Op::Mul ? 2 : 1;
  const auto* mac = device.find("mac", dtype_name(type), hw::FpgaPath::Rtl);
  if (mac == nullptr || op == Op::Cast || (op != Op::Add && op != Op::Sub && op != Op::Mul))
    return 1;
  return op == Op::Mul ? mac->product_cycles() : mac->sum_cycles();
}

/// Whether two banks of one iteration differ, whichever iteration it is.
bool other_bank(const fpga::Affine& a, const fpga::Affine& b) {
  const fpga::Affine gap = plus(a, b, -1);
  return gap.is_constant() && gap.constant != 0;
}

/// +0 and no other zero: what ports give where they read nothing.
bool is_plus_zero(const Expr& e) {
  const auto* real = e.as<FloatImm>();
  return is_zero(e) && (real == nullptr || !std::signbit(real->value));
}

/// Whether every value of `from` is one of `type`.
bool holds(const Number& type, const Number& from) {
  if (from.is_signed()) return type.is_signed() && type.bits >= from.bits;
  return type.bits >= from.bits + (type.is_signed() ? 1 : 0);
}

/// The least type of integers that has all sums, differences or products of `a` and `b`.
Number sum_or_product(Op op, const Number& a, const Number& b) {
  const bool is_signed = a.is_signed() || b.is_signed() || op == Op::Sub;
  const auto bits = [&](const Number& n) { return n.bits + (is_signed && !n.is_signed() ? 1 : 0); };
  return {is_signed ? Number::Kind::Signed : Number::Kind::Unsigned,
          op == Op::Mul ? bits(a) + bits(b) : std::max(bits(a), bits(b)) + 1};
}

std::string text(const fpga::Affine& a) {
  return fmt::format("{};{};{}", a.constant, fmt::join(a.loops, ","), fmt::join(a.counters, ","));
}
std::string text(const std::vector<fpga::Range>& ranges) {
  std::string out;
  for (const fpga::Range& range : ranges)
    out += fmt::format("{}<{} ", text(range.value), range.extent);
  return out;
}

}  // namespace

bool has_loads(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& part) { found |= part.as<Load>() != nullptr; });
  return found;
}

int GraphBuilder::node(Node node) {
  const std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {}", static_cast<int>(node.op), name(node.type),
                  fmt::join(node.inputs, ","), node.bits, node.lane, node.place.memory,
                  text(node.place.bank), text(node.place.word), text(node.ranges));
  const auto [at, fresh] = built_.try_emplace(key, static_cast<int>(nest_.nodes.size()));
  if (fresh) nest_.nodes.push_back(std::move(node));
  return at->second;
}

int GraphBuilder::apply(Op op, Number type, std::vector<int> inputs) {
  const bool grows = op == Op::Add || op == Op::Sub || op == Op::Mul;
  if (grows && !type.is_float()) {
    for (int& input : inputs) input = before_cast(input);
    const Number least = sum_or_product(op, type_of(inputs[0]), type_of(inputs[1]));
    if (least.bits < type.bits && holds(type, least)) {
      Node made{op, least, std::move(inputs), latency_of(op, least, *around_.device)};
      return apply(Op::Cast, type, {node(std::move(made))});
    }
  }
  Number timed = type;  // comparisons are timed by what they compare
  if (op == Op::Eq || op == Op::Lt || op == Op::Le)
    timed = nest_.nodes[static_cast<size_t>(inputs[0])].type;
  Node made{op, type, std::move(inputs), latency_of(op, timed, *around_.device)};
  return node(std::move(made));
}

const Number& GraphBuilder::type_of(int node) const {
  return nest_.nodes[static_cast<size_t>(node)].type;
}

/// The node that `n` only widens, or `n`.
int GraphBuilder::before_cast(int n) const {
  const Node& cast = nest_.nodes[static_cast<size_t>(n)];
  if (cast.op != Op::Cast) return n;
  const Number& from = type_of(cast.inputs[0]);
  return !from.is_float() && !cast.type.is_float() && holds(cast.type, from) ? cast.inputs[0] : n;
}

int GraphBuilder::constant(DType dtype, double real, int64_t whole) {
  Array one(dtype, {1});
  if (is_float(dtype))
    one.set(0, real);
  else
    one.set_int(0, whole);
  Node made{Op::Const, fpga::number_of(dtype), {}, 0};
  std::memcpy(&made.bits, one.data(), static_cast<size_t>(one.bytes()));
  return node(std::move(made));
}

int GraphBuilder::tree(Op op, Number type, std::vector<int> terms) {
  while (terms.size() > 1) {
    std::vector<int> next;
    for (size_t i = 0; i + 1 < terms.size(); i += 2)
      next.push_back(apply(op, type, {terms[i], terms[i + 1]}));
    if (terms.size() % 2 == 1) next.push_back(terms.back());
    terms = std::move(next);
  }
  return terms[0];
}

Result<fpga::Place> GraphBuilder::place(const Buffer& buffer, const std::vector<Expr>& indices) {
  const BankedBuffer& chip = around_.memories.at(buffer);
  const Located located = TW_TRY(place_of(chip, buffer.name(), indices, loops_));
  if (!located.split) return located.place;
  split_ = located.split;
  return fail(ErrorKind::Unsupported, "a loop runs over several banks of " + buffer.name());
}

/// A bank has one port to read: other words of it cannot be read in the same iteration.
Status GraphBuilder::read_once(const fpga::Place& place, const std::string& name) {
  for (const fpga::Place& other : read_) {
    if (other.memory != place.memory || other.word == place.word) continue;
    if (place.bank.is_constant() && other.bank.is_constant() && !(place.bank == other.bank))
      continue;
    return fail(ErrorKind::Unsupported,
                fmt::format("an iteration reads two elements of one bank of {}", name),
                "partition it along the loops that are unrolled");
  }
  read_.push_back(place);
  return {};
}

/// The group of elements that the iteration moves, and the lane of this one.
Status GraphBuilder::group(const std::vector<Expr>& indices, const Buffer& buffer, int& lane) {
  fpga::Affine flat;
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto extent = as_int(buffer.shape()[i]);
    if (!extent) return lacks("tensor whose size is known only at run time: " + buffer.name());
    flat = plus(TW_TRY(affine_of(indices[i], loops_)), flat, *extent);
  }
  const std::vector<fpga::Range> ranges = TW_TRY(ranges_of(conditions_, loops_));
  const int64_t rest = ((flat.constant % lanes_) + lanes_) % lanes_;
  flat.constant -= rest;
  lane = static_cast<int>(rest);
  fpga::Stream& stream = nest_.stream;
  const Number element = fpga::number_of(buffer.dtype());
  const fpga::Affine address = plus({}, flat, element.bytes());
  if (argument_ >= 0) {
    if (address == stream.address && ranges == stream.ranges) return {};
    return fail(ErrorKind::Unsupported,
                fmt::format("an iteration moves elements of {} that do not lie side by side",
                            buffer.name()));
  }
  for (const auto* coefficients : {&flat.loops, &flat.counters})
    for (const int64_t c : *coefficients)
      if (c % lanes_ != 0) return fail(ErrorKind::Unsupported, "groups that are not aligned");
  argument_ = around_.arguments.at(buffer);
  stream.element = element;
  stream.lanes = lanes_;
  stream.address = address;
  stream.ranges = ranges;
  return {};
}

Result<int> GraphBuilder::streamed(const Load& load, int argument) {
  if (writes_ || (argument_ >= 0 && argument_ != argument))
    return fail(ErrorKind::Unsupported, "a nest moves one tensor: " + load.buffer.name());
  Node made{Op::Stream, fpga::number_of(load.buffer.dtype())};
  TW_TRY_STATUS(group(load.indices, load.buffer, made.lane));
  return node(std::move(made));
}

Result<int> GraphBuilder::loaded(const Load& load) {
  if (const auto outside = around_.arguments.find(load.buffer); outside != around_.arguments.end())
    return streamed(load, outside->second);
  const fpga::Place at = TW_TRY(place(load.buffer, load.indices));
  for (Pending& p : pending_) {
    if (!(p.place == at)) continue;
    if (p.combine != Combine::Set || !p.terms[0].ranges.empty())
      return fail(ErrorKind::Unsupported,
                  fmt::format("{} is read in the iteration that adds to it", p.name));
    return p.terms[0].node;
  }
  TW_TRY_STATUS(read_once(at, load.buffer.name()));
  Node made{Op::Read, fpga::number_of(load.buffer.dtype())};
  made.place = at;
  return node(std::move(made));
}

Result<int> GraphBuilder::condition(const Expr& e) {
  if (!has_loads(e)) {
    const auto ranges = ranges_of({e}, loops_);
    if (ranges) {
      Node made{Op::Flag, kFlag};
      made.ranges = *ranges;
      return node(std::move(made));
    }
  }
  return value(e);
}

/// A load that only happens inside of a window gives 0 outside of it, as ports do.
Result<int> GraphBuilder::chosen(const Select& op, DType dtype) {
  const bool inside = !has_loads(op.condition) && ranges_of({op.condition}, loops_).has_value();
  if (inside) conditions_.push_back(op.condition);
  const auto if_true = value(op.on_true);
  if (inside) conditions_.pop_back();
  const int a = TW_TRY(if_true);
  const auto* load = op.on_true.as<Load>();
  if (inside && load != nullptr && around_.arguments.contains(load->buffer) &&
      is_plus_zero(op.on_false))
    return a;
  const int flag = TW_TRY(condition(op.condition)), b = TW_TRY(value(op.on_false));
  return apply(Op::Select, fpga::number_of(dtype), {flag, a, b});
}

Result<int> GraphBuilder::binary(const Binary& op, DType dtype) {
  const Number type = fpga::number_of(dtype);
  const bool joins = op.op == BinaryOp::And || op.op == BinaryOp::Or;
  const int a = TW_TRY(joins ? condition(op.a) : value(op.a));
  const int b = TW_TRY(joins ? condition(op.b) : value(op.b));
  if (const auto plain = operator_of(op.op)) return apply(*plain, type, {a, b});
  const int no = constant(DType::Bool, 0, 0), yes = constant(DType::Bool, 0, 1);
  switch (op.op) {
    case BinaryOp::Eq:
      return apply(Op::Eq, kFlag, {a, b});
    case BinaryOp::Ne:
      return apply(Op::Select, kFlag, {apply(Op::Eq, kFlag, {a, b}), no, yes});
    case BinaryOp::Lt:
      return apply(Op::Lt, kFlag, {a, b});
    case BinaryOp::Le:
      return apply(Op::Le, kFlag, {a, b});
    case BinaryOp::Gt:
      return apply(Op::Lt, kFlag, {b, a});
    case BinaryOp::Ge:
      return apply(Op::Le, kFlag, {b, a});
    case BinaryOp::And:
      return apply(Op::Select, kFlag, {a, b, no});
    case BinaryOp::Or:
      return apply(Op::Select, kFlag, {a, yes, b});
    default:
      return lacks(fmt::format("operator `{}`", symbol(op.op)));
  }
}

Result<int> GraphBuilder::value(const Expr& e) {
  const DType dtype = e.dtype();
  if (const auto* whole = e.as<IntImm>()) return constant(dtype, 0, whole->value);
  if (const auto* real = e.as<FloatImm>()) return constant(dtype, real->value, 0);
  if (const auto* load = e.as<Load>()) return loaded(*load);
  if (const auto* op = e.as<Binary>()) return binary(*op, dtype);
  if (const auto* op = e.as<Select>()) return chosen(*op, dtype);
  if (const auto* op = e.as<Cast>()) {
    const DType from = op->a.dtype();
    if (op->bits || is_float(from) != is_float(dtype) || dtype == DType::Bool)
      return lacks(fmt::format("cast from {} to {}", name(from), name(dtype)));
    return apply(Op::Cast, fpga::number_of(dtype), {TW_TRY(value(op->a))});
  }
  if (const auto* op = e.as<Unary>()) {
    const int a = TW_TRY(op->op == UnaryOp::Not ? condition(op->a) : value(op->a));
    if (op->op == UnaryOp::Neg)
      return apply(Op::Sub, fpga::number_of(dtype), {constant(dtype, -0.0, 0), a});
    if (op->op == UnaryOp::Not)
      return apply(Op::Select, kFlag,
                   {a, constant(DType::Bool, 0, 0), constant(DType::Bool, 0, 1)});
    return lacks("operator `~`");
  }
  if (const auto* call = e.as<MathCall>())
    return lacks(fmt::format("function `{}`", name(call->fn)));
  return lacks(fmt::format("value `{}`: the number of a loop", print(e)));
}

Status GraphBuilder::store_outside(const Store& store, int value) {
  if (store.combine != Combine::Set)
    return fail(ErrorKind::Unsupported,
                fmt::format("{} is summed up in memory outside of the chip", store.buffer.name()),
                "hold it in a memory of the chip: step buffer, or scope fpga.bram");
  if (argument_ >= 0 && (!writes_ || argument_ != around_.arguments.at(store.buffer)))
    return fail(ErrorKind::Unsupported, "a nest moves one tensor: " + store.buffer.name());
  int lane = 0;
  std::vector<Expr> all = guards_;
  std::swap(all, conditions_);
  const Status done = group(store.indices, store.buffer, lane);
  std::swap(all, conditions_);
  TW_TRY_STATUS(done);
  writes_ = true;
  nest_.stream.nodes.resize(static_cast<size_t>(lanes_), -1);
  nest_.stream.nodes[static_cast<size_t>(lane)] = value;
  return {};
}

Status GraphBuilder::store(const Store& s, const VarMap& copies) {
  Store store = s;
  for (Expr& index : store.indices) index = substitute(index, copies);
  const Expr stored = arith::simplify(substitute(s.value, copies));
  const int node = TW_TRY(value(stored));
  if (around_.arguments.contains(store.buffer)) return store_outside(store, node);
  Pending now{TW_TRY(place(store.buffer, store.indices)),
              store.buffer.dtype(),
              store.buffer.name(),
              store.combine,
              {{node, TW_TRY(ranges_of(guards_, loops_))}}};
  for (Pending& p : pending_) {
    if (!(p.place == now.place)) continue;
    if (p.combine == now.combine && p.combine != Combine::Set) {
      p.terms.push_back(now.terms[0]);
      return {};
    }
    return fail(ErrorKind::Unsupported,
                fmt::format("an iteration stores to one element of {} twice", p.name));
  }
  // A bank has one port to write, too.
  for (const Pending& p : pending_)
    if (p.place.memory == now.place.memory && !other_bank(p.place.bank, now.place.bank))
      return fail(ErrorKind::Unsupported,
                  fmt::format("an iteration may store two elements of one bank of {}", p.name),
                  "partition it along the loops that are unrolled");
  pending_.push_back(std::move(now));
  return {};
}

Status GraphBuilder::statement(const Stmt& s, const VarMap& copies) {
  if (const auto* one = s.as<Store>()) return store(*one, copies);
  if (const auto* loop = s.as<For>()) {
    const auto extent = as_int(substitute(loop->extent, copies));
    if (!extent) return lacks("loop whose length is known only at run time: " + loop->var.name());
    for (int64_t i = 0; i < *extent; ++i) {
      VarMap inside = copies;
      inside[loop->var] = int_imm(i);
      TW_TRY_STATUS(statement(loop->body, inside));
    }
    return {};
  }
  if (const auto* test = s.as<If>()) {
    if (test->else_body) return lacks("`else`");
    const Expr holds = arith::simplify(substitute(test->condition, copies));
    guards_.push_back(holds), conditions_.push_back(holds);
    const Status done = statement(test->then_body, copies);
    guards_.pop_back(), conditions_.pop_back();
    return done;
  }
  if (const auto* all = s.as<Seq>()) {
    for (const Stmt& one : all->stmts) TW_TRY_STATUS(statement(one, copies));
    return {};
  }
  return lacks("statement of this kind inside of a nest");
}

/// One store for each element: what was there, and all that this iteration adds to it.
Status GraphBuilder::finish() {
  for (Pending& p : pending_) {
    const Number type = fpga::number_of(p.dtype);
    std::vector<fpga::Range> ranges = p.terms[0].ranges;
    if (p.combine == Combine::Set) {
      nest_.stores.push_back({p.place, p.terms[0].node, ranges});
      continue;
    }
    const bool alike = std::all_of(p.terms.begin(), p.terms.end(),
                                   [&](const auto& term) { return term.ranges == ranges; });
    if (!alike && p.combine != Combine::Add)
      return lacks("product, minimum or maximum of terms with conditions of their own");
    std::vector<int> terms;
    for (const Pending::Term& term : p.terms) {
      int node = term.node;
      if (!alike) {
        Node flag{Op::Flag, kFlag};
        flag.ranges = term.ranges;
        node =
            apply(Op::Select, type, {this->node(std::move(flag)), node, constant(p.dtype, 0, 0)});
      }
      terms.push_back(node);
    }
    const Op op = p.combine == Combine::Add   ? Op::Add
                  : p.combine == Combine::Mul ? Op::Mul
                  : p.combine == Combine::Min ? Op::Min
                                              : Op::Max;
    TW_TRY_STATUS(read_once(p.place, p.name));
    Node before{Op::Read, type};
    before.place = p.place;
    const int sum = apply(op, type, {node(std::move(before)), tree(op, type, std::move(terms))});
    nest_.stores.push_back({p.place, sum, alike ? ranges : std::vector<fpga::Range>{}});
  }
  return {};
}

Result<fpga::Nest> GraphBuilder::run(const Stmt& body) {
  TW_TRY_STATUS(statement(body, {}));
  TW_TRY_STATUS(finish());
  for (const int lane : nest_.stream.nodes)
    if (lane < 0) return fail(ErrorKind::Unsupported, "groups that are not written whole");
  leave_out_unused();
  return std::move(nest_);
}

/// Casts that nobody needs any more: what reads them took the value before.
void GraphBuilder::leave_out_unused() {
  std::vector<bool> used(nest_.nodes.size(), false);
  for (const fpga::Store& store : nest_.stores) used[static_cast<size_t>(store.node)] = true;
  for (const int lane : nest_.stream.nodes) used[static_cast<size_t>(lane)] = true;
  for (size_t n = used.size(); n-- > 0;)
    for (const int input : nest_.nodes[n].inputs)
      if (used[n]) used[static_cast<size_t>(input)] = true;
  std::vector<int> now(used.size(), -1);
  std::vector<Node> kept;
  for (size_t n = 0; n < used.size(); ++n) {
    if (!used[n]) continue;
    now[n] = static_cast<int>(kept.size());
    kept.push_back(std::move(nest_.nodes[n]));
    for (int& input : kept.back().inputs) input = now[static_cast<size_t>(input)];
  }
  nest_.nodes = std::move(kept);
  for (fpga::Store& store : nest_.stores) store.node = now[static_cast<size_t>(store.node)];
  for (int& lane : nest_.stream.nodes) lane = now[static_cast<size_t>(lane)];
}

}  // namespace tilewright::codegen::fpga_design
