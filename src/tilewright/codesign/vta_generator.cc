// VTA as a second kind of hardware that spaces draw from.
#include "tilewright/accel/vta/config.h"
#include "tilewright/codesign/generator.h"

namespace tilewright::codesign {
namespace {

struct VtaKey {
  const char* name;
  int& (*value)(vta::Config&);
  double low, high;
};
/// Logarithms as in VTA's own files; `check` knows which go together.
constexpr VtaKey kVtaKeys[] = {
    {"log_batch", [](vta::Config& c) -> int& { return c.log_batch; }, 0, 10},
    {"log_block_in", [](vta::Config& c) -> int& { return c.log_block_in; }, 0, 10},
    {"log_block_out", [](vta::Config& c) -> int& { return c.log_block_out; }, 0, 10},
    {"log_uop_buff", [](vta::Config& c) -> int& { return c.log_uop_buff; }, 0, 30},
    {"log_inp_buff", [](vta::Config& c) -> int& { return c.log_inp_buff; }, 0, 30},
    {"log_wgt_buff", [](vta::Config& c) -> int& { return c.log_wgt_buff; }, 0, 30},
    {"log_acc_buff", [](vta::Config& c) -> int& { return c.log_acc_buff; }, 0, 30},
    {"bus_bytes", [](vta::Config& c) -> int& { return c.timing.bus_bytes; }, 8, 64},
    {"max_burst_beats", [](vta::Config& c) -> int& { return c.timing.max_burst_beats; }, 1, 256},
};

class VtaGenerator : public Generator {
 public:
  VtaGenerator() {
    vta::Config config;
    for (const VtaKey& key : kVtaKeys) {
      keys_.push_back({key.name, {}, key.low, key.high, true, false, false, -1, {}});
      keys_.back().power_of_two = keys_.back().name == "bus_bytes";
      defaults_.push_back(key.value(config));
    }
  }
  std::string_view name() const override { return "vta"; }
  const std::vector<SpaceKey>& keys() const override { return keys_; }
  const Values& defaults() const override { return defaults_; }
  std::vector<std::string> problems(const Values& values) const override {
    const Status status = vta::check(vta_config(values));
    std::vector<std::string> found;
    if (status) return found;
    found.push_back(status.error().what);
    for (const Error& other : status.error().others) found.push_back(other.what);
    return found;
  }
  Hardware hardware(const Values& values, const std::string& name) const override {
    vta::Config config = vta_config(values);
    config.name = name;
    return config;
  }

 private:
  std::vector<SpaceKey> keys_;
  Values defaults_;
};

}  // namespace

const Generator& vta_generator() {
  static const VtaGenerator generator;
  return generator;
}

vta::Config vta_config(const Values& values) {
  vta::Config config;
  size_t at = 0;
  for (const VtaKey& key : kVtaKeys) key.value(config) = static_cast<int>(values[at++]);
  if (config.timing != vta::Config().timing) config.timing.preset = "custom";
  return config;
}

}  // namespace tilewright::codesign
