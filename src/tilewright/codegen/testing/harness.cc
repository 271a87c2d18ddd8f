#include "tilewright/codegen/testing/harness.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "tilewright/base/rng.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/lower.h"

namespace tilewright::codegen::testing {
namespace {

constexpr int32_t kWorkers = 2;

void backwards(void*, int64_t count, tw_parallel_body body, void* env) {
  for (int64_t i = count; i-- > 0;) body(env, i, static_cast<int32_t>(i % kWorkers));
}

Result<Shape> shape_of(const Buffer& buffer, const std::map<Var, int64_t>& scalars) {
  VarMap values;
  for (const auto& [var, value] : scalars) values[var] = int_imm(value);
  Shape shape;
  for (const Expr& extent : buffer.shape())
    shape.push_back(static_cast<int64_t>(TW_TRY(interp::evaluate(substitute(extent, values)))));
  return shape;
}

/// Offset in elements of every element of a parameter, in row-major order of its shape.
Result<std::vector<int64_t>> offsets_of(const Param& p, const Shape& shape,
                                        const std::map<Var, int64_t>& scalars) {
  VarMap values;
  for (const auto& [var, value] : scalars) values[var] = int_imm(value);
  std::vector<int64_t> strides = dense_strides(shape);
  for (size_t axis = 0; axis < p.strides.size(); ++axis)
    strides[axis] =
        static_cast<int64_t>(TW_TRY(interp::evaluate(substitute(p.strides[axis], values))));
  std::vector<int64_t> offsets(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < offsets.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      offsets[i] += rest % shape[axis] * strides[axis];
  }
  return offsets;
}

std::map<Var, int64_t> scalar_values(const Func& func, const interp::Arguments& arguments) {
  std::map<Var, int64_t> values;
  for (const Scalar& s : func.scalars) values[s.var] = arguments.scalars.at(s.var.name());
  return values;
}

bool agree(const Array& a, const Array& b, int64_t i, double tolerance) {
  if (!is_float(a.dtype())) {
    const double limit = tolerance > 0 ? 1 : 0;
    return std::abs(static_cast<double>(a.get_int(i)) - static_cast<double>(b.get_int(i))) <= limit;
  }
  const double x = a.get(i), y = b.get(i);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return true;
  return std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x));
}

}  // namespace

interp::Arguments random_arguments(const Func& func, uint64_t seed, bool real_data) {
  Rng rng(seed);
  interp::Arguments out;
  for (const Scalar& s : func.scalars) out.scalars[s.var.name()] = rng.between(s.lo, s.hi);
  const auto scalars = scalar_values(func, out);
  for (const Param& p : func.params) {
    if (p.mode == ParamMode::Out) continue;
    if (p.values) {
      out.arrays[p.buffer.name()] = *p.values;
      continue;
    }
    const auto shape = shape_of(p.buffer, scalars);
    Array array(p.buffer.dtype(), shape ? *shape : Shape{});
    for (int64_t i = 0; i < array.size(); ++i) {
      const DType d = p.buffer.dtype();
      if (d == DType::Bool) {
        array.set_int(i, rng.below(2));
      } else if (is_float(d) && real_data) {
        array.set(i, 6 * rng.uniform() - 3);
      } else {
        array.set_int(i, rng.between(is_unsigned_int(d) ? 0 : -4, 5));
      }
    }
    out.arrays[p.buffer.name()] = array;
  }
  return out;
}

Result<Layout> layout_of(const Func& func, const Param& param, const interp::Arguments& arguments) {
  const auto values = scalar_values(func, arguments);
  Layout out{param.buffer.dtype(), TW_TRY(shape_of(param.buffer, values)), {}, 0};
  out.offsets = TW_TRY(offsets_of(param, out.shape, values));
  int64_t span = 0;
  for (const int64_t offset : out.offsets) span = std::max(span, offset + 1);
  out.bytes = storage_bytes(out.dtype, span);
  return out;
}

void scatter(const Layout& layout, const Array& array, unsigned char* memory) {
  const auto bytes = static_cast<size_t>(bit_width(layout.dtype) / 8);
  const auto* dense = static_cast<const unsigned char*>(array.data());
  for (size_t i = 0; i < layout.offsets.size(); ++i)
    std::memcpy(memory + static_cast<size_t>(layout.offsets[i]) * bytes, dense + i * bytes, bytes);
}

Array gather(const Layout& layout, const unsigned char* memory) {
  Array array(layout.dtype, layout.shape);
  const auto bytes = static_cast<size_t>(bit_width(layout.dtype) / 8);
  auto* dense = static_cast<unsigned char*>(array.data());
  for (size_t i = 0; i < layout.offsets.size(); ++i)
    std::memcpy(dense + i * bytes, memory + static_cast<size_t>(layout.offsets[i]) * bytes, bytes);
  return array;
}

Result<std::map<std::string, Array>> call_kernel(const Func& func, tw_kernel kernel,
                                                 const KernelInfo& info,
                                                 const interp::Arguments& arguments, Side side) {
  std::vector<std::unique_ptr<Fenced>> memory;
  std::vector<void*> buffers;
  std::vector<int64_t> scalars;
  std::map<std::string, Array> outputs;
  const auto values = scalar_values(func, arguments);
  for (const Scalar& s : func.scalars) scalars.push_back(values.at(s.var));
  std::vector<Layout> layouts;
  for (const Param& p : func.params) {
    layouts.push_back(TW_TRY(layout_of(func, p, arguments)));
    memory.push_back(std::make_unique<Fenced>(p.buffer.name(), layouts.back().bytes, side));
    unsigned char* data = memory.back()->data();
    buffers.push_back(data);
    if (p.mode != ParamMode::Out)
      scatter(layouts.back(), arguments.arrays.at(p.buffer.name()), data);
  }
  // The workspace is aligned, whatever comes behind it.
  const int64_t workspace = info.shared_bytes + kWorkers * info.per_worker_bytes;
  memory.push_back(std::make_unique<Fenced>("the workspace", (workspace + 63) / 64 * 64, side));
  tw_kernel_services services{sizeof(tw_kernel_services), nullptr, backwards, kWorkers};
  TW_TRY_STATUS(run_fenced(
      [&] { kernel(buffers.data(), scalars.data(), memory.back()->data(), &services); }, memory));
  for (size_t i = 0; i < func.params.size(); ++i) {
    const Param& p = func.params[i];
    if (!memory[i]->intact())
      return fail(ErrorKind::Mismatch, "memory around " + p.buffer.name() + " was overwritten");
    if (p.mode != ParamMode::Out && p.mode != ParamMode::InOut) continue;
    outputs[p.buffer.name()] = gather(layouts[i], memory[i]->data());
  }
  if (!memory.back()->intact())
    return fail(ErrorKind::Mismatch, "memory around the workspace was overwritten");
  return outputs;
}

Status compare(const std::map<std::string, Array>& expected,
               const std::map<std::string, Array>& got, double tolerance) {
  for (const auto& [name, want] : expected) {
    const auto it = got.find(name);
    if (it == got.end()) return fail(ErrorKind::Mismatch, "no output " + name);
    for (int64_t i = 0; i < want.size(); ++i)
      if (!agree(want, it->second, i, tolerance))
        return fail(ErrorKind::Mismatch,
                    fmt::format("{}[{}] of {}: expected {}, got {}", name, i,
                                to_string(want.shape()), want.get(i), it->second.get(i)));
  }
  return {};
}

Result<std::vector<Func>> lower_all(const std::vector<Case>& cases) {
  std::vector<Func> out;
  for (const Case& test : cases) {
    Result<Func> lowered = lower::run_pipeline(test.func, "cpu");
    if (!lowered) return tl::unexpected<Error>(std::move(lowered.error()).at(test.name));
    lowered->name = test.name;
    out.push_back(std::move(*lowered));
  }
  return out;
}

Status check(const Case& test, tw_kernel kernel, const KernelInfo& info) {
  for (const uint64_t seed : {1, 2}) {
    const Side side = seed == 1 ? Side::Back : Side::Front;
    const interp::Arguments arguments = random_arguments(test.func, seed, test.real_data);
    const interp::Outcome expected = TW_TRY(interp::run(test.func, arguments));
    const auto got = TW_TRY(call_kernel(test.func, kernel, info, arguments, side));
    TW_TRY_STATUS(compare(expected.outputs, got, test.tolerance));
  }
  return {};
}

}  // namespace tilewright::codegen::testing
