// Times single operators, scheduled by rule for one thread, against the FMA peak of the moment.
// Usage: bench_operators [SUBSTRING [check | dump]]; check compares with the unscheduled operator,
// dump writes op.trace, op.scheduled.tw, op.lowered.tw, op.ll and op.s.
// bench_operators --suites A,B --workload FILE [--threads N] [--id TEXT]
// [--math direct|fast|exact] [--seconds S] [--dump 1] times suites of a workload file, compiled as
// in a network.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "fma_peak.h"
#include "suite.h"
#include "tilewright/base/file.h"
#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/tensor/op.h"

namespace tilewright {
namespace {

struct Row {
  std::string label, domain, op;
  std::vector<Shape> inputs;
  std::map<std::string, tensor::AttrValue> attrs;
  double flops = 0;  ///< multiply-adds count twice; 0: report bytes per second
};

using Ints = std::vector<int64_t>;

Row conv(int64_t c, int64_t k, int64_t size, int64_t kernel, int64_t stride = 1) {
  const int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  return {fmt::format("conv {}->{} {}x{} k{} s{}", c, k, size, size, kernel, stride),
          "tilewright",
          "ConvBlocked",
          {{1, c / 16, size, size, 16}, {k / 16, c / 16, kernel, kernel, 16, 16}, {k}},
          {{"pads", Ints{pad, pad, pad, pad}}, {"strides", Ints{stride, stride}}},
          2.0 * static_cast<double>(c * k * kernel * kernel * out * out)};
}

/// The same 3x3 convolution as Winograd F(m x m): the rate counts the direct form's operations.
Row winograd(int64_t c, int64_t k, int64_t size, int64_t m) {
  Row row = conv(c, k, size, 3);
  row.label = fmt::format("winograd F({}) {}->{} {}x{}", m, c, k, size, size);
  row.op = "WinogradConvBlocked";
  row.inputs[1] = {k / 16, m + 2, m + 2, c, 16};
  row.attrs["m"] = m;
  return row;
}

Row depthwise(int64_t c, int64_t size, int64_t stride, int64_t kernel = 3) {
  const int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  return {fmt::format("depthwise {} {}x{} k{} s{}", c, size, size, kernel, stride),
          "tilewright",
          "DepthwiseConvBlocked",
          {{1, c / 16, size, size, 16}, {c / 16, kernel, kernel, 16}, {c}},
          {{"pads", Ints{pad, pad, pad, pad}}, {"strides", Ints{stride, stride}}},
          2.0 * static_cast<double>(c * kernel * kernel * out * out)};
}

std::vector<Row> rows() {
  return {
      conv(64, 64, 56, 3),
      conv(128, 128, 28, 3),
      conv(256, 256, 14, 3),
      conv(512, 512, 7, 3),
      winograd(64, 64, 56, 4),
      winograd(128, 128, 28, 4),
      winograd(256, 256, 14, 4),
      winograd(512, 512, 7, 4),
      winograd(512, 512, 7, 2),
      winograd(64, 64, 56, 6),
      winograd(256, 256, 56, 6),
      winograd(256, 256, 14, 6),
      winograd(64, 64, 224, 4),
      winograd(128, 128, 112, 4),
      winograd(256, 256, 56, 4),
      winograd(512, 512, 28, 4),
      conv(64, 256, 56, 1),
      conv(256, 64, 56, 1),
      conv(512, 512, 14, 1),
      conv(512, 2048, 7, 1),
      conv(2048, 512, 7, 1),
      conv(160, 960, 7, 1),
      conv(960, 160, 7, 1),
      conv(96, 576, 14, 1),
      conv(32, 192, 28, 1),
      conv(192, 32, 28, 1),
      conv(1024, 2048, 14, 1, 2),
      conv(128, 128, 56, 3, 2),
      {"first conv 3->64 224 k7 s2",
       "",
       "Conv",
       {{1, 3, 224, 224}, {64, 3, 7, 7}, {64}},
       {{"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}},
       2.0 * 64 * 3 * 49 * 112 * 112},
      {"first conv blocked by 3",
       "tilewright",
       "ConvBlocked",
       {{1, 1, 224, 224, 3}, {4, 1, 7, 7, 3, 16}, {64}},
       {{"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}},
       2.0 * 64 * 3 * 49 * 112 * 112},
      {"conv NCHW 64->64 56 k3",
       "",
       "Conv",
       {{1, 64, 56, 56}, {64, 64, 3, 3}, {64}},
       {{"pads", Ints{1, 1, 1, 1}}},
       2.0 * 64 * 64 * 9 * 56 * 56},
      depthwise(96, 56, 1),
      depthwise(384, 14, 1),
      depthwise(960, 7, 1),
      depthwise(96, 112, 2),
      depthwise(576, 14, 2),
      depthwise(240, 28, 1, 5),
      {"average pool 192 35 k3 s1",
       "tilewright",
       "AveragePoolBlocked",
       {{1, 12, 35, 35, 16}},
       {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}, {"kernel_shape", Ints{3, 3}}},
       0},
      {"max pool 64 112 k3 s2",
       "tilewright",
       "MaxPoolBlocked",
       {{1, 4, 112, 112, 16}},
       {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}, {"kernel_shape", Ints{3, 3}}},
       0},
      {"global pool 2048 7", "tilewright", "GlobalAveragePoolBlocked", {{1, 128, 7, 7, 16}}, {}, 0},
      {"gemm packed 1x2048x1000",
       "tilewright",
       "GemmPacked",
       {{1, 2048}, {63, 2048, 16}, {1000}},
       {{"n", int64_t{1000}}},
       2.0 * 2048 * 1000},
      {"gemm packed 128x768x768",
       "tilewright",
       "GemmPacked",
       {{128, 768}, {24, 768, 32}, {768}},
       {{"n", int64_t{768}}},
       2.0 * 128 * 768 * 768},
      {"matmul 512^3", "", "MatMul", {{512, 512}, {512, 512}}, {}, 2.0 * 512 * 512 * 512},
      {"gemm 1x2048x1000 transB",
       "",
       "Gemm",
       {{1, 2048}, {1000, 2048}, {1000}},
       {{"transB", int64_t{1}}},
       2.0 * 2048 * 1000},
      {"softmax 1536x128", "", "Softmax", {{1536, 128}}, {{"axis", int64_t{-1}}}, 0},
      {"layer norm 128x768", "", "LayerNormalization", {{128, 768}, {768}, {768}}, {}, 0},
      {"gelu 128x3072", "", "Gelu", {{128, 3072}}, {}, 0},
      {"mish 128x3072", "", "Mish", {{128, 3072}}, {}, 0},
      {"add 256x56x56", "", "Add", {{1, 16, 56, 56, 16}, {1, 16, 56, 56, 16}}, {}, 0},
      {"relu 256x56x56", "", "Relu", {{1, 256, 56, 56}}, {}, 0},
      {"transpose 1x256x56x56",
       "",
       "Transpose",
       {{1, 256, 56, 56}},
       {{"perm", Ints{0, 2, 3, 1}}},
       0},
      {"reduce mean 512x512", "", "ReduceSum", {{512, 512}}, {{"keepdims", int64_t{0}}}, 0},
  };
}

void serial(void*, int64_t count, tw_parallel_body body, void* env) {
  for (int64_t i = 0; i < count; ++i) body(env, i, 0);
}

struct Memory {
  std::vector<std::vector<char>> storage;
  std::vector<void*> buffers;
  void add(int64_t bytes) {
    storage.emplace_back(static_cast<size_t>(bytes + 128));
    char* p = storage.back().data();
    while (reinterpret_cast<uintptr_t>(p) % 64 != 0) ++p;
    for (int64_t i = 0; i < bytes / 4; ++i)
      reinterpret_cast<float*>(p)[i] = 0.1f * static_cast<float>(i % 7 - 3);
    buffers.push_back(p);
  }
};

/// Fills buffers of the kernel's parameters and runs it; the last buffer is its workspace.
Result<Memory> run_once(const Func& lowered) {
  const auto module = TW_TRY(codegen::jit({lowered}));
  const KernelInfo& info = module->kernels()[0];
  Memory memory;
  memory.storage.reserve(lowered.params.size() + 1);
  for (const Param& p : lowered.params)
    memory.add(storage_bytes(p.buffer.dtype(), *codegen::const_elements(p.buffer)));
  memory.add(info.shared_bytes + info.per_worker_bytes + 64);
  const tw_kernel_services services{sizeof(tw_kernel_services), nullptr, serial, 1};
  module->find(info.symbol)(memory.buffers.data(), nullptr, memory.buffers.back(), &services);
  return memory;
}

/// Largest difference between the operator as scheduled and as defined, relative to 1 + |value|.
Status check(const Row& row, const Func& func, const Func& lowered) {
  const Memory got = TW_TRY(run_once(lowered));
  const Memory want = TW_TRY(run_once(TW_TRY(lower::run_pipeline(func, "cpu"))));
  const size_t last = func.params.size() - 1;
  const int64_t size = *codegen::const_elements(func.params[last].buffer);
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double a = static_cast<const float*>(got.buffers[last])[i];
    const double b = static_cast<const float*>(want.buffers[last])[i];
    largest = std::max(largest, std::abs(b));
    worst = std::max(worst, std::isnan(a - b) ? INFINITY : std::abs(a - b) / (1 + std::abs(b)));
  }
  fmt::print("{:30} differs by {:.1e} of 1 + |value|, values up to {:.3g}\n", row.label, worst,
             largest);
  return {};
}

Status run(const Row& row, const std::string& mode) {
  tensor::OpCall call;
  call.domain = row.domain;
  call.op = row.op;
  call.attrs.values = row.attrs;
  for (const Shape& shape : row.inputs) call.inputs.push_back({true, DType::F32, shape, {}});
  const Func func = TW_TRY(tensor::op_func(call));
  const schedule::Trace trace = rules::default_trace(func, hw::host(), 1);
  const Func scheduled = TW_TRY(schedule::replay(func, trace));
  const Func lowered = TW_TRY(lower::run_pipeline(scheduled, "cpu"));
  if (mode == "check") return check(row, func, lowered);
  if (!mode.empty()) {
    TW_TRY_STATUS(write_file("op.trace", schedule::print(trace)));
    TW_TRY_STATUS(write_file("op.scheduled.tw", print(scheduled)));
    TW_TRY_STATUS(write_file("op.lowered.tw", print(lowered)));
    TW_TRY_STATUS(write_file("op.ll", TW_TRY(codegen::emit_llvm_ir(lowered))));
    codegen::LlvmOptions plain;
    plain.opt_level = 0;
    TW_TRY_STATUS(write_file("op.plain.ll", TW_TRY(codegen::emit_llvm_ir(lowered, plain))));
    TW_TRY_STATUS(write_file("op.s", TW_TRY(codegen::emit_assembly(lowered))));
  }
  const double compile_start = bench::thread_seconds();
  const auto module = TW_TRY(codegen::jit({lowered}));
  const double compile_seconds = bench::thread_seconds() - compile_start;
  const KernelInfo& info = module->kernels()[0];
  const tw_kernel kernel = module->find(info.symbol);
  Memory memory;
  memory.storage.reserve(lowered.params.size() + 1);
  double bytes = 0;
  for (const Param& p : lowered.params) {
    const int64_t size = storage_bytes(p.buffer.dtype(), *codegen::const_elements(p.buffer));
    memory.add(size);
    bytes += static_cast<double>(size);
  }
  memory.add(info.shared_bytes + info.per_worker_bytes + 64);
  void* workspace = memory.buffers.back();
  const tw_kernel_services services{sizeof(tw_kernel_services), nullptr, serial, 1};
  auto call_kernel = [&] { kernel(memory.buffers.data(), nullptr, workspace, &services); };
  call_kernel();
  double best = 1e9, peak = 0;
  for (int round = 0; round < 6; ++round) {
    peak = std::max(peak, bench::fma_peak(0.003));
    for (int i = 0; i < 5; ++i) {
      const double start = bench::thread_seconds();
      call_kernel();
      best = std::min(best, bench::thread_seconds() - start);
    }
  }
  const std::string rate = row.flops > 0
                               ? fmt::format("{:6.1f} % of peak", 100 * row.flops / best / peak)
                               : fmt::format("{:6.1f} GB/s     ", bytes / best * 1e-9);
  fmt::print("{:30} {:9.1f} us  {}  workspace {:5} KB, compiled in {:3.0f} ms\n", row.label,
             best * 1e6, rate, (info.shared_bytes + info.per_worker_bytes) >> 10,
             compile_seconds * 1e3);
  return {};
}

}  // namespace
}  // namespace tilewright

namespace {

int suites(const std::vector<std::string>& args) {
  tilewright::bench::SuiteOptions options;
  for (size_t i = 0; i + 1 < args.size(); i += 2) {
    const std::string &key = args[i], &value = args[i + 1];
    if (key == "--suites") options.suites = value;
    if (key == "--workload") options.workload = value;
    if (key == "--id") options.id = value;
    if (key == "--math") options.math = value;
    if (key == "--dump") options.dump = value != "0";
    if (key == "--threads") options.threads = std::atoi(value.c_str());
    if (key == "--seconds") options.seconds = std::atof(value.c_str());
  }
  const auto ok = tilewright::bench::run_suites(options);
  if (!ok) fmt::print(stderr, "{}", to_string(ok.error()));
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--suites") == 0) return suites({argv + 1, argv + argc});
  const std::string only = argc > 1 ? argv[1] : "";
  for (const tilewright::Row& row : tilewright::rows()) {
    if (row.label.find(only) == std::string::npos) continue;
    const auto ok = tilewright::run(row, argc > 2 ? argv[2] : "");
    if (!ok) fmt::print("{:30} {}", row.label, to_string(ok.error()));
  }
  return 0;
}
