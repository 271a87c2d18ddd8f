// Memory outside of the chip as its ports see it, cycle by cycle (docs/fpga-timing.md, section 5).
// The simulator and the C++ around the Verilog are compiled with this one text, which therefore
// includes nothing of the project.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace tilewright_fpga {

constexpr int kCostShift = 16;  // of costs, in 1/65536 cycles

struct MemoryTiming {
  int32_t read_latency = 70;
  int32_t write_latency = 42, write_beat = 3, write_gap = 4;
  int32_t read_cost = 65536, write_cost = 65536;  // of a channel, for one beat
  int32_t stall_percent = 0;                      // of cycles without a beat or request, by chance
  uint32_t seed = 0;
};

struct Burst {
  uint64_t address = 0;
  int64_t beats = 0;
  int64_t cycle = 0;  // of its request
};

struct MemoryPort {
  bool writes = false;
  int channel = 0;
  std::deque<Burst> waiting;
  Burst moving;                  // beats: those that are left
  int64_t free = 0;              // first cycle for the next burst
  std::deque<int64_t> response;  // cycles of responses to written bursts
  int64_t burst_beats = 0;
  bool offered = false;  // the beat that moves next; it stays offered until it is taken
};

class MemoryModel {
 public:
  MemoryModel() = default;
  MemoryModel(const MemoryTiming& timing, std::vector<MemoryPort> ports)
      : timing_(timing), ports_(std::move(ports)) {
    for (const MemoryPort& port : ports_)
      channels_.resize(std::max<size_t>(channels_.size(), static_cast<size_t>(port.channel) + 1));
  }

  // At the begin of a cycle: gives each free channel to the next port that has a burst for it.
  void begin(int64_t cycle) {
    cycle_ = cycle;
    for (size_t c = 0; c < channels_.size(); ++c) {
      Channel& channel = channels_[c];
      if ((channel.free >> kCostShift) > cycle) continue;
      for (size_t i = 0; i < ports_.size(); ++i) {
        const size_t p = (channel.next + i) % ports_.size();
        if (static_cast<size_t>(ports_[p].channel) != c || !eligible(ports_[p])) continue;
        grant(channel, ports_[p]);
        channel.next = p + 1;
        break;
      }
    }
    for (size_t p = 0; p < ports_.size(); ++p)
      ports_[p].offered = ports_[p].moving.beats > 0 && (ports_[p].offered || !stalled(p, 2));
  }

  bool request_ready(size_t p) const { return !stalled(p, 1); }
  void request(size_t p, uint64_t address, int64_t beats) {
    ports_[p].waiting.push_back({address, beats, cycle_});
  }
  // Whether a beat is offered (read) or taken (write) in this cycle, and of which address.
  bool beat(size_t p) const { return ports_[p].offered; }
  uint64_t address(size_t p) const { return ports_[p].moving.address; }
  bool last(size_t p) const { return ports_[p].moving.beats == 1; }
  void move(size_t p, int64_t beat_bytes) {
    MemoryPort& port = ports_[p];
    port.moving.address += static_cast<uint64_t>(beat_bytes);
    port.offered = false;
    if (--port.moving.beats > 0) return;
    port.free = cycle_ + 1 + (port.writes ? timing_.write_gap : 0);
    if (port.writes)
      port.response.push_back(std::max(cycle_ + 1, port.moving.cycle + timing_.write_latency +
                                                       timing_.write_beat * port.burst_beats));
  }
  bool response(size_t p) const {
    return !ports_[p].response.empty() && ports_[p].response.front() <= cycle_;
  }
  void take_response(size_t p) { ports_[p].response.pop_front(); }
  bool idle() const {
    return std::all_of(ports_.begin(), ports_.end(), [](const MemoryPort& port) {
      return port.waiting.empty() && port.moving.beats == 0 && port.response.empty();
    });
  }

 private:
  struct Channel {
    int64_t free = 0;  // in 1/65536 cycles
    size_t next = 0;   // port that is asked first
  };
  bool eligible(const MemoryPort& port) const {
    if (port.waiting.empty() || port.moving.beats > 0 || port.free > cycle_) return false;
    const int64_t since = port.waiting.front().cycle;
    return cycle_ >= since + (port.writes ? 1 : timing_.read_latency);
  }
  void grant(Channel& channel, MemoryPort& port) {
    port.moving = port.waiting.front();
    port.waiting.pop_front();
    port.burst_beats = port.moving.beats;
    const int64_t cost = port.writes ? timing_.write_cost : timing_.read_cost;
    channel.free = std::max(channel.free, cycle_ << kCostShift) + cost * port.moving.beats;
  }
  bool stalled(size_t p, uint32_t what) const {
    if (timing_.stall_percent == 0) return false;
    uint64_t h = (static_cast<uint64_t>(cycle_) * 8 + what) * 64 + p + timing_.seed;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return static_cast<int32_t>((h >> 40) % 100) < timing_.stall_percent;
  }

  MemoryTiming timing_;
  std::vector<MemoryPort> ports_;
  std::vector<Channel> channels_;
  int64_t cycle_ = 0;
};

}  // namespace tilewright_fpga
