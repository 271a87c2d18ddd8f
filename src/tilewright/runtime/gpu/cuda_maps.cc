#include "tilewright/runtime/gpu/cuda_maps.h"

#include <fmt/format.h>

#include <optional>

namespace tilewright::runtime {
namespace {

/// CUtensorMapDataType; what is only moved goes by its size.
std::optional<int> type_of(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return kCuMapF16;
    case DType::BF16:
      return kCuMapBf16;
    case DType::F32:
      return kCuMapF32;
    case DType::F64:
      return kCuMapF64;
    case DType::I32:
      return kCuMapI32;
    case DType::U32:
      return kCuMapU32;
    case DType::I64:
      return kCuMapI64;
    case DType::U64:
      return kCuMapU64;
    case DType::I16:
    case DType::U16:
      return kCuMapU16;
    case DType::I8:
    case DType::U8:
      return kCuMapU8;
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<CuTensorMap> make_tensor_map(const CudaApi& api, const GpuTensorMap& map, CuMemory address,
                                    const std::string& kernel) {
  if (api.tensor_map == nullptr)
    return fail(ErrorKind::Device,
                fmt::format("kernel '{}' copies with the tensor memory accelerator", kernel),
                "NVIDIA's driver here has no entry point cuTensorMapEncodeTiled",
                "install a driver for CUDA 12.0 or newer, or compile with --target cuda-sm_80");
  const auto type = type_of(map.dtype);
  if (!type)
    return fail(ErrorKind::Device,
                fmt::format("kernel '{}' has a map of {}", kernel, name(map.dtype)),
                "the driver makes none of that type");
  const std::vector<uint64_t> dims(map.dims.begin(), map.dims.end()),
      strides(map.strides.begin(), map.strides.end());
  const std::vector<uint32_t> box(map.box.begin(), map.box.end()), steps(map.dims.size(), 1);
  CuTensorMap out;
  TW_TRY_STATUS(api.check(
      api.tensor_map(
          &out, *type, static_cast<unsigned>(dims.size()), reinterpret_cast<void*>(address),
          dims.data(), strides.data(), box.data(), steps.data(), kCuMapPlain,
          map.swizzle_bytes == 0 ? kCuMapNoSwizzle : kCuMapSwizzle128, kCuMapL2Of256, kCuMapZeros),
      fmt::format("cuTensorMapEncodeTiled for '{}'", kernel)));
  return out;
}

}  // namespace tilewright::runtime
