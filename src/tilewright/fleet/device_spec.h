// Which devices a user means: `cpu:znver4`, `vta:tsim`, `name=desk/cpu`, `tag=lab`, joined by
// commas, or `any`.
//
// Example: `--worker cpu,tag=lab` takes every device whose class begins with `cpu` and that has the
// tag `lab`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewright/fleet/jobs.h"

namespace tilewright::fleet {

struct DeviceSpec {
  std::string text;
  std::string device_class;  ///< the class, its words before `@`, or the target; empty: any
  std::string name;
  std::vector<std::string> tags;
};

/// errors: Usage (an unknown word before `=`, an empty part).
Result<DeviceSpec> parse_spec(const std::string& text);

/// What a command asks of a device, whatever its SPEC says. Without functions: nothing.
struct Need {
  std::string work;  ///< as in `none of them can WORK`: `run packages`
  /// Why a device cannot do it; empty: it can.
  std::function<std::string(const Device&)> cannot = {};
  /// Devices whose class is taken before others, however many of those there are.
  std::function<bool(const Device&)> rather = {};
};

/// What a spec selects: all devices of one class, the class with the most of them; `others` are
/// further classes that it fits.
struct Selected {
  std::string device_class;
  std::vector<Device> devices;
  std::vector<std::string> others;
};
/// Devices that are off count: they may come back. errors: Device, with the nearest class or name,
/// or with what there is, or with why none of those that are meant can do the work.
Result<Selected> select_devices(const DeviceSpec& spec, const std::vector<Device>& devices,
                                const Need& need = {});

/// What keeps every one of these devices from taking jobs, and since when; empty if one could.
/// requires: devices, all of one class.
std::string why_none(const std::vector<Device>& devices);

}  // namespace tilewright::fleet
