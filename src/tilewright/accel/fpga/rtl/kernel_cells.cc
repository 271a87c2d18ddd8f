// The kernel is read as text: wires with a value, modules, and the places of the controls. Yosys
// finds equal values by itself, and takes a value that is used once into the LUTs of its user. So
// here wires of equal value are one, those with one user are part of it, and a bit that then
// depends on n others takes a LUT of six inputs and one more for every five inputs beyond.
#include "tilewright/accel/fpga/rtl/kernel_cells.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

namespace tilewright::fpga::rtl {
namespace {

// source: fitted to Yosys 0.23, synth_xilinx -family xc7, on the kernels of 36 designs that
// `bench_fpga cells --seed 1001 --count 36` draws, 2026-11-27. The LUTs that Yosys made were
// assigned to the wire that they lead to.
/// Of a port's address: an argument of 64 bits plus a burst of 32; bits above only carry.
constexpr double kAddressLuts = 32;
/// A place of a control: its flip-flop, set by those before it; the loop that ends there.
constexpr double kPlaceLuts = 2.75;
/// A bit of a beat, of at most four or at most eight places.
constexpr double kChoiceOf4Luts = 1, kChoiceOf8Luts = 2.5;
/// Added for each bit that several lanes of a beat may give: the choice in the beat and the one
/// among lanes are not made one after the other.
constexpr double kLanesLuts = 1;
/// A bit chosen among many banks, for each of them; and where a bank has several slots.
constexpr double kBankLuts = 0.5, kSlottedBankLuts = 1.5;
constexpr double kPlainLuts = 2;  // the end of a beat, and of the run

using Tokens = std::vector<std::string>;

bool is_name(const std::string& token) {
  return std::isalpha(static_cast<unsigned char>(token[0])) != 0;
}
bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
bool ends_with(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}

/// Names, numbers as `3'd5` is one, `==`; other marks are tokens of one character.
Tokens tokens_of(std::string_view text) {
  Tokens out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (in_word(text[at]))
      while (end < text.size() && (in_word(text[end]) || text[end] == '\'')) ++end;
    else if (end < text.size() && text[at] == '=' && text[end] == '=')
      ++end;
    if (text[at] != ' ') out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

std::string joined(const Tokens& tokens) {
  std::string out;
  for (const std::string& token : tokens) out += token + " ";
  return out;
}

double luts_of(size_t inputs) { return inputs <= 1 ? 0 : std::ceil(double(inputs - 1) / 5); }

class KernelReader {
 public:
  explicit KernelReader(const std::string& kernel) {
    std::istringstream lines(kernel);
    for (std::string line; std::getline(lines, line);) read(line);
    for (int round = 0; round < 3; ++round) merge();
    count_users();
  }

  accel::Cells count() {
    double luts = kPlaceLuts * static_cast<double>(places_);
    for (const std::string& name : order_)
      if (!same_.contains(name) && !part_of_user(name)) luts += luts_of_wire(name);
    accel::Cells cells;
    cells.lut = std::llround(luts);
    // One flip-flop for each place of a control, and one for its end.
    cells.ff = register_bits_ + places_ + controls_;
    return cells;
  }

 private:
  struct Wire {
    int64_t bits = 1;
    Tokens value;
  };
  /// What a bit depends on.
  struct Inputs {
    std::set<std::string> data;
    std::set<std::string> conditions, of_conditions;  ///< of `{8{condition}}`; bits in them
    size_t banks = 0;                                 ///< of memories, among the data
    size_t count() const {
      size_t own = 0;
      for (const std::string& bit : of_conditions) own += data.contains(bit) ? 0 : 1;
      return data.size() + std::min(conditions.size(), own);
    }
  };

  // --- Reading ---

  void read(const std::string& line) {
    const std::string_view text = line;
    const bool wire = text.substr(0, 7) == "  wire ", reg = text.substr(0, 6) == "  reg ";
    if (wire || reg)
      declare(line.substr(wire ? 7 : 6), reg);
    else if (text.substr(0, 9) == "  assign ")
      assign(line.substr(9), 0);
    else if (text.substr(0, 7) == "  fpga_")
      modules_.push_back(tokens_of(text.substr(text.find("(.clk"))));
    else if (text.substr(0, 6) == "      ")
      control(line);
  }

  void declare(std::string text, bool reg) {
    int64_t bits = 1;
    if (text[0] == '[') {
      bits = std::atoll(text.c_str() + 1) + 1;
      text = text.substr(text.find(' ') + 1);
    }
    if (has(text, " = ")) return assign(text, bits);
    for (const std::string& name : tokens_of(text)) {
      if (!is_name(name)) continue;
      bits_[name] = bits;
      if (!reg) continue;
      if (ends_with(name, "_at"))
        ++controls_;
      else
        register_bits_ += bits;
    }
  }

  /// `name = value;` of so many bits; 0: those it was declared with, or one of them.
  void assign(const std::string& text, int64_t bits) {
    const size_t equals = text.find(" = ");
    const std::string name = text.substr(0, equals);
    if (bits == 0) bits = has(name, "[") || !bits_.contains(name) ? 1 : bits_.at(name);
    bits_[name] = bits;
    wires_[name] = {bits, tokens_of(text.substr(equals + 3, text.find(';') - equals - 3))};
    order_.push_back(name);
  }

  /// A line of a control: `  3'd1: if (ready) p0_at <= 3'd2;`
  void control(const std::string& line) {
    const Tokens tokens = tokens_of(line);
    if (tokens.size() > 1 && tokens[1] == ":" && has(tokens[0], "'d")) ++places_;
    modules_.push_back(tokens);
  }

  // --- Equal wires ---

  std::string same(std::string name) const {
    for (auto found = same_.find(name); found != same_.end(); found = same_.find(name))
      name = found->second;
    return name;
  }

  void merge() {
    std::map<std::string, std::string> seen;
    for (const std::string& name : order_) {
      if (same_.contains(name)) continue;
      Wire& wire = wires_.at(name);
      for (std::string& token : wire.value)
        if (is_name(token)) token = same(token);
      Tokens& value = wire.value;
      if (value.size() > 4 && value[1] == "?" && is_constant_1(value[0]))
        value = Tokens(value.begin() + 2, std::find(value.begin(), value.end(), ":"));
      const bool whole = value.size() == 7 && value[2] == "0" && value[3] == "+" &&
                         bits_.contains(value[0]) && bits_.at(value[0]) == wire.bits;
      if (whole || (value.size() == 1 && is_name(value[0]))) {
        same_[name] = value[0];
        continue;
      }
      const auto [place, first] =
          seen.try_emplace(std::to_string(wire.bits) + " " + joined(value), name);
      if (!first) same_[name] = place->second;
    }
  }
  bool is_constant_1(const std::string& name) const {
    const auto found = wires_.find(name);
    return found != wires_.end() && found->second.value == Tokens{"1'b1"};
  }

  void count_users() {
    for (const std::string& name : order_) {
      if (same_.contains(name)) continue;
      const Tokens& value = wires_.at(name).value;
      for (const std::string& used : std::set<std::string>(value.begin(), value.end()))
        ++users_[used];
    }
    for (const Tokens& module : modules_)
      for (const std::string& token : module)
        if (is_name(token)) users_[same(token)] += 2;
  }
  static bool chooses_in_beat(const Wire& wire) {
    return wire.value.size() > 2 && ends_with(wire.value[0], "_rdata");
  }
  bool part_of_user(const std::string& name) const {
    const auto found = users_.find(name);
    return found != users_.end() && found->second == 1 && !chooses_in_beat(wires_.at(name));
  }

  // --- LUTs ---

  double luts_of_wire(const std::string& name) {
    const Wire& wire = wires_.at(name);
    const Tokens& value = wire.value;
    if (has(name, "_step[") || has(name, "_exit[") || (has(name, "_end") && !has(name, "_ends")))
      return 0;  // in the LUTs of places
    if (value[0] == "arguments") return kAddressLuts;
    if (chooses_in_beat(wire)) return choice_in_beat(wire);
    if (ends_with(name, "_ends_beat") || name == "finished") return kPlainLuts;
    const std::set<std::string> marks(value.begin(), value.end());
    if (!marks.contains("&") && !marks.contains("|") && !marks.contains("?") &&
        !marks.contains("<") && !marks.contains("=="))
      return 0;
    Inputs inputs;
    collect(value, inputs);
    double bit = luts_of(inputs.count());
    if (inputs.banks > 3) bit = std::max(bit, choice_of_banks(inputs));
    if (lanes_of(value) > 1) bit += kLanesLuts;
    return static_cast<double>(wire.bits) * bit + conditions(wire);
  }

  /// `axi0_rdata[{p0_n5_place[2:0], 3'd0}+:16]`: bits that reach out of the beat do not matter.
  double choice_in_beat(const Wire& wire) const {
    const int64_t places = places_of(wire);
    double luts = 0;
    for (int64_t bit = 0; bit < wire.bits; ++bit) {
      const int64_t ways = places - bit / 8;
      luts += ways <= 1   ? 0
              : ways <= 4 ? kChoiceOf4Luts
                          : kChoiceOf8Luts * static_cast<double>(std::max<int64_t>(8, ways)) / 8;
    }
    return luts;
  }

  /// Bytes of a beat, any of which may be the first.
  static int64_t places_of(const Wire& wire) {
    const Tokens& value = wire.value;
    const auto place = std::find_if(value.begin(), value.end(),
                                    [](const std::string& t) { return ends_with(t, "_place"); });
    return place == value.end() ? 1 : int64_t{2} << std::atoll((place + 2)->c_str());
  }

  static double choice_of_banks(const Inputs& inputs) {
    std::set<std::string> banks;  // `m2_b5_s1_q` and `m2_b5_s0_q` are of one
    for (const std::string& name : inputs.data)
      if (const size_t slot = name.find("_s"); slot != std::string::npos)
        banks.insert(name.substr(0, slot));
    if (banks.size() == inputs.banks || banks.empty())
      return kBankLuts * static_cast<double>(inputs.banks);
    return banks.size() < 3 ? 2 : kSlottedBankLuts * static_cast<double>(banks.size());
  }

  /// Lanes of a beat that a store chooses among, if they are parts of one.
  size_t lanes_of(const Tokens& value) const {
    std::set<std::string> lanes;
    bool whole_beat = false;
    for (const std::string& token : value) {
      const auto found = wires_.find(token);
      if (found == wires_.end() || !has(joined(found->second.value), "_group ")) continue;
      lanes.insert(token);
      for (const std::string& part : found->second.value)
        if (ends_with(part, "_group"))
          whole_beat = whole_beat || bits_.at(part) == 8 * places_of(wires_.at(part));
    }
    return whole_beat && lanes.size() == 2 ? 1 : lanes.size();
  }

  /// LUTs of the conditions that a wire of several bits is masked with: once for all bits, and
  /// once where several wires have them.
  double conditions(const Wire& wire) {
    double luts = 0;
    const Tokens& value = wire.value;
    for (size_t i = 0; i < value.size(); ++i) {
      if (!begins_mask(value, i)) continue;
      const Tokens condition = mask_at(value, i);
      Inputs inputs;
      collect(condition, inputs);
      if (inputs.data.size() > 1 && wire.bits > 1 && seen_.insert(joined(condition)).second)
        luts += luts_of(inputs.data.size());
    }
    return luts;
  }

  /// `{8{condition}}` at place i.
  static bool begins_mask(const Tokens& value, size_t i) {
    return i + 3 < value.size() && value[i] == "{" && value[i + 2] == "{" && !is_name(value[i + 1]);
  }
  static Tokens mask_at(const Tokens& value, size_t i) {
    const auto begin = value.begin() + static_cast<int64_t>(i) + 3;
    return {begin, std::find(begin, value.end(), "}")};
  }

  void collect(const Tokens& value, Inputs& inputs) const {
    for (size_t i = 0; i < value.size(); ++i) {
      if (begins_mask(value, i)) {
        const Tokens condition = mask_at(value, i);
        inputs.conditions.insert(joined(condition));
        Inputs bits;
        collect(condition, bits);
        inputs.of_conditions.insert(bits.data.begin(), bits.data.end());
        i += 3 + condition.size();
      } else if (is_name(value[i])) {
        add_input(value, i, inputs);
      }
    }
  }

  void add_input(const Tokens& value, size_t i, Inputs& inputs) const {
    constexpr int64_t kMostCompared = 8;
    const std::string& name = value[i];
    size_t next = i + 1;
    if (next < value.size() && value[next] == "[")
      next =
          static_cast<size_t>(std::find(value.begin() + static_cast<int64_t>(i), value.end(), "]") -
                              value.begin()) +
          1;
    const bool compared = next < value.size() && (value[next] == "==" || value[next] == "<");
    const auto bits = bits_.find(name);
    if (compared && ends_with(name, "_at")) {
      inputs.data.insert(name + " " + value[next + 1]);  // a flip-flop for each place
    } else if (compared && bits != bits_.end()) {
      for (int64_t bit = 0; bit < std::min(bits->second, kMostCompared); ++bit)
        inputs.data.insert(name + " " + std::to_string(bit));
    } else if (wires_.contains(name) && part_of_user(name)) {
      collect(wires_.at(name).value, inputs);
    } else {
      const bool first = inputs.data.insert(name).second;
      if (first && name[0] == 'm' && (ends_with(name, "_q") || ends_with(name, "_qw")))
        ++inputs.banks;
    }
  }

  std::map<std::string, int64_t> bits_;
  std::map<std::string, Wire> wires_;
  std::vector<std::string> order_;
  std::vector<Tokens> modules_;  ///< and lines of controls
  std::map<std::string, std::string> same_;
  std::map<std::string, int64_t> users_;
  std::set<std::string> seen_;  ///< conditions
  int64_t register_bits_ = 0, places_ = 0, controls_ = 0;
};

}  // namespace

accel::Cells kernel_cells(const std::string& kernel) { return KernelReader(kernel).count(); }

}  // namespace tilewright::fpga::rtl
