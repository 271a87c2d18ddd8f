#include "tilewright/accel/spatial/sim/machine.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "tilewright/accel/spatial/sim/array.h"

namespace tilewright::spatial {
namespace {

constexpr int64_t kInstructionBytes = 128, kWriteWords = 128;

/// A LOAD while it runs: bursts of the read port become words that wait for their banks.
class Reader {
 public:
  Reader(const Design& design, const SimInstruction& load, int64_t first_cycle)
      : design_(design), load_(load), first_cycle_(first_cycle) {
    for (int64_t run : load.runs)
      for (int64_t at = 0; at < run; at += design.burst_bytes)
        bursts_.push_back(
            {std::min<int64_t>(run - at, design.burst_bytes), at + design.burst_bytes >= run});
    padding_ = (load.padding + design.bank_bytes - 1) / design.bank_bytes;
    next_first_ = first_cycle + design.timing.read_latency;
  }

  void arrive(int64_t now) {
    if (now < first_cycle_) return;
    if (beat(now)) return;
    if (padding_ > 0 && room(1)) {
      push(offset_);
      offset_ += design_.bank_bytes;
      --padding_;
    }
  }

  /// A full access waits: as many words as there are banks, or what nothing will follow.
  bool wants(const Banks& banks) const {
    const int64_t together = beside_each_other(banks);
    return together == banks.count() || together < int64_t(words_.size()) ||
           (!words_.empty() && burst_ == bursts_.size() && padding_ == 0);
  }

  void write(Banks& banks) {
    if (!wants(banks) || !banks.take()) return;
    const int64_t together = beside_each_other(banks);
    words_.erase(words_.begin(), words_.begin() + together);
  }

  bool done(int64_t now) const {
    return now >= first_cycle_ && burst_ == bursts_.size() && padding_ == 0 && words_.empty();
  }
  size_t bursts() const { return bursts_.size(); }

 private:
  struct Burst {
    int64_t bytes;
    bool ends_run;
  };

  int64_t beside_each_other(const Banks& banks) const {
    size_t count = std::min<size_t>(1, words_.size());
    while (count < words_.size() && int64_t(count) < banks.count() &&
           words_[count] == words_[count - 1] + 1)
      ++count;
    return int64_t(count);
  }

  bool room(int64_t words) const { return int64_t(words_.size()) + words <= kWriteWords; }
  void push(int64_t address) {
    const int64_t word = (load_.address + address) / design_.bank_bytes;
    if (words_.empty() || words_.back() != word) words_.push_back(word);
  }

  bool beat(int64_t now) {
    if (burst_ == bursts_.size() || now < next_first_) return false;
    const Burst& burst = bursts_[burst_];
    if (moved_ == 0) first_ = now;
    const int64_t bytes =
        std::min<int64_t>(burst.bytes - moved_, load_.gathers ? 1 : design_.bus_bytes);
    if (!room(bytes / std::min<int64_t>(design_.bank_bytes, load_.piece ? load_.piece : 64) + 1))
      return true;  // the port waits
    moved_ += bytes;
    const bool last = moved_ == burst.bytes;
    take(bytes, last && burst.ends_run);
    if (!last) return true;
    next_first_ =
        std::max<int64_t>(first_ + design_.timing.read_latency, now + 1 + design_.timing.burst_gap);
    moved_ = 0;
    ++burst_;
    return true;
  }

  /// Bytes arrive: words that are complete, or that nothing will complete, wait for their banks.
  void take(int64_t bytes, bool flush) {
    if (load_.gathers) {
      push(offset_);
      offset_ += load_.pitch;
      return;
    }
    for (int64_t end = offset_ + bytes; offset_ < end;) {
      const int64_t word = design_.bank_bytes, piece = load_.piece;
      int64_t next = (offset_ / word + 1) * word;
      if (piece) next = std::min(next, (offset_ / piece + 1) * piece);
      const bool whole = next <= end || flush;
      next = std::min(next, end);
      if (whole) push(placed(offset_));
      offset_ = next;
    }
  }

  int64_t placed(int64_t offset) const {
    if (!load_.piece) return offset;
    const int64_t number = offset / load_.piece;
    return number % load_.pieces * load_.piece_pitch + number / load_.pieces * load_.piece +
           offset % load_.piece;
  }

  const Design& design_;
  const SimInstruction& load_;
  int64_t first_cycle_, next_first_ = 0, padding_ = 0;
  std::vector<Burst> bursts_;
  size_t burst_ = 0;
  int64_t moved_ = 0, first_ = 0, offset_ = 0;
  std::deque<int64_t> words_;
};

/// The commands of one queue, and when each is complete.
struct Commands {
  std::deque<std::pair<size_t, int64_t>> waiting;  ///< instruction, cycle in which it was written
  std::vector<int64_t> ends;
  int64_t free = 0;  ///< the module is idle from this cycle on
};

class Machine {
 public:
  Machine(const Design& design, const std::vector<SimInstruction>& program)
      : design_(design), program_(program), banks_(design) {
    next_write_ = design.timing.read_latency + fetch_cycles();
  }

  SimCounts run() {
    counts_.instructions = int64_t(program_.size());
    for (int64_t now = 0; completed_ < program_.size(); ++now) cycle(now);
    for (const Commands& queue : queues_)
      if (!queue.ends.empty()) counts_.cycles = std::max(counts_.cycles, queue.ends.back());
    return counts_;
  }

 private:
  int64_t fetch_cycles() const {
    return (kInstructionBytes + design_.bus_bytes - 1) / design_.bus_bytes;
  }

  void fetch(int64_t now) {
    if (written_ == program_.size() || now < next_write_) return;
    auto& queue = queues_[int(program_[written_].queue)];
    if (int(queue.waiting.size()) >= design_.timing.command_queue) return;
    queue.waiting.emplace_back(written_++, now);
    next_write_ = now + fetch_cycles();
  }

  /// The instruction that begins in this cycle, if any.
  const SimInstruction* begin(Queue name, int64_t now) {
    Commands& queue = queues_[int(name)];
    if (now < queue.free || queue.waiting.empty() || queue.waiting.front().second >= now)
      return nullptr;
    const SimInstruction& head = program_[queue.waiting.front().first];
    for (int other = 0; other < 3; ++other) {
      const int64_t wanted = head.after[other];
      const auto& ends = queues_[other].ends;
      if (wanted > int64_t(ends.size())) return nullptr;
      if (wanted > 0 && ends[wanted - 1] + design_.timing.token_latency - 1 > now) return nullptr;
    }
    queue.waiting.pop_front();
    return &head;
  }

  void end(Queue name, int64_t when) {
    queues_[int(name)].free = when;
    queues_[int(name)].ends.push_back(when);
    ++completed_;
  }

  void start(int64_t now) {
    if (!reader_)
      if (const SimInstruction* load = begin(Queue::Load, now)) {
        reader_.emplace(design_, *load, now + std::max(1, design_.timing.load_overhead - 1));
        count(counts_.loads, counts_.load_bytes, counts_.load_bursts, *load);
        counts_.padding += load->padding;
      }
    if (!array_)
      if (const SimInstruction* compute = begin(Queue::Compute, now)) {
        array_.emplace(*compute, now + design_.timing.compute_overhead - 1);
        fill_ = compute->fill;
        ++counts_.computes;
        counts_.steps += array_->steps();
        for (int f : {0, 1}) {
          const bool by_block = f == 1 && compute->stationary;
          counts_.bytes_read[f] +=
              compute->row_bytes[f] * compute->fetches[f] *
              (by_block ? array_->blocks() * compute->block_rows : array_->steps());
        }
      }
    if (const SimInstruction* store = begin(Queue::Store, now)) {
      count(counts_.stores, counts_.store_bytes, counts_.store_bursts, *store);
      end(Queue::Store, now + store_cycles(*store));
    }
  }

  void count(int64_t& transfers, int64_t& bytes, int64_t& bursts,
             const SimInstruction& moved) const {
    ++transfers;
    for (int64_t run : moved.runs) {
      bytes += run;
      bursts += (run + design_.burst_bytes - 1) / design_.burst_bytes;
    }
  }

  int64_t store_cycles(const SimInstruction& store) const {
    int64_t cycles = 2;
    for (int64_t run : store.runs)
      for (int64_t at = 0; at < run; at += design_.burst_bytes) {
        const int64_t bytes = std::min<int64_t>(run - at, design_.burst_bytes);
        cycles += design_.timing.store_row_overhead;
        for (int64_t done = 0; done < bytes; done += design_.bank_bytes)
          cycles += std::max(1, design_.bank_bytes / design_.bus_bytes) +
                    design_.timing.store_element_extra;
      }
    return cycles;
  }

  void cycle(int64_t now) {
    fetch(now);
    start(now);
    banks_.begin_cycle();
    if (reader_) reader_->arrive(now);
    // Who had the last access gives way.
    const bool load_first = !load_was_last_;
    if (reader_ && load_first) write();
    if (array_) {
      if (array_->cycle(now, banks_)) load_was_last_ = false;
      if (array_->done()) {
        end(Queue::Compute, now + fill_ + 2);
        array_.reset();
      }
    }
    if (!reader_) return;
    if (!load_first) write();
    if (reader_->done(now)) {
      end(Queue::Load, now + 2);
      reader_.reset();
    }
  }

  void write() {
    const bool before = banks_.taken();
    reader_->write(banks_);
    if (banks_.taken() && !before) load_was_last_ = true;
  }

  const Design& design_;
  const std::vector<SimInstruction>& program_;
  Banks banks_;
  std::array<Commands, 3> queues_;
  std::optional<Reader> reader_;
  std::optional<Array> array_;
  size_t written_ = 0, completed_ = 0;
  int64_t next_write_ = 0, fill_ = 0;
  bool load_was_last_ = false;
  SimCounts counts_;
};

}  // namespace

SimCounts simulate(const Design& design, const std::vector<SimInstruction>& program) {
  return Machine(design, program).run();
}

}  // namespace tilewright::spatial
