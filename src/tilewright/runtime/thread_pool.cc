#include "tilewright/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <utility>

#include "tilewright/base/available_cpus.h"
#include "tilewright/base/environment.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace tilewright::runtime {
namespace {

/// Of a loop that is shared out; longer ones run on one thread.
constexpr int64_t kMostIterations = std::numeric_limits<uint32_t>::max();

using Clock = std::chrono::steady_clock;

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// Spins until `done()` or the time is over; reading the clock costs as much as many pauses.
template <class Done>
bool spin(int microseconds, Done&& done) {
  const auto limit = Clock::now() + std::chrono::microseconds(microseconds);
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      cpu_relax();
    }
  } while (Clock::now() < limit);
  return done();
}

/// The loop this thread is a part of, so that loops inside it run in place.
struct Current {
  const ThreadPool* pool = nullptr;
  int worker = 0;
};
thread_local Current current;

void pin_thread(std::thread& thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
}

/// Moves this thread to another CPU it may use. Two threads that were woken on one CPU and wait for
/// each other in turn look like one to the scheduler, which leaves them there for many
/// milliseconds.
void leave_cpu(int cpu) {
  cpu_set_t all;
  CPU_ZERO(&all);
  if (sched_getaffinity(0, sizeof all, &all) != 0 || !CPU_ISSET(cpu, &all)) return;
  cpu_set_t others = all;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
    sched_setaffinity(0, sizeof all, &all);
}

void serve_parallel_for(void* pool, int64_t count, tw_parallel_body body, void* env) {
  static_cast<ThreadPool*>(pool)->parallel_for(count, body, env);
}

}  // namespace

int default_threads() {
  if (const auto text = environment("TILEWRIGHT_THREADS")) {
    const long threads = std::strtol(text->c_str(), nullptr, 10);
    if (threads > 0) return static_cast<int>(std::min(threads, 1024L));
  }
  return usable_cpus();
}

ThreadPool::ThreadPool(const ThreadPoolOptions& options)
    : options_(options),
      ranges_(static_cast<size_t>(
          std::min(options_.threads > 0 ? options_.threads : default_threads(), 1024))) {
  const auto threads = static_cast<int>(ranges_.size());
  for (int worker = 1; worker < threads; ++worker) slots_.push_back(std::make_unique<Slot>());
  const std::vector<int> allowed = allowed_cpus();
  const std::vector<int> cpus = options_.pin ? allowed : std::vector<int>{};
  spread_ = !options_.pin && static_cast<size_t>(threads) <= allowed.size();
  for (int worker = 1; worker < threads; ++worker) {
    std::thread& thread = slots_[static_cast<size_t>(worker - 1)]->thread;
    thread = std::thread([this, worker] { work(worker); });
    if (!cpus.empty()) pin_thread(thread, cpus[static_cast<size_t>(worker) % cpus.size()]);
  }
  services_ = {sizeof services_, this, serve_parallel_for, threads};
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  for (auto& slot : slots_) {
    slot->ticket.fetch_add(1, std::memory_order_release);
    slot->ticket.notify_one();
  }
  for (auto& slot : slots_) slot->thread.join();
}

template <class Cut>
ThreadPool::Range::Span ThreadPool::Range::take(Cut cut) {
  uint64_t left = left_.load(std::memory_order_relaxed);
  while (true) {
    Span rest{static_cast<uint32_t>(left >> 32), static_cast<uint32_t>(left)};
    if (rest.begin >= rest.end) return {};
    const Span taken = cut(rest);
    if (left_.compare_exchange_weak(left, pack(rest), std::memory_order_relaxed)) return taken;
  }
}

ThreadPool::Range::Span ThreadPool::Range::take_front() {
  return take([](Span& rest) {
    const uint32_t middle = rest.begin + std::max(1u, (rest.end - rest.begin) / 8);
    return Span{std::exchange(rest.begin, middle), middle};
  });
}

ThreadPool::Range::Span ThreadPool::Range::take_back() {
  return take([](Span& rest) {
    const uint32_t middle = rest.begin + (rest.end - rest.begin) / 2;
    return Span{middle, std::exchange(rest.end, middle)};
  });
}

ThreadPool::Range::Span ThreadPool::next(int worker) {
  Range& own = ranges_[static_cast<size_t>(worker)];
  if (const Range::Span mine = own.take_front(); mine.begin < mine.end) return mine;
  for (int64_t i = 1; i < job_.parts; ++i) {
    const auto other = static_cast<size_t>((worker + i) % job_.parts);
    const Range::Span taken = ranges_[other].take_back();
    if (taken.begin == taken.end) continue;
    own.set({taken.begin + 1, taken.end});
    return {taken.begin, taken.begin + 1};  // or two idle workers might hand it to and fro
  }
  return {};
}

void ThreadPool::run_part(int worker) {
  for (Range::Span s = next(worker); s.begin < s.end; s = next(worker))
    for (uint32_t i = s.begin; i < s.end; ++i) job_.body(job_.env, i, worker);
}

void ThreadPool::parallel_for(int64_t count, tw_parallel_body body, void* env) {
  const int64_t parts = std::min<int64_t>(count, threads());
  const bool nested = current.pool == this;
  const bool alone = parts <= 1 || nested || count > kMostIterations;
  if (alone || busy_.exchange(true, std::memory_order_acquire)) {
    const int worker = nested ? current.worker : 0;
    for (int64_t i = 0; i < count; ++i) body(env, i, worker);
    return;
  }
  const Current outer = current;
  current = {this, 0};
  job_ = {body, env, count, parts, spread_ ? sched_getcpu() : -1};
  const int64_t whole = count / parts, rest = count % parts;
  for (int64_t worker = 0, begin = 0; worker < parts; ++worker) {
    const int64_t end = begin + whole + (worker < rest ? 1 : 0);
    ranges_[static_cast<size_t>(worker)].set(
        {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    begin = end;
  }
  pending_.store(static_cast<uint32_t>(parts - 1), std::memory_order_relaxed);
  for (int64_t worker = 1; worker < parts; ++worker) {
    Slot& slot = *slots_[static_cast<size_t>(worker - 1)];
    slot.ticket.fetch_add(1, std::memory_order_seq_cst);
    slot.ticket.notify_one();
  }
  run_part(0);
  auto left = [&] { return pending_.load(std::memory_order_acquire); };
  if (!spin(options_.spin_microseconds, [&] { return left() == 0; }))
    for (uint32_t now = left(); now != 0; now = left()) pending_.wait(now);
  current = outer;
  busy_.store(false, std::memory_order_release);
}

bool ThreadPool::wait_for_ticket(Slot& slot, uint32_t seen) const {
  auto rung = [&] { return slot.ticket.load(std::memory_order_acquire) != seen; };
  if (!spin(options_.spin_microseconds, rung))
    while (!rung()) slot.ticket.wait(seen);
  return !stop_.load(std::memory_order_relaxed);
}

void ThreadPool::work(int worker) {
  const FlushDenormals flush(options_.flush_denormals);
  current = {this, worker};
  Slot& slot = *slots_[static_cast<size_t>(worker - 1)];
  for (uint32_t seen = 0; wait_for_ticket(slot, seen); ++seen) {
    if (job_.cpu >= 0 && job_.cpu == sched_getcpu()) leave_cpu(job_.cpu);
    run_part(worker);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

#if defined(__x86_64__)
namespace {
constexpr uint64_t kFlushBits = 0x8040;  // MXCSR: FTZ and DAZ
uint64_t read_float_control() { return _mm_getcsr(); }
void write_float_control(uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }
}  // namespace
#elif defined(__aarch64__)
namespace {
constexpr uint64_t kFlushBits = 1u << 24;  // FPCR: FZ
uint64_t read_float_control() {
  uint64_t bits;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void write_float_control(uint64_t bits) { asm volatile("msr fpcr, %0" ::"r"(bits)); }
}  // namespace
#else
namespace {
constexpr uint64_t kFlushBits = 0;
uint64_t read_float_control() { return 0; }
void write_float_control(uint64_t) {}
}  // namespace
#endif

FlushDenormals::FlushDenormals(bool enable) : enabled_(enable) {
  if (!enabled_) return;
  saved_ = read_float_control();
  write_float_control(saved_ | kFlushBits);
}

FlushDenormals::~FlushDenormals() {
  if (enabled_) write_float_control(saved_);
}

}  // namespace tilewright::runtime
