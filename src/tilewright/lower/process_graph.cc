// Which leaves of a region are one process, and whether the processes may run side by side.
//
// Program order fills and empties every block before the next life of its channel begins, so one
// block of each would do. Processes that are ahead of it wait; that they never wait for one another
// in a circle is what requirements 6 and 7 are for. Why they suffice: say some wait in a circle. A
// process waits for a free block at the start of a life, for a reader that stands earlier in
// program order; or for a full block, for a writer that stands earlier or, at last, in the same
// life. A circle needs a wait of this last kind. Take the one whose life is longest, of channel A.
// All others in the circle stand in that life too, so between A's reader and its writer they wait
// for channels inside of it: for full ones, or for free ones of which there were two lives in it.
// That is what `check_waiting` looks for.
#include "tilewright/lower/process_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tilewright/ir/walk.h"

namespace tilewright::lower {
namespace {

bool among(const std::vector<Buffer>& all, const Buffer& buffer) {
  return std::find(all.begin(), all.end(), buffer) != all.end();
}

/// Disjoint sets of leaves.
class LeafSets {
 public:
  explicit LeafSets(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  int find(int x) const { return parent_[x] == x ? x : find(parent_[x]); }
  /// The first leaf stays the name of the set.
  void unite(int a, int b) {
    a = find(a), b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<int> parent_;
};

/// A loop that may run more than once.
bool repeats(const Turn& turn) {
  const auto* loop = std::get_if<For>(&turn.node->op);
  return loop != nullptr && !is_const_int(loop->extent, 1);
}

/// A loop between two depths of a path that may run more than once; null if there is none.
const For* loop_between(const Path& path, size_t from, size_t to) {
  for (size_t i = from; i < std::min(to, path.size()); ++i)
    if (repeats(path[i])) return std::get_if<For>(&path[i].node->op);
  return nullptr;
}

class Grapher {
 public:
  explicit Grapher(const Survey& survey) : survey_(survey), sets_(survey.leaves.size()) {
    for (size_t i = 0; i < survey.homes.size(); ++i) {
      const Home& home = survey.homes[i];
      (find_mark(home.alloc->marks, MarkKind::Slots) != nullptr ? channel_home_ : local_home_)
          .emplace(home.alloc->buffer, i);
    }
  }

  Result<ProcessGraph> run() {
    TW_TRY_STATUS(check_conditions());
    unite_users();
    unite_reads();
    number_processes();
    TW_TRY_STATUS(make_channels());
    TW_TRY_STATUS(check_memory());
    for (const Channel& channel : graph_.channels) TW_TRY_STATUS(check_life(channel));
    TW_TRY_STATUS(sort_processes());
    for (const Channel& channel : graph_.channels) TW_TRY_STATUS(check_waiting(channel));
    for (int p = 0; p < count_; ++p) graph_.kinds.push_back(kind_of(leaves_of(p)));
    return std::move(graph_);
  }

 private:
  using Leaves = std::vector<const Leaf*>;

  bool is_channel(const Buffer& b) const { return channel_home_.contains(b); }
  bool is_local(const Buffer& b) const { return local_home_.contains(b); }
  bool is_memory(const Buffer& b) const { return !is_channel(b) && !is_local(b); }
  const Leaf& leaf(size_t i) const { return survey_.leaves[i]; }
  const Path& home(const Channel& channel) const {
    return survey_.homes[channel_home_.at(channel.buffer)].path;
  }

  /// Requirement 5.
  Status check_conditions() const {
    for (const Home& home : survey_.homes) {
      const Buffer& buffer = home.alloc->buffer;
      if (!is_channel(buffer)) continue;
      for (const Turn& turn : home.path) {
        const auto* branch = std::get_if<If>(&turn.node->op);
        if (branch == nullptr) continue;
        std::string inside;
        walk(branch->condition, [&](const Expr& e) {
          if (const auto* l = e.as<Load>(); l && !is_memory(l->buffer)) inside = l->buffer.name();
        });
        if (!inside.empty())
          return not_dataflow(5, fmt::format("{} is allocated under a condition that reads {}, "
                                             "which only one process has",
                                             buffer.name(), inside));
      }
    }
    return {};
  }

  /// Leaves that write one channel or one buffer in memory, or use one local buffer.
  void unite_users() {
    std::map<Buffer, int> first;
    for (size_t i = 0; i < survey_.leaves.size(); ++i) {
      auto unite = [&](const Buffer& b) {
        const auto [known, fresh] = first.emplace(b, static_cast<int>(i));
        if (!fresh) sets_.unite(known->second, static_cast<int>(i));
      };
      for (const Buffer& b : leaf(i).writes) unite(b);
      for (const Buffer& b : leaf(i).reads)
        if (is_local(b)) unite(b);
    }
  }

  /// Reads of the same parameters through the same port.
  void unite_reads() {
    std::map<int, Leaves> sets;
    for (size_t i = 0; i < survey_.leaves.size(); ++i)
      sets[sets_.find(static_cast<int>(i))].push_back(&leaf(i));
    std::map<std::pair<std::set<Buffer>, int64_t>, int> first;
    for (const auto& [set, leaves] : sets) {
      if (kind_of(leaves) != ProcessKind::Read) continue;
      std::pair<std::set<Buffer>, int64_t> key = {{}, -1};
      for (const Leaf* l : leaves) {
        key.second = std::max(key.second, l->port);
        for (const Buffer& b : l->reads)
          if (is_memory(b)) key.first.insert(b);
      }
      const auto [known, fresh] = first.emplace(key, set);
      if (!fresh) sets_.unite(known->second, set);
    }
  }

  /// A read has no channel to read and brings something from memory; a write only takes from the
  /// chip to memory.
  ProcessKind kind_of(const Leaves& leaves) const {
    bool reads = true, writes = true, from_memory = false;
    std::vector<Buffer> written;
    for (const Leaf* l : leaves) written.insert(written.end(), l->writes.begin(), l->writes.end());
    for (const Leaf* l : leaves) {
      bool from_chip = false;
      reads &= !l->combines;
      for (const Buffer& b : l->reads) {
        from_memory |= is_memory(b);
        from_chip |= !is_memory(b);
        reads &= !is_channel(b) || among(written, b);
      }
      for (const Buffer& b : l->writes) (is_memory(b) ? reads : writes) = false;
      writes &= from_chip && !l->combines;
    }
    return reads && from_memory ? ProcessKind::Read
           : writes             ? ProcessKind::Write
                                : ProcessKind::Compute;
  }

  void number_processes() {
    std::map<int, int> number;
    for (size_t i = 0; i < survey_.leaves.size(); ++i) {
      const int set = sets_.find(static_cast<int>(i));
      const int fresh = static_cast<int>(number.size());
      graph_.process_of_leaf.push_back(number.emplace(set, fresh).first->second);
    }
    count_ = static_cast<int>(number.size());
  }

  Leaves leaves_of(int process) const {
    Leaves all;
    for (size_t i = 0; i < survey_.leaves.size(); ++i)
      if (graph_.process_of_leaf[i] == process) all.push_back(&leaf(i));
    return all;
  }
  /// A process before it has a name: its first statement.
  std::string title(int process) const {
    return fmt::format("the process of {}", leaves_of(process).front()->label);
  }

  /// Requirement 2.
  Status make_channels() {
    for (const Home& home : survey_.homes) {
      const Buffer& buffer = home.alloc->buffer;
      if (!is_channel(buffer)) continue;
      std::set<int> writers, readers;
      Channel channel;
      for (size_t i = 0; i < survey_.leaves.size(); ++i) {
        if (among(leaf(i).writes, buffer)) writers.insert(graph_.process_of_leaf[i]);
        if (among(leaf(i).reads, buffer)) readers.insert(graph_.process_of_leaf[i]);
        channel.accumulated |= among(leaf(i).writes, buffer) && leaf(i).combines;
      }
      if (writers.empty()) return not_dataflow(2, fmt::format("nothing writes {}", buffer.name()));
      channel.writer = *writers.begin();
      channel.accumulated |= readers.erase(channel.writer) > 0;
      if (readers.size() != 1) {
        std::vector<std::string> titles;
        for (const int r : readers) titles.push_back(title(r));
        return not_dataflow(
            2, fmt::format("{}, written by {}, is read by {}", buffer.name(), title(channel.writer),
                           titles.empty() ? "no other process"
                                          : fmt::to_string(fmt::join(titles, " and by "))));
      }
      channel.reader = *readers.begin();
      channel.buffer = buffer;
      channel.slots = static_cast<int>(int_mark(home.alloc->marks, MarkKind::Slots).value_or(1));
      graph_.channels.push_back(std::move(channel));
    }
    return {};
  }

  /// Requirement 4.
  Status check_memory() const {
    std::map<Buffer, int> writer;
    for (size_t i = 0; i < survey_.leaves.size(); ++i)
      for (const Buffer& b : leaf(i).writes)
        if (is_memory(b)) writer.emplace(b, graph_.process_of_leaf[i]);
    for (size_t i = 0; i < survey_.leaves.size(); ++i)
      for (const Buffer& b : leaf(i).reads)
        if (const auto w = writer.find(b);
            w != writer.end() && w->second != graph_.process_of_leaf[i])
          return not_dataflow(4, fmt::format("{} reads {}, which {} writes", leaf(i).label,
                                             b.name(), title(w->second)));
    return {};
  }

  /// Requirement 3: every write in a life stands before every read of the other process.
  Status check_life(const Channel& channel) const {
    const size_t depth = home(channel).size();
    for (size_t w = 0; w < survey_.leaves.size(); ++w) {
      if (!among(leaf(w).writes, channel.buffer)) continue;
      for (size_t r = 0; r < survey_.leaves.size(); ++r) {
        if (graph_.process_of_leaf[r] != channel.reader || !among(leaf(r).reads, channel.buffer))
          continue;
        // The last turn of a home is in the Seq where the life ends, which is common to all uses.
        const Path &a = leaf(w).path, &b = leaf(r).path;
        size_t same = depth == 0 ? 0 : depth - 1;
        while (same < a.size() && same < b.size() && a[same].node == b[same].node &&
               a[same].child == b[same].child)
          ++same;
        if (const For* loop = loop_between(a, depth == 0 ? 0 : depth - 1, same))
          return not_dataflow(
              3,
              fmt::format("loop {}, inside of the life of {}, holds both {}, which writes it, "
                          "and {}, which reads it",
                          loop->var.name(), channel.buffer.name(), leaf(w).label, leaf(r).label));
        if (w > r)
          return not_dataflow(3, fmt::format("{} reads {} before {} writes it", leaf(r).label,
                                             channel.buffer.name(), leaf(w).label));
      }
    }
    return {};
  }

  /// Requirement 6; processes get the numbers of an order in which channels lead forward.
  Status sort_processes() {
    std::vector<int> new_number(count_, -1);
    for (int next = 0; next < count_; ++next) {
      int ready = 0;
      auto waits = [&](int p) {
        return std::any_of(graph_.channels.begin(), graph_.channels.end(), [&](const Channel& c) {
          return c.reader == p && new_number[c.writer] < 0;
        });
      };
      while (ready < count_ && (new_number[ready] >= 0 || waits(ready))) ++ready;
      if (ready == count_) return circle(new_number);
      new_number[ready] = next;
    }
    for (int& p : graph_.process_of_leaf) p = new_number[p];
    for (Channel& c : graph_.channels) {
      c.writer = new_number[c.writer];
      c.reader = new_number[c.reader];
    }
    return {};
  }

  Status circle(const std::vector<int>& new_number) const {
    std::vector<std::string> names;
    for (const Channel& c : graph_.channels)
      if (new_number[c.writer] < 0 && new_number[c.reader] < 0) names.push_back(c.buffer.name());
    return not_dataflow(6,
                        fmt::format("channels {} lead round in a circle", fmt::join(names, ", ")));
  }

  /// Requirement 7. The reader waits where the channel is allocated until the writer has come to
  /// the end of the Seq. Until then it empties no channel allocated in a loop inside: their writers
  /// stall at the second life, and so do processes that wait for what those write.
  Status check_waiting(const Channel& channel) const {
    const Path& seq = home(channel);
    std::set<int> stalled = {channel.reader};
    for (bool more = true; more;) {
      more = false;
      for (const Channel& c : graph_.channels) {
        const Path& at = home(c);
        if (&c == &channel || !within(at, seq)) continue;
        const bool again = loop_between(at, seq.size(), at.size()) != nullptr;
        if (again && stalled.contains(c.reader)) more |= stalled.insert(c.writer).second;
        if (stalled.contains(c.writer)) more |= stalled.insert(c.reader).second;
      }
    }
    if (!stalled.contains(channel.writer)) return {};
    return not_dataflow(
        7, fmt::format("{} waits for {} as long as {} is in the same life, and that waits, for a "
                       "free block, for it",
                       title(channel.reader), channel.buffer.name(), title(channel.writer)));
  }

  /// Whether an allocation at `path` stands in the Seq of the one at `seq`, or deeper.
  static bool within(const Path& path, const Path& seq) {
    if (path.size() < seq.size()) return false;
    for (size_t i = 0; i + 1 < seq.size(); ++i)
      if (path[i].node != seq[i].node || path[i].child != seq[i].child) return false;
    return seq.empty() || path[seq.size() - 1].node == seq.back().node;
  }

  const Survey& survey_;
  LeafSets sets_;
  std::map<Buffer, size_t> channel_home_, local_home_;
  int count_ = 0;
  ProcessGraph graph_;
};

}  // namespace

tl::unexpected<Error> not_dataflow(int requirement, std::string why) {
  return fail(ErrorKind::Unsupported, fmt::format("requirement {} does not hold", requirement),
              std::move(why));
}

Result<ProcessGraph> process_graph(const Survey& survey) { return Grapher(survey).run(); }

}  // namespace tilewright::lower
