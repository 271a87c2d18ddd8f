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
#include "tilewright/tune/worker.h"

namespace tilewright::tune {
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

Result<CompiledKernel> compile(const Func& lowered, const hw::CpuTarget&) {
  static const std::map<std::string, tw_kernel> kKernels = {
      {"fast", timed<50>}, {"slow", timed<500>}, {"wrong", wrong},
      {"lazy", lazy},      {"segv", segv},       {"abort", aborting},
      {"exit", leaving},   {"endless", endless}, {"hungry", hungry},
  };
  const std::string text = print(lowered);
  CompiledKernel kernel;
  kernel.run = plain;
  for (const auto& [name, run] : kKernels)
    if (text.find("alloc " + name + ":") != std::string::npos) kernel.run = run;
  if (text.find("alloc refused:") != std::string::npos)
    return fail(ErrorKind::Unsupported, "no code for this", "it is a test");
  if (text.find("alloc wide:") != std::string::npos) kernel.info.shared_bytes = int64_t{1} << 40;
  return kernel;
}

}  // namespace
}  // namespace tilewright::tune

int main() { return tilewright::tune::serve_worker(tilewright::tune::compile); }
