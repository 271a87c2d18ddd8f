#include "tilewright/accel/common/queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace tilewright::accel {
namespace {

bool has(const std::vector<int>& memories, int memory) {
  return std::find(memories.begin(), memories.end(), memory) != memories.end();
}

/// Bit q: queue q does so to the memory.
std::vector<unsigned> users(const Queues& queues, std::vector<int> Queue::* what) {
  std::vector<unsigned> out(queues.memories.size());
  for (size_t q = 0; q < queues.list.size(); ++q)
    for (const int memory : queues.list[q].*what) out[static_cast<size_t>(memory)] |= 1u << q;
  return out;
}

}  // namespace

bool Queues::linked(int from, int to) const {
  return from != to && (paths == TokenPaths::AnyPair || std::abs(from - to) == 1);
}

bool shared(const Queues& queues, int memory) {
  for (const Queue& writer : queues.list)
    for (const Queue& other : queues.list)
      if (&writer != &other && has(writer.writes, memory) &&
          (has(other.writes, memory) || has(other.reads, memory)))
        return true;
  return false;
}

Status check(const Queues& queues) {
  if (queues.list.empty() || queues.size() > kMaxQueues)
    return fail(ErrorKind::Invalid,
                fmt::format("{} queues, there are 1 to {}", queues.size(), kMaxQueues));
  if (queues.most_tokens < 2)
    return fail(ErrorKind::Invalid, "fewer than two tokens between queues");
  for (const Queue& queue : queues.list)
    for (const std::vector<int>* memories : {&queue.reads, &queue.writes})
      for (const int memory : *memories)
        if (memory < 0 || memory >= std::ssize(queues.memories))
          return fail(ErrorKind::Invalid,
                      fmt::format("queue '{}' names memory {}", queue.name, memory),
                      fmt::format("there are {}", queues.memories.size()));
  return {};
}

Status check_accesses(const Queues& queues, const std::vector<int>& queue,
                      const std::vector<Footprint>& footprints) {
  if (queue.size() != footprints.size())
    return fail(ErrorKind::Invalid, "each instruction needs its footprint",
                fmt::format("{} instructions, {} footprints", queue.size(), footprints.size()));
  const std::vector<unsigned> readers = users(queues, &Queue::reads);
  const std::vector<unsigned> writers = users(queues, &Queue::writes);
  for (size_t i = 0; i < queue.size(); ++i) {
    if (queue[i] < 0 || queue[i] >= queues.size())
      return fail(ErrorKind::Invalid, fmt::format("instruction {} is in no queue", i));
    for (const Access& access : footprints[i]) {
      const auto memory = static_cast<size_t>(access.memory);
      if (access.memory < 0 || memory >= queues.memories.size())
        return fail(ErrorKind::Invalid,
                    fmt::format("instruction {} touches memory {}", i, access.memory),
                    fmt::format("there are {}", queues.memories.size()));
      if (((access.write ? writers : readers)[memory] >> queue[i] & 1) == 0)
        return fail(ErrorKind::Invalid,
                    fmt::format("instruction {} {} memory '{}', which queue '{}' cannot", i,
                                access.write ? "writes" : "reads", queues.memories[memory],
                                queues.list[static_cast<size_t>(queue[i])].name));
    }
  }
  return {};
}

}  // namespace tilewright::accel
