#include "tilewright/accel/spatial/design.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cmath>

#include "tilewright/accel/spatial/design_keys.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/base/integers.h"

namespace tilewright::spatial {
namespace {

constexpr std::string_view kUnits[] = {"dot", "gemv", "gemm", "conv2d"};
constexpr std::string_view kDataflows[] = {"ws", "os"};
constexpr std::string_view kLinks[] = {"none", "systolic", "full"};

template <auto Member>
Words words(std::span<const std::string_view> names) {
  using Enum = std::remove_reference_t<decltype(std::declval<Design>().*Member)>;
  return {names, [](const Design& d) { return static_cast<int>(d.*Member); },
          [](Design& d, int to) { d.*Member = static_cast<Enum>(to); }};
}
template <auto Member>
auto& member(Design& design) {
  return design.*Member;
}
template <auto Member>
auto& timing(Design& design) {
  return design.timing.*Member;
}
template <auto Member>
auto& host(Design& design) {
  return design.host.*Member;
}

constexpr double kMostCycles = 100000;

std::vector<Key> make_keys() {
  const auto delay = [](std::string_view name, Key::Int value) {
    return Key{"timing", name, value, 0, kMostCycles};
  };
  return {
      {"", "intrinsic", words<&Design::unit>(kUnits)},
      {"", "dataflow", words<&Design::dataflow>(kDataflows)},
      {"", "rows", member<&Design::rows>, 1, 64},
      {"", "cols", member<&Design::cols>, 1, 64},
      {"", "links", words<&Design::links>(kLinks)},
      {"", "spad_kb", member<&Design::spad_kb>, 8, 4096},
      {"", "banks", member<&Design::banks>, 1, 16},
      {"", "bank_bytes", member<&Design::bank_bytes>, 4, 64, true},
      {"", "local_kb", member<&Design::local_kb>, 1, 1024},
      {"", "bus_bytes", member<&Design::bus_bytes>, 8, 64, true},
      {"", "burst_bytes", member<&Design::burst_bytes>, 64, 4096, true},
      {"", "clock_mhz", member<&Design::clock_mhz>, 1, 10000},
      delay("read_latency", timing<&Timing::read_latency>),
      delay("burst_gap", timing<&Timing::burst_gap>),
      delay("load_overhead", timing<&Timing::load_overhead>),
      delay("store_row_overhead", timing<&Timing::store_row_overhead>),
      delay("store_element_extra", timing<&Timing::store_element_extra>),
      delay("compute_overhead", timing<&Timing::compute_overhead>),
      delay("token_latency", timing<&Timing::token_latency>),
      {"timing", "command_queue", timing<&Timing::command_queue>, 1, kMostCycles},
      {"host", "macs_per_cycle", host<&Host::macs_per_cycle>, 1e-3, 1e6},
      {"host", "bytes_per_cycle", host<&Host::bytes_per_cycle>, 1e-3, 1e6},
  };
}

bool is_power_of_two(double value) {
  return value >= 1 && value == std::floor(value) &&
         std::has_single_bit(static_cast<uint64_t>(value));
}

bool in_range(const Key& key, const Design& design) {
  if (const auto* word = std::get_if<Words>(&key.value)) {
    const int at = word->get(design);
    return at >= 0 && at < static_cast<int>(word->words.size());
  }
  const double value = key.get(design);
  return value >= key.low && value <= key.high && (!key.power_of_two || is_power_of_two(value));
}

std::string range_text(const Key& key) {
  if (const auto* word = std::get_if<Words>(&key.value))
    return fmt::format("one of {}", fmt::join(word->words, ", "));
  return fmt::format("{}in {}..{}", key.power_of_two ? "a power of two " : "", key.low, key.high);
}

/// requires: all members are in their ranges.
void find_conflicts(const Design& design, std::vector<Problem>& found) {
  if (!has_links(design.unit, design.links)) {
    std::vector<std::string_view> legal;
    for (const Links links : {Links::None, Links::Systolic, Links::Full})
      if (has_links(design.unit, links)) legal.push_back(name(links));
    found.push_back({"links", fmt::format("links = {}, but {} has {}", name(design.links),
                                          name(design.unit), fmt::join(legal, " or "))});
  }
  const auto lacks = [&](const char* key, int64_t needed, int64_t there, const char* of) {
    if (needed > there)
      found.push_back({key, fmt::format("{} of {} KiB: {} of {} x {} {} {} KiB, {:.2f} KiB more",
                                        key, there / 1024, name(design.unit), design.rows,
                                        design.cols, of, static_cast<double>(needed) / 1024,
                                        static_cast<double>(needed - there) / 1024)});
  };
  const Needs needs = smallest_needs(design);
  lacks("spad_kb", needs.spad_bytes, design.spad_bytes(), "needs for the operands of one step");
  lacks("local_kb", needs.local_bytes, design.local_bytes(), "needs for sums and what stays");
}

}  // namespace

std::string Key::path() const {
  return std::string(table) + (table.empty() ? "" : ".") + std::string(name);
}

double Key::get(const Design& design) const {
  if (const auto* word = std::get_if<Words>(&value)) return word->get(design);
  auto& members = const_cast<Design&>(design);  // accessors serve reading and writing
  if (const auto* number = std::get_if<Int>(&value)) return (*number)(members);
  return std::get<Double>(value)(members);
}

void Key::set(Design& design, double to) const {
  if (const auto* word = std::get_if<Words>(&value))
    word->set(design, static_cast<int>(to));
  else if (const auto* number = std::get_if<Int>(&value))
    (*number)(design) = static_cast<int>(to);
  else
    std::get<Double>(value)(design) = to;
}

std::span<const Key> design_keys() {
  static const std::vector<Key> keys = make_keys();
  return keys;
}

std::vector<Problem> placed_problems(const Design& design) {
  std::vector<Problem> found;
  for (const Key& key : design_keys())
    if (!in_range(key, design)) {
      const bool number = !std::holds_alternative<Words>(key.value);
      found.push_back(
          {key.path(), number ? fmt::format("{} = {}, but must be {}", key.path(), key.get(design),
                                            range_text(key))
                              : fmt::format("{} must be {}", key.path(), range_text(key))});
    }
  if (found.empty()) find_conflicts(design, found);
  return found;
}

std::vector<std::string> problems(const Design& design) {
  std::vector<std::string> texts;
  for (Problem& problem : placed_problems(design)) texts.push_back(std::move(problem.what));
  return texts;
}

std::string_view name(Unit unit) { return kUnits[static_cast<size_t>(unit)]; }
std::string_view name(Dataflow dataflow) { return kDataflows[static_cast<size_t>(dataflow)]; }
std::string_view name(Links links) { return kLinks[static_cast<size_t>(links)]; }

}  // namespace tilewright::spatial
