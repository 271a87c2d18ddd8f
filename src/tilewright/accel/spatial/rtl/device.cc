// `spatial:rtl`: the generated Verilog under Verilator, as a shared object in the cache.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tilewright/accel/common/rtl/model.h"
#include "tilewright/accel/spatial/rtl/harness.h"
#include "tilewright/accel/spatial/rtl/rtl.h"
#include "tilewright/accel/spatial/sim/count.h"
#include "tilewright/accel/spatial/sim/stream.h"

namespace tilewright::spatial {
namespace {

namespace abi = rtl::abi;

struct Functions {
  decltype(&abi::spatial_create) create = nullptr;
  decltype(&abi::spatial_destroy) destroy = nullptr;
  decltype(&abi::spatial_launch) launch = nullptr;
};

std::string harness_of(const Design& design) {
  return fmt::format("#include <cstdint>\n{}\nconstexpr int kBus = {};\n{}", rtl::kAbiText,
                     design.bus_bytes, rtl::kHarness);
}

class RtlDevice : public Device {
 public:
  RtlDevice(const Design& design, std::shared_ptr<void> library, Functions functions)
      : design_(design), library_(std::move(library)), functions_(functions) {}
  RtlDevice(const RtlDevice&) = delete;
  RtlDevice& operator=(const RtlDevice&) = delete;
  ~RtlDevice() override { reset(); }

  std::string name() const override { return "spatial:rtl"; }
  const Design& design() const override { return design_; }
  Status write(uint64_t address, std::string_view bytes) override;
  Status read(uint64_t address, char* into, uint64_t bytes) const override;
  Result<LaunchReport> launch(const std::vector<Insn>& insns,
                              const LaunchOptions& options) override;

 private:
  void reset() {
    if (model_ != nullptr) functions_.destroy(model_);
    model_ = nullptr;
  }
  /// Without events for this long nothing will happen: fetch of an instruction, tokens.
  uint64_t patience() const {
    const Timing& t = design_.timing;
    return static_cast<uint64_t>(kInsnBytes / design_.bus_bytes + t.read_latency + t.token_latency +
                                 16);
  }
  Error stopped(const abi::spatial_result& result, const std::vector<Insn>& insns,
                const std::vector<abi::spatial_event>& events) const;

  Design design_;
  std::shared_ptr<void> library_;
  Functions functions_;
  void* model_ = nullptr;
  uint64_t base_ = 0;
  std::string dram_;
};

Status RtlDevice::write(uint64_t address, std::string_view bytes) {
  if (bytes.empty()) return {};
  if (address > kDramBytes || bytes.size() > kDramBytes - address)
    return fail(ErrorKind::Invalid,
                fmt::format("{} bytes at {} are beyond DRAM", bytes.size(), address));
  if (dram_.empty()) base_ = address;
  if (address < base_) dram_.insert(0, base_ - address, '\0');
  base_ = std::min(base_, address);
  dram_.resize(std::max<uint64_t>(dram_.size(), address + bytes.size() - base_));
  std::memcpy(dram_.data() + (address - base_), bytes.data(), bytes.size());
  return {};
}

Status RtlDevice::read(uint64_t address, char* into, uint64_t bytes) const {
  for (uint64_t i = 0; i < bytes; ++i) {
    const uint64_t at = address + i;
    into[i] = at < base_ || at - base_ >= dram_.size() ? '\0' : dram_[at - base_];
  }
  return {};
}

/// A module takes its instructions in order: its k-th events belong to its k-th instruction.
std::vector<InsnTime> times_of(const std::vector<Insn>& insns,
                               const std::vector<abi::spatial_event>& events) {
  const Stream stream = split(insns);
  std::array<size_t, kQueues> begun{}, ended{};
  std::array<uint64_t, kQueues> ready{};
  std::vector<InsnTime> times(insns.size());
  for (const abi::spatial_event& event : events) {
    const auto queue = static_cast<size_t>(event.queue);
    if (event.end == 0) {
      const uint32_t insn = stream.at(queue).at(begun.at(queue)++);
      times[insn] = {insn, ready.at(queue), event.cycle, 0, accel::Stall::None, -1};
    } else {
      ready.at(queue) = event.cycle + 1;
      times[stream.at(queue).at(ended.at(queue)++)].end = event.cycle + 1;
    }
  }
  return times;
}

Error RtlDevice::stopped(const abi::spatial_result& result, const std::vector<Insn>& insns,
                         const std::vector<abi::spatial_event>& events) const {
  Error error;
  error.why = fmt::format("after {} cycles", result.cycles);
  if (result.outcome == abi::SPATIAL_MAX_CYCLES) {
    error.kind = ErrorKind::Limit;
    error.what = "the launch takes more cycles than allowed";
  } else if (result.outcome == abi::SPATIAL_OUTSIDE) {
    error.what = fmt::format("byte {} of DRAM, which the host never wrote", result.outside);
  } else {
    std::array<size_t, kQueues> begun{};
    for (const abi::spatial_event& event : events)
      if (event.end == 0) ++begun.at(static_cast<size_t>(event.queue));
    error.what = "deadlock: no module can go on";
    const Stream stream = split(insns);
    for (size_t q = 0; q < kQueues; ++q)
      if (begun[q] < stream[q].size())
        error.why += fmt::format("; instruction {} ({}) waits", stream[q][begun[q]],
                                 to_string(insns[stream[q][begun[q]]]));
  }
  return error;
}

Result<LaunchReport> RtlDevice::launch(const std::vector<Insn>& insns,
                                       const LaunchOptions& options) {
  std::string code;
  for (size_t i = 0; i < insns.size(); ++i) {
    if (Status fields = check_fields(design_, insns[i]); !fields)
      return tl::unexpected<Error>(at_insn(std::move(fields.error()), insns, i));
    code += encode(insns[i]);
  }
  if (model_ == nullptr)
    model_ = functions_.create(design_.timing.read_latency, design_.timing.burst_gap);
  std::vector<abi::spatial_event> events(insns.size() * 2);
  abi::spatial_result result{};
  functions_.launch(model_, {reinterpret_cast<unsigned char*>(dram_.data()), base_, dram_.size()},
                    reinterpret_cast<const unsigned char*>(code.data()), code.size(), insns.size(),
                    options.max_cycles, patience(), events.data(), &result);
  events.resize(result.events);
  if (result.outcome != abi::SPATIAL_FINISHED) {
    reset();  // a model that stopped in the middle has no defined state
    return tl::unexpected<Error>(stopped(result, insns, events));
  }
  if (result.tokens != 0)
    return fail(ErrorKind::Invalid, "the launch leaves tokens behind",
                fmt::format("in {} queues of tokens", std::popcount(result.tokens)));
  LaunchReport report;
  report.cycles = result.cycles;
  for (const Insn& insn : insns) count(design_, insn, report.counters);
  const std::vector<InsnTime> times = times_of(insns, events);
  for (const InsnTime& time : times) {
    Counters& c = report.counters;
    const Queue queue = insns[time.insn].queue();
    (queue == Queue::Load      ? c.load_busy
     : queue == Queue::Compute ? c.compute_busy
                               : c.store_busy) += time.end - time.begin;
  }
  if (options.record_times) report.times = times;
  return report;
}

}  // namespace

Result<std::unique_ptr<Device>> make_rtl(const Design& design) {
  TW_TRY_STATUS(rtl_supports(design));
  const std::string path =
      TW_TRY(accel::compiled({"spatial", verilog(design), harness_of(design)}));
  std::shared_ptr<void> library(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* handle) {
    if (handle != nullptr) ::dlclose(handle);
  });
  if (library == nullptr)
    return fail(ErrorKind::Tool, fmt::format("cannot load the model '{}'", path), ::dlerror(),
                "delete this folder; it is compiled again");
  Functions functions;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library.get(), name));
  };
  find("spatial_create", functions.create);
  find("spatial_destroy", functions.destroy);
  find("spatial_launch", functions.launch);
  if (functions.create == nullptr || functions.destroy == nullptr || functions.launch == nullptr)
    return fail(ErrorKind::Tool, fmt::format("the model '{}' lacks its interface", path), {},
                "delete this folder; it is compiled again");
  return std::make_unique<RtlDevice>(design, std::move(library), functions);
}

}  // namespace tilewright::spatial
