// Programs that an OpenCL driver compiles, kept in the user's cache as the driver made them.
#pragma once

#include <string>

#include "tilewright/runtime/gpu/opencl_api.h"

namespace tilewright::runtime {

struct OpenClBuild {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  std::string source, flags;
};

/// The program, ready for kernels. With `keep`, what the driver made of it is in the cache's folder
/// `opencl` from then on, under a hash of source, flags, device and driver, and is taken from there
/// as long as the driver accepts it. A cache that cannot be read or written costs time only.
/// errors: Device (it does not compile, with the driver's log).
Result<Handle<cl_program>> build_opencl(const OpenClApi& api, const OpenClBuild& build, bool keep);

/// Whether programs for a device of `version` (CL_DEVICE_VERSION) are kept: TILEWRIGHT_OPENCL_CACHE
/// is `on` or `off`; by default PoCL's are not, which keeps its own.
bool keeps_opencl(const std::string& version);

}  // namespace tilewright::runtime
