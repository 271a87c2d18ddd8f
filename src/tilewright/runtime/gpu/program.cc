#include "tilewright/runtime/gpu/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "tilewright/base/bytes.h"
#include "tilewright/runtime/gpu/cuda_arch.h"
#include "tilewright/runtime/limits.h"

namespace tilewright::runtime {
namespace {

using BufferPlace = GpuBuffer::Place;

constexpr std::string_view kMagic = "TWGPUPR4";
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();  // of one dimension
constexpr int64_t kMaxThreads = 1 << 16;                             // of a block
constexpr int64_t kMaxSharedBytes = 1 << 20;                         // of a block
/// A kernel has 4 KiB for its parameters on the devices that offer least, 8 bytes each.
constexpr size_t kMaxParameters = 512;
constexpr uint64_t kPlaces = 4;
/// Parameters that a map takes the place of; its axes, the elements of a box, strides, swizzling.
constexpr size_t kMapParameters = 16, kLeastAxes = 2, kMostAxes = 5;
constexpr int64_t kMostBox = 256, kBoxAlign = 16, kSwizzle = 128;
constexpr int64_t kMostExtent = int64_t{1} << 32, kMostStride = int64_t{1} << 40;

template <class T>
void put_all(std::string& out, const T& numbers) {
  for (const auto number : numbers) put_number(out, static_cast<uint64_t>(number));
}
template <class T>
void put_list(std::string& out, const std::vector<T>& numbers) {
  put_number(out, numbers.size());
  put_all(out, numbers);
}

Result<std::vector<int64_t>> read_list(ByteReader& in, std::string_view what) {
  std::vector<int64_t> numbers(TW_TRY(in.count(8, what)));
  for (int64_t& number : numbers) number = static_cast<int64_t>(TW_TRY(in.number()));
  return numbers;
}

/// Numbers beyond int become -1, which no index is.
Result<std::vector<int>> read_indices(ByteReader& in, std::string_view what) {
  const std::vector<int64_t> numbers = TW_TRY(read_list(in, what));
  std::vector<int> indices;
  for (const int64_t number : numbers)
    indices.push_back(
        number < 0 || number > std::numeric_limits<int>::max() ? -1 : static_cast<int>(number));
  return indices;
}

Status read_map(ByteReader& in, GpuTensorMap& map) {
  const uint64_t buffer = TW_TRY(in.number());
  map.buffer = buffer > std::numeric_limits<int>::max() ? -1 : static_cast<int>(buffer);
  const std::string type = TW_TRY(in.bytes("an element type"));
  const auto dtype = parse_dtype(type);
  if (!dtype) return fail(ErrorKind::Package, fmt::format("a map is of '{}', no type", type));
  map.dtype = *dtype;
  map.dims = TW_TRY(read_list(in, "extents of a map"));
  map.strides = TW_TRY(read_list(in, "strides of a map"));
  map.box = TW_TRY(read_list(in, "the box of a map"));
  map.swizzle_bytes = static_cast<int64_t>(TW_TRY(in.number()));
  return {};
}

Status read_kernel(ByteReader& in, GpuKernelCode& kernel) {
  kernel.symbol = TW_TRY(in.bytes("a symbol"));
  for (int64_t& extent : kernel.grid) extent = static_cast<int64_t>(TW_TRY(in.number()));
  for (int64_t& extent : kernel.block) extent = static_cast<int64_t>(TW_TRY(in.number()));
  kernel.shared_bytes = static_cast<int64_t>(TW_TRY(in.number()));
  kernel.maps.resize(TW_TRY(in.count(48, "maps")));
  for (GpuTensorMap& map : kernel.maps) TW_TRY_STATUS(read_map(in, map));
  return {};
}

Status read_buffer(ByteReader& in, GpuBuffer& buffer) {
  const uint64_t place = TW_TRY(in.number());
  if (place >= kPlaces)
    return fail(ErrorKind::Package, fmt::format("a GPU buffer is in place {}", place),
                fmt::format("places are numbered from 0 to {}", kPlaces - 1));
  buffer.place = static_cast<BufferPlace>(place);
  buffer.offset = static_cast<int64_t>(TW_TRY(in.number()));
  buffer.bytes = static_cast<int64_t>(TW_TRY(in.number()));
  buffer.name = TW_TRY(in.bytes("a name"));
  return {};
}

Status read_call(ByteReader& in, GpuCall& call) {
  const uint64_t kernel = TW_TRY(in.number());
  call.kernel = kernel > std::numeric_limits<int>::max() ? -1 : static_cast<int>(kernel);
  call.step = TW_TRY(in.bytes("a step"));
  call.buffers = TW_TRY(read_indices(in, "buffers of a call"));
  call.scalars = TW_TRY(read_list(in, "scalars of a call"));
  return {};
}

bool is_identifier(const std::string& text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

std::string text_of(const std::array<int64_t, 3>& extents) {
  return fmt::format("{} x {} x {}", extents[0], extents[1], extents[2]);
}

/// Gathers the problems of a program; a few dozen are enough for anyone.
class Validator {
 public:
  explicit Validator(const GpuProgram& program) : program_(program) {}

  Status run() {
    check_code();
    for (const GpuKernelCode& kernel : program_.kernels) check_kernel(kernel);
    if (program_.arena_bytes < 0 || program_.arena_bytes > kMaxBytes)
      add(fmt::format("the arena has {} bytes", program_.arena_bytes));
    for (size_t i = 0; i < program_.buffers.size(); ++i) check_buffer(i);
    check_interface("input", program_.inputs, BufferPlace::Input);
    check_interface("output", program_.outputs, BufferPlace::Output);
    parameters_.assign(program_.kernels.size(), {});
    for (size_t i = 0; i < program_.prepare.size(); ++i) check_call(i, program_.prepare[i]);
    for (size_t i = 0; i < program_.calls.size(); ++i) check_call(i, program_.calls[i]);
    return status();
  }

 private:
  static constexpr size_t kMost = 50;

  void add(std::string what) {
    if (errors_.size() < kMost)
      errors_.push_back(Error{ErrorKind::Package, std::move(what), {}, {}, {}, {}});
  }

  void check_code() {
    if (program_.language == "opencl") {
      if (program_.source.empty()) add("the OpenCL source has 0 bytes");
      return;
    }
    if (program_.language != "cuda")
      return add(
          fmt::format("code for a GPU in '{}', not in 'opencl' or 'cuda'", program_.language));
    if (!parse_cuda_arch(program_.arch))
      add(fmt::format("'{}' is no architecture like sm_90", program_.arch));
    if (program_.binary.empty() && program_.ptx.empty() && program_.source.empty())
      add("there is neither a cubin, nor PTX, nor CUDA source");
    if (!program_.binary.empty() && !program_.binary.starts_with("\x7f"
                                                                 "ELF"))
      add(fmt::format("the {} bytes of code for {} are no cubin", program_.binary.size(),
                      program_.arch));
  }

  void check_kernel(const GpuKernelCode& kernel) {
    if (!is_identifier(kernel.symbol) || !symbols_.insert(kernel.symbol).second)
      add(fmt::format("'{}' is no symbol, or two kernels have it", kernel.symbol));
    int64_t threads = 1;
    bool fits = true;
    for (size_t d = 0; d < 3; ++d) {
      fits = fits && kernel.grid[d] >= 1 && kernel.grid[d] <= kMaxBlocks;
      fits = fits && kernel.block[d] >= 1 && kernel.block[d] <= kMaxThreads;
      if (fits) threads *= kernel.block[d];
    }
    if (!fits || threads > kMaxThreads)
      add(fmt::format("kernel '{}' has {} blocks of {} threads", kernel.symbol,
                      text_of(kernel.grid), text_of(kernel.block)));
    if (kernel.shared_bytes < 0 || kernel.shared_bytes > kMaxSharedBytes ||
        (kernel.shared_bytes > 0 && program_.language != "cuda"))
      add(fmt::format("kernel '{}' asks for {} bytes of shared memory", kernel.symbol,
                      kernel.shared_bytes));
    if (!kernel.maps.empty() && program_.language != "cuda")
      add(fmt::format("kernel '{}' has maps, which only CUDA knows", kernel.symbol));
    for (const GpuTensorMap& map : kernel.maps)
      if (!is_map(map))
        add(fmt::format(
            "a map of kernel '{}' is none: {} [{}], strides [{}], box [{}], swizzled by "
            "{} bytes",
            kernel.symbol, name(map.dtype), fmt::join(map.dims, ", "), fmt::join(map.strides, ", "),
            fmt::join(map.box, ", "), map.swizzle_bytes));
  }

  /// Whether the driver makes a map of it.
  static bool is_map(const GpuTensorMap& map) {
    const size_t axes = map.dims.size();
    const int64_t bits = bit_width(map.dtype);
    if (axes < kLeastAxes || axes > kMostAxes || map.strides.size() + 1 != axes ||
        map.box.size() != axes || bits % 8 != 0 ||
        (map.swizzle_bytes != 0 && map.swizzle_bytes != kSwizzle))
      return false;
    const auto within = [](const std::vector<int64_t>& list, int64_t least, int64_t most) {
      return std::all_of(list.begin(), list.end(),
                         [&](int64_t x) { return x >= least && x <= most; });
    };
    if (!within(map.dims, 1, kMostExtent) || !within(map.box, 1, kMostBox) ||
        !within(map.strides, kBoxAlign, kMostStride - 1))
      return false;
    const int64_t row = map.box[0] * bits / 8;
    return row % kBoxAlign == 0 && (map.swizzle_bytes == 0 || row <= map.swizzle_bytes) &&
           std::all_of(map.strides.begin(), map.strides.end(),
                       [](int64_t stride) { return stride % kBoxAlign == 0; });
  }

  /// Bytes from the start of a map's buffer to the end of its last element.
  static int64_t reach(const GpuTensorMap& map) {
    int64_t last = (map.dims[0] - 1) * (bit_width(map.dtype) / 8);
    for (size_t axis = 1; axis < map.dims.size(); ++axis) {
      // Beyond any buffer, and below where numbers end.
      if (map.dims[axis] > 1 && map.strides[axis - 1] > kMaxBytes / (map.dims[axis] - 1))
        return kMaxBytes + 1;
      last = std::min(last + (map.dims[axis] - 1) * map.strides[axis - 1], kMaxBytes);
    }
    return last + bit_width(map.dtype) / 8;
  }

  /// Maps stay within the buffers that a call passes.
  void check_maps(size_t index, const GpuCall& call, const GpuKernelCode& kernel) {
    for (const GpuTensorMap& map : kernel.maps) {
      if (map.buffer < 0 || static_cast<size_t>(map.buffer) >= call.buffers.size()) {
        add(fmt::format("a map of kernel '{}' is of buffer {} of {}", kernel.symbol, map.buffer,
                        call.buffers.size()));
        continue;
      }
      const GpuBuffer* buffer = buffer_at(call.buffers[static_cast<size_t>(map.buffer)]);
      if (buffer != nullptr && is_map(map) && reach(map) > buffer->bytes)
        add(fmt::format("call {} ({}) passes '{}' of {} bytes, its map is of {}", index, call.step,
                        buffer->name, buffer->bytes, reach(map)));
    }
  }

  void check_buffer(size_t index) {
    const GpuBuffer& buffer = program_.buffers[index];
    const bool part = buffer.place == BufferPlace::Arena || buffer.place == BufferPlace::Constants;
    const int64_t whole = buffer.place == BufferPlace::Arena
                              ? program_.arena_bytes
                              : static_cast<int64_t>(program_.constants.size());
    const bool sized = buffer.bytes >= 1 && buffer.bytes <= kMaxBytes;
    const bool placed = !part ? buffer.offset == 0
                              : buffer.offset >= 0 && buffer.offset % kGpuAlign == 0 &&
                                    buffer.offset <= whole && buffer.bytes <= whole - buffer.offset;
    if (!sized || !placed)
      add(fmt::format("buffer {} '{}' has {} bytes from {} on{}", index, buffer.name, buffer.bytes,
                      buffer.offset,
                      part ? fmt::format(" of {}, in steps of {}", whole, kGpuAlign) : ""));
  }

  const GpuBuffer* buffer_at(int index) const {
    return index >= 0 && static_cast<size_t>(index) < program_.buffers.size()
               ? &program_.buffers[static_cast<size_t>(index)]
               : nullptr;
  }

  /// Every buffer of the place is listed once, and nothing else is.
  void check_interface(const char* what, const std::vector<int>& list, BufferPlace place) {
    std::set<int> seen;
    for (const int index : list) {
      const GpuBuffer* buffer = buffer_at(index);
      if (buffer == nullptr || buffer->place != place || !seen.insert(index).second)
        add(fmt::format("buffer {} is no {}, or one twice", index, what));
    }
    const auto there =
        std::count_if(program_.buffers.begin(), program_.buffers.end(),
                      [&](const GpuBuffer& buffer) { return buffer.place == place; });
    if (static_cast<size_t>(there) != seen.size())
      add(fmt::format("{} buffers are {}s, {} are listed as such", there, what, seen.size()));
  }

  void check_call(size_t index, const GpuCall& call) {
    for (const int buffer : call.buffers)
      if (buffer_at(buffer) == nullptr)
        add(fmt::format("call {} ({}) uses buffer {} of {}", index, call.step, buffer,
                        program_.buffers.size()));
    if (call.kernel < 0 || static_cast<size_t>(call.kernel) >= program_.kernels.size())
      return add(fmt::format("call {} ({}) runs kernel {} of {}", index, call.step, call.kernel,
                             program_.kernels.size()));
    const GpuKernelCode& kernel = program_.kernels[static_cast<size_t>(call.kernel)];
    check_maps(index, call, kernel);
    Parameters& first = parameters_[static_cast<size_t>(call.kernel)];
    if (!first.known) first = {true, call.buffers.size(), call.scalars.size()};
    const size_t width = program_.language == "opencl" ? 2 : 1;  // parameters of a buffer
    if (first.buffers != call.buffers.size() || first.scalars != call.scalars.size() ||
        width * call.buffers.size() + call.scalars.size() + kMapParameters * kernel.maps.size() >
            kMaxParameters)
      add(fmt::format(
          "call {} ({}) passes {} buffers and {} scalars; the first call of its kernel {} and {}, "
          "and {} parameters are the most",
          index, call.step, call.buffers.size(), call.scalars.size(), first.buffers, first.scalars,
          kMaxParameters));
  }

  Status status() {
    if (errors_.empty()) return {};
    Error first = std::move(errors_.front());
    first.others.assign(std::make_move_iterator(errors_.begin() + 1),
                        std::make_move_iterator(errors_.end()));
    return tl::unexpected<Error>(std::move(first));
  }

  struct Parameters {
    bool known = false;
    size_t buffers = 0, scalars = 0;
  };
  const GpuProgram& program_;
  std::set<std::string> symbols_;
  std::vector<Parameters> parameters_;  // by kernel
  std::vector<Error> errors_;
};

}  // namespace

Status validate(const GpuProgram& program) { return Validator(program).run(); }

bool prepares_with(const GpuProgram& program, int buffer) {
  return std::any_of(program.prepare.begin(), program.prepare.end(), [&](const GpuCall& call) {
    return std::find(call.buffers.begin(), call.buffers.end(), buffer) != call.buffers.end();
  });
}

std::string serialise(const GpuProgram& program) {
  std::string out(kMagic);
  for (const std::string* text :
       {&program.language, &program.arch, &program.source, &program.binary, &program.ptx})
    put_bytes(out, *text);
  put_number(out, program.kernels.size());
  for (const GpuKernelCode& kernel : program.kernels) {
    put_bytes(out, kernel.symbol);
    put_all(out, kernel.grid);
    put_all(out, kernel.block);
    put_number(out, static_cast<uint64_t>(kernel.shared_bytes));
    put_number(out, kernel.maps.size());
    for (const GpuTensorMap& map : kernel.maps) {
      put_number(out, static_cast<uint64_t>(map.buffer));
      put_bytes(out, name(map.dtype));
      for (const auto* list : {&map.dims, &map.strides, &map.box}) put_list(out, *list);
      put_number(out, static_cast<uint64_t>(map.swizzle_bytes));
    }
  }
  put_number(out, program.buffers.size());
  for (const GpuBuffer& buffer : program.buffers) {
    put_number(out, static_cast<uint64_t>(buffer.place));
    put_number(out, static_cast<uint64_t>(buffer.offset));
    put_number(out, static_cast<uint64_t>(buffer.bytes));
    put_bytes(out, buffer.name);
  }
  for (const std::vector<GpuCall>* calls : {&program.prepare, &program.calls}) {
    put_number(out, calls->size());
    for (const GpuCall& call : *calls) {
      put_number(out, static_cast<uint64_t>(call.kernel));
      put_bytes(out, call.step);
      put_list(out, call.buffers);
      put_list(out, call.scalars);
    }
  }
  put_list(out, program.inputs);
  put_list(out, program.outputs);
  put_number(out, static_cast<uint64_t>(program.arena_bytes));
  put_bytes(out, program.constants);
  return out;
}

Result<GpuProgram> parse_gpu_program(std::string_view bytes) {
  ByteReader in(bytes, ErrorKind::Package, "GPU program");
  const Result<std::string_view> magic = in.take(kMagic.size(), "the signature");
  if (!magic || *magic != kMagic)
    return fail(ErrorKind::Package, "not a GPU program",
                fmt::format("the signature `{}` is not there", kMagic),
                "compile the program again");
  GpuProgram program;
  for (std::string* text :
       {&program.language, &program.arch, &program.source, &program.binary, &program.ptx})
    *text = TW_TRY(in.bytes("code"));
  program.kernels.resize(TW_TRY(in.count(72, "kernels")));
  for (GpuKernelCode& kernel : program.kernels) TW_TRY_STATUS(read_kernel(in, kernel));
  program.buffers.resize(TW_TRY(in.count(32, "buffers")));
  for (GpuBuffer& buffer : program.buffers) TW_TRY_STATUS(read_buffer(in, buffer));
  for (std::vector<GpuCall>* calls : {&program.prepare, &program.calls}) {
    calls->resize(TW_TRY(in.count(32, "calls")));
    for (GpuCall& call : *calls) TW_TRY_STATUS(read_call(in, call));
  }
  program.inputs = TW_TRY(read_indices(in, "inputs"));
  program.outputs = TW_TRY(read_indices(in, "outputs"));
  program.arena_bytes = static_cast<int64_t>(TW_TRY(in.number()));
  program.constants = TW_TRY(in.bytes("constants"));
  if (in.left() != 0)
    return fail(ErrorKind::Package, "a GPU program ends too late",
                fmt::format("{} bytes after byte {}", in.left(), in.at()),
                "compile the program again");
  TW_TRY_STATUS(validate(program));
  return program;
}

}  // namespace tilewright::runtime
