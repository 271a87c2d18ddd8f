#include "tilewright/accel/common/run_trace.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "tilewright/base/rng.h"

namespace tilewright::accel {
namespace {

/// Two units and a row of layers that overlap.
RunTrace example() {
  RunTrace trace;
  const size_t load = trace.add_row("load", "core"), compute = trace.add_row("compute", "core");
  const size_t layers = trace.add_row("layers");
  trace.add({load, "LOAD", "insn", 0, 10, {{"insn", uint64_t{0}}, {"text", "load \"x\"\n"}}});
  trace.add({load, "LOAD", "insn", 10, 30, {}});
  trace.add({compute, "wait: load", "stall", 0, 10, {}});
  trace.add({compute, "GEMM", "insn", 10, 25, {{"use %", 12.5}}});
  trace.add({compute, "nothing", "insn", 25, 25, {}});
  trace.add({layers, "first", "layer", 0, 20, {}});
  trace.add({layers, "second", "layer", 10, 40, {}});
  trace.add({layers, "third", "layer", 20, 40, {}});
  return trace;
}

/// Fields of a message: their numbers with a number or bytes. Written against protobuf's own
/// description of its encoding, not against the writer.
struct Field {
  uint64_t number = 0, value = 0;
  std::string_view bytes;
};
std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    Field field{key >> 3, 0, {}};
    if ((key & 7) == 0) field.value = varint();
    if ((key & 7) == 1) field.bytes = message.substr(at, 8), at += 8;
    if ((key & 7) == 2) {
      const uint64_t size = varint();
      EXPECT_LE(at + size, message.size());
      field.bytes = message.substr(at, size), at += size;
    }
    fields.push_back(field);
  }
  return fields;
}
Field field_of(std::string_view message, uint64_t number) {
  for (const Field& field : fields_of(message))
    if (field.number == number) return field;
  return {};
}

/// Slices as a reader of TrackEvents sees them: `row: name kind [begin, end)`, in order of ends.
std::vector<std::string> read_track_events(const std::string& file) {
  std::map<uint64_t, std::string> tracks, names, kinds;
  std::map<uint64_t, std::vector<std::string>> open;
  std::vector<std::string> out;
  for (const Field& packet : fields_of(file)) {
    EXPECT_EQ(packet.number, 1u);
    const uint64_t us = field_of(packet.bytes, 8).value / 1000;
    if (const std::string_view track = field_of(packet.bytes, 60).bytes; !track.empty())
      tracks[field_of(track, 1).value] = field_of(track, 2).bytes;
    for (const Field& entry : fields_of(field_of(packet.bytes, 12).bytes)) {
      std::map<uint64_t, std::string>* tables[] = {nullptr, &kinds, &names, nullptr};
      if (tables[entry.number] != nullptr)
        (*tables[entry.number])[field_of(entry.bytes, 1).value] = field_of(entry.bytes, 2).bytes;
    }
    const std::string_view event = field_of(packet.bytes, 11).bytes;
    if (event.empty()) continue;
    const uint64_t track = field_of(event, 11).value;
    if (field_of(event, 9).value == 1) {
      open[track].push_back(tracks[track] + ": " + names[field_of(event, 10).value] + " " +
                            kinds[field_of(event, 3).value] + " [" + std::to_string(us));
    } else {
      out.push_back(open[track].back() + ", " + std::to_string(us) + ")");
      open[track].pop_back();
    }
  }
  for (const auto& [track, left] : open) EXPECT_TRUE(left.empty());
  return out;
}

TEST(RunTrace, TrackEventsHaveEverySliceInItsRow) {
  EXPECT_THAT(read_track_events(track_events(example())),
              ::testing::UnorderedElementsAre(
                  "load: LOAD insn [0, 10)", "load: LOAD insn [10, 30)",
                  "compute: wait: load stall [0, 10)", "compute: GEMM insn [10, 25)",
                  "layers: first layer [0, 20)", "layers: second layer [10, 40)",
                  "layers: third layer [20, 40)"));
}

TEST(RunTrace, JsonHasEverySliceInItsRow) {
  const auto trace = nlohmann::json::parse(chrome_json(example()));
  std::map<std::pair<int, int>, std::string> rows;
  std::vector<std::string> slices, groups;
  for (const auto& e : trace.at("traceEvents")) {
    const std::pair<int, int> row = {e.at("pid"), e.at("tid")};
    if (e.at("name") == "thread_name") rows[row] = e.at("args").at("name");
    if (e.at("name") == "process_name") groups.push_back(e.at("args").at("name"));
    if (e.at("ph") != "X") continue;
    slices.push_back(rows.at(row) + " " + e.at("name").get<std::string>() + e.at("args").dump());
  }
  EXPECT_THAT(groups, ::testing::ElementsAre("core"));
  EXPECT_THAT(slices, ::testing::UnorderedElementsAre(
                          R"(load LOAD{"insn":0,"text":"load \"x\"\n"})", "load LOAD{}",
                          "compute wait: load{}", R"(compute GEMM{"use %":12.5})", "layers first{}",
                          "layers second{}", "layers third{}"));
}

/// No row has slices that overlap without one inside the other, none is lost, and rows that were
/// fine stay whole.
TEST(RunTrace, E2_OverlapsGetRowsOfTheirOwn) {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    RunTrace trace;
    trace.add_row("a"), trace.add_row("b");
    for (int i = 0; i < 12; ++i) {
      const uint64_t begin = rng.next() % 21, length = 1 + rng.next() % 9;
      const auto row = static_cast<size_t>(rng.next() % 2);
      trace.add({row, std::to_string(i), "", begin, begin + length, {}});
    }
    const RunTrace apart = without_overlaps(trace);
    EXPECT_EQ(apart.slices.size(), trace.slices.size());
    std::set<std::pair<std::string, std::string>> want, got;
    for (const auto& s : trace.slices) want.emplace(trace.rows[s.row].name, s.name);
    for (const auto& s : apart.slices) got.emplace(apart.rows[s.row].name, s.name);
    EXPECT_TRUE(want == got) << "each slice stays under its unit's name";
    for (const auto& x : apart.slices)
      for (const auto& y : apart.slices) {
        const bool overlap = x.begin < y.begin && y.begin < x.end && x.end < y.end;
        EXPECT_FALSE(overlap && x.row == y.row) << round << ": " << x.name << " " << y.name;
      }
    EXPECT_EQ(read_track_events(track_events(trace)).size(), trace.slices.size());
  }
  EXPECT_EQ(without_overlaps(example()).rows.size(), 4u) << "the second layer goes elsewhere";
}

TEST(RunTrace, TrackEventsAreSmall) {
  RunTrace trace;
  const size_t dma = trace.add_row("dma"), array = trace.add_row("array");
  for (uint64_t i = 0; i < 5'000; ++i) {
    trace.add({dma, "LOAD", "insn", 10 * i, 10 * i + 8, {{"insn", i}}});
    trace.add({array, "GEMM", "insn", 10 * i + 4, 10 * i + 14, {{"insn", i}}});
  }
  const std::string small = track_events(trace);
  EXPECT_LT(2 * small.size(), chrome_json(trace).size());
  EXPECT_EQ(fields_of(small).size(), 2u * 10'000 + 3) << "each begin and end, two rows, one group";
}

TEST(RunTrace, TheNameSaysTheFormat) {
  EXPECT_EQ(trace_file("t.pftrace", example()), track_events(example()));
  EXPECT_EQ(trace_file("t.json", example()), chrome_json(example()));
}

}  // namespace
}  // namespace tilewright::accel
