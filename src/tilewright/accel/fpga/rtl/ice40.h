// A design on an iCE40 UltraPlus, as far as open tools go: Yosys makes cells of it, nextpnr places
// and routes them, icepack writes the bitstream. The cells that Yosys made are run here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/fpga/rtl/board.h"
#include "tilewright/base/tool_version.h"

namespace tilewright::fpga {

extern const ToolNeed kNextpnrIce40;
/// Has no option that tells its version.
inline constexpr const char* kIcepack = "icepack";

/// Cells after synthesis.
struct Ice40Cells {
  int64_t luts = 0, ffs = 0, carries = 0;
  int64_t dsps = 0;    ///< SB_MAC16
  int64_t blocks = 0;  ///< of RAM, of 4 Kbit each
  int64_t rams = 0;    ///< of 32 KiB
  friend bool operator==(const Ice40Cells&, const Ice40Cells&) = default;
};
/// What a UP5K has. source: iCE40 UltraPlus family data sheet (FPGA-DS-02008), table 1.1.
inline constexpr Ice40Cells kUp5k = {5280, 5280, 5280, 8, 30, 4};

/// The cells in what Yosys' `stat` prints.
Ice40Cells cells_of_stat(std::string_view stat);
/// Fails with Capacity where they are more than there are. errors: Capacity.
Status check_cells(const Ice40Cells& cells, const Ice40Cells& there = kUp5k);

/// Of nextpnr's report (JSON): the slowest clock, and how many of each kind of place are taken.
struct RouteReport {
  double mhz = 0;
  struct Places {
    std::string kind;  ///< `ICESTORM_LC`: a LUT, a flip-flop and a carry each
    int64_t used = 0, there = 0;
  };
  std::vector<Places> places;
};
/// errors: Tool (it is none).
Result<RouteReport> read_route_report(std::string_view json);

struct Bitstream {
  std::string bytes;    ///< of the file that a programmer takes
  std::string netlist;  ///< the cells that were placed (JSON)
  Ice40Cells cells;
  RouteReport route;
  double synthesis_seconds = 0, routing_seconds = 0;
};
struct BitstreamOptions {
  double clock_mhz = 24;  ///< to be reached
  std::string pins;       ///< which pin is clk, rx and tx (PCF); empty: kDefaultPins
  double limit_seconds = 600;
  /// Gets the netlist in a thread of its own while it is placed and routed; may be empty.
  std::function<void(const std::string&)> beside;
};
/// source: constraints of the iCEBreaker board, whose clock is pin 35 and whose USB bridge is 6, 9.
inline constexpr const char* kDefaultPins = "set_io clk 35\nset_io rx 6\nset_io tx 9\n";

/// `verilog`: of board_verilog. errors: Tool (one is missing, too old, killed or fails, with its
/// last lines); Limit (time); Capacity (it does not fit, or is too slow); Interrupted; Io.
Result<Bitstream> make_bitstream(const std::string& verilog, const BitstreamOptions& options);
/// The cells and their netlist alone, neither placed nor routed. errors: the same.
Result<Bitstream> synthesise_board(const std::string& verilog, double limit_seconds);

/// What the host sees of a run.
struct BoardRun {
  int64_t cycles = 0;        ///< of the design
  int64_t clock_cycles = 0;  ///< of all, with what moves over the wires
  double seconds = 0;        ///< that the simulation took
};
/// Loads the arguments, runs and reads those that `writes` names, all over the two wires of the
/// board's netlist, cell by cell (ice40_netlist.h).
/// errors: Tool, Unsupported (of the netlist); Limit (it does not answer); Interrupted.
Result<BoardRun> run_board(std::string_view netlist, const std::vector<bool>& writes,
                           int64_t max_cycles, std::vector<std::string>& arguments);

}  // namespace tilewright::fpga
