#include "tilewright/runtime/gpu/cuda.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "tilewright/base/check.h"
#include "tilewright/runtime/gpu/cuda_api.h"
#include "tilewright/runtime/gpu/cuda_arch.h"
#include "tilewright/runtime/gpu/cuda_maps.h"
#include "tilewright/runtime/gpu/handle.h"

namespace tilewright::runtime {
namespace {

using BufferPlace = GpuBuffer::Place;
using CudaMemory = Handle<CuMemory>;

/// A device and its primary context, which is retained from the first program on.
class CudaDevice : public GpuDevice, public std::enable_shared_from_this<CudaDevice> {
 public:
  static Result<std::shared_ptr<GpuDevice>> create(const CudaApi& api, int index) {
    auto device = std::make_shared<CudaDevice>(api);
    TW_TRY_STATUS(device->examine(index));
    return device;
  }
  explicit CudaDevice(const CudaApi& api) : api_(api) {}
  ~CudaDevice() override {
    if (context_ != nullptr) api_.context_release(id_);
  }

  const GpuDeviceInfo& info() const override { return info_; }
  Result<std::unique_ptr<GpuInstance>> load(std::shared_ptr<const GpuProgram> program,
                                            const GpuOptions& options) override;

  const CudaApi& api() const { return api_; }
  /// `sm_90` as 90.
  int number() const { return number_; }
  /// Of a block, where a kernel asks for it.
  int64_t most_shared_bytes() const { return most_shared_bytes_; }
  Result<CuContext> context() {
    const std::lock_guard lock(mutex_);
    if (context_ == nullptr)
      TW_TRY_STATUS(api_.check(api_.context_retain(&context_, id_), "cuDevicePrimaryCtxRetain"));
    return context_;
  }

 private:
  Status examine(int index) {
    TW_TRY_STATUS(api_.check(api_.device_get(&id_, index), "cuDeviceGet"));
    char name[256] = {};
    TW_TRY_STATUS(api_.check(api_.device_name(name, sizeof name - 1, id_), "cuDeviceGetName"));
    size_t memory = 0;
    TW_TRY_STATUS(api_.check(api_.device_memory(&memory, id_), "cuDeviceTotalMem"));
    const int major = TW_TRY(attribute(kCuMajor)), minor = TW_TRY(attribute(kCuMinor));
    number_ = 10 * major + minor;
    info_.id = fmt::format("cuda:{}", index);
    info_.name = name;
    info_.language = "cuda";
    info_.arch = to_string(CudaArch{number_, 0});
    info_.memory_bytes = static_cast<int64_t>(memory);
    info_.shared_bytes = TW_TRY(attribute(kCuSharedBytes));
    most_shared_bytes_ = TW_TRY(attribute(kCuMostSharedBytes));
    info_.max_threads = TW_TRY(attribute(kCuMaxThreads));
    info_.units = TW_TRY(attribute(kCuUnits));
    info_.has_f16 = number_ >= 53;
    info_.has_f64 = true;
    return {};
  }
  Result<int> attribute(int which) const {
    int value = 0;
    TW_TRY_STATUS(api_.check(api_.device_attribute(&value, which, id_), "cuDeviceGetAttribute"));
    return value;
  }

  CudaApi api_;
  CuDevice id_ = 0;
  int number_ = 0;
  int64_t most_shared_bytes_ = 0;
  GpuDeviceInfo info_;
  std::mutex mutex_;
  CuContext context_ = nullptr;
};

/// Makes a context the thread's current one for a while.
class CurrentContext {
 public:
  CurrentContext(const CudaApi& api, CuContext context) : api_(api) {
    status_ = api.check(api.context_push(context), "cuCtxPushCurrent");
  }
  ~CurrentContext() {
    CuContext popped = nullptr;
    if (status_) api_.context_pop(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  const Status& status() const { return status_; }

 private:
  const CudaApi& api_;
  Status status_;
};

/// Of ten shorter runs the driver starts one graph, not ten: it takes 2 to 5 us for each, in which
/// the device waits.
constexpr double kShortRunNs = 1e5;
constexpr int64_t kShortRuns = 10;

class CudaInstance : public GpuInstance {
 public:
  CudaInstance(std::shared_ptr<CudaDevice> device, std::shared_ptr<const GpuProgram> program,
               const GpuOptions& options)
      : device_(std::move(device)),
        api_(device_->api()),
        program_(std::move(program)),
        options_(options) {}

  ~CudaInstance() override {
    if (context_ == nullptr) return;
    // Objects of a context are released while it is current, and not before the device is idle.
    const CurrentContext current(api_, context_);
    if (stream_) api_.stream_wait(stream_.get());
    graph_ = {};
    timed_ = {};
    events_.clear();
    around_.clear();
    memory_.clear();
    module_ = {};
    stream_ = {};
  }

  Status prepare() {
    context_ = TW_TRY(device_->context());
    const CurrentContext current(api_, context_);
    TW_TRY_STATUS(current.status());
    CuStream stream = nullptr;
    TW_TRY_STATUS(api_.check(api_.stream_create(&stream, kCuStreamNonBlocking), "cuStreamCreate"));
    stream_ = Handle(stream, api_.stream_destroy);
    TW_TRY_STATUS(load_code());
    TW_TRY_STATUS(find_functions());
    TW_TRY_STATUS(allocate());
    TW_TRY_STATUS(make_maps());
    if (program_->calls.empty()) return {};
    if (options_.record_times) TW_TRY_STATUS(create_events());
    graph_ = TW_TRY(capture(1, options_.record_times));
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
    const CurrentContext current(api_, context_);
    TW_TRY_STATUS(current.status());
    TW_TRY_STATUS(prepare_calls());
    // The first call after a pause or a copy starts late (by up to 8 us on an H100): where times
    // are recorded, those of a second run count.
    if (graph_ && options_.record_times) TW_TRY_STATUS(start(graph_));
    if (graph_) TW_TRY_STATUS(start(graph_));
    return wait();
  }

  /// The device waits some microseconds around an event between two kernels.
  bool calls_add_up() const override { return false; }

  Result<double> time_runs(int64_t runs) override {
    const CurrentContext current(api_, context_);
    TW_TRY_STATUS(current.status());
    if (!graph_) return 0;
    TW_TRY_STATUS(prepare_calls());
    if (!timed_) {
      timed_runs_ = TW_TRY(time_graph(graph_, 1)) < kShortRunNs ? kShortRuns : 1;
      timed_ = TW_TRY(capture(timed_runs_, false));
    }
    if (timed_runs_ > 1) TW_TRY_STATUS(start(graph_));  // no pause before what is timed
    const int64_t graphs = (runs + timed_runs_ - 1) / timed_runs_;
    return TW_TRY(time_graph(timed_, graphs)) / static_cast<double>(timed_runs_);
  }

  Status read_output(size_t index, void* data) override {
    TW_CHECK(index < program_->outputs.size());
    const CurrentContext current(api_, context_);
    TW_TRY_STATUS(current.status());
    const auto at = static_cast<size_t>(program_->outputs[index]);
    TW_TRY_STATUS(api_.check(api_.copy_to_host(data, addresses_[at], bytes(at), stream_.get()),
                             "cuMemcpyDtoHAsync"));
    return wait();
  }

  std::vector<int64_t> call_times() const override {
    const CurrentContext current(api_, context_);
    std::vector<int64_t> times;
    for (size_t i = 1; i < events_.size(); ++i) {
      float milliseconds = 0;
      if (api_.event_milliseconds(&milliseconds, events_[i - 1].get(), events_[i].get()) !=
          kCuSuccess)
        return {};
      times.push_back(static_cast<int64_t>(1e6 * static_cast<double>(milliseconds)));
    }
    return times;
  }

 private:
  size_t bytes(size_t buffer) const { return static_cast<size_t>(program_->buffers[buffer].bytes); }
  Status wait() { return api_.check(api_.stream_wait(stream_.get()), "cuStreamSynchronize"); }

  Status write(int buffer, const void* data) {
    const CurrentContext current(api_, context_);
    TW_TRY_STATUS(current.status());
    const auto at = static_cast<size_t>(buffer);
    TW_TRY_STATUS(api_.check(api_.copy_to_device(addresses_[at], data, bytes(at), stream_.get()),
                             "cuMemcpyHtoDAsync"));
    return wait();
  }

  /// The cubin where it fits the device, else the PTX, which the driver compiles.
  Status load_code() {
    const auto arch = parse_cuda_arch(program_->arch);
    TW_CHECK(arch.has_value());
    if (program_->binary.empty() && program_->ptx.empty())
      return fail(
          ErrorKind::Device,
          fmt::format("the cubin for {} has 0 bytes, and there is no PTX", to_string(*arch)),
          "the program travels as CUDA source", "compile it where NVRTC is installed");
    const bool native = !program_->binary.empty() && cubin_runs_on(*arch, device_->number());
    if (!native && (program_->ptx.empty() || !ptx_runs_on(*arch, device_->number())))
      return fail(ErrorKind::Device,
                  fmt::format("code for {} cannot run on {} ({}, {})", to_string(*arch),
                              device_->info().id, device_->info().name, device_->info().arch),
                  program_->ptx.empty() ? "there is no PTX beside the machine code"
                                        : "the PTX is for other devices too",
                  fmt::format("compile with --target cuda-{}", device_->info().arch));
    char log[4096] = {};
    int options[] = {kCuJitErrorLog, kCuJitErrorLogBytes};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    const std::string& image = native ? program_->binary : program_->ptx;
    CuModule module = nullptr;
    Status status = api_.check(api_.module_load(&module, image.c_str(), 2, options, values),
                               "cuModuleLoadDataEx");
    if (!status) {
      Error error = std::move(status.error());
      error.what = fmt::format("{} refuses the {} for {}", device_->info().name,
                               native ? "cubin" : "PTX", to_string(*arch));
      if (log[0] != 0) error.why += fmt::format("\n{}", log);
      return tl::unexpected<Error>(std::move(error));
    }
    module_ = Handle(module, api_.module_unload);
    return {};
  }

  Status find_functions() {
    for (const GpuKernelCode& kernel : program_->kernels) {
      CuFunction function = nullptr;
      const CuResult code = api_.module_function(&function, module_.get(), kernel.symbol.c_str());
      if (code == kCuNotFound)
        return fail(ErrorKind::Package, fmt::format("the code has no kernel '{}'", kernel.symbol));
      TW_TRY_STATUS(api_.check(code, "cuModuleGetFunction"));
      TW_TRY_STATUS(check_fit(function, kernel));
      functions_.push_back(function);
    }
    return {};
  }

  /// Whether a block of the kernel's size fits the device.
  Status check_fit(CuFunction function, const GpuKernelCode& kernel) const {
    int threads = 0;
    TW_TRY_STATUS(api_.check(api_.function_attribute(&threads, kCuFunctionMaxThreads, function),
                             "cuFuncGetAttribute"));
    const int64_t block = kernel.block[0] * kernel.block[1] * kernel.block[2];
    if (block > threads)
      return fail(ErrorKind::Capacity,
                  fmt::format("a block of '{}' has {} threads", kernel.symbol, block),
                  fmt::format("{} runs {} of them", device_->info().name, threads));
    constexpr int64_t kMaxRows = 65535;  // of blocks, in the second and third direction
    if (kernel.grid[1] > kMaxRows || kernel.grid[2] > kMaxRows)
      return fail(ErrorKind::Capacity,
                  fmt::format("the grid of '{}' is {} x {} x {}", kernel.symbol, kernel.grid[0],
                              kernel.grid[1], kernel.grid[2]),
                  fmt::format("{} is the most in the second and third direction", kMaxRows));
    return kernel.shared_bytes > 0 ? allow_shared(function, kernel) : Status();
  }

  /// Memory beyond what every kernel may have is to be asked for.
  Status allow_shared(CuFunction function, const GpuKernelCode& kernel) const {
    int own = 0;
    TW_TRY_STATUS(api_.check(api_.function_attribute(&own, kCuFunctionSharedBytes, function),
                             "cuFuncGetAttribute"));
    if (own + kernel.shared_bytes > device_->most_shared_bytes())
      return fail(
          ErrorKind::Capacity,
          fmt::format("a block of '{}' needs {} bytes of shared memory", kernel.symbol,
                      own + kernel.shared_bytes),
          fmt::format("{} has {} for one", device_->info().name, device_->most_shared_bytes()));
    return api_.check(api_.set_function_attribute(function, kCuFunctionDynamicShared,
                                                  static_cast<int>(kernel.shared_bytes)),
                      "cuFuncSetAttribute");
  }

  Result<CuMemory> create_memory(int64_t size, const std::string& purpose) {
    CuMemory memory = 0;
    Status status = api_.check(api_.memory_alloc(&memory, static_cast<size_t>(size)), "cuMemAlloc");
    if (!status)
      return tl::unexpected<Error>(
          std::move(status.error()).at(fmt::format("{} of {} bytes", purpose, size)));
    memory_.emplace_back(memory, api_.memory_free);
    return memory;
  }

  Status allocate() {
    CuMemory arena = 0, constants = 0;
    if (program_->arena_bytes > 0)
      arena = TW_TRY(create_memory(program_->arena_bytes, "the arena"));
    if (const std::string& values = program_->constants; !values.empty()) {
      constants = TW_TRY(create_memory(static_cast<int64_t>(values.size()), "the constants"));
      TW_TRY_STATUS(
          api_.check(api_.copy_to_device(constants, values.data(), values.size(), stream_.get()),
                     "cuMemcpyHtoDAsync"));
      TW_TRY_STATUS(wait());
    }
    for (const GpuBuffer& buffer : program_->buffers) {
      const auto offset = static_cast<CuMemory>(buffer.offset);
      if (buffer.place == BufferPlace::Arena)
        addresses_.push_back(arena + offset);
      else if (buffer.place == BufferPlace::Constants)
        addresses_.push_back(constants + offset);
      else
        addresses_.push_back(TW_TRY(create_memory(buffer.bytes, "'" + buffer.name + "'")));
    }
    return {};
  }

  /// The maps of every call: its buffers stay where they are.
  Status make_maps() {
    for (const std::vector<GpuCall>* calls : {&program_->prepare, &program_->calls})
      for (const GpuCall& call : *calls) {
        const GpuKernelCode& kernel = program_->kernels[static_cast<size_t>(call.kernel)];
        if (kernel.maps.empty()) continue;
        std::vector<CuTensorMap>& maps = maps_[&call];
        for (const GpuTensorMap& map : kernel.maps) {
          const auto buffer = static_cast<size_t>(call.buffers[static_cast<size_t>(map.buffer)]);
          maps.push_back(TW_TRY(make_tensor_map(api_, map, addresses_[buffer], kernel.symbol)));
        }
      }
    return {};
  }

  Result<Handle<CuEvent>> create_event() {
    CuEvent event = nullptr;
    TW_TRY_STATUS(api_.check(api_.event_create(&event, kCuEventDefault), "cuEventCreate"));
    return Handle(event, api_.event_destroy);
  }

  Status create_events() {
    for (size_t i = 0; i <= program_->calls.size(); ++i) events_.push_back(TW_TRY(create_event()));
    return {};
  }

  Status prepare_calls() {
    for (const GpuCall& call : program_->prepare)
      if (!prepared_) TW_TRY_STATUS(launch(call));
    prepared_ = true;
    return {};
  }

  Status start(const Handle<CuGraphExec>& graph) {
    return api_.check(api_.graph_launch(graph.get(), stream_.get()), "cuGraphLaunch");
  }

  /// Mean time of a graph among so many. units: ns.
  Result<double> time_graph(const Handle<CuGraphExec>& graph, int64_t graphs) {
    while (around_.size() < 2) around_.push_back(TW_TRY(create_event()));
    TW_TRY_STATUS(mark(around_[0], kCuEventRecordDefault));
    for (int64_t i = 0; i < graphs; ++i) TW_TRY_STATUS(start(graph));
    TW_TRY_STATUS(mark(around_[1], kCuEventRecordDefault));
    TW_TRY_STATUS(wait());
    float milliseconds = 0;
    TW_TRY_STATUS(
        api_.check(api_.event_milliseconds(&milliseconds, around_[0].get(), around_[1].get()),
                   "cuEventElapsedTime"));
    return 1e6 * static_cast<double>(milliseconds) / static_cast<double>(graphs);
  }

  /// All calls of `runs` runs as one graph, so that they cost the driver one launch; with events
  /// between them where times are recorded.
  Result<Handle<CuGraphExec>> capture(int64_t runs, bool record_times) {
    TW_TRY_STATUS(api_.check(api_.capture_begin(stream_.get(), kCuCaptureThreadLocal),
                             "cuStreamBeginCapture"));
    Status launched;
    for (int64_t run = 0; launched && run < runs; ++run) launched = launch_all(record_times);
    CuGraph graph = nullptr;
    const CuResult ended = api_.capture_end(stream_.get(), &graph);
    const Handle<CuGraph> owned(graph, api_.graph_destroy);
    TW_TRY_STATUS(launched);
    TW_TRY_STATUS(api_.check(ended, "cuStreamEndCapture"));
    CuGraphExec exec = nullptr;
    TW_TRY_STATUS(
        api_.check(api_.graph_instantiate(&exec, graph, 0), "cuGraphInstantiateWithFlags"));
    return Handle(exec, api_.graph_exec_destroy);
  }

  /// An event is a node of the graph: from one to the next passes what the device needs, not what
  /// the driver takes to launch.
  Status launch_all(bool record_times) {
    if (record_times) TW_TRY_STATUS(mark(events_[0], kCuEventRecordExternal));
    for (size_t i = 0; i < program_->calls.size(); ++i) {
      TW_TRY_STATUS(launch(program_->calls[i]));
      if (record_times) TW_TRY_STATUS(mark(events_[i + 1], kCuEventRecordExternal));
    }
    return {};
  }

  Status mark(const Handle<CuEvent>& event, unsigned flags) {
    return api_.check(api_.event_record(event.get(), stream_.get(), flags),
                      "cuEventRecordWithFlags");
  }

  Status launch(const GpuCall& call) {
    const auto index = static_cast<size_t>(call.kernel);
    const GpuKernelCode& kernel = program_->kernels[index];
    std::vector<void*> parameters;
    for (const int buffer : call.buffers)
      parameters.push_back(&addresses_[static_cast<size_t>(buffer)]);
    for (const int64_t& scalar : call.scalars)  // the driver only reads them
      parameters.push_back(const_cast<int64_t*>(&scalar));
    if (const auto maps = maps_.find(&call); maps != maps_.end())
      for (CuTensorMap& map : maps->second) parameters.push_back(&map);
    std::array<unsigned, 3> grid{}, block{};
    for (size_t d = 0; d < 3; ++d) {
      grid[d] = static_cast<unsigned>(kernel.grid[d]);
      block[d] = static_cast<unsigned>(kernel.block[d]);
    }
    return api_.check(api_.launch(functions_[index], grid[0], grid[1], grid[2], block[0], block[1],
                                  block[2], static_cast<unsigned>(kernel.shared_bytes),
                                  stream_.get(), parameters.data(), nullptr),
                      fmt::format("cuLaunchKernel of '{}' ({})", kernel.symbol, call.step));
  }

  std::shared_ptr<CudaDevice> device_;
  const CudaApi& api_;
  std::shared_ptr<const GpuProgram> program_;
  GpuOptions options_;
  CuContext context_ = nullptr;
  Handle<CuStream> stream_;
  Handle<CuModule> module_;
  std::vector<CuFunction> functions_;  // by kernel
  std::vector<CudaMemory> memory_;
  std::vector<CuMemory> addresses_;  // by buffer
  std::map<const GpuCall*, std::vector<CuTensorMap>> maps_;
  Handle<CuGraphExec> graph_;
  bool prepared_ = false;
  std::vector<Handle<CuEvent>> events_;  // around the calls
  Handle<CuGraphExec> timed_;            // of so many runs, without events
  int64_t timed_runs_ = 1;
  std::vector<Handle<CuEvent>> around_;  // before and after what is timed
};

Result<std::unique_ptr<GpuInstance>> CudaDevice::load(std::shared_ptr<const GpuProgram> program,
                                                      const GpuOptions& options) {
  if (program->language != "cuda")
    return fail(
        ErrorKind::Device,
        fmt::format("code in '{}' cannot run on {} ({})", program->language, info_.id, info_.name),
        "it runs CUDA", fmt::format("compile with --target cuda-{}", info_.arch));
  TW_TRY_STATUS(validate(*program));
  auto instance = std::make_unique<CudaInstance>(shared_from_this(), std::move(program), options);
  TW_TRY_STATUS(instance->prepare());
  return instance;
}

}  // namespace

Result<std::vector<std::shared_ptr<GpuDevice>>> cuda_devices() {
  const CudaApi api = TW_TRY(load_cuda());
  int count = 0;
  TW_TRY_STATUS(api.check(api.device_count(&count), "cuDeviceGetCount"));
  std::vector<std::shared_ptr<GpuDevice>> devices;
  for (int i = 0; i < count; ++i) devices.push_back(TW_TRY(CudaDevice::create(api, i)));
  if (devices.empty())
    return fail(ErrorKind::Device, "the NVIDIA driver finds no device", "it counts 0",
                "look at nvidia-smi and CUDA_VISIBLE_DEVICES");
  return devices;
}

}  // namespace tilewright::runtime
