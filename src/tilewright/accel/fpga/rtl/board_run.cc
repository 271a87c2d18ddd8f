// A board under Verilator: C++ text that plays the host on its two wires.
#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "tilewright/accel/common/rtl/model.h"
#include "tilewright/accel/fpga/rtl/ice40.h"
#include "tilewright/base/file.h"
#include "tilewright/base/process.h"

namespace tilewright::fpga {
namespace {

constexpr const char* kHost = R"cc(
#include <cstdint>

#include "Vice40_top.h"
#include "verilated.h"

  namespace {

  struct Board {
    VerilatedContext context;
    Vice40_top top{&context};
    uint64_t cycle = 0, most = 0;

    void tick() {
      top.clk = 0;
      top.eval();
      top.clk = 1;
      top.eval();
      ++cycle;
    }
    void bit(int value) {
      top.rx = value;
      for (int i = 0; i < kDivide; ++i) tick();
    }
    void send(unsigned byte) {
      bit(0);
      for (int i = 0; i < 8; ++i) bit(byte >> i & 1);
      bit(1);
    }
    void number(unsigned value) {
      send(value & 255);
      send(value >> 8);
    }
    // Waits for a start bit, then looks at the middle of each bit; -1: it did not come, or not
    // whole.
    int receive() {
      while (top.tx)
        if (cycle < most)
          tick();
        else
          return -1;
      for (int i = 0; i < kDivide / 2; ++i) tick();
      unsigned byte = 0;
      for (int b = 0; b < 9; ++b) {
        for (int i = 0; i < kDivide; ++i) tick();
        byte |= unsigned(top.tx) << b;
      }
      return byte & 256 ? int(byte & 255) : -1;
    }
  };

  }  // namespace

  extern "C" int board_run(unsigned char* const* bytes, const uint32_t* words, const int* writes,
                           uint32_t count, uint64_t most, uint64_t* cycles) {
    Board board;
    board.top.rx = 1;
    for (int i = 0; i < 4 * kDivide; ++i) board.tick();
    for (uint32_t a = 0; a < count; ++a) {
      if (writes[a]) continue;
      board.send(1);
      board.number(a * kWords);
      board.number(words[a]);
      for (uint32_t i = 0; i < 2 * words[a]; ++i) board.send(bytes[a][i]);
    }
    board.send(3);
    board.most = board.cycle + most;
    *cycles = 0;
    for (int i = 0; i < 4; ++i) {
      const int byte = board.receive();
      if (byte < 0) return 1;
      *cycles |= uint64_t(byte) << (8 * i);
    }
    for (uint32_t a = 0; a < count; ++a) {
      if (!writes[a]) continue;
      board.send(2);
      board.number(a * kWords);
      board.number(words[a]);
      for (uint32_t i = 0; i < 2 * words[a]; ++i) {
        board.most = board.cycle + 100 * kDivide;
        const int byte = board.receive();
        if (byte < 0) return 1;
        bytes[a][i] = static_cast<unsigned char>(byte);
      }
    }
    return 0;
  }
)cc";

using BoardFunction = int (*)(unsigned char* const*, const uint32_t*, const int*, uint32_t,
                              uint64_t, uint64_t*);

/// The RAM of 32 KiB as Yosys models it for simulation: of a file beside its program.
Result<std::string> ram_model() {
  std::error_code ignored;
  const std::filesystem::path yosys =
      std::filesystem::canonical(find_program(kYosys.name), ignored);
  const std::string cells =
      TW_TRY(read_file(yosys.parent_path().parent_path() / "share/yosys/ice40/cells_sim.v"));
  constexpr std::string_view kEnd = "endmodule\n";
  const size_t begin = cells.find("module SB_SPRAM256KA ("), end = cells.find(kEnd, begin);
  if (begin == std::string::npos || end == std::string::npos)
    return fail(ErrorKind::Tool, "Yosys has no model of SB_SPRAM256KA", {},
                "install a newer yosys");
  return cells.substr(begin, end + kEnd.size() - begin);
}

}  // namespace

Result<BoardRun> run_board(const std::string& verilog, const std::vector<bool>& writes,
                           int64_t max_cycles, std::vector<std::string>& arguments) {
  const std::string host =
      fmt::format("constexpr int kDivide = {};\nconstexpr unsigned kWords = {};\n{}", kBoardDivide,
                  kBoardWords, kHost);
  const std::string path =
      TW_TRY(accel::compiled({kBoardTop, verilog + TW_TRY(ram_model()), host}));
  const std::shared_ptr<void> library(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL),
                                      [](void* opened) {
                                        if (opened != nullptr) ::dlclose(opened);
                                      });
  const auto run = library == nullptr
                       ? nullptr
                       : reinterpret_cast<BoardFunction>(::dlsym(library.get(), "board_run"));
  if (run == nullptr)
    return fail(ErrorKind::Tool, fmt::format("cannot load the model '{}'", path), ::dlerror(),
                "delete this folder; it is compiled again");
  std::vector<std::string> padded;  // to whole words
  std::vector<unsigned char*> bytes;
  std::vector<uint32_t> words;
  std::vector<int> given;
  for (const std::string& argument : arguments) padded.push_back(argument + '\0');
  for (size_t a = 0; a < arguments.size(); ++a) {
    bytes.push_back(reinterpret_cast<unsigned char*>(padded[a].data()));
    words.push_back(static_cast<uint32_t>((arguments[a].size() + 1) / 2));
    given.push_back(writes[a] ? 1 : 0);
  }
  uint64_t cycles = 0;
  const auto begin = std::chrono::steady_clock::now();
  const int status =
      run(bytes.data(), words.data(), given.data(), static_cast<uint32_t>(arguments.size()),
          static_cast<uint64_t>(max_cycles), &cycles);
  if (status != 0)
    return fail(ErrorKind::Limit, "the board does not answer",
                fmt::format("within {} cycles", max_cycles));
  for (size_t a = 0; a < arguments.size(); ++a)
    arguments[a].assign(padded[a], 0, arguments[a].size());
  BoardRun out;
  out.cycles = static_cast<int64_t>(cycles);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace tilewright::fpga
