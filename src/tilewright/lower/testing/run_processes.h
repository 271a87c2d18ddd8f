// For tests: runs the processes of a program as threads, connected by channels with a fixed number
// of blocks, slice by slice with the interpreter.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/processes.h"

namespace tilewright::lower::testing {

/// What a wrong implementation of channels might do.
enum class Fault { None, ReaderKeeps, WriterKeeps, HandedOverEmpty };

struct RunOptions {
  int slots = 0;           ///< of every channel; 0: as many as it has
  uint64_t seed = 1;       ///< of the delays
  int longest_delay = 30;  ///< microseconds
  Fault fault = Fault::None;
};

/// Thrown in every thread when all of them wait.
struct Deadlock {
  std::string text;
};

/// The blocks of one channel. Guarded by the mutex of the region.
struct Blocks {
  const Channel* channel = nullptr;
  int free = 0;
  std::deque<Array> full;
};

/// What the processes of one region share.
class RegionState {
 public:
  RegionState(const DataflowRegion& region, const RunOptions& options)
      : options_(options), waits_(region.processes.size()), alive_(region.processes.size()) {
    for (const Channel& c : region.channels)
      blocks_.push_back({&c, options.slots > 0 ? options.slots : c.slots, {}});
  }

  Blocks* find(const Buffer& buffer) {
    for (Blocks& b : blocks_)
      if (b.channel->buffer == buffer) return &b;
    return nullptr;
  }
  Array take(int process, Blocks& blocks, const Array& undefined) {
    const bool writes = blocks.channel->writer == process;
    std::unique_lock lock(mutex_);
    waits_[process] = {&blocks, writes};
    if (!ready(waits_[process])) {
      check();
      changed_.wait(lock, [&] { return dead_ || ready(waits_[process]); });
    }
    if (dead_) throw Deadlock{*dead_};
    waits_[process] = {};
    if (writes) {
      --blocks.free;
      return undefined.clone();
    }
    const Array array = blocks.full.front();
    blocks.full.pop_front();
    return array;
  }
  void release(int process, Blocks& blocks, const Array& array) {
    const std::unique_lock lock(mutex_);
    const bool writes = blocks.channel->writer == process;
    if (writes && options_.fault != Fault::WriterKeeps) blocks.full.push_back(array);
    if (!writes && options_.fault != Fault::ReaderKeeps) ++blocks.free;
    changed_.notify_all();
  }
  void finish() {
    const std::unique_lock lock(mutex_);
    --alive_;
    check();
  }
  const RunOptions& options() const { return options_; }

 private:
  struct Wait {
    Blocks* blocks = nullptr;
    bool writes = false;
  };
  static bool ready(const Wait& w) {
    return w.writes ? w.blocks->free > 0 : !w.blocks->full.empty();
  }
  /// If all processes that have not ended wait in vain, nothing will ever happen again.
  void check() {
    size_t stuck = 0;
    std::string text;
    for (const Wait& w : waits_)
      if (w.blocks != nullptr && !ready(w)) {
        ++stuck;
        text +=
            fmt::format(" a {} {}", w.writes ? "free" : "full", w.blocks->channel->buffer.name());
      }
    if (stuck == 0 || stuck < alive_) return;
    dead_ = "all processes wait:" + text;
    changed_.notify_all();
  }

  RunOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Blocks> blocks_;
  std::vector<Wait> waits_;
  size_t alive_;
  std::optional<std::string> dead_;
};

/// Runs one slice: loops with allocations inside here, all else by the interpreter.
class SliceRunner {
 public:
  SliceRunner(RegionState& state, int process, std::map<Buffer, Array>& memory,
              const std::map<Var, int64_t>& scalars)
      : state_(state),
        process_(process),
        memory_(memory),
        values_(scalars),
        rng_(state.options().seed * 977 + process) {}

  void run(const Stmt& s) {
    bool allocates = false;
    walk(s, [&](const Stmt& x) { allocates |= x.as<Alloc>() != nullptr; });
    if (!allocates) return interpret(s);
    if (const auto* loop = s.as<For>()) {
      const auto n = static_cast<int64_t>(interp::evaluate(loop->extent, values_).value());
      for (int64_t i = 0; i < n; ++i) {
        values_[loop->var] = i;
        run(loop->body);
      }
      values_.erase(loop->var);
    } else if (const auto* branch = s.as<If>()) {
      if (holds(branch->condition)) {
        run(branch->then_body);
      } else if (branch->else_body) {
        run(branch->else_body);
      }
    } else if (const auto* list = s.as<Seq>()) {
      sequence(*list);
    }
  }

 private:
  void sequence(const Seq& list) {
    std::vector<Buffer> begun;
    for (const Stmt& child : list.stmts) {
      delay();
      const auto* alloc = child.as<Alloc>();
      if (alloc == nullptr) {
        run(child);
        continue;
      }
      const Buffer& buffer = alloc->buffer;
      begun.push_back(buffer);
      Blocks* blocks = state_.find(buffer);
      own_[buffer] = undefined(buffer);
      if (blocks == nullptr) continue;
      own_[buffer] = state_.take(process_, *blocks, own_[buffer]);
      if (state_.options().fault == Fault::HandedOverEmpty && blocks->channel->writer == process_)
        state_.release(process_, *blocks, own_[buffer].clone());
    }
    for (const Buffer& buffer : begun) {
      delay();
      Blocks* blocks = state_.find(buffer);
      const bool early = state_.options().fault == Fault::HandedOverEmpty && blocks != nullptr &&
                         blocks->channel->writer == process_;
      if (blocks != nullptr && !early) state_.release(process_, *blocks, own_[buffer]);
      own_.erase(buffer);
    }
  }

  void delay() {
    const int64_t longest = state_.options().longest_delay;
    if (longest > 0 && rng_.chance(0.5))
      std::this_thread::sleep_for(std::chrono::microseconds(rng_.between(0, longest)));
  }

  Array undefined(const Buffer& buffer) const {
    Shape shape;
    for (const Expr& e : buffer.shape())
      shape.push_back(static_cast<int64_t>(interp::evaluate(e, values_).value()));
    Array array(buffer.dtype(), shape);
    for (int64_t i = 0; i < array.size(); ++i)
      array.set(i, is_float(buffer.dtype()) ? std::numeric_limits<double>::quiet_NaN() : 77);
    return array;
  }

  bool holds(const Expr& condition) {
    const Buffer answer("the answer", DType::Bool, {});
    own_[answer] = Array(DType::Bool, {});
    interpret(make(Store{answer, {}, condition, Combine::Set}));
    const bool yes = own_[answer].get(0) != 0;
    own_.erase(answer);
    return yes;
  }

  Array& array_of(const Buffer& buffer) {
    const auto own = own_.find(buffer);
    return own != own_.end() ? own->second : memory_.at(buffer);
  }

  void interpret(const Stmt& s) {
    std::set<Buffer> used, written;
    walk(
        s,
        [&](const Stmt& x) {
          if (const auto* store = x.as<Store>())
            used.insert(store->buffer), written.insert(store->buffer);
          if (const auto* call = x.as<Call>())
            for (const auto& arg : call->args)
              if (const auto* region = std::get_if<Region>(&arg))
                used.insert(region->buffer), written.insert(region->buffer);
        },
        [&](const Expr& e) {
          if (const auto* l = e.as<Load>()) used.insert(l->buffer);
        });
    Func f;
    f.name = "part";
    f.body = s;
    interp::Arguments arguments;
    for (const auto& [var, value] : values_) {
      f.scalars.push_back({var, value, value});
      arguments.scalars[var.name()] = value;
    }
    for (const Buffer& b : used) {
      f.params.push_back({b, ParamMode::InOut, {}, {}});
      arguments.arrays[b.name()] = array_of(b);
    }
    const auto outcome = interp::run(f, arguments);
    if (!outcome) throw std::runtime_error(to_string(outcome.error()));
    for (const Buffer& b : written) array_of(b) = outcome->outputs.at(b.name());
  }

  RegionState& state_;
  int process_;
  std::map<Buffer, Array>& memory_;
  std::map<Buffer, Array> own_;
  std::map<Var, int64_t> values_;
  Rng rng_;
};

/// One region; the reason if it does not come to its end.
inline std::string run_region(const DataflowRegion& region, std::map<Buffer, Array>& memory,
                              const std::map<Var, int64_t>& scalars, const RunOptions& options) {
  RegionState state(region, options);
  std::vector<std::string> wrong(region.processes.size());
  std::vector<std::thread> threads;
  for (size_t p = 0; p < region.processes.size(); ++p)
    threads.emplace_back([&, p] {
      try {
        SliceRunner(state, static_cast<int>(p), memory, scalars).run(region.processes[p].body);
      } catch (const Deadlock& e) {
        wrong[p] = e.text;
      } catch (const std::exception& e) {
        wrong[p] = e.what();
      }
      state.finish();
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& text : wrong)
    if (!text.empty()) return text;
  return "";
}

/// Outputs of `func` run as processes. errors: Invalid, with what was wrong (a deadlock too).
inline Result<interp::Outcome> run_processes(const Func& func, const ProcessProgram& program,
                                             const interp::Arguments& arguments,
                                             const RunOptions& options = {}) {
  std::map<Var, int64_t> scalars;
  for (const Scalar& s : func.scalars) scalars[s.var] = arguments.scalars.at(s.var.name());
  std::map<Buffer, Array> memory;
  auto allocate = [&](const Buffer& buffer) {
    Shape shape;
    for (const Expr& e : buffer.shape())
      shape.push_back(static_cast<int64_t>(interp::evaluate(e, scalars).value()));
    memory[buffer] = Array(buffer.dtype(), shape);
  };
  for (const Buffer& b : program.scratch) allocate(b);
  for (const Param& p : func.params) {
    const auto given = arguments.arrays.find(p.buffer.name());
    if (p.values) {
      memory[p.buffer] = *p.values;
    } else if (given != arguments.arrays.end() && p.mode != ParamMode::Out) {
      memory[p.buffer] = given->second.clone();
    } else {
      allocate(p.buffer);
    }
  }
  for (const DataflowRegion& region : program.regions)
    if (const std::string wrong = run_region(region, memory, scalars, options); !wrong.empty())
      return fail(ErrorKind::Invalid, wrong);
  interp::Outcome out;
  for (const Param& p : func.params)
    if (p.mode == ParamMode::Out || p.mode == ParamMode::InOut)
      out.outputs[p.buffer.name()] = memory.at(p.buffer);
  return out;
}

}  // namespace tilewright::lower::testing
