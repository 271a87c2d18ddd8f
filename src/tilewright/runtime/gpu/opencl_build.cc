#if __has_include(<CL/cl.h>)

#include "tilewright/runtime/gpu/opencl_build.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include "tilewright/base/cache.h"
#include "tilewright/base/environment.h"
#include "tilewright/runtime/sha256.h"

namespace tilewright::runtime {
namespace {

using ClProgram = Handle<cl_program>;

constexpr size_t kDigest = 64;  ///< characters in front of a kept program: the hash of the rest

std::string sha256_of(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

/// Where the program is kept; empty if nowhere.
std::string path_of(const OpenClApi& api, const OpenClBuild& build) {
  const Result<std::string> folder = cache_folder("opencl");
  if (!folder) return {};
  std::string key = build.flags + '\0' + build.source;
  for (const cl_device_info what : {CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DRIVER_VERSION})
    key += '\0' + opencl_text(api, build.device, what);
  return *folder + "/" + sha256_of(key).substr(0, 32) + ".bin";
}

std::optional<std::string> kept_binary(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.size() <= kDigest || sha256_of(text.substr(kDigest)) != text.substr(0, kDigest))
    return std::nullopt;
  return text.substr(kDigest);
}

/// Whole or not at all: other processes may look for it meanwhile.
void keep_binary(const OpenClApi& api, const ClProgram& program, const std::string& path) {
  size_t size = 0;
  if (api.clGetProgramInfo(program.get(), CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) !=
          CL_SUCCESS ||
      size == 0)
    return;
  std::string binary(size, '\0');
  unsigned char* to = reinterpret_cast<unsigned char*>(binary.data());
  if (api.clGetProgramInfo(program.get(), CL_PROGRAM_BINARIES, sizeof to, &to, nullptr) !=
      CL_SUCCESS)
    return;
  const std::string unfinished = fmt::format("{}.{}", path, ::getpid());
  std::ofstream file(unfinished, std::ios::binary);
  file << sha256_of(binary) << binary;
  file.close();
  std::error_code error;
  if (file)
    std::filesystem::rename(unfinished, path, error);
  else
    std::filesystem::remove(unfinished, error);
}

cl_int compile(const OpenClApi& api, const OpenClBuild& build, const ClProgram& program) {
  return api.clBuildProgram(program.get(), 1, &build.device, build.flags.c_str(), nullptr, nullptr);
}

/// The program of `binary`; empty if the driver does not take it.
ClProgram program_of(const OpenClApi& api, const OpenClBuild& build, const std::string& binary) {
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int state = CL_SUCCESS, code = CL_SUCCESS;
  ClProgram program(
      api.clCreateProgramWithBinary(build.context, 1, &build.device, &size, &data, &state, &code),
      api.clReleaseProgram);
  if (code != CL_SUCCESS || state != CL_SUCCESS || compile(api, build, program) != CL_SUCCESS)
    return {};
  return program;
}

std::string build_log(const OpenClApi& api, const OpenClBuild& build, const ClProgram& program) {
  size_t size = 0;
  const auto get = [&](size_t room, void* to, size_t* needed) {
    return api.clGetProgramBuildInfo(program.get(), build.device, CL_PROGRAM_BUILD_LOG, room, to,
                                     needed);
  };
  if (get(0, nullptr, &size) != CL_SUCCESS || size == 0) return "there is no log";
  std::string log(size, '\0');
  get(size, log.data(), nullptr);
  return log.substr(0, log.find('\0'));
}

}  // namespace

Result<Handle<cl_program>> build_opencl(const OpenClApi& api, const OpenClBuild& build, bool keep) {
  const std::string path = keep ? path_of(api, build) : "";
  if (const auto binary = kept_binary(path))
    if (ClProgram program = program_of(api, build, *binary); program) return program;
  const char* text = build.source.data();
  const size_t size = build.source.size();
  cl_int code = CL_SUCCESS;
  ClProgram program(api.clCreateProgramWithSource(build.context, 1, &text, &size, &code),
                    api.clReleaseProgram);
  TW_TRY_STATUS(check_opencl(code, "clCreateProgramWithSource"));
  code = compile(api, build, program);
  if (code == CL_BUILD_PROGRAM_FAILURE)
    return fail(ErrorKind::Device,
                fmt::format("{} does not compile the program",
                            opencl_text(api, build.device, CL_DEVICE_NAME)),
                build_log(api, build, program));
  TW_TRY_STATUS(check_opencl(code, "clBuildProgram"));
  if (!path.empty()) keep_binary(api, program, path);
  return program;
}

bool keeps_opencl(const std::string& version) {
  if (environment("TILEWRIGHT_OPENCL_CACHE")) return !environment_off("TILEWRIGHT_OPENCL_CACHE");
  return version.find("PoCL") == std::string::npos;
}

}  // namespace tilewright::runtime

#endif
