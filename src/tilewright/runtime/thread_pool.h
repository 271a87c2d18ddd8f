// A fork-join thread pool for kernels: workers spin briefly for the next loop, then sleep; who is
// done takes over what others have left.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tilewright/runtime/kernel_abi.h"

namespace tilewright::runtime {

/// What affinity and quotas leave this process (usable_cpus), or the environment's
/// TILEWRIGHT_THREADS if that is a positive number.
int default_threads();

struct ThreadPoolOptions {
  int threads = 0;  ///< with the calling thread; 0: default_threads()
  /// How long a worker looks for work before it sleeps: longer than it takes to wake one up (100 us
  /// in a virtual machine), or one that is late makes the others sleep, and be late, in turn.
  int spin_microseconds = 200;
  bool flush_denormals = false;  ///< workers treat denormal floats as zero
  bool pin = false;              ///< worker w stays on the w-th allowed CPU
};

/// Persistent workers; the calling thread is worker 0 of every loop it starts.
class ThreadPool {
 public:
  explicit ThreadPool(const ThreadPoolOptions& options = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(slots_.size()) + 1; }

  /// Runs body(env, i, worker) for 0 <= i < count; returns when all are done. Each worker begins
  /// with a contiguous range of its own, so that the same worker meets the same data from loop to
  /// loop, and then takes from the ends of the others': processors are not equally fast where
  /// others use them too. Inside a body, or while another thread uses the pool, the loop runs on
  /// the calling thread alone.
  void parallel_for(int64_t count, tw_parallel_body body, void* env);

  /// What a kernel gets; valid as long as the pool.
  const tw_kernel_services& services() const { return services_; }

 private:
  /// Iterations that a worker has yet to do, on a cache line of its own. The worker takes from the
  /// front, others from the back; one number holds all there is to know, so both may.
  class alignas(64) Range {
   public:
    struct Span {
      uint32_t begin = 0, end = 0;
    };
    void set(Span span) { left_.store(pack(span), std::memory_order_relaxed); }
    /// An eighth of what is left, at least one iteration; empty if nothing is.
    Span take_front();
    /// The further half.
    Span take_back();

   private:
    static uint64_t pack(Span span) { return uint64_t{span.begin} << 32 | span.end; }
    template <class Cut>
    Span take(Cut cut);

    std::atomic<uint64_t> left_{0};
  };
  /// One worker's doorbell, on a cache line of its own.
  struct alignas(64) Slot {
    std::atomic<uint32_t> ticket{0};
    std::thread thread;
  };
  struct Job {
    tw_parallel_body body = nullptr;
    void* env = nullptr;
    int64_t count = 0;
    int64_t parts = 0;
    int cpu = -1;  ///< of the calling thread
  };

  void work(int worker);
  bool wait_for_ticket(Slot& slot, uint32_t seen) const;
  void run_part(int worker);
  /// What `worker` does next: of its own, or of another's; empty if nothing is left.
  Range::Span next(int worker);

  ThreadPoolOptions options_;
  bool spread_ = false;  ///< workers keep off the caller's CPU: there is one for each
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Range> ranges_;
  tw_kernel_services services_;
  std::atomic<bool> busy_{false};
  std::atomic<bool> stop_{false};
  alignas(64) Job job_;
  alignas(64) std::atomic<uint32_t> pending_{0};
};

/// Treats denormal floats as zero on this thread until the end of the scope.
class FlushDenormals {
 public:
  explicit FlushDenormals(bool enable);
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  bool enabled_;
  uint64_t saved_ = 0;
};

}  // namespace tilewright::runtime
