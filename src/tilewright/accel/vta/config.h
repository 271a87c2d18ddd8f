// The VTA hardware as a value: one struct drives compiler, simulators and RTL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/fields.h"
#include "tilewright/base/result.h"

namespace tilewright::vta {

/// On-chip memories, with the ids of the instruction encoding.
enum class Mem { Uop = 0, Wgt = 1, Inp = 2, Acc = 3, Out = 4, Acc8 = 5 };

/// How long things take; units: cycles. source: docs/vta-timing.md.
struct Timing {
  std::string preset = "chisel-64";  ///< `chisel-64`, `hls-pynq` or `custom`
  int bus_bytes = 8;                 ///< width of the memory port: 8, 16, 32 or 64
  int max_burst_beats = 256;         ///< a burst never crosses a boundary of this size either
  int read_latency = 16;             ///< from the head of the request queue to the first beat
  int burst_gap = 1;                 ///< idle cycles between read bursts
  int load_overhead = 9;             ///< of a LOAD beside latency and beats
  int store_element_extra = 1;       ///< per OUT element beside its beats
  int store_row_overhead = 9;        ///< per row: address and acknowledge
  int gemm_overhead = 7, gemm_ii = 1;
  int alu_overhead = 7, alu_imm_ii = 1, alu_reg_ii = 2;
  int loop_fill = 0;  ///< per inner iteration: HLS pipelines only the micro-op loop
  int finish = 2, empty = 2;
  int token_latency = 1;
  int fetch_batch = 128, command_queue = 512;

  friend bool operator==(const Timing&, const Timing&) = default;
};

/// Parts of the extended design (all false: the published one).
struct Extensions {
  bool pipeline4 = false;  ///< load, GEMM, ALU and store are four modules (VTA paper, section 2.3)
  bool fused_reset = false;    ///< the first accumulation of an element can replace instead of add
  bool pipelined_alu = false;  ///< register ALU operands at one element per cycle

  friend bool operator==(const Extensions&, const Extensions&) = default;
};

/// Sizes as logarithms, as in VTA's JSON. Text: hw/*.toml, or that JSON as it is.
struct Config {
  std::string name = "vta";
  int log_inp_width = 3, log_wgt_width = 3, log_acc_width = 5, log_out_width = 3;  ///< bits
  int log_batch = 0, log_block_in = 4, log_block_out = 4;
  int log_uop_buff = 15, log_inp_buff = 15, log_wgt_buff = 18, log_acc_buff = 17;  ///< bytes
  bool has_mul = false, has_acc8 = false;  ///< beyond the subset every implementation has
  double clock_mhz = 100;
  Timing timing;
  Extensions extensions;

  int batch() const { return 1 << log_batch; }
  int block_in() const { return 1 << log_block_in; }
  int block_out() const { return 1 << log_block_out; }
  /// Width of one scalar; units: bits.
  int inp_bits() const { return 1 << log_inp_width; }
  int wgt_bits() const { return 1 << log_wgt_width; }
  int acc_bits() const { return 1 << log_acc_width; }
  int out_bits() const { return 1 << log_out_width; }
  /// Scalars of one element (tile) of a memory; a micro-op counts as one.
  int64_t element_scalars(Mem mem) const;
  /// Size of one element in DRAM; units: bytes. Acc8 is a quarter of Acc.
  int64_t element_bytes(Mem mem) const;
  /// log2 of the number of elements of a memory (Out and Acc8 as Acc).
  int log_depth(Mem mem) const;
  int64_t depth(Mem mem) const { return int64_t{1} << log_depth(mem); }
  /// Micro-ops that one instruction may have: those of the next one fit beside them.
  int64_t most_uops() const { return depth(Mem::Uop) > 1 ? depth(Mem::Uop) / 2 : 1; }

  bool operator==(const Config&) const;
};

/// Whether the same programs mean the same: sizes and encoding, not name, clock and timing.
bool same_architecture(const Config& a, const Config& b);

/// The timing of a preset other than `custom`. errors: Usage, with the nearest name.
Result<Timing> timing_preset(const std::string& preset);
std::vector<std::string> timing_presets();

/// Everything that does not fit: the encoding (naming the field that overflows and by how many
/// bits), elements smaller than a byte or larger than a page, unsupported widths.
/// errors: Invalid, all problems at once.
Status check(const Config& config);

/// TOML with the names of Config, or VTA's JSON (keys LOG_*; unknown keys such as TARGET are kept
/// out). Timing starts from its preset and the keys given change it; JSON's extension keys are
/// PIPELINE (3 or 4), FUSED_RESET, PIPELINED_ALU, HAS_MUL and HAS_ACC8. `place` is for messages.
/// errors: Parse, Invalid (as `check`).
Result<Config> parse_config(std::string_view text, const std::string& place);
/// A file, or one of the built-in names `vta`, `vta-paper`, `vdla`, `vta-extended`.
Result<Config> load_config(const std::string& name_or_path);
std::vector<std::string> builtin_configs();
/// errors: Usage, with the nearest name.
Result<Config> builtin_config(const std::string& name);

std::string to_toml(const Config& config);
std::string to_json(const Config& config);  ///< VTA's JSON keys, one object
/// `vta_1x16_i8w8a32_15_15_18_17`: tile, widths, log2 bytes of the uop, inp, wgt, acc buffers.
std::string label(const Config& config);

std::string_view name(Mem mem);

}  // namespace tilewright::vta
