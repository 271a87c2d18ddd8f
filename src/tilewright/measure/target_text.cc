#include "tilewright/measure/target_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>

namespace tilewright::measure {
namespace {

// Calls f(name, member) for each member; `Target` may be const.

template <class Target, class F>
void each_cpu_member(Target& t, F&& f) {
  f("name", t.name), f("triple", t.triple), f("isa", t.isa), f("cpu", t.cpu);
  f("features", t.features), f("machine", t.machine);
  f("vector_bytes", t.vector_bytes), f("vector_registers", t.vector_registers);
  f("cores", t.cores);
  f("l1_bytes", t.l1_bytes), f("l2_bytes", t.l2_bytes), f("l3_bytes", t.l3_bytes);
}

template <class Rates, class F>
void each_rate(Rates& r, F&& f) {
  f("known", r.known), f("measured", r.measured);
  f("f32", r.f32), f("f16", r.f16), f("f64", r.f64);
  f("mma_f16", r.mma_f16), f("mma_tf32", r.mma_tf32), f("mma_i8", r.mma_i8);
  f("shared", r.shared), f("l2", r.l2), f("dram", r.dram);
  f("launch_ns", r.launch_ns), f("latency_ns", r.latency_ns), f("sync_ns", r.sync_ns);
}

template <class Target, class F>
void each_gpu_member(Target& t, F&& f) {
  f("name", t.name), f("arch", t.arch), f("max_threads", t.max_threads);
  f("shared_bytes", t.shared_bytes), f("registers", t.registers), f("warp", t.warp);
  f("units", t.units), f("unit_threads", t.unit_threads), f("unit_blocks", t.unit_blocks);
  f("unit_shared_bytes", t.unit_shared_bytes), f("unit_registers", t.unit_registers);
  f("l2_bytes", t.l2_bytes), f("vector_bytes", t.vector_bytes);
  f("has_f16", t.has_f16), f("has_f64", t.has_f64), f("tf32", t.tf32);
}

/// Puts members into, or takes them out of, a JSON object.
struct Put {
  nlohmann::ordered_json& json;
  template <class T>
  void operator()(const char* name, const T& value) const {
    json[name] = value;
  }
};
struct Take {
  const nlohmann::json& json;
  template <class T>
  void operator()(const char* name, T& value) const {
    json.at(name).get_to(value);
  }
};

/// What `read(json)` makes of `text`.
template <class Read>
auto parsed(std::string_view text, Read&& read) -> Result<decltype(read(nlohmann::json()))> {
  try {
    return read(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& problem) {
    return fail(ErrorKind::Parse, "the target of a job cannot be read",
                fmt::format("{}: {}", problem.what(), text.substr(0, 200)));
  }
}

}  // namespace

std::string print_target(const hw::CpuTarget& target) {
  nlohmann::ordered_json json;
  each_cpu_member(target, Put{json});
  return json.dump();
}

std::string print_target(const hw::GpuTarget& target) {
  nlohmann::ordered_json json, rates;
  each_gpu_member(target, Put{json});
  json["language"] = hw::name(target.language);
  each_rate(target.rates, Put{rates});
  json["rates"] = rates;
  return json.dump();
}

Result<hw::CpuTarget> parse_cpu_target(std::string_view text) {
  return parsed(text, [](const nlohmann::json& json) {
    hw::CpuTarget target;
    each_cpu_member(target, Take{json});
    return target;
  });
}

Result<hw::GpuTarget> parse_gpu_target(std::string_view text) {
  return parsed(text, [](const nlohmann::json& json) {
    hw::GpuTarget target;
    each_gpu_member(target, Take{json});
    const bool cuda = json.at("language") == hw::name(hw::GpuLanguage::Cuda);
    target.language = cuda ? hw::GpuLanguage::Cuda : hw::GpuLanguage::OpenCl;
    each_rate(target.rates, Take{json.at("rates")});
    return target;
  });
}

}  // namespace tilewright::measure
