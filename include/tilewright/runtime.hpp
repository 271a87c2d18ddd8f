// C++17 on top of runtime.h: owners, exceptions and vectors instead of handles, codes and pointers.
//
//   tw::Session session{tw::Module(path)};  // braces: with (), C++ reads a function declaration
//   session.set_input<float>("data", pixels, {1, 3, 224, 224});
//   session.run();
//   std::vector<float> scores = session.output<float>("scores").values;
#pragma once

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright/runtime.h"

namespace tw {

/// What the C interface reported.
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  int code() const { return code_; }  ///< one of enum tw_code

 private:
  int code_;
};

namespace detail {

/// Takes the error object of a failed call.
class Check {
 public:
  operator tw_error**() { return &error_; }
  void operator()(int code) {
    const std::unique_ptr<tw_error, void (*)(tw_error*)> owner(error_, tw_error_free);
    error_ = nullptr;
    if (code != TW_OK) throw Error(code, owner ? tw_error_text(owner.get()) : "unknown error");
  }

 private:
  tw_error* error_ = nullptr;
};

}  // namespace detail

/// The DLPack type of a C++ type. 16-bit floats have none: give their DLDataType explicitly.
template <class T>
DLDataType dtype_of() {
  static_assert(std::is_arithmetic_v<T>, "an arithmetic type is needed");
  const uint8_t code = std::is_same_v<T, bool>       ? TW_DL_BOOL
                       : std::is_floating_point_v<T> ? static_cast<uint8_t>(kDLFloat)
                       : std::is_signed_v<T>         ? static_cast<uint8_t>(kDLInt)
                                                     : static_cast<uint8_t>(kDLUInt);
  return {code, static_cast<uint8_t>(sizeof(T) * 8), 1};
}

struct TensorInfo {
  std::string name;
  DLDataType dtype;
  std::vector<int64_t> shape;
  int dynamic_axis = -1;
};

template <class T>
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<T> values;
};

/// An open package.
class Module {
 public:
  explicit Module(const std::string& path, bool verify_weights = false) {
    const tw_open_options options = {sizeof options, verify_weights ? 1 : 0};
    detail::Check check;
    tw_module* module = nullptr;
    const int code = tw_module_open(path.c_str(), &options, &module, check);
    check(code);
    handle_.reset(module, tw_module_close);
  }
  tw_module* handle() const { return handle_.get(); }

 private:
  std::shared_ptr<tw_module> handle_;
};

/// One instance of a module; for one thread at a time.
class Session {
 public:
  /// `device`: for packages for a GPU, as in tw_session_options.
  explicit Session(const Module& module, int threads = 0, bool flush_denormals = false,
                   const char* device = nullptr) {
    const tw_session_options options = {sizeof options, threads, flush_denormals ? 1 : 0, device};
    detail::Check check;
    tw_session* session = nullptr;
    const int code = tw_session_create(module.handle(), &options, &session, check);
    check(code);
    handle_.reset(session, tw_session_close);
  }
  tw_session* handle() const { return handle_.get(); }

  std::vector<TensorInfo> inputs() const {
    return infos(tw_session_input_count(handle()), tw_session_input_info);
  }
  std::vector<TensorInfo> outputs() const {
    return infos(tw_session_output_count(handle()), tw_session_output_info);
  }

  /// Copies `count` elements in row-major order.
  template <class T>
  void set_input(const std::string& name, const T* values, std::vector<int64_t> shape) {
    DLTensor tensor = {};
    tensor.data = const_cast<T*>(values);
    tensor.device.device_type = kDLCPU;
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype = dtype_of<T>();
    tensor.shape = shape.data();
    detail::Check check;
    const int code = tw_session_set_input(handle(), name.c_str(), &tensor, check);
    check(code);
  }
  template <class T>
  void set_input(const std::string& name, const std::vector<T>& values,
                 std::vector<int64_t> shape) {
    size_t count = 1;
    for (int64_t extent : shape) count *= static_cast<size_t>(extent);
    if (count != values.size())
      throw Error(TW_INVALID, "input '" + name + "' has " + std::to_string(values.size()) +
                                  " values for a shape of " + std::to_string(count));
    set_input(name, values.data(), std::move(shape));
  }

  void run() {
    detail::Check check;
    const int code = tw_session_run(handle(), nullptr, nullptr, 0, nullptr, nullptr, 0, check);
    check(code);
  }

  /// A copy of an output of the last run.
  template <class T>
  Tensor<T> output(const std::string& name) const {
    DLTensor view = {};
    detail::Check check;
    const int code = tw_session_get_output(handle(), name.c_str(), &view, check);
    check(code);
    const DLDataType wanted = dtype_of<T>();
    if (view.dtype.code != wanted.code || view.dtype.bits != wanted.bits)
      throw Error(TW_INVALID, "output '" + name + "' has another element type");
    Tensor<T> tensor;
    tensor.shape.assign(view.shape, view.shape + view.ndim);
    size_t count = 1;
    for (int64_t extent : tensor.shape) count *= static_cast<size_t>(extent);
    const T* data = static_cast<const T*>(view.data);
    tensor.values.assign(data, data + count);
    return tensor;
  }

 private:
  template <class Info>
  std::vector<TensorInfo> infos(size_t count, Info&& info) const {
    std::vector<TensorInfo> result;
    for (size_t i = 0; i < count; ++i) {
      tw_tensor_info raw = {};
      raw.struct_size = sizeof raw;
      detail::Check check;
      const int code = info(handle(), i, &raw, check);
      check(code);
      result.push_back({raw.name, raw.dtype, {raw.shape, raw.shape + raw.ndim}, raw.dynamic_axis});
    }
    return result;
  }
  std::shared_ptr<tw_session> handle_;
};

}  // namespace tw
