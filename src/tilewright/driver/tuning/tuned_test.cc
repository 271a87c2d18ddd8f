// Which machine's records a compilation takes.
#include "tilewright/driver/tuning/tuned.h"

#include <gtest/gtest.h>

#include "tilewright/base/process.h"
#include "tilewright/compile/conv_record.h"
#include "tilewright/driver/tuning/conv_forms.h"
#include "tilewright/records/sqlite/sqlite.h"

namespace tilewright::driver {
namespace {

const tensor::Conv2dShape kTunedConv{1, 32, 32, 14, 14};

compile::CompileOptions machine(const std::string& fingerprint) {
  compile::CompileOptions options;
  options.threads = 2;
  hw::CpuTarget cpu = *hw::find_target("x86-64-v4");
  cpu.cpu = "znver4", cpu.machine = fingerprint;
  options.target = hw::as_target(cpu);
  return options;
}

TEST(Tuned, RecordsOfTheMachineComeBeforeThoseOfItsKind) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  auto store = records::open_store(folder->path() + "/records.sqlite");
  ASSERT_TRUE(store) << to_string(store.error());
  const auto form = [&](const compile::CompileOptions& options) -> std::optional<int64_t> {
    const auto record =
        answers_of(*store, cpu_keys(options.cpu(), options.threads)).forms(kTunedConv);
    return record ? compile::form_in(*record) : std::nullopt;
  };
  // As kept before machines had fingerprints.
  records::Record old = form_record(kTunedConv, 2, machine(""), 10);
  EXPECT_EQ(old.target, "cpu:znver4:2");
  ASSERT_TRUE((*store)->add(old));
  EXPECT_EQ(form(machine("0123abcd")), 2);
  // Two machines of one kind keep apart.
  ASSERT_TRUE((*store)->add(form_record(kTunedConv, 4, machine("0123abcd"), 10)));
  EXPECT_EQ(form(machine("0123abcd")), 4);
  EXPECT_EQ(form(machine("ffff0000")), 2);
}

records::Record winner(const std::string& target, const std::string& compiler) {
  records::Record record;
  record.target = target;
  record.machine = records::old_machine(target);
  record.compiler = compiler;
  return record;
}

TEST(Tuned, A7_TheFieldInWhichTheNearestRecordDiffersIsNamed) {
  const records::Record here = winner("cpu:znver4@1a2b:8", "c");
  EXPECT_EQ(nearest_difference({}, here), "");
  EXPECT_EQ(nearest_difference({here}, here), "");
  EXPECT_EQ(
      nearest_difference({winner("cpu:znver3:2", "b"), winner("cpu:znver4@1a2b:2", "c")}, here),
      "threads 2, here 8");
  EXPECT_EQ(nearest_difference({winner("cpu:znver4@1a2b:8", "b")}, here), "compiler b, here c");
  EXPECT_EQ(nearest_difference({winner("cpu:znver3:2", "b")}, here),
            "processor znver3, here znver4");
  EXPECT_EQ(nearest_difference({winner("cpu:znver4@ffff:8", "c")}, here),
            "machine ffff, here 1a2b");
  EXPECT_EQ(nearest_difference({winner("cuda-sm_90a:NVIDIA H200", "c")}, here),
            "target cuda-sm_90a, here cpu");
  EXPECT_EQ(nearest_difference({winner("cuda-sm_90a:NVIDIA H200", "c")},
                               winner("cuda-sm_90a:NVIDIA H100", "c")),
            "machine NVIDIA H200, here NVIDIA H100");
}

TEST(Tuned, RecordsOfALevelFitNoMachineInParticular) {
  hw::CpuTarget level = *hw::find_target("x86-64-v4");
  level.cpu = level.isa, level.machine = "";
  EXPECT_EQ(cpu_keys(level, 2), std::vector<std::string>{"cpu:x86-64-v4:2"});
  level.machine = "0123abcd";
  EXPECT_EQ(cpu_keys(level, 2), std::vector<std::string>{"cpu:x86-64-v4@0123abcd:2"});
}

}  // namespace
}  // namespace tilewright::driver
