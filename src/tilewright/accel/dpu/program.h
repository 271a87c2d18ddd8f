// What a kernel of the DPU sees before a launch: its regions of DDR, and streams of instructions.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/common/device.h"
#include "tilewright/accel/dpu/isa.h"

namespace tilewright::dpu {

using accel::Patch;
using accel::Region;
using accel::Span;
using Run = accel::Run<Insn>;  ///< the stream ends with END

/// Base registers. LOAD takes Input to Params, SAVE takes Output and Swap; the format unit reads
/// Format; the last holds the encoded instructions and is not in images.
enum class Reg { Input = 0, Output = 1, Swap = 2, Params = 3, Format = 4, Instructions = 5 };
inline constexpr int kRegs = 6;
std::string_view name(Reg reg);  ///< `input`, ...

/// A feature map as it is in DDR: [height][width][groups][pe][16] bytes at `addr` of its region,
/// channels beyond the last one 0.
struct DdrTensor {
  std::string name;
  Reg reg = Reg::Input;
  uint64_t addr = 0;  ///< bytes in the region
  int64_t channels = 0, height = 0, width = 0;
  int fix_point = 0;  ///< real value = integer * 2^-fix_point
};
/// Bytes of it: height * width * groups * 16 * pe.
uint64_t bytes_of(const Config& config, const DdrTensor& tensor);

/// What the format unit does before a run: it folds the width of a convolution's kernel into the
/// channels of an image of few channels.
///   source: [pe][height][width][channels] bytes at `source` of Reg::Format.
///   result: a DdrTensor at `target` of Reg::Input with kernel_w * channels channels and
///   (width + pad_left + pad_right - kernel_w) / stride_w + 1 columns:
///   result[h][x][kx * channels + c] = source[h][x * stride_w - pad_left + kx][c], 0 outside.
struct FormatJob {
  std::string name;
  uint64_t source = 0, target = 0;
  int channels = 0, height = 0, width = 0;
  int kernel_w = 1, stride_w = 1, pad_left = 0, pad_right = 0;
};
/// What a job reads.
uint64_t source_bytes(const Config& config, const FormatJob& job);
/// The result of a job, as a tensor of Reg::Input.
DdrTensor formatted(const FormatJob& job);
/// What the format unit makes of the source of a job. requires: all of it is there.
std::string format_bytes(const Config& config, const FormatJob& job, std::string_view source);

/// One launch computes `pe` images; missing ones are zeros. Nothing on chip lives on between runs.
struct Program : accel::Program<Insn> {
  Config config;
  /// Where each register points: inside of the image, in order and disjoint; the last is empty.
  std::array<Region, kRegs> regions;
  std::vector<FormatJob> formats;  ///< before the first run
  /// One for each of Image::inputs and outputs, in order. An input that a format job takes is the
  /// job's source instead, and its tensor has reg Format and the image's plain shape.
  std::vector<DdrTensor> input_tensors, output_tensors;
};

/// Everything that must lie inside of something else, and the fields of every instruction; says
/// nothing about what the program does (check.h does).
/// errors: Invalid, all problems at once.
Status validate(const Program& program);

/// One byte string for packages; `parse_program` reads it back. requires: `validate` accepts it.
/// errors (parse): Parse with the byte offset, Invalid. Memory is bounded by the input's.
std::string serialise(const Program& program);
Result<Program> parse_program(std::string_view bytes);

/// What a device left behind, for a dump; empty where it is not known.
struct DumpResults {
  std::string final_image;                          ///< DDR after the last run
  std::vector<std::vector<accel::InsnTime>> times;  ///< by run, of devices that keep time
};
/// A folder of the format `dpu-program-dump`, version 1 (docs/dpu.md), that any reader can run. A
/// dump that is already there is replaced, any other folder with files in it is not.
/// errors: Io; Invalid. Nothing is left half written.
Status write_dump(const std::string& folder, const Program& program,
                  const DumpResults& results = {});
struct Dump {
  Program program;
  std::vector<std::string> expected;  ///< per output, empty if not given
};
/// errors: Io, Parse, Invalid, all problems at once.
Result<Dump> read_dump(const std::string& folder);

}  // namespace tilewright::dpu
