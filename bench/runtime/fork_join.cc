// Cost of one fork-join of the thread pool: empty loops, back to back and after pauses that let the
// workers fall asleep. Usage: fork_join_bench [threads].
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tilewright/runtime/thread_pool.h"

namespace {

using tilewright::runtime::ThreadPool;
using Clock = std::chrono::steady_clock;

void nothing(void*, int64_t, int32_t) {}

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

/// Medians and tenths over `rounds` loops, each after `pause`.
void measure(const char* name, ThreadPool& pool, int rounds, int batch,
             std::chrono::microseconds pause) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const auto start = Clock::now();
    for (int i = 0; i < batch; ++i) pool.parallel_for(pool.threads(), nothing, nullptr);
    times.push_back(microseconds(Clock::now() - start) / batch);
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double p) {
    return times[static_cast<size_t>(p * static_cast<double>(times.size() - 1))];
  };
  fmt::print(
      "{{\"name\": \"fork_join/{}\", \"threads\": {}, \"p10_us\": {:.3f}, \"p50_us\": {:.3f}, "
      "\"p90_us\": {:.3f}}}\n",
      name, pool.threads(), at(0.1), at(0.5), at(0.9));
}

}  // namespace

int main(int argc, char** argv) {
  ThreadPool pool({.threads = argc > 1 ? std::atoi(argv[1]) : 2});
  measure("spinning", pool, 2000, 50, std::chrono::microseconds(0));
  measure("parked", pool, 200, 1, std::chrono::microseconds(1000));
}
