// The C interface: handles around Package and Session; no exception leaves it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "tilewright/runtime.h"
#include "tilewright/runtime/executor.h"
#include "tilewright/runtime/gpu/device.h"
#include "tilewright/runtime/layout.h"
#include "tilewright/runtime/package.h"

#define TW_EXPORT __attribute__((visibility("default")))

namespace tw_runtime = tilewright::runtime;
using tilewright::Array;
using tilewright::DType;
using tilewright::ErrorKind;
using tilewright::Shape;
using tilewright::Status;

struct tw_error {
  int code;
  std::string text;
};

struct tw_module {
  std::shared_ptr<const tw_runtime::Package> package;
};

struct tw_session {
  std::unique_ptr<tw_runtime::Session> session;
  std::vector<Array> views;  ///< what tw_session_get_output handed out, by output
};

namespace {

int code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Package:
    case ErrorKind::Parse:
      return TW_PACKAGE;
    case ErrorKind::Io:
      return TW_IO;
    case ErrorKind::Capacity:
      return TW_MEMORY;
    case ErrorKind::Unsupported:
      return TW_UNSUPPORTED;
    case ErrorKind::Device:
      return TW_DEVICE;
    default:
      return TW_INVALID;
  }
}

int report(int code, std::string text, tw_error** error) noexcept {
  if (error != nullptr) *error = new (std::nothrow) tw_error{code, std::move(text)};
  return code;
}

/// Runs f, a function without arguments that gives a Status; turns whatever happens into a code.
template <class F>
int guarded(tw_error** error, F&& f) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    const Status status = f();
    if (status) return TW_OK;
    return report(code_of(status.error().kind), to_string(status.error()), error);
  } catch (const std::bad_alloc&) {
    return report(TW_MEMORY, "error: no memory\n", error);
  } catch (const std::exception& e) {
    return report(TW_INTERNAL, fmt::format("error: internal: {}\n", e.what()), error);
  }
}

Status invalid(std::string what, std::string why = {}) {
  return tilewright::fail(ErrorKind::Invalid, std::move(what), std::move(why));
}

/// What both sides know of a struct: older callers have shorter ones.
template <class Options>
Options known_part(const Options* given) {
  Options options{};
  if (given != nullptr)
    std::memcpy(&options, given, std::min<size_t>(given->struct_size, sizeof options));
  return options;
}

template <class Info>
Status hand_out(Info filled, Info* info) {
  if (info == nullptr || info->struct_size < sizeof info->struct_size)
    return invalid("struct_size is not set");
  filled.struct_size = info->struct_size;
  std::memcpy(info, &filled, std::min<size_t>(info->struct_size, sizeof filled));
  return {};
}

DLDataType to_dlpack(DType dtype) {
  const uint8_t code = dtype == DType::Bool               ? TW_DL_BOOL
                       : dtype == DType::BF16             ? static_cast<uint8_t>(kDLBfloat)
                       : tilewright::is_float(dtype)      ? static_cast<uint8_t>(kDLFloat)
                       : tilewright::is_signed_int(dtype) ? static_cast<uint8_t>(kDLInt)
                                                          : static_cast<uint8_t>(kDLUInt);
  return {code, static_cast<uint8_t>(tilewright::bit_width(dtype)), 1};
}

/// Whether a tensor of type `given` may stand for `wanted`; bytes count as bool.
bool same_type(DLDataType given, DType wanted) {
  const DLDataType expected = to_dlpack(wanted);
  if (given.lanes != 1 || given.bits != expected.bits) return false;
  return given.code == expected.code || (wanted == DType::Bool && given.code == kDLUInt);
}

bool is_dense(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  for (int i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

/// Why a tensor cannot stand for `value`; empty if it can.
std::string objection(const tw_runtime::ValueSpec& value, const DLTensor& tensor,
                      const Shape& shape) {
  int32_t device = 0;  // a newer DLPack has devices that the enumeration here does not list
  static_assert(sizeof device == sizeof tensor.device.device_type);
  std::memcpy(&device, &tensor.device.device_type, sizeof device);
  if (device != kDLCPU) return "it is not in the CPU's memory";
  if (tensor.data == nullptr && std::find(shape.begin(), shape.end(), 0) == shape.end())
    return "its data pointer is null";
  if (!is_dense(tensor)) return "it has strides: only row-major tensors without gaps are read";
  if (same_type(tensor.dtype, value.dtype)) return {};
  const DLDataType expected = to_dlpack(value.dtype);
  return fmt::format(
      "DLPack code {} with {} bits and 1 lane ({}) is expected, {}, {}, {} was given",
      expected.code, expected.bits, name(value.dtype), tensor.dtype.code, tensor.dtype.bits,
      tensor.dtype.lanes);
}

/// The caller's tensor as an array of the program's type. errors: Invalid.
tilewright::Result<Array> view_of(const char* what, const tw_runtime::ValueSpec& value,
                                  const DLTensor& tensor) {
  Shape shape;
  if (tensor.ndim > 0 && tensor.shape != nullptr)
    shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  TW_TRY_STATUS(check_shape(what, value, shape));
  if (const std::string why = objection(value, tensor, shape); !why.empty())
    return tilewright::fail(ErrorKind::Invalid,
                            fmt::format("{} '{}' cannot be used", what, value.name), why);
  alignas(64) static char nothing[64];  // an empty tensor still needs an address
  char* data =
      tensor.data == nullptr ? nothing : static_cast<char*>(tensor.data) + tensor.byte_offset;
  return Array(value.dtype, std::move(shape), nullptr, data);
}

/// Position of the i-th given tensor, by name or by order.
tilewright::Result<size_t> position(const tw_runtime::Program& program, const std::vector<int>& ids,
                                    const char* const* names, size_t i) {
  if (names == nullptr) {
    if (i < ids.size()) return i;
    return tilewright::fail(ErrorKind::Invalid, "more tensors are given than the program has",
                            fmt::format("it has {}", ids.size()));
  }
  for (size_t at = 0; at < ids.size(); ++at)
    if (names[i] != nullptr && program.values[static_cast<size_t>(ids[at])].name == names[i])
      return at;
  return ids.size();  // the session's own message suggests names
}

const tw_runtime::ValueSpec& value_at(const tw_session* session, const std::vector<int>& ids,
                                      size_t i) {
  return session->session->program().values[static_cast<size_t>(ids[i])];
}

const std::vector<int>& inputs_of(const tw_session* session) {
  return session->session->program().inputs;
}
const std::vector<int>& outputs_of(const tw_session* session) {
  return session->session->program().outputs;
}

const char* name_at(const tw_session* session, const std::vector<int>& ids, size_t i) {
  return i < ids.size() ? value_at(session, ids, i).name.c_str() : nullptr;
}

Status tensor_info(const tw_session* session, const std::vector<int>& ids, size_t i,
                   tw_tensor_info* info) {
  if (i >= ids.size())
    return invalid(fmt::format("there is no tensor {}", i),
                   fmt::format("there are {}", ids.size()));
  const tw_runtime::ValueSpec& value = value_at(session, ids, i);
  tw_tensor_info filled{};
  filled.name = value.name.c_str();
  filled.shape = value.shape.data();
  filled.ndim = static_cast<int32_t>(value.shape.size());
  filled.dtype = to_dlpack(value.dtype);
  filled.dynamic_axis = value.dynamic_axis;
  return hand_out(filled, info);
}

/// Describes output `at` of the last run; the session keeps the view alive.
Status describe_output(tw_session* session, size_t at, DLTensor* tensor) {
  Array& view = session->views[at];
  view = TW_TRY(session->session->get_output(value_at(session, outputs_of(session), at).name));
  *tensor = DLTensor{};
  tensor->data = view.data();
  tensor->device.device_type = kDLCPU;
  tensor->ndim = static_cast<int32_t>(view.shape().size());
  tensor->dtype = to_dlpack(view.dtype());
  tensor->shape = const_cast<int64_t*>(view.shape().data());
  return {};
}

struct GivenTensors {
  const char* const* input_names;
  const DLTensor* inputs;
  size_t input_count;
  const char* const* output_names;
  DLTensor* outputs;
  size_t output_count;
};

Status bind_all(tw_session* session, const GivenTensors& given, std::vector<size_t>& positions) {
  tw_runtime::Session& inner = *session->session;
  const tw_runtime::Program& program = inner.program();
  for (size_t i = 0; i < given.input_count; ++i) {
    const size_t at = TW_TRY(position(program, program.inputs, given.input_names, i));
    if (at == program.inputs.size())
      return inner.bind_input(given.input_names[i] ? given.input_names[i] : "", Array());
    const auto& value = value_at(session, program.inputs, at);
    TW_TRY_STATUS(inner.bind_input(value.name, TW_TRY(view_of("input", value, given.inputs[i]))));
  }
  for (size_t i = 0; i < given.output_count; ++i) {
    const size_t at = TW_TRY(position(program, program.outputs, given.output_names, i));
    if (at == program.outputs.size())
      return inner.bind_output(given.output_names[i] ? given.output_names[i] : "", Array());
    positions.push_back(at);
    if (given.outputs[i].data == nullptr) continue;
    const auto& value = value_at(session, program.outputs, at);
    TW_TRY_STATUS(
        inner.bind_output(value.name, TW_TRY(view_of("output", value, given.outputs[i]))));
  }
  return {};
}

Status run_once(tw_session* session, const GivenTensors& given) {
  std::vector<size_t> positions;
  TW_TRY_STATUS(bind_all(session, given, positions));
  TW_TRY_STATUS(session->session->run());
  for (size_t i = 0; i < positions.size(); ++i) {
    DLTensor view{};
    TW_TRY_STATUS(describe_output(session, positions[i], &view));
    if (given.outputs[i].data == nullptr)
      given.outputs[i] = view;
    else
      std::copy(view.shape, view.shape + view.ndim, given.outputs[i].shape);
  }
  return {};
}

}  // namespace

extern "C" {

TW_EXPORT const char* tw_version(void) { return TILEWRIGHT_VERSION; }

TW_EXPORT int tw_error_code(const tw_error* error) {
  return error == nullptr ? static_cast<int>(TW_OK) : error->code;
}
TW_EXPORT const char* tw_error_text(const tw_error* error) {
  return error == nullptr ? "" : error->text.c_str();
}
TW_EXPORT void tw_error_free(tw_error* error) { delete error; }

TW_EXPORT int tw_module_open(const char* path, const tw_open_options* options, tw_module** module,
                             tw_error** error) {
  return guarded(error, [&]() -> Status {
    if (path == nullptr || module == nullptr) return invalid("path and module must not be null");
    *module = nullptr;
    tw_runtime::OpenOptions inner;
    inner.verify_weights = known_part(options).verify_weights != 0;
    auto package = TW_TRY(tw_runtime::Package::open(path, inner));
    *module = new tw_module{std::move(package)};
    return {};
  });
}
TW_EXPORT void tw_module_close(tw_module* module) { delete module; }

TW_EXPORT int tw_session_create(tw_module* module, const tw_session_options* options,
                                tw_session** session, tw_error** error) {
  return guarded(error, [&]() -> Status {
    if (module == nullptr || session == nullptr)
      return invalid("module and session must not be null");
    *session = nullptr;
    const tw_session_options known = known_part(options);
    tw_runtime::SessionOptions inner;
    inner.threads = known.threads;
    inner.flush_denormals = known.flush_denormals != 0;
    const std::string device = known.device == nullptr ? "" : known.device;
    if (!device.empty() && module->package->program().launches.empty())
      return invalid(fmt::format("the package does not run on '{}'", device),
                     "its code is for the CPU");
    inner.load_launch = tw_runtime::gpu_launch_loader(device);
    auto created = TW_TRY(tw_runtime::Session::create(module->package, inner));
    const size_t outputs = created->program().outputs.size();
    *session = new tw_session{std::move(created), std::vector<Array>(outputs)};
    return {};
  });
}
TW_EXPORT void tw_session_close(tw_session* session) { delete session; }

TW_EXPORT size_t tw_session_input_count(const tw_session* session) {
  return session == nullptr ? 0 : inputs_of(session).size();
}
TW_EXPORT size_t tw_session_output_count(const tw_session* session) {
  return session == nullptr ? 0 : outputs_of(session).size();
}
TW_EXPORT const char* tw_session_input_name(const tw_session* session, size_t index) {
  return session == nullptr ? nullptr : name_at(session, inputs_of(session), index);
}
TW_EXPORT const char* tw_session_output_name(const tw_session* session, size_t index) {
  return session == nullptr ? nullptr : name_at(session, outputs_of(session), index);
}
TW_EXPORT int tw_session_input_info(const tw_session* session, size_t index, tw_tensor_info* info,
                                    tw_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return invalid("session must not be null");
    return tensor_info(session, inputs_of(session), index, info);
  });
}
TW_EXPORT int tw_session_output_info(const tw_session* session, size_t index, tw_tensor_info* info,
                                     tw_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return invalid("session must not be null");
    return tensor_info(session, outputs_of(session), index, info);
  });
}

TW_EXPORT int tw_session_set_input(tw_session* session, const char* name, const DLTensor* tensor,
                                   tw_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr || name == nullptr || tensor == nullptr)
      return invalid("session, name and tensor must not be null");
    const size_t at = TW_TRY(position(session->session->program(), inputs_of(session), &name, 0));
    if (at == inputs_of(session).size()) return session->session->set_input(name, Array());
    const Array view = TW_TRY(view_of("input", value_at(session, inputs_of(session), at), *tensor));
    return session->session->set_input(name, view);
  });
}

TW_EXPORT int tw_session_run(tw_session* session, const char* const* input_names,
                             const DLTensor* inputs, size_t input_count,
                             const char* const* output_names, DLTensor* outputs,
                             size_t output_count, tw_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr || (input_count > 0 && inputs == nullptr) ||
        (output_count > 0 && outputs == nullptr))
      return invalid("session and tensors must not be null");
    Status status =
        run_once(session, {input_names, inputs, input_count, output_names, outputs, output_count});
    session->session->unbind();  // the caller's memory may be gone after this call
    return status;
  });
}

TW_EXPORT int tw_session_get_output(tw_session* session, const char* name, DLTensor* tensor,
                                    tw_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr || name == nullptr || tensor == nullptr)
      return invalid("session, name and tensor must not be null");
    const size_t at = TW_TRY(position(session->session->program(), outputs_of(session), &name, 0));
    if (at < outputs_of(session).size()) return describe_output(session, at, tensor);
    return session->session->get_output(name).map([](const Array&) {});
  });
}

TW_EXPORT size_t tw_session_step_count(const tw_session* session) {
  return session == nullptr ? 0 : session->session->profile().size();
}
TW_EXPORT int tw_session_step_info(const tw_session* session, size_t index, tw_step_info* info,
                                   tw_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr || index >= session->session->profile().size())
      return invalid(fmt::format("there is no step {}", index));
    const tw_runtime::StepProfile& step = session->session->profile()[index];
    tw_step_info filled{};
    filled.name = step.name.c_str();
    filled.callee = step.callee.c_str();
    filled.calls = step.calls;
    filled.total_ns = step.total_ns;
    filled.min_ns = step.min_ns;
    filled.last_ns = step.last_ns;
    return hand_out(filled, info);
  });
}

}  // extern "C"
