// `vta:rtl`: the generated Verilog under Verilator, as a shared object in the cache.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tilewright/accel/vta/rtl/harness.h"
#include "tilewright/accel/vta/rtl/model.h"
#include "tilewright/accel/vta/rtl/rtl.h"

namespace tilewright::vta {

void rtl::count(const Config& config, const Insn& insn, Counters& counters) {
  ++counters.insns;
  if (const auto* move = std::get_if<Transfer>(&insn.op)) {
    const uint64_t bytes =
        uint64_t{move->x_size} * move->y_size *
        static_cast<uint64_t>(config.element_bytes(move->store ? Mem::Out : move->mem));
    uint64_t* const into[] = {&counters.uop_load_bytes,  &counters.wgt_load_bytes,
                              &counters.inp_load_bytes,  &counters.acc_load_bytes,
                              &counters.out_store_bytes, &counters.acc_load_bytes};
    *into[static_cast<size_t>(move->store ? Mem::Out : move->mem)] += bytes;
  } else if (const auto* gemm = std::get_if<Gemm>(&insn.op)) {
    (gemm->reset ? counters.reset_steps : counters.gemm_steps) += gemm->loops.steps();
  } else if (const auto* alu = std::get_if<Alu>(&insn.op)) {
    (alu->use_imm ? counters.alu_imm_steps : counters.alu_reg_steps) += alu->loops.steps();
  }
}

namespace {

namespace abi = rtl::abi;
constexpr uint64_t kAddressSpace = uint64_t{1} << 32;

struct Functions {
  decltype(&abi::vta_create) create = nullptr;
  decltype(&abi::vta_destroy) destroy = nullptr;
  decltype(&abi::vta_launch) launch = nullptr;
};

/// Anonymous memory that costs nothing until it is touched.
class Dram {
 public:
  static Result<Dram> make(uint64_t bytes) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      return fail(ErrorKind::Capacity, fmt::format("no {} bytes of memory for DRAM", bytes),
                  std::strerror(errno));
    return Dram(static_cast<unsigned char*>(at), bytes);
  }
  Dram(Dram&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Dram& operator=(Dram&&) = delete;
  ~Dram() {
    if (at_ != nullptr) ::munmap(at_, bytes_);
  }
  unsigned char* data() const { return at_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Dram(unsigned char* at, uint64_t bytes) : at_(at), bytes_(bytes) {}
  unsigned char* at_;
  uint64_t bytes_;
};

class RtlDevice : public Device {
 public:
  RtlDevice(const Config& config, uint64_t dram_bytes, std::shared_ptr<void> library,
            Functions functions, Dram dram)
      : config_(config),
        limit_(dram_bytes),
        library_(std::move(library)),
        functions_(functions),
        dram_(std::move(dram)) {}
  ~RtlDevice() override { reset(); }

  std::string name() const override { return "vta:rtl"; }
  const Config& config() const override { return config_; }

  Status write(uint64_t address, std::string_view bytes) override {
    TW_TRY_STATUS(in_range(address, bytes.size()));
    std::memcpy(dram_.data() + address, bytes.data(), bytes.size());
    return {};
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    TW_TRY_STATUS(in_range(address, bytes));
    std::memcpy(into, dram_.data() + address, bytes);
    return {};
  }

  Result<LaunchReport> launch(const std::vector<Insn>& insns,
                              const LaunchOptions& options) override;

 private:
  Status in_range(uint64_t address, uint64_t bytes) const {
    if (bytes <= limit_ && address <= limit_ - bytes) return {};
    return fail(ErrorKind::Invalid, "an access is outside of DRAM",
                fmt::format("{} bytes at 0x{:x}, DRAM has {} bytes", bytes, address, limit_));
  }
  /// Instructions lie behind the DRAM that programs know, at a multiple of a page and a burst.
  uint64_t insn_address() const {
    const uint64_t align =
        std::max<uint64_t>(kPage, static_cast<uint64_t>(config_.timing.max_burst_beats) *
                                      static_cast<uint64_t>(config_.timing.bus_bytes));
    return (limit_ + align - 1) / align * align;
  }
  Status place(const std::vector<Insn>& insns);
  void reset() {
    if (model_ != nullptr) functions_.destroy(model_);
    model_ = nullptr;
  }
  /// No store ends after FINISH.
  Status check_finish(const std::vector<Insn>& insns, const std::vector<abi::vta_event>& events,
                      uint64_t cycles) const;
  /// A model that stopped in the middle has no defined state: the next launch starts a new one.
  Error stopped(const abi::vta_result& result, const std::vector<Insn>& insns,
                const std::vector<abi::vta_event>& events, const LaunchOptions& options);
  std::vector<InsnTime> times(const std::vector<Insn>& insns,
                              const std::vector<abi::vta_event>& events) const;

  Config config_;
  uint64_t limit_;
  std::shared_ptr<void> library_;
  Functions functions_;
  Dram dram_;
  void* model_ = nullptr;
};

Status RtlDevice::place(const std::vector<Insn>& insns) {
  const uint64_t begin = insn_address(), bytes = insns.size() * sizeof(Word);
  if (begin + bytes > dram_.bytes())
    return fail(ErrorKind::Capacity, "DRAM and instructions do not fit into 4 GiB",
                fmt::format("{} bytes of DRAM, {} instructions", limit_, insns.size()),
                "make the device's DRAM smaller");
  for (size_t i = 0; i < insns.size(); ++i) {
    if (Status fit = fits(config_, insns[i]); !fit)
      return tl::unexpected<Error>(std::move(fit.error()).at(fmt::format("instruction {}", i)));
    const Word word = encode(config_, insns[i]);
    std::memcpy(dram_.data() + begin + i * sizeof(Word), word.data(), sizeof(Word));
  }
  return {};
}

std::vector<InsnTime> RtlDevice::times(const std::vector<Insn>& insns,
                                       const std::vector<abi::vta_event>& events) const {
  // A module takes its instructions in order, so its k-th event belongs to its k-th instruction.
  std::array<std::vector<uint32_t>, 4> streams;
  for (uint32_t i = 0; i < insns.size(); ++i)
    streams.at(static_cast<size_t>(module_of(config_, insns[i]))).push_back(i);
  std::vector<InsnTime> out;
  std::array<std::vector<size_t>, 4> slots;
  std::array<size_t, 4> ended{};
  std::array<uint64_t, 4> ready{};
  for (const abi::vta_event& event : events) {
    const auto module = static_cast<size_t>(event.module);
    if (event.end == 0) {
      if (slots.at(module).size() >= streams.at(module).size()) continue;
      slots.at(module).push_back(out.size());
      out.push_back(InsnTime{streams.at(module)[slots.at(module).size() - 1], ready.at(module),
                             event.cycle, 0, Stall::None, -1});
    } else if (ended.at(module) < slots.at(module).size()) {
      out[slots.at(module)[ended.at(module)++]].end = event.cycle + 1;
      ready.at(module) = event.cycle + 1;
    }
  }
  std::sort(out.begin(), out.end(),
            [](const InsnTime& a, const InsnTime& b) { return a.insn < b.insn; });
  return out;
}

Status RtlDevice::check_finish(const std::vector<Insn>& insns,
                               const std::vector<abi::vta_event>& events, uint64_t cycles) const {
  if (events.empty() || events.back().cycle < cycles) return {};
  for (const InsnTime& time : times(insns, events))
    if (time.end > cycles && module_of(config_, insns[time.insn]) == Module::Store)
      return fail(ErrorKind::Invalid,
                  fmt::format("FINISH is not ordered after instruction {} ({})", time.insn,
                              disassemble(config_, insns[time.insn])),
                  fmt::format("FINISH ends in cycle {}, the instruction in {}", cycles, time.end),
                  "order it with tokens");
  return {};
}

Error RtlDevice::stopped(const abi::vta_result& result, const std::vector<Insn>& insns,
                         const std::vector<abi::vta_event>& events, const LaunchOptions& options) {
  std::string state =
      fmt::format("after {} cycles, {} of {} instructions dispatched, status 0x{:x}",
                  result.simulated, result.dispatched, insns.size(), result.status);
  reset();
  if (result.outcome == abi::VTA_MAX_CYCLES)
    return Error{ErrorKind::Limit,
                 fmt::format("not finished within {} cycles", options.max_cycles),
                 {},
                 state,
                 "raise the limit of cycles",
                 {}};
  if (result.outcome == abi::VTA_OUTSIDE)
    return Error{ErrorKind::Invalid,
                 fmt::format("access to 0x{:x}, outside of DRAM", result.outside),
                 {},
                 state,
                 {},
                 {}};
  if (result.outcome == abi::VTA_ERROR_BIT)
    return Error{ErrorKind::Invalid,
                 result.dispatched > 0 && result.dispatched <= insns.size()
                     ? fmt::format("error bit set near instruction {}: {}", result.dispatched - 1,
                                   disassemble(config_, insns[result.dispatched - 1]))
                     : std::string("error bit set"),
                 {},
                 state + "; undefined in this design, or a token queue overflowed",
                 {},
                 {}};
  // Deadlock: name the first instruction of each module that has not begun.
  std::array<size_t, 4> begun{};
  for (const abi::vta_event& event : events)
    if (event.end == 0) ++begun.at(static_cast<size_t>(event.module));
  std::string waiting;
  std::array<size_t, 4> seen{};
  for (size_t i = 0; i < insns.size(); ++i) {
    const auto module = static_cast<size_t>(module_of(config_, insns[i]));
    if (seen.at(module)++ != begun.at(module)) continue;
    waiting += fmt::format("{}instruction {}: {}", waiting.empty() ? "" : "; ", i,
                           disassemble(config_, insns[i]));
  }
  return Error{ErrorKind::Invalid,     "deadlock: no module can go on", {},
               waiting + "; " + state, "check dependence flags",        {}};
}

Result<LaunchReport> RtlDevice::launch(const std::vector<Insn>& insns,
                                       const LaunchOptions& options) {
  TW_TRY_STATUS(place(insns));
  if (insns.empty() || !std::holds_alternative<Finish>(insns.back().op))
    return fail(ErrorKind::Invalid, "the stream does not end with FINISH",
                fmt::format("{} instructions", insns.size()));
  if (model_ == nullptr)
    model_ = functions_.create(dram_.data(), limit_, config_.timing.read_latency,
                               config_.timing.burst_gap);
  // Without events for this long nothing will happen: dispatch of a batch, latency, tokens.
  const Timing& t = config_.timing;
  const uint64_t patience = static_cast<uint64_t>(t.fetch_batch) * 2 + 256 +
                            static_cast<uint64_t>(t.read_latency + t.burst_gap + t.token_latency);
  std::vector<abi::vta_event> events(insns.size() * 2 + 64);
  abi::vta_result result{};
  functions_.launch(model_, static_cast<uint32_t>(insn_address()),
                    static_cast<uint32_t>(insns.size()), options.max_cycles, patience,
                    events.data(), events.size(), &result);
  events.resize(result.events);
  if (result.outcome != abi::VTA_FINISHED)
    return tl::unexpected<Error>(stopped(result, insns, events, options));
  constexpr uint32_t kTokens = 0x3f00, kQueues = 0xf0000;
  if ((result.status & (kTokens | kQueues)) != 0) {
    reset();
    return fail(ErrorKind::Invalid, "FINISH left tokens or commands behind",
                fmt::format("status 0x{:x}: bits 8 to 13 are queues with tokens, 16 to 19 modules "
                            "with commands",
                            result.status),
                "every push needs a pop, and FINISH has to be last");
  }
  TW_TRY_STATUS(check_finish(insns, events, result.cycles));
  LaunchReport report;
  report.cycles = result.cycles;
  for (const Insn& insn : insns) rtl::count(config_, insn, report.counters);
  if (options.record_times) report.times = times(insns, events);
  return report;
}

}  // namespace

Result<std::unique_ptr<Device>> make_rtl(const Config& config, uint64_t dram_bytes) {
  TW_TRY_STATUS(rtl_supports(config));
  if (dram_bytes >= kAddressSpace)
    return fail(ErrorKind::Capacity, "DRAM and instructions do not fit into 4 GiB",
                fmt::format("{} bytes of DRAM", dram_bytes), "make the device's DRAM smaller");
  const std::string path = TW_TRY(rtl::model_library(config));
  std::shared_ptr<void> library(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* handle) {
    if (handle != nullptr) ::dlclose(handle);
  });
  if (library == nullptr)
    return fail(ErrorKind::Tool, fmt::format("cannot load the model '{}'", path), ::dlerror(),
                "delete this folder; it is compiled again");
  Functions functions;
  functions.create =
      reinterpret_cast<decltype(functions.create)>(::dlsym(library.get(), "vta_create"));
  functions.destroy =
      reinterpret_cast<decltype(functions.destroy)>(::dlsym(library.get(), "vta_destroy"));
  functions.launch =
      reinterpret_cast<decltype(functions.launch)>(::dlsym(library.get(), "vta_launch"));
  if (functions.create == nullptr || functions.destroy == nullptr || functions.launch == nullptr)
    return fail(ErrorKind::Tool, fmt::format("the model '{}' lacks its interface", path), {},
                "delete this folder; it is compiled again");
  Dram dram = TW_TRY(Dram::make(kAddressSpace));
  return std::make_unique<RtlDevice>(config, dram_bytes, std::move(library), functions,
                                     std::move(dram));
}

}  // namespace tilewright::vta
