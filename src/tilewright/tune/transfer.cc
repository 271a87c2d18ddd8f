#include "tilewright/tune/transfer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "tilewright/base/file.h"
#include "tilewright/ir/text.h"
#include "tilewright/records/workload.h"

namespace tilewright::tune {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}

/// `text` with `#` for each integer, and these. Digits inside names stay, if there are `names`; the
/// value of a decision has none, `1x4x16` are sizes of tiles.
std::pair<std::string, std::vector<double>> without_numbers(std::string_view text,
                                                            bool names = true) {
  std::string shape;
  std::vector<double> numbers;
  for (size_t i = 0; i < text.size();) {
    if (!is_digit(text[i]) || (names && i > 0 && is_word(text[i - 1]))) {
      shape += text[i++];
      continue;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), value);
    numbers.push_back(value);
    shape += '#';
    i = static_cast<size_t>(end - text.data());
  }
  return {std::move(shape), std::move(numbers)};
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::abs(std::log2((std::abs(a[i]) + 1) / (std::abs(b[i]) + 1)));
  return sum;
}

/// How far the sizes of a loop's tiles, from the outermost in, are from those of another loop. The
/// longest loop outside the innermost goes over more or fewer tiles; the sizes of tiles should
/// stay, since registers and caches do. Example: 1x1x28x2 of 56 is nearer to 1x1x14x2 of 28 than to
/// 1x1x28x1.
double tiles_apart(const std::vector<double>& wanted, const std::vector<double>& other) {
  constexpr double kTile = 4;  // above 1: sizes of tiles count more
  size_t longest = wanted.empty() ? 0 : wanted.size() - 1;
  for (size_t i = 0; i + 1 < wanted.size(); ++i)
    if (wanted[i] > 1 && (longest + 1 == wanted.size() || wanted[i] > wanted[longest])) longest = i;
  double sum = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double ratio = std::max(wanted[i], 0.5) / std::max(other[i], 0.5);
    sum += (i == longest ? 1 : kTile) * std::abs(std::log2(ratio));
  }
  return sum;
}

int nearest_value(const search::Decision& decision, std::string_view wanted) {
  for (size_t v = 0; v < decision.values.size(); ++v)
    if (decision.values[v].text == wanted) return static_cast<int>(v);
  const auto [shape, numbers] = without_numbers(wanted, false);
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t v = 0; v < decision.values.size(); ++v) {
    const auto [other_shape, other] = without_numbers(decision.values[v].text, false);
    if (other.size() != numbers.size()) continue;
    const double apart = tiles_apart(numbers, other) + (shape == other_shape ? 0 : 1);
    if (apart < least) least = apart, best = static_cast<int>(v);
  }
  return best;
}

/// The points of the cheapest `count` of `records` whose points begin with `prefix`.
std::vector<search::Point> suggested(std::vector<records::Record> records,
                                     const search::Space& space, const std::string& prefix,
                                     size_t count) {
  std::stable_sort(
      records.begin(), records.end(),
      [](const records::Record& a, const records::Record& b) { return a.cost < b.cost; });
  std::vector<search::Point> points;
  for (const records::Record& record : records) {
    if (points.size() == count) break;
    if (!record.point.starts_with(prefix)) continue;
    search::Point point =
        nearest_point(space, std::string_view(record.point).substr(prefix.size()));
    if (std::find(points.begin(), points.end(), point) == points.end())
      points.push_back(std::move(point));
  }
  return points;
}

/// The best point of each program, then the second best ones: those of one program are alike.
std::vector<search::Point> in_turn(const std::vector<std::vector<search::Point>>& of_programs,
                                   size_t count) {
  std::vector<search::Point> points;
  for (size_t rank = 0; rank < count; ++rank)
    for (const std::vector<search::Point>& known : of_programs)
      if (rank < known.size() && points.size() < count &&
          std::find(points.begin(), points.end(), known[rank]) == points.end())
        points.push_back(known[rank]);
  return points;
}

/// `cpu`, `cuda-sm_90a`, ...
std::string_view device_kind(const records::Record& record) {
  return std::string_view(record.target).substr(0, record.target.find(':'));
}

/// Those of `records` that one other machine of the kind of `own` measured: the one that measured
/// last. Its costs do not compare with those of a third.
std::vector<records::Record> from_elsewhere(std::vector<records::Record> records,
                                            const records::Record& own) {
  if (own.machine.empty()) return {};
  std::erase_if(records, [&](const records::Record& record) {
    return record.machine.empty() || record.machine == own.machine || record.unit != own.unit ||
           device_kind(record) != device_kind(own);
  });
  if (records.empty()) return {};
  const std::string machine = records.back().machine;
  std::erase_if(records, [&](const records::Record& record) { return record.machine != machine; });
  return records;
}

}  // namespace

search::Point nearest_point(const search::Space& space, std::string_view text) {
  search::Point point;
  for (const search::Decision& decision : space.decisions()) {
    const std::string_view value = space.value_text(text, decision.name);
    point.push_back(value.empty() ? 0 : nearest_value(decision, value));
  }
  return space.canonical(std::move(point));
}

std::optional<double> shape_distance(std::string_view func, std::string_view other) {
  const auto [shape, numbers] = without_numbers(func);
  const auto [other_shape, other_numbers] = without_numbers(other);
  if (shape != other_shape) return std::nullopt;
  return distance(numbers, other_numbers);
}

Result<ProgramsAlike> ProgramsAlike::read(const records::Store& store) {
  ProgramsAlike alike;
  TW_TRY_STATUS(store.each_workload([&](const std::string& key, const std::string& func) {
    auto [shape, numbers] = without_numbers(func);
    alike.programs_[sha256(shape)].push_back({std::move(numbers), key});
  }));
  return alike;
}

std::vector<std::string> ProgramsAlike::nearest(const std::string& text) const {
  const auto [shape, numbers] = without_numbers(text);
  const auto found = programs_.find(sha256(shape));
  std::vector<std::pair<double, std::string>> others;
  if (found != programs_.end())
    for (const Program& program : found->second)
      if (program.numbers != numbers)
        others.emplace_back(distance(numbers, program.numbers), program.key);
  std::sort(others.begin(), others.end());
  std::vector<std::string> keys;
  for (auto& [apart, key] : others) keys.push_back(std::move(key));
  return keys;
}

Result<Transferred> transferred_points(const records::Store& store, const ProgramsAlike& alike,
                                       const measure::Task& task, const search::Space& space,
                                       const std::string& space_name, int count) {
  const std::string own = records::workload_text(task.func);
  const std::string own_key = records::workload_key(own);
  const std::string prefix = space_name + ": ";
  const auto most = static_cast<size_t>(count);
  const std::vector<records::Record> elsewhere =
      from_elsewhere(TW_TRY(store.find({.workload = own_key, .ok_only = true})), task.record());
  Transferred found{suggested(elsewhere, space, prefix, most), {}};
  if (!found.points.empty()) {
    found.machine = elsewhere.front().machine;
    return found;
  }
  std::vector<std::vector<search::Point>> of_programs;  // the nearest first
  for (const std::string& key : alike.nearest(own)) {
    if (of_programs.size() == most) break;
    const records::RecordFilter filter{
        .workload = key, .target = task.target_key(), .ok_only = true};
    std::vector<search::Point> points = suggested(TW_TRY(store.find(filter)), space, prefix, most);
    if (!points.empty()) of_programs.push_back(std::move(points));
  }
  found.points = in_turn(of_programs, most);
  return found;
}

Result<std::vector<KnownProgram>> known_programs(const records::Store& store,
                                                 const ProgramsAlike& alike,
                                                 const measure::Task& task,
                                                 const std::string& compiler) {
  // A schedule takes milliseconds to look at, and the model is fitted anew every 16 trials.
  constexpr size_t kPrograms = 6, kSchedules = 48;
  std::vector<KnownProgram> programs;
  for (const std::string& key : alike.nearest(records::workload_text(task.func))) {
    if (programs.size() == kPrograms) break;
    std::vector<records::Record> records = TW_TRY(store.find({.workload = key,
                                                              .target = task.target_key(),
                                                              .compiler = compiler,
                                                              .ok_only = true,
                                                              .kind = records::kScheduleKind}));
    if (records.size() < 2) continue;  // nothing to compare
    const Result<Func> func = parse_func(TW_TRY(store.workload(key)));
    if (!func) continue;  // of another version
    std::stable_sort(
        records.begin(), records.end(),
        [](const records::Record& a, const records::Record& b) { return a.cost < b.cost; });
    KnownProgram program{records[0].name, *func, {}};
    const size_t count = std::min(records.size(), kSchedules);
    for (size_t i = 0; i < count; ++i) {
      const records::Record& record =
          records[i * (records.size() - 1) / std::max<size_t>(count - 1, 1)];
      if (auto trace = schedule::parse_trace(record.schedule))
        program.measured.emplace_back(*std::move(trace), record.cost);
    }
    if (program.measured.size() >= 2) programs.push_back(std::move(program));
  }
  return programs;
}

}  // namespace tilewright::tune
