// A worker whose compiler makes what the tests of measuring need: kernels that take a known time,
// and kernels that do all that a candidate must not. A copy's name in the schedule says which.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tilewright/ir/text.h"
#include "tilewright/measure/worker.h"

namespace tilewright::measure {
namespace {

constexpr int64_t kSize = 64;

void spin(int microseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// What the program means: Y = 2 X + 1, in two parts for as many workers.
struct Operands {
  const float* x;
  float* y;
};
void half(void* env, int64_t index, int32_t) {
  const auto& operands = *static_cast<const Operands*>(env);
  for (int64_t i = index * kSize / 2; i < (index + 1) * kSize / 2; ++i)
    operands.y[i] = 2 * operands.x[i] + 1;
}
void plain(void* const* buffers, const int64_t*, void*, const tw_kernel_services* services) {
  Operands operands{static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[1])};
  services->parallel_for(services->pool, 2, half, &operands);
}

template <int microseconds>
void timed(void* const* buffers, const int64_t* scalars, void* workspace,
           const tw_kernel_services* services) {
  spin(microseconds);
  plain(buffers, scalars, workspace, services);
}
void wrong(void* const* buffers, const int64_t* scalars, void* workspace,
           const tw_kernel_services* services) {
  plain(buffers, scalars, workspace, services);
  static_cast<float*>(buffers[1])[5] += 1;
}
void lazy(void* const*, const int64_t*, void*, const tw_kernel_services*) {}
void segv(void* const*, const int64_t*, void*, const tw_kernel_services*) {
  std::signal(SIGSEGV, SIG_DFL);  // sanitizers would turn it into an exit
  std::raise(SIGSEGV);
}
void aborting(void* const*, const int64_t*, void*, const tw_kernel_services*) { std::abort(); }
void leaving(void* const*, const int64_t*, void*, const tw_kernel_services*) { std::_Exit(3); }
void endless(void* const*, const int64_t*, void*, const tw_kernel_services*) {
  for (;;) spin(1000);
}
void hungry(void* const*, const int64_t*, void*, const tw_kernel_services*) {
  std::vector<std::string> kept;
  for (;;) kept.emplace_back(size_t{16} << 20, 'x');
}

bool mentions(const std::string& program, const std::string& copy) {
  return program.find("alloc " + copy + ":") != std::string::npos;
}

Result<runtime::CompiledKernel> compile(const Func& lowered, const hw::CpuTarget&) {
  static const std::map<std::string, tw_kernel> kKernels = {
      {"fast", timed<50>}, {"slow", timed<500>}, {"wrong", wrong},
      {"lazy", lazy},      {"segv", segv},       {"abort", aborting},
      {"exit", leaving},   {"endless", endless}, {"hungry", hungry},
  };
  const std::string text = print(lowered);
  runtime::CompiledKernel kernel;
  kernel.run = plain;
  for (const auto& [name, run] : kKernels)
    if (mentions(text, name)) kernel.run = run;
  if (mentions(text, "refused"))
    return fail(ErrorKind::Unsupported, "no code for this", "it is a test");
  // The program itself, which gives the right results.
  static int singles = 0;
  if (text.find("func single(") != std::string::npos && !mentions(text, "fast") && ++singles > 1)
    return fail(ErrorKind::Unsupported, "compiled before", "it is a test");
  if (mentions(text, "wide")) kernel.info.shared_bytes = int64_t{1} << 40;
  return kernel;
}

/// A GPU that is none: it has memory of its own, and a clock that says what the kernel's name does.
class FakeKernel final : public DeviceKernel {
 public:
  explicit FakeKernel(std::string program) : program_(std::move(program)) {}

  Status write(const std::vector<Array>& operands) override {
    x_ = operands.at(0).clone();
    y_ = operands.at(1).clone();
    return {};
  }
  Result<double> run(int64_t) override {
    if (mentions(program_, "endless")) endless(nullptr, nullptr, nullptr, nullptr);
    if (mentions(program_, "broken"))
      return fail(ErrorKind::Device, "the device is lost", "it is a test");
    for (int64_t i = 0; i < kSize && !mentions(program_, "lazy"); ++i) y_.set(i, 2 * x_.get(i) + 1);
    if (mentions(program_, "wrong")) y_.set(5, y_.get(5) + 1);
    return mentions(program_, "slow") ? 500e3 : 50e3;
  }
  Status read(std::vector<Array>& operands) override {
    for (int64_t i = 0; i < kSize; ++i) operands.at(1).set(i, y_.get(i));
    return {};
  }

 private:
  std::string program_;
  Array x_, y_;
};

Result<std::unique_ptr<DeviceKernel>> load(const Func& scheduled, const hw::Target& target, int,
                                           const std::string& device) {
  if (device != "fake:0" || target.name != "opencl")
    return fail(ErrorKind::Device, "no such device: " + device, target.name);
  const std::string text = print(scheduled);
  if (mentions(text, "refused"))
    return fail(ErrorKind::Unsupported, "no code for this", "it is a test");
  return std::make_unique<FakeKernel>(text);
}

}  // namespace
}  // namespace tilewright::measure

int main() {
  return tilewright::measure::serve_worker(tilewright::measure::compile, tilewright::measure::load);
}
