// Bursts of about 40 to 300 us, each made of one kind of instruction. The peak: 12 chains of
// multiply-adds on the widest vectors, enough to hide their latency. The clock: additions that wait
// for each other, one per cycle. Memory: eight vector loads per step over memory that fits the
// level in question, on one core or all at once. Fork and join: empty parallel loops. bursts.h says
// which bursts count.
#include "tilewright/measure/probes.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

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

namespace tilewright::measure {
namespace {

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

constexpr int64_t kPeakSteps = 20000;  ///< of a burst of multiply-adds: some 40 us

constexpr int kAdds = 16;
/// Both operands are registers: some processors add small constants without spending a cycle.
void dependent_adds(int64_t rounds) {
  int64_t sum = 0, one = 1;
  for (int64_t i = 0; i < rounds; ++i) {
#if defined(__x86_64__)
#define TW_ADD "add %1, %0\n\t"
    asm volatile(TW_ADD TW_ADD TW_ADD TW_ADD TW_ADD TW_ADD TW_ADD TW_ADD TW_ADD TW_ADD TW_ADD TW_ADD
                     TW_ADD TW_ADD TW_ADD TW_ADD
                 : "+r"(sum)
                 : "r"(one)
                 : "cc");
#else
    for (int add = 0; add < kAdds; ++add) {
      sum += one;
      asm volatile("" : "+r"(sum));
    }
#endif
  }
}

/// A loop of all workers as one burst: no more its own than the worst of its parts is, and than the
/// longest part fills it (a worker that was late leaves its part to another).
BurstTime together(double wall, const std::vector<BurstTime>& parts) {
  double own = 0;
  for (const BurstTime& part : parts) own = std::max(own, part.wall);
  own = own > 0.9 * wall ? wall : own;
  for (const BurstTime& part : parts)
    if (!undisturbed(part)) own = 0;
  return {wall, own};
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

BurstReading read_peak(DType dtype, double seconds) {
  const Burst burst = pick(dtype);
  if (burst.run == nullptr) return {};
  return read_bursts(system_clocks(), burst.operations * kPeakSteps * kChains, seconds,
                     [&] { return timed(system_clocks(), [&] { burst.run(kPeakSteps); }); });
}

double peak_now(DType dtype, int bursts) {
  const Burst burst = pick(dtype);
  double best = 0;
  for (int i = 0; burst.run != nullptr && i < bursts; ++i) {
    const BurstTime time = timed(system_clocks(), [&] { burst.run(kPeakSteps); });
    if (undisturbed(time))
      best = std::max(
          best, burst.operations * kPeakSteps * kChains / (1e9 * std::max(time.wall, time.own)));
  }
  return best;
}

BurstReading read_clock(double seconds) {
  constexpr int64_t kRounds = 10000;
  return read_bursts(system_clocks(), kRounds * kAdds, seconds,
                     [&] { return timed(system_clocks(), [&] { dependent_adds(kRounds); }); });
}

int most_fma_per_cycle() {
#if defined(__x86_64__)
  return 2;
#else
  return 4;
#endif
}

BurstReading read_memory(runtime::ThreadPool& pool, int cores, int64_t bytes, double seconds) {
  constexpr int64_t kStep = kLoads * 64;
  constexpr int64_t kPiece = 4 << 20;  ///< read at a time, so that bursts stay short
  constexpr double kBurst = 300e-6;    ///< of one burst; units: seconds
  struct Job {
    Read read;
    const char* memory;
    int64_t own, piece;
    int64_t next = 0, rounds = 1;  ///< pieces read before, and by one burst
    std::vector<BurstTime> times;
  };
  Job job{pick_read(), nullptr, std::max(bytes / kStep * kStep, kStep), 0, 0, 1, {}};
  job.piece = std::min(job.own, kPiece);
  const Pages pages(job.own * cores);
  job.memory = pages.data();
  job.times.resize(static_cast<size_t>(cores));
  const auto body = [](void* env, int64_t core, int32_t) {
    Job& mine = *static_cast<Job*>(env);
    mine.times[static_cast<size_t>(core)] = timed(system_clocks(), [&] {
      for (int64_t round = 0; round < mine.rounds; ++round)
        mine.read(mine.memory + core * mine.own +
                      (mine.next + round) % (mine.own / mine.piece) * mine.piece,
                  mine.piece);
    });
  };
  const auto burst = [&] {
    const BurstTime all = timed(system_clocks(), [&] { pool.parallel_for(cores, body, &job); });
    job.next += job.rounds;
    return together(all.wall, job.times);
  };
  while (burst().wall < kBurst / 2 && job.rounds < 1 << 20) job.rounds *= 2;
  return read_bursts(system_clocks(), static_cast<double>(job.piece * job.rounds * cores), seconds,
                     burst);
}

BurstReading read_fork_join(runtime::ThreadPool& pool, double seconds) {
  constexpr int kLoops = 50;
  return read_bursts(system_clocks(), kLoops, seconds, [&] {
    return timed(system_clocks(), [&] {
      for (int i = 0; i < kLoops; ++i)
        pool.parallel_for(pool.threads(), [](void*, int64_t, int32_t) {}, nullptr);
    });
  });
}

}  // namespace tilewright::measure
