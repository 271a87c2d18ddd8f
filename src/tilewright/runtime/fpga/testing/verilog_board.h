// For tests: Verilog under Verilator as a board, reached by nothing but its AXI ports. A read or
// write of a register is a transfer of AXI4-Lite; between two of them the design runs on.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/accel/common/rtl/model.h"
#include "tilewright/accel/fpga/rtl/axi_top.h"
#include "tilewright/accel/fpga/rtl/harness.h"
#include "tilewright/runtime/fpga/board.h"

namespace tilewright::runtime::testing {

inline constexpr const char* kBoardFunctions = R"cc(
  // The registers' side: what was seen in a cycle, before its edge.
  struct BoardModel : Model {
    int64_t now = 0;
    fpga_argument all{};
    bool taken = false, answered = false;
    void step() {
      memory.begin(now++);
      drive();
      top.clk = 0;
      top.eval();
      observe();
      taken = (top.s_awvalid && top.s_awready && top.s_wready) || (top.s_arvalid && top.s_arready);
      answered = (top.s_bvalid && top.s_bready) || (top.s_rvalid && top.s_rready);
      data = top.s_rdata;
      top.clk = 1;
      top.eval();
    }
    uint32_t data = 0;
    void until(bool& seen, const char* what) {
      for (int i = 0; i < 1000; ++i) {
        step();
        if (seen) return;
      }
      wrong(-1, what);
    }
  };
  }  // namespace

  extern "C" {

  void* board_create(unsigned char* memory, uint64_t bytes, uint64_t address, const fpga_memory* t) {
    BoardModel* m = new BoardModel;
    std::vector<MemoryPort> ports(kPorts);
    for (int p = 0; p < kPorts; ++p) {
      ports[p].writes = kWrites[p];
      ports[p].channel = kChannels[p];
    }
    m->memory = MemoryModel({t->read_latency, t->write_latency, t->write_beat, t->write_gap,
                             t->read_cost, t->write_cost, t->stall_percent, t->seed},
                            ports);
    m->all = {memory, bytes};
    m->arguments = &m->all;
    m->count = 1;
    m->origin = address;
    m->top.s_bready = m->top.s_rready = 1;
    m->top.ap_rst_n = 0;
    for (int i = 0; i < 4; ++i) m->step();
    m->top.ap_rst_n = 1;
    m->step();
    return m;
  }
  void board_destroy(void* handle) { delete static_cast<BoardModel*>(handle); }
  void board_write(void* handle, uint32_t offset, uint32_t value) {
    BoardModel& m = *static_cast<BoardModel*>(handle);
    m.top.s_awvalid = m.top.s_wvalid = 1;
    m.top.s_awaddr = offset;
    m.top.s_wdata = value;
    m.until(m.taken, "a write of a register is not taken");
    m.top.s_awvalid = m.top.s_wvalid = 0;
    m.until(m.answered, "a write of a register is not answered");
  }
  uint32_t board_read(void* handle, uint32_t offset, uint32_t cycles) {
    BoardModel& m = *static_cast<BoardModel*>(handle);
    for (uint32_t i = 0; i < cycles; ++i) m.step();
    m.top.s_arvalid = 1;
    m.top.s_araddr = offset;
    m.until(m.taken, "a read of a register is not taken");
    m.top.s_arvalid = 0;
    m.until(m.answered, "a read of a register is not answered");
    return m.data;
  }
  const char* board_problem(void* handle) {
    return static_cast<BoardModel*>(handle)->problem.c_str();
  }

  }  // extern "C"
)cc";

class VerilogBoard final : public Board {
 public:
  /// `address`: of the memory, as the design sees it. errors: Tool.
  static Result<std::unique_ptr<VerilogBoard>> make(const fpga::rtl::HarnessTop& top,
                                                    const std::string& verilog, uint64_t bytes,
                                                    uint64_t address) {
    const std::string path =
        TW_TRY(accel::compiled({top.module, verilog, fpga::rtl::harness_of(top, kBoardFunctions)}));
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return fail(ErrorKind::Tool, "cannot load the model", ::dlerror());
    std::unique_ptr<VerilogBoard> board(new VerilogBoard(library, bytes, address));
    return board;
  }
  /// With the names that axi_top gives.
  static Result<std::unique_ptr<VerilogBoard>> make(const fpga::Design& design, uint64_t bytes,
                                                    uint64_t address,
                                                    fpga::Numbers numbers = fpga::Numbers::Fixed) {
    fpga::rtl::HarnessTop top;
    top.module = fpga::kAxiTop;
    top.clock = "ap_clk";
    top.control = "s_axi_control_";
    for (size_t p = 0; p < design.ports.size(); ++p)
      top.ports.push_back(
          {"m_axi_gmem" + std::to_string(p), design.ports[p].writes, design.ports[p].channel});
    top.beat_bytes = design.bus.beat_bytes;
    top.burst_beats = design.bus.burst_beats;
    return make(top, fpga::verilog(design, numbers).text + fpga::axi_top(design, numbers), bytes,
                address);
  }
  ~VerilogBoard() override {
    find<void(void*)>("board_destroy")(model_);
    ::dlclose(library_);
  }

  std::string name() const override { return "the Verilog"; }
  Status write(uint32_t offset, uint32_t value) override {
    write_(model_, offset, value);
    return problem();
  }
  Result<uint32_t> read(uint32_t offset) override {
    const uint32_t value = read_(model_, offset, kCyclesBetween);
    TW_TRY_STATUS(problem());
    return value;
  }
  BoardMemory memory() const override {
    return {const_cast<char*>(memory_.data()), memory_.size(), address_};
  }

 private:
  static constexpr uint32_t kCyclesBetween = 50;

  VerilogBoard(void* library, uint64_t bytes, uint64_t address)
      : library_(library), memory_(bytes, '\0'), address_(address) {
    using Create = void*(unsigned char*, uint64_t, uint64_t, const fpga::rtl::abi::fpga_memory*);
    fpga::rtl::abi::fpga_memory timing{20, 10, 1, 2, 65536, 65536, 30, 7};  // 30 % of cycles stall
    model_ = find<Create>("board_create")(reinterpret_cast<unsigned char*>(memory_.data()), bytes,
                                          address, &timing);
    write_ = find<void(void*, uint32_t, uint32_t)>("board_write");
    read_ = find<uint32_t(void*, uint32_t, uint32_t)>("board_read");
  }
  template <class F>
  F* find(const char* function) const {
    return reinterpret_cast<F*>(::dlsym(library_, function));
  }
  Status problem() const {
    const std::string text = find<const char*(void*)>("board_problem")(model_);
    if (!text.empty()) return fail(ErrorKind::Invalid, text);
    return {};
  }

  void* library_;
  std::string memory_;
  uint64_t address_;
  void* model_ = nullptr;
  void (*write_)(void*, uint32_t, uint32_t) = nullptr;
  uint32_t (*read_)(void*, uint32_t, uint32_t) = nullptr;
};

}  // namespace tilewright::runtime::testing
