// Kernels on a card through XRT's C++ interface, behind the C interface of xrt_plugin.h.
#include "tilewright/runtime/fpga/xrt_plugin.h"

#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kWord = 64;  // bytes of the widest memory port: buffers end with one

/// The card, and the kernel that it has now. A card has one file at a time.
struct Card {
  xrt::device device;
  std::string xclbin, name;
  xrt::kernel kernel;
  std::vector<xrt::bo> buffers;
};
std::unique_ptr<Card>& card() {
  static std::unique_ptr<Card> one;
  return one;
}

void open_card() {
  if (card() != nullptr) return;
  auto made = std::make_unique<Card>();
  made->device = xrt::device(0U);
  card() = std::move(made);
}

void load(const char* xclbin, const char* kernel, int& outcome) {
  outcome = TW_XRT_NO_DEVICE;
  open_card();
  Card& c = *card();
  if (c.xclbin == xclbin && c.name == kernel) return;
  outcome = TW_XRT_BAD_XCLBIN;
  c.buffers.clear();
  c.kernel = {};
  c.xclbin.clear();
  const xrt::uuid id = c.device.load_xclbin(std::string(xclbin));
  c.kernel = xrt::kernel(c.device, id, kernel);
  c.xclbin = xclbin;
  c.name = kernel;
}

/// The buffers of earlier runs, where they have the sizes.
void allocate(const tw_xrt_argument* arguments, uint64_t count) {
  Card& c = *card();
  c.buffers.resize(count);
  for (uint64_t a = 0; a < count; ++a) {
    if (arguments[a].same_as >= 0) {
      c.buffers[a] = c.buffers.at(static_cast<size_t>(arguments[a].same_as));
      continue;
    }
    const uint64_t bytes = (std::max<uint64_t>(arguments[a].bytes, 1) + kWord - 1) / kWord * kWord;
    if (c.buffers[a] && c.buffers[a].size() == bytes) continue;
    const auto group = static_cast<xrt::memory_group>(c.kernel.group_id(static_cast<int>(a)));
    c.buffers[a] = xrt::bo(c.device, bytes, group);
  }
}

void run(const tw_xrt_argument* arguments, uint64_t count, const int64_t* scalars,
         uint64_t scalar_count) {
  Card& c = *card();
  allocate(arguments, count);
  xrt::run started(c.kernel);
  for (uint64_t a = 0; a < count; ++a) {
    if (arguments[a].reads != 0 && arguments[a].data != nullptr) {
      std::memcpy(c.buffers[a].map<char*>(), arguments[a].data, arguments[a].bytes);
      c.buffers[a].sync(XCL_BO_SYNC_BO_TO_DEVICE);
    }
    started.set_arg(static_cast<int>(a), c.buffers[a]);
  }
  for (uint64_t s = 0; s < scalar_count; ++s)
    started.set_arg(static_cast<int>(count + s), scalars[s]);
  started.start();
  if (started.wait() != ERT_CMD_STATE_COMPLETED)
    throw std::runtime_error("the kernel did not come to its end");
  for (uint64_t a = 0; a < count; ++a)
    if (arguments[a].writes != 0 && arguments[a].data != nullptr) {
      c.buffers[a].sync(XCL_BO_SYNC_BO_FROM_DEVICE);
      std::memcpy(arguments[a].data, c.buffers[a].map<char*>(), arguments[a].bytes);
    }
}

/// Calls `f(outcome)`, one thread at a time. `outcome`: what it means if `f` throws.
template <class F>
int guarded(char* text, uint64_t size, F f) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  int outcome = TW_XRT_NO_DEVICE;
  try {
    f(outcome);
    return TW_XRT_DONE;
  } catch (const std::exception& error) {
    std::snprintf(text, size, "%s", error.what());
    return outcome;
  }
}

void put_name(char* text, uint64_t size) {
  std::snprintf(text, size, "%s", card()->device.get_info<xrt::info::device::name>().c_str());
}

}  // namespace

extern "C" {

int tw_xrt_card(char* text, uint64_t size) {
  return guarded(text, size, [&](int&) {
    open_card();
    put_name(text, size);
  });
}

int tw_xrt_open(const char* xclbin, const char* kernel, char* text, uint64_t size) {
  return guarded(text, size, [&](int& outcome) {
    load(xclbin, kernel, outcome);
    put_name(text, size);
  });
}

int tw_xrt_run(const char* xclbin, const char* kernel, const tw_xrt_argument* arguments,
               uint64_t count, const int64_t* scalars, uint64_t scalar_count, char* text,
               uint64_t size) {
  return guarded(text, size, [&](int& outcome) {
    load(xclbin, kernel, outcome);
    outcome = TW_XRT_RUN_FAILED;
    run(arguments, count, scalars, scalar_count);
  });
}

}  // extern "C"
