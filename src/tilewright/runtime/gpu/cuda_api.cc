#include "tilewright/runtime/gpu/cuda_api.h"

#include <fmt/format.h>

#include "tilewright/base/dynamic_library.h"

namespace tilewright::runtime {
namespace {

/// The table, filled under the names that the library exports.
Status bind_all(const DynamicLibrary& library, CudaApi& api) {
  TW_TRY_STATUS(library.bind(api.init, "cuInit"));
  TW_TRY_STATUS(library.bind(api.driver_version, "cuDriverGetVersion"));
  TW_TRY_STATUS(library.bind(api.error_name, "cuGetErrorName"));
  TW_TRY_STATUS(library.bind(api.error_text, "cuGetErrorString"));
  TW_TRY_STATUS(library.bind(api.device_count, "cuDeviceGetCount"));
  TW_TRY_STATUS(library.bind(api.device_get, "cuDeviceGet"));
  TW_TRY_STATUS(library.bind(api.device_name, "cuDeviceGetName"));
  TW_TRY_STATUS(library.bind(api.device_memory, "cuDeviceTotalMem_v2"));
  TW_TRY_STATUS(library.bind(api.device_attribute, "cuDeviceGetAttribute"));
  TW_TRY_STATUS(library.bind(api.context_retain, "cuDevicePrimaryCtxRetain"));
  TW_TRY_STATUS(library.bind(api.context_release, "cuDevicePrimaryCtxRelease_v2"));
  TW_TRY_STATUS(library.bind(api.context_push, "cuCtxPushCurrent_v2"));
  TW_TRY_STATUS(library.bind(api.context_pop, "cuCtxPopCurrent_v2"));
  TW_TRY_STATUS(library.bind(api.module_load, "cuModuleLoadDataEx"));
  TW_TRY_STATUS(library.bind(api.module_unload, "cuModuleUnload"));
  TW_TRY_STATUS(library.bind(api.module_function, "cuModuleGetFunction"));
  TW_TRY_STATUS(library.bind(api.function_attribute, "cuFuncGetAttribute"));
  TW_TRY_STATUS(library.bind(api.set_function_attribute, "cuFuncSetAttribute"));
  TW_TRY_STATUS(library.bind(api.memory_alloc, "cuMemAlloc_v2"));
  TW_TRY_STATUS(library.bind(api.memory_free, "cuMemFree_v2"));
  TW_TRY_STATUS(library.bind(api.copy_to_device, "cuMemcpyHtoDAsync_v2"));
  TW_TRY_STATUS(library.bind(api.copy_to_host, "cuMemcpyDtoHAsync_v2"));
  TW_TRY_STATUS(library.bind(api.stream_create, "cuStreamCreate"));
  TW_TRY_STATUS(library.bind(api.stream_destroy, "cuStreamDestroy_v2"));
  TW_TRY_STATUS(library.bind(api.stream_wait, "cuStreamSynchronize"));
  TW_TRY_STATUS(library.bind(api.capture_begin, "cuStreamBeginCapture_v2"));
  TW_TRY_STATUS(library.bind(api.capture_end, "cuStreamEndCapture"));
  TW_TRY_STATUS(library.bind(api.graph_instantiate, "cuGraphInstantiateWithFlags"));
  TW_TRY_STATUS(library.bind(api.graph_launch, "cuGraphLaunch"));
  TW_TRY_STATUS(library.bind(api.graph_destroy, "cuGraphDestroy"));
  TW_TRY_STATUS(library.bind(api.graph_exec_destroy, "cuGraphExecDestroy"));
  TW_TRY_STATUS(library.bind(api.event_create, "cuEventCreate"));
  TW_TRY_STATUS(library.bind(api.event_record, "cuEventRecordWithFlags"));
  TW_TRY_STATUS(library.bind(api.event_milliseconds, "cuEventElapsedTime"));
  TW_TRY_STATUS(library.bind(api.event_destroy, "cuEventDestroy_v2"));
  return library.bind(api.launch, "cuLaunchKernel");
}

}  // namespace

Result<CudaApi> load_cuda() {
  const auto unusable = [](const Error& error) {
    return fail(ErrorKind::Device, "there is no usable NVIDIA driver here",
                error.why.empty() ? error.what : error.what + ": " + error.why,
                "install NVIDIA's driver (it brings libcuda.so.1)");
  };
  const Result<DynamicLibrary> library =
      DynamicLibrary::open("TILEWRIGHT_CUDA_DRIVER", {"libcuda.so.1"});
  if (!library) return unusable(library.error());
  CudaApi api;
  if (Status status = bind_all(*library, api); !status) return unusable(status.error());
  api.tensor_map =
      reinterpret_cast<decltype(api.tensor_map)>(library->find("cuTensorMapEncodeTiled"));
  if (Status status = api.check(api.init(0), "cuInit"); !status) return unusable(status.error());
  return api;
}

Status CudaApi::check(CuResult code, const std::string& call) const {
  if (code == kCuSuccess) return {};
  const char* title = nullptr;
  const char* text = nullptr;
  if (error_name(code, &title) != kCuSuccess || title == nullptr) title = "unknown error";
  if (error_text(code, &text) != kCuSuccess || text == nullptr) text = "no text";
  return fail(code == kCuOutOfMemory ? ErrorKind::Capacity : ErrorKind::Device, call + " failed",
              fmt::format("{}: {} (code {})", title, text, code));
}

}  // namespace tilewright::runtime
