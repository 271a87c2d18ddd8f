#include "tilewright/interp/checker.h"

#include <fmt/format.h>

#include <numeric>

#include "tilewright/base/array.h"

namespace tilewright::interp {
namespace {

const std::string kNoBlock = "(no block)";

const std::string* block_of(const Machine& m) { return m.block != nullptr ? m.block : &kNoBlock; }

}  // namespace

void Checker::read(Machine& m, const Element& access, int64_t offset) {
  Shadow& s = m.buffers[access.slot].shadow[offset];
  if (!s.defined)
    report(m, access, Finding::Kind::UndefinedRead, "is read before anything wrote it");
  if (const Conflict c = unordered(s.writer, current_)) race(m, access, c, "wrote", "reads");
  if (const Conflict c = unordered(s.updater, current_)) race(m, access, c, "updated", "reads");
  if (s.reader == 0 || !unordered(s.reader, current_)) s.reader = current_;
}

void Checker::write(Machine& m, const Element& access, int64_t offset, Combine combine,
                    bool atomic) {
  Shadow& s = m.buffers[access.slot].shadow[offset];
  const bool set = combine == Combine::Set;
  if (!set && !s.defined)
    report(m, access, Finding::Kind::UndefinedRead, "is updated before anything wrote it");
  const bool update = atomic && !set;
  if (const Conflict c = unordered(s.writer, current_)) race(m, access, c, "wrote", "writes");
  if (const Conflict c = unordered(s.reader, current_)) race(m, access, c, "read", "writes");
  if (!update)
    if (const Conflict c = unordered(s.updater, current_)) race(m, access, c, "updated", "writes");
  if (set && s.set_block != nullptr && options_.single_assignment)
    report(m, access, Finding::Kind::WrittenTwice,
           fmt::format("already has a value from block `{}`", *s.set_block));
  if (set) s.set_block = block_of(m);
  s.writer_block = block_of(m);
  s.defined = true;
  if (!update) {
    s.writer = current_;
  } else if (s.updater == 0 || !unordered(s.updater, current_)) {
    s.updater = current_;
  }
}

void Checker::out_of_bounds(const std::string& text) {
  if (!full()) findings_.push_back({Finding::Kind::OutOfBounds, text});
}

void Checker::unwritten(const Buffer& buffer, const BufferState& state) {
  const int64_t count = element_count(state.extents);
  for (int64_t i = 0; i < count; ++i) {
    if (state.shadow[i].defined) continue;
    std::vector<int64_t> indices(state.extents.size());
    for (size_t k = indices.size(), rest = static_cast<size_t>(i); k-- > 0;) {
      indices[k] = static_cast<int64_t>(rest % static_cast<size_t>(state.extents[k]));
      rest /= static_cast<size_t>(state.extents[k]);
    }
    if (!full())
      findings_.push_back(
          {Finding::Kind::UndefinedRead, fmt::format("element {}{} of the output is never written",
                                                     buffer.name(), to_string(indices))});
    return;
  }
}

std::vector<int64_t> Checker::shuffled(int64_t extent) {
  std::vector<int64_t> order(static_cast<size_t>(extent));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = extent; i > 1; --i) std::swap(order[i - 1], order[rng_.below(i)]);
  return order;
}

uint32_t Checker::enter_loop(const For& loop) {
  instances_.push_back(&loop);
  return static_cast<uint32_t>(instances_.size() - 1);
}

TaskId Checker::enter_iteration(uint32_t instance, int64_t iteration) {
  tasks_.push_back({current_, instance, tasks_[current_].depth + 1, iteration});
  return std::exchange(current_, static_cast<TaskId>(tasks_.size() - 1));
}

Checker::Conflict Checker::unordered(TaskId a, TaskId b) const {
  if (a == 0 || a == b) return {};
  TaskId below_a = 0, below_b = 0;
  auto up = [&](TaskId& task, TaskId& below) {
    below = task;
    task = tasks_[task].parent;
  };
  while (tasks_[a].depth > tasks_[b].depth) up(a, below_a);
  while (tasks_[b].depth > tasks_[a].depth) up(b, below_b);
  if (a == b) return {};
  while (a != b) up(a, below_a), up(b, below_b);
  const Task &x = tasks_[below_a], &y = tasks_[below_b];
  if (x.instance != y.instance) return {};
  return {x.instance, x.iteration, y.iteration};
}

void Checker::race(Machine& m, const Element& access, const Conflict& c, const char* earlier,
                   const char* now) {
  const For& loop = *instances_[c.instance];
  const Shadow& s = m.buffers[access.slot].shadow[access.offset(m)];
  const std::string by = std::string_view(earlier) == "read" || s.writer_block == nullptr
                             ? ""
                             : fmt::format(" in block `{}`", *s.writer_block);
  report(m, access, Finding::Kind::Race,
         fmt::format("is raced for by two iterations of the {} loop `{}`: {} {} it{}, {} {} it",
                     name(loop.kind), loop.var.name(), c.first, earlier, by, c.second, now));
}

void Checker::report(Machine& m, const Element& access, Finding::Kind kind,
                     const std::string& detail) {
  if (full()) return;
  const std::string& block = *block_of(m);
  if (!seen_.insert(fmt::format("{} {} {}", static_cast<int>(kind), block, access.buffer.name()))
           .second)
    return;
  findings_.push_back({kind, fmt::format("block `{}`: {} {}", block, access.element(m), detail)});
}

}  // namespace tilewright::interp
