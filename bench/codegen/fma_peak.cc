#include "fma_peak.h"

#include <time.h>

#include <algorithm>
#include <cstdint>

namespace tilewright::bench {
namespace {

constexpr int kChains = 12;  // enough to cover the latency of two pipes

#define TW_BURST(name, isa, bytes)                             \
  [[gnu::target(isa)]] void name(int64_t steps, float* sink) { \
    typedef float V __attribute__((vector_size(bytes)));       \
    V a[kChains], x, y;                                        \
    for (unsigned l = 0; l < bytes / 4; ++l) {                 \
      x[l] = 0.999f;                                           \
      y[l] = 1e-3f;                                            \
    }                                                          \
    _Pragma("GCC unroll 12") for (V & v : a) v = x;            \
    for (int64_t i = 0; i < steps; ++i) {                      \
      _Pragma("GCC unroll 12") for (V & v : a) {               \
        v = v * x + y;                                         \
        asm volatile("" : "+v"(v)); /* keeps every step */     \
      }                                                        \
    }                                                          \
    _Pragma("GCC unroll 12") for (V & v : a)* sink += v[0];    \
  }

#if defined(__x86_64__)
TW_BURST(burst_avx512, "avx512f,fma", 64)
TW_BURST(burst_avx2, "avx2,fma", 32)
#endif

struct Burst {
  void (*run)(int64_t, float*);
  int lanes;
};

Burst pick() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {burst_avx512, 16};
  return {burst_avx2, 8};
#else
  return {[](int64_t steps, float* sink) {
            for (int64_t i = 0; i < steps; ++i) *sink = *sink * 0.999f + 1e-3f;
          },
          1};
#endif
}

}  // namespace

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double fma_peak(double seconds) {
  const Burst burst = pick();
  float sink = 0;
  double best = 0;
  const double end = thread_seconds() + seconds;
  do {
    constexpr int64_t kSteps = 20000;
    const double start = thread_seconds();
    burst.run(kSteps, &sink);
    const double rate = 2.0 * kSteps * kChains * burst.lanes / (thread_seconds() - start);
    best = std::max(best, rate);
  } while (thread_seconds() < end);
  return sink == 12345.0f ? 0 : best;
}

}  // namespace tilewright::bench
