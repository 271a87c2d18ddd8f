// For tests: the methods of XRT's library that our host programs and our plug-in call, without a
// card. An xclbin is a shared object with the kernel's C++; buffers have a copy for the host and
// one for the device, so that who forgets to move one sees old values.
#include <dlfcn.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <cstring>
#include <map>
#include <stdexcept>

namespace xrt_core {
/// The card.
class device {
 public:
  ~device() {
    if (library != nullptr) dlclose(library);
  }
  void* library = nullptr;
};
}  // namespace xrt_core

namespace xrt {

class bo_impl {
 public:
  std::string host, device;
};

class kernel_impl {
 public:
  void (*call)(void* const*) = nullptr;
  int arguments = 0;
};

class run_impl {
 public:
  std::shared_ptr<kernel_impl> kernel;
  std::map<int, std::shared_ptr<bo_impl>> buffers;
  std::map<int, std::string> scalars;
  bool started = false;
};

device::device(unsigned int index) : handle(std::make_shared<xrt_core::device>()) {
  if (index != 0)
    throw std::runtime_error("No such device with index '" + std::to_string(index) + "'");
}
device::operator xclDeviceHandle() const { return handle.get(); }
std::any device::get_info_std(info::device param, const detail::abi&) const {
  if (param != info::device::name) throw std::runtime_error("the fake card has a name only");
  return std::string("fake_u250");
}
uuid device::load_xclbin(const std::string& file) {
  const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
  void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) throw std::runtime_error(std::string("xclbin: ") + dlerror());
  if (handle->library != nullptr) dlclose(handle->library);
  handle->library = opened;
  return uuid("00000000-0000-0000-0000-000000000001");
}

kernel::kernel(const device& card, const uuid&, const std::string& name, cu_access_mode)
    : handle(std::make_shared<kernel_impl>()) {
  void* library = card.get_handle()->library;
  handle->call = reinterpret_cast<void (*)(void* const*)>(dlsym(library, (name + "_fake").c_str()));
  const auto* count = static_cast<const int*>(dlsym(library, (name + "_arguments").c_str()));
  if (handle->call == nullptr || count == nullptr)
    throw std::runtime_error("No such kernel '" + name + "'");
  handle->arguments = *count;
}
int kernel::group_id(int argument) const {
  if (argument < 0 || argument >= handle->arguments) throw std::out_of_range("no such argument");
  return argument;
}

bo::bo(xclDeviceHandle card, size_t bytes, flags, memory_group)
    : handle(std::make_shared<bo_impl>()) {
  if (card == nullptr) throw std::runtime_error("no card");
  handle->host.assign(bytes, '\x55');
  handle->device.assign(bytes, '\xaa');
}
size_t bo::size() const { return handle->host.size(); }
void* bo::map() { return handle->host.data(); }
void bo::sync(xclBOSyncDirection direction, size_t bytes, size_t offset) {
  const bool down = direction == XCL_BO_SYNC_BO_TO_DEVICE;
  std::string& from = down ? handle->host : handle->device;
  std::string& into = down ? handle->device : handle->host;
  into.replace(offset, bytes, from, offset, bytes);
}

run::run(const kernel& of) : handle(std::make_shared<run_impl>()) {
  handle->kernel = of.get_handle();
}
void run::set_arg_at_index(int index, const bo& buffer) {
  handle->buffers[index] = buffer.get_handle();
}
void run::set_arg_at_index(int index, const void* value, size_t bytes) {
  handle->scalars[index] = std::string(static_cast<const char*>(value), bytes);
}
void run::start() {
  const int count = handle->kernel->arguments;
  if (static_cast<int>(handle->buffers.size() + handle->scalars.size()) != count)
    throw std::runtime_error("the kernel has " + std::to_string(count) + " arguments");
  std::vector<void*> passed(static_cast<size_t>(count));
  for (auto& [index, buffer] : handle->buffers)
    passed.at(static_cast<size_t>(index)) = buffer->device.data();
  for (auto& [index, value] : handle->scalars) passed.at(static_cast<size_t>(index)) = value.data();
  handle->kernel->call(passed.data());
  handle->started = true;
}
ert_cmd_state run::wait(const std::chrono::milliseconds&) const {
  return handle->started ? ERT_CMD_STATE_COMPLETED : ERT_CMD_STATE_ERROR;
}

}  // namespace xrt
