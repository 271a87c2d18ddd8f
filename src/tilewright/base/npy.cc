// NumPy's .npy format, version 1 and 2. source: numpy.lib.format documentation.
#include "tilewright/base/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "tilewright/base/file.h"

namespace tilewright {
namespace {

struct NpyType {
  const char* code;
  DType dtype;
};
// NumPy has no bfloat16: it is written as its 16 bits (u2) by nobody here, so it is refused.
constexpr NpyType kTypes[] = {{"<f4", DType::F32}, {"<f8", DType::F64}, {"<f2", DType::F16},
                              {"|i1", DType::I8},  {"|u1", DType::U8},  {"<i2", DType::I16},
                              {"<u2", DType::U16}, {"<i4", DType::I32}, {"<u4", DType::U32},
                              {"<i8", DType::I64}, {"<u8", DType::U64}, {"|b1", DType::Bool}};

/// The text between `key': ` and the next comma or bracket of a header dictionary.
std::string_view field(std::string_view header, std::string_view key) {
  const std::string quoted = fmt::format("'{}':", key);
  size_t at = header.find(quoted);
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + quoted.size());
  while (!header.empty() && header.front() == ' ') header.remove_prefix(1);
  const size_t end = header.starts_with("(") ? header.find(')') + 1 : header.find(',');
  header = header.substr(0, end);
  while (!header.empty() && header.back() == ' ') header.remove_suffix(1);
  return header;
}

constexpr int64_t kMostElements = int64_t{1} << 48;
constexpr size_t kMostDims = 64;

/// Reads a shape such as `(2, 3,)`; absent if it is none, or larger than any file.
std::optional<Shape> parse_shape(std::string_view dims) {
  if (dims.size() < 2 || dims.front() != '(' || dims.back() != ')') return std::nullopt;
  Shape shape;
  int64_t product = 1;  // of the extents that are not 0: the order of the axes must not matter
  for (size_t i = 1; i + 1 < dims.size();) {
    const char c = dims[i];
    if (c == ' ' || c == ',' || c == 'L') {  // 3L: as Python 2 wrote it
      ++i;
      continue;
    }
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(dims.data() + i, dims.data() + dims.size(), extent);
    if (error != std::errc() || extent < 0 || extent > kMostElements || shape.size() == kMostDims)
      return std::nullopt;
    if (extent > 0 && product > kMostElements / extent) return std::nullopt;
    product *= std::max<int64_t>(extent, 1);
    shape.push_back(extent);
    i = static_cast<size_t>(end - dims.data());
  }
  return shape;
}

/// Copies elements of `width` bytes that are stored with the first axis innermost (Fortran order)
/// to row-major order. requires: all of them are there.
void copy_from_columns(char* to, const char* from, const Shape& shape, size_t width) {
  const int64_t count = element_count(shape);
  std::vector<int64_t> index(shape.size(), 0), strides(shape.size(), 1);
  for (size_t d = 1; d < shape.size(); ++d) strides[d] = strides[d - 1] * shape[d - 1];
  int64_t source = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * width, from + static_cast<size_t>(source) * width,
                width);
    for (size_t d = shape.size(); d-- > 0;) {
      source += strides[d];
      if (++index[d] < shape[d]) break;
      source -= index[d] * strides[d];
      index[d] = 0;
    }
  }
}

}  // namespace

Result<Array> read_npy(const std::string& path) { return parse_npy(TW_TRY(read_file(path)), path); }

Result<Array> parse_npy(std::string_view file, const std::string& path) {
  auto bad = [&](std::string why) {
    return fail(ErrorKind::Parse, fmt::format("'{}' is not a .npy file", path), std::move(why));
  };
  if (file.size() < 12 || file.compare(0, 6, "\x93NUMPY") != 0) return bad("no NumPy signature");
  const bool v1 = file[6] == 1;
  uint32_t length = 0;
  std::memcpy(&length, file.data() + 8, v1 ? 2 : 4);
  const size_t start = v1 ? 10 : 12;
  if (start + length > file.size()) return bad("the header is cut off");
  const std::string_view header(file.data() + start, length);
  const std::string_view descr = field(header, "descr"), order = field(header, "fortran_order");
  const std::optional<Shape> given = parse_shape(field(header, "shape"));
  if (!given) return bad("its header has no shape, or one that no file has");
  const Shape& shape = *given;
  if (order != "False" && order != "True") return bad("its header has no fortran_order");
  for (const NpyType& type : kTypes) {
    if (descr != fmt::format("'{}'", type.code)) continue;
    const size_t offset = start + length;
    double bytes = bit_width(type.dtype) / 8.0;
    for (int64_t extent : shape) bytes *= static_cast<double>(extent);
    if (bytes > static_cast<double>(file.size() - offset))
      return bad(fmt::format("shape {} needs {} bytes, the file has {}", to_string(shape), bytes,
                             file.size() - offset));
    Array array(type.dtype, shape);
    if (order == "True" && shape.size() > 1)
      copy_from_columns(static_cast<char*>(array.data()), file.data() + offset, shape,
                        static_cast<size_t>(bit_width(type.dtype) / 8));
    else
      std::memcpy(array.data(), file.data() + offset, static_cast<size_t>(array.bytes()));
    return array;
  }
  return fail(ErrorKind::Unsupported,
              fmt::format("'{}' holds elements of type {}, which is not read", path, descr), {},
              "numpy.save(FILE, ARRAY.astype('float32')), or another plain little-endian type");
}

Result<std::string> npy_bytes(const Array& array) {
  for (const NpyType& type : kTypes) {
    if (type.dtype != array.dtype()) continue;
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", type.code,
                    fmt::join(array.shape(), ", "), array.shape().size() == 1 ? "," : "");
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    std::string file("\x93NUMPY\x01\x00", 8);
    const auto length = static_cast<uint16_t>(header.size());
    file.append(reinterpret_cast<const char*>(&length), 2);
    file += header;
    file.append(static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes()));
    return file;
  }
  return fail(ErrorKind::Unsupported, fmt::format("NumPy has no {} type", name(array.dtype())), {},
              "cast the output to f32");
}

Status write_npy(const std::string& path, const Array& array) {
  return write_file(path, TW_TRY(npy_bytes(array)));
}

}  // namespace tilewright
