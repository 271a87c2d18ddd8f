// The generator: numbers of a configuration into the text of the modules.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/accel/common/rtl/fill_in.h"
#include "tilewright/accel/vta/rtl/parts.h"
#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

using Values = accel::VerilogValues;

int log2_of(int64_t value) {
  int log = 0;
  while ((int64_t{1} << log) < value) ++log;
  return log;
}

/// How an on-chip memory is cut into banks; all logarithms.
struct Banks {
  int chunk = 0;        ///< bytes of a chunk in DRAM
  int per_element = 0;  ///< chunks
  int beat = 0;         ///< chunks written by a beat at most
  int banks = 0;
};

Banks banks_of(const Config& config, Mem mem) {
  const int bus = log2_of(config.timing.bus_bytes);
  const int element = log2_of(config.element_bytes(mem));
  Banks banks;
  banks.chunk = std::min(element, bus);
  banks.per_element = element - banks.chunk;
  banks.beat = bus - banks.chunk;
  if (mem == Mem::Acc && config.has_acc8) banks.beat += config.log_acc_width - 3;
  banks.banks = std::max(banks.beat, banks.per_element);
  return banks;
}

std::string slice(int begin, int width) {
  return width == 1 ? fmt::format("{}", begin) : fmt::format("{}:{}", begin + width - 1, begin);
}

void add_fields(const Config& config, Values& values) {
  for (const char* form : {"transfer", "gemm", "alu", "uop"})
    for (const FieldInfo& field : field_layout(config, form))
      values[fmt::format("{}.{}", form, field.name)] = slice(field.begin, field.width);
  for (const FieldInfo& field : field_layout(config, "transfer"))
    if (field.name == "sram")
      values["transfer.sram_acc"] = slice(field.begin, config.log_depth(Mem::Acc));
  for (const FieldInfo& field : field_layout(config, "uop"))
    if (field.name == "src") {
      values["uop.src_inp"] = slice(field.begin, config.log_depth(Mem::Inp));
      values["uop.src_acc"] = slice(field.begin, config.log_depth(Mem::Acc));
    }
}

void add_memories(const Config& config, Values& values) {
  const auto set = [&values](const std::string& name, int64_t value) {
    values[name] = fmt::format("{}", value);
  };
  constexpr std::pair<const char*, Mem> kMemories[] = {
      {"UOP", Mem::Uop}, {"INP", Mem::Inp}, {"WGT", Mem::Wgt}, {"ACC", Mem::Acc}};
  for (const auto& [name, mem] : kMemories) {
    const Banks banks = banks_of(config, mem);
    const std::string prefix = name;
    set("LOG_" + prefix + "_DEPTH", config.log_depth(mem));
    set(prefix + "_LOG_BYTES", log2_of(config.element_bytes(mem)));
    set(prefix + "_LOG_CHUNK", banks.chunk);
    set(prefix + "_LOG_PER", banks.per_element);
    set(prefix + "_LOG_BEAT", banks.beat);
    set(prefix + "_LOG_BANKS", banks.banks);
  }
  const int out = log2_of(config.element_bytes(Mem::Out));
  const int bus = log2_of(config.timing.bus_bytes);
  set("ACC8_LOG_BYTES", log2_of(config.element_bytes(Mem::Acc8)));
  set("OUT_LOG_BYTES", out);
  set("OUT_LOG_TRANSFERS", std::max(0, out - bus));
  constexpr int64_t kBenchElements = 64;  // INP elements in the memory of the load bench
  set("BENCH_BEATS",
      (kBenchElements * config.element_bytes(Mem::Inp) + config.timing.bus_bytes - 1) /
          config.timing.bus_bytes);
  set("LOG_SRC_DEPTH", config.log_depth(Mem::Inp));
}

void add_timing(const Config& config, Values& values) {
  const Timing& timing = config.timing;
  const int bus = log2_of(timing.bus_bytes), insn_chunk = std::min(4, bus);
  const int insn_banks = std::max(bus - insn_chunk, 4 - insn_chunk);
  const std::pair<const char*, int64_t> numbers[] = {
      {"LOG_BUS", bus},
      {"LOG_BURST", bus + log2_of(timing.max_burst_beats)},
      {"LOAD_SETUP", std::max(1, timing.load_overhead - 1)},
      {"GEMM_OVERHEAD", timing.gemm_overhead},
      {"ALU_OVERHEAD", timing.alu_overhead},
      {"STORE_ROW_OVERHEAD", timing.store_row_overhead},
      {"STORE_ELEMENT_EXTRA", timing.store_element_extra},
      {"TOKEN_LATENCY", timing.token_latency},
      {"READ_LATENCY", timing.read_latency},
      {"BURST_GAP", timing.burst_gap},
      {"FETCH_BATCH", timing.fetch_batch},
      {"LOG_FETCH_BATCH", std::max(insn_banks + 1, log2_of(timing.fetch_batch))},
      {"LOG_INSN_CHUNK", insn_chunk},
      {"LOG_INSN_BANKS", insn_banks},
      {"COMMAND_QUEUE", timing.command_queue},
      {"LOG_COMMAND_QUEUE", std::max(1, log2_of(timing.command_queue))}};
  for (const auto& [name, value] : numbers) values[name] = fmt::format("{}", value);
}

Values values_of(const Config& config) {
  Values values;
  const std::pair<const char*, int> numbers[] = {
      {"LOG_INP_WIDTH", config.log_inp_width},
      {"LOG_WGT_WIDTH", config.log_wgt_width},
      {"LOG_ACC_WIDTH", config.log_acc_width},
      {"LOG_OUT_WIDTH", config.log_out_width},
      {"LOG_BATCH", config.log_batch},
      {"LOG_BLOCK_IN", config.log_block_in},
      {"LOG_BLOCK_OUT", config.log_block_out},
      {"INP_BITS", config.inp_bits()},
      {"WGT_BITS", config.wgt_bits()},
      {"ACC_BITS", config.acc_bits()},
      {"HAS_MUL", config.has_mul ? 1 : 0},
      {"HAS_ACC8", config.has_acc8 ? 1 : 0},
      {"PIPELINE4", config.extensions.pipeline4 ? 1 : 0},
      {"FUSED_RESET", config.extensions.fused_reset ? 1 : 0},
      {"PIPELINED_ALU", config.extensions.pipelined_alu ? 1 : 0}};
  for (const auto& [name, value] : numbers) values[name] = fmt::format("{}", value);
  add_fields(config, values);
  add_memories(config, values);
  add_timing(config, values);
  values["ACC_BEAT_DATA"] = config.has_acc8 ? rtl::kAccBeat8 : rtl::kAccBeat32;
  values["BEATS"] = rtl::kBeats;
  const bool two = config.extensions.pipeline4, src = config.extensions.pipelined_alu;
  values["COMPUTE"] = two ? rtl::kTwoComputes : rtl::kOneCompute;
  if (src)
    values["SECOND_ACC"] = two ? rtl::kSecondAccOfTwo : rtl::kSecondAcc;
  else
    values["SECOND_ACC"] =
        two ? "  assign a_src_data = a_acc_data;\n" : "  assign src_rd_data = acc_rd_data;\n";
  values["UOP_BEAT"] = "compute";
  values["ACC_BEAT"] = two ? "alu" : "compute";
  return values;
}

}  // namespace

std::string rtl::fill(const Config& config, std::string_view text) {
  return accel::fill_in(text, values_of(config));
}

Status rtl_supports(const Config& config) {
  TW_TRY_STATUS(check(config));
  const Timing& t = config.timing;
  std::vector<std::string> reasons;
  const auto need = [&reasons](bool ok, std::string reason) {
    if (!ok) reasons.push_back(std::move(reason));
  };
  const auto fixed = [&need](const char* name, int value, int wanted) {
    need(value == wanted, fmt::format("{} is {}, the Verilog has {}", name, value, wanted));
  };
  const auto least = [&need](const char* name, int value, int wanted) {
    need(value >= wanted,
         fmt::format("{} is {}, the Verilog needs at least {}", name, value, wanted));
  };
  fixed("gemm_ii", t.gemm_ii, 1);
  fixed("alu_imm_ii", t.alu_imm_ii, 1);
  if (!config.extensions.pipelined_alu) fixed("alu_reg_ii", t.alu_reg_ii, 2);
  fixed("loop_fill", t.loop_fill, 0);
  fixed("empty", t.empty, 2);
  fixed("finish", t.finish, 2);
  least("read_latency", t.read_latency, 1);
  least("token_latency", t.token_latency, 1);
  least("gemm_overhead", t.gemm_overhead, 7);
  least("alu_overhead", t.alu_overhead, 7);
  least("store_row_overhead", t.store_row_overhead, 2);
  need(std::max(t.gemm_overhead, t.alu_overhead) <= 255 && t.store_element_extra <= 255 &&
           std::max(t.load_overhead, t.store_row_overhead) <= 65535 && t.fetch_batch <= 65535,
       "an overhead does not fit its counter");
  const int64_t burst = int64_t{t.max_burst_beats} * t.bus_bytes;
  need(config.element_bytes(Mem::Out) <= burst,
       fmt::format("an OUT element of {} bytes is longer than a burst of {}",
                   config.element_bytes(Mem::Out), burst));
  if (reasons.empty()) return {};
  return fail(ErrorKind::Unsupported, "the Verilog generator cannot build this design",
              fmt::format("{}", fmt::join(reasons, "; ")),
              "run it on vta:tsim, or change the timing");
}

std::string verilog(const Config& config) {
  const Values values = values_of(config);
  std::string text =
      fmt::format("// VTA {}, generated by Tilewright. Verilog-2005. Timing: docs/vta-timing.md.\n",
                  label(config));
  if (config.extensions.pipeline4) text += rtl::kTwoWriters;
  for (const char* part : {rtl::kMemoryModules, rtl::kControlModules, rtl::kReadModules,
                           rtl::kMathModules, rtl::kAluModules, rtl::kLoadModule,
                           rtl::kComputeModule, rtl::kStoreModule, rtl::kTopModule})
    text += accel::fill_in(part, values);
  return text;
}

Status axi_supports(const Config& config) {
  TW_TRY_STATUS(rtl_supports(config));
  const Timing& t = config.timing;
  constexpr int64_t kPageBytes = 4096, kMostBeats = 256;  // of a burst: AXI4
  const int64_t burst = int64_t{t.max_burst_beats} * t.bus_bytes;
  const int64_t transfer = std::min<int64_t>(t.bus_bytes, config.element_bytes(Mem::Out));
  if (burst <= kPageBytes && burst / transfer <= kMostBeats) return {};
  return fail(ErrorKind::Unsupported, "AXI4 has no such bursts",
              fmt::format("{} bytes in up to {} transfers; it has at most {} and {}", burst,
                          burst / transfer, kPageBytes, kMostBeats),
              fmt::format("max_burst_beats = {} in the table [timing]",
                          std::min(kPageBytes / t.bus_bytes, kMostBeats * transfer / t.bus_bytes)));
}

std::string axi_top(const Config& config) {
  Values values = values_of(config);
  values["IDENTITY"] = fmt::format("{:08x}", identity(config));
  values["LOG_TRANSFER"] = fmt::format(
      "{}", log2_of(std::min<int64_t>(config.timing.bus_bytes, config.element_bytes(Mem::Out))));
  return accel::fill_in(rtl::kAxiTopModule, values);
}

}  // namespace tilewright::vta
