// What makes a design illegal.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "tilewright/accel/fpga/design.h"

namespace tilewright::fpga {
namespace {

class Checker {
 public:
  explicit Checker(const Design& design) : design_(design) {}

  std::vector<std::string> run() {
    bus();
    for (const Memory& memory : design_.memories) check(memory);
    for (const Port& port : design_.ports)
      need(port.argument >= 0 && port.argument < design_.arguments,
           fmt::format("port {} has no argument", port.name));
    for (const Process& process : design_.processes) check(process);
    for (size_t m = 0; m < design_.memories.size(); ++m) {
      const int memory = static_cast<int>(m);
      const int64_t users = std::count_if(
          design_.processes.begin(), design_.processes.end(),
          [&](const Process& process) { return users_of_.contains({memory, &process}); });
      if (design_.memories[m].slots == 0) {
        need(users <= 1, fmt::format("{} is no channel, but {} processes use it",
                                     design_.memories[m].name, users));
        continue;
      }
      const Ends ends = ends_of(design_, memory);
      need(users == 2 && ends.writer >= 0 && ends.reader >= 0,
           fmt::format("channel {} is not filled by one process and emptied by another",
                       design_.memories[m].name));
    }
    return problems_;
  }

 private:
  void need(bool holds, const std::string& problem) {
    if (!holds) problems_.push_back(problem);
  }

  void bus() {
    const Bus& bus = design_.bus;
    need(std::has_single_bit(static_cast<unsigned>(bus.beat_bytes)) && bus.beat_bytes <= 128,
         fmt::format("beats of {} bytes; a power of two up to 128 is", bus.beat_bytes));
    need(bus.burst_beats >= 1 && bus.burst_beats <= 256,
         fmt::format("bursts of {} beats; AXI4 has 1 to 256", bus.burst_beats));
    need(bus.outstanding >= 1 && bus.write_fifo >= 2, "nothing can be under way");
  }

  void check(const Memory& memory) {
    need(memory.banks >= 1 && memory.banks <= 4096,
         fmt::format("{} has {} banks, 1 to 4096 are possible", memory.name, memory.banks));
    need(memory.words >= 1, fmt::format("{} has no words", memory.name));
    need(memory.read_latency == 1 || memory.read_latency == 2,
         fmt::format("{} is read in {} cycles, 1 or 2 are possible", memory.name,
                     memory.read_latency));
    need(!memory.accumulated || memory.slots > 0,
         fmt::format("{} is accumulated, but no channel", memory.name));
  }

  void check(const Process& process) {
    int depth = 0;
    std::set<int> held, ports;
    for (const Item& item : process.items) {
      if (const auto* loop = std::get_if<LoopBegin>(&item)) {
        ++depth;
        need(loop->extent >= 1, fmt::format("{} has a loop that does nothing", process.name));
      } else if (std::holds_alternative<LoopEnd>(item)) {
        need(--depth >= 0, fmt::format("{} ends a loop that never began", process.name));
      } else if (const auto* acquire = std::get_if<Acquire>(&item)) {
        need(channel(acquire->memory), fmt::format("{} acquires no channel", process.name));
        users_of_.insert({acquire->memory, &process});
        need(held.insert(acquire->memory).second,
             fmt::format("{} acquires a block that it has", process.name));
      } else if (const auto* release = std::get_if<Release>(&item)) {
        need(held.erase(release->memory) == 1,
             fmt::format("{} releases a block that it has not", process.name));
      } else if (const auto* nest = std::get_if<Nest>(&item)) {
        check(process, *nest, depth, held);
        if (nest->stream.port >= 0)
          need(ports.insert(nest->stream.port).second,
               fmt::format("{} uses port {} twice", process.name, nest->stream.port));
      }
    }
    need(depth == 0, fmt::format("{} leaves a loop open", process.name));
    need(held.empty(), fmt::format("{} keeps a block", process.name));
  }

  bool channel(int memory) const {
    return memory >= 0 && memory < static_cast<int>(design_.memories.size()) &&
           design_.memories[static_cast<size_t>(memory)].slots > 0;
  }

  void check(const Process& process, const Nest& nest, int depth, const std::set<int>& held) {
    const std::string where = process.name + "." + nest.name;
    need(!nest.extents.empty(), where + " has no counters");
    need(std::all_of(nest.extents.begin(), nest.extents.end(), [](int64_t n) { return n >= 1; }),
         where + " has an empty counter");
    need(nest.ii >= 1, where + " has no initiation interval");
    const auto affine = [&](const Affine& a) {
      need(a.loops.size() <= static_cast<size_t>(depth) && a.counters.size() <= nest.extents.size(),
           where + " has an address of counters that are not there");
    };
    std::map<std::pair<int, int64_t>, const Place*> read;
    const auto place = [&](const Place& p) {
      const bool known = p.memory >= 0 && p.memory < static_cast<int>(design_.memories.size());
      need(known, where + " uses a memory that is not there");
      affine(p.bank), affine(p.word);
      if (!known) return;
      const Memory& memory = design_.memories[static_cast<size_t>(p.memory)];
      if (memory.slots == 0) users_of_.insert({p.memory, &process});
      need(memory.slots == 0 || held.contains(p.memory),
           fmt::format("{} uses {} without a block of it", where, memory.name));
      need(!p.bank.is_constant() || (p.bank.constant >= 0 && p.bank.constant < memory.banks),
           fmt::format("{} uses bank {} of {}", where, p.bank.constant, memory.name));
    };
    for (size_t n = 0; n < nest.nodes.size(); ++n) {
      const Node& node = nest.nodes[n];
      need(std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](int input) { return input >= 0 && input < static_cast<int>(n); }),
           where + " has an operator with inputs behind it");
      for (const Range& range : node.ranges) affine(range.value);
      if (node.op == Op::Read) {
        place(node.place);
        if (node.place.bank.is_constant()) {
          const auto [at, first] =
              read.try_emplace({node.place.memory, node.place.bank.constant}, &node.place);
          need(first || at->second->word == node.place.word,
               where + " reads one bank at two places in one iteration");
        }
      }
    }
    std::set<std::pair<int, int64_t>> written;
    for (const Store& store : nest.stores) {
      place(store.place);
      need(store.node >= 0 && store.node < static_cast<int>(nest.nodes.size()),
           where + " stores a value that is not there");
      if (store.place.bank.is_constant() && store.ranges.empty())
        need(written.insert({store.place.memory, store.place.bank.constant}).second,
             where + " stores to one bank twice in one iteration");
      for (const Range& range : store.ranges) affine(range.value);
    }
    if (nest.stream.port >= 0) check(where, nest);
  }

  void check(const std::string& where, const Nest& nest) {
    const Stream& stream = nest.stream;
    const bool known = stream.port < static_cast<int>(design_.ports.size());
    need(known, where + " uses a port that is not there");
    if (!known) return;
    const int bytes = stream.group_bytes();
    need(std::has_single_bit(static_cast<unsigned>(bytes)) && bytes <= design_.bus.beat_bytes,
         fmt::format("{} moves groups of {} bytes over beats of {}", where, bytes,
                     design_.bus.beat_bytes));
    const auto row = [&](const Affine& a) {
      return a.counters.size() < nest.extents.size() ? 0 : a.counters.back();
    };
    need(row(stream.address) == bytes || nest.extents.back() == 1, where + " moves rows with gaps");
    for (size_t r = 0; r < stream.ranges.size(); ++r)
      need(row(stream.ranges[r].value) == (stream.clipped && r == 0 ? 1 : 0),
           where + " has a range that cuts rows in the middle");
    need(!stream.clipped || !stream.ranges.empty(), where + " is clipped by no range");
    if (design_.ports[static_cast<size_t>(stream.port)].writes)
      need(static_cast<int>(stream.nodes.size()) == stream.lanes,
           where + " has not a value for each lane");
  }

  const Design& design_;
  std::set<std::pair<int, const Process*>> users_of_;  ///< memories and who uses them
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> problems(const Design& design) { return Checker(design).run(); }

Status check_legal(const Design& design) {
  const std::vector<std::string> wrong = problems(design);
  if (wrong.empty()) return {};
  return fail(ErrorKind::Invalid, "the design is not legal",
              fmt::format("{}", fmt::join(wrong, "; ")));
}

}  // namespace tilewright::fpga
