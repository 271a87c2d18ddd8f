#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

struct MarkRow {
  MarkKind kind;
  bool loop, block, buffer;  ///< what it may stand on
};
constexpr MarkRow kMarks[] = {
    {MarkKind::Async, false, true, false},     {MarkKind::Atomic, false, true, false},
    {MarkKind::Pipeline, true, false, false},  {MarkKind::InitiationInterval, true, false, false},
    {MarkKind::Partition, false, false, true}, {MarkKind::Prefetch, true, true, true},
    {MarkKind::Align, false, false, true},
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
                "marks: async, atomic, pipeline, ii, partition, prefetch, align");
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

Result<Func> run(const VThread& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_loop(step.loop));
  if (in_vector_loop(tree, id))
    return refuse(1, fmt::format("loop {} is in a vector loop", step.loop));
  TW_TRY_STATUS(check_independent(tree, id, false));
  TW_TRY_STATUS(check_private(tree, id));
  const auto extent = as_int(tree.loop(id).extent);
  if (!extent || *extent < 1)
    return refuse(4, fmt::format("the extent of loop {} is not a positive constant", step.loop));
  return with_kind(tree, id, ForKind::VThread);
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
  const MarkRow* row = std::find_if(std::begin(kMarks), std::end(kMarks),
                                    [&](const MarkRow& r) { return r.kind == mark.kind; });
  Edit edit(tree);
  const auto loop = tree.find_loop(step.target), block = tree.find_block(step.target);
  const auto buffer = tree.find_buffer(step.target);
  if (!loop && !block && !buffer)
    return fail(ErrorKind::Invalid,
                fmt::format("no loop, block or buffer is named {}", step.target));
  if (row->loop && loop) {
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
