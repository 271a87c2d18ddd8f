#include "tilewright/runner/main/session.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

namespace tilewright::runner {
namespace {

ErrorKind kind_of(int code) {
  switch (code) {
    case TW_UNSUPPORTED:
      return ErrorKind::Unsupported;
    case TW_DEVICE:
      return ErrorKind::Device;
    case TW_PACKAGE:
      return ErrorKind::Package;
    case TW_IO:
      return ErrorKind::Io;
    case TW_MEMORY:
      return ErrorKind::Capacity;
    default:
      return ErrorKind::Invalid;
  }
}

/// Takes the error object of one call.
class Call {
 public:
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { tw_error_free(error_); }
  operator tw_error**() { return &error_; }
  Status operator()(int code) const {
    if (code == TW_OK) return {};
    std::string text = tw_error_text(error_);
    if (text.starts_with("error: ")) text.erase(0, 7);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (code == TW_INTERNAL) throw std::runtime_error(text);
    return fail(kind_of(code), std::move(text));
  }

 private:
  tw_error* error_ = nullptr;
};

std::optional<DType> dtype_of(DLDataType type) {
  if (type.lanes != 1) return std::nullopt;
  for (const DType dtype : kAllDTypes) {
    const uint8_t code = dtype == DType::Bool   ? TW_DL_BOOL
                         : dtype == DType::BF16 ? uint8_t{kDLBfloat}
                         : is_float(dtype)      ? uint8_t{kDLFloat}
                         : is_signed_int(dtype) ? uint8_t{kDLInt}
                                                : uint8_t{kDLUInt};
    if (code == type.code && bit_width(dtype) == type.bits) return dtype;
  }
  return std::nullopt;
}

DLDataType dlpack_type(DType dtype) {
  DLDataType type{kDLUInt, static_cast<uint8_t>(bit_width(dtype)), 1};
  if (dtype == DType::Bool)
    type.code = TW_DL_BOOL;
  else if (dtype == DType::BF16)
    type.code = kDLBfloat;
  else if (is_float(dtype))
    type.code = kDLFloat;
  else if (is_signed_int(dtype))
    type.code = kDLInt;
  return type;
}

using InfoFunction = int (*)(const tw_session*, size_t, tw_tensor_info*, tw_error**);

Result<std::vector<TensorName>> names_of(const tw_session* session, size_t count,
                                         InfoFunction info_of) {
  std::vector<TensorName> names;
  for (size_t i = 0; i < count; ++i) {
    tw_tensor_info info{};
    info.struct_size = sizeof info;
    Call call;
    TW_TRY_STATUS(call(info_of(session, i, &info, call)));
    const std::optional<DType> dtype = dtype_of(info.dtype);
    if (!dtype)
      return fail(ErrorKind::Unsupported, fmt::format("'{}' has an unknown type", info.name));
    names.push_back({info.name, *dtype});
  }
  return names;
}

}  // namespace

Result<PackageSession> PackageSession::open(const std::string& path, const std::string& device,
                                            int threads) {
  PackageSession session;
  tw_module* module = nullptr;  // weights are not hashed: whoever received them has done that
  Call open;
  TW_TRY_STATUS(open(tw_module_open(path.c_str(), nullptr, &module, open)));
  session.module_.reset(module);

  tw_session_options options{};
  options.struct_size = sizeof options;
  options.threads = threads;
  options.device = device.empty() ? nullptr : device.c_str();
  tw_session* inner = nullptr;
  Call create;
  TW_TRY_STATUS(create(tw_session_create(module, &options, &inner, create)));
  session.session_.reset(inner);
  session.inputs_ = TW_TRY(names_of(inner, tw_session_input_count(inner), tw_session_input_info));
  session.outputs_ =
      TW_TRY(names_of(inner, tw_session_output_count(inner), tw_session_output_info));
  return session;
}

Status PackageSession::set_input(size_t index, const Array& value) {
  DLTensor tensor{};
  tensor.data = const_cast<void*>(value.data());
  tensor.device.device_type = kDLCPU;
  tensor.ndim = static_cast<int32_t>(value.shape().size());
  tensor.dtype = dlpack_type(value.dtype());
  tensor.shape = const_cast<int64_t*>(value.shape().data());
  Call call;
  return call(tw_session_set_input(session_.get(), inputs_[index].name.c_str(), &tensor, call));
}

Status PackageSession::run() {
  Call call;
  return call(tw_session_run(session_.get(), nullptr, nullptr, 0, nullptr, nullptr, 0, call));
}

Result<Array> PackageSession::output(size_t index) const {
  DLTensor tensor{};
  Call call;
  TW_TRY_STATUS(
      call(tw_session_get_output(session_.get(), outputs_[index].name.c_str(), &tensor, call)));
  return Array(outputs_[index].dtype, Shape(tensor.shape, tensor.shape + tensor.ndim), nullptr,
               static_cast<char*>(tensor.data) + tensor.byte_offset);
}

Result<std::vector<Step>> PackageSession::steps() const {
  std::vector<Step> steps;
  for (size_t i = 0; i < tw_session_step_count(session_.get()); ++i) {
    tw_step_info info{};
    info.struct_size = sizeof info;
    Call call;
    TW_TRY_STATUS(call(tw_session_step_info(session_.get(), i, &info, call)));
    steps.push_back({info.name, info.callee, info.calls, info.total_ns, info.min_ns, info.last_ns});
  }
  return steps;
}

}  // namespace tilewright::runner
