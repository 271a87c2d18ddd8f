// A board's netlist, with a program that plays the host on its two wires.
#include <fmt/format.h>

#include <chrono>

#include "tilewright/accel/fpga/rtl/ice40.h"
#include "tilewright/accel/fpga/rtl/ice40_netlist.h"
#include "tilewright/base/process.h"

namespace tilewright::fpga {
namespace {

/// The other end of the wires: bytes with a start bit and a stop bit.
class BoardHost {
 public:
  BoardHost(Ice40Netlist& netlist, int rx, int tx) : netlist_(netlist), rx_(rx), tx_(tx) {
    netlist_.set(rx_, true);
    netlist_.settle();
    ticks(4 * kBoardDivide);
  }

  void send(unsigned byte) {
    bit(false);
    for (int i = 0; i < 8; ++i) bit((byte >> i & 1) != 0);
    bit(true);
  }
  void number(unsigned value) {
    send(value & 255);
    send(value >> 8);
  }
  /// Waits for a start bit, at most so many cycles, then looks at the middle of each bit. -1: it
  /// did not come, or not whole.
  int receive(int64_t most) {
    for (; netlist_.get(tx_); --most)
      if (most > 0 && !interrupt_requested)
        ticks(1);
      else
        return -1;
    ticks(kBoardDivide / 2);
    unsigned byte = 0;
    for (int b = 0; b < 9; ++b) {
      ticks(kBoardDivide);
      byte |= (netlist_.get(tx_) ? 1U : 0U) << b;
    }
    return (byte & 256) != 0 ? static_cast<int>(byte & 255) : -1;
  }
  int64_t cycles() const { return cycles_; }

 private:
  void bit(bool value) {
    netlist_.set(rx_, value);
    netlist_.settle();
    ticks(kBoardDivide);
  }
  void ticks(int count) {
    for (int i = 0; i < count && !interrupt_requested; ++i) netlist_.tick();
    cycles_ += count;
  }

  Ice40Netlist& netlist_;
  int rx_, tx_;
  int64_t cycles_ = 0;
};

auto no_answer(int64_t cycles) {
  if (interrupt_requested) return fail(ErrorKind::Interrupted, "interrupted");
  return fail(ErrorKind::Limit, "the board does not answer",
              fmt::format("within {} cycles", cycles));
}

}  // namespace

Result<BoardRun> run_board(std::string_view netlist, const std::vector<bool>& writes,
                           int64_t max_cycles, std::vector<std::string>& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  Ice40Netlist cells = TW_TRY(Ice40Netlist::read(netlist, kBoardTop, "clk"));
  const std::vector<int> rx = cells.port("rx"), tx = cells.port("tx");
  if (rx.size() != 1 || tx.size() != 1)
    return fail(ErrorKind::Tool, "the netlist has no wires for the host", "rx and tx of one bit");
  BoardHost host(cells, rx[0], tx[0]);
  const auto words = [&](size_t a) { return static_cast<unsigned>((arguments[a].size() + 1) / 2); };
  const auto place = [&](size_t a) {
    host.number(static_cast<unsigned>(a * kBoardWords));
    host.number(words(a));
  };
  for (size_t a = 0; a < arguments.size(); ++a) {
    if (writes[a]) continue;
    host.send(1);
    place(a);
    for (size_t i = 0; i < 2 * words(a); ++i)
      host.send(i < arguments[a].size() ? static_cast<unsigned char>(arguments[a][i]) : 0);
  }
  host.send(3);
  BoardRun out;
  for (int i = 0; i < 4; ++i) {
    const int byte = host.receive(max_cycles);
    if (byte < 0) return no_answer(max_cycles);
    out.cycles |= int64_t{byte} << (8 * i);
  }
  for (size_t a = 0; a < arguments.size(); ++a) {
    if (!writes[a]) continue;
    host.send(2);
    place(a);
    for (size_t i = 0; i < 2 * words(a); ++i) {
      constexpr int64_t kMostBetween = 100 * kBoardDivide;
      const int byte = host.receive(kMostBetween);
      if (byte < 0) return no_answer(kMostBetween);
      if (i < arguments[a].size()) arguments[a][i] = static_cast<char>(byte);
    }
  }
  out.clock_cycles = host.cycles();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace tilewright::fpga
