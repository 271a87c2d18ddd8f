// Two files, since whoever asks again and again for a lock that is always taken anew might never
// get it: a command locks `cpu.wish` and then, as soon as it can, `cpu.use`; a worker first looks
// whether anybody has locked `cpu.wish`.
#include "tilewright/driver/fleet/device_use.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "tilewright/base/cache.h"
#include "tilewright/compile/devices.h"
#include "tilewright/driver/console.h"
#include "tilewright/hw/gpu_target.h"

namespace tilewright::driver {
namespace {

/// What the files of a device begin with; empty: it needs none.
std::string lock_path(const std::string& device) {
  if (compile::keeps_time(device)) return "";
  const std::string backend = compile::backend_name(device);
  const std::string name =
      hw::find_gpu_target(backend) ? backend.substr(0, backend.find('-')) : std::string("cpu");
  const Result<std::string> folder = cache_folder("locks");
  return folder ? *folder + "/" + name : "";
}

}  // namespace

Result<DeviceUse> use_device(const std::string& device) {
  DeviceUse held;
  const std::string path = lock_path(device);
  if (path.empty()) return held;
  for (bool told = false;; told = true) {
    if (!held.wish)
      held.wish = LockedFile::try_lock(path + ".wish", LockKind::Shared).value_or(std::nullopt);
    Result<std::optional<LockedFile>> use = LockedFile::try_lock(path + ".use", LockKind::Shared);
    if (!use) return held;
    held.use = *std::move(use);
    if (held.use) return held;
    if (!told)
      say(fmt::format("this machine's {} is measuring for the fleet; waiting",
                      path.substr(path.rfind('/') + 1)));
    TW_TRY_STATUS(check_interrupt());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::shared_ptr<void> take_device(const std::string& device) {
  const auto none = std::make_shared<int>();
  const std::string path = lock_path(device);
  if (path.empty()) return none;
  const auto wish = LockedFile::try_lock(path + ".wish", LockKind::Exclusive);
  if (wish && !*wish) return nullptr;
  Result<std::optional<LockedFile>> use = LockedFile::try_lock(path + ".use", LockKind::Exclusive);
  if (!use) return none;  // no file can be made
  if (!*use) return nullptr;
  return std::make_shared<LockedFile>(**std::move(use));
}

}  // namespace tilewright::driver
