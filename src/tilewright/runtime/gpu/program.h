// Code for a GPU as data: kernels, the memory they use, and the calls to make, in order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/base/result.h"

namespace tilewright::runtime {

/// Offsets of buffers inside a device allocation are multiples of this, in bytes.
inline constexpr int64_t kGpuAlign = 64;

/// How a kernel's copy engine sees one of its buffers, as a matrix or more, and what it copies at a
/// time. Axes are counted from the one whose elements lie side by side. Limits are those of
/// cuTensorMapEncodeTiled: 2 to 5 axes, boxes of at most 256 elements along each, strides that are
/// multiples of 16 bytes.
struct GpuTensorMap {
  int buffer = 0;  ///< among those of the kernel's calls
  DType dtype = DType::F32;
  std::vector<int64_t> dims;     ///< elements; what is copied from beyond them is zeros
  std::vector<int64_t> strides;  ///< bytes between elements of all axes but the first
  std::vector<int64_t> box;      ///< elements of one copy
  /// Rows of the box, of so many bytes, whose groups of 16 bytes are exchanged: 0 (as they are) or
  /// 128.
  int64_t swizzle_bytes = 0;
};

struct GpuKernelCode {
  std::string symbol;
  std::array<int64_t, 3> grid = {1, 1, 1};   ///< blocks: x, y, z
  std::array<int64_t, 3> block = {1, 1, 1};  ///< threads of one: x, y, z
  int64_t shared_bytes = 0;             ///< CUDA: of a block, beyond what the code declares itself
  std::vector<GpuTensorMap> maps = {};  ///< CUDA: parameters of 128 bytes behind all others
};

/// Bytes that kernels read or write.
struct GpuBuffer {
  enum class Place { Arena, Constants, Input, Output } place = Place::Arena;
  int64_t offset = 0;  ///< of the arena or the constants (multiple of kGpuAlign); else 0
  int64_t bytes = 0;   ///< at least 1
  std::string name;
};

/// One launch of a kernel. Its parameters are the buffers, then the scalars as 64-bit integers,
/// then the maps of its buffers, which are made when the program is loaded: buffers do not move. A
/// buffer is an address; in OpenCL, which has no addresses, it is two parameters: the allocation it
/// is in (`global char*`) and its offset in bytes (`long`).
struct GpuCall {
  int kernel = 0;
  std::string step;  ///< for profiles: the node or group it belongs to
  std::vector<int> buffers;
  std::vector<int64_t> scalars;
};

struct GpuProgram {
  std::string language;  ///< `opencl` or `cuda`
  std::string arch;      ///< cuda: what `binary` is for
  std::string source;    ///< all kernels as one text
  std::string binary;    ///< cuda: a cubin; empty for OpenCL, which compiles on the device
  std::string ptx;       ///< cuda: for newer devices than `arch`
  std::vector<GpuKernelCode> kernels;
  std::vector<GpuBuffer> buffers;
  /// Made before the first run, and again when an input they use has been written: what they write
  /// stays.
  std::vector<GpuCall> prepare;
  std::vector<GpuCall> calls;        ///< each sees what earlier ones wrote
  std::vector<int> inputs, outputs;  ///< buffers, in the order of the launch's arguments
  int64_t arena_bytes = 0;
  std::string constants;  ///< the bytes of everything in Place::Constants
};

/// Everything a device relies on: indices, offsets, sizes, grids, and that there is code.
/// errors: Package, all problems at once.
Status validate(const GpuProgram& program);

/// Whether what is prepared depends on the buffer.
bool prepares_with(const GpuProgram& program, int buffer);

/// The bytes of the package member `code/<language>/<name>.bin`.
std::string serialise(const GpuProgram& program);
/// errors: Package: cut off, or what `validate` finds. Memory is bounded by the input's.
Result<GpuProgram> parse_gpu_program(std::string_view bytes);

}  // namespace tilewright::runtime
