#include "tilewright/accel/dpu/config.h"

#include <fmt/format.h>

#include <cmath>

#include "tilewright/accel/dpu/config_keys.h"
#include "tilewright/accel/dpu/isa.h"
#include "tilewright/base/file.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/unknown_name.h"

namespace tilewright::dpu {
namespace {

Error problem(std::string what, std::string_view field, std::string why = {}) {
  return Error{ErrorKind::Invalid, std::move(what), std::string(field), std::move(why), {}, {}};
}

/// How wide a field of LOAD is, in words; empty: it has none of that name.
std::string width_of(std::string_view field) {
  for (const auto& each : Load::fields())
    if (each.name == field) return fmt::format("`{}` has {} bits", field, each.bits);
  return {};
}

bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

bool multiple_of_sixteenth(double value) { return value * 16 == std::floor(value * 16); }

Config paper_config() {
  Config config;
  config.name = "dpu-paper";
  config.compiler.layer_barrier = true;
  config.compiler.prefetch = false;
  config.compiler.overlap_fc = false;
  config.compiler.dense_average = true;
  config.compiler.global_pool = false;
  config.compiler.parallel_branches = false;
  config.compiler.address_tokens = false;
  config.compiler.reorder_stride = false;
  return config;
}

}  // namespace

const std::vector<Key>& config_keys() {
  constexpr int kMany = 1'000'000;
  using C = Config;
  static const std::vector<Key> kKeys = {
      {"", "clock_mhz", DoubleOf([](C& c) -> double& { return c.clock_mhz; }), 1, 10000},
      {"", "pe", IntOf([](C& c) -> int& { return c.pe; }), 1, 8},
      {"", "kernels", IntOf([](C& c) -> int& { return c.kernels; }), 1, 4},
      {"", "format_unit", IntOf([](C& c) -> int& { return c.format_unit; }), 0, kLanes},
      {"",
       "fm_depth",
       DepthsOf([](C& c) -> Depths& { return c.fm_depth; }),
       64,
       8192,
       {},
       {},
       "bank_addr"},
      {"",
       "pm_depth",
       IntOf([](C& c) -> int& { return c.pm_depth; }),
       64,
       8192,
       {},
       {},
       "bank_addr"},
      {"", "ddr_bytes_per_cycle", IntOf([](C& c) -> int& { return c.ddr_bytes_per_cycle; }), 16,
       512},
      {"timing", "lat_ddr", IntOf([](C& c) -> int& { return c.timing.lat_ddr; }), 0, kMany},
      {"timing", "lat_conv", IntOf([](C& c) -> int& { return c.timing.lat_conv; }), 0, kMany},
      {"timing", "lat_misc", IntOf([](C& c) -> int& { return c.timing.lat_misc; }), 0, kMany},
      {"timing", "lat_init", IntOf([](C& c) -> int& { return c.timing.lat_init; }), 0, kMany},
      {"timing", "fc_factor", DoubleOf([](C& c) -> double& { return c.timing.fc_factor; }), 1, 64},
      {"timing", "stride_conflict", BoolOf([](C& c) -> bool& { return c.timing.stride_conflict; })},
      {"timing", "queue", IntOf([](C& c) -> int& { return c.timing.queue; }), 1, kMany},
      {"compiler", "layer_barrier", BoolOf([](C& c) -> bool& { return c.compiler.layer_barrier; })},
      {"compiler", "prefetch", BoolOf([](C& c) -> bool& { return c.compiler.prefetch; })},
      {"compiler", "overlap_fc", BoolOf([](C& c) -> bool& { return c.compiler.overlap_fc; })},
      {"compiler", "average_pool", BoolOf([](C& c) -> bool& { return c.compiler.dense_average; }),
       0, 0, "misc", "dense"},
      {"compiler", "global_pool", BoolOf([](C& c) -> bool& { return c.compiler.global_pool; }), 0,
       0, "cpu", "dpu"},
      {"compiler", "branches", BoolOf([](C& c) -> bool& { return c.compiler.parallel_branches; }),
       0, 0, "serial", "parallel"},
      {"compiler", "fusion", BoolOf([](C& c) -> bool& { return c.compiler.fusion; })},
      {"compiler", "tokens", BoolOf([](C& c) -> bool& { return c.compiler.address_tokens; }), 0, 0,
       "barrier", "addresses"},
      {"compiler", "stride", BoolOf([](C& c) -> bool& { return c.compiler.reorder_stride; }), 0, 0,
       "plain", "reorder"},
      {"compiler", "deconvolution",
       BoolOf([](C& c) -> bool& { return c.compiler.phase_deconvolution; }), 0, 0, "upsample",
       "convs"},
  };
  return kKeys;
}

bool same_hardware(const Config& a, const Config& b) {
  Config other = b;
  other.name = a.name;
  other.compiler = a.compiler;
  return a == other;
}

Status check(const Config& config) {
  accel::Problems problems;
  Config copy = config;
  for (const Key& key : config_keys()) {
    const auto in_range = [&](double value, const std::string& field) {
      // Written so that no number (NaN) is out of range.
      if (value >= key.low && value <= key.high) return;
      problems.add(
          problem(fmt::format("`{}` is {}, but must be in {}..{}", field, value, key.low, key.high),
                  key.path(), width_of(key.field)));
    };
    if (const auto* number = std::get_if<IntOf>(&key.value)) in_range((*number)(copy), key.path());
    if (const auto* number = std::get_if<DoubleOf>(&key.value))
      in_range((*number)(copy), key.path());
    if (const auto* depths = std::get_if<DepthsOf>(&key.value))
      for (size_t m = 0; m < kMemories; ++m)
        in_range((*depths)(copy)[m], fmt::format("{}[{}]", key.path(), m));
  }
  if (!is_power_of_two(config.ddr_bytes_per_cycle))
    problems.add(problem(fmt::format("`ddr_bytes_per_cycle` is {}, but must be a power of two",
                                     config.ddr_bytes_per_cycle),
                         "ddr_bytes_per_cycle"));
  if (!multiple_of_sixteenth(config.timing.fc_factor))
    problems.add(problem(fmt::format("`timing.fc_factor` is {}, but must be a multiple of 1/16",
                                     config.timing.fc_factor),
                         "timing.fc_factor"));
  return std::move(problems).status();
}

std::vector<std::string> builtin_configs() { return {"dpu", "dpu-paper"}; }

Result<Config> load_config(const std::string& name_or_path) {
  if (name_or_path == "dpu") return Config{};
  if (name_or_path == "dpu-paper") return paper_config();
  if (!is_path(name_or_path))
    return unknown_name(fmt::format("no DPU is called '{}'", name_or_path), name_or_path,
                        builtin_configs());
  const std::string text = TW_TRY(read_file(name_or_path));
  return parse_config(text, name_or_path);
}

}  // namespace tilewright::dpu
