// A netlist of iCE40 cells, as Yosys writes it (JSON) and nextpnr takes it, run cycle by cycle.
//
// Bits are 0 or 1, and all registers have one clock. Between two edges look-up tables, carries and
// multipliers of which an input changed are computed, in an order in which each comes behind what
// it reads; at the edge registers and memories take what is there. The cells are those of Yosys's
// models (ice40/cells_sim.v), which a test holds against these.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/fpga/rtl/ice40_cells.h"
#include "tilewright/base/result.h"

namespace tilewright::fpga {

class Ice40Netlist {
 public:
  /// errors: Tool (it is no netlist with such a top), Unsupported (a cell, a second clock or an
  /// asynchronous reset that is not known here; a loop without a register).
  static Result<Ice40Netlist> read(std::string_view json, const std::string& top,
                                   const std::string& clock);

  /// The bits of a port of the top, lowest first; empty: there is no such port.
  std::vector<int> port(const std::string& name) const;
  void set(int bit, bool value) { change(bit, value ? 1 : 0); }
  bool get(int bit) const { return bits_[static_cast<size_t>(bit)] != 0; }
  /// Computes what depends on inputs. After `set`, and before `get`.
  void settle();
  /// An edge of the clock, and what follows from it.
  void tick();
  int64_t cells() const { return static_cast<int64_t>(steps_.size() + registers_.size()); }

 private:
  friend class Ice40Reader;
  /// A look-up table, or a multiplier: then `table` is behind all tables.
  struct Step {
    std::array<int, 4> in = {};
    int out = 0;
    uint32_t table = 0;
  };
  struct Register {
    int d = 0, q = 0, enable = 1, reset = 0;
    bool to_one = false;  ///< by a reset
    uint8_t next = 0;
  };
  template <class T, size_t kIn, size_t kOut>
  struct Block {
    T cell;
    std::array<int, kIn> in = {};
    std::array<int, kOut> out = {};
    bool at_edge = true;  ///< outputs change at edges only
  };
  using Mac = Block<Ice40Mac, Ice40Mac::kIn, Ice40Mac::kOut>;
  static constexpr uint32_t kMac = 1 << 16;

  template <class B>
  void put(const B& block);
  /// Gives a net a value; those that read it are computed anew where it is another one.
  void change(int net, uint8_t value);
  void mark(uint32_t step) { changed_[step / 64] |= uint64_t{1} << step % 64; }
  void compute(const Step& step);
  /// Fills in who reads what; all steps are to be computed once.
  void connect();

  std::vector<uint8_t> bits_;  ///< of each net; 0 and 1 are the constants
  std::vector<Step> steps_;    ///< in order
  /// Steps that read net n are readers_[first_reader_[n]..first_reader_[n + 1]).
  std::vector<uint32_t> readers_, first_reader_;
  std::vector<uint64_t> changed_;    ///< a bit for each step: an input of it changed
  std::vector<uint32_t> mac_steps_;  ///< multipliers whose results depend on inputs
  std::vector<Register> registers_;
  std::vector<Mac> macs_;
  std::vector<Block<Ice40Ram, Ice40Ram::kIn, Ice40Ram::kOut>> rams_;
  std::vector<Block<Ice40Spram, Ice40Spram::kIn, Ice40Spram::kOut>> sprams_;
  std::vector<std::pair<std::string, std::vector<int>>> ports_;
};

}  // namespace tilewright::fpga
