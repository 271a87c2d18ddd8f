#include "tilewright/graph/onnx/import_tensor.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>

#include "tilewright/base/counted.h"
#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {
namespace {

namespace onnx = tilewright_onnx;

struct OnnxType {
  int number;
  const char* name;
  std::optional<DType> dtype;
};
// source: ONNX IR specification, TensorProto.DataType.
const OnnxType kOnnxTypes[] = {
    {1, "float", DType::F32},   {2, "uint8", DType::U8},
    {3, "int8", DType::I8},     {4, "uint16", DType::U16},
    {5, "int16", DType::I16},   {6, "int32", DType::I32},
    {7, "int64", DType::I64},   {8, "string", std::nullopt},
    {9, "bool", DType::Bool},   {10, "float16", DType::F16},
    {11, "double", DType::F64}, {12, "uint32", DType::U32},
    {13, "uint64", DType::U64}, {14, "complex64", {}},
    {15, "complex128", {}},     {16, "bfloat16", DType::BF16},
    {17, "float8e4m3fn", {}},   {18, "float8e4m3fnuz", {}},
    {19, "float8e5m2", {}},     {20, "float8e5m2fnuz", {}},
    {21, "uint4", {}},          {22, "int4", {}},
    {23, "float4e2m1", {}},     {24, "float8e8m0", {}},
    {25, "uint2", {}},          {26, "int2", {}},
};

/// units: bytes; a few bytes of a file must not ask for more memory than there is
constexpr int64_t kMostDense = int64_t{1} << 31;

/// Copies a typed repeated field into an array, converting each element by storage width.
template <class Field>
Result<Array> from_field(const Field& field, DType dtype, const Shape& shape, int64_t count) {
  if (field.size() != count)
    return fail(ErrorKind::Invalid,
                fmt::format("the tensor has {}, but its shape {} needs {}",
                            counted(field.size(), "element"), to_string(shape), count));
  Array array(dtype, shape);
  const bool half = dtype == DType::F16 || dtype == DType::BF16;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = field.Get(static_cast<int>(i));
    if (half) {
      array.as<uint16_t>()[static_cast<size_t>(i)] = static_cast<uint16_t>(value);
    } else if constexpr (std::is_floating_point_v<std::decay_t<decltype(value)>>) {
      array.set(i, static_cast<double>(value));
    } else {
      array.set_int(i, static_cast<int64_t>(value));
    }
  }
  return array;
}

Result<Array> from_typed_fields(const onnx::TensorProto& tensor, DType dtype, const Shape& shape) {
  const int64_t count = element_count(shape);
  switch (dtype) {
    case DType::F32:
      return from_field(tensor.float_data(), dtype, shape, count);
    case DType::F64:
      return from_field(tensor.double_data(), dtype, shape, count);
    case DType::I64:
      return from_field(tensor.int64_data(), dtype, shape, count);
    case DType::U32:
    case DType::U64:
      return from_field(tensor.uint64_data(), dtype, shape, count);
    default:
      return from_field(tensor.int32_data(), dtype, shape, count);
  }
}

/// A view of foreign bytes if they are aligned for the type, else a copy.
Array view_or_copy(DType dtype, const Shape& shape, std::shared_ptr<void> owner, const char* data) {
  const auto align = static_cast<uintptr_t>(bit_width(dtype) / 8);
  if (reinterpret_cast<uintptr_t>(data) % align == 0)
    return Array(dtype, shape, std::move(owner), const_cast<char*>(data));
  Array copy(dtype, shape);
  std::memcpy(copy.data(), data, static_cast<size_t>(copy.bytes()));
  return copy;
}

/// Bools of a file may hold any byte; ours hold 0 or 1.
void normalise_bools(Array& array) {
  bool clean = true;
  for (uint8_t byte : std::as_const(array).as<uint8_t>()) clean &= byte <= 1;
  if (clean) return;
  array = array.clone();
  for (uint8_t& byte : array.as<uint8_t>()) byte = byte != 0;
}

Result<int64_t> number_entry(const std::string& key, const std::string& text) {
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < 0)
    return fail(ErrorKind::Invalid,
                fmt::format("external data has the bad {} '{}'", key, printable(text)));
  return value;
}

}  // namespace

std::optional<DType> dtype_of_onnx(int number) {
  for (const OnnxType& type : kOnnxTypes)
    if (type.number == number) return type.dtype;
  return std::nullopt;
}

int onnx_of_dtype(DType dtype) {
  for (const OnnxType& type : kOnnxTypes)
    if (type.dtype == dtype) return type.number;
  return 0;
}

std::string onnx_type_name(int number) {
  for (const OnnxType& type : kOnnxTypes)
    if (type.number == number) return type.name;
  return number == 0 ? "undefined" : fmt::format("number {}", number);
}

Result<Array> ExternalData::read(const onnx::TensorProto& tensor, DType dtype, const Shape& shape,
                                 int64_t bytes) {
  std::string location;
  int64_t offset = 0, length = bytes;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = TW_TRY(number_entry("offset", entry.value()));
    if (entry.key() == "length") length = TW_TRY(number_entry("length", entry.value()));
  }
  if (length != bytes)
    return fail(ErrorKind::Invalid, fmt::format("external data is {} bytes long, but {}{} needs {}",
                                                length, name(dtype), to_string(shape), bytes));
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path base =
      fs::weakly_canonical(folder_.empty() ? fs::path(".") : fs::path(folder_), ignored);
  const fs::path target = fs::weakly_canonical(base / location, ignored);
  const fs::path inside = target.lexically_relative(base);
  if (location.empty() || fs::path(location).is_absolute() || inside.empty() ||
      *inside.begin() == "..")
    return fail(
        ErrorKind::Invalid,
        fmt::format("external data '{}' lies outside the model's folder", printable(location)), {},
        "put the weights beside the model");
  auto found = files_.find(target.string());
  if (found == files_.end()) {
    MappedFile file = TW_TRY(map_file(target.string()));
    found = files_.emplace(target.string(), std::move(file)).first;
  }
  const MappedFile& file = found->second;
  const auto size = static_cast<int64_t>(file.bytes.size());
  if (offset > size || bytes > size - offset)
    return fail(ErrorKind::Invalid,
                fmt::format("external data '{}' is too short: bytes {}..{} wanted, it has {}",
                            printable(location), offset, offset + bytes, size));
  return view_or_copy(dtype, shape, file.owner, file.bytes.data() + offset);
}

Result<Array> take_tensor(onnx::TensorProto& tensor, ExternalData& external) {
  const std::optional<DType> dtype = dtype_of_onnx(tensor.data_type());
  if (!dtype)
    return fail(ErrorKind::Unsupported, fmt::format("element type {} is not supported",
                                                    onnx_type_name(tensor.data_type())));
  const Shape shape(tensor.dims().begin(), tensor.dims().end());
  const std::optional<int64_t> bytes = checked_bytes(*dtype, shape);
  if (!bytes)
    return fail(ErrorKind::Invalid,
                fmt::format("the tensor has the impossible shape {}", to_string(shape)),
                fmt::format("dimensions must be 0 or more, sizes at most {} bytes", kMaxBytes));
  Array array;
  if (tensor.data_location() == 1) {
    array = TW_TRY(external.read(tensor, *dtype, shape, *bytes));
  } else if (tensor.has_raw_data()) {
    const auto size = static_cast<int64_t>(tensor.raw_data().size());
    if (size != *bytes)
      return fail(ErrorKind::Invalid,
                  fmt::format("the tensor has {}, but {}{} needs {}", counted(size, "byte"),
                              name(*dtype), to_string(shape), *bytes));
    auto owner = std::make_shared<std::string>(std::move(*tensor.mutable_raw_data()));
    const char* data = owner->data();
    array = view_or_copy(*dtype, shape, std::move(owner), data);
  } else {
    array = TW_TRY(from_typed_fields(tensor, *dtype, shape));
  }
  if (*dtype == DType::Bool) normalise_bools(array);
  return array;
}

Result<Array> take_sparse_tensor(onnx::SparseTensorProto& sparse, ExternalData& external) {
  const Array values = TW_TRY(take_tensor(*sparse.mutable_values(), external));
  const Array indices = TW_TRY(take_tensor(*sparse.mutable_indices(), external));
  const Shape shape(sparse.dims().begin(), sparse.dims().end());
  const auto rank = static_cast<int64_t>(shape.size());
  const bool linear = indices.shape() == Shape{values.size()};
  const bool fits = indices.dtype() == DType::I64 && values.shape() == Shape{values.size()} &&
                    (linear || indices.shape() == Shape{values.size(), rank});
  const std::optional<int64_t> bytes = checked_bytes(values.dtype(), shape);
  if (bytes && *bytes > kMostDense)
    return fail(ErrorKind::Capacity,
                fmt::format("with its zeros the sparse tensor has {} bytes, at most {} are read",
                            *bytes, kMostDense));
  if (!fits || !bytes)
    return fail(ErrorKind::Invalid, "values, indices and shape of the sparse tensor do not fit",
                fmt::format("values {}{}, indices {}{}, shape {}", name(values.dtype()),
                            to_string(values.shape()), name(indices.dtype()),
                            to_string(indices.shape()), to_string(shape)));
  Array dense(values.dtype(), shape);
  const auto width = static_cast<size_t>(bit_width(values.dtype()) / 8);
  for (int64_t i = 0; i < values.size(); ++i) {
    int64_t at = 0;
    bool inside = true;
    for (int64_t axis = 0; axis < (linear ? 1 : rank); ++axis) {
      const int64_t extent = linear ? dense.size() : shape[static_cast<size_t>(axis)];
      const int64_t place = indices.get_int(linear ? i : i * rank + axis);
      inside = inside && place >= 0 && place < extent;
      if (inside) at = at * extent + place;
    }
    if (!inside)
      return fail(
          ErrorKind::Invalid,
          fmt::format("the index of value {} lies outside the shape {} of the sparse tensor", i,
                      to_string(shape)));
    std::memcpy(static_cast<char*>(dense.data()) + static_cast<size_t>(at) * width,
                static_cast<const char*>(values.data()) + static_cast<size_t>(i) * width, width);
  }
  return dense;
}

std::string printable(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = byte < 0x80       ? 1
                          : byte >> 5 == 6  ? 2
                          : byte >> 4 == 14 ? 3
                          : byte >> 3 == 30 ? 4
                                            : 0;
    bool valid = length > 0 && i + length <= text.size() && byte >= 0x20 && byte != 0x7f &&
                 byte != 0xc0 && byte != 0xc1 && byte <= 0xf4;
    for (size_t k = 1; valid && k < length; ++k)
      valid = static_cast<unsigned char>(text[i + k]) >> 6 == 2;
    if (valid && length >= 3) {  // overlong forms, surrogates, beyond U+10FFFF
      const auto second = static_cast<unsigned char>(text[i + 1]);
      valid = !(byte == 0xe0 && second < 0xa0) && !(byte == 0xed && second > 0x9f) &&
              !(byte == 0xf0 && second < 0x90) && !(byte == 0xf4 && second > 0x8f);
    }
    if (valid) {
      out.append(text.substr(i, length));
      i += length;
    } else {
      out += '?';
      ++i;
    }
  }
  return out;
}

}  // namespace tilewright::graph
