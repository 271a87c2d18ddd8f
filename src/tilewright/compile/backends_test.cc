// The table of back-ends: every target has an owner, one name, and a description that holds.
#include "tilewright/compile/backends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tilewright/compile/compile.h"
#include "tilewright/compile/devices.h"

namespace tilewright::compile {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Backends, EveryTargetDescribesItself) {
  std::set<std::string> names;
  for (const Backend* backend : backends())
    for (const std::string& name : backend->target_names()) {
      EXPECT_TRUE(names.insert(name).second) << name << " belongs to two back-ends";
      const Result<hw::Target> target = find_target(name);
      ASSERT_TRUE(target) << to_string(target.error());
      EXPECT_EQ(&backend_of(*target), backend);
      EXPECT_EQ(target->backend, backend->name());
      EXPECT_THAT(target->memories, Not(IsEmpty())) << name;
      EXPECT_THAT(target->units, Not(IsEmpty())) << name;
      std::set<std::string> memories;
      for (const hw::Memory& memory : target->memories) {
        EXPECT_GT(memory.bytes, 0) << name << " " << memory.name;
        EXPECT_GE(memory.banks, 1) << name << " " << memory.name;
        EXPECT_TRUE(memories.insert(memory.name).second) << name << " " << memory.name;
      }
      for (const hw::Queue& queue : target->queues)
        for (const std::string& memory : queue.memories)
          EXPECT_TRUE(memories.contains(memory)) << name << " " << queue.name << ": " << memory;
    }
}

TEST(Backends, EveryDeviceRunsCodeOfOne) {
  std::set<std::string> ids;
  for (const DeviceEntry& device : all_devices()) {
    EXPECT_TRUE(ids.insert(device.row.id).second) << device.row.id << " is there twice";
    EXPECT_EQ(backend_name(device.row.id), device.target);
  }
}

TEST(Backends, UnknownNamesGetTheNearest) {
  const Result<hw::Target> target = find_target("vtaa");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().kind, ErrorKind::Device);
  EXPECT_THAT(to_string(target.error()), HasSubstr("did you mean 'vta'"));
  EXPECT_THAT(to_string(find_target("sm_70").error()), HasSubstr("reached by opencl"));
}

TEST(Backends, OptionsOfOthersAreRefused) {
  for (const std::string& name : target_names()) {
    const Result<hw::Target> target = find_target(name);
    ASSERT_TRUE(target) << name;
    const bool accelerator = target->kind == hw::TargetKind::Accelerator;
    EXPECT_EQ(find_target(name, {.quantize = true}).has_value(), accelerator) << name;
    EXPECT_EQ(find_target(name, {.tf32 = true}).has_value(), name.starts_with("cuda")) << name;
    EXPECT_EQ(find_target(name, {.own_designs = true}).has_value(), name == "fpga") << name;
  }
}

TEST(Backends, WhoeverCompilesMayStop) {
  int asked = 0;
  CompileOptions options;
  options.use_c = true;
  options.observer.cancelled = [&] { return ++asked > 0; };
  graph::Graph graph;
  const Result<CompiledModel> model = compile_graph(graph, options);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::Interrupted);
  EXPECT_GT(asked, 0);
}

}  // namespace
}  // namespace tilewright::compile
