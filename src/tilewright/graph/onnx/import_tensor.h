// ONNX tensors and element types to arrays; external weight files, mapped.
#pragma once

#include <tilewright_onnx.pb.h>

#include <map>
#include <string>

#include "tilewright/base/array.h"
#include "tilewright/base/file.h"

namespace tilewright::graph {

/// The Tilewright type of an ONNX element type number, if there is one.
std::optional<DType> dtype_of_onnx(int number);
int onnx_of_dtype(DType dtype);
/// `string`, `complex64`, `float8e4m3fn`, ... or `element type 77`.
std::string onnx_type_name(int number);

/// Files with weights beside a model; each is mapped once.
class ExternalData {
 public:
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}
  /// `bytes` bytes (or the rest of the file if length is absent) at the place the entries name.
  /// errors: Invalid (path outside the folder, range outside the file), Io.
  Result<Array> read(const tilewright_onnx::TensorProto& tensor, DType dtype, const Shape& shape,
                     int64_t bytes);

 private:
  std::string folder_;
  std::map<std::string, MappedFile> files_;
};

/// The value of `tensor`; takes over its raw bytes instead of copying them. errors: Invalid,
/// Unsupported, Io.
Result<Array> take_tensor(tilewright_onnx::TensorProto& tensor, ExternalData& external);

/// The same of a sparse tensor, with its zeros. Indices are positions in the whole tensor, or a row
/// of coordinates for each value.
Result<Array> take_sparse_tensor(tilewright_onnx::SparseTensorProto& sparse,
                                 ExternalData& external);

/// `text` as valid UTF-8 without control characters (others become '?'), for names and messages.
std::string printable(std::string_view text);

}  // namespace tilewright::graph
