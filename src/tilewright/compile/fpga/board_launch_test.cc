// Packages on a board: files are its registers and its memory, a thread with the cycle simulator is
// its design.
#include "tilewright/compile/fpga/board_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tilewright/accel/fpga/rtl/axi_top.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/testing/dataflow_programs.h"
#include "tilewright/lower/testing/meaning.h"
#include "tilewright/runtime/fpga/testing/fake_board.h"

namespace tilewright::compile {
namespace {

using ::testing::HasSubstr;
using runtime::testing::FakeBoard;

LaunchSettings on_uio() {
  LaunchSettings settings;
  settings.device = kFpgaUio;
  return settings;
}

TEST(FpgaBoard, RunsAPackage) {
  const Func func = *parse_func(lower::testing::kTwice);
  const hw::FpgaDevice device = hw::load_fpga_device("zynq7020").value();
  const fpga::Design design = fpga_design(func, device).value();
  FakeBoard fake;
  ASSERT_EQ(fake.problem, "");
  fake.start(fpga::identity(design), [&](FakeBoard& board) {
    std::vector<std::string> bytes;
    for (uint32_t a = 0; a < 2; ++a) bytes.emplace_back(board.argument(a), 64 * 4);
    if (fpga::simulate(design, {}, bytes))
      std::memcpy(board.argument(1), bytes[1].data(), bytes[1].size());
  });
  ::setenv("TILEWRIGHT_BOARD_ROOT", fake.root().c_str(), 1);
  const std::string code = serialise(network_of(func, 0, device).value());
  const auto log = std::make_shared<LaunchLog>();
  const auto launch = load_fpga_launch("twice", code, on_uio(), log);
  ASSERT_TRUE(launch) << to_string(launch.error());
  const interp::Arguments arguments = lower::testing::arguments_of(func, 5);
  const auto expected = interp::run(func, arguments);
  std::vector<Array> outputs = {Array(DType::F32, {64})};
  const Status ran = (*launch)->run({arguments.arrays.at("X")}, outputs);
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_EQ(std::memcmp(outputs[0].data(), expected->outputs.at("Y").data(), 64 * 4), 0);
  ASSERT_EQ(log->entries.size(), 1u);
  EXPECT_EQ(log->entries[0].record->cycles(), FakeBoard::kCycles);

  fake.set(runtime::kIdentityRegister, 5);
  const auto other = load_fpga_launch("twice", code, on_uio(), log);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::Package);
  EXPECT_THAT(other.error().why, HasSubstr("there is 0x00000005"));

  ::setenv("TILEWRIGHT_BOARD_ROOT", "/nowhere", 1);
  const auto none = load_fpga_launch("twice", code, on_uio(), log);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Device);
  ::unsetenv("TILEWRIGHT_BOARD_ROOT");
}

TEST(FpgaBoard, HoldsOneDesign) {
  const Func func = *parse_func(lower::testing::kTwice);
  FpgaNetwork network = network_of(func, 0, hw::load_fpga_device("zynq7020").value()).value();
  network.designs.push_back(network.designs[0]);
  const auto launch = load_fpga_launch("two", serialise(network), on_uio(), {});
  ASSERT_FALSE(launch);
  EXPECT_EQ(launch.error().kind, ErrorKind::Unsupported);
}

TEST(FpgaBoard, NamesOfItsDeviceFile) {
  hw::FpgaDevice device = hw::load_fpga_device("zynq7020").value();
  EXPECT_EQ(board_names(device).registers, "tilewright");
  device.board = {"conv", "0x30000000+0x1000000"};
  const auto again = hw::parse_fpga_device(hw::to_toml(device), "my.toml");
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(board_names(*again).registers, "conv");
  EXPECT_EQ(board_names(*again).memory, "0x30000000+0x1000000");
}

}  // namespace
}  // namespace tilewright::compile
