#include "tilewright/runtime/gpu/opencl.h"

#include <fmt/format.h>

#if !__has_include(<CL/cl.h>)

namespace tilewright::runtime {

Result<std::vector<std::shared_ptr<GpuDevice>>> opencl_devices() {
  return fail(ErrorKind::Device, "this build knows no OpenCL",
              "its header files were not there when it was built",
              "install opencl-c-headers and build again");
}

}  // namespace tilewright::runtime

#else

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "tilewright/base/check.h"
#include "tilewright/base/dynamic_library.h"
#include "tilewright/runtime/gpu/opencl_api.h"
#include "tilewright/runtime/gpu/opencl_build.h"

namespace tilewright::runtime {

Result<OpenClApi> load_opencl() {
  Result<DynamicLibrary> library = DynamicLibrary::open("TILEWRIGHT_OPENCL", {"libOpenCL.so.1"});
  const auto missing = [](const Error& error) {
    return fail(ErrorKind::Device, "there is no OpenCL here", error.what + ": " + error.why,
                "apt install ocl-icd-libopencl1 and a driver, for instance pocl-opencl-icd");
  };
  if (!library) return missing(library.error());
  OpenClApi api;
#define TW_BIND(name) \
  if (Status status = library->bind(api.name, #name); !status) return missing(status.error());
  TW_OPENCL_FUNCTIONS(TW_BIND)
#undef TW_BIND
  return api;
}

namespace {

struct CodeName {
  cl_int code;
  const char* name;
};
constexpr CodeName kCodeNames[] = {
    {CL_DEVICE_NOT_AVAILABLE, "device not available"},
    {CL_COMPILER_NOT_AVAILABLE, "compiler not available"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "memory allocation failed"},
    {CL_OUT_OF_RESOURCES, "out of resources"},
    {CL_OUT_OF_HOST_MEMORY, "out of host memory"},
    {CL_BUILD_PROGRAM_FAILURE, "build failed"},
    {CL_INVALID_VALUE, "invalid value"},
    {CL_INVALID_BUFFER_SIZE, "invalid buffer size"},
    {CL_INVALID_PROGRAM_EXECUTABLE, "no code for the device"},
    {CL_INVALID_KERNEL_NAME, "no such kernel"},
    {CL_INVALID_KERNEL_ARGS, "missing arguments"},
    {CL_INVALID_ARG_INDEX, "no such parameter"},
    {CL_INVALID_ARG_SIZE, "argument of another size"},
    {CL_INVALID_WORK_GROUP_SIZE, "invalid block size"},
    {CL_INVALID_WORK_ITEM_SIZE, "too many threads in one direction"},
    {CL_INVALID_GLOBAL_WORK_SIZE, "invalid grid"},
};

bool is_capacity(cl_int code) {
  return code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
         code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
}

}  // namespace

std::string opencl_text(const OpenClApi& api, cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (api.clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  api.clGetDeviceInfo(device, what, size, text.data(), nullptr);
  return text.substr(0, text.find('\0'));
}

Status check_opencl(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return {};
  const auto row = std::find_if(std::begin(kCodeNames), std::end(kCodeNames),
                                [&](const CodeName& entry) { return entry.code == code; });
  return fail(
      is_capacity(code) ? ErrorKind::Capacity : ErrorKind::Device, fmt::format("{} failed", call),
      fmt::format("{} (code {})", row != std::end(kCodeNames) ? row->name : "OpenCL error", code));
}

namespace {

using BufferPlace = GpuBuffer::Place;
using ClMemory = Handle<cl_mem>;

template <class T>
T device_value(const OpenClApi& api, cl_device_id device, cl_device_info what) {
  T value{};
  api.clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

/// What compiling needs of a device, made when first asked for and shared by its programs.
class OpenClDevice : public GpuDevice, public std::enable_shared_from_this<OpenClDevice> {
 public:
  OpenClDevice(const OpenClApi& api, cl_device_id id, size_t index) : api_(api), id_(id) {
    info_.id = fmt::format("opencl:{}", index);
    info_.language = "opencl";
    info_.name = opencl_text(api, id, CL_DEVICE_NAME);
    info_.arch = opencl_text(api, id, CL_DEVICE_VERSION);
    info_.memory_bytes =
        static_cast<int64_t>(device_value<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_SIZE));
    info_.shared_bytes =
        static_cast<int64_t>(device_value<cl_ulong>(api, id, CL_DEVICE_LOCAL_MEM_SIZE));
    info_.max_threads =
        static_cast<int64_t>(device_value<size_t>(api, id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
    info_.units = static_cast<int>(device_value<cl_uint>(api, id, CL_DEVICE_MAX_COMPUTE_UNITS));
    info_.has_f16 =
        opencl_text(api, id, CL_DEVICE_EXTENSIONS).find("cl_khr_fp16") != std::string::npos;
    info_.has_f64 = device_value<cl_device_fp_config>(api, id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  }

  const GpuDeviceInfo& info() const override { return info_; }
  Result<std::unique_ptr<GpuInstance>> load(std::shared_ptr<const GpuProgram> program,
                                            const GpuOptions& options) override;

  const OpenClApi& api() const { return api_; }
  cl_device_id id() const { return id_; }
  Result<cl_context> context() {
    const std::lock_guard lock(mutex_);
    if (!context_) {
      cl_int code = CL_SUCCESS;
      context_ = Handle(api_.clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &code),
                        api_.clReleaseContext);
      TW_TRY_STATUS(check_opencl(code, "clCreateContext"));
    }
    return context_.get();
  }

 private:
  OpenClApi api_;
  cl_device_id id_;
  GpuDeviceInfo info_;
  std::mutex mutex_;
  Handle<cl_context> context_;
};

class OpenClInstance : public GpuInstance {
 public:
  OpenClInstance(std::shared_ptr<OpenClDevice> device, std::shared_ptr<const GpuProgram> program,
                 const GpuOptions& options)
      : device_(std::move(device)),
        api_(device_->api()),
        program_(std::move(program)),
        options_(options) {}

  Status prepare() {
    context_ = TW_TRY(device_->context());
    TW_TRY_STATUS(create_queue());
    TW_TRY_STATUS(build());
    TW_TRY_STATUS(allocate_all());
    for (const GpuCall& call : program_->prepare) preparing_.push_back(TW_TRY(make_kernel(call)));
    for (const GpuCall& call : program_->calls) calls_.push_back(TW_TRY(make_kernel(call)));
    return {};
  }

  Status write_input(size_t index, const void* data) override {
    TW_CHECK(index < program_->inputs.size());
    if (prepares_with(*program_, program_->inputs[index])) prepared_ = false;
    return write(program_->inputs[index], data);
  }

  Status write_output(size_t index, const void* data) override {
    TW_CHECK(index < program_->outputs.size());
    return write(program_->outputs[index], data);
  }

  Status execute() override {
    Status status;
    events_.clear();
    for (size_t i = 0; status && !prepared_ && i < preparing_.size(); ++i)
      status = enqueue(program_->prepare[i], preparing_[i], false);
    prepared_ = static_cast<bool>(status);
    for (size_t i = 0; status && i < calls_.size(); ++i)
      status = enqueue(program_->calls[i], calls_[i], options_.record_times);
    const cl_int code = api_.clFinish(queue_.get());
    return status ? check_opencl(code, "clFinish") : status;
  }

  Status read_output(size_t index, void* data) override {
    TW_CHECK(index < program_->outputs.size());
    const auto at = static_cast<size_t>(program_->outputs[index]);
    return check_opencl(api_.clEnqueueReadBuffer(queue_.get(), memory_[at], CL_TRUE, 0, bytes(at),
                                                 data, 0, nullptr, nullptr),
                        "clEnqueueReadBuffer");
  }

  std::vector<int64_t> call_times() const override {
    std::vector<int64_t> times;
    for (const Handle<cl_event>& event : events_) {
      cl_ulong start = 0, end = 0;
      api_.clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_START, sizeof start, &start,
                                   nullptr);
      api_.clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof end, &end,
                                   nullptr);
      times.push_back(static_cast<int64_t>(end - start));
    }
    return times;
  }

 private:
  size_t bytes(size_t buffer) const { return static_cast<size_t>(program_->buffers[buffer].bytes); }

  Status write(int buffer, const void* data) {
    const auto at = static_cast<size_t>(buffer);
    return check_opencl(api_.clEnqueueWriteBuffer(queue_.get(), memory_[at], CL_TRUE, 0, bytes(at),
                                                  data, 0, nullptr, nullptr),
                        "clEnqueueWriteBuffer");
  }

  Status create_queue() {
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    cl_int code = CL_SUCCESS;
    queue_ =
        Handle(api_.clCreateCommandQueueWithProperties(
                   context_, device_->id(), options_.record_times ? properties : nullptr, &code),
               api_.clReleaseCommandQueue);
    return check_opencl(code, "clCreateCommandQueueWithProperties");
  }

  Status build() {
    const auto floats =
        device_value<cl_device_fp_config>(api_, device_->id(), CL_DEVICE_SINGLE_FP_CONFIG);
    std::string flags = "-cl-std=CL1.2";
    if ((floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0)
      flags += " -cl-fp32-correctly-rounded-divide-sqrt";
    const std::string& version = device_->info().arch;
    // With the method below: PoCL's cache does not tell kernels of several methods apart.
    if (version.find("PoCL") != std::string::npos) flags += " -DTW_POCL=loops";
    code_ = TW_TRY(build_opencl(api_, {context_, device_->id(), program_->source, flags},
                                keeps_opencl(version)));
    return {};
  }

  Result<ClMemory> create_memory(int64_t size, const std::string& purpose,
                                 const std::string* init) {
    const auto most = device_value<cl_ulong>(api_, device_->id(), CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    if (static_cast<uint64_t>(size) > most)
      return fail(ErrorKind::Capacity,
                  fmt::format("{} needs {} bytes on {}", purpose, size, device_->info().name),
                  fmt::format("one allocation may have {}", most));
    cl_int code = CL_SUCCESS;
    // The header has no constant for a pointer that is only read.
    void* data = init != nullptr ? const_cast<char*>(init->data()) : nullptr;
    const cl_mem_flags flags =
        init != nullptr ? CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR : CL_MEM_READ_WRITE;
    ClMemory memory(api_.clCreateBuffer(context_, flags, static_cast<size_t>(size), data, &code),
                    api_.clReleaseMemObject);
    if (Status status = check_opencl(code, "clCreateBuffer"); !status)
      return tl::unexpected<Error>(
          std::move(status.error()).at(fmt::format("{} of {} bytes", purpose, size)));
    return memory;
  }

  Result<cl_mem> allocate(int64_t size, const std::string& purpose,
                          const std::string* init = nullptr) {
    owned_.push_back(TW_TRY(create_memory(size, purpose, init)));
    return owned_.back().get();
  }

  Status allocate_all() {
    cl_mem arena = nullptr, constants = nullptr;
    if (program_->arena_bytes > 0) arena = TW_TRY(allocate(program_->arena_bytes, "the arena"));
    if (!program_->constants.empty())
      constants = TW_TRY(allocate(static_cast<int64_t>(program_->constants.size()), "the constants",
                                  &program_->constants));
    for (const GpuBuffer& buffer : program_->buffers) {
      if (buffer.place == BufferPlace::Arena)
        memory_.push_back(arena);
      else if (buffer.place == BufferPlace::Constants)
        memory_.push_back(constants);
      else
        memory_.push_back(TW_TRY(allocate(buffer.bytes, "'" + buffer.name + "'")));
    }
    return {};
  }

  /// A call has a kernel object of its own, so that its arguments are set once.
  Result<Handle<cl_kernel>> make_kernel(const GpuCall& call) {
    const GpuKernelCode& kernel = program_->kernels[static_cast<size_t>(call.kernel)];
    cl_int code = CL_SUCCESS;
    Handle<cl_kernel> made(api_.clCreateKernel(code_.get(), kernel.symbol.c_str(), &code),
                           api_.clReleaseKernel);
    if (code != CL_SUCCESS)
      return tl::unexpected<Error>(
          std::move(check_opencl(code, "clCreateKernel").error()).at(kernel.symbol));
    cl_kernel object = made.get();
    TW_TRY_STATUS(check_fit(object, kernel));
    TW_TRY_STATUS(check_parameters(object, kernel, 2 * call.buffers.size() + call.scalars.size()));
    cl_uint position = 0;
    const auto pass = [&](const auto& value) {
      return check_opencl(api_.clSetKernelArg(object, position++, sizeof value, &value),
                          "clSetKernelArg");
    };
    for (const int index : call.buffers) {
      TW_TRY_STATUS(pass(memory_[static_cast<size_t>(index)]));
      TW_TRY_STATUS(pass(cl_long{program_->buffers[static_cast<size_t>(index)].offset}));
    }
    for (const int64_t scalar : call.scalars) TW_TRY_STATUS(pass(cl_long{scalar}));
    return made;
  }

  Status check_parameters(cl_kernel object, const GpuKernelCode& kernel, size_t passed) const {
    cl_uint parameters = 0;
    TW_TRY_STATUS(check_opencl(
        api_.clGetKernelInfo(object, CL_KERNEL_NUM_ARGS, sizeof parameters, &parameters, nullptr),
        "clGetKernelInfo"));
    if (parameters == passed) return {};
    return fail(ErrorKind::Package, fmt::format("kernel '{}' has {} parameters, not {}",
                                                kernel.symbol, parameters, passed));
  }

  /// Whether a block of the kernel's size fits the device.
  Status check_fit(cl_kernel object, const GpuKernelCode& kernel) const {
    size_t threads = 0;
    cl_ulong shared = 0;
    const auto ask = [&](cl_kernel_work_group_info what, size_t size, void* value) {
      return check_opencl(
          api_.clGetKernelWorkGroupInfo(object, device_->id(), what, size, value, nullptr),
          "clGetKernelWorkGroupInfo");
    };
    TW_TRY_STATUS(ask(CL_KERNEL_WORK_GROUP_SIZE, sizeof threads, &threads));
    TW_TRY_STATUS(ask(CL_KERNEL_LOCAL_MEM_SIZE, sizeof shared, &shared));
    const int64_t block = kernel.block[0] * kernel.block[1] * kernel.block[2];
    if (static_cast<size_t>(block) > threads)
      return fail(ErrorKind::Capacity,
                  fmt::format("a block of '{}' has {} threads", kernel.symbol, block),
                  fmt::format("{} runs {}", device_->info().name, threads));
    if (static_cast<int64_t>(shared) > device_->info().shared_bytes)
      return fail(
          ErrorKind::Capacity,
          fmt::format("a block of '{}' needs {} bytes of shared memory", kernel.symbol, shared),
          fmt::format("{} has {}", device_->info().name, device_->info().shared_bytes));
    return {};
  }

  Status enqueue(const GpuCall& call, const Handle<cl_kernel>& object, bool record) {
    const GpuKernelCode& kernel = program_->kernels[static_cast<size_t>(call.kernel)];
    size_t all[3], block[3];
    for (size_t d = 0; d < 3; ++d) {
      block[d] = static_cast<size_t>(kernel.block[d]);
      all[d] = static_cast<size_t>(kernel.grid[d]) * block[d];
    }
    cl_event event = nullptr;
    const cl_int code = api_.clEnqueueNDRangeKernel(queue_.get(), object.get(), 3, nullptr, all,
                                                    block, 0, nullptr, record ? &event : nullptr);
    if (Status status = check_opencl(code, "clEnqueueNDRangeKernel"); !status)
      return tl::unexpected<Error>(
          std::move(status.error()).at(fmt::format("{} ({})", kernel.symbol, call.step)));
    if (event != nullptr) events_.emplace_back(event, api_.clReleaseEvent);
    return {};
  }

  // In the order in which they are made; the device, with its context, goes last.
  std::shared_ptr<OpenClDevice> device_;
  const OpenClApi& api_;
  std::shared_ptr<const GpuProgram> program_;
  GpuOptions options_;
  cl_context context_ = nullptr;
  Handle<cl_command_queue> queue_;
  Handle<cl_program> code_;
  std::vector<ClMemory> owned_;
  std::vector<cl_mem> memory_;                        // by buffer: the allocation it is in
  std::vector<Handle<cl_kernel>> preparing_, calls_;  // by call
  bool prepared_ = false;
  std::vector<Handle<cl_event>> events_;
};

Result<std::unique_ptr<GpuInstance>> OpenClDevice::load(std::shared_ptr<const GpuProgram> program,
                                                        const GpuOptions& options) {
  if (program->language != "opencl")
    return fail(
        ErrorKind::Device,
        fmt::format("code in '{}' cannot run on {} ({})", program->language, info_.id, info_.name),
        "it runs OpenCL C", "compile with --target opencl");
  TW_TRY_STATUS(validate(*program));
  auto instance = std::make_unique<OpenClInstance>(shared_from_this(), std::move(program), options);
  TW_TRY_STATUS(instance->prepare());
  return instance;
}

}  // namespace

Result<std::vector<std::shared_ptr<GpuDevice>>> opencl_devices() {
  const OpenClApi api = TW_TRY(load_opencl());
  // PoCL 3.1 computes wrong results where it makes vectors of threads, and these choose between a
  // sum of their own and another value (choice.onnx of tests/e2e/gpu_files.py). It reads this only
  // once.
  ::setenv("POCL_WORK_GROUP_METHOD", "loops", 0);
  cl_uint count = 0;
  std::vector<std::shared_ptr<GpuDevice>> devices;
  // Without drivers some loaders say so with an error code.
  if (api.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) count = 0;
  std::vector<cl_platform_id> platforms(count);
  if (count > 0)
    TW_TRY_STATUS(
        check_opencl(api.clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs"));
  for (cl_platform_id platform : platforms) {
    cl_uint found = 0;
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &found) != CL_SUCCESS)
      continue;
    std::vector<cl_device_id> ids(found);
    TW_TRY_STATUS(
        check_opencl(api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, found, ids.data(), nullptr),
                     "clGetDeviceIDs"));
    for (cl_device_id id : ids)
      devices.push_back(std::make_shared<OpenClDevice>(api, id, devices.size()));
  }
  if (devices.empty())
    return fail(ErrorKind::Device, "OpenCL finds no device",
                fmt::format("{} platforms are installed", platforms.size()),
                "apt install pocl-opencl-icd, or the driver of the device");
  return devices;
}

}  // namespace tilewright::runtime

#endif
