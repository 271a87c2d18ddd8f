#include "tilewright/hw/target_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>
#include <variant>

#include "target_files_text.h"
#include "tilewright/base/check.h"
#include "tilewright/base/file.h"
#include "tilewright/base/names.h"
#include "tilewright/base/toml_table.h"
#include "tilewright/hw/cpu_intrinsics.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/hw/processor.h"
#include "tilewright/hw/target_members.h"

namespace tilewright::hw {
namespace {

constexpr const char* kAboutTomlFiles = "an entry is KEY = VALUE, as in hw/x86-64-v3.toml";

/// Whose file is read. Checks that compare with the program's own targets need those read before.
enum class Author { Program, User };

/// What a file says. What follows from it takes longer than reading it: as_target looks through all
/// instructions.
struct Content {
  std::variant<CpuTarget, GpuTarget> special;
  std::vector<Queue> queues;

  Target target() const {
    Target target = std::visit([](const auto& one) { return as_target(one); }, special);
    target.queues = queues;
    return target;
  }
  const std::string& name() const {
    return std::visit([](const auto& one) -> const std::string& { return one.name; }, special);
  }
};

Result<Content> read_content(std::string_view text, const std::string& place, Author author);
/// The files of the program.
const std::vector<Content>& contents();
std::string to_text(const Content& content);

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Names are parts of file names and of keys in records.
bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '_';
  });
}

/// `+avx512f`, as LLVM spells features.
bool is_feature(std::string_view text) { return text.starts_with('+') && is_name(text.substr(1)); }

/// The number in `sm_90a`; absent for another text.
std::optional<int> sm_number(std::string_view arch) {
  if (!arch.starts_with("sm_")) return std::nullopt;
  arch.remove_prefix(3);
  if (arch.ends_with('a')) arch.remove_suffix(1);
  if (arch.empty() || arch.size() > 4 || !std::all_of(arch.begin(), arch.end(), is_digit))
    return std::nullopt;
  return std::stoi(std::string(arch));
}

/// LLVM's processor that has the instructions which all processors of an architecture have.
std::string baseline(std::string_view triple) {
  return triple.starts_with("x86_64") ? "x86-64" : "generic";
}

/// Reads one file: what it says, and its problems.
class TargetReader {
 public:
  TargetReader(const toml::table& table, const std::string& place, Author author)
      : author_(author), problems_(place), top_(table, "", problems_) {}

  Result<Content> read() {
    std::string kind;
    const bool text = top_.read_text("kind", kind);
    // Without its kind, nothing says which keys a file may have.
    if (top_.find("kind") == nullptr)
      problem(
          "kind", "`kind` is missing",
          R"(kind = "cpu" or kind = "gpu"; a configuration of VTA: --target vta --hw FILE.toml)");
    else if (text && kind != name(TargetKind::Cpu) && kind != name(TargetKind::Gpu))
      problem("kind", fmt::format("`kind` must be \"cpu\" or \"gpu\", not \"{}\"", kind));
    TW_TRY_STATUS(problems_.status());
    Content content;
    if (kind == name(TargetKind::Cpu))
      content.special = read_cpu(read_base<CpuTarget>(kind));
    else
      content.special = read_gpu(read_base<GpuTarget>(kind));
    read_queues(content);
    read_intrinsics(content);
    top_.finish();
    if (author_ == Author::User) refuse_known_name(content);
    TW_TRY_STATUS(problems_.status());
    return content;
  }

 private:
  void problem(std::string_view key, std::string what, std::string fix = {}) {
    top_.problem(key, std::move(what), std::move(fix));
  }

  template <class Special>
  std::optional<Special> read_base(const std::string& kind) {
    std::string base;
    top_.read_text("base", base);
    if (base.empty()) return std::nullopt;
    std::vector<std::string> names;
    for (const TargetFile& file : kTargetFiles) {
      names.emplace_back(file.name);
      if (file.name != base) continue;
      const Result<Content> content = read_content(file.text, base, Author::Program);
      TW_CHECK(content, "{}", to_string(content.error()));
      if (const auto* special = std::get_if<Special>(&content->special)) return *special;
      problem("base", fmt::format("`base` is {}, which is no target of kind {}", base, kind));
      return std::nullopt;
    }
    const std::string near = did_you_mean(base, names);
    problem("base", fmt::format("there is no target '{}' to begin with", base),
            near.empty() ? fmt::format("the targets are {}", fmt::join(names, ", ")) : near);
    return std::nullopt;
  }

  void read_name(std::string& into) {
    into.clear();
    if (top_.read_text("name", into) && !is_name(into))
      problem("name", "`name` must be of letters, digits, `-`, `_` and `.`",
              "--target and records call the target so");
  }

  CpuTarget read_cpu(const std::optional<CpuTarget>& base) {
    CpuTarget cpu = base.value_or(CpuTarget{});
    read_name(cpu.name);
    const bool text = top_.read_text("triple", cpu.triple);
    const bool known = cpu.triple.starts_with("x86_64-") || cpu.triple.starts_with("aarch64-");
    if (text && !(known && is_name(cpu.triple)))
      problem("triple",
              fmt::format("`triple` is '{}': code is made for x86_64 and aarch64", cpu.triple),
              R"(triple = "x86_64-unknown-linux-gnu" or triple = "aarch64-unknown-linux-gnu")");
    read_features(cpu);
    each_size_of_cpu(cpu, [&](std::string_view key, auto& value, int64_t low, int64_t high) {
      top_.read_integer(key, value, low, high);
    });
    if (!base && top_.find("vector_bytes") == nullptr)
      problem("vector_bytes", "`vector_bytes` is missing", "16, 32 or 64: of a vector register");
    check_power_of_two("vector_bytes", cpu.vector_bytes);
    cpu.rates = assumed_rates(cpu.vector_bytes, cpu.cores);
    return cpu;
  }

  void read_features(CpuTarget& cpu) {
    top_.read_texts("features", cpu.features);
    for (const std::string& feature : cpu.features)
      if (!is_feature(feature))
        problem("features", fmt::format("'{}' is no feature of a processor", feature),
                R"(features are spelled as LLVM does: "+avx512f")");
    std::sort(cpu.features.begin(), cpu.features.end());
    cpu.features.erase(std::unique(cpu.features.begin(), cpu.features.end()), cpu.features.end());
    // Other features than the base's: its processor may have more than they are.
    if (cpu.isa.empty() || top_.find("features") != nullptr) cpu.isa = baseline(cpu.triple);
    top_.read_text("isa", cpu.isa);
    if (author_ == Author::User) check_isa(cpu);
    if (cpu.cpu.empty()) cpu.cpu = cpu.isa;
    top_.read_text("cpu", cpu.cpu);
    for (const auto& [key, value] : {std::pair{"isa", cpu.isa}, std::pair{"cpu", cpu.cpu}})
      if (!is_name(value)) problem(key, fmt::format("`{}` must be the name of a processor", key));
  }

  /// What code may use is what the file lists: a level of the architecture brings all of its own.
  void check_isa(const CpuTarget& cpu) {
    for (const CpuLevel& level : cpu_levels()) {
      if (level.name != cpu.isa) continue;
      std::vector<std::string> missing;
      std::set_difference(level.features.begin(), level.features.end(), cpu.features.begin(),
                          cpu.features.end(), std::back_inserter(missing));
      if (!missing.empty())
        problem("isa",
                fmt::format("`isa` is {}, which has more than `features`: {}", cpu.isa,
                            fmt::join(missing, ", ")),
                "list them, or leave out `isa`");
    }
  }

  GpuTarget read_gpu(const std::optional<GpuTarget>& base) {
    GpuTarget gpu = base.value_or(GpuTarget{});
    read_name(gpu.name);
    read_language(gpu, base.has_value());
    const size_t before = problems_.count();
    each_size_of_gpu(gpu, [&](std::string_view key, auto& value, int64_t low, int64_t high) {
      top_.read_integer(key, value, low, high);
    });
    top_.read_flag("has_f16", gpu.has_f16);
    top_.read_flag("has_f64", gpu.has_f64);
    if (const toml::table* table = top_.subtable("rates")) {
      TomlTable rates(*table, "rates.", problems_);
      rates.read_flag("known", gpu.rates.known);
      each_rate_of_gpu(gpu.rates, [&](std::string_view key, double& value, double low,
                                      double high) { rates.read_number(key, value, low, high); });
      rates.finish();
    }
    if (problems_.count() == before) check_limits(gpu);  // else some numbers are not the file's
    return gpu;
  }

  void read_language(GpuTarget& gpu, bool has_base) {
    std::string language(has_base ? name(gpu.language) : "");
    const bool text = top_.read_text("language", language);
    if (!top_.read_text("arch", gpu.arch) || !text) return;
    const bool cuda = language == name(GpuLanguage::Cuda);
    gpu.language = cuda ? GpuLanguage::Cuda : GpuLanguage::OpenCl;
    if (language.empty())
      return problem("language", "`language` is missing",
                     R"(language = "opencl" or language = "cuda")");
    if (!cuda && language != name(GpuLanguage::OpenCl))
      return problem(
          "language",
          fmt::format("`language` must be \"opencl\" or \"cuda\", not \"{}\"", language));
    if (is_name(gpu.name) && !gpu.name.starts_with(language))
      problem("name", fmt::format("`name` must begin with `{}`", language),
              "records tell kinds of devices apart by it");
    constexpr int kFirst = 80;  // what rules and code generation count on
    if (cuda && sm_number(gpu.arch).value_or(0) < kFirst)
      problem("arch", fmt::format("`arch` must be sm_{} or later, as in \"sm_90a\"", kFirst),
              R"(NVIDIA GPUs before are reached by language = "opencl")");
    if (!cuda && !gpu.arch.empty()) problem("arch", "`arch` is for language = \"cuda\"");
  }

  /// Numbers that must fit together.
  void check_limits(const GpuTarget& gpu) {
    check_power_of_two("vector_bytes", gpu.vector_bytes);
    const auto at_least = [&](const char* more, int64_t a, const char* less, int64_t b) {
      if (a < b) problem(more, fmt::format("`{}` is {}, less than `{}`, {}", more, a, less, b));
    };
    at_least("unit_threads", gpu.unit_threads, "max_threads", gpu.max_threads);
    at_least("unit_shared_bytes", gpu.unit_shared_bytes, "shared_bytes", gpu.shared_bytes);
    if (gpu.max_threads % gpu.warp != 0 || gpu.unit_threads % gpu.warp != 0)
      problem("warp", fmt::format("`warp` is {}, but must divide `max_threads`, {}, and "
                                  "`unit_threads`, {}",
                                  gpu.warp, gpu.max_threads, gpu.unit_threads));
    if (gpu.has_f16 != (gpu.rates.f16 > 0))
      problem("has_f16",
              fmt::format("`has_f16` is {}, but `rates.f16` is {}", gpu.has_f16, gpu.rates.f16));
  }

  void check_power_of_two(std::string_view key, int value) {
    if ((value & (value - 1)) != 0)
      problem(key, fmt::format("`{}` is {}, no power of two", key, value));
  }

  void read_queues(Content& content) {
    const std::vector<const toml::table*> tables = top_.subtables("queues");
    if (tables.empty()) return;
    std::vector<std::string> memories, names;
    for (const Memory& memory : content.target().memories) memories.push_back(memory.name);
    for (const toml::table* table : tables) {
      Queue queue;
      TomlTable entries(*table, "queues.", problems_);
      entries.read_text("name", queue.name);
      entries.read_texts("memories", queue.memories);
      entries.finish();
      if (!is_name(queue.name))
        problems_.add("a queue needs a `name`, of letters, digits, `-`, `_` and `.`", {}, table);
      if (std::find(names.begin(), names.end(), queue.name) != names.end())
        problems_.add(fmt::format("there are two queues '{}'", queue.name), {}, table);
      if (queue.memories.empty())
        problems_.add(fmt::format("queue '{}' has no memories", queue.name), {}, table);
      for (const std::string& memory : queue.memories)
        if (std::find(memories.begin(), memories.end(), memory) == memories.end())
          problems_.add(fmt::format("queue '{}': there is no memory '{}'", queue.name, memory),
                        fmt::format("the memories are {}", fmt::join(memories, ", ")), table);
      names.push_back(queue.name);
      content.queues.push_back(std::move(queue));
    }
  }

  /// What a target has follows from its features or its architecture. A file may say on which it
  /// counts.
  void read_intrinsics(const Content& content) {
    std::vector<std::string> wanted, known;
    top_.read_texts("intrinsics", wanted);
    if (wanted.empty()) return;
    const Target target = content.target();
    const std::vector<Intrinsic>& all =
        target.kind == TargetKind::Cpu ? cpu_intrinsics() : gpu_intrinsics();
    for (const Intrinsic& intrinsic : all) known.push_back(intrinsic.name());
    for (const std::string& name : wanted) {
      const auto has = [&](const std::vector<std::string>& names) {
        return std::find(names.begin(), names.end(), name) != names.end();
      };
      if (!has(known)) {
        const std::string near = did_you_mean(name, known);
        problem("intrinsics", fmt::format("there is no intrinsic '{}'", name),
                near.empty() ? "they are in hw/intrinsics" : near);
      } else if (!has(target.intrinsics)) {
        problem("intrinsics", fmt::format("{} has no {}", target.name, name),
                target.kind == TargetKind::Cpu ? "its `features` lack what that needs"
                                               : "its `arch` lacks what that needs");
      }
    }
  }

  /// Records, packages and people go by the name.
  void refuse_known_name(const Content& content) {
    bool known = content.name() == "cpu";
    for (const Content& other : contents())
      known = known || (other.name() == content.name() && to_text(other) != to_text(content));
    if (known)
      problem("name", fmt::format("'{}' is the name of another target", content.name()),
              "tilewright targets");
  }

  Author author_;
  TomlProblems problems_;
  TomlTable top_;
};

Result<Content> read_content(std::string_view text, const std::string& place, Author author) {
  const toml::table table = TW_TRY(parse_toml(text, place, kAboutTomlFiles));
  return TargetReader(table, place, author).read();
}

template <class T>
std::string entry(std::string_view key, const T& value) {
  toml::table table;
  table.insert(key, value);
  std::ostringstream text;
  text << table;
  return text.str() + "\n";
}

std::string list_entry(std::string_view key, const std::vector<std::string>& values) {
  toml::array array;
  for (const std::string& value : values) array.push_back(value);
  return entry(key, array);
}

std::string text_of(const CpuTarget& cpu) {
  std::string text = entry("triple", cpu.triple) + entry("isa", cpu.isa) + entry("cpu", cpu.cpu) +
                     list_entry("features", cpu.features);
  each_size_of_cpu(cpu, [&](std::string_view key, const auto& value, auto, auto) {
    text += fmt::format("{} = {}\n", key, value);
  });
  return text;
}

std::string text_of(const GpuTarget& gpu) {
  std::string text = entry("language", std::string(name(gpu.language)));
  if (!gpu.arch.empty()) text += entry("arch", gpu.arch);
  each_size_of_gpu(gpu, [&](std::string_view key, const auto& value, auto, auto) {
    text += fmt::format("{} = {}\n", key, value);
  });
  text += fmt::format("has_f16 = {}\nhas_f64 = {}\n", gpu.has_f16, gpu.has_f64);
  text += fmt::format("\n[rates]\nknown = {}\n", gpu.rates.known);
  each_rate_of_gpu(gpu.rates, [&](std::string_view key, double value, auto, auto) {
    text += fmt::format("{} = {}\n", key, value);
  });
  return text;
}

std::string to_text(const Content& content) {
  const bool cpu = std::holds_alternative<CpuTarget>(content.special);
  std::string text = entry("kind", std::string(name(cpu ? TargetKind::Cpu : TargetKind::Gpu))) +
                     entry("name", content.name()) +
                     std::visit([](const auto& one) { return text_of(one); }, content.special);
  for (const Queue& queue : content.queues)
    text += "\n[[queues]]\n" + entry("name", queue.name) + list_entry("memories", queue.memories);
  return text;
}

const std::vector<Content>& contents() {
  static const std::vector<Content> all = [] {
    std::vector<Content> read;
    for (const TargetFile& file : kTargetFiles) {
      Result<Content> content = read_content(file.text, std::string(file.name), Author::Program);
      TW_CHECK(content, "{}", to_string(content.error()));
      TW_CHECK(content->queues.empty(), "{}: nobody would see its queues", file.name);
      read.push_back(*std::move(content));
    }
    return read;
  }();
  return all;
}

template <class Special>
std::vector<Special> all_of() {
  std::vector<Special> found;
  for (const Content& content : contents())
    if (const auto* special = std::get_if<Special>(&content.special)) found.push_back(*special);
  return found;
}

}  // namespace

Result<Target> parse_target(std::string_view text, const std::string& place) {
  return TW_TRY(read_content(text, place, Author::User)).target();
}

Result<Target> load_target(const std::string& path) {
  const std::string text = TW_TRY(read_file(path));
  return parse_target(text, path);
}

std::string to_toml(const Target& target) {
  TW_CHECK(target.kind != TargetKind::Accelerator, "{} has a file of its own form", target.name);
  Content content;
  if (target.cpu() != nullptr)
    content.special = *target.cpu();
  else
    content.special = *target.gpu();
  content.queues = target.queues;
  return to_text(content);
}

const std::vector<CpuTarget>& file_cpus() {
  static const std::vector<CpuTarget> cpus = all_of<CpuTarget>();
  return cpus;
}

const std::vector<GpuTarget>& file_gpus() {
  static const std::vector<GpuTarget> gpus = all_of<GpuTarget>();
  return gpus;
}

}  // namespace tilewright::hw
