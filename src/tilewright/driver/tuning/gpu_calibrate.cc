// Rates of a GPU from seven small kernels, written as programs of this compiler: multiply-adds in
// registers (f32, f16), reads of a table in shared memory, reads of memory that fits the L2 cache
// and of memory that does not, barriers, and empty kernels for the cost of a launch. Each repeats
// its work eightfold until it lasts some milliseconds; the fastest of five runs counts.
#include "tilewright/driver/tuning/gpu_calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "tilewright/base/array.h"
#include "tilewright/compile/gpu/launch.h"
#include "tilewright/ir/text.h"

namespace tilewright::driver {
namespace {

constexpr int64_t kThreads = 128;  ///< of a block of a probe
constexpr double kSeconds = 0.02;  ///< a reading lasts at least so long, if it can
constexpr int kReadings = 5;
constexpr int64_t kMostBytes = 256 << 20;  ///< of an operand

/// A kernel that does `work` of what it measures, `repeat` times over.
struct Probe {
  std::string text;
  double work = 0;
};

/// Multiply-adds on registers: 32 sums in every thread, one load for all of them.
Probe arithmetic(DType dtype, int64_t threads, int64_t repeat) {
  constexpr int64_t kChains = 32, kTerms = 1024;
  const std::string t(name(dtype));
  return {fmt::format(R"(func probe(X: {t}[{c}], W: {t}[{k}], out Y: {t}[{n}, {c}]) {{
  alloc C: {t}[{n}, {c}] local
  for b in {blocks} bind(block.x) {{
    for t0 in {th} bind(thread.x), c0 in {c} unroll {{
      block C.init(i: space {n} = b * {th} + t0, j: space {c} = c0) {{
        C[i, j] = {t}(0.0)
      }}
    }}
    for t1 in {th} bind(thread.x), k in {terms}, c1 in {c} unroll {{
      block C(i: space {n} = b * {th} + t1, j: space {c} = c1, l: reduce {terms} = k) {{
        C[i, j] += X[j] * W[l % {k}]
      }}
    }}
    for t2 in {th} bind(thread.x), c2 in {c} {{
      block Y(i: space {n} = b * {th} + t2, j: space {c} = c2) {{
        Y[i, j] = C[i, j]
      }}
    }}
  }}
}}
)",
                      fmt::arg("t", t), fmt::arg("c", kChains), fmt::arg("k", kTerms),
                      fmt::arg("terms", kTerms * repeat), fmt::arg("n", threads),
                      fmt::arg("th", kThreads), fmt::arg("blocks", threads / kThreads)),
          2.0 * static_cast<double>(threads * kChains * kTerms * repeat)};
}

/// Reads of a table in shared memory, neighbours by neighbours.
Probe shared_reads(int64_t threads, int64_t repeat) {
  constexpr int64_t kTable = 2048, kChains = 8, kTerms = 128;
  return {fmt::format(R"(func probe(X: f32[{s}], out Y: f32[{n}, {c}]) {{
  alloc C: f32[{n}, {c}] local
  for b in {blocks} bind(block.x) {{
    alloc S: f32[{s}] shared
    for t0 in {th} bind(thread.x), c0 in {c} unroll {{
      block C.init(i: space {n} = b * {th} + t0, j: space {c} = c0) {{
        C[i, j] = 0.0
      }}
    }}
    for r in {rounds}, t1 in {th} bind(thread.x) {{
      block S(i: space {s} = r * {th} + t1) {{
        S[i] = X[i]
      }}
    }}
    for t2 in {th} bind(thread.x), k in {terms}, c1 in {c} unroll {{
      block C(i: space {n} = b * {th} + t2, j: space {c} = c1, l: reduce {terms} = k) {{
        C[i, j] += S[(i + l * {stride} + j * 32) % {s}]
      }}
    }}
    for t3 in {th} bind(thread.x), c2 in {c} {{
      block Y(i: space {n} = b * {th} + t3, j: space {c} = c2) {{
        Y[i, j] = C[i, j]
      }}
    }}
  }}
}}
)",
                      fmt::arg("s", kTable), fmt::arg("c", kChains),
                      fmt::arg("terms", kTerms * repeat), fmt::arg("n", threads),
                      fmt::arg("th", kThreads), fmt::arg("blocks", threads / kThreads),
                      fmt::arg("rounds", kTable / kThreads), fmt::arg("stride", kChains * 32)),
          4.0 * static_cast<double>(threads * kChains * kTerms * repeat)};
}

/// Reads of `bytes` of device memory `repeat` times: 16 rows side by side, a thread per column.
Probe memory_reads(int64_t bytes, int64_t repeat) {
  constexpr int64_t kRows = 16;
  const int64_t threads = std::max<int64_t>(bytes / (4 * kRows * kThreads), 1) * kThreads;
  return {fmt::format(R"(func probe(X: f32[{p}, {n}], out Y: f32[{n}]) {{
  alloc C: f32[{n}] local
  for b in {blocks} bind(block.x) {{
    for t0 in {th} bind(thread.x) {{
      block C.init(i: space {n} = b * {th} + t0) {{
        C[i] = 0.0
      }}
    }}
    for t1 in {th} bind(thread.x), k in {repeat}, r in {p} unroll {{
      block C(i: space {n} = b * {th} + t1, l: reduce {repeat} = k, row: reduce {p} = r) {{
        C[i] += X[(row + l) % {p}, i]
      }}
    }}
    for t2 in {th} bind(thread.x) {{
      block Y(i: space {n} = b * {th} + t2) {{
        Y[i] = C[i]
      }}
    }}
  }}
}}
)",
                      fmt::arg("p", kRows), fmt::arg("n", threads), fmt::arg("th", kThreads),
                      fmt::arg("blocks", threads / kThreads), fmt::arg("repeat", repeat)),
          4.0 * static_cast<double>(threads * kRows * repeat)};
}

/// Rounds of a block with two barriers each: threads write, and read what their neighbours wrote.
Probe barriers(int64_t repeat) {
  const int64_t rounds = 256 * repeat;
  return {fmt::format(R"(func probe(out Y: f32[{th}]) {{
  alloc C: f32[{th}] local
  for b in 1 bind(block.x) {{
    for t0 in {th} bind(thread.x) {{
      block C.init(i: space {th} = t0) {{
        C[i] = 0.0
      }}
    }}
    for k in {r} {{
      alloc S: f32[{r}, {th}] shared
      for t1 in {th} bind(thread.x) {{
        block S(l: space {r} = k, i: space {th} = t1) {{
          S[l, i] = f32(l + i)
        }}
      }}
      for t2 in {th} bind(thread.x) {{
        block C(i: space {th} = t2, l: reduce {r} = k) {{
          C[i] += S[l, (i + 1) % {th}]
        }}
      }}
    }}
    for t3 in {th} bind(thread.x) {{
      block Y(i: space {th} = t3) {{
        Y[i] = C[i]
      }}
    }}
  }}
}}
)",
                      fmt::arg("th", kThreads), fmt::arg("r", rounds)),
          2.0 * static_cast<double>(rounds)};
}

constexpr const char* kEmpty = R"(func probe(out Y: f32[32]) {
  for t in 32 bind(thread.x) {
    block Y(i: space 32 = t) {
      Y[i] = 1.0
    }
  }
}
)";

class Calibration {
 public:
  Calibration(const hw::GpuTarget& target, runtime::GpuDevice& device)
      : target_(target), device_(device) {}

  Result<std::unique_ptr<runtime::GpuInstance>> load(const std::string& text, int calls,
                                                     bool record_times) {
    const Func func = TW_TRY(parse_func(text));
    compile::GpuLaunchCode code = TW_TRY(compile::compile_scheduled_gpu_func(func, target_));
    const runtime::GpuCall call = code.program.calls.at(0);
    code.program.calls.assign(static_cast<size_t>(calls), call);
    runtime::GpuOptions options;
    options.record_times = record_times;
    const std::vector<int> inputs = code.program.inputs;
    const std::vector<runtime::GpuBuffer> buffers = code.program.buffers;
    auto instance = TW_TRY(device_.load(
        std::make_shared<const runtime::GpuProgram>(std::move(code.program)), options));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Array zeros(DType::U8, {buffers[static_cast<size_t>(inputs[i])].bytes});
      TW_TRY_STATUS(instance->write_input(i, zeros.data()));
    }
    return instance;
  }

  /// Fastest of several runs. units: ns by the device's clock.
  Result<double> time_of(const std::string& text) {
    const auto instance = TW_TRY(load(text, 1, true));
    double least = 0;
    for (int i = 0; i <= kReadings; ++i) {
      TW_TRY_STATUS(instance->execute());
      const std::vector<int64_t> times = instance->call_times();
      const auto time =
          static_cast<double>(std::accumulate(times.begin(), times.end(), int64_t{0}));
      if (i == 1 || (i > 1 && time < least)) least = time;  // the first call finds nothing warm
    }
    return std::max(least, 1.0);
  }

  /// Work per ns of what `make(repeat)` gives, repeated until it lasts long enough.
  template <class Make>
  Result<double> rate(const Make& make) {
    for (int64_t repeat = 1;; repeat *= 8) {
      const Probe probe = make(repeat);
      const double time = TW_TRY(time_of(probe.text));
      if (time > kSeconds * 1e9 / 8 || repeat >= 512) return probe.work / time;
    }
  }

  /// Time between the starts of two empty kernels. units: ns.
  Result<double> launch_ns() {
    constexpr int kCalls = 64;
    const auto instance = TW_TRY(load(kEmpty, kCalls, false));
    double least = 0;
    for (int i = 0; i <= 4 * kReadings; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      TW_TRY_STATUS(instance->execute());
      const double time =
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
              .count() /
          kCalls;
      if (i == 1 || (i > 1 && time < least)) least = time;
    }
    return least;
  }

 private:
  const hw::GpuTarget& target_;
  runtime::GpuDevice& device_;
};

}  // namespace

Result<hw::GpuRates> calibrate_gpu(
    const hw::GpuTarget& target, runtime::GpuDevice& device,
    const std::function<Status(int done, int total, const std::string& what)>& progress) {
  Calibration calibration(target, device);
  hw::GpuRates rates = target.rates;
  rates.known = rates.measured = true;
  int done = 0;
  const auto step = [&](const char* what) { return progress(done++, 7, what); };
  const int64_t units = std::max(device.info().units, 1);
  const int64_t threads = std::max<int64_t>(units * target.unit_threads / kThreads, 1) * kThreads;
  TW_TRY_STATUS(step("arithmetic"));
  rates.f32 = TW_TRY(
      calibration.rate([&](int64_t repeat) { return arithmetic(DType::F32, threads, repeat); }));
  TW_TRY_STATUS(step("f16"));
  const bool f16 = target.has_f16 && device.info().has_f16;
  rates.f16 = !f16 ? 0 : TW_TRY(calibration.rate([&](int64_t repeat) {
    return arithmetic(DType::F16, threads, repeat);
  }));
  TW_TRY_STATUS(step("shared memory"));
  rates.shared =
      TW_TRY(calibration.rate([&](int64_t repeat) { return shared_reads(threads, repeat); }));
  TW_TRY_STATUS(step("cache"));
  rates.l2 = TW_TRY(
      calibration.rate([&](int64_t repeat) { return memory_reads(target.l2_bytes / 2, repeat); }));
  TW_TRY_STATUS(step("device memory"));
  const int64_t far = std::min(kMostBytes, std::max<int64_t>(8 * target.l2_bytes, 64 << 20));
  const Probe far_reads = memory_reads(far, 1);
  rates.dram = far_reads.work / TW_TRY(calibration.time_of(far_reads.text));
  TW_TRY_STATUS(step("barriers"));
  rates.sync_ns = 1 / TW_TRY(calibration.rate([&](int64_t repeat) { return barriers(repeat); }));
  TW_TRY_STATUS(step("launches"));
  rates.launch_ns = TW_TRY(calibration.launch_ns());
  return rates;
}

}  // namespace tilewright::driver
