// Cells of the iCE40 UltraPlus with a state of their own: block RAM, RAM of 32 KiB, multiplier.
// source: Yosys 0.23, ice40/cells_sim.v.
//
// Inputs come as bits in the order of `ports()`, each port lowest bit first; outputs likewise.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::fpga {

/// A port of a cell: its name, its bits, and what it is where nothing is connected.
struct Ice40Port {
  const char* name;
  int bits;
  bool otherwise = false;
};
/// Parameters of a cell: as 0 and 1, highest bit first; empty: not given.
using Ice40Parameters = std::function<std::string(const std::string&)>;

/// SB_RAM40_4K: 256 words of 16 bits, or twice as many of half as many, down to two.
class Ice40Ram {
 public:
  static constexpr size_t kIn = 58, kOut = 16;
  static const std::vector<Ice40Port>& inputs();
  static const std::vector<Ice40Port>& outputs();
  static constexpr const char* kClocks[] = {"RCLK", "WCLK"};
  explicit Ice40Ram(const Ice40Parameters& parameters);
  void edge(const std::array<uint8_t, kIn>& in);
  uint64_t out(const std::array<uint8_t, kIn>&) const;

 private:
  int write_mode_ = 0, read_mode_ = 0;
  uint16_t read_ = 0;
  std::array<uint16_t, 256> words_ = {};
};

/// SB_SPRAM256KA: 16384 words of 16 bits, written in parts of 4 bits.
class Ice40Spram {
 public:
  static constexpr size_t kIn = 39, kOut = 16;
  static const std::vector<Ice40Port>& inputs();
  static const std::vector<Ice40Port>& outputs();
  static constexpr const char* kClocks[] = {"CLOCK"};
  explicit Ice40Spram(const Ice40Parameters& parameters);
  void edge(const std::array<uint8_t, kIn>& in);
  uint64_t out(const std::array<uint8_t, kIn>&) const { return read_; }

 private:
  /// What nobody wrote, and what a write leaves at the output, is unknown in the model: here bits
  /// that a design that uses them cannot take for a result.
  static constexpr uint16_t kUnknown = 0xa5c3;
  uint16_t read_ = kUnknown;
  std::vector<uint16_t> words_;
};

/// SB_MAC16: products of 16 or twice 8 bits, and two additions behind them.
class Ice40Mac {
 public:
  static constexpr size_t kIn = 82, kOut = 35;
  static constexpr int kResult = 32;  ///< outputs that are the result; the others chain cells
  static const std::vector<Ice40Port>& inputs();
  static const std::vector<Ice40Port>& outputs();
  static constexpr const char* kClocks[] = {"CLK"};
  explicit Ice40Mac(const Ice40Parameters& parameters);
  /// Whether no bit of the result depends on an input in the same cycle.
  bool registered() const;
  uint64_t out(const std::array<uint8_t, kIn>& in) const { return wires(in).out; }
  void edge(const std::array<uint8_t, kIn>& in);

 private:
  struct Wires;
  struct Values {
    uint16_t a, b, c, d;
    bool enable, a_hold, b_hold, c_hold, d_hold, reset_top, reset_bottom, clear_top, clear_bottom,
        load_top, load_bottom, subtract_top, subtract_bottom, hold_top, hold_bottom, ci, accum_ci,
        sign;
  };
  struct Wires {
    uint16_t f, j, k, g, p, r;  ///< products of halves; what the output registers take
    uint32_t l;                 ///< the whole product
    uint64_t out;
  };
  static Values values(const std::array<uint8_t, kIn>& in);
  Wires wires(const std::array<uint8_t, kIn>& in) const;

  bool c_reg_, a_reg_, b_reg_, d_reg_, top_reg_, bottom_reg_, halves_reg_, whole_reg_, two_,
      a_signed_, b_signed_, top_upper_, bottom_upper_;
  int top_out_, top_lower_, top_carry_, bottom_out_, bottom_lower_, bottom_carry_;
  uint16_t rc_ = 0, ra_ = 0, rb_ = 0, rd_ = 0, rf_ = 0, rj_ = 0, rk_ = 0, rg_ = 0, rq_ = 0, rs_ = 0;
  uint32_t rh_ = 0;
};

}  // namespace tilewright::fpga
