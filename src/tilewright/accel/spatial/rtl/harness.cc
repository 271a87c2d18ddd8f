// C++ text around the verilated model: the memory and the loop over cycles, behind a C interface.
#include "tilewright/accel/spatial/rtl/harness.h"

namespace tilewright::spatial::rtl {

const char* const kHarness = R"cc(
#include <algorithm>
#include <cstring>

#include "Vspatial.h"
#include "verilated.h"

  namespace {

  struct Burst {
    uint64_t address = 0, bytes = 0, first = 0;  // first: earliest cycle of its first beat
    bool there = false;
  };

  struct Model {
    VerilatedContext context;
    Vspatial top{&context};
    int latency = 0, gap = 0;
    spatial_dram dram{};
    Burst moving, waiting;
    uint64_t free = 0;  // the port's data side
    uint64_t write_address = 0;
    const unsigned char* insns = nullptr;
    uint64_t insn_bytes = 0, fetched = 0;
    bool outside = false;
    uint64_t outside_address = 0;
    uint64_t cycle = 0, last_activity = 0;
    spatial_event* events = nullptr;
    uint64_t n_events = 0, ended = 0;
    int executing = 0;

    unsigned char* at(uint64_t address) {
      if (address >= dram.base && address - dram.base < dram.size)
        return dram.bytes + (address - dram.base);
      if (!outside) outside_address = address;
      outside = true;
      return nullptr;
    }

    void drive() {
      if (!moving.there && waiting.there && cycle >= std::max(waiting.first, free)) {
        moving = waiting;
        waiting.there = false;
      }
      top.r_valid = moving.there;
      unsigned char data[kBus] = {};
      if (moving.there)
        for (uint64_t i = 0; i < std::min<uint64_t>(kBus, moving.bytes); ++i)
          if (const unsigned char* byte = at(moving.address + i)) data[i] = *byte;
      std::memcpy(&top.r_data, data, kBus);
      top.ar_ready = !waiting.there;
      top.i_valid = cycle >= uint64_t(latency) && fetched < insn_bytes;
      if (top.i_valid) std::memcpy(&top.i_data, insns + fetched, kBus);
    }

    void observe() {
      if (top.i_valid && top.i_ready) {
        fetched += kBus;
        last_activity = cycle;
      }
      if (top.r_valid && top.r_ready) {
        moving.address += kBus;
        moving.bytes -= std::min<uint64_t>(kBus, moving.bytes);
        if (moving.bytes == 0) {
          moving.there = false;
          free = cycle + 1 + gap;
        }
      }
      if (top.ar_valid && top.ar_ready) {
        waiting.address = top.ar_addr;
        waiting.bytes = top.ar_bytes;
        waiting.first = cycle + latency;
        waiting.there = true;
      }
      if (top.aw_valid) write_address = top.aw_addr;
      if (top.w_valid) {
        unsigned char data[kBus];
        std::memcpy(data, &top.w_data, kBus);
        for (unsigned i = 0; i < top.w_bytes; ++i, ++write_address)
          if (unsigned char* byte = at(write_address)) *byte = data[i];
      }
      const unsigned begins = top.trace_begin, ends = top.trace_end;
      for (int queue = 0; queue < 3; ++queue) {
        if (begins >> queue & 1) event(queue, 0);
        if (ends >> queue & 1) event(queue, 1);
      }
    }

    void event(int queue, int end) {
      executing += end ? -1 : 1;
      ended += end;
      last_activity = cycle;
      events[n_events++] = {cycle, queue, end};
    }

    void tick(bool launched) {
      if (launched) drive();
      top.clk = 0;
      top.eval();
      if (launched) observe();
      top.clk = 1;
      top.eval();
      ++cycle;
    }

    void begin() {
      moving = waiting = {};
      free = fetched = n_events = ended = last_activity = 0;
      executing = 0;
      outside = false;
      top.i_valid = top.r_valid = 0;
      top.reset = 1;
      for (int i = 0; i < 4; ++i) tick(false);
      top.reset = 0;
      cycle = 0;
    }
  };

  }  // namespace

  extern "C" {

  void* spatial_create(int latency, int gap) {
    Model* model = new Model;
    model->latency = latency;
    model->gap = gap;
    return model;
  }

  void spatial_destroy(void* handle) { delete static_cast<Model*>(handle); }

  void spatial_launch(void* handle, spatial_dram dram, const unsigned char* insns,
                      uint64_t insn_bytes, uint64_t count, uint64_t max_cycles, uint64_t patience,
                      spatial_event* events, spatial_result* result) {
    Model& m = *static_cast<Model*>(handle);
    m.dram = dram;
    m.insns = insns;
    m.insn_bytes = insn_bytes;
    m.events = events;
    m.begin();
    std::memset(result, 0, sizeof *result);
    result->outcome = SPATIAL_FINISHED;
    while (m.ended < count) {
      m.tick(true);
      if (m.outside) result->outcome = SPATIAL_OUTSIDE;
      if (m.cycle >= max_cycles) result->outcome = SPATIAL_MAX_CYCLES;
      if (m.executing == 0 && m.cycle > m.last_activity + patience)
        result->outcome = SPATIAL_DEADLOCK;
      if (result->outcome != SPATIAL_FINISHED) break;
    }
    result->cycles = m.cycle;
    // Tokens that are still on their way.
    for (uint64_t i = 0; i < patience && result->outcome == SPATIAL_FINISHED; ++i) m.tick(true);
    result->tokens = m.top.tokens;
    result->waiting = m.top.waiting;
    result->outside = m.outside_address;
    result->events = m.n_events;
  }

  }  // extern "C"
)cc";

}  // namespace tilewright::spatial::rtl
