// What the units of a machine did over time, as a file for ui.perfetto.dev. A row belongs to one
// unit, a slice in it says what the unit did from one cycle to another:
//
//   load     [LOAD x][LOAD w]
//   compute           [wait: load][GEMM          ]
//
// becomes two tracks with four slices, either as JSON (Chrome's format, which many tools read) or
// as TrackEvents in protobuf (a fraction of the size, for long runs).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tilewright::accel {

struct RunTrace {
  using Note = std::pair<std::string, std::variant<uint64_t, double, std::string>>;
  struct Row {
    std::string name;
    std::string group;  ///< rows of one group stand together under its name; may be empty
  };
  struct Slice {
    size_t row = 0;
    std::string name, kind;
    uint64_t begin = 0, end = 0;  ///< cycles
    std::vector<Note> notes;      ///< shown when the slice is chosen
  };
  std::vector<Row> rows;
  std::vector<Slice> slices;

  /// The new row's number.
  size_t add_row(std::string name, std::string group = {});
  /// A slice without length is left out.
  void add(Slice slice);
};

/// Slices that overlap in a row, neither inside the other, in further rows of the same name behind
/// it, as few as it takes: formats know nested slices alone.
RunTrace without_overlaps(const RunTrace& trace);

/// One cycle is 1 us on the axis, in both formats.
std::string chrome_json(const RunTrace& trace);
std::string track_events(const RunTrace& trace);
/// What a file of this name holds: TrackEvents where it ends with `.pftrace`, otherwise JSON.
std::string trace_file(const std::string& name, const RunTrace& trace);

}  // namespace tilewright::accel
