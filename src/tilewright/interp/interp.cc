#include "tilewright/interp/interp.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "tilewright/base/scanner.h"
#include "tilewright/interp/checker.h"
#include "tilewright/interp/scalar.h"

namespace tilewright::interp {

BufferState::BufferState() = default;
BufferState::BufferState(BufferState&&) noexcept = default;
BufferState::~BufferState() = default;

void fault(std::string what, std::string why) {
  throw Fault{{ErrorKind::Invalid, std::move(what), {}, std::move(why), {}, {}}};
}

std::string Element::element(Machine& m) const {
  std::vector<int64_t> values;
  for (const Linear& index : indices) values.push_back(index.get(m));
  return buffer.name() + to_string(values);
}

void Element::out_of_bounds(Machine& m) const {
  throw Fault{{ErrorKind::Invalid,
               fmt::format("block `{}`: {} is outside the shape {} of `{}`",
                           m.block != nullptr ? *m.block : "(no block)", element(m),
                           to_string(m.buffers[slot].extents), buffer.name()),
               {},
               {},
               {},
               {}},
              true};
}

int64_t checked_count(const std::vector<int64_t>& extents, const Buffer& buffer) {
  // Asking for more than there is would not fail here but kill the process while it is filled.
  static const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const int64_t most = memory / (bit_width(buffer.dtype()) / 8);
  int64_t count = 1;
  for (const int64_t extent : extents) {
    if (extent < 0) fault(fmt::format("`{}` has the negative extent {}", buffer.name(), extent));
    if (extent > 0 && count > most / extent)
      throw Fault{{ErrorKind::Limit,
                   fmt::format("`{}` of shape {} does not fit in the {} GiB of this host",
                               buffer.name(), to_string(extents), memory >> 30),
                   {},
                   {},
                   {},
                   {}}};
    count *= extent;
  }
  return count;
}

void poison(std::byte* data, DType dtype, int64_t count) {
  const int pattern = is_float(dtype) ? 0xff : dtype == DType::Bool ? 1 : 0xa5;
  std::memset(data, pattern, static_cast<size_t>(storage_bytes(dtype, count)));
}

void allocate(Machine& m, BufferState& b, const Buffer& buffer, std::vector<int64_t> extents) {
  const int64_t count = checked_count(extents, buffer);
  const auto bytes = static_cast<size_t>(storage_bytes(buffer.dtype(), count));
  if (b.data == nullptr || b.capacity < bytes) {
    b.memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    b.data = b.memory.get();
    b.capacity = bytes;
  }
  poison(b.data, buffer.dtype(), count);
  b.strides = dense_strides(extents);
  b.extents = std::move(extents);
  if (m.checker == nullptr) return;
  b.shadow_memory = std::make_unique<Shadow[]>(static_cast<size_t>(count));
  b.shadow = b.shadow_memory.get();
}

namespace {

/// Arguments bound to the slots of the compiled function.
class Runner {
 public:
  Runner(const Func& func, const Arguments& args, const Options& options)
      : func_(func), args_(args), checker_(options) {
    if (options.check) machine_.checker = &checker_;
    machine_.stop = &options.stop;
  }

  Result<Outcome> run() {
    TW_TRY_STATUS(check_names());
    program_ = compile(func_);
    vars_.resize(static_cast<size_t>(program_->num_vars));
    buffers_ = std::vector<BufferState>(static_cast<size_t>(program_->num_buffers));
    machine_.vars = vars_.data();
    machine_.buffers = buffers_.data();
    for (size_t i = 0; i < func_.scalars.size(); ++i) TW_TRY_STATUS(bind_scalar(i));
    for (size_t i = 0; i < func_.params.size(); ++i)
      TW_TRY_STATUS(bind_param(i, program_->param_shapes[i]));
    try {
      program_->body->run(machine_);
      if (machine_.checker != nullptr)
        for (size_t i = 0; i < func_.params.size(); ++i)
          if (func_.params[i].mode == ParamMode::Out)
            checker_.unwritten(func_.params[i].buffer, buffers_[i]);
    } catch (Fault& f) {
      // The checking mode reports an access outside a buffer, or stops when it has enough.
      if (machine_.checker == nullptr || !f.out_of_bounds) throw;
      if (!f.error.what.empty()) checker_.out_of_bounds(f.error.what);
    }
    outcome_.findings = checker_.take();
    return std::move(outcome_);
  }

  const Machine& machine() const { return machine_; }

 private:
  Status check_names() const {
    std::vector<std::string> arrays, scalars;
    for (const Param& p : func_.params) arrays.push_back(p.buffer.name());
    for (const Scalar& s : func_.scalars) scalars.push_back(s.var.name());
    auto check = [&](const auto& given, const std::vector<std::string>& known,
                     const char* what) -> Status {
      for (const auto& entry : given) {
        if (std::find(known.begin(), known.end(), entry.first) != known.end()) continue;
        const std::string nearest = nearest_name(entry.first, known);
        return fail(ErrorKind::Invalid,
                    fmt::format("`{}` has no {} `{}`", func_.name, what, entry.first), {},
                    nearest.empty() ? "" : fmt::format("did you mean `{}`?", nearest));
      }
      return {};
    };
    TW_TRY_STATUS(check(args_.arrays, arrays, "parameter"));
    return check(args_.scalars, scalars, "scalar");
  }

  Status bind_scalar(size_t i) {
    const Scalar& s = func_.scalars[i];
    const auto given = args_.scalars.find(s.var.name());
    if (given == args_.scalars.end())
      return fail(ErrorKind::Invalid,
                  fmt::format("scalar `{}` of `{}` has no value", s.var.name(), func_.name));
    if (given->second < s.lo || given->second > s.hi)
      return fail(ErrorKind::Invalid,
                  fmt::format("scalar `{}` of `{}` is {}, outside {}..{}", s.var.name(), func_.name,
                              given->second, s.lo, s.hi));
    vars_[i] = given->second;
    return {};
  }

  Status bind_param(size_t i, const std::vector<Linear>& shape) {
    const Param& p = func_.params[i];
    BufferState& state = buffers_[i];
    for (const Linear& extent : shape) state.extents.push_back(extent.get(machine_));
    const int64_t count = checked_count(state.extents, p.buffer);
    state.strides = dense_strides(state.extents);
    Array array;
    if (p.mode == ParamMode::Out) {
      array = Array(p.buffer.dtype(), state.extents);
      poison(static_cast<std::byte*>(array.data()), array.dtype(), count);
    } else {
      array = TW_TRY(argument(p, state.extents));
      if (p.mode == ParamMode::InOut) array = array.clone();
    }
    if (p.mode == ParamMode::Out || p.mode == ParamMode::InOut)
      outcome_.outputs[p.buffer.name()] = array;
    inputs_.push_back(array);
    state.data = static_cast<std::byte*>(array.data());
    if (machine_.checker == nullptr) return {};
    state.shadow_memory = std::make_unique<Shadow[]>(static_cast<size_t>(count));
    state.shadow = state.shadow_memory.get();
    for (int64_t e = 0; e < count; ++e) state.shadow[e].defined = p.mode != ParamMode::Out;
    return {};
  }

  Result<Array> argument(const Param& p, const Shape& shape) const {
    const std::string& param = p.buffer.name();
    const auto given = args_.arrays.find(param);
    if (given == args_.arrays.end() && !p.values)
      return fail(ErrorKind::Invalid,
                  fmt::format("parameter `{}` of `{}` has no argument", param, func_.name));
    const Array& array = given != args_.arrays.end() ? given->second : *p.values;
    if (array.empty_handle() || array.dtype() != p.buffer.dtype() || array.shape() != shape)
      return fail(ErrorKind::Invalid,
                  fmt::format("parameter `{}` of `{}` is {}{}, the argument {}{}", param,
                              func_.name, name(p.buffer.dtype()), to_string(shape),
                              name(array.dtype()), to_string(array.shape())));
    if (p.values && !identical(array, *p.values))
      return fail(ErrorKind::Invalid, fmt::format("`{}` of `{}` is a constant table: its values "
                                                  "cannot be replaced",
                                                  param, func_.name));
    return array;
  }

  const Func& func_;
  const Arguments& args_;
  Checker checker_;
  Machine machine_;
  ProgramPtr program_;  ///< outlives the run: errors name its blocks
  std::vector<int64_t> vars_;
  std::vector<BufferState> buffers_;
  std::vector<Array> inputs_;
  Outcome outcome_;
};

tl::unexpected<Error> division_by_zero(const std::string* block) {
  return fail(ErrorKind::Invalid, block != nullptr
                                      ? fmt::format("block `{}` divides an integer by zero", *block)
                                      : "an integer is divided by zero");
}

}  // namespace

Result<Outcome> run(const Func& func, const Arguments& arguments, const Options& options) {
  Runner runner(func, arguments, options);
  try {
    return runner.run();
  } catch (Fault& f) {
    return tl::unexpected<Error>(std::move(f.error));
  } catch (const DivisionByZero&) {
    return division_by_zero(runner.machine().block);
  } catch (const std::bad_alloc&) {
    return fail(ErrorKind::Limit, fmt::format("`{}` needs more memory than there is", func.name));
  }
}

Result<double> evaluate(const Expr& e, const std::map<Var, int64_t>& values) {
  std::vector<Var> vars;
  std::vector<int64_t> slots;
  for (const auto& [var, value] : values) {
    vars.push_back(var);
    slots.push_back(value);
  }
  Machine m;
  m.vars = slots.data();
  try {
    const AnyEval code = compile(e, vars);
    if (const auto* i = std::get_if<EvalPtr<int64_t>>(&code)) {
      const int64_t value = (*i)->get(m);
      return e.dtype() == DType::U64 ? static_cast<double>(static_cast<uint64_t>(value))
                                     : static_cast<double>(value);
    }
    if (const auto* f = std::get_if<EvalPtr<float>>(&code)) return (*f)->get(m);
    return std::get<EvalPtr<double>>(code)->get(m);
  } catch (Fault& f) {
    return tl::unexpected<Error>(std::move(f.error));
  } catch (const DivisionByZero&) {
    return division_by_zero(nullptr);
  }
}

}  // namespace tilewright::interp
