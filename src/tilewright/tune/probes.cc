#include "tilewright/tune/probes.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>

#if defined(__x86_64__)
#include <immintrin.h>
#define TW_REGISTER "v"
#else
#define TW_REGISTER "w"
#endif

#if defined(__clang__)
#define TW_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TW_UNROLL _Pragma("GCC unroll 12")
#endif

namespace tilewright::tune {
namespace {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr int kChains = 12;  ///< enough to cover the latency of two pipes
constexpr int kLoads = 8;    ///< in one step of a read burst

// The empty asm statements keep every step, and every loaded value.
#define TW_BURST(name, isa, Vector, start_x, start_y, next)    \
  isa void name(int64_t steps) {                               \
    Vector x = start_x, y = start_y, chain[kChains] = {};      \
    asm volatile("" : "+" TW_REGISTER(x), "+" TW_REGISTER(y)); \
    for (int64_t i = 0; i < steps; ++i) {                      \
      TW_UNROLL for (Vector & a : chain) {                     \
        a = next;                                              \
        asm volatile("" : "+" TW_REGISTER(a));                 \
      }                                                        \
    }                                                          \
  }
#define TW_READ(name, isa, Vector)                                                        \
  isa void name(const char* from, int64_t bytes) {                                        \
    for (const char* end = from + bytes; from < end; from += kLoads * sizeof(Vector)) {   \
      TW_UNROLL for (int i = 0; i < kLoads; ++i) {                                        \
        const Vector value = *reinterpret_cast<const Vector*>(from + i * sizeof(Vector)); \
        asm volatile("" : : TW_REGISTER(value));                                          \
      }                                                                                   \
    }                                                                                     \
  }

using V16 = float __attribute__((vector_size(16), may_alias));
TW_BURST(f32_16, , V16, V16{} + 0.999f, V16{} + 1e-3f, a* x + y)
TW_READ(read_16, , V16)

#if defined(__x86_64__)
using V32 = float __attribute__((vector_size(32), may_alias));
using V64 = float __attribute__((vector_size(64), may_alias));
using I64 = long long __attribute__((vector_size(64), may_alias));
#define TW_ISA(isa) [[gnu::target(isa)]]
TW_BURST(f32_32, TW_ISA("avx2,fma"), V32, V32{} + 0.999f, V32{} + 1e-3f, a* x + y)
TW_BURST(f32_64, TW_ISA("avx512f,fma"), V64, V64{} + 0.999f, V64{} + 1e-3f, a* x + y)
TW_BURST(bf16_64, TW_ISA("avx512f,avx512bf16"), V64, V64{}, V64{},
         (V64)_mm512_dpbf16_ps((__m512)a, (__m512bh)x, (__m512bh)y))
TW_BURST(i8_64, TW_ISA("avx512f,avx512vnni"), I64, I64{} + 1, I64{} + 1,
         (I64)_mm512_dpbusd_epi32((__m512i)a, (__m512i)x, (__m512i)y))
TW_READ(read_32, TW_ISA("avx2"), V32)
TW_READ(read_64, TW_ISA("avx512f"), V64)
#endif

struct Burst {
  void (*run)(int64_t steps) = nullptr;
  double operations = 0;  ///< of one instruction
};

Burst pick(DType dtype) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx512f") != 0;
  if (dtype == DType::I8)
    return wide && __builtin_cpu_supports("avx512vnni") ? Burst{i8_64, 128} : Burst{};
  if (dtype == DType::BF16)
    return wide && __builtin_cpu_supports("avx512bf16") ? Burst{bf16_64, 64} : Burst{};
  if (dtype != DType::F32) return {};
  if (wide) return {f32_64, 32};
  if (__builtin_cpu_supports("fma")) return {f32_32, 16};
#endif
  return dtype == DType::F32 ? Burst{f32_16, 8} : Burst{};
}

using Read = void (*)(const char*, int64_t);

Read pick_read() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return read_64;
  if (__builtin_cpu_supports("avx2")) return read_32;
#endif
  return read_16;
}

/// Pages of its own, huge ones where the system gives them, all of them touched.
class Pages {
 public:
  explicit Pages(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory_, bytes_, MADV_HUGEPAGE);
    std::fill_n(data(), bytes_, char{1});
  }
  ~Pages() { ::munmap(memory_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* data() const { return static_cast<char*>(memory_); }

 private:
  size_t bytes_;
  void* memory_;
};

}  // namespace

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double peak_burst(DType dtype, double seconds) {
  const Burst burst = pick(dtype);
  if (burst.run == nullptr) return 0;
  constexpr int64_t kSteps = 20000;
  double best = 0;
  const double end = thread_seconds() + seconds;
  do {
    const double start = thread_seconds();
    burst.run(kSteps);
    const double ns = 1e9 * (thread_seconds() - start);
    best = std::max(best, burst.operations * kSteps * kChains / ns);
  } while (thread_seconds() < end);
  return best;
}

double read_burst(runtime::ThreadPool& pool, int cores, int64_t bytes, double seconds) {
  constexpr int64_t kStep = kLoads * 64;
  constexpr int64_t kBurst = 48 << 20;  ///< least bytes of one timing, of each core
  struct Job {
    Read read;
    const char* memory;
    int64_t bytes, rounds;
  };
  const int64_t own = std::max(bytes / kStep * kStep, kStep);
  const Pages pages(own * cores);
  const Job job{pick_read(), pages.data(), own, std::max<int64_t>(1, kBurst / own)};
  const auto body = [](void* env, int64_t core, int32_t) {
    const Job& mine = *static_cast<const Job*>(env);
    for (int64_t round = 0; round < mine.rounds; ++round)
      mine.read(mine.memory + core * mine.bytes, mine.bytes);
  };
  void* env = const_cast<Job*>(&job);
  double best = 0;
  const double end = wall_seconds() + seconds;
  do {
    const double start = wall_seconds(), own_start = thread_seconds();
    pool.parallel_for(cores, body, env);
    const double spent = cores == 1 ? thread_seconds() - own_start : wall_seconds() - start;
    best = std::max(best, static_cast<double>(own * job.rounds * cores) / (1e9 * spent));
  } while (wall_seconds() < end);
  return best;
}

double fork_join_burst(runtime::ThreadPool& pool, double seconds) {
  constexpr int kLoops = 50;
  double best = 1e18;
  const double end = wall_seconds() + seconds;
  do {
    const double start = wall_seconds();
    for (int i = 0; i < kLoops; ++i)
      pool.parallel_for(pool.threads(), [](void*, int64_t, int32_t) {}, nullptr);
    best = std::min(best, 1e9 * (wall_seconds() - start) / kLoops);
  } while (wall_seconds() < end);
  return best;
}

}  // namespace tilewright::tune
