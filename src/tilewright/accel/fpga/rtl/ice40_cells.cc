#include "tilewright/accel/fpga/rtl/ice40_cells.h"

#include <algorithm>

namespace tilewright::fpga {
namespace {

/// The number that a parameter is.
int number_of(const Ice40Parameters& parameters, const std::string& name) {
  int value = 0;
  for (const char bit : parameters(name)) value = value << 1 | (bit == '1' ? 1 : 0);
  return value;
}

/// Takes the bits of one port after the other.
template <size_t kIn>
class Bits {
 public:
  explicit Bits(const std::array<uint8_t, kIn>& in) : in_(in) {}
  uint32_t operator()(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) value |= uint32_t{in_[at_++]} << i;
    return value;
  }
  bool bit() { return in_[at_++] != 0; }

 private:
  const std::array<uint8_t, kIn>& in_;
  size_t at_ = 0;
};

/// Bits of a word that an address of a mode does not reach: its upper bits, of which a narrower
/// word has more, choose one of 1, 2, 4 or 8 neighbours.
uint16_t mask_of(int mode, uint32_t upper) {
  uint16_t mask = 0;
  for (uint32_t bit = 0; bit < 16; ++bit)
    if (((bit ^ upper) & ((1U << mode) - 1)) != 0) mask = static_cast<uint16_t>(mask | 1 << bit);
  return mask;
}

uint16_t from_sign(bool is_signed, uint16_t byte) {
  return static_cast<uint16_t>(is_signed && (byte & 0x80) != 0 ? byte | 0xff00 : byte);
}
uint32_t wide(bool is_signed, uint16_t half) {
  return is_signed && (half & 0x8000) != 0 ? half | 0xff0000U : half;
}

}  // namespace

// --- SB_RAM40_4K ---

const std::vector<Ice40Port>& Ice40Ram::inputs() {
  static const std::vector<Ice40Port> kPorts = {{"RCLKE", 1, true}, {"RE", 1},    {"RADDR", 11},
                                                {"WCLKE", 1, true}, {"WE", 1},    {"WADDR", 11},
                                                {"MASK", 16},       {"WDATA", 16}};
  return kPorts;
}
const std::vector<Ice40Port>& Ice40Ram::outputs() {
  static const std::vector<Ice40Port> kPorts = {{"RDATA", 16}};
  return kPorts;
}

Ice40Ram::Ice40Ram(const Ice40Parameters& parameters)
    : write_mode_(number_of(parameters, "WRITE_MODE")),
      read_mode_(number_of(parameters, "READ_MODE")) {
  for (size_t part = 0; part < 16; ++part) {
    const std::string bits = parameters(std::string("INIT_") + "0123456789ABCDEF"[part]);
    for (size_t i = 0; i < bits.size(); ++i)  // the highest bit is the first
      if (bits[bits.size() - 1 - i] == '1')
        words_[16 * part + i / 16] =
            static_cast<uint16_t>(words_[16 * part + i / 16] | 1 << i % 16);
  }
}

void Ice40Ram::edge(const std::array<uint8_t, kIn>& in) {
  Bits bits(in);
  const bool read_clock = bits.bit(), reads = bits.bit();
  const uint32_t from = bits(11);
  const bool write_clock = bits.bit(), writes = bits.bit();
  const uint32_t to = bits(11);
  const auto mask = static_cast<uint16_t>(bits(16)), data = static_cast<uint16_t>(bits(16));
  if (reads && read_clock)
    read_ = static_cast<uint16_t>(words_[from & 255] & ~mask_of(read_mode_, from >> 8));
  if (!writes || !write_clock) return;
  // Of a narrow word each bit goes to all its places, of which the mask leaves one.
  const int places = 1 << write_mode_, given = write_mode_ == 0 ? 0 : places / 2;
  uint16_t spread = 0;
  for (int bit = 0; bit < 16; ++bit) {
    // Modes 1 to 3 take the bits 0, 2, 4..; 1, 5, 9, 13; 3, 11.
    const int from_bit = write_mode_ == 0 ? bit : bit / places * places + given - 1;
    spread = static_cast<uint16_t>(spread | (data >> from_bit & 1) << bit);
  }
  const uint16_t kept = write_mode_ == 0 ? mask : mask_of(write_mode_, to >> 8);
  uint16_t& word = words_[to & 255];
  word = static_cast<uint16_t>((word & kept) | (spread & ~kept));
}

uint64_t Ice40Ram::out(const std::array<uint8_t, kIn>&) const {
  if (read_mode_ == 0) return read_;
  const int places = 1 << read_mode_;
  uint64_t out = 0;
  for (int bit = 0; bit < 16; bit += places)
    if ((read_ >> bit & ((1 << places) - 1)) != 0) out |= uint64_t{1} << (bit + places / 2 - 1);
  return out;
}

// --- SB_SPRAM256KA ---

const std::vector<Ice40Port>& Ice40Spram::inputs() {
  static const std::vector<Ice40Port> kPorts = {{"ADDRESS", 14}, {"DATAIN", 16},    {"MASKWREN", 4},
                                                {"WREN", 1},     {"CHIPSELECT", 1}, {"STANDBY", 1},
                                                {"SLEEP", 1},    {"POWEROFF", 1}};
  return kPorts;
}
const std::vector<Ice40Port>& Ice40Spram::outputs() {
  static const std::vector<Ice40Port> kPorts = {{"DATAOUT", 16}};
  return kPorts;
}

Ice40Spram::Ice40Spram(const Ice40Parameters&) : words_(16384, kUnknown) {}

void Ice40Spram::edge(const std::array<uint8_t, kIn>& in) {
  Bits bits(in);
  const uint32_t address = bits(14), data = bits(16), mask = bits(4);
  const bool writes = bits.bit(), selected = bits.bit(), standby = bits.bit(), sleep = bits.bit(),
             power = bits.bit();
  if (sleep || !power) {
    read_ = 0;
  } else if (standby) {
    read_ = kUnknown;
  } else if (selected && !writes) {
    read_ = words_[address];
  } else if (selected) {
    for (int part = 0; part < 4; ++part)
      if ((mask >> part & 1) != 0) {
        const uint32_t nibble = 15U << 4 * part;
        words_[address] = static_cast<uint16_t>((words_[address] & ~nibble) | (data & nibble));
      }
    read_ = kUnknown;
  }
}

// --- SB_MAC16 ---

const std::vector<Ice40Port>& Ice40Mac::inputs() {
  static const std::vector<Ice40Port> kPorts = {
      {"A", 16},        {"B", 16},        {"C", 16},       {"D", 16},       {"CE", 1},
      {"AHOLD", 1},     {"BHOLD", 1},     {"CHOLD", 1},    {"DHOLD", 1},    {"IRSTTOP", 1},
      {"IRSTBOT", 1},   {"ORSTTOP", 1},   {"ORSTBOT", 1},  {"OLOADTOP", 1}, {"OLOADBOT", 1},
      {"ADDSUBTOP", 1}, {"ADDSUBBOT", 1}, {"OHOLDTOP", 1}, {"OHOLDBOT", 1}, {"CI", 1},
      {"ACCUMCI", 1},   {"SIGNEXTIN", 1}};
  return kPorts;
}
const std::vector<Ice40Port>& Ice40Mac::outputs() {
  static const std::vector<Ice40Port> kPorts = {
      {"O", 32}, {"CO", 1}, {"ACCUMCO", 1}, {"SIGNEXTOUT", 1}};
  return kPorts;
}

Ice40Mac::Ice40Mac(const Ice40Parameters& parameters) {
  const auto number = [&](const char* name) { return number_of(parameters, name); };
  const std::pair<const char*, bool*> flags[] = {{"C_REG", &c_reg_},
                                                 {"A_REG", &a_reg_},
                                                 {"B_REG", &b_reg_},
                                                 {"D_REG", &d_reg_},
                                                 {"TOP_8x8_MULT_REG", &top_reg_},
                                                 {"BOT_8x8_MULT_REG", &bottom_reg_},
                                                 {"PIPELINE_16x16_MULT_REG1", &halves_reg_},
                                                 {"PIPELINE_16x16_MULT_REG2", &whole_reg_},
                                                 {"MODE_8x8", &two_},
                                                 {"A_SIGNED", &a_signed_},
                                                 {"B_SIGNED", &b_signed_},
                                                 {"TOPADDSUB_UPPERINPUT", &top_upper_},
                                                 {"BOTADDSUB_UPPERINPUT", &bottom_upper_}};
  for (const auto& [name, flag] : flags) *flag = number(name) != 0;
  top_out_ = number("TOPOUTPUT_SELECT");
  top_lower_ = number("TOPADDSUB_LOWERINPUT");
  top_carry_ = number("TOPADDSUB_CARRYSELECT");
  bottom_out_ = number("BOTOUTPUT_SELECT");
  bottom_lower_ = number("BOTADDSUB_LOWERINPUT");
  bottom_carry_ = number("BOTADDSUB_CARRYSELECT");
}

bool Ice40Mac::registered() const {
  const auto half = [this](int select, bool product_reg) {
    return select == 1 || (select == 2 && product_reg) || (select == 3 && whole_reg_);
  };
  return half(top_out_, top_reg_) && half(bottom_out_, bottom_reg_);
}

Ice40Mac::Values Ice40Mac::values(const std::array<uint8_t, kIn>& in) {
  Bits bits(in);
  Values v{};
  for (uint16_t* word : {&v.a, &v.b, &v.c, &v.d}) *word = static_cast<uint16_t>(bits(16));
  for (bool* flag :
       {&v.enable, &v.a_hold, &v.b_hold, &v.c_hold, &v.d_hold, &v.reset_top, &v.reset_bottom,
        &v.clear_top, &v.clear_bottom, &v.load_top, &v.load_bottom, &v.subtract_top,
        &v.subtract_bottom, &v.hold_top, &v.hold_bottom, &v.ci, &v.accum_ci, &v.sign})
    *flag = bits.bit();
  return v;
}

Ice40Mac::Wires Ice40Mac::wires(const std::array<uint8_t, kIn>& in) const {
  const Values v = values(in);
  const uint16_t a = a_reg_ ? ra_ : v.a, b = b_reg_ ? rb_ : v.b, c = c_reg_ ? rc_ : v.c,
                 d = d_reg_ ? rd_ : v.d;
  const uint16_t ah = from_sign(a_signed_, a >> 8), al = from_sign(a_signed_ && two_, a & 255);
  const uint16_t bh = from_sign(b_signed_, b >> 8), bl = from_sign(b_signed_ && two_, b & 255);
  const auto product = [](uint32_t x, uint32_t y) { return static_cast<uint16_t>(x * y); };
  Wires w{};
  w.f = product(ah, bh);
  w.j = product(al & 255, bh);
  w.k = product(ah, bl & 255);
  w.g = product(al, bl);
  const uint16_t f = top_reg_ ? rf_ : w.f, j = halves_reg_ ? rj_ : w.j, k = halves_reg_ ? rk_ : w.k,
                 g = bottom_reg_ ? rg_ : w.g;
  w.l = g + (wide(a_signed_, k) << 8) + (wide(b_signed_, j) << 8) + (uint32_t{f} << 16);
  const uint32_t h = whole_reg_ ? rh_ : w.l;
  const auto chosen = [](int select, uint32_t zero, uint32_t one, uint32_t two, uint32_t three) {
    return static_cast<uint16_t>(select == 0   ? zero
                                 : select == 1 ? one
                                 : select == 2 ? two
                                               : three);
  };
  const auto flipped = [](uint16_t word, bool flip) {
    return static_cast<uint16_t>(flip ? ~word : word);
  };

  const uint16_t y = bottom_upper_ ? d : rs_;
  const uint16_t z = chosen(bottom_lower_, b, g, h, v.sign ? 0xffff : 0);
  const uint32_t low_carry = chosen(bottom_carry_, 0, 1, v.accum_ci, v.ci);
  const uint32_t low = uint32_t{z} + flipped(y, v.subtract_bottom) + low_carry;
  const bool low_out = low >> 16 != 0;
  w.r = v.load_bottom ? d : flipped(static_cast<uint16_t>(low), v.subtract_bottom);

  const uint16_t upper = top_upper_ ? c : rq_;
  const uint16_t x = chosen(top_lower_, a, f, h >> 16, (z & 0x8000) != 0 ? 0xffff : 0);
  const uint32_t high_carry = chosen(top_carry_, 0, 1, low_out, low_out != v.subtract_bottom);
  const uint32_t high = uint32_t{x} + flipped(upper, v.subtract_top) + high_carry;
  const bool accum_out = high >> 16 != 0;
  w.p = v.load_top ? c : flipped(static_cast<uint16_t>(high), v.subtract_top);

  const uint64_t top = chosen(top_out_, w.p, rq_, f, h >> 16),
                 bottom = chosen(bottom_out_, w.r, rs_, g, h);
  w.out = bottom | top << 16 | uint64_t{accum_out != v.subtract_top} << 32 |
          uint64_t{accum_out} << 33 | uint64_t{x >> 15 & 1U} << 34;
  return w;
}

void Ice40Mac::edge(const std::array<uint8_t, kIn>& in) {
  const Values v = values(in);
  const Wires w = wires(in);
  const auto take = [](uint16_t& to, bool when, uint16_t from) {
    if (when) to = from;
  };
  if (v.reset_top) {
    rc_ = ra_ = rf_ = rj_ = 0;
  } else if (v.enable) {
    take(rc_, !v.c_hold, v.c);
    take(ra_, !v.a_hold, v.a);
    rf_ = w.f;
    take(rj_, !two_, w.j);
  }
  if (v.reset_bottom) {
    rb_ = rd_ = rk_ = rg_ = 0;
    rh_ = 0;
  } else if (v.enable) {
    take(rb_, !v.b_hold, v.b);
    take(rd_, !v.d_hold, v.d);
    take(rk_, !two_, w.k);
    rg_ = w.g;
    if (!two_) rh_ = w.l;
  }
  if (v.clear_top)
    rq_ = 0;
  else if (v.enable)
    take(rq_, !v.hold_top, w.p);
  if (v.clear_bottom)
    rs_ = 0;
  else if (v.enable)
    take(rs_, !v.hold_bottom, w.r);
}

}  // namespace tilewright::fpga
