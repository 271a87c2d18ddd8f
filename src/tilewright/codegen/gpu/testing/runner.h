// For tests: programs lowered for GPUs, emitted and run on the first OpenCL device, many at a time.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/codegen/common/plan.h"
#include "tilewright/codegen/gpu/gpu.h"
#include "tilewright/codegen/gpu/kernel_code.h"
#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/codegen/testing/harness.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/runtime/gpu/device.h"

namespace tilewright::codegen::testing {

/// Several programs with their arguments as one program of a GPU: each makes its own calls.
class GpuBatch {
 public:
  /// `matrix_functions`: as emit_gpu takes them.
  explicit GpuBatch(hw::GpuTarget target, std::string matrix_functions = {})
      : target_(std::move(target)), matrix_functions_(std::move(matrix_functions)) {}

  /// `scheduled` computes what `func` does. errors: of the passes.
  Status add(const Func& func, const Func& scheduled, const interp::Arguments& arguments) {
    // Kernels are made of loops, stores and instructions of GPUs: what others mean goes in before.
    const Func plain = TW_TRY(inline_calls(scheduled, [](const Call& call) {
      return hw::find_gpu_intrinsic(*call.callee) != nullptr;
    }));
    lower::GpuLaunches plan = TW_TRY(lower::lower_for_gpu(plain, target_));
    Entry entry{func, {}};
    std::map<Buffer, int> places;
    for (size_t i = 0; i < func.params.size(); ++i) {
      const Param& p = func.params[i];
      Layout layout = TW_TRY(layout_of(func, p, arguments));
      places[scheduled.params[i].buffer] = place(p, layout, arguments);
      entry.layouts.push_back(std::move(layout));
    }
    for (const Buffer& t : plan.temporaries) {
      const int64_t bytes = storage_bytes(t.dtype(), *const_elements(t));
      places[t] = add_buffer(runtime::GpuBuffer::Place::Arena, program_.arena_bytes, bytes);
      program_.arena_bytes += (bytes + 64) / 64 * 64;
    }
    const size_t first = kernels_.size();
    for (lower::GpuKernel& kernel : plan.kernels) {
      kernel.func.name = fmt::format("k{}_{}", kernels_.size(), kernel.func.name);
      program_.kernels.push_back(kernel_code(kernel));
      kernels_.push_back(std::move(kernel));
    }
    for (const lower::GpuCallSite& site : plan.calls) {
      runtime::GpuCall call{static_cast<int>(first + site.kernel), func.name, {}, site.scalars};
      for (const Buffer& b : site.args) call.buffers.push_back(places.at(b));
      program_.calls.push_back(std::move(call));
    }
    entries_.push_back(std::move(entry));
    return {};
  }

  /// The text of all kernels.
  Result<std::string> source() const { return emit_gpu(kernels_, target_, matrix_functions_); }

  /// Outputs of each program, by parameter name. requires: a device of the target's language.
  Result<std::vector<std::map<std::string, Array>>> run(runtime::GpuDevice& device) {
    const bool cuda = target_.language == hw::GpuLanguage::Cuda;
    program_.language = std::string(hw::name(target_.language));
    program_.source = TW_TRY(source()) + (!copies_ ? "" : cuda ? kCopyCuda : kCopy);
    if (cuda) {
      CudaCode code = TW_TRY(compile_cuda(program_.source, target_.arch));
      program_.arch = target_.arch;
      program_.binary = std::move(code.cubin);
      program_.ptx = std::move(code.ptx);
    }
    if (copies_) program_.kernels.push_back({.symbol = "tw_test_copy"});
    for (runtime::GpuCall& call : program_.calls)
      if (call.kernel < 0) call.kernel = static_cast<int>(program_.kernels.size()) - 1;
    auto instance = TW_TRY(device.load(std::make_shared<const runtime::GpuProgram>(program_), {}));
    for (size_t i = 0; i < inputs_.size(); ++i)
      TW_TRY_STATUS(instance->write_input(i, inputs_[i].data()));
    TW_TRY_STATUS(instance->execute());
    std::vector<std::map<std::string, Array>> out;
    size_t next = 0;
    for (const Entry& entry : entries_) {
      std::map<std::string, Array>& arrays = out.emplace_back();
      for (size_t i = 0; i < entry.func.params.size(); ++i) {
        const Param& p = entry.func.params[i];
        if (p.mode != ParamMode::Out && p.mode != ParamMode::InOut) continue;
        std::vector<unsigned char> memory(static_cast<size_t>(entry.layouts[i].bytes) + 1);
        TW_TRY_STATUS(instance->read_output(next++, memory.data()));
        arrays[p.buffer.name()] = gather(entry.layouts[i], memory.data());
      }
    }
    return out;
  }

 private:
  struct Entry {
    Func func;
    std::vector<Layout> layouts;
  };

  /// What is changed in place is copied first: a buffer is an input or an output.
  static constexpr const char* kCopy =
      "__kernel void tw_test_copy(__global char* a, long a_offset, __global char* b,\n"
      "    long b_offset, long bytes) {\n"
      "  for (long i = 0; i < bytes; ++i) b[b_offset + i] = a[a_offset + i];\n}\n";

  static constexpr const char* kCopyCuda =
      "extern \"C\" __global__ void tw_test_copy(const char* a, char* b, long long bytes) {\n"
      "  for (long long i = 0; i < bytes; ++i) b[i] = a[i];\n}\n";

  int add_buffer(runtime::GpuBuffer::Place place, int64_t offset, int64_t bytes) {
    const int index = static_cast<int>(program_.buffers.size());
    program_.buffers.push_back(
        {place, offset, std::max<int64_t>(1, bytes), fmt::format("b{}", index)});
    return index;
  }

  int place(const Param& p, const Layout& layout, const interp::Arguments& arguments) {
    using Place = runtime::GpuBuffer::Place;
    int input = -1;
    if (p.mode != ParamMode::Out) {
      input = add_buffer(Place::Input, 0, layout.bytes);
      program_.inputs.push_back(input);
      inputs_.emplace_back(static_cast<size_t>(layout.bytes) + 1);
      scatter(layout, arguments.arrays.at(p.buffer.name()), inputs_.back().data());
    }
    if (p.mode == ParamMode::In || p.mode == ParamMode::Const) return input;
    const int output = add_buffer(Place::Output, 0, layout.bytes);
    program_.outputs.push_back(output);
    if (input >= 0) {
      copies_ = true;
      program_.calls.push_back({-1, "copy", {input, output}, {layout.bytes}});
    }
    return output;
  }

  hw::GpuTarget target_;
  std::string matrix_functions_;
  runtime::GpuProgram program_;
  std::vector<lower::GpuKernel> kernels_;
  std::vector<Entry> entries_;
  std::vector<std::vector<unsigned char>> inputs_;
  bool copies_ = false;
};

}  // namespace tilewright::codegen::testing
