// OpenCL's entry points, found when first needed.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <string>

#include "tilewright/base/result.h"
#include "tilewright/runtime/gpu/handle.h"

namespace tilewright::runtime {

// clang-format off
#define TW_OPENCL_FUNCTIONS(X)          \
  X(clGetPlatformIDs)                   \
  X(clGetDeviceIDs)                     \
  X(clGetDeviceInfo)                    \
  X(clCreateContext)                    \
  X(clReleaseContext)                   \
  X(clCreateCommandQueueWithProperties) \
  X(clReleaseCommandQueue)              \
  X(clCreateProgramWithSource)          \
  X(clCreateProgramWithBinary)          \
  X(clBuildProgram)                     \
  X(clGetProgramBuildInfo)              \
  X(clGetProgramInfo)                   \
  X(clReleaseProgram)                   \
  X(clCreateKernel)                     \
  X(clSetKernelArg)                     \
  X(clGetKernelInfo)                    \
  X(clGetKernelWorkGroupInfo)           \
  X(clReleaseKernel)                    \
  X(clCreateBuffer)                     \
  X(clReleaseMemObject)                 \
  X(clEnqueueReadBuffer)                \
  X(clEnqueueWriteBuffer)               \
  X(clEnqueueNDRangeKernel)             \
  X(clFinish)                           \
  X(clGetEventProfilingInfo)            \
  X(clReleaseEvent)
// clang-format on

struct OpenClApi {
#define TW_DECLARE(name) decltype(&::name) name = nullptr;
  TW_OPENCL_FUNCTIONS(TW_DECLARE)
#undef TW_DECLARE
};

/// errors: Device, with what to install.
Result<OpenClApi> load_opencl();

/// What the driver says of a device in words; empty if it says nothing.
std::string opencl_text(const OpenClApi& api, cl_device_id device, cl_device_info what);

/// Ok for CL_SUCCESS. errors: Capacity (memory), Device; `call` and the code's name are in them.
Status check_opencl(cl_int code, const char* call);

}  // namespace tilewright::runtime
