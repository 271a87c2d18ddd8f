// C++ text around the verilated model: the memory behind the AXI ports, the host behind the control
// port, and the rules of the protocol, behind a C interface.
#include "tilewright/accel/fpga/rtl/harness.h"

#include <fmt/format.h>

#include "tilewright/accel/fpga/rtl/parts.h"

namespace tilewright::fpga::rtl {
namespace {

constexpr const char* kBefore = R"cc(
#include <cstdio>
#include <cstring>
#include <string>

#include "Vfpga_top.h"
#include "verilated.h"

  namespace {

  using tilewright_fpga::MemoryModel;
  using tilewright_fpga::MemoryPort;
  constexpr uint64_t kBase = uint64_t{1} << 32;  // between two arguments

  /// A valid signal that waits must stay, and so must what comes with it.
  struct Stable {
    bool waits = false;
    std::string before;
    bool keeps(bool valid, bool ready, const std::string& now) {
      const bool good = !waits || (valid && now == before);
      waits = valid && !ready;
      if (waits) before = now;
      return good;
    }
  };

  struct Model {
    VerilatedContext context;
    Vfpga_top top{&context};
    MemoryModel memory;
    const fpga_argument* arguments = nullptr;
    uint32_t count = 0;
    uint64_t origin = kBase;  // where the first argument begins
    std::string problem;
    Stable asked[kPorts > 0 ? kPorts : 1], moved[kPorts > 0 ? kPorts : 1];

    void wrong(int port, const char* what) {
      if (problem.empty()) problem = "port " + std::to_string(port) + ": " + what;
    }

    unsigned char* byte(uint64_t address) {
      const uint64_t argument = (address - origin) / kBase, offset = (address - origin) % kBase;
      if (argument >= count || offset >= arguments[argument].size) return nullptr;
      return arguments[argument].bytes + offset;
    }

    template <class T>
    void bring(int port, T& data, uint64_t address) {
      unsigned char bytes[kBeat] = {};
      for (int i = 0; i < kBeat; ++i)
        if (const unsigned char* from = byte(address + i)) bytes[i] = *from;
      if (byte(address) == nullptr) wrong(port, "reads outside of the argument");
      std::memcpy(&data, bytes, kBeat);
    }

    template <class T>
    void keep(int port, const T& data, const unsigned char* strobe, uint64_t address) {
      unsigned char bytes[kBeat];
      std::memcpy(bytes, &data, kBeat);
      for (int i = 0; i < kBeat; ++i) {
        if (!(strobe[i / 8] >> (i % 8) & 1)) continue;
        unsigned char* to = byte(address + i);
        if (to == nullptr)
          wrong(port, "writes outside of the argument");
        else
          *to = bytes[i];
      }
    }

    void request(int port, bool valid, bool ready, uint64_t address, int length, int size, int kind) {
      if (!asked[port].keeps(valid, ready, std::to_string(address) + " " + std::to_string(length)))
        wrong(port, "a request changed while it waited");
      if (!valid) return;
      const uint64_t bytes = uint64_t(length + 1) * kBeat;
      if (address / 4096 != (address + bytes - 1) / 4096) wrong(port, "a burst crosses 4 KiB");
      if (address % kBeat != 0 || (1 << size) != kBeat || kind != 1) wrong(port, "an odd burst");
      if (length + 1 > kBurst) wrong(port, "a burst is too long");
      if (ready) memory.request(port, address, length + 1);
    }

    // One cycle of a design that may be at work.
    void cycle(int64_t number) {
      memory.begin(number);
      drive();
      top.clk = 0;
      top.eval();
      observe();
      top.clk = 1;
      top.eval();
    }
    void tick() {
      top.clk = 0;
      top.eval();
      top.clk = 1;
      top.eval();
    }
    void set(uint32_t address, uint32_t value) {
      top.s_awvalid = top.s_wvalid = 1;
      top.s_awaddr = address;
      top.s_wdata = value;
      tick();
      top.s_awvalid = top.s_wvalid = 0;
      if (address != 0) tick();
    }
    uint32_t get(uint32_t address) {
      top.s_arvalid = 1;
      top.s_araddr = address;
      tick();
      top.s_arvalid = 0;
      top.clk = 0;
      top.eval();
      const uint32_t value = top.s_rdata;
      tick();
      return value;
    }

    void drive();
    void observe();
  };
)cc";

constexpr const char* kReadDrive = R"cc(
  top.axiPORT_arready = memory.request_ready(PORT);
  top.axiPORT_rvalid = memory.beat(PORT);
  if (memory.beat(PORT)) {
    bring(PORT, top.axiPORT_rdata, memory.address(PORT));
    top.axiPORT_rlast = memory.last(PORT);
  })cc";
constexpr const char* kReadObserve = R"cc(
  request(PORT, top.axiPORT_arvalid, top.axiPORT_arready, top.axiPORT_araddr, top.axiPORT_arlen,
          top.axiPORT_arsize, top.axiPORT_arburst);
  if (top.axiPORT_rvalid && top.axiPORT_rready) memory.move(PORT, kBeat);)cc";
constexpr const char* kWriteDrive = R"cc(
  top.axiPORT_awready = memory.request_ready(PORT);
  top.axiPORT_wready = memory.beat(PORT);
  top.axiPORT_bvalid = memory.response(PORT);)cc";
constexpr const char* kWriteObserve = R"cc(
  request(PORT, top.axiPORT_awvalid, top.axiPORT_awready, top.axiPORT_awaddr, top.axiPORT_awlen,
          top.axiPORT_awsize, top.axiPORT_awburst);
  {
    unsigned char strobe[(kBeat + 7) / 8];
    std::memcpy(strobe, &top.axiPORT_wstrb, sizeof strobe);
    const std::string now = std::string(reinterpret_cast<const char*>(&top.axiPORT_wdata), kBeat) +
                            std::string(reinterpret_cast<char*>(strobe), sizeof strobe) +
                            (top.axiPORT_wlast ? "l" : "");
    if (!moved[PORT].keeps(top.axiPORT_wvalid, top.axiPORT_wready, now))
      wrong(PORT, "a beat changed while it waited");
    if (top.axiPORT_wvalid && top.axiPORT_wready) {
      if (bool(top.axiPORT_wlast) != memory.last(PORT))
        wrong(PORT, "WLAST is not at the end of the burst");
      keep(PORT, top.axiPORT_wdata, strobe, memory.address(PORT));
      memory.move(PORT, kBeat);
    }
  }
  if (top.axiPORT_bvalid && top.axiPORT_bready) memory.take_response(PORT);)cc";

constexpr const char* kAfter = R"cc(
  }  // namespace

  extern "C" {

  void* fpga_create() { return new Model; }
  void fpga_destroy(void* handle) { delete static_cast<Model*>(handle); }

  void fpga_run(void* handle, const fpga_memory* t, const fpga_argument* arguments, uint32_t count,
                const uint32_t* table, uint32_t numbers, uint64_t max_cycles, fpga_result* result) {
    Model& m = *static_cast<Model*>(handle);
    std::vector<MemoryPort> ports(kPorts);
    for (int p = 0; p < kPorts; ++p) {
      ports[p].writes = kWrites[p];
      ports[p].channel = kChannels[p];
    }
    m.memory = MemoryModel({t->read_latency, t->write_latency, t->write_beat, t->write_gap,
                            t->read_cost, t->write_cost, t->stall_percent, t->seed},
                           ports);
    m.arguments = arguments;
    m.count = count;
    m.problem.clear();
    for (Stable& s : m.asked) s = {};
    for (Stable& s : m.moved) s = {};
    m.top.s_bready = m.top.s_rready = 1;
    m.top.reset = 1;
    for (int i = 0; i < 4; ++i) m.tick();
    m.top.reset = 0;
    for (uint32_t a = 0; a < count; ++a) {
      m.set(16 + 12 * a, 0);
      m.set(20 + 12 * a, a + 1);
    }
    for (uint32_t n = 0; n < numbers; ++n) m.set(4096 + 4 * n, table[n]);
    m.set(0, 1);
    uint64_t cycle = 0;
    for (; m.top.busy && cycle < max_cycles && m.problem.empty(); ++cycle) m.cycle(int64_t(cycle));
    result->late = cycle >= max_cycles;
    result->cycles = m.get(0x400) | uint64_t(m.get(0x404)) << 32;
    std::snprintf(result->problem, sizeof result->problem, "%s", m.problem.c_str());
  }

  }  // extern "C"
)cc";

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::string for_port(std::string text, const std::string& name, size_t port) {
  replace_all(text, "axiPORT", name);
  replace_all(text, "PORT", std::to_string(port));
  return text;
}

}  // namespace

std::string harness_of(const HarnessTop& top, std::string_view functions) {
  std::string drive, observe, writes, channels;
  for (size_t p = 0; p < top.ports.size(); ++p) {
    const HarnessPort& port = top.ports[p];
    drive += for_port(port.writes ? kWriteDrive : kReadDrive, port.name, p);
    observe += for_port(port.writes ? kWriteObserve : kReadObserve, port.name, p);
    writes += port.writes ? "true, " : "false, ";
    channels += fmt::format("{}, ", port.channel);
  }
  std::string text = fmt::format(
      "#include <cstdint>\n{}\n{}\nconstexpr int kPorts = {}, kBeat = {}, kBurst = {};\n"
      "constexpr bool kWrites[] = {{{}false}};\nconstexpr int kChannels[] = {{{}0}};\n{}\n"
      "void Model::drive() {{{}\n}}\nvoid Model::observe() {{{}\n}}\n{}",
      kAbiText, std::string(kMemoryModel).substr(std::string(kMemoryModel).find("#include")),
      top.ports.size(), top.beat_bytes, top.burst_beats, writes, channels, kBefore, drive, observe,
      functions);
  replace_all(text, "Vfpga_top", "V" + top.module);
  replace_all(text, "top.clk", "top." + top.clock);
  replace_all(text, "top.s_", "top." + top.control);
  return text;
}

std::string harness_of(const Design& design) {
  HarnessTop top;
  for (size_t p = 0; p < design.ports.size(); ++p)
    top.ports.push_back({fmt::format("axi{}", p), design.ports[p].writes, design.ports[p].channel});
  top.beat_bytes = design.bus.beat_bytes;
  top.burst_beats = design.bus.burst_beats;
  return harness_of(top, kAfter);
}

}  // namespace tilewright::fpga::rtl
