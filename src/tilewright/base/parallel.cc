#include "tilewright/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewright {

void for_each_part(size_t count, int threads,
                   const std::function<void(size_t i, size_t thread)>& work) {
  std::atomic<size_t> next = 0;
  std::mutex lock;
  std::exception_ptr thrown;
  const auto run = [&](size_t thread) {
    try {
      for (size_t i = next++; i < count; i = next++) work(i, thread);
    } catch (...) {  // out of a thread it would end the process without a message
      next = count;
      const std::lock_guard<std::mutex> guard(lock);
      if (!thrown) thrown = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (size_t thread = 1; thread < std::min(count, static_cast<size_t>(std::max(1, threads)));
       ++thread)
    others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace tilewright
