#include "tilewright/accel/common/run_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tilewright/base/json.h"
#include "tilewright/base/protobuf_wire.h"

namespace tilewright::accel {
namespace {

std::string quoted(const std::string& text) { return json_text(nlohmann::json(text)); }

/// Slices of each row, those that hold others before them.
std::vector<std::vector<const RunTrace::Slice*>> by_row(const RunTrace& trace) {
  std::vector<std::vector<const RunTrace::Slice*>> rows(trace.rows.size());
  for (const RunTrace::Slice& slice : trace.slices) rows.at(slice.row).push_back(&slice);
  for (auto& row : rows)
    std::stable_sort(row.begin(), row.end(), [](const auto* a, const auto* b) {
      return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
    });
  return rows;
}

/// The groups in order of their first rows.
std::vector<std::string> groups_of(const RunTrace& trace) {
  std::vector<std::string> groups;
  for (const RunTrace::Row& row : trace.rows)
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end())
      groups.push_back(row.group);
  return groups;
}

size_t place(const std::vector<std::string>& groups, const std::string& group) {
  return static_cast<size_t>(std::find(groups.begin(), groups.end(), group) - groups.begin());
}

std::string json_notes(const RunTrace::Slice& slice) {
  std::string out;
  for (const auto& [key, value] : slice.notes) {
    out += (out.empty() ? "" : ",") + quoted(key) + ":";
    if (const auto* text = std::get_if<std::string>(&value)) out += quoted(*text);
    if (const auto* number = std::get_if<uint64_t>(&value)) out += std::to_string(*number);
    if (const auto* number = std::get_if<double>(&value)) out += json_text(nlohmann::json(*number));
  }
  return out;
}

/// Packets of one sequence, which names that come again are written into once. Numbers of fields:
/// perfetto/trace/trace_packet.proto and track_event/*.proto of Perfetto 0.59.
class TrackEvents {
 public:
  explicit TrackEvents(const RunTrace& trace) : trace_(trace) {}

  std::string write() {
    const std::vector<std::string> groups = groups_of(trace_);
    for (size_t g = 0; g < groups.size(); ++g) describe_group(g, groups[g]);
    for (size_t r = 0; r < trace_.rows.size(); ++r)
      describe_row(r, place(groups, trace_.rows[r].group));
    const auto rows = by_row(trace_);
    for (size_t r = 0; r < rows.size(); ++r) write_row(r, rows[r]);
    return std::move(out_);
  }

 private:
  // Fields of a packet, a track, an event, and of what is written once.
  enum : int { kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInterned = 12, kFlags = 13 };
  enum : int { kTrackDescriptor = 60 };  // of a packet, too
  enum : int { kUuid = 1, kName = 2, kProcess = 3, kParent = 5, kOrdering = 11, kRank = 12 };
  enum : int { kCategoryIid = 3, kNote = 4, kType = 9, kNameIid = 10, kTrack = 11 };
  enum : int { kCategories = 1, kNames = 2, kNoteNames = 3 };
  static constexpr uint64_t kExplicit = 3;             // an ordering: by rank
  static constexpr uint64_t kBegin = 1, kEnd = 2;      // types of events
  static constexpr uint64_t kCleared = 1, kNeeds = 2;  // flags: the first packet, and the others

  uint64_t row_uuid(size_t row) const { return 1 + row; }
  uint64_t group_uuid(size_t group) const { return 1 + trace_.rows.size() + group; }

  void packet(std::string body) {
    put_number(body, kSequence, 1);
    put_number(body, kFlags, out_.empty() ? kCleared | kNeeds : kNeeds);
    put_bytes(out_, 1, body);
  }

  void describe_group(size_t group, const std::string& name) {
    std::string process, track, body;
    put_number(process, 1, 1 + group);  // pid
    put_bytes(process, 6, name.empty() ? "run" : name);
    put_number(track, kUuid, group_uuid(group));
    put_bytes(track, kProcess, process);
    put_number(track, kOrdering, kExplicit);
    put_bytes(body, kTrackDescriptor, track);
    packet(body);
  }

  void describe_row(size_t row, size_t group) {
    std::string track, body;
    put_number(track, kUuid, row_uuid(row));
    put_bytes(track, kName, trace_.rows[row].name);
    put_number(track, kParent, group_uuid(group));
    put_number(track, kRank, row);
    put_bytes(body, kTrackDescriptor, track);
    packet(body);
  }

  /// The number of a text; a new one goes into `fresh`.
  uint64_t number_of(int table, const std::string& text, std::string& fresh) {
    std::map<std::string, uint64_t>& known = known_[table];
    const auto [at, added] = known.try_emplace(text, known.size() + 1);
    if (added) {
      std::string entry;
      put_number(entry, 1, at->second);
      put_bytes(entry, 2, text);
      put_bytes(fresh, table, entry);
    }
    return at->second;
  }

  std::string note(const RunTrace::Note& note, std::string& fresh) {
    std::string out;
    put_number(out, 1, number_of(kNoteNames, note.first, fresh));
    if (const auto* number = std::get_if<uint64_t>(&note.second)) put_number(out, 3, *number);
    if (const auto* number = std::get_if<double>(&note.second)) put_double(out, 5, *number);
    if (const auto* text = std::get_if<std::string>(&note.second)) put_bytes(out, 6, *text);
    return out;
  }

  void event(uint64_t cycle, size_t row, uint64_t type, const RunTrace::Slice* slice) {
    std::string event, fresh, body;
    put_number(event, kType, type);
    put_number(event, kTrack, row_uuid(row));
    if (slice != nullptr) {
      put_number(event, kNameIid, number_of(kNames, slice->name, fresh));
      put_number(event, kCategoryIid, number_of(kCategories, slice->kind, fresh));
      for (const RunTrace::Note& n : slice->notes) put_bytes(event, kNote, note(n, fresh));
    }
    put_number(body, kTimestamp, cycle * 1000);  // ns
    if (!fresh.empty()) put_bytes(body, kInterned, fresh);
    put_bytes(body, kTrackEvent, event);
    packet(body);
  }

  /// A slice ends before the next one begins, unless that one lies in it.
  void write_row(size_t row, const std::vector<const RunTrace::Slice*>& slices) {
    std::vector<uint64_t> open;  // ends of slices
    const auto close = [&](uint64_t until) {
      for (; !open.empty() && open.back() <= until; open.pop_back())
        event(open.back(), row, kEnd, nullptr);
    };
    for (const RunTrace::Slice* slice : slices) {
      close(slice->begin);
      event(slice->begin, row, kBegin, slice);
      open.push_back(slice->end);
    }
    close(~uint64_t{0});
  }

  const RunTrace& trace_;
  std::string out_;
  std::map<int, std::map<std::string, uint64_t>> known_;
};

}  // namespace

size_t RunTrace::add_row(std::string name, std::string group) {
  rows.push_back({std::move(name), std::move(group)});
  return rows.size() - 1;
}

void RunTrace::add(Slice slice) {
  if (slice.begin < slice.end) slices.push_back(std::move(slice));
}

RunTrace without_overlaps(const RunTrace& trace) {
  RunTrace out;
  const auto rows = by_row(trace);
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::vector<uint64_t>> open;  // of each row made of this one: ends, outer first
    const size_t first = out.rows.size();
    out.rows.push_back(trace.rows[r]);
    open.emplace_back();
    for (const RunTrace::Slice* slice : rows[r]) {
      size_t at = 0;
      for (;; ++at) {
        if (at == open.size()) {
          out.rows.push_back(trace.rows[r]);
          open.emplace_back();
        }
        std::vector<uint64_t>& ends = open[at];
        while (!ends.empty() && ends.back() <= slice->begin) ends.pop_back();
        if (ends.empty() || slice->end <= ends.back()) break;
      }
      open[at].push_back(slice->end);
      out.slices.push_back(*slice);
      out.slices.back().row = first + at;
    }
  }
  return out;
}

std::string chrome_json(const RunTrace& given) {
  const RunTrace trace = without_overlaps(given);
  const std::vector<std::string> groups = groups_of(trace);
  std::string out = R"({"displayTimeUnit":"ns","traceEvents":[)";
  const auto add = [&out](const std::string& event) {
    out += out.back() == '[' ? "\n" : ",\n";
    out += event;
  };
  const auto meta = [&](size_t pid, size_t row, std::string_view what, const std::string& args) {
    add(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", pid, row, what,
                    args));
  };
  for (size_t g = 0; g < groups.size(); ++g)
    if (!groups[g].empty()) meta(g + 1, 0, "process_name", "\"name\":" + quoted(groups[g]));
  const auto pid = [&](size_t row) { return place(groups, trace.rows[row].group) + 1; };
  for (size_t r = 0; r < trace.rows.size(); ++r) {
    meta(pid(r), r + 1, "thread_name", "\"name\":" + quoted(trace.rows[r].name));
    meta(pid(r), r + 1, "thread_sort_index", fmt::format("\"sort_index\":{}", r + 1));
  }
  for (const RunTrace::Slice& s : trace.slices)
    add(fmt::format(
        R"({{"ph":"X","pid":{},"tid":{},"name":{},"cat":{},"ts":{},"dur":{},"args":{{{}}}}})",
        pid(s.row), s.row + 1, quoted(s.name), quoted(s.kind), s.begin, s.end - s.begin,
        json_notes(s)));
  return out + "\n]}\n";
}

std::string track_events(const RunTrace& trace) {
  return TrackEvents(without_overlaps(trace)).write();
}

std::string trace_file(const std::string& name, const RunTrace& trace) {
  return name.ends_with(".pftrace") ? track_events(trace) : chrome_json(trace);
}

}  // namespace tilewright::accel
