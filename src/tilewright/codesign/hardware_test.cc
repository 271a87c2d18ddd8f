// Designs of any kind as files.
#include "tilewright/codesign/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::codesign {
namespace {

TEST(Hardware, FilesSayOfWhichKindTheyAre) {
  spatial::Design design;
  design.rows = 8;
  design.host.macs_per_cycle = 4;
  vta::Config config;
  config.log_block_in = config.log_block_out = 5;
  config.clock_mhz = 150;
  for (const Hardware& hardware : {Hardware(design), Hardware(config)}) {
    const Result<Hardware> read = read_hardware(to_toml(hardware), "hw.toml");
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(*read, hardware);
  }
  const Result<Hardware> json = read_hardware(vta::to_json(config), "vta.json");
  ASSERT_TRUE(json) << to_string(json.error());
  EXPECT_EQ(std::get<vta::Config>(*json).log_block_in, 5);
  EXPECT_EQ(clock_mhz(config), 150);
  EXPECT_EQ(host_of(design).macs_per_cycle, 4);
  EXPECT_EQ(host_of(config), spatial::Host());
}

TEST(Hardware, OtherKindsAreRefusedWithTheirPlace) {
  const Result<Hardware> dpu = read_hardware("name = \"d\"\nkind = \"dpu\"\n", "d.toml");
  ASSERT_FALSE(dpu);
  EXPECT_EQ(dpu.error().kind, ErrorKind::Usage);
  EXPECT_EQ(dpu.error().place, "d.toml:2:8");
  EXPECT_FALSE(read_hardware("kind = \n", "d.toml"));
  EXPECT_FALSE(read_hardware("kind = \"spatial\"\nrowz = 3\n", "d.toml"));
  EXPECT_EQ(load_hardware("nowhere.toml").error().kind, ErrorKind::Io);
  EXPECT_TRUE(load_hardware("vta-extended"));
}

}  // namespace
}  // namespace tilewright::codesign
