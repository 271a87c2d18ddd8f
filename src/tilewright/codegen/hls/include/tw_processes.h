// Processes of a dataflow region as threads, for running generated kernels with an ordinary
// compiler. A vendor's tool never sees this file: there TW_PROCESS is a plain call.
//
// Processes that wait for one another for ever are found at once, not after a time: as soon as all
// of them wait and none can go on, each waiting place is named and the region ends.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace tw_csim {

using Lock = std::unique_lock<std::mutex>;

struct Process {
  const char* name;
  std::function<void()> body;
  bool live = true;
  const char* what = nullptr;  ///< it waits for: `a full block of`; null while it works
  const char* channel = nullptr;
  std::function<bool()> ready;  ///< whether it could go on
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Process*> processes;
  bool stuck = false;
  std::string error;  ///< of the last region that did not end by itself
};
inline State& state() {
  static State s;
  return s;
}
inline std::mutex& mutex() { return state().mutex; }
inline void changed() { state().changed.notify_all(); }
inline Process*& self() {
  static thread_local Process* p = nullptr;
  return p;
}

/// Ends the processes of a region that cannot go on.
struct Stuck {};

/// Declares the region stuck if all of its processes wait and none can go on. requires: the mutex.
inline void look_for_deadlock() {
  State& s = state();
  std::string text;
  for (Process* p : s.processes) {
    if (!p->live) continue;
    if (p->what == nullptr || p->ready()) return;
    text += std::string(text.empty() ? "" : "; ") + p->name + " waits for " + p->what + " " +
            p->channel;
  }
  if (text.empty() || s.stuck) return;
  s.stuck = true;
  s.error = "no process can go on: " + text;
  std::fprintf(stderr, "%s\n", s.error.c_str());
  s.changed.notify_all();
}

template <class Ready>
void wait(Lock& lock, const char* what, const char* channel, Ready ready) {
  State& s = state();
  if (s.stuck) throw Stuck{};
  if (ready()) return;
  Process alone{"the kernel", {}, true, nullptr, nullptr, {}};
  Process* p = self();
  if (p == nullptr) {  // outside of any region: nobody can help
    p = &alone;
    s.processes.push_back(p);
  }
  p->what = what, p->channel = channel, p->ready = ready;
  look_for_deadlock();
  s.changed.wait(lock, [&] { return s.stuck || ready(); });
  p->what = nullptr;
  if (p == &alone) s.processes.clear();
  if (s.stuck) throw Stuck{};
}

inline void* run_process(void* argument) {
  Process* p = static_cast<Process*>(argument);
  self() = p;
  try {
    p->body();
  } catch (const Stuck&) {
  }
  Lock lock(mutex());
  p->live = false;
  look_for_deadlock();
  return nullptr;
}

/// The processes of one region; they run, all at the same time, when it goes out of scope.
class Processes {
 public:
  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  void add(const char* name, std::function<void()> body) {
    processes_.push_back(Process{name, std::move(body), true, nullptr, nullptr, {}});
  }
  ~Processes() {
    State& s = state();
    if (!s.error.empty()) return;  // an earlier region did not end: its results are missing
    for (Process& p : processes_) s.processes.push_back(&p);
    s.stuck = false;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t{256} << 20);  // memories on chip live there
    std::vector<pthread_t> threads;
    for (Process& p : processes_) {
      pthread_t thread;
      if (pthread_create(&thread, &attributes, run_process, &p) == 0) {
        threads.push_back(thread);
        continue;
      }
      Lock lock(mutex());
      p.live = false;
      s.error = std::string("no thread for process ") + p.name;
      look_for_deadlock();
    }
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    s.processes.clear();
    s.stuck = false;
  }

 private:
  std::vector<Process> processes_;
};

}  // namespace tw_csim

#define TW_PROCESSES tw_csim::Processes tw_processes
#define TW_PROCESS(function, ...) tw_processes.add(#function, [&] { function(__VA_ARGS__); })
#define TW_NAMED(channel) channel.set_name(#channel)
