// The entry points of NVIDIA's driver that are used here, found when first needed. Types and
// constants are those of the driver's binary interface.
// source: CUDA Driver API Reference Manual, version 13.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tilewright/base/result.h"

namespace tilewright::runtime {

using CuResult = int;
using CuDevice = int;
using CuMemory = uint64_t;  ///< address on the device
using CuContext = struct CuContextObject*;
using CuModule = struct CuModuleObject*;
using CuFunction = struct CuFunctionObject*;
using CuStream = struct CuStreamObject*;
using CuEvent = struct CuEventObject*;
using CuGraph = struct CuGraphObject*;
using CuGraphExec = struct CuGraphExecObject*;

inline constexpr CuResult kCuSuccess = 0, kCuOutOfMemory = 2, kCuNoDevice = 100, kCuNotFound = 500;
// CUdevice_attribute
inline constexpr int kCuMaxThreads = 1, kCuSharedBytes = 8, kCuUnits = 16, kCuMajor = 75,
                     kCuMinor = 76, kCuMostSharedBytes = 97;
// CUfunction_attribute
inline constexpr int kCuFunctionMaxThreads = 0, kCuFunctionSharedBytes = 1,
                     kCuFunctionDynamicShared = 8;
// CUjit_option
inline constexpr int kCuJitErrorLog = 5, kCuJitErrorLogBytes = 6;
// CUstream_flags, CUstreamCaptureMode, CUevent_flags
inline constexpr unsigned kCuStreamNonBlocking = 1;
inline constexpr int kCuCaptureThreadLocal = 1;
inline constexpr unsigned kCuEventDefault = 0;
/// Recorded while a graph is captured, an event becomes a node of it that sets its time.
inline constexpr unsigned kCuEventRecordDefault = 0;
inline constexpr unsigned kCuEventRecordExternal = 1;

/// CUtensorMap: opaque, made by the driver.
struct alignas(64) CuTensorMap {
  uint64_t opaque[16] = {};
};
// CUtensorMapDataType
inline constexpr int kCuMapU8 = 0, kCuMapU16 = 1, kCuMapU32 = 2, kCuMapI32 = 3, kCuMapU64 = 4,
                     kCuMapI64 = 5, kCuMapF16 = 6, kCuMapF32 = 7, kCuMapF64 = 8, kCuMapBf16 = 9;
// CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill
inline constexpr int kCuMapPlain = 0, kCuMapNoSwizzle = 0, kCuMapSwizzle128 = 3, kCuMapL2Of256 = 3,
                     kCuMapZeros = 0;

struct CudaApi {
  CuResult (*init)(unsigned) = nullptr;
  CuResult (*driver_version)(int*) = nullptr;
  CuResult (*error_name)(CuResult, const char**) = nullptr;
  CuResult (*error_text)(CuResult, const char**) = nullptr;
  CuResult (*device_count)(int*) = nullptr;
  CuResult (*device_get)(CuDevice*, int) = nullptr;
  CuResult (*device_name)(char*, int, CuDevice) = nullptr;
  CuResult (*device_memory)(size_t*, CuDevice) = nullptr;
  CuResult (*device_attribute)(int*, int, CuDevice) = nullptr;
  CuResult (*context_retain)(CuContext*, CuDevice) = nullptr;
  CuResult (*context_release)(CuDevice) = nullptr;
  CuResult (*context_push)(CuContext) = nullptr;
  CuResult (*context_pop)(CuContext*) = nullptr;
  CuResult (*module_load)(CuModule*, const void*, unsigned, int*, void**) = nullptr;
  CuResult (*module_unload)(CuModule) = nullptr;
  CuResult (*module_function)(CuFunction*, CuModule, const char*) = nullptr;
  CuResult (*function_attribute)(int*, int, CuFunction) = nullptr;
  CuResult (*set_function_attribute)(CuFunction, int, int) = nullptr;
  CuResult (*memory_alloc)(CuMemory*, size_t) = nullptr;
  CuResult (*memory_free)(CuMemory) = nullptr;
  CuResult (*copy_to_device)(CuMemory, const void*, size_t, CuStream) = nullptr;
  CuResult (*copy_to_host)(void*, CuMemory, size_t, CuStream) = nullptr;
  CuResult (*stream_create)(CuStream*, unsigned) = nullptr;
  CuResult (*stream_destroy)(CuStream) = nullptr;
  CuResult (*stream_wait)(CuStream) = nullptr;
  CuResult (*capture_begin)(CuStream, int) = nullptr;
  CuResult (*capture_end)(CuStream, CuGraph*) = nullptr;
  CuResult (*graph_instantiate)(CuGraphExec*, CuGraph, unsigned long long) = nullptr;
  CuResult (*graph_launch)(CuGraphExec, CuStream) = nullptr;
  CuResult (*graph_destroy)(CuGraph) = nullptr;
  CuResult (*graph_exec_destroy)(CuGraphExec) = nullptr;
  CuResult (*event_create)(CuEvent*, unsigned) = nullptr;
  CuResult (*event_record)(CuEvent, CuStream, unsigned flags) = nullptr;
  CuResult (*event_milliseconds)(float*, CuEvent, CuEvent) = nullptr;
  CuResult (*event_destroy)(CuEvent) = nullptr;
  CuResult (*launch)(CuFunction, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                     CuStream, void** parameters, void** extra) = nullptr;

  /// Null in drivers before 12.0, which know no such copies.
  CuResult (*tensor_map)(CuTensorMap*, int type, unsigned rank, void* address, const uint64_t* dims,
                         const uint64_t* strides, const uint32_t* box,
                         const uint32_t* element_strides, int interleave, int swizzle,
                         int promotion, int fill) = nullptr;

  /// Ok for success. errors: Capacity (memory), Device; `call` and the driver's words are in them.
  Status check(CuResult code, const std::string& call) const;
};

/// Loads the driver and initialises it. errors: Device, with what to install.
Result<CudaApi> load_cuda();

}  // namespace tilewright::runtime
