#include "tilewright/hw/target_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/rng.h"
#include "tilewright/hw/target_members.h"

namespace tilewright::hw {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCpuFile = R"(kind = "cpu"
name = "mine"
triple = "x86_64-unknown-linux-gnu"
features = ["+avx2", "+avx"]
vector_bytes = 32
vector_registers = 16
cores = 4
)";

constexpr const char* kGpuFile = R"(kind = "gpu"
name = "cuda-mine"
base = "cuda-sm_80"
units = 40
arch = "sm_86"

[rates]
dram = 600.5
)";

/// `text` with the line that begins with `key` replaced, or with `line` in front, before tables.
std::string with(std::string_view text, const std::string& key, const std::string& line) {
  std::string all = "\n" + std::string(text);
  const size_t at = all.find("\n" + key + " =");
  if (at == all.npos) return line + "\n" + std::string(text);
  all.replace(at + 1, all.find('\n', at + 1) - at - 1, line);
  return all.substr(1);
}

void expect_equal(const Target& a, const Target& b) {
  SCOPED_TRACE(a.name);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.backend, b.backend);
  EXPECT_EQ(a.memories, b.memories);
  EXPECT_EQ(a.queues, b.queues);
  EXPECT_EQ(a.units, b.units);
  EXPECT_EQ(a.intrinsics, b.intrinsics);
  std::vector<double> left, right;
  const auto numbers = [](std::vector<double>& into) {
    return [&into](const char*, auto value, auto, auto) {
      into.push_back(static_cast<double>(value));
    };
  };
  if (const CpuTarget *x = a.cpu(), *y = b.cpu(); x != nullptr && y != nullptr) {
    EXPECT_EQ(std::tie(x->name, x->triple, x->isa, x->cpu, x->features),
              std::tie(y->name, y->triple, y->isa, y->cpu, y->features));
    EXPECT_EQ(x->rates.f32, y->rates.f32);
    each_size_of_cpu(*x, numbers(left));
    each_size_of_cpu(*y, numbers(right));
  } else {
    const GpuTarget &g = *a.gpu(), &h = *b.gpu();
    EXPECT_EQ(std::tie(g.name, g.language, g.arch, g.has_f16, g.has_f64, g.tf32, g.rates.known),
              std::tie(h.name, h.language, h.arch, h.has_f16, h.has_f64, h.tf32, h.rates.known));
    each_size_of_gpu(g, numbers(left));
    each_size_of_gpu(h, numbers(right));
    each_rate_of_gpu(g.rates, numbers(left));
    each_rate_of_gpu(h.rates, numbers(right));
  }
  EXPECT_EQ(left, right);
}

/// Those that are part of the program.
std::vector<Target> file_targets() {
  std::vector<Target> targets;
  for (const CpuTarget& cpu : file_cpus()) targets.push_back(as_target(cpu));
  for (const GpuTarget& gpu : file_gpus()) targets.push_back(as_target(gpu));
  return targets;
}

TEST(TargetFile, AllOfTheFolderArePartOfTheProgramAndReadBack) {
  std::vector<std::string> names;
  for (const Target& target : file_targets()) {
    names.push_back(target.name);
    const std::string path = std::string(TILEWRIGHT_ROOT_DIR) + "/hw/" + target.name + ".toml";
    const Result<Target> file = load_target(path);
    ASSERT_TRUE(file) << to_string(file.error());
    expect_equal(*file, target);
    const Result<Target> back = parse_target(to_toml(target), "printed");
    ASSERT_TRUE(back) << to_string(back.error());
    expect_equal(*back, target);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64",
                                            "aarch64-v8.2", "aarch64-v8.6", "opencl", "opencl-mali",
                                            "cuda", "cuda-sm_80", "cuda-sm_86", "cuda-sm_89",
                                            "cuda-sm_90", "cuda-sm_90a"));
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TILEWRIGHT_ROOT_DIR) + "/hw"))
    if (entry.path().extension() == ".toml") {
      const std::string text = *read_file(entry.path());
      for (const char* kind : {"\nkind = \"cpu\"", "\nkind = \"gpu\""})
        if (text.find(kind) != std::string::npos) {
          EXPECT_THAT(names, ::testing::Contains(entry.path().stem().string()));
        }
    }
}

TEST(TargetFile, WhatAFileLeavesOutIsTheBases) {
  const Result<Target> gpu = parse_target(kGpuFile, "gpu.toml");
  ASSERT_TRUE(gpu) << to_string(gpu.error());
  EXPECT_EQ(gpu->kind, TargetKind::Gpu);
  EXPECT_EQ(gpu->backend, "cuda");
  const GpuTarget base = *find_gpu_target("cuda-sm_80");
  EXPECT_EQ(gpu->gpu()->units, 40);
  EXPECT_EQ(gpu->gpu()->arch, "sm_86");
  EXPECT_EQ(gpu->gpu()->rates.dram, 600.5);
  EXPECT_EQ(gpu->gpu()->rates.l2, base.rates.l2);
  EXPECT_EQ(gpu->gpu()->shared_bytes, base.shared_bytes);

  const Result<Target> cpu = parse_target(kCpuFile, "cpu.toml");
  ASSERT_TRUE(cpu) << to_string(cpu.error());
  EXPECT_EQ(cpu->backend, "cpu");
  EXPECT_EQ(cpu->cpu()->isa, "x86-64");
  EXPECT_EQ(cpu->cpu()->cpu, "x86-64");
  EXPECT_EQ(cpu->cpu()->features, (std::vector<std::string>{"+avx", "+avx2"}));
  EXPECT_EQ(cpu->cpu()->rates.f32, assumed_rates(32, 4).f32);
  EXPECT_EQ(cpu->cpu()->machine, "");

  // Fewer features than the base's processor has: code must not count on it.
  const Result<Target> fewer = parse_target(
      "kind = \"cpu\"\nname = \"few\"\nbase = \"x86-64-v4\"\nfeatures = [\"+avx2\"]\n", "few.toml");
  ASSERT_TRUE(fewer) << to_string(fewer.error());
  EXPECT_EQ(fewer->cpu()->isa, "x86-64");
  EXPECT_EQ(fewer->cpu()->vector_bytes, 64);
}

TEST(TargetFile, QueuesAreKept) {
  const std::string text = std::string(kGpuFile) +
                           "\n[[queues]]\nname = \"copy\"\nmemories = [\"L2\", \"shared\"]\n"
                           "[[queues]]\nname = \"compute\"\nmemories = [\"registers\"]\n";
  const Result<Target> target = parse_target(text, "gpu.toml");
  ASSERT_TRUE(target) << to_string(target.error());
  EXPECT_EQ(target->queues,
            (std::vector<Queue>{{"copy", {"L2", "shared"}}, {"compute", {"registers"}}}));
  const Result<Target> back = parse_target(to_toml(*target), "printed");
  ASSERT_TRUE(back) << to_string(back.error());
  expect_equal(*back, *target);
}

struct Wrong {
  const char* file;
  std::string key, line;
  int at;  ///< line of the problem; 0: it is about something that is not there
  std::string says;
};

std::vector<Wrong> wrong_files() {
  return {
      {kCpuFile, "kind", "", 0, "`kind` is missing"},
      {kCpuFile, "kind", "kind = \"tpu\"", 1, "not \"tpu\""},
      {kCpuFile, "kind", "kind = 3", 1, "`kind` must be a text in quotes"},
      {kCpuFile, "name", "", 0, "`name` must be of letters"},
      {kCpuFile, "name", "name = \"a b\"", 2, "`name` must be of letters"},
      {kCpuFile, "name", "name = \"cpu\"", 2, "'cpu' is the name of another target"},
      {kCpuFile, "name", "name = \"x86-64-v3\"", 2, "is the name of another target"},
      {kCpuFile, "base", "base = \"x86-64-v9\"", 1, "no target 'x86-64-v9' to begin with"},
      {kCpuFile, "base", "base = \"opencl\"", 1, "no target of kind cpu"},
      {kCpuFile, "triple", "triple = \"riscv64-unknown-linux-gnu\"", 3, "x86_64 and aarch64"},
      {kCpuFile, "features", "features = \"+avx\"", 4, "`features` must be a list"},
      {kCpuFile, "features", "features = [\"+avx\", 2]", 4, "`features` must be a list"},
      {kCpuFile, "features", "features = [\"avx\"]", 4, "'avx' is no feature"},
      {kCpuFile, "isa", "isa = \"x86-64-v3\"", 1, "which has more than `features`: +bmi"},
      {kCpuFile, "cpu", "cpu = \"\"", 1, "`cpu` must be the name of a processor"},
      {kCpuFile, "vector_bytes", "", 0, "`vector_bytes` is missing"},
      {kCpuFile, "vector_bytes", "vector_bytes = 48", 5, "no power of two"},
      {kCpuFile, "vector_bytes", "vector_bytes = 128", 5, "is 128, but must be in 16..64"},
      {kCpuFile, "cores", "cores = 0", 7, "`cores` is 0, but must be in 1..65536"},
      {kCpuFile, "cores", "cores = 2.5", 7, "`cores` must be an integer"},
      {kCpuFile, "core", "core = 2", 1, "unknown key `core`"},
      {kCpuFile, "units", "units = 2", 1, "unknown key `units`"},
      {kCpuFile, "l2_bytes", "l2_bytes = -1", 1, "`l2_bytes` is -1"},
      {kCpuFile, "intrinsics", "intrinsics = [\"x86.nothing\"]", 1, "no intrinsic 'x86.nothing'"},
      {kCpuFile, "intrinsics", "intrinsics = [\"arm.sdot\"]", 1, "mine has no arm.sdot"},
      {kGpuFile, "language", "language = \"metal\"", 1, "not \"metal\""},
      {kGpuFile, "name", "name = 7", 2, "`name` must be a text in quotes"},
      {kGpuFile, "arch", "arch = 86", 5, "`arch` must be a text in quotes"},
      {kGpuFile, "base", "", 0, "`language` is missing"},
      {kGpuFile, "name", "name = \"mine\"", 2, "`name` must begin with `cuda`"},
      {kGpuFile, "arch", "arch = \"sm_75\"", 5, "`arch` must be sm_80 or later"},
      {kGpuFile, "arch", "arch = \"compute_90\"", 5, "`arch` must be sm_80 or later"},
      {kGpuFile, "units", "units = 0", 4, "`units` is 0, but must be in 1.."},
      {kGpuFile, "units", "units = 99999999999999999999", 4, "no TOML file"},
      {kGpuFile, "warp", "warp = 48", 1, "`warp` is 48, but must divide `max_threads`, 1024,"},
      {kGpuFile, "max_threads", "max_threads = 4096", 0, "`unit_threads` is 2048, less than"},
      {kGpuFile, "unit_shared_bytes", "unit_shared_bytes = 1024", 1, "less than `shared_bytes`"},
      {kGpuFile, "has_f16", "has_f16 = false", 1, "but `rates.f16` is 78000"},
      {kGpuFile, "has_f64", "has_f64 = 1", 1, "`has_f64` must be true or false"},
      {kGpuFile, "vector_bytes", "vector_bytes = 12", 1, "no power of two"},
      {kGpuFile, "dram", "dram = 0", 8, "`rates.dram` is 0, but must be in"},
      {kGpuFile, "dram", "dram = nan", 8, "`rates.dram` is nan, but must be in"},
      {kGpuFile, "dram", "dram = \"fast\"", 8, "`rates.dram` must be a number"},
      {kGpuFile, "dram", "dran = 1", 8, "unknown key `rates.dran`"},
      {kGpuFile, "intrinsics", "intrinsics = [\"cuda.dp4a_i9\"]", 1, "did you mean 'cuda.dp4a_i8'"},
      {kGpuFile, "intrinsics", "intrinsics = [\"x86.vpdpbusd\"]", 1, "there is no intrinsic"},
      {kGpuFile, "dram", "[[[queues]]]", 8, "a name is missing"},
      {kGpuFile, "queues", "queues = 3", 1, "`queues` must be tables"},
      {kGpuFile, "queues", "queues = [{name = \"q\"}]", 1, "queue 'q' has no memories"},
      {kGpuFile, "queues", "queues = [{memories = [\"L2\"]}]", 1, "a queue needs a `name`"},
      {kGpuFile, "queues", "queues = [{name = \"q\", memories = [\"L9\"]}]", 1, "no memory 'L9'"},
      {kGpuFile, "queues", "queues = [{name = \"q\", memories = [\"L2\"], n = 1}]", 1,
       "unknown key `queues.n`"},
  };
}

TEST(TargetFile, EachProblemIsReportedOnceWithItsLine) {
  for (const Wrong& wrong : wrong_files()) {
    const std::string text = with(wrong.file, wrong.key, wrong.line);
    SCOPED_TRACE(text);
    const Result<Target> target = parse_target(text, "my.toml");
    ASSERT_FALSE(target);
    const Error& error = target.error();
    EXPECT_EQ(error.kind, ErrorKind::Parse);
    EXPECT_THAT(to_string(error), HasSubstr(wrong.says));
    if (wrong.at == 0)
      EXPECT_EQ(error.place, "my.toml");
    else
      EXPECT_THAT(error.place, HasSubstr(fmt::format("my.toml:{}:", wrong.at)));
    EXPECT_TRUE(error.others.empty()) << to_string(error);
  }
}

TEST(TargetFile, AllProblemsAreReportedTogether) {
  const Result<Target> target = parse_target(R"(kind = "gpu"
name = "my gpu"
language = "vulkan"
units = 0
warp = "32"
wrap = 32
intrinsics = ["cuda.nothing"]

[rates]
f32 = -1
f33 = 1

[[queues]]
name = "copy"
)",
                                             "my.toml");
  ASSERT_FALSE(target);
  const std::string text = to_string(target.error());
  for (const char* says :
       {"my.toml:2:8", "my.toml:3:12", "`units` is 0", "`warp` must be an integer",
        "unknown key `wrap`", "no intrinsic 'cuda.nothing'", "`rates.f32` is -1",
        "unknown key `rates.f33`", "queue 'copy' has no memories"})
    EXPECT_THAT(text, HasSubstr(says));
  EXPECT_EQ(target.error().others.size(), 8u) << text;
}

TEST(TargetFile, BrokenFilesAreRefusedOrRight) {
  std::vector<std::string> texts = {kCpuFile, kGpuFile};
  for (CpuTarget cpu : file_cpus()) cpu.name += "-mine", texts.push_back(to_toml(as_target(cpu)));
  for (GpuTarget gpu : file_gpus()) gpu.name += "-mine", texts.push_back(to_toml(as_target(gpu)));
  Rng rng(1);
  int good = 0, bad = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = texts[static_cast<size_t>(rng.below(static_cast<int64_t>(texts.size())))];
    for (int64_t n = rng.between(1, 3); n > 0; --n) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      const int64_t what = rng.below(6);
      if (what == 0)
        text.erase(at, static_cast<size_t>(rng.between(1, 9)));
      else if (what == 1)
        text.insert(at,
                    text.substr(static_cast<size_t>(rng.below(static_cast<int64_t>(text.size()))),
                                static_cast<size_t>(rng.between(1, 30))));
      else if (what == 2)
        text[at] = static_cast<char>(rng.below(256));
      else if (text[at] >= '0' && text[at] <= '9')
        text[at] = static_cast<char>('0' + rng.below(10));
      else if (what == 3)
        text[at] = "0123456789-.=[]\"#\n"[rng.below(18)];
      if (text.empty()) text = "\n";
    }
    const Result<Target> target = parse_target(text, "my.toml");
    if (!target) {
      ++bad;
      EXPECT_THAT(target.error().place, ::testing::StartsWith("my.toml")) << text;
      continue;
    }
    ++good;
    const Result<Target> back = parse_target(to_toml(*target), "printed");
    ASSERT_TRUE(back) << text << to_string(back.error());
    expect_equal(*back, *target);
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 500);
}

}  // namespace
}  // namespace tilewright::hw
