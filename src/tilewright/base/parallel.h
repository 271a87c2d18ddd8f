// Work that falls into independent parts, on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace tilewright {

/// Calls `work(i, thread)` once for every i below `count`, on up to `threads` threads, which are
/// numbered; number 0 is the caller. Each takes the next i when it is done with one. What `work`
/// throws (a bug) ends the others after their part, and is thrown here.
void for_each_part(size_t count, int threads,
                   const std::function<void(size_t i, size_t thread)>& work);

}  // namespace tilewright
