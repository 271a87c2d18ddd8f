#include "tilewright/runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tilewright/base/check.h"
#include "tilewright/runtime/executor_state.h"
#include "tilewright/runtime/host_ops.h"
#include "tilewright/runtime/layout.h"
#include "tilewright/runtime/memory.h"
#include "tilewright/runtime/text.h"

namespace tilewright::runtime {
namespace {

using Place = ValueSpec::Place;

constexpr int64_t kAlignment = 64;

int64_t round_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % kAlignment == 0; }

bool overlap(const Array& a, const Array& b) {
  const auto* pa = static_cast<const char*>(a.data());
  const auto* pb = static_cast<const char*>(b.data());
  return pa < pb + b.bytes() && pb < pa + a.bytes();
}

}  // namespace

Result<std::shared_ptr<Launch>> Session::State::load_launch(const std::string& name,
                                                            const SessionOptions& options) const {
  const LaunchInfo& info = program->launches.at(name);
  if (!options.load_launch)
    return fail(
        ErrorKind::Device,
        fmt::format("'{}' runs on '{}', which this runtime cannot drive", name, info.device), {},
        "run it with the tilewright command, or compile the model for a CPU");
  const std::string_view code = options.launch_code ? options.launch_code(name) : "";
  std::unique_ptr<Launch> launch = TW_TRY(options.load_launch(name, info, code));
  return std::shared_ptr<Launch>(std::move(launch));
}

Status Session::State::prepare_steps(const KernelLookup& lookup, const SessionOptions& options) {
  std::vector<Error> problems;
  const std::vector<std::string> hosts = host_op_names();
  for (const StepSpec& step : program->steps) {
    Step prepared;
    prepared.first_pointer = pointers.size();
    pointers.resize(pointers.size() + step.args.size(), nullptr);
    profile.push_back({step.name, step.kernel + step.host + step.launch});
    if (!step.launch.empty()) {
      Result<std::shared_ptr<Launch>> launch = load_launch(step.launch, options);
      if (launch)
        prepared.launch = std::move(*launch);
      else
        problems.push_back(std::move(launch.error()).at(step.name));
    } else if (!step.kernel.empty()) {
      prepared.kernel = lookup(step.kernel);
      if (prepared.kernel == nullptr)
        problems.push_back({ErrorKind::Package,
                            fmt::format("the code has no kernel '{}'", step.kernel),
                            step.name,
                            {},
                            {},
                            {}});
    } else if (!std::binary_search(hosts.begin(), hosts.end(), step.host)) {
      problems.push_back({ErrorKind::Unsupported,
                          fmt::format("this runtime has no host function '{}'", step.host),
                          step.name,
                          {},
                          "use a newer Tilewright runtime",
                          {}});
    }
    steps.push_back(prepared);
  }
  if (problems.empty()) return {};
  Error first = std::move(problems.front());
  first.others.assign(std::make_move_iterator(problems.begin() + 1),
                      std::make_move_iterator(problems.end()));
  return tl::unexpected<Error>(std::move(first));
}

Status Session::State::allocate_memory() {
  const std::string& what = program->name;
  arena = TW_TRY(allocate(program->arena_bytes, fmt::format("the arena of '{}'", what)));
  int64_t interface_bytes = 0, workspace_bytes = 0;
  for (const ValueSpec& value : program->values)
    if (value.place == Place::Input || value.place == Place::Output)
      interface_bytes += round_up(spec_bytes(value));
  interface =
      TW_TRY(allocate(interface_bytes, fmt::format("the inputs and outputs of '{}'", what)));
  for (const auto& [symbol, kernel] : program->kernels)
    workspace_bytes = std::max(
        workspace_bytes, round_up(kernel.shared_bytes) + kernel.per_worker_bytes * pool->threads());
  workspace =
      TW_TRY(allocate(workspace_bytes, fmt::format("the workspace of the kernels of '{}'", what)));
  if (static_cast<int64_t>(weights.bytes.size()) < program->weights_bytes)
    return fail(ErrorKind::Package, fmt::format("the weights of '{}' are cut off", what),
                fmt::format("{} bytes are needed, {} are there", program->weights_bytes,
                            weights.bytes.size()));
  if (!aligned(weights.bytes.data())) {
    auto copy = TW_TRY(allocate(program->weights_bytes, fmt::format("the weights of '{}'", what)));
    std::memcpy(copy.get(), weights.bytes.data(), weights.bytes.size());
    weights.bytes = {static_cast<const char*>(copy.get()), weights.bytes.size()};
    weights.owner = std::move(copy);
  }
  return {};
}

void Session::State::place_values() {
  slots.resize(program->values.size());
  auto* next = static_cast<char*>(interface.get());
  auto* constants = const_cast<char*>(weights.bytes.data());
  for (size_t i = 0; i < slots.size(); ++i) {
    const ValueSpec& value = program->values[i];
    Slot& slot = slots[i];
    slot.shape = value.shape;
    switch (value.place) {
      case Place::Arena:
        slot.owner = arena;
        slot.data = static_cast<char*>(arena.get()) + value.offset;
        break;
      case Place::Weights:
        slot.owner = constants == nullptr ? arena : weights.owner;
        slot.data =
            constants == nullptr ? static_cast<char*>(arena.get()) : constants + value.offset;
        break;
      case Place::Input:
      case Place::Output:
        slot.owner = interface;
        slot.data = slot.home = next;
        next += round_up(spec_bytes(value));
        break;
      case Place::View:  // where its value is, which may change: resolve_pointers
        break;
    }
  }
  inputs.resize(program->inputs.size());
  outputs.resize(program->outputs.size());
}

Result<size_t> Session::State::find(const std::vector<int>& ids, const char* what,
                                    const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (spec(ids[i]).name == name) return i;
    names.push_back(spec(ids[i]).name);
  }
  return tl::unexpected<Error>(unknown_name(what, name, names));
}

Status Session::State::check_inputs_set() const {
  std::vector<Error> missing;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].set) {
      const ValueSpec& value = spec(program->inputs[i]);
      missing.push_back({ErrorKind::Invalid,
                         fmt::format("input '{}' was not set", value.name),
                         {},
                         fmt::format("{} {}", name(value.dtype), shape_text(value)),
                         {},
                         {}});
    }
  if (missing.empty()) return {};
  Error first = std::move(missing.front());
  first.others.assign(std::make_move_iterator(missing.begin() + 1),
                      std::make_move_iterator(missing.end()));
  return tl::unexpected<Error>(std::move(first));
}

/// Decides which caller's memory compiled code uses directly: aligned, laid out as the program
/// says, and shared with no other tensor (buffers of a kernel must not overlap).
void Session::State::resolve_pointers() {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Input& input = inputs[i];
    const int id = program->inputs[i];
    if (input.bound.empty_handle()) continue;
    const Rows rows = rows_of(spec(id), input.bound.shape());
    input.copy = !aligned(input.bound.data()) || rows.gaps();
    slot(id).data = input.copy ? slot(id).home : static_cast<char*>(input.bound.data());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Output& output = outputs[i];
    const int id = program->outputs[i];
    if (output.bound.empty_handle()) continue;
    output.copy = spec(id).place != Place::Output || !aligned(output.bound.data()) ||
                  rows_of(spec(id), spec(id).shape).count > 1;
    for (const Input& input : inputs)
      if (!input.bound.empty_handle() && overlap(input.bound, output.bound)) output.copy = true;
    for (size_t j = 0; j < outputs.size(); ++j)
      if (j != i && !outputs[j].bound.empty_handle() && overlap(outputs[j].bound, output.bound))
        output.copy = true;
    if (spec(id).place == Place::Output)
      slot(id).data = output.copy ? slot(id).home : static_cast<char*>(output.bound.data());
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (spec(static_cast<int>(i)).place != Place::View) continue;
    const Slot& whole = slot(spec(static_cast<int>(i)).of);
    slots[i].owner = whole.owner;
    slots[i].data = whole.data;
  }
  size_t next = 0;
  for (const StepSpec& step : program->steps)
    for (int id : step.args) pointers[next++] = id < 0 ? nullptr : slot(id).data;
  pointers_stale = false;
}

void Session::State::stage_inputs() {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].copy || inputs[i].bound.empty_handle()) continue;
    const int id = program->inputs[i];
    const Rows rows = rows_of(spec(id), inputs[i].bound.shape());
    copy_rows(slot(id).data, rows.pitch, static_cast<const char*>(inputs[i].bound.data()),
              rows.dense, rows);
  }
}

void Session::State::deliver_outputs() {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].copy || outputs[i].bound.empty_handle()) continue;
    const int id = program->outputs[i];
    const Rows rows = rows_of(spec(id), slot(id).shape);
    auto* to = static_cast<char*>(outputs[i].bound.data());
    if (to != slot(id).data) copy_rows(to, rows.dense, slot(id).data, rows.pitch, rows);
  }
}

Session::Session() : state_(std::make_unique<State>()) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Program> program,
                                                 const KernelLookup& lookup, MappedFile weights,
                                                 const SessionOptions& options) {
  TW_CHECK(program != nullptr);
  std::unique_ptr<Session> session(new Session);
  State& state = *session->state_;
  state.program = std::move(program);
  state.keep_alive = options.keep_alive;
  state.weights = std::move(weights);
  state.flush_denormals = options.flush_denormals;
  TW_TRY_STATUS(state.prepare_steps(lookup, options));
  state.pool = options.pool != nullptr
                   ? options.pool
                   : std::make_shared<ThreadPool>(ThreadPoolOptions{
                         .threads = options.threads, .flush_denormals = options.flush_denormals});
  TW_TRY_STATUS(state.allocate_memory());
  state.place_values();
  state.find_aliases();
  state.find_held();
  return session;
}

const Program& Session::program() const { return *state_->program; }
int Session::threads() const { return state_->pool->threads(); }
const std::vector<StepProfile>& Session::profile() const { return state_->profile; }

void Session::reset_profile() {
  for (StepProfile& times : state_->profile)
    times.calls = times.total_ns = times.min_ns = times.last_ns = 0;
}

Status Session::set_input(const std::string& name, const Array& value) {
  const size_t at = TW_TRY(state_->find(program().inputs, "input", name));
  const int id = program().inputs[at];
  TW_TRY_STATUS(check_tensor("input", state_->spec(id), value));
  State::Slot& slot = state_->slot(id);
  const Rows rows = rows_of(state_->spec(id), value.shape());
  if (value.data() != slot.home)
    copy_rows(slot.home, rows.pitch, static_cast<const char*>(value.data()), rows.dense, rows);
  slot.owner = state_->interface;
  slot.data = slot.home;
  slot.shape = value.shape();
  state_->inputs[at] = {true, Array(), false};
  state_->pointers_stale = true;
  return {};
}

Status Session::bind_input(const std::string& name, Array value) {
  const size_t at = TW_TRY(state_->find(program().inputs, "input", name));
  const int id = program().inputs[at];
  TW_TRY_STATUS(check_tensor("input", state_->spec(id), value));
  State::Slot& slot = state_->slot(id);
  // The owner holds the caller's array beside the session's memory: either may be what is read.
  slot.owner = std::make_shared<std::pair<Array, std::shared_ptr<void>>>(value, state_->interface);
  slot.shape = value.shape();
  state_->inputs[at] = {true, std::move(value), false};
  state_->pointers_stale = true;
  return {};
}

Status Session::bind_output(const std::string& name, Array value) {
  const size_t at = TW_TRY(state_->find(program().outputs, "output", name));
  const int id = program().outputs[at];
  const ValueSpec& spec = state_->spec(id);
  TW_TRY_STATUS(check_tensor("output", spec, value));
  if (value.shape() != spec.shape)
    return fail(
        ErrorKind::Invalid, fmt::format("output '{}' has too little room", name),
        fmt::format("{} is needed, {} was given", to_string(spec.shape), to_string(value.shape())));
  if (spec.place == Place::Output)
    state_->slot(id).owner =
        std::make_shared<std::pair<Array, std::shared_ptr<void>>>(value, state_->interface);
  state_->outputs[at] = {std::move(value), false, state_->outputs[at].elsewhere};
  state_->pointers_stale = true;
  return {};
}

void Session::unbind() {
  State& state = *state_;
  auto go_home = [&](int id) {
    state.slot(id).owner = state.interface;
    state.slot(id).data = state.slot(id).home;
  };
  for (size_t i = 0; i < state.inputs.size(); ++i) {
    if (state.inputs[i].bound.empty_handle()) continue;
    state.inputs[i] = {};
    go_home(program().inputs[i]);
  }
  for (size_t i = 0; i < state.outputs.size(); ++i) {
    State::Output& output = state.outputs[i];
    const int id = program().outputs[i];
    if (output.bound.empty_handle()) continue;
    output = {Array(), false, state.ran && !output.copy};
    if (state.spec(id).place == Place::Output) go_home(id);
  }
  state.pointers_stale = true;
}

Status Session::run() {
  State& state = *state_;
  TW_TRY_STATUS(state.check_inputs_set());
  if (state.pointers_stale) state.resolve_pointers();
  state.stage_inputs();
  const FlushDenormals flush(state.flush_denormals);
  TW_TRY_STATUS(state.run_steps());
  state.deliver_outputs();
  for (State::Output& output : state.outputs) output.elsewhere = false;
  state.ran = true;
  return {};
}

Result<Array> Session::get_output(const std::string& name) const {
  const size_t at = TW_TRY(state_->find(program().outputs, "output", name));
  if (!state_->ran)
    return fail(ErrorKind::Invalid, fmt::format("output '{}' is not there yet", name), {},
                "call run first");
  if (state_->outputs[at].elsewhere)
    return fail(ErrorKind::Invalid,
                fmt::format("output '{}' was written to the caller's memory", name));
  return state_->dense(program().outputs[at]);
}

}  // namespace tilewright::runtime
