// C++ text around the verilated model: the memory and the loop over cycles, behind a C interface.
#include "tilewright/accel/vta/rtl/harness.h"

namespace tilewright::vta::rtl {

const char* const kHarness = R"cc(
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "Vvta.h"
#include "verilated.h"

  namespace {

  struct Burst {
    uint32_t address = 0, beats = 0, client = 0;
    uint64_t first = 0;  // cycle of its first beat
  };

  // Memory with one burst whose beats move and one that waits (docs/vta-timing.md 3).
  struct Memory {
    unsigned char* bytes;
    uint64_t limit;
    int latency, gap;
    Burst moving, waiting;
    bool has_waiting = false;
    uint64_t busy_until = 0;  // the cycle after the last beat of the last burst granted
    bool any = false;
    uint32_t write_address = 0;
    bool acknowledge = false;
    bool outside = false;
    uint64_t outside_address = 0;

    bool in_range(uint64_t address, uint64_t size) {
      if (address + size <= (limit + kBus - 1) / kBus * kBus) return true;
      if (!outside) outside_address = address;
      outside = true;
      return false;
    }
  };

  struct Model {
    VerilatedContext context;
    Vvta top{&context};
    Memory memory;
    uint64_t cycle = 0;
    vta_event* events = nullptr;
    uint64_t max_events = 0, n_events = 0;
    uint64_t last_activity = 0;
    int executing = 0;

    void drive() {
      if (memory.has_waiting && cycle >= memory.waiting.first) {
        memory.moving = memory.waiting;
        memory.has_waiting = false;
      }
      const Burst& burst = memory.moving;
      const bool beat = memory.any && cycle >= burst.first && cycle < burst.first + burst.beats;
      top.r_valid = beat;
      if (beat) {
        const uint64_t address =
            (burst.address & ~uint32_t{kBus - 1}) + (cycle - burst.first) * uint64_t{kBus};
        top.r_client = burst.client;
        if (burst.client == 0 || memory.in_range(address, kBus))
          std::memcpy(&top.r_data, memory.bytes + address, kBus);
        last_activity = cycle;
      }
      top.ar_ready = !memory.has_waiting;
      top.aw_ready = 1;
      top.w_ready = 1;
      top.b_valid = memory.acknowledge;
      memory.acknowledge = false;
    }

    void observe() {
      if (top.ar_valid && top.ar_ready) {
        Burst burst;
        burst.address = top.ar_addr;
        burst.beats = top.ar_beats;
        burst.client = top.ar_client;
        burst.first = cycle + memory.latency;
        if (memory.any) burst.first = std::max(burst.first, memory.busy_until + memory.gap);
        memory.busy_until = burst.first + burst.beats;
        memory.waiting = burst;
        memory.has_waiting = memory.any = true;
        last_activity = cycle;
      }
      if (top.aw_valid && top.aw_ready) memory.write_address = top.aw_addr;
      if (top.w_valid && top.w_ready) write();
      const unsigned begins = top.trace_begin, ends = top.trace_end;
      if ((begins | ends) != 0) {
        last_activity = cycle;
        for (int module = 0; module < 4; ++module) {
          if (begins >> module & 1) event(module, 0);
          if (ends >> module & 1) event(module, 1);
        }
      }
    }

    void event(int module, int end) {
      executing += end ? -1 : 1;
      if (n_events < max_events) events[n_events++] = {cycle, module, end};
    }

    void write() {
      const uint32_t base = memory.write_address & ~uint32_t{kBus - 1};
      unsigned char data[kBus];
      std::memcpy(data, &top.w_data, kBus);
      const uint64_t strobe = top.w_strobe;
      for (int i = 0; i < kBus; ++i)
        if (strobe >> i & 1 && memory.in_range(base + uint64_t(i), 1))
          memory.bytes[base + i] = data[i];
      memory.write_address += kTransfer;
      memory.acknowledge = top.w_last;
      last_activity = cycle;
    }

    void tick() {
      drive();
      top.clk = 0;
      top.eval();
      observe();
      top.clk = 1;
      top.eval();
      ++cycle;
    }

    void write_register(uint32_t address, uint32_t value) {
      top.reg_write = 1;
      top.reg_addr = address;
      top.reg_wdata = value;
      tick();
      top.reg_write = 0;
    }
    uint32_t read_register(uint32_t address) {
      top.reg_addr = address;
      top.eval();
      return top.reg_rdata;
    }
  };

  }  // namespace

  extern "C" {

  void* vta_create(unsigned char* dram, uint64_t limit, int latency, int gap) {
    Model* model = new Model;
    model->memory = {dram, limit, latency, gap};
    model->top.reset = 1;
    for (int i = 0; i < 4; ++i) model->tick();
    model->top.reset = 0;
    model->tick();
    return model;
  }

  void vta_destroy(void* handle) { delete static_cast<Model*>(handle); }

  void vta_launch(void* handle, uint32_t address, uint32_t count, uint64_t max_cycles,
                  uint64_t patience, vta_event* events, uint64_t max_events, vta_result* result) {
    Model& m = *static_cast<Model*>(handle);
    std::memset(result, 0, sizeof *result);
    for (uint32_t base = 0x10; base <= 0x20; base += 4) m.write_register(base, 0);
    m.write_register(0x08, count);
    m.write_register(0x0C, address);
    m.write_register(0x00, 1);
    m.cycle = 0;
    m.memory.any = m.memory.has_waiting = false;
    m.memory.busy_until = 0;
    m.events = events;
    m.max_events = max_events;
    m.n_events = 0;
    m.last_activity = 0;
    m.executing = 0;
    result->outcome = VTA_FINISHED;
    bool finished = false;
    while (true) {
      m.tick();
      finished = finished || m.top.finished;
      if (m.top.error) result->outcome = VTA_ERROR_BIT;
      if (m.memory.outside) result->outcome = VTA_OUTSIDE;
      if (m.cycle >= max_cycles) result->outcome = VTA_MAX_CYCLES;
      if (m.executing == 0 && m.cycle > m.last_activity + patience && !finished)
        result->outcome = VTA_DEADLOCK;
      if (result->outcome != VTA_FINISHED) break;
      // What FINISH did not wait for may still be running; it comes to its end, or to a standstill.
      if (finished && m.executing == 0 && m.cycle > m.last_activity + 16) break;
    }
    result->simulated = m.cycle;
    result->cycles = m.read_register(0x04);
    result->status = m.read_register(0x28);
    result->dispatched = m.read_register(0x2C);
    result->acc_writes = m.read_register(0x24);
    result->outside = m.memory.outside_address;
    result->events = m.n_events;
  }

  }  // extern "C"
)cc";

}  // namespace tilewright::vta::rtl
