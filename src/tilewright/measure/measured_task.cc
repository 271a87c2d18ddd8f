// Operands, reference and timing of one kernel. For `C[m, n] += A[m, k] * B[k, n]` all workers fill
// A and B with the same small integers, whose sums are exact in any order. The unscheduled program
// gives the right C. Before each checked call C is filled with 0xff bytes, so an element that a
// schedule leaves out shows. A reading is the mean of so many calls in a row that it lasts as long
// as the setup asks.
#include "tilewright/measure/measured_task.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "tilewright/base/rng.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"
#include "tilewright/measure/compare.h"
#include "tilewright/measure/target_text.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/schedule/step.h"

namespace tilewright::measure {
namespace {

/// Small integers, so that every legal order of additions gives the same bits.
void fill(Array& array, Rng& rng) {
  const bool narrow = bit_width(array.dtype()) <= 16;
  for (int64_t i = 0; i < array.size(); ++i) {
    if (array.dtype() == DType::Bool)
      array.set_int(i, rng.below(2));
    else if (is_float(array.dtype()) || (is_signed_int(array.dtype()) && narrow))
      array.set_int(i, rng.between(-4, 5));
    else
      array.set_int(i, rng.below(6));  // perhaps an index
  }
}

/// A device that has failed may be of no use any more: the worker ends, and says why.
template <class T>
auto value_or_leave(T result) {
  if (!result) {
    fmt::print(stderr, "{}\n", one_line(result.error()));
    std::fflush(stderr);
    ::_exit(1);
  }
  if constexpr (!std::is_same_v<T, Status>) return *std::move(result);
}

std::string at_place(const Param& param, int64_t flat) {
  if (!param.strides.empty()) return fmt::format("{} at offset {}", param.buffer.name(), flat);
  std::string text;
  const std::vector<Expr>& shape = param.buffer.shape();
  for (size_t axis = shape.size(); axis-- > 0;) {
    const int64_t extent = as_int(shape[axis]).value_or(1);
    text = fmt::format("{}{}{}", flat % extent, text.empty() ? "" : ", ", text);
    flat /= extent;
  }
  return fmt::format("{}[{}]", param.buffer.name(), text);
}

}  // namespace

std::string one_line(const Error& error) {
  std::string text = error.place.empty() ? error.what : error.place + ": " + error.what;
  if (!error.why.empty()) text += ": " + error.why;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::shared_ptr<runtime::ThreadPool> SharedThreads::get(int threads) {
  if (last_ == nullptr || last_->threads() != threads)
    last_ = std::make_shared<runtime::ThreadPool>(
        runtime::ThreadPoolOptions{.threads = threads, .pin = threads > 1});
  return last_;
}

MeasuredTask::MeasuredTask(TaskJob job, Func func, hw::Target target, SharedThreads& threads,
                           const CompileFor& compile, const LoadForDevice& load)
    : job_(std::move(job)),
      func_(std::move(func)),
      target_(std::move(target)),
      compile_(compile),
      load_(load),
      pool_(threads.get(on_device() ? 1 : this->threads())) {}

Result<std::unique_ptr<MeasuredTask>> MeasuredTask::create(const TaskJob& job,
                                                           SharedThreads& threads,
                                                           const CompileFor& compile,
                                                           const LoadForDevice& load) {
  Func func = TW_TRY(parse_func(job.func));
  hw::Target target = TW_TRY(parse_target(job.target));
  if (job.device.empty() && target.gpu() != nullptr)
    return fail(ErrorKind::Invalid, fmt::format("a job for {} on '{}'", target.name, job.device));
  if (!job.device.empty() && !load)
    return fail(ErrorKind::Device, "this worker knows no devices", job.device);
  if (!func.scalars.empty())
    return fail(ErrorKind::Unsupported, fmt::format("{} has arguments of its own", func.name),
                "only kernels of fixed sizes are measured");
  std::unique_ptr<MeasuredTask> task(
      new MeasuredTask(job, std::move(func), std::move(target), threads, compile, load));
  Rng rng(1);
  for (size_t i = 0; i < task->func_.params.size(); ++i) {
    const Param& param = task->func_.params[i];
    Array array(param.buffer.dtype(), {TW_TRY(span_of(param))});
    if (param.values)
      std::memcpy(array.data(), param.values->data(), static_cast<size_t>(param.values->bytes()));
    else if (param.mode != ParamMode::Out)
      fill(array, rng);
    if (param.mode == ParamMode::InOut) task->originals_[i] = array.clone();
    if (param.mode == ParamMode::InOut || param.mode == ParamMode::Out) task->results_.push_back(i);
    task->buffers_.push_back(array.data());
    task->operands_.push_back(std::move(array));
  }
  return task;
}

Attempt<BuiltKernel> MeasuredTask::compile_scheduled(const Func& scheduled, bool on_device) const {
  const auto refused = [](const Error& error) {
    return tl::unexpected<Failure>({OutcomeKind::CompileError, one_line(error)});
  };
  try {
    BuiltKernel kernel;
    if (on_device) {
      auto loaded = load_(scheduled, target_, threads(), job_.device);
      if (!loaded) return refused(loaded.error());
      kernel.device = *std::move(loaded);
      return kernel;
    }
    const Result<Func> lowered = lower::run_pipeline(scheduled, "cpu");
    if (!lowered) return refused(lowered.error());
    const bool is_host = this->on_device() || target_.cpu() == nullptr;
    const hw::CpuTarget& cpu = is_host ? hw::host() : *target_.cpu();
    Result<runtime::CompiledKernel> code = compile_(*lowered, cpu);
    if (!code) return refused(code.error());
    kernel.workspace = Array(
        DType::U8, {code->info.shared_bytes + pool_->threads() * code->info.per_worker_bytes});
    kernel.code = *std::move(code);
    return kernel;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return refused({ErrorKind::Invalid, "a bug in the compiler", {}, error.what(), {}, {}});
  }
}

Attempt<BuiltKernel> MeasuredTask::build(const std::string& trace) const {
  const auto invalid = [](const std::string& reason) {
    return tl::unexpected<Failure>({OutcomeKind::Invalid, reason});
  };
  try {
    const Result<schedule::Trace> steps = schedule::parse_trace(trace);
    if (!steps) return invalid(one_line(steps.error()));
    const Result<Func> scheduled = schedule::replay(func_, *steps);
    if (!scheduled) return invalid(one_line(scheduled.error()));
    return compile_scheduled(*scheduled, on_device());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return invalid(fmt::format("a bug in a schedule step: {}", error.what()));
  }
}

/// Mean time of `calls` calls in a row. units: ns.
double MeasuredTask::reading_of(const BuiltKernel& kernel, int64_t calls) {
  if (kernel.device != nullptr) return value_or_leave(kernel.device->run(calls));
  void* workspace = const_cast<void*>(kernel.workspace.data());
  const int64_t begin = now_ns();
  for (int64_t i = 0; i < calls; ++i)
    kernel.code.run(buffers_.data(), nullptr, workspace, &pool_->services());
  return static_cast<double>(now_ns() - begin) / static_cast<double>(calls);
}

/// Operands as they were, results with bytes that no kernel leaves behind: f32 -nan, i32 -1.
void MeasuredTask::restore() {
  for (size_t i : results_) {
    Array& array = operands_[i];
    const auto bytes = static_cast<size_t>(array.bytes());
    if (const auto original = originals_.find(i); original != originals_.end())
      std::memcpy(array.data(), original->second.data(), bytes);
    else
      std::memset(array.data(), 0xff, bytes);
  }
}

std::vector<Array> MeasuredTask::blank_results() const {
  std::vector<Array> arrays;
  for (size_t i : results_) arrays.emplace_back(operands_[i].dtype(), operands_[i].shape());
  return arrays;
}

Attempt<std::vector<Array>> MeasuredTask::reference() {
  Attempt<BuiltKernel> plain = compile_scheduled(func_, false);
  if (!plain && target_.gpu() != nullptr) plain = thread_per_result();
  if (!plain) return tl::unexpected(plain.error());
  call(*plain);
  std::vector<Array> results;
  for (size_t i : results_) results.push_back(operands_[i].clone());
  return results;
}

/// One call that starts from the operands as they were. units: ns.
double MeasuredTask::call(const BuiltKernel& kernel) {
  restore();
  if (kernel.device == nullptr) return reading_of(kernel, 1);
  value_or_leave(kernel.device->write(operands_));
  const double time = reading_of(kernel, 1);
  value_or_leave(kernel.device->read(operands_));
  return time;
}

Attempt<BuiltKernel> MeasuredTask::thread_per_result() const {
  rules::GpuPlan alone;
  alone.rows = false;
  return build(schedule::print(
      rules::gpu_trace(func_, *target_.gpu(),
                       [&](const rules::BlockFacts&, const hw::GpuTarget&) { return alone; })));
}

Attempt<double> MeasuredTask::checked_call(const BuiltKernel& kernel) {
  const double time = call(kernel);
  for (size_t r = 0; r < results_.size(); ++r) {
    const Array &actual = operands_[results_[r]], &right = reference_[r];
    // Equal bits are the rule, and quickly seen.
    if (std::memcmp(actual.data(), right.data(), static_cast<size_t>(right.bytes())) == 0) continue;
    const Difference difference = compare(actual, right, func_.math);
    if (difference.ok()) continue;
    return tl::unexpected<Failure>(
        {OutcomeKind::WrongResult,
         fmt::format("{}: {} instead of {} (error {:.3g}, allowed {:.3g})",
                     at_place(func_.params[results_[r]], difference.worst),
                     actual.get(difference.worst), right.get(difference.worst), difference.error,
                     difference.limit)});
  }
  return time;
}

double MeasuredTask::reading(const BuiltKernel& kernel) { return reading_of(kernel, kernel.calls); }

void MeasuredTask::set_calls(BuiltKernel& kernel, double seconds) {
  kernel.calls = 1;
  // Twice: the first call of a short kernel finds code and data elsewhere.
  double call = reading(kernel);
  if (call < seconds * 1e9) call = std::min(call, reading(kernel));
  kernel.calls = std::clamp(static_cast<int64_t>(std::ceil(seconds * 1e9 / std::max(call, 1.0))),
                            int64_t{1}, int64_t{1000000});
}

}  // namespace tilewright::measure
