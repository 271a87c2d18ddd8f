// Gemmini as a third kind of hardware that spaces draw from.
#include "tilewright/accel/gemmini/config.h"
#include "tilewright/base/check.h"
#include "tilewright/codesign/generator.h"

namespace tilewright::codesign {
namespace {

struct GemminiKey {
  const char* name;
  int gemmini::Config::* member;
  double low, high;
  bool power_of_two = false;
};
/// `check` knows which go together.
constexpr GemminiKey kGemminiKeys[] = {{"dim", &gemmini::Config::dim, 2, 64, true},
                                       {"spad_kb", &gemmini::Config::spad_kb, 1, 65536},
                                       {"banks", &gemmini::Config::banks, 1, 64},
                                       {"acc_kb", &gemmini::Config::acc_kb, 1, 65536}};

class GemminiGenerator : public Generator {
 public:
  GemminiGenerator() {
    const gemmini::Config config;
    for (const GemminiKey& key : kGemminiKeys) {
      keys_.push_back({key.name, {}, key.low, key.high, true, key.power_of_two, false, -1, {}});
      defaults_.push_back(config.*key.member);
    }
  }
  std::string_view name() const override { return "gemmini"; }
  const std::vector<SpaceKey>& keys() const override { return keys_; }
  const Values& defaults() const override { return defaults_; }
  std::vector<std::string> problems(const Values& values) const override {
    const Status status = gemmini::check(gemmini_config(values));
    std::vector<std::string> found;
    if (status) return found;
    found.push_back(status.error().what);
    for (const Error& other : status.error().others) found.push_back(other.what);
    return found;
  }
  bool judged() const override { return false; }
  Hardware hardware(const Values&, const std::string&) const override {
    TW_CHECK(judged(), "there is no model of what Gemmini costs");
    return {};
  }

 private:
  std::vector<SpaceKey> keys_;
  Values defaults_;
};

}  // namespace

const Generator& gemmini_generator() {
  static const GemminiGenerator generator;
  return generator;
}

gemmini::Config gemmini_config(const Values& values) {
  gemmini::Config config;
  size_t at = 0;
  for (const GemminiKey& key : kGemminiKeys) config.*key.member = static_cast<int>(values[at++]);
  return config;
}

}  // namespace tilewright::codesign
