// The generator of the top module. Internal.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/accel/fpga/pairs.h"
#include "tilewright/accel/fpga/rtl/rtl.h"

namespace tilewright::fpga::rtl {

/// A whole number of the design in the Verilog: the wire that has it, and what it may be.
struct Value {
  std::string wire;
  Number type{Number::Kind::Signed, 32};
  int64_t low = INT32_MIN, high = INT32_MAX;
  bool is_constant() const { return low == high; }
};

/// An access to a bank: when its address is there, and what it writes.
struct BankUse {
  int process = 0;
  std::string valid, word, bank;  ///< bank: expression, empty if `fixed_bank` says it
  int64_t fixed_bank = 0;
  std::string data;  ///< stores only
};

/// A row of a stream as expressions, and the bits of each.
struct RowText {
  int address_bits = 32, clip_bits = 32, beats_bits = 31;
  std::string address, groups, clip, limit;
};

/// One control of a process: of its data or of its requests.
struct ControlText {
  std::string prefix;  ///< `p0` or `p0q`
  int process = 0;
  bool data = true;
  Process program;
  std::vector<int> state;  ///< of each item; of a LoopBegin: the first state inside
  std::vector<int> loop;   ///< of LoopBegin and LoopEnd: number of the loop
  std::vector<int64_t> loop_extents;
  std::vector<std::vector<int>> around;  ///< of each item: loops around it
  int states = 0;
};

/// Whether node `n` is a product of floats that are narrower ones, widened: a small multiplier
/// takes these as they are. Example: f32(x) * f32(w) of bf16 has 8 by 8 digits instead of 24 by 24.
bool is_narrow_product(const Nest& nest, size_t n);
/// Of each node whether only narrow products use it, so that it need not be there.
std::vector<bool> widened_in_products(const Nest& nest);
/// The product `node` of two factors of the narrower type `of`.
std::string narrow_product(const std::string& name, const Node& node, const Number& of,
                           const std::string& a, const std::string& b);

class Generator {
 public:
  Generator(const Design& design, Numbers numbers) : design_(design), numbers_(numbers) {}
  Verilog run();

 private:
  // generator.cc
  void add(const std::string& line) { body_ += "  " + line + "\n"; }
  std::string word(int64_t value, int bits = 32);
  Value number(int64_t value);
  int width(int64_t low, int64_t high) const;
  ControlText control_of(size_t process, bool data) const;
  void emit_control(const ControlText& control);
  int loop_bits(const ControlText& control, int loop) const;
  void emit_state(const ControlText& control, size_t item);
  void emit_counts(const ControlText& control);
  void emit_bank(size_t memory, int bank);
  std::string read_address(size_t memory, int bank, int process) const;
  std::string in_block(const Memory& memory, const std::string& slot,
                       const std::string& word) const;
  std::string ports_text() const;
  std::string connections_text() const;

  // nest.cc
  void emit_nest(const ControlText& control, size_t item);
  void emit_requests(const ControlText& control, size_t item);
  int emit_counters(const std::string& name, const std::vector<int64_t>& levels);
  Value affine(const ControlText& control, size_t item, const Affine& affine, int most_bits = 32);
  std::string affine_module(const ControlText& control, size_t item, const Affine& affine,
                            int bits);
  std::string in_ranges(const ControlText& control, size_t item, const std::vector<Range>& ranges);
  std::string is_last_in(const ControlText& control, size_t item, const Range& range);
  RowText row_text(const ControlText& control, size_t item);
  std::string delayed(const std::string& wire, int bits, int cycles);
  std::string input_of(const Nest& nest, const NestTimes& times, size_t n, int input);
  Value delayed(const Value& value, int cycles);
  bool emit_in_pair(const ControlText& control, size_t item, const NestTimes& times, size_t n);
  std::string emit_node(const ControlText& control, size_t item, const NestTimes& times, size_t n);
  std::string emit_read(const ControlText& control, size_t item, const Node& node, int issue);
  void emit_stores(const ControlText& control, size_t item, const NestTimes& times);
  void emit_stream(const ControlText& control, size_t item);
  void emit_writes(const ControlText& control, size_t item, const NestTimes& times);
  // operators.cc
  std::string emit_operator(const std::string& name, const Nest& nest, const Node& node,
                            const std::vector<std::string>& inputs);

  const Design& design_;
  Numbers numbers_;
  std::string body_;
  std::vector<uint32_t> table_;
  int names_ = 0;
  std::map<std::pair<std::string, int>, std::string> delays_;
  std::map<std::string, Value> affines_;  ///< by nest and value; only where numbers are fixed
  std::vector<std::string> values_;       ///< wires of the nest at work, by node
  std::vector<ProductPair> pairs_;        ///< of that nest
  std::vector<std::vector<BankUse>> reads_, stores_;  ///< by memory
  std::vector<std::string> ended_, quiet_;
};

/// What names of a nest begin with.
std::string nest_name(const ControlText& control, size_t item);
/// requires: the item is a nest.
const Nest& nest_of(const ControlText& control, size_t item);
/// Extents of the counters that the hardware of this control has, outermost first.
std::vector<int64_t> levels_of(const ControlText& control, const Nest& nest);
/// requires: a power of two.
int log2_of(int power);
/// The place of a control in its program, as a constant.
std::string state_text(const ControlText& control, int state);
/// Bits that tell `values` from each other, at least one.
int bits_for(int64_t values);
/// The value as an expression of exactly `bits` bits: cut off, or extended by its own sign.
std::string sized(const Value& value, int bits);
/// `wire` with `width` bits, extended by its own sign.
std::string extended(const std::string& wire, const Number& from, int width);

}  // namespace tilewright::fpga::rtl
