#include "tilewright/measure/target_text.h"

#include <fmt/format.h>

#include "tilewright/base/check.h"
#include "tilewright/base/json.h"
#include "tilewright/hw/target_members.h"

namespace tilewright::measure {
namespace {

using Json = nlohmann::ordered_json;

// Calls f(name, member) for each member; the targets may be const.

template <class Cpu, class F>
void each_cpu_member(Cpu& t, F&& f) {
  f("name", t.name), f("triple", t.triple), f("isa", t.isa), f("cpu", t.cpu);
  f("features", t.features), f("machine", t.machine);
  hw::each_size_of_cpu(t, [&](const char* name, auto& value, auto, auto) { f(name, value); });
}

template <class Rates, class F>
void each_rate(Rates& r, F&& f) {
  f("known", r.known), f("measured", r.measured);
  hw::each_rate_of_gpu(r, [&](const char* name, auto& value, auto, auto) { f(name, value); });
}

template <class Gpu, class F>
void each_gpu_member(Gpu& t, F&& f) {
  f("name", t.name), f("arch", t.arch);
  hw::each_size_of_gpu(t, [&](const char* name, auto& value, auto, auto) { f(name, value); });
  f("has_f16", t.has_f16), f("has_f64", t.has_f64), f("tf32", t.tf32);
}

/// Puts members into, or takes them out of, a JSON object.
struct Put {
  Json& json;
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

Json text_of(const hw::CpuTarget& target) {
  Json json;
  each_cpu_member(target, Put{json});
  return json;
}

Json text_of(const hw::GpuTarget& target) {
  Json json, rates;
  each_gpu_member(target, Put{json});
  json["language"] = hw::name(target.language);
  each_rate(target.rates, Put{rates});
  json["rates"] = rates;
  return json;
}

hw::CpuTarget cpu_of(const nlohmann::json& json) {
  hw::CpuTarget target;
  each_cpu_member(target, Take{json});
  return target;
}

hw::GpuTarget gpu_of(const nlohmann::json& json) {
  hw::GpuTarget target;
  each_gpu_member(target, Take{json});
  const bool cuda = json.at("language") == hw::name(hw::GpuLanguage::Cuda);
  target.language = cuda ? hw::GpuLanguage::Cuda : hw::GpuLanguage::OpenCl;
  each_rate(target.rates, Take{json.at("rates")});
  return target;
}

}  // namespace

std::string print_target(const hw::Target& target) {
  TW_CHECK(target.kind != hw::TargetKind::Accelerator, "no worker measures {}", target.name);
  return json_text(target.gpu() != nullptr ? text_of(*target.gpu()) : text_of(*target.cpu()));
}

Result<hw::Target> parse_target(std::string_view text) {
  try {
    const auto json = parse_json(text);
    return json.contains("language") ? hw::as_target(gpu_of(json)) : hw::as_target(cpu_of(json));
  } catch (const nlohmann::json::exception& problem) {
    return fail(ErrorKind::Parse, "the target of a job cannot be read",
                fmt::format("{}: {}", problem.what(), text.substr(0, 200)));
  }
}

}  // namespace tilewright::measure
