// The generator: numbers of a design into the text of the modules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>

#include "tilewright/accel/common/rtl/fill_in.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/operands.h"
#include "tilewright/accel/spatial/rtl/parts.h"
#include "tilewright/accel/spatial/rtl/rtl.h"
#include "tilewright/accel/spatial/sim/array.h"
#include "tilewright/base/check.h"
#include "tilewright/base/integers.h"

namespace tilewright::spatial {
namespace {

using Values = accel::VerilogValues;
using Numbers = std::vector<std::pair<const char*, int64_t>>;

/// Bits that count to `values`, at least one.
int64_t bits_for(int64_t values) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(values - 1))));
}

/// x / banks as (x * factor) >> shift, exact for words of the largest scratchpad (20 bits).
constexpr int kDivideShift = 32;
int64_t divide_factor(int64_t banks) { return ((int64_t{1} << kDivideShift) + banks - 1) / banks; }

std::string array_of(const Design& design) {
  const bool systolic = design.links == Links::Systolic;
  switch (design.unit) {
    case Unit::Dot:
      return "array_dot";
    case Unit::Gemv:
      return "array_gemv";
    case Unit::Conv2d:
      return "array_conv2d";
    case Unit::Gemm:
      if (design.dataflow == Dataflow::WeightStationary)
        return systolic ? "array_ws_systolic" : "array_ws";
      return systolic ? "array_os_systolic" : "array_os";
  }
  return {};
}

/// What an array repeats, as a module of its own; null: a product or a tree, which all have.
const char* unit_of(const Design& design) {
  if (design.unit == Unit::Conv2d) return "unit_conv2d";
  if (design.unit != Unit::Gemm || design.links != Links::Systolic) return nullptr;
  return design.dataflow == Dataflow::WeightStationary ? "unit_ws_systolic" : "unit_os_systolic";
}

void add_units(const Design& design, Numbers& numbers, Values& values) {
  const RoleLanes all = all_lanes(design);
  const bool stays = weights_stay(design);
  const auto rows = row_lanes(design, all);
  const int64_t sums = sum_words(design);
  const Numbers of_units = {
      {"ROWS", design.rows},
      {"COLS", design.cols},
      {"PARTS", sum_parts(design)},
      {"FILL", fill_cycles(design)},
      {"STAYS", stays ? 1 : 0},
      {"CONV", design.unit == Unit::Conv2d ? 1 : 0},
      {"LANES_I", all.i},
      {"LANES_J", all.j},
      {"LANES_K", all.k},
      {"ROW0", rows[0]},
      {"ROW1", std::max<int64_t>(1, rows[1])},
      {"ROWB", design.cols},
      {"FETCHES0", row_fetches(design, 0)},
      {"FETCHES1", row_fetches(design, 1)},
      {"LOG_SUMS", bits_for(sums)},
      {"LOG_TAPS", bits_for(std::max<int64_t>(2, design.local_bytes() / design.units()))}};
  numbers.insert(numbers.end(), of_units.begin(), of_units.end());
  const bool k = stays || design.unit == Unit::Dot;
  values["LOOP0"] = k ? "loop_k" : "loop_i";
  values["COUNT0"] = k ? "count_k" : "count_i";
  values["LOOP1"] = k ? "loop_k" : "loop_j";
  values["COUNT1"] = k ? "count_k" : "count_j";
  const auto& texts = rtl::texts();
  values["ARRAY"] =
      texts.at(array_of(design)) + (design.links == Links::Systolic ? "" : texts.at("array_tree"));
}

Values values_of(const Design& design) {
  const Timing& t = design.timing;
  const int64_t lanes = std::min(design.bus_bytes, design.bank_bytes);
  Numbers numbers = {{"BUS_BYTES", design.bus_bytes},
                     {"BURST_BYTES", design.burst_bytes},
                     {"BANKS", design.banks},
                     {"BANK_BYTES", design.bank_bytes},
                     {"BANK_ROWS", ceil_div(design.spad_bytes() / design.bank_bytes, design.banks)},
                     {"DIVIDE_FACTOR", divide_factor(design.banks)},
                     {"DIVIDE_SHIFT", kDivideShift},
                     {"STORE_LANES", lanes},
                     {"STORE_BEATS", std::max(1, design.bank_bytes / design.bus_bytes)},
                     {"FETCH_BEATS", ceil_div(kInsnBytes, design.bus_bytes)},
                     {"LOAD_SETUP", std::max(1, t.load_overhead - 1)},
                     {"COMPUTE_SETUP", std::max(1, t.compute_overhead - 1)},
                     {"STORE_ROW_OVERHEAD", t.store_row_overhead},
                     {"STORE_ELEMENT_EXTRA", t.store_element_extra},
                     {"TOKEN_LATENCY", t.token_latency},
                     {"COMMAND_QUEUE", t.command_queue},
                     {"LOG_COMMAND_QUEUE", bits_for(t.command_queue)}};
  Values values;
  add_units(design, numbers, values);
  for (const auto& [name, value] : numbers) values[name] = fmt::format("{}", value);
  return values;
}

}  // namespace

Status rtl_supports(const Design& design) {
  std::vector<std::string> reasons = problems(design);
  if (!reasons.empty())
    return fail(ErrorKind::Invalid, "the design is not legal",
                fmt::format("{}", fmt::join(reasons, "; ")));
  const Timing& t = design.timing;
  const auto need = [&reasons](const char* name, int value, int low, int high) {
    if (value < low || value > high)
      reasons.push_back(fmt::format("{} is {}, the Verilog needs {}..{}", name, value, low, high));
  };
  constexpr int kMost = 65535;
  need("read_latency", t.read_latency, 1, kMost);
  need("token_latency", t.token_latency, 1, 255);
  need("store_row_overhead", t.store_row_overhead, 1, kMost);
  need("store_element_extra", t.store_element_extra, 0, kMost);
  need("load_overhead", t.load_overhead, 0, kMost);
  need("compute_overhead", t.compute_overhead, 0, kMost);
  if (reasons.empty()) return {};
  return fail(ErrorKind::Unsupported, "the Verilog generator cannot build this design",
              fmt::format("{}", fmt::join(reasons, "; ")),
              "run it on spatial:tsim, or change the timing");
}

std::string verilog(const Design& design) {
  const Values values = values_of(design);
  std::string text =
      "// spatial, generated by Tilewright. Verilog-2005. Timing: docs/spatial-timing.md.\n";
  const auto add = [&](const std::string& part) {
    text += accel::fill_in(rtl::texts().at(part), values);
  };
  for (const char* part : {"memory", "load", "rows", "array"}) add(part);
  if (const char* unit = unit_of(design)) add(unit);
  for (const char* part : {"compute", "store", "top"}) add(part);
  return text;
}

accel::SynthesisTask synthesis_task(const Design& design) {
  return {.top = kTop, .verilog = verilog(design), .boxed = {"spatial_sums"}, .library = {}};
}

}  // namespace tilewright::spatial
