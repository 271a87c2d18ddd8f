// The DPU (DPUV3INT8) as a value: one struct drives compiler, checker and simulators.
//
// One kernel is four in-order queues (LOAD, SAVE, CONV, MISC), one parameter memory PM, and `pe`
// processing elements that execute one stream of instructions on `pe` images at once. Each element
// has feature maps FM in three circular memories of eight banks. docs/dpu.md has the picture.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::dpu {

// Fixed by the design: rows that a CONV makes at once, banks of a feature memory, and channels of a
// word. source: the DPUV3INT8 paper, and the build scripts of the public release (docs/dpu.md).
inline constexpr int kBanks = 8;
inline constexpr int kMemories = 3;
inline constexpr int kLanes = 16;
inline constexpr int kPmWordBytes = kLanes * kLanes;

/// How long things take; units: cycles. source: docs/dpu-timing.md.
struct Timing {
  int lat_ddr = 200;            ///< from the last beat of a transfer until its data is there
  int lat_conv = 250;           ///< fixed cost of a CONV
  int lat_misc = 50;            ///< fixed cost of a POOL or ELEW
  int lat_init = 10;            ///< an INIT or NOP
  double fc_factor = 2.0;       ///< of the time of a CONV that makes one pixel; a multiple of 1/16
  bool stride_conflict = true;  ///< rows that share a bank are read one after the other
  int queue = 64;               ///< entries of each queue
  friend bool operator==(const Timing&, const Timing&) = default;
};

/// What the compiler does with the hardware: `dpu` and `dpu-paper` differ only here.
struct CompilerChoices {
  bool layer_barrier = false;  ///< a layer begins when everything of the one before is done
  bool prefetch = true;        ///< weights of the next layers load while this one computes
  bool overlap_fc = true;      ///< tiles of weights of a dense layer load while others compute
  bool dense_average = false;  ///< average pools are dense convolutions; false: POOL
  bool global_pool = true;     ///< global average pools, and what follows them, run on the device
  bool parallel_branches = true;
  bool fusion = true;          ///< conv + pool, pool + conv, conv + add in one pass over rows
  bool address_tokens = true;  ///< tokens follow from addresses; false: barriers between groups
  bool reorder_stride = true;  ///< strided convolutions are rewritten so that banks do not conflict
  bool phase_deconvolution = true;  ///< s*s small convolutions; false: zeros put in between
  friend bool operator==(const CompilerChoices&, const CompilerChoices&) = default;
};

struct Config {
  std::string name = "dpu";
  double clock_mhz = 300.0;
  int pe = 4;           ///< images at once; 1 to 8
  int kernels = 1;      ///< 1 to 4; each with its own memory port
  int format_unit = 8;  ///< most channels of an image that the format unit takes; 0: there is none
  std::array<int, kMemories> fm_depth = {8192, 8192, 4096};  ///< words of a bank; 64 to 8192
  int pm_depth = 8192;                                       ///< words; 64 to 8192
  int ddr_bytes_per_cycle = 64;                              ///< a power of two, 16 to 512
  Timing timing;
  CompilerChoices compiler;

  friend bool operator==(const Config&, const Config&) = default;

  int word_bytes() const { return kLanes * pe; }  ///< of DDR: one pixel's group of all images
  /// Words of a whole feature memory: kBanks times its depth.
  int64_t fm_words(int memory) const {
    return int64_t{kBanks} * fm_depth[static_cast<size_t>(memory)];
  }
  /// Most operations per second of one kernel; a multiply and an add are two.
  double peak_ops() const { return 2.0 * kBanks * kLanes * kLanes * pe * clock_mhz * 1e6; }
};

/// Channel groups: words that hold so many channels of a pixel.
constexpr int64_t groups(int64_t channels) { return (channels + kLanes - 1) / kLanes; }

/// Whether the same programs mean the same and take the same time: all but name and compiler.
bool same_hardware(const Config& a, const Config& b);

/// errors: Invalid, all problems at once, each with field, value and range.
Status check(const Config& config);

/// TOML with `kind = "dpu"`; keys as in hw/dpu.toml, what is absent keeps its default. `place` is
/// for messages. errors: Parse, Invalid: all problems at once (unknown keys, types, ranges).
Result<Config> parse_config(std::string_view text, const std::string& place);
/// A file, or a built-in name: `dpu`, `dpu-paper`. errors: also Usage, with the nearest name; Io.
Result<Config> load_config(const std::string& name_or_path);
std::vector<std::string> builtin_configs();
/// What `parse_config` reads back.
std::string to_toml(const Config& config);

}  // namespace tilewright::dpu
