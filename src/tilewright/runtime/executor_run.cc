// Running the steps of a program.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <span>

#include "tilewright/runtime/executor_state.h"
#include "tilewright/runtime/host_ops.h"
#include "tilewright/runtime/layout.h"

namespace tilewright::runtime {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// What a host function refuses besides values (kind Usage) is the fault of the program's steps.
Status contradiction(Error error) {
  if (error.kind != ErrorKind::Usage) error.kind = ErrorKind::Package;
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace

/// The value as a dense array of its real shape: a view, or a copy where rows have gaps.
Array Session::State::dense(int id) const {
  const Slot& from = slot(id);
  const Rows rows = rows_of(spec(id), from.shape);
  if (!rows.gaps()) return Array(spec(id).dtype, from.shape, from.owner, from.data);
  Array copy(spec(id).dtype, from.shape);
  copy_rows(static_cast<char*>(copy.data()), rows.dense, from.data, rows.pitch, rows);
  return copy;
}

/// The real extent of `from` along its dynamic axis becomes that of `to`, if the bounds agree.
void Session::State::adopt_extent(int to, int from) {
  const ValueSpec &target = spec(to), &source = spec(from);
  slot(to).shape = target.shape;
  if (target.dynamic_axis < 0 || source.dynamic_axis < 0) return;
  const auto axis = static_cast<size_t>(target.dynamic_axis);
  const auto source_axis = static_cast<size_t>(source.dynamic_axis);
  if (target.shape[axis] == source.shape[source_axis])
    slot(to).shape[axis] = slot(from).shape[source_axis];
}

/// Compiled code works on the whole bound, so a dynamic output has the extent of the dynamic input
/// with the same bound.
void Session::State::propagate_extents(const StepSpec& step) {
  const size_t first_output = step.args.size() - static_cast<size_t>(step.num_outputs);
  for (size_t o = first_output; o < step.args.size(); ++o) {
    const ValueSpec& output = spec(step.args[o]);
    if (output.dynamic_axis < 0) continue;
    const int64_t bound = output.shape[static_cast<size_t>(output.dynamic_axis)];
    slot(step.args[o]).shape = output.shape;
    for (size_t i = 0; i < first_output; ++i) {
      const ValueSpec& input = spec(step.args[i]);
      if (input.dynamic_axis < 0 || input.shape[static_cast<size_t>(input.dynamic_axis)] != bound)
        continue;
      adopt_extent(step.args[o], step.args[i]);
      break;
    }
    if (output.place == ValueSpec::Place::View) adopt_extent(output.of, step.args[o]);
  }
}

void Session::State::find_aliases() {
  alias_of.assign(program->values.size(), -1);
  std::vector<bool> written(program->values.size(), false);
  auto is_arena = [&](int id) { return id >= 0 && spec(id).place == ValueSpec::Place::Arena; };
  for (const StepSpec& step : program->steps)
    for (size_t i = step.args.size() - static_cast<size_t>(step.num_outputs); i < step.args.size();
         ++i)
      if (step.args[i] >= 0) written[static_cast<size_t>(step.args[i])] = true;
  for (size_t id = 0; id < alias_of.size(); ++id)
    if (program->values[id].place == ValueSpec::Place::View && !written[id])
      alias_of[id] = program->values[id].of;
  std::map<int64_t, int> last;  // value written last, by offset
  for (const StepSpec& step : program->steps) {
    const size_t first_output = step.args.size() - static_cast<size_t>(step.num_outputs);
    for (size_t i = 0; i < step.args.size(); ++i) {
      const int id = step.args[i];
      if (!is_arena(id)) continue;
      if (i >= first_output) {
        last[spec(id).offset] = id;
        continue;
      }
      const auto it = last.find(spec(id).offset);
      if (spec(id).dynamic_axis >= 0 && !written[static_cast<size_t>(id)] && it != last.end())
        alias_of[static_cast<size_t>(id)] = it->second;
    }
  }
}

/// Values of the arena that host functions alone write and read, and nobody sees as another value:
/// copying them into the arena would be work for nothing. Views of the arena's memory have no
/// writer of their own: what they show are the values that lie there when they are read.
void Session::State::find_held() {
  const size_t count = program->values.size();
  held_until.assign(count, -1);
  std::vector<bool> written(count, false), other(count, false);
  const auto ends = [&](int id) { return spec(id).offset + spec_bytes(spec(id)); };
  const auto overlap = [&](int a, int b) {
    return spec(a).offset < ends(b) && spec(b).offset < ends(a);
  };
  const auto outputs_of = [](const StepSpec& step) {
    return std::span<const int>(step.args).last(static_cast<size_t>(step.num_outputs));
  };
  for (size_t i = 0; i < program->steps.size(); ++i) {
    const StepSpec& step = program->steps[i];
    for (int id : outputs_of(step))
      if (id >= 0) written[static_cast<size_t>(id)] = true;
    for (int id : step.args) {
      if (id < 0) continue;
      const auto at = static_cast<size_t>(id);
      const bool gaps = rows_of(spec(id), spec(id).shape).count > 1 && spec(id).dynamic_axis >= 0;
      if (step.host.empty() || gaps || spec(id).place != ValueSpec::Place::Arena) other[at] = true;
      held_until[at] = static_cast<int>(i);
      if (written[at] || spec(id).place != ValueSpec::Place::Arena) continue;
      for (size_t before = i; before-- > 0;) {
        bool covered = false;
        for (int source : outputs_of(program->steps[before])) {
          if (source < 0 || spec(source).place != ValueSpec::Place::Arena || !overlap(source, id))
            continue;
          other[static_cast<size_t>(source)] = true;
          covered = spec(source).offset <= spec(id).offset && ends(source) >= ends(id);
        }
        if (covered) break;
      }
    }
  }
  for (size_t id = 0; id < count; ++id)
    if (other[id] || !written[id]) held_until[id] = -1;
}

void Session::State::let_go(int id) {
  slot(id).owner = arena;
  slot(id).data = static_cast<char*>(arena.get()) + spec(id).offset;
}

/// Writes the result of a host function. errors: Invalid (type, shape).
Status Session::State::store(int id, const Array& result, bool elsewhere) {
  const ValueSpec& value = spec(id);
  TW_TRY_STATUS(check_tensor("result", value, result));
  Slot& to = slot(id);
  if (held_until[static_cast<size_t>(id)] >= 0) {
    let_go(id);
    if (elsewhere) {
      auto kept = std::make_shared<Array>(result);
      to = {kept, static_cast<char*>(kept->data()), nullptr, result.shape()};
      return {};
    }
  }
  to.shape = result.shape();
  if (value.place == ValueSpec::Place::View) adopt_extent(value.of, id);
  const Rows rows = rows_of(value, to.shape);
  if (rows.dense != rows.pitch)  // compiled code may read up to the bound
    std::memset(to.data, 0, static_cast<size_t>(spec_bytes(value)));
  copy_rows(to.data, rows.pitch, static_cast<const char*>(result.data()), rows.dense, rows);
  return {};
}

/// The host function Copy knows its input only; here the output has a shape of its own.
Status Session::State::run_copy_step(const StepSpec& step) {
  if (step.args.size() != 2 || step.num_outputs != 1 || step.args[0] < 0 || step.args[1] < 0)
    return fail(ErrorKind::Package, "Copy has one input and one output");
  const Array input = dense(step.args[0]);
  const ValueSpec& output = spec(step.args[1]);
  Shape shape = output.shape;
  if (output.dynamic_axis >= 0) {
    int64_t& extent = shape[static_cast<size_t>(output.dynamic_axis)];
    extent = 1;
    const int64_t others = element_count(shape);
    extent = others == 0 ? 0 : input.size() / others;
  }
  if (element_count(shape) != input.size())
    return fail(ErrorKind::Package,
                fmt::format("{} cannot become {}", to_string(input.shape()), shape_text(output)));
  return store(step.args[1], input.reshaped(shape));
}

Status Session::State::run_host_step(const StepSpec& step) {
  if (step.host == "Copy") return run_copy_step(step);
  const size_t first_output = step.args.size() - static_cast<size_t>(step.num_outputs);
  std::vector<Array> args;
  for (size_t i = 0; i < first_output; ++i)
    args.push_back(step.args[i] < 0 ? Array() : dense(step.args[i]));
  Result<std::vector<Array>> run = run_host_op(step.host, step.attrs, args);
  if (!run) return contradiction(std::move(run.error()));
  const std::vector<Array>& results = *run;
  for (size_t i = first_output; i < step.args.size(); ++i) {
    if (step.args[i] < 0) continue;
    if (i - first_output >= results.size())
      return fail(ErrorKind::Package, fmt::format("{} has {} results, not {}", step.host,
                                                  results.size(), step.num_outputs));
    const Array& result = results[i - first_output];
    const auto is_own = [&](size_t k) {  // an input that is handed on may be written again
      const int id = step.args[k];
      return id < 0 || args[k].data() != result.data() ||
             (held_until[static_cast<size_t>(id)] >= 0 && slot(id).owner != arena);
    };
    bool elsewhere = true;
    for (size_t k = 0; k < first_output; ++k) elsewhere = elsewhere && is_own(k);
    if (Status stored = store(step.args[i], result, elsewhere); !stored)
      return contradiction(std::move(stored.error()));
  }
  return {};
}

Status Session::State::run_launch_step(const StepSpec& step, Launch& launch) {
  const size_t first_output = step.args.size() - static_cast<size_t>(step.num_outputs);
  std::vector<Array> given, results;
  for (size_t i = 0; i < step.args.size(); ++i)
    (i < first_output ? given : results).push_back(dense(step.args[i]));
  return launch.run(given, results);
}

Status Session::State::run_step(size_t index, int64_t& clock) {
  const StepSpec& step = program->steps[index];
  for (int id : step.args)
    if (id >= 0 && alias_of[static_cast<size_t>(id)] >= 0)
      adopt_extent(id, alias_of[static_cast<size_t>(id)]);
  if (steps[index].kernel != nullptr) {
    steps[index].kernel(pointers.data() + steps[index].first_pointer, nullptr, workspace.get(),
                        &pool->services());
    propagate_extents(step);
  } else if (Status status = steps[index].launch != nullptr
                                 ? run_launch_step(step, *steps[index].launch)
                                 : run_host_step(step);
             !status) {
    return tl::unexpected<Error>(std::move(status.error()).at(step.name));
  }
  for (int id : step.args)
    if (id >= 0 && held_until[static_cast<size_t>(id)] == static_cast<int>(index)) let_go(id);
  StepProfile& times = profile[index];
  const int64_t now = now_ns();
  times.last_ns = now - clock;
  clock = now;
  times.total_ns += times.last_ns;
  times.min_ns = times.calls == 0 ? times.last_ns : std::min(times.min_ns, times.last_ns);
  ++times.calls;
  return {};
}

/// The clock is read once per step, so that times add up to the whole and cost little.
Status Session::State::run_steps() {
  int64_t clock = now_ns();
  for (size_t i = 0; i < steps.size(); ++i) TW_TRY_STATUS(run_step(i, clock));
  return {};
}

}  // namespace tilewright::runtime
