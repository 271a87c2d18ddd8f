#include "tilewright/fleet/device_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Device device(const std::string& name, const std::string& device_class, const std::string& target,
              std::vector<std::string> tags = {}, const std::string& state = "free") {
  Device made;
  made.name = name;
  made.device_class = device_class;
  made.target = target;
  made.tags = std::move(tags);
  made.state = state;
  return made;
}

std::vector<Device> lab() {
  return {device("a/cpu", "cpu:znver4@11", "cpu", {"lab"}),
          device("b/cpu", "cpu:znver4@11", "cpu", {"lab", "fast"}),
          device("c/cpu", "cpu:znver3@22", "cpu", {"desk"}), device("c/vta", "vta:tsim", "vta"),
          device("d/runner", "aarch64", "aarch64", {"lab"}, "off")};
}

/// The names that a text selects, or the error.
std::string selected(const std::string& text) {
  const Result<DeviceSpec> spec = parse_spec(text);
  if (!spec) return to_string(spec.error());
  const Result<Selected> found = select_devices(*spec, lab());
  if (!found) return to_string(found.error());
  std::string names;
  for (const Device& one : found->devices) names += (names.empty() ? "" : " ") + one.name;
  return names;
}

TEST(DeviceSpec, ClassesNamesTagsAndTargets) {
  EXPECT_EQ(selected("cpu:znver4@11"), "a/cpu b/cpu");
  EXPECT_EQ(selected("cpu:znver4"), "a/cpu b/cpu");
  EXPECT_EQ(selected("cpu:znver3"), "c/cpu");
  EXPECT_EQ(selected("vta:tsim"), "c/vta");
  EXPECT_EQ(selected("vta"), "c/vta");
  EXPECT_EQ(selected("aarch64"), "d/runner");
  EXPECT_EQ(selected("name=c/cpu"), "c/cpu");
  EXPECT_EQ(selected("tag=fast"), "b/cpu");
  EXPECT_EQ(selected("tag=lab,cpu"), "a/cpu b/cpu");
  EXPECT_EQ(selected("tag=lab,tag=fast"), "b/cpu");
}

TEST(DeviceSpec, TheClassWithMostUsableDevicesIsTaken) {
  EXPECT_EQ(selected("any"), "a/cpu b/cpu");
  EXPECT_EQ(selected("cpu"), "a/cpu b/cpu");
  const Result<Selected> found = select_devices(*parse_spec("cpu"), lab());
  EXPECT_THAT(found->others, ElementsAre("cpu:znver3@22"));
  // What is off counts less than what can work.
  EXPECT_EQ(selected("tag=lab"), "a/cpu b/cpu");
}

TEST(DeviceSpec, WhatCannotDoTheWorkIsNotTaken) {
  std::vector<Device> devices = lab();
  for (const char* name : {"m/1", "m/2", "m/3"})
    devices.push_back(device(name, "model", "model", {"sim"}));
  const auto taken = [&](const char* text, const Need& need) {
    const Result<Selected> found = select_devices(*parse_spec(text), devices, need);
    return found ? found->device_class : to_string(found.error());
  };
  EXPECT_EQ(taken("any", {}), "model");  // of which there are most
  Need packages{"run packages", [](const Device& one) {
                  return one.device_class == "model" ? "it runs nothing" : std::string();
                }};
  EXPECT_EQ(taken("any", packages), "cpu:znver4@11");
  EXPECT_EQ(select_devices(*parse_spec("any"), devices, packages)->others.size(), 3u);
  EXPECT_EQ(taken("tag=sim", packages),
            "error: no device of the fleet that is 'tag=sim' can run packages\n"
            "  why: m/1: it runs nothing; m/2: it runs nothing; m/3: it runs nothing\n"
            "  fix: --worker aarch64, or cpu:znver3, or cpu:znver4, or vta:tsim\n");
  // What is rather taken needs no majority, but it must be on.
  packages.rather = [](const Device& one) { return one.device_class == "vta:tsim"; };
  EXPECT_EQ(taken("any", packages), "vta:tsim");
  packages.rather = [](const Device& one) { return one.device_class == "aarch64"; };
  EXPECT_EQ(taken("any", packages), "cpu:znver4@11");
}

TEST(DeviceSpec, AWordIsNoPartOfAnother) {
  EXPECT_THAT(selected("cpu:znver"), HasSubstr("no device"));
}

TEST(DeviceSpec, WhatMatchesNothingNamesTheNearest) {
  EXPECT_THAT(selected("cpu:zvner4"), HasSubstr("did you mean 'cpu:znver4'?"));
  EXPECT_THAT(selected("tag=lap"), HasSubstr("did you mean 'tag=lab'?"));
  const Result<Selected> none = select_devices(*parse_spec("cpu"), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Device);
  EXPECT_THAT(none.error().fix, HasSubstr("tilewright worker"));
}

TEST(DeviceSpec, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(selected("tga=lab"), HasSubstr("did you mean 'tag'?"));
  for (const char* text : {"", "cpu,", ",cpu", "name=", "tag=,cpu"})
    EXPECT_THAT(selected(text), HasSubstr("empty part")) << text;
}

TEST(DeviceSpec, SaysWhatKeepsDevicesFromJobs) {
  Device off, held, free;
  off.device_class = "cpu:x";
  off.name = "a/cpu";
  off.state = "off";
  off.reason = "its worker left at noon";
  held = off;
  held.name = "b/cpu";
  held.state = "leased";
  held.held_by = "bob";
  held.held_s = 59.6;
  free = held;
  free.held_by = "";
  EXPECT_EQ(why_none({off}),
            "all 1 devices of class cpu:x are off: a/cpu: its worker left at noon");
  EXPECT_EQ(why_none({held}),
            "all 1 devices of class cpu:x are held: b/cpu is held by bob for 60 s more");
  EXPECT_EQ(
      why_none({off, held}),
      "all 2 devices of class cpu:x are off or held: a/cpu: its worker left at noon; b/cpu is "
      "held by bob for 60 s more");
  EXPECT_EQ(why_none({off, held, free}), "");
}

}  // namespace
}  // namespace tilewright::fleet
