#include "tilewright/accel/fpga/sim/tsim.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "tilewright/accel/fpga/sim/values.h"
#include "tilewright/base/integers.h"

namespace tilewright::fpga {

std::string_view name(Doing doing) {
  constexpr std::string_view kNames[] = {"working", "waits for input", "waits for a slot",
                                         "waits for the port", "done"};
  return kNames[static_cast<size_t>(doing)];
}

tilewright_fpga::MemoryModel memory_model(const Design& design, const MemoryTiming& timing) {
  std::vector<tilewright_fpga::MemoryPort> ports;
  for (const Port& port : design.ports) {
    ports.emplace_back();
    ports.back().writes = port.writes;
    ports.back().channel = port.channel;
  }
  return {timing, std::move(ports)};
}

namespace {

/// A count that others raise: what they do in a cycle shows in the next one.
struct Count {
  int64_t now = 0, change = 0;
  void settle() {
    now += change;
    change = 0;
  }
};

/// The hardware of a port beside the nest that uses it.
struct PortState {
  Count outstanding;           ///< bursts
  Count in_flight, beats;      ///< writes: groups on their way to the fifo, beats in it
  std::deque<int64_t> bursts;  ///< writes: beats of bursts that were asked for
  int64_t new_burst = 0;       ///< asked for in this cycle
  int64_t beat = 0;            ///< of the burst at the head
  struct Arrival {
    int64_t cycle = 0;
    bool ends_beat = false;
  };
  std::deque<Arrival> arrivals;
};

/// One of the two controls of a process: of its data, or of its requests.
struct Control {
  int process = 0;
  bool data = true;
  Process program;
  std::vector<size_t> begin_of;  ///< of each LoopEnd: its LoopBegin
  std::vector<NestTimes> times;  ///< of each item
  size_t at = 0;
  std::vector<size_t> open;  ///< LoopBegins around
  std::vector<int64_t> loops;
  std::vector<int> slots;  ///< of each memory
  int64_t wake = 0;        ///< does nothing before
  bool blocked = false;    ///< only another process can help

  bool active = false, draining = false;  ///< the nest
  std::vector<int64_t> counters;
  int64_t pause = 0, done_at = 0;

  bool in_row = false;  ///< requests: asking for bursts
  bool last_row = false;
  int64_t address = 0, left = 0;  ///< of the next burst; beats

  Doing doing = Doing::Working;
  int64_t since = 0;
  size_t span_item = 0;
  bool ended() const { return at == program.items.size(); }
};

bool step(std::vector<int64_t>& counters, const std::vector<int64_t>& extents, size_t levels) {
  size_t k = levels;
  while (k > 0 && ++counters[k - 1] == extents[k - 1]) counters[--k] = 0;
  return k == 0;
}

class Simulator {
 public:
  Simulator(const Design& design, const RunOptions& options, std::vector<std::string>& arguments)
      : design_(design),
        options_(options),
        memory_(memory_model(design, options.memory)),
        values_(design, arguments),
        ports_(design.ports.size()) {
    for (size_t p = 0; p < design.processes.size(); ++p) {
      add_control(p, true);
      if (has_port(design.processes[p])) add_control(p, false);
    }
    counts_.resize(controls_.size());
    for (size_t c = 0; c < controls_.size(); ++c) {
      counts_[c].resize(design.memories.size());
      for (size_t m = 0; m < design.memories.size(); ++m)
        if (ends_of(design, static_cast<int>(m)).writer == controls_[c].process)
          counts_[c][m].now = design.memories[m].slots;
    }
    report_.processes.resize(design.processes.size());
    for (size_t p = 0; p < design.processes.size(); ++p)
      report_.processes[p].name = design.processes[p].name;
  }

  Result<Report> run() {
    for (cycle_ = 0;; cycle_ = next_cycle()) {
      if (cycle_ >= options_.max_cycles)
        return fail(ErrorKind::Limit, "the design takes more cycles than allowed",
                    fmt::format("after {} cycles", cycle_));
      if (stuck_) return deadlock();
      if (finished()) break;
      memory_.begin(cycle_);
      for (size_t c = 0; c < controls_.size(); ++c) TW_TRY_STATUS(advance(c));
      write_side();
      for (size_t p = 0; p < ports_.size(); ++p)
        if (memory_.response(p)) {
          memory_.take_response(p);
          --ports_[p].outstanding.change;
        }
      settle();
    }
    report_.cycles = cycle_;
    for (Control& control : controls_) note(control, Doing::Done);
    return std::move(report_);
  }

 private:
  void add_control(size_t p, bool data) {
    Control control;
    control.process = static_cast<int>(p);
    control.data = data;
    control.program = data ? design_.processes[p] : requests_of(design_.processes[p]);
    control.slots.assign(design_.memories.size(), 0);
    std::vector<size_t> open;
    for (size_t i = 0; i < control.program.items.size(); ++i) {
      const Item& item = control.program.items[i];
      control.begin_of.push_back(0);
      control.times.emplace_back();
      if (std::holds_alternative<LoopBegin>(item)) open.push_back(i);
      if (std::holds_alternative<LoopEnd>(item)) {
        control.begin_of[i] = open.back();
        open.pop_back();
      }
      if (const auto* nest = std::get_if<Nest>(&item)) control.times[i] = times_of(design_, *nest);
    }
    controls_.push_back(std::move(control));
    enter_loops(controls_.back());
  }

  const Item& item_of(const Control& c) const { return c.program.items[c.at]; }
  void enter_loops(Control& c) {
    while (!c.ended() && std::holds_alternative<LoopBegin>(item_of(c))) {
      c.open.push_back(c.at++);
      c.loops.push_back(0);
    }
  }
  void to_next(Control& c) {
    ++c.at;
    enter_loops(c);
  }

  /// What the process does in this cycle, for the report.
  void note(Control& c, Doing doing) {
    if (!c.data || (doing == c.doing && c.span_item == c.at && doing != Doing::Done)) return;
    if (cycle_ > c.since) {
      report_.processes[static_cast<size_t>(c.process)].cycles[static_cast<size_t>(c.doing)] +=
          cycle_ - c.since;
      if (options_.spans && c.doing != Doing::Done)
        report_.spans.push_back(
            {c.process, c.doing, static_cast<int>(c.span_item), c.since, cycle_});
    }
    c.doing = doing;
    c.since = cycle_;
    c.span_item = c.at;
  }

  Status advance(size_t index) {
    Control& c = controls_[index];
    if (cycle_ < c.wake) return {};
    if (c.ended()) {
      note(c, Doing::Done);
      return {};
    }
    const Item& item = item_of(c);
    if (const auto* nest = std::get_if<Nest>(&item)) {
      if (!c.data) return request(c, *nest);
      if (nest->stream.port < 0) return whole_nest(c, *nest);
      return port_nest(c, *nest);
    }
    if (const auto* acquire = std::get_if<Acquire>(&item)) {
      Count& count = counts_[index][static_cast<size_t>(acquire->memory)];
      c.blocked = count.now == 0;
      const bool writer = ends_of(design_, acquire->memory).writer == c.process;
      note(c, !c.blocked ? Doing::Working : writer ? Doing::WaitSlot : Doing::WaitInput);
      if (c.blocked) return {};
      --count.change;
      to_next(c);
    } else if (const auto* release = std::get_if<Release>(&item)) {
      note(c, Doing::Working);
      hand_over(c, release->memory);
      to_next(c);
    } else {
      note(c, Doing::Working);
      end_of_loop(c);
    }
    return {};
  }

  void hand_over(Control& c, int memory) {
    const auto m = static_cast<size_t>(memory);
    c.slots[m] = (c.slots[m] + 1) % design_.memories[m].slots;
    if (!c.data) return;
    const Ends ends = ends_of(design_, memory);
    const int other = ends.writer == c.process ? ends.reader : ends.writer;
    for (size_t i = 0; i < controls_.size(); ++i)
      if (controls_[i].process == other) ++counts_[i][m].change;
  }

  void end_of_loop(Control& c) {
    const size_t begin = c.begin_of[c.at];
    if (++c.loops.back() < std::get<LoopBegin>(c.program.items[begin]).extent) {
      c.at = begin;
      to_next(c);
      return;
    }
    c.loops.pop_back();
    c.open.pop_back();
    to_next(c);
  }

  Status compute(Control& c, const Nest& nest) {
    if (!options_.values) return {};
    return values_.run(nest, c.times[c.at], c.loops, c.slots);
  }

  Status whole_nest(Control& c, const Nest& nest) {
    note(c, Doing::Working);
    TW_TRY_STATUS(compute(c, nest));
    c.wake = cycle_ + product(nest.extents) * nest.ii + c.times[c.at].depth();
    to_next(c);
    return {};
  }

  /// A nest that moves groups through its port.
  Status port_nest(Control& c, const Nest& nest) {
    if (!c.active) {
      note(c, Doing::Working);
      TW_TRY_STATUS(compute(c, nest));
      c.active = true;
      c.draining = false;
      c.pause = 0;
      c.counters.assign(nest.extents.size(), 0);
      return {};
    }
    if (c.draining) {
      if (cycle_ < c.done_at) return {};
      c.active = false;
      to_next(c);
      return {};
    }
    if (c.pause > 0) {
      --c.pause;
      return {};
    }
    if (!issue(c, nest)) {
      note(c, Doing::WaitPort);
      return {};
    }
    note(c, Doing::Working);
    c.pause = nest.ii - 1;
    if (!step(c.counters, nest.extents, nest.extents.size())) return {};
    c.draining = true;
    c.done_at = cycle_ + nest.ii + c.times[c.at].last;
    return {};
  }

  /// Whether the next iteration begins in this cycle.
  bool issue(const Control& c, const Nest& nest) {
    const Stream& stream = nest.stream;
    if (!holds(stream.ranges, c.loops, c.counters)) return true;
    const auto p = static_cast<size_t>(stream.port);
    const int64_t address = value_of(stream.address, c.loops, c.counters);
    const bool ends_row =
        c.counters.back() + 1 == nest.extents.back() ||
        (stream.clipped &&
         value_of(stream.ranges[0].value, c.loops, c.counters) + 1 == stream.ranges[0].extent);
    const bool ends_beat =
        ends_row || (address + stream.group_bytes()) % design_.bus.beat_bytes == 0;
    PortState& port = ports_[p];
    if (design_.ports[p].writes) {
      if (port.in_flight.now + port.beats.now >= design_.bus.write_fifo) return false;
      ++port.in_flight.change;
      port.arrivals.push_back({cycle_ + c.times[c.at].stream, ends_beat});
      return true;
    }
    if (!memory_.beat(p)) return false;
    if (ends_beat) {
      if (memory_.last(p)) --port.outstanding.change;
      memory_.move(p, design_.bus.beat_bytes);
    }
    return true;
  }

  /// The requests of a nest: in a cycle a row is looked at, or a burst of it is asked for.
  Status request(Control& c, const Nest& nest) {
    if (!c.active) {
      c.active = true;
      c.in_row = false;
      c.counters.assign(nest.extents.size(), 0);
      return {};
    }
    const auto p = static_cast<size_t>(nest.stream.port);
    if (!c.in_row) {
      look_at_row(c, nest);
      c.last_row = step(c.counters, nest.extents, nest.extents.size() - 1);
      c.in_row = c.left > 0;
    } else {
      if (ports_[p].outstanding.now >= design_.bus.outstanding || !memory_.request_ready(p))
        return {};
      const int64_t beat = design_.bus.beat_bytes;
      const int64_t to_boundary = (kBurstBoundary - c.address % kBurstBoundary) / beat;
      const int64_t beats = std::min({c.left, int64_t{design_.bus.burst_beats}, to_boundary});
      memory_.request(p, static_cast<uint64_t>(c.address), beats);
      ++ports_[p].outstanding.change;
      ports_[p].new_burst = beats;
      c.address += beats * beat;
      c.left -= beats;
      c.in_row = c.left > 0;
    }
    if (c.in_row || !c.last_row) return {};
    c.active = false;
    to_next(c);
    return {};
  }

  void look_at_row(Control& c, const Nest& nest) const {
    const Stream& stream = nest.stream;
    int64_t first = 0, end = nest.extents.back();
    for (size_t r = 0; r < stream.ranges.size(); ++r) {
      const Range& range = stream.ranges[r];
      const int64_t value = value_of(range.value, c.loops, c.counters);
      if (stream.clipped && r == 0) {
        first = std::max(first, -value);
        end = std::min(end, range.extent - value);
      } else if (value < 0 || value >= range.extent) {
        end = 0;
      }
    }
    c.left = 0;
    if (first >= end) return;
    const int64_t beat = design_.bus.beat_bytes;
    const int64_t begin =
        value_of(stream.address, c.loops, c.counters) + first * stream.group_bytes();
    c.address = begin / beat * beat;
    c.left = ceil_div(begin + (end - first) * stream.group_bytes(), beat) - begin / beat;
  }

  /// Beats from the fifos of writing ports into memory.
  void write_side() {
    for (size_t p = 0; p < ports_.size(); ++p) {
      PortState& port = ports_[p];
      while (!port.arrivals.empty() && port.arrivals.front().cycle <= cycle_) {
        --port.in_flight.change;
        if (port.arrivals.front().ends_beat) ++port.beats.change;
        port.arrivals.pop_front();
      }
      if (!design_.ports[p].writes || port.beats.now == 0 || port.bursts.empty() ||
          !memory_.beat(p))
        continue;
      memory_.move(p, design_.bus.beat_bytes);
      --port.beats.change;
      if (++port.beat < port.bursts.front()) continue;
      port.bursts.pop_front();
      port.beat = 0;
    }
  }

  void settle() {
    for (auto& counts : counts_)
      for (Count& count : counts) count.settle();
    for (size_t p = 0; p < ports_.size(); ++p) {
      PortState& port = ports_[p];
      port.outstanding.settle();
      port.in_flight.settle();
      port.beats.settle();
      if (port.new_burst > 0 && design_.ports[p].writes) port.bursts.push_back(port.new_burst);
      port.new_burst = 0;
    }
  }

  bool finished() const {
    return std::all_of(controls_.begin(), controls_.end(),
                       [&](const Control& c) { return c.ended() && cycle_ >= c.wake; }) &&
           std::all_of(ports_.begin(), ports_.end(),
                       [](const PortState& port) { return port.outstanding.now == 0; });
  }

  /// The next cycle in which something can happen.
  int64_t next_cycle() {
    if (!memory_.idle()) return cycle_ + 1;
    int64_t wake = -1;
    for (size_t i = 0; i < controls_.size(); ++i) {
      const Control& c = controls_[i];
      if (c.wake > cycle_ + 1) {
        wake = wake < 0 ? c.wake : std::min(wake, c.wake);
      } else if (!c.ended()) {
        const auto* acquire = std::get_if<Acquire>(&item_of(c));
        const bool waits = c.blocked && acquire != nullptr &&
                           counts_[i][static_cast<size_t>(acquire->memory)].now == 0;
        if (!waits) return cycle_ + 1;
      }
    }
    for (const PortState& port : ports_)
      if (port.beats.now > 0 || port.in_flight.now > 0 || port.outstanding.now > 0)
        return cycle_ + 1;
    stuck_ = wake < 0 &&
             !std::all_of(
                 controls_.begin(), controls_.end(), [](const Control& c) { return c.ended(); });
    return std::max(cycle_ + 1, wake);
  }

  Result<Report> deadlock() const {
    std::string who;
    for (const Control& c : controls_)
      if (!c.ended() && c.data)
        if (const auto* acquire = std::get_if<Acquire>(&item_of(c)))
          who += fmt::format("{}{} waits for {}", who.empty() ? "" : "; ", c.program.name,
                             design_.memories[static_cast<size_t>(acquire->memory)].name);
    return fail(ErrorKind::Invalid, "deadlock: no process can go on", who);
  }

  const Design& design_;
  const RunOptions& options_;
  tilewright_fpga::MemoryModel memory_;
  Values values_;
  std::vector<PortState> ports_;
  std::vector<Control> controls_;
  std::vector<std::vector<Count>> counts_;  ///< of each control, for each channel: blocks for it
  Report report_;
  int64_t cycle_ = 0;
  bool stuck_ = false;
};

}  // namespace

Result<Report> simulate(const Design& design, const RunOptions& options,
                        std::vector<std::string>& arguments) {
  TW_TRY_STATUS(check_legal(design));
  return Simulator(design, options, arguments).run();
}

}  // namespace tilewright::fpga
