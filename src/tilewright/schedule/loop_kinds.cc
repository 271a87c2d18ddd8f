// The steps that change what a loop permits, not what it does: Parallel, Vectorize, Bind, Unroll,
// SetMark; and Spread, which shares a loop out over threads.
//
//   for f in 256 { T[f] = A[f] }        (Spread: axes = [thread.y, thread.x], extents = [4, 32])
//   =>
//   for f.o in 2, f.i.o in 4 bind(thread.y), f.i.i in 32 bind(thread.x) { T[128*f.o + ..] = .. }
//
// Loops that run at the same time must not carry a dependence (carried_by in
// schedule/dependence.h). The table of marks says on what each mark may stand.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "tilewright/lower/initiation.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/regenerate.h"

namespace tilewright::schedule {
namespace {

Result<Func> with_kind(const Tree& tree, Id id, ForKind kind) {
  For loop = tree.loop(id);
  loop.kind = kind;
  Edit edit(tree);
  edit.replace(id, make(std::move(loop)));
  return edit.func();
}

/// errors: NotApplicable if the loop is not serial, its iterations depend on each other, or they
/// would share a register.
Status check_independent(const Tree& tree, Id id, bool atomic_ok) {
  const For& loop = tree.loop(id);
  const std::string& name = loop.var.name();
  if (loop.kind != ForKind::Serial)
    return refuse(1, fmt::format("loop {} is {}", name, tilewright::name(loop.kind)));
  if (auto conflict = carried_by(tree, id, atomic_ok)) return refuse(2, *conflict);
  return {};
}

/// A thread's own memory must be allocated inside the thread's loop.
Status check_private(const Tree& tree, Id id) {
  const Uses uses(tree);
  for (Id n = 0; n < id; ++n) {
    const Alloc* a = tree.as<Alloc>(n);
    if (a == nullptr || (a->buffer.scope() != "local" && a->buffer.scope() != "warp")) continue;
    for (Id user : uses.users(a->buffer))
      if (tree.inside(user, id))
        return refuse(3, fmt::format("{} buffer {} is allocated outside loop {}", a->buffer.scope(),
                                     a->buffer.name(), tree.loop(id).var.name()));
  }
  return {};
}

constexpr std::string_view kAxes[] = {"block.x",  "block.y",  "block.z",
                                      "thread.x", "thread.y", "thread.z"};

bool is_block(std::string_view axis) { return axis.starts_with("block."); }

/// Along a path through the tree every axis stands once, blocks outside threads.
Status check_axis(const Tree& tree, Id id, const std::string& axis) {
  if (std::find(std::begin(kAxes), std::end(kAxes), axis) == std::end(kAxes))
    return refuse(3, fmt::format("'{}' is no axis", axis));
  for (Id n = 0; n < tree.end(id); ++n) {
    const For* other = tree.as<For>(n);
    const bool around = n < id && tree.inside(id, n);
    if (other == nullptr || n == id || other->kind != ForKind::Bind || !(around || n > id))
      continue;
    if (other->axis == axis)
      return refuse(3, fmt::format("loop {} has the axis {}", other->var.name(), axis));
    if (around ? is_block(axis) && !is_block(other->axis)
               : !is_block(axis) && is_block(other->axis))
      return refuse(3, fmt::format("block loop {} would be inside thread loop {}",
                                   around ? tree.loop(id).var.name() : other->var.name(),
                                   around ? other->var.name() : tree.loop(id).var.name()));
  }
  return {};
}

/// Whether the iterations of a loop may run along `axes`.
Status check_bindable(const Tree& tree, Id id, const Names& axes) {
  if (in_vector_loop(tree, id))
    return refuse(1, fmt::format("loop {} is in a vector loop", tree.loop(id).var.name()));
  TW_TRY_STATUS(check_independent(tree, id, true));
  std::set<std::string> seen;
  for (const std::string& axis : axes) {
    TW_TRY_STATUS(check_axis(tree, id, axis));
    if (!seen.insert(axis).second || is_block(axis) != is_block(axes[0]))
      return refuse(3, fmt::format("axis {} stands beside {}", axis, axes[0]));
  }
  return {};
}

/// The program with `loop` bound. requires: it may be.
Result<Func> bound(const Func& func, const Name& loop, const Name& axis) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_loop(loop));
  For changed = tree.loop(id);
  changed.kind = ForKind::Bind;
  changed.axis = axis;
  Edit edit(tree);
  edit.replace(id, make(std::move(changed)));
  return edit.func();
}

struct MarkRow {
  MarkKind kind;
  bool loop, block, buffer;  ///< what it may stand on
};
constexpr MarkRow kMarks[] = {
    {MarkKind::Async, false, true, false},     {MarkKind::Atomic, false, true, false},
    {MarkKind::Pipeline, true, false, false},  {MarkKind::InitiationInterval, true, false, false},
    {MarkKind::Partition, false, false, true}, {MarkKind::Prefetch, true, false, false},
    {MarkKind::FetchNext, true, false, false}, {MarkKind::Copies, false, true, true},
    {MarkKind::Align, false, false, true},     {MarkKind::Pad, false, false, true},
    {MarkKind::Slots, false, false, true},     {MarkKind::Port, true, true, false},
};

void put(Marks& marks, const Mark& mark) {
  std::erase_if(marks, [&](const Mark& m) { return m.kind == mark.kind; });
  marks.push_back(mark);
}

/// The mark with its value: an integer if it reads as one, else a word.
Result<Mark> parse_mark(const SetMark& step) {
  const auto kind = parse_mark_kind(step.mark);
  if (!kind)
    return fail(ErrorKind::Invalid, fmt::format("no mark is named {}", step.mark),
                "marks: " + mark_kinds());
  Mark mark{*kind, int64_t{0}};
  int64_t number = 0;
  const char* end = step.value.data() + step.value.size();
  const auto [ptr, error] = std::from_chars(step.value.data(), end, number);
  if (error == std::errc() && ptr == end) {
    mark.value = number;
  } else if (valid_name(step.value)) {
    mark.value = step.value;
  } else {
    return fail(ErrorKind::Invalid,
                fmt::format("the value of mark {} must be an integer or a word", step.mark),
                fmt::format("it is \"{}\"", step.value));
  }
  return mark;
}

/// Marks whose values the verifier holds to a range.
Status check_value(const Mark& mark) {
  const auto* n = std::get_if<int64_t>(&mark.value);
  if (mark.kind == MarkKind::Slots && (n == nullptr || *n < 1 || *n > 8))
    return refuse(3, "the value of mark slots is not 1 to 8");
  if (mark.kind == MarkKind::Port && (n == nullptr || *n < 0))
    return refuse(3, "the value of mark port is no number of a port");
  if (mark.kind == MarkKind::InitiationInterval && (n == nullptr || *n < 1))
    return refuse(3, "the value of mark ii is no number of cycles");
  return {};
}

/// Whether `id` can begin an iteration of all loops around it every few cycles (4. to 6.).
Status check_initiation(const Tree& tree, Id id) {
  const Name& loop = tree.loop(id).var.name();
  for (Id n = id + 1; n < tree.end(id); ++n)
    if (const For* inner = tree.as<For>(n); inner && inner->kind != ForKind::Unroll)
      return refuse(4,
                    fmt::format("loop {} inside of {} is not unrolled", inner->var.name(), loop));
  for (Id at = tree.parent(id); at != kNone && tree.parent(at) != kNone; at = tree.parent(at)) {
    if (tree.as<For>(at)) continue;
    const std::vector<Id> all = tree.children(at);
    if (std::any_of(all.begin(), all.end(), [&](Id s) { return tree.as<Alloc>(s) != nullptr; }))
      break;
    return refuse(5, fmt::format("loop {} is not the only statement in the loop around it", loop));
  }
  if (auto why = lower::sums_out_of_order(tree.loop(id), tree.func().math)) return refuse(6, *why);
  return {};
}

Status check_atomic(const Tree& tree, Id id) {
  const Store* s = single_store(tree.block(id));
  if (s == nullptr || s->combine == Combine::Set)
    return refuse(2, fmt::format("block {} does not combine", tree.block(id).name));
  if (order_matters(tree.func().math, s->buffer.dtype(), s->combine))
    return refuse(2,
                  fmt::format("block {} sums floats and the math is exact", tree.block(id).name));
  return {};
}

}  // namespace

Result<Func> run(const Parallel& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_loop(step.loop));
  if (in_vector_loop(tree, id))
    return refuse(1, fmt::format("loop {} is in a vector loop", step.loop));
  TW_TRY_STATUS(check_independent(tree, id, true));
  TW_TRY_STATUS(check_private(tree, id));
  return with_kind(tree, id, ForKind::Parallel);
}

Result<Func> run(const Bind& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_loop(step.loop));
  TW_TRY_STATUS(check_bindable(tree, id, {step.axis}));
  const auto extent = as_int(tree.loop(id).extent);
  if (!extent || *extent < 1)
    return refuse(4, fmt::format("the extent of loop {} is not a positive constant", step.loop));
  return bound(func, step.loop, step.axis);
}

Result<Func> run(const Spread& step, const Func& func) {
  const Tree tree(func);
  TW_TRY_STATUS(check_bindable(tree, TW_TRY(tree.find_loop(step.loop)), step.axes));
  int64_t inside = 1;
  for (const int64_t extent : step.extents) {
    if (extent < 1 || extent > (int64_t{1} << 31) / inside)
      return refuse(4, fmt::format("{} is no extent of an axis", extent));
    inside *= extent;
  }
  if (step.axes.empty() || step.axes.size() != step.extents.size())
    return refuse(4, fmt::format("{} extents for {} axes", step.extents.size(), step.axes.size()));
  Func out = func;
  std::string rest = step.loop;
  for (size_t i = 0; i < step.axes.size(); ++i) {
    out = TW_TRY(run(Split{rest, inside}, out));
    if (i > 0) out = TW_TRY(bound(out, rest + ".o", step.axes[i - 1]));
    rest += ".i";
    inside /= step.extents[i];
  }
  return bound(out, rest, step.axes.back());
}

Result<Func> run(const Vectorize& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_loop(step.loop));
  const auto extent = as_int(tree.loop(id).extent);
  if (!extent || *extent < 1)
    return refuse(3, fmt::format("the extent of loop {} is not a positive constant", step.loop));
  for (Id n = id + 1; n < tree.end(id); ++n)
    if (tree.as<For>(n) || tree.as<Alloc>(n) ||
        (tree.as<Block>(n) && tree.block(n).body.as<Call>()))
      return refuse(3, fmt::format("loop {} is not innermost around plain stores", step.loop));
  TW_TRY_STATUS(check_independent(tree, id, false));
  return with_kind(tree, id, ForKind::Vector);
}

Result<Func> run(const Unroll& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_loop(step.loop));
  const For& loop = tree.loop(id);
  if (loop.kind != ForKind::Serial)
    return refuse(1, fmt::format("loop {} is {}", step.loop, name(loop.kind)));
  if (!as_int(loop.extent))
    return refuse(2, fmt::format("the extent of loop {} is not constant", step.loop));
  return with_kind(tree, id, ForKind::Unroll);
}

Result<Func> run(const SetMark& step, const Func& func) {
  const Tree tree(func);
  const Mark mark = TW_TRY(parse_mark(step));
  TW_TRY_STATUS(check_value(mark));
  const MarkRow* row = std::find_if(std::begin(kMarks), std::end(kMarks),
                                    [&](const MarkRow& r) { return r.kind == mark.kind; });
  Edit edit(tree);
  const auto loop = tree.find_loop(step.target), block = tree.find_block(step.target);
  const auto buffer = tree.find_buffer(step.target);
  if (!loop && !block && !buffer)
    return fail(ErrorKind::Invalid,
                fmt::format("no loop, block or buffer is named {}", step.target));
  if (row->loop && loop) {
    if (mark.kind == MarkKind::InitiationInterval) TW_TRY_STATUS(check_initiation(tree, *loop));
    For changed = tree.loop(*loop);
    put(changed.marks, mark);
    edit.replace(*loop, make(std::move(changed)));
  } else if (row->block && block) {
    if (mark.kind == MarkKind::Atomic) TW_TRY_STATUS(check_atomic(tree, *block));
    Block changed = tree.block(*block);
    put(changed.marks, mark);
    edit.replace(*block, make(std::move(changed)));
  } else if (const Id alloc = buffer ? tree.alloc_of(*buffer) : kNone;
             row->buffer && alloc != kNone) {
    Alloc changed = *tree.as<Alloc>(alloc);
    put(changed.marks, mark);
    edit.replace(alloc, make(std::move(changed)));
  } else {
    return refuse(1, fmt::format("mark {} does not stand on {}", step.mark, step.target));
  }
  return edit.func();
}

}  // namespace tilewright::schedule
