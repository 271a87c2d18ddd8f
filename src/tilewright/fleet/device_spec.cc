#include "tilewright/fleet/device_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tilewright/base/names.h"

namespace tilewright::fleet {
namespace {

/// `cpu:znver4@1a2b3c4d` is meant by itself, by `cpu:znver4` and by `cpu`.
bool class_fits(const std::string& device_class, const std::string& wanted) {
  if (!device_class.starts_with(wanted)) return false;
  return device_class.size() == wanted.size() || device_class[wanted.size()] == '@' ||
         device_class[wanted.size()] == ':';
}

bool fits(const DeviceSpec& spec, const Device& device) {
  if (!spec.name.empty() && device.name != spec.name) return false;
  for (const std::string& tag : spec.tags)
    if (std::find(device.tags.begin(), device.tags.end(), tag) == device.tags.end()) return false;
  return spec.device_class.empty() || class_fits(device.device_class, spec.device_class) ||
         device.target == spec.device_class || device.device == spec.device_class;
}

/// What a user may write for these devices.
std::vector<std::string> words_of(const std::vector<Device>& devices) {
  std::set<std::string> words;
  for (const Device& device : devices) {
    words.insert(device.device_class.substr(0, device.device_class.find('@')));
    words.insert("name=" + device.name);
    for (const std::string& tag : device.tags) words.insert("tag=" + tag);
  }
  return {words.begin(), words.end()};
}

/// That none of the devices that a spec means can do the work, with reasons, and who could.
tl::unexpected<Error> none_can(const DeviceSpec& spec, const std::vector<Device>& meant,
                               const std::vector<Device>& devices, const Need& need) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> reasons;
  for (const Device& device : meant)
    if (reasons.size() < kNamed)
      reasons.push_back(fmt::format("{}: {}", device.name, need.cannot(device)));
  if (meant.size() > kNamed) reasons.push_back(fmt::format("{} more", meant.size() - kNamed));
  std::set<std::string> able;
  for (const Device& device : devices)
    if (need.cannot(device).empty())
      able.insert(device.device_class.substr(0, device.device_class.find('@')));
  return fail(ErrorKind::Device,
              fmt::format("no device of the fleet that is '{}' can {}", spec.text, need.work),
              fmt::format("{}", fmt::join(reasons, "; ")),
              able.empty() ? "tilewright worker --device cpu, on a machine that can"
                           : fmt::format("--worker {}", fmt::join(able, ", or ")));
}

}  // namespace

Result<DeviceSpec> parse_spec(const std::string& text) {
  DeviceSpec spec;
  spec.text = text;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    start = end + 1;
    const size_t equals = part.find('=');
    const std::string word = part.substr(0, equals);
    if (part.empty() || equals + 1 == part.size())
      return fail(ErrorKind::Usage, fmt::format("--worker '{}' has an empty part", text), {},
                  "--worker cpu, --worker tag=lab,cpu:znver4, --worker any");
    if (equals == std::string::npos) {
      if (part != "any") spec.device_class = part;
    } else if (word == "name") {
      spec.name = part.substr(equals + 1);
    } else if (word == "tag") {
      spec.tags.push_back(part.substr(equals + 1));
    } else {
      return fail(ErrorKind::Usage, fmt::format("--worker '{}' asks for '{}'", text, word),
                  "it knows name=DEVICE and tag=TAG", did_you_mean(word, {"name", "tag"}));
    }
  }
  return spec;
}

Result<Selected> select_devices(const DeviceSpec& spec, const std::vector<Device>& devices,
                                const Need& need) {
  std::map<std::string, std::vector<Device>> by_class;
  std::vector<Device> unable;
  for (const Device& device : devices) {
    if (!fits(spec, device)) continue;
    const bool can = !need.cannot || need.cannot(device).empty();
    (can ? by_class[device.device_class] : unable).push_back(device);
  }
  if (by_class.empty() && !unable.empty()) return none_can(spec, unable, devices, need);
  if (by_class.empty()) {
    const std::vector<std::string> words = words_of(devices);
    return fail(ErrorKind::Device, fmt::format("no device of the fleet is '{}'", spec.text),
                words.empty() ? "no worker was ever started"
                              : fmt::format("there are {}", fmt::join(words, ", ")),
                words.empty() ? "tilewright worker --device cpu, on the machine that is to work"
                              : did_you_mean(spec.text, words));
  }
  /// What is on, then what is rather taken, then what there is most of.
  const auto order = [&](const std::vector<Device>& of) {
    const auto usable = std::count_if(of.begin(), of.end(), [](const Device& device) {
      return device.state == "free" || device.state == "leased";
    });
    return std::tuple(usable > 0, need.rather && need.rather(of.at(0)), usable);
  };
  const auto most = std::max_element(
      by_class.begin(), by_class.end(),
      [&](const auto& a, const auto& b) { return order(a.second) < order(b.second); });
  Selected selected{most->first, most->second, {}};
  for (const auto& [name, unused] : by_class)
    if (name != most->first) selected.others.push_back(name);
  return selected;
}

std::string why_none(const std::vector<Device>& devices) {
  constexpr size_t kNamed = 3;
  size_t off = 0, held = 0;
  std::vector<std::string> reasons;
  for (const Device& device : devices) {
    const bool is_off = device.state == "off" || device.state == "suspect";
    if (!is_off && device.held_by.empty()) return "";
    ++(is_off ? off : held);
    if (reasons.size() == kNamed) continue;
    if (is_off && !device.reason.empty())
      reasons.push_back(fmt::format("{}: {}", device.name, device.reason));
    if (!is_off)
      reasons.push_back(fmt::format("{} is held by {} for {:.0f} s more", device.name,
                                    device.held_by, device.held_s));
  }
  return fmt::format("all {} devices of class {} are {}{}{}", devices.size(),
                     devices.at(0).device_class,
                     held == 0  ? "off"
                     : off == 0 ? "held"
                                : "off or held",
                     reasons.empty() ? "" : ": ", fmt::join(reasons, "; "));
}

}  // namespace tilewright::fleet
