#include "tilewright/accel/fpga/rtl/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <map>

#include "tilewright/accel/fpga/block_ram.h"
#include "tilewright/accel/fpga/rtl/kernel_cells.h"
#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/base/integers.h"

namespace tilewright::fpga {
namespace {

using accel::Cells;

// What is not counted from the text of a module was measured. source: Yosys 0.23, synth_xilinx
// -family xc7 -noiopad -noclkbuf, modules by themselves and those of the 36 designs of
// `bench_fpga cells --seed 1001 --count 36`, 2026-11-27 (bench/results/fpga.md).

using Parameters = std::map<std::string, int64_t>;

/// A module with its parameters, and how often it is there.
using Modules = std::map<std::pair<std::string, Parameters>, int64_t>;

int64_t log2_up(int64_t values) {
  return values <= 1 ? 0 : static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(values - 1)));
}
int64_t rounded(double luts) { return std::llround(std::max(0.0, luts)); }

/// RAM32M have 32 words of 6 bits, RAM64M 64 of 3, in 4 LUTs each; a memory is of one kind.
int64_t small_rams(int64_t words, int64_t bits) {
  const auto of = [&](int64_t depth, int64_t width) {
    return ceil_div(words, depth) * ceil_div(bits, width);
  };
  return std::min(of(32, 6), of(64, 3));
}
constexpr int64_t kSmallRamLuts = 4;
/// By which Yosys chooses between LUTs and blocks. source: its files
/// techlibs/xilinx/lutrams_xc5v.txt, brams_xc4v.txt
constexpr int64_t kSmallRamPrice = 8, kBlockRamPrice = 129;

void add_lut_ram(Cells& cells, int64_t words, int64_t bits) {
  const int64_t luts = kSmallRamLuts * small_rams(words, bits);
  cells.lut += luts;
  cells.lut_ram += luts;
}

/// Counts one module by itself; the modules in it are counted as others.
class Counter {
 public:
  Counter(const Parameters& parameters, const std::function<void(const char*, Parameters)>& inside)
      : parameters_(parameters), inside_(inside) {}

  Cells count(const std::string& name) {
    using Rule = void (Counter::*)();
    static const std::map<std::string, Rule> kRules = {{"fpga_delay", &Counter::delay},
                                                       {"fpga_bank", &Counter::bank},
                                                       {"fpga_affine", &Counter::affine},
                                                       {"fpga_counters", &Counter::counters},
                                                       {"fpga_nest", &Counter::nest},
                                                       {"fpga_requests", &Counter::requests},
                                                       {"fpga_write_port", &Counter::write_port},
                                                       {"fpga_control", &Counter::control},
                                                       {"fpga_count", &Counter::blocks},
                                                       {"fpga_slot", &Counter::blocks},
                                                       {"fpga_add", &Counter::add},
                                                       {"fpga_mul", &Counter::mul},
                                                       {"fpga_mul_pair", &Counter::mul_pair},
                                                       {"fpga_compare", &Counter::compare},
                                                       {"fpga_select", &Counter::select},
                                                       {"fpga_shift", &Counter::shift},
                                                       {"fpga_fadd", &Counter::fadd},
                                                       {"fpga_fmul", &Counter::fmul},
                                                       {"fpga_fcast", &Counter::fcast},
                                                       {"fpga_fcompare", &Counter::fcompare},
                                                       {"fpga_fselect", &Counter::fselect},
                                                       {"fpga_round", &Counter::round},
                                                       {"fpga_unpack", &Counter::unpack}};
    slots_ = name == "fpga_slot";
    if (const auto rule = kRules.find(name); rule != kRules.end()) (this->*rule->second)();
    return cells_;
  }

 private:
  int64_t of(const char* name) const {
    const auto found = parameters_.find(name);
    return found == parameters_.end() ? 0 : found->second;
  }
  void behind(int64_t bits, int64_t cycles) {
    inside_("fpga_delay", {{"WIDTH", bits}, {"DELAY", cycles}});
  }
  int64_t float_bits() const { return of("EXP") + of("MAN") + 1; }
  void inside_round(int64_t exponent, int64_t fraction, int64_t digits) {
    inside_("fpga_round", {{"EXP", exponent}, {"MAN", fraction}, {"DIGITS", digits}});
  }
  void inside_unpack() { inside_("fpga_unpack", {{"EXP", of("EXP")}, {"MAN", of("MAN")}}); }

  /// From three registers in a row on: shift registers of 32 bits, the last one of 17 and of 33 a
  /// register again.
  void delay() {
    const int64_t bits = of("WIDTH"), cycles = of("DELAY");
    if (cycles < 3)
      cells_.ff = bits * cycles;
    else
      cells_.lut = bits * std::max<int64_t>(1, cycles / 32);
    if (cycles >= 3 && cycles % 16 == 1) cells_.ff = bits;
  }
  void bank() {
    const int64_t bits = of("WIDTH"), words = of("WORDS"), blocks = bram18_of(words, bits);
    if (words == 1) {
      cells_.ff = 2 * bits;
    } else if (small_rams(words, bits) * kSmallRamPrice < blocks * kBlockRamPrice) {
      add_lut_ram(cells_, words, bits);
      const int64_t parts = ceil_div(words, int64_t{64});
      if (parts > 1) cells_.lut += bits + parts;  // a choice among parts of 64 words
      cells_.ff = bits;
    } else {
      cells_.bram18 = blocks;
    }
    behind(bits, of("LATENCY") - 1);
  }
  /// Both registers are sums; what a loop or a counter that steps gives is chosen among all.
  void affine() {
    constexpr double kBit = 4.84, kMoreLoops = 1.32, kMoreLevels = 0.56, kManyLevels = 1.34;
    const auto beyond = [](int64_t count, int64_t most) {
      return static_cast<double>(std::max<int64_t>(0, count - most));
    };
    const int64_t bits = of("WIDTH"), levels = of("LEVELS");
    cells_.lut = rounded(static_cast<double>(bits) *
                         (kBit + kMoreLoops * beyond(of("LOOPS"), 1) +
                          kMoreLevels * beyond(levels, 2) + kManyLevels * beyond(levels, 4)));
    cells_.ff = 2 * bits;
  }
  void counters() {
    const auto levels = static_cast<double>(of("LEVELS")), bits = static_cast<double>(of("WIDTH"));
    cells_.lut = rounded(levels * (1.65 * bits + 0.75));
    cells_.ff = of("LEVELS") * of("WIDTH");
  }
  void nest() {
    const int64_t drains = log2_up(of("DRAIN") + 1), ii = of("II");
    const int64_t pause = ii == 1 ? 0 : std::max<int64_t>(1, log2_up(ii));
    cells_.lut = 6 + drains + (ii == 1 ? 0 : ii == 2 ? 3 : 4);
    cells_.ff = 2 + drains + pause;
    inside_("fpga_counters", {{"LEVELS", of("LEVELS")}, {"WIDTH", of("WIDTH")}});
  }
  void requests() {
    const int64_t address = of("ADDRESS"), beats = of("BEATS"),
                  window = log2_up(of("OUTSTANDING") + 1);
    const bool one_burst = (int64_t{1} << beats) - 1 <= of("BURST");
    const bool pages = (int64_t{1} << address) > kBurstBoundary;
    double luts = 12.75 + 1.11 * static_cast<double>(address) + 5.28 * static_cast<double>(beats) +
                  1.5 * static_cast<double>(window - 4);
    if (!one_burst) luts += 4.06;
    if (pages) luts += beats > 2 ? 27.35 : 6.58;
    if (of("CLIPPED") != 0) luts += 6.09 * static_cast<double>(of("CLIP")) - 1.22;
    cells_.lut = rounded(luts);
    cells_.ff = address + beats + 3 + window;
    inside_("fpga_counters", {{"LEVELS", of("LEVELS")}, {"WIDTH", of("WIDTH")}});
  }
  void write_port() {
    constexpr std::array<double, 7> kOfGroup = {0, 6, 4.8, 12, 25, 28, 30};  // for each byte
    const int64_t beat = of("BEAT"), depth = of("DEPTH"), bursts = of("BURSTS");
    const auto group = static_cast<size_t>(std::min<int64_t>(6, log2_up(of("GROUP"))));
    const int64_t depth_bits = log2_up(depth), burst_bits = std::max<int64_t>(1, log2_up(bursts));
    cells_.lut = rounded(91 + (19.4 + kOfGroup[group]) * static_cast<double>(beat) +
                         5.5 * static_cast<double>(burst_bits - 3));
    add_lut_ram(cells_, depth, 9 * beat);
    add_lut_ram(cells_, bursts, 8);
    cells_.ff = 9 * beat + 3 * depth_bits + 2 * log2_up(depth + 1) + 3 * burst_bits +
                log2_up(bursts + 1) + 8;
  }
  void control() {
    cells_.lut = 285;
    cells_.ff = 64 * of("ARGUMENTS") + 132;
  }
  void blocks() {
    cells_.lut = slots_ ? 4 : 5;
    cells_.ff = 4;
  }
  void add() {
    cells_.lut = of("WIDTH");
    behind(of("WIDTH"), of("LATENCY"));
  }
  void mul() {
    const int64_t wide = std::max(of("A"), of("B")), narrow = std::min(of("A"), of("B"));
    cells_.dsp = wide <= 25 && narrow <= 18 ? 1 : 3;
    behind(of("WIDTH"), of("LATENCY"));
  }
  void mul_pair() {
    cells_.lut = cells_.dsp = 1;
    behind(of("WIDTH"), of("LATENCY"));
    behind(of("WIDTH"), of("LATENCY"));
  }
  void compare() {
    const auto bits = static_cast<double>(of("WIDTH"));
    cells_.lut = rounded(of("KIND") == 0 && bits <= 16 ? bits / 3 : 0.72 * bits);
    behind(1, of("LATENCY"));
  }
  void select() {
    cells_.lut = of("WIDTH");
    behind(of("WIDTH"), of("LATENCY"));
  }
  void shift() {  // not measured: a choice of two for each bit of the distance
    cells_.lut = of("WIDTH") * (log2_up(of("WIDTH")) + 1) / 2 + 8;
    behind(of("WIDTH"), of("LATENCY"));
  }
  void fadd() {
    cells_.lut = rounded(12.64 * static_cast<double>(of("MAN") + 5));
    inside_unpack();
    inside_unpack();
    inside_round(of("EXP"), of("MAN"), of("MAN") + 5);
    behind(float_bits(), of("LATENCY"));
  }
  void fmul() {
    // Factors of their own type, where they have one.
    const bool narrow = of("OF_EXP") > 0;
    const int64_t exponent = of(narrow ? "OF_EXP" : "EXP"),
                  fraction = of(narrow ? "OF_MAN" : "MAN");
    cells_.lut = rounded(46.5 + 1.5 * static_cast<double>(fraction));
    cells_.dsp = fraction < 17 ? 1 : 2;
    for (int factor = 0; factor < 2; ++factor)
      inside_("fpga_unpack", {{"EXP", exponent}, {"MAN", fraction}});
    inside_round(of("EXP"), of("MAN"), 2 * fraction + 2);
    behind(float_bits(), of("LATENCY"));
  }
  void fcast() {
    const int64_t bits = of("TO_EXP") + of("TO_MAN") + 1;
    cells_.lut = bits;
    inside_unpack();
    inside_round(of("TO_EXP"), of("TO_MAN"), of("MAN") + 1);
    behind(bits, of("LATENCY"));
  }
  void fcompare() {
    const double bit = of("KIND") == 0 ? 1.7 : of("KIND") == 3 ? 0.6 : 2.2;
    cells_.lut = rounded(bit * static_cast<double>(float_bits()));
    behind(1, of("LATENCY"));
  }
  void fselect() {
    cells_.lut = float_bits();
    for (const int64_t kind : {3, 1})
      inside_("fpga_fcompare",
              {{"EXP", of("EXP")}, {"MAN", of("MAN")}, {"KIND", kind}, {"LATENCY", 0}});
    behind(float_bits(), of("LATENCY"));
  }
  /// Shifts up to the first digit, and down where the exponent is too small for it.
  void round() {
    const std::pair<int64_t, int64_t> is = {of("MAN"), of("DIGITS")};
    static const std::map<std::pair<int64_t, int64_t>, int64_t> kMeasured = {
        {{23, 48}, 820}, {{23, 28}, 502}, {{23, 22}, 347}, {{23, 16}, 257},
        {{7, 16}, 170},  {{7, 12}, 162},  {{23, 8}, 177}};
    const auto found = kMeasured.find(is);
    const auto width = static_cast<double>(std::max(is.second, is.first + 3) + 1);
    cells_.lut = found != kMeasured.end() ? found->second : rounded(3 * width * std::log2(width));
  }
  void unpack() { cells_.lut = rounded(6.25 + 0.25 * static_cast<double>(of("MAN"))); }

  const Parameters& parameters_;
  const std::function<void(const char*, Parameters)>& inside_;
  Cells cells_;
  bool slots_ = false;
};

/// The modules that a line of the kernel, or of what is around it, has: `fpga_add #(.WIDTH(8), ..`.
void add_instances(const std::string& text, Modules& modules) {
  constexpr std::string_view kBegin = "\n  fpga_";
  for (size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at + 1)) {
    const size_t name = at + 3, open = text.find(" #(", name), end = text.find('\n', at + 1);
    if (open == std::string::npos || open > end) continue;
    Parameters parameters;
    size_t next = open + 3;
    while (text[next] == '.') {
      const size_t value = text.find('(', next), close = text.find(')', value);
      parameters[text.substr(next + 1, value - next - 1)] =
          std::atoll(text.substr(value + 1, close - value - 1).c_str());
      next = close + 1;
      if (text.compare(next, 2, ", ") == 0) next += 2;
    }
    ++modules[{text.substr(name, open - name), parameters}];
  }
}

std::string module_text(const std::string& text, const char* name) {
  const size_t begin = text.find(fmt::format("\nmodule {} ", name));
  return text.substr(begin, text.find("\nendmodule", begin) - begin);
}

/// Counts `copies` of a module and of those inside it.
void count(accel::Synthesis& out, std::map<std::pair<std::string, Parameters>, size_t>& places,
           const std::string& name, const Parameters& parameters, int64_t copies) {
  if ((name == "fpga_delay") && parameters.at("DELAY") == 0) return;
  const std::function<void(const char*, Parameters)> inside =
      [&](const char* part, Parameters own) { count(out, places, part, own, copies); };
  const Cells cells = Counter(parameters, inside).count(name);
  const auto [place, first] = places.try_emplace({name, parameters}, out.modules.size());
  if (first)
    out.modules.push_back({name, copies, cells, 0, {}});
  else
    out.modules[place->second].copies += copies;
}

}  // namespace

accel::Synthesis predicted_cells(const std::string& verilog) {
  const std::string kernel = module_text(verilog, kKernel);
  Modules modules;
  add_instances(kernel, modules);
  add_instances(module_text(verilog, kTop), modules);
  accel::Synthesis out;
  std::map<std::pair<std::string, Parameters>, size_t> places;
  for (const auto& [module, copies] : modules)
    count(out, places, module.first, module.second, copies);
  out.modules.push_back({kKernel, 1, rtl::kernel_cells(kernel), 0, {}});
  std::stable_sort(out.modules.begin(), out.modules.end(),
                   [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

}  // namespace tilewright::fpga
