// The driver of designs against registers of our own making: Verilog behind its AXI ports, and
// files in the place of a board's.
#include "tilewright/runtime/fpga/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tilewright/accel/common/rtl/lint.h"
#include "tilewright/accel/fpga/merge.h"
#include "tilewright/accel/fpga/rtl/board_files.h"
#include "tilewright/accel/fpga/sim/tsim.h"
#include "tilewright/accel/fpga/testing/matmul_design.h"
#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/testing/hand_program.h"
#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/runtime/fpga/testing/fake_board.h"
#include "tilewright/runtime/fpga/testing/verilog_board.h"
#include "tilewright/runtime/fpga/uio.h"

namespace tilewright::runtime {
namespace {

using ::testing::HasSubstr;

fpga::testing::Matmul odd_product() {
  fpga::testing::Matmul shape;
  shape.m = 6;
  shape.n = 10;
  shape.k = 14;
  return shape;
}

std::vector<KernelArgument> arguments_of(std::vector<std::string>& bytes) {
  std::vector<KernelArgument> arguments;
  for (std::string& a : bytes) arguments.push_back({a.data(), a.size(), true, false});
  arguments.back().reads = false;
  arguments.back().writes = true;
  return arguments;
}

TEST(BoardSlow, AProductInVerilog) {
  const fpga::testing::Matmul shape = odd_product();
  const fpga::Design design = fpga::testing::design_of(shape);
  const Status clean = accel::lint_clean(
      fpga::kAxiTop, verilog(design, fpga::Numbers::Fixed).text + axi_top(design));
  EXPECT_TRUE(clean) << to_string(clean.error());
  Rng rng(3);
  std::vector<std::string> bytes = fpga::testing::arguments_of(shape, rng);
  const std::string product = fpga::testing::product_of(shape, bytes);
  // Above 4 GiB: the addresses' upper halves count.
  const auto board = testing::VerilogBoard::make(design, 1 << 16, 0x1'2345'0000);
  ASSERT_TRUE(board) << to_string(board.error());
  for (int run = 0; run < 2; ++run) {
    bytes[2].assign(bytes[2].size(), '\0');
    const auto cycles = run_kernel(**board, {fpga::identity(design)}, arguments_of(bytes));
    ASSERT_TRUE(cycles) << to_string(cycles.error());
    EXPECT_GT(*cycles, 100u);
    EXPECT_TRUE(bytes[2] == product);
  }
  const auto other = run_kernel(**board, {fpga::identity(design) + 1}, arguments_of(bytes));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::Package);
}

/// Products of two shapes: the same Verilog, with the numbers of one and then of the other.
TEST(BoardSlow, TwoShapesInOneVerilog) {
  fpga::testing::Matmul small = odd_product(), large = small;
  large.m = 9;
  large.k = 22;
  const std::vector<fpga::testing::Matmul> shapes = {small, large};
  const auto designs =
      fpga::merge({fpga::testing::design_of(small), fpga::testing::design_of(large)});
  ASSERT_TRUE(designs) << to_string(designs.error());
  constexpr auto kTable = fpga::Numbers::Table;
  EXPECT_EQ(identity((*designs)[0], kTable), identity((*designs)[1], kTable));
  EXPECT_NE(identity((*designs)[0], kTable), identity((*designs)[0]));
  const auto board = testing::VerilogBoard::make((*designs)[0], 1 << 16, 0x1'2345'0000, kTable);
  ASSERT_TRUE(board) << to_string(board.error());
  Rng rng(3);
  for (const size_t i : {0, 1, 0}) {
    std::vector<std::string> bytes = fpga::testing::arguments_of(shapes[i], rng);
    const std::string product = fpga::testing::product_of(shapes[i], bytes);
    const fpga::Design& design = (*designs)[i];
    const auto cycles = run_kernel(
        **board, {identity(design, kTable), verilog(design, kTable).table}, arguments_of(bytes));
    ASSERT_TRUE(cycles) << to_string(cycles.error());
    EXPECT_TRUE(bytes[2] == product);
  }
}

/// VTA behind the same interface: what the functional simulator gives.
TEST(BoardSlow, VtaInVerilog) {
  const vta::Config config;
  const vta::Program program = vta::testing::hand_program();
  fpga::rtl::HarnessTop top;
  top.module = vta::kAxiTop;
  top.clock = "ap_clk";
  top.control = "s_axi_control_";
  top.ports = {{"m_axi_gmem", false, 0}, {"m_axi_gmem", true, 0}};
  top.beat_bytes = config.timing.bus_bytes;
  top.burst_beats = config.timing.max_burst_beats;
  const std::string verilog = vta::verilog(config) + vta::axi_top(config);
  const Status clean = accel::lint_clean(vta::kAxiTop, verilog);
  EXPECT_TRUE(clean) << to_string(clean.error());
  auto board = testing::VerilogBoard::make(top, verilog, 1 << 16, 0x1'2345'0000);
  ASSERT_TRUE(board) << to_string(board.error());
  const auto device = vta::make_board(config, program.end(), *std::move(board));
  ASSERT_TRUE(device) << to_string(device.error());
  const auto fsim = vta::make_fsim(config, program.end());
  for (int run = 0; run < 2; ++run) {
    const auto expected = vta::execute(*fsim, program);
    ASSERT_TRUE(expected);
    const auto report = vta::execute(**device, program);
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_GT(report->cycles, 0u);
    EXPECT_EQ(report->counters.gemm_steps, expected->counters.gemm_steps);
    std::string there(program.image.size(), '\0'), wanted = there;
    ASSERT_TRUE((*device)->read(program.base, there.data(), there.size()));
    ASSERT_TRUE(fsim->read(program.base, wanted.data(), wanted.size()));
    EXPECT_TRUE(there == wanted);
    EXPECT_FALSE(there == program.image);
  }
}

TEST(Board, FilesAsARoot) {
  testing::FakeBoard fake;
  ASSERT_EQ(fake.problem, "");
  fake.start(0x1234, [](testing::FakeBoard& board) {
    const std::string from(board.argument(0), 5);
    std::transform(from.begin(), from.end(), board.argument(1), [](char c) { return c + 1; });
  });
  const auto board = open_uio({}, fake.root());
  ASSERT_TRUE(board) << to_string(board.error());
  std::string in = "abcde", out(5, '\0');
  const auto ran =
      run_kernel(**board, {0x1234}, {{in.data(), 5, true, false}, {out.data(), 5, false, true}});
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_EQ(out, "bcdef");
  EXPECT_EQ(*ran, testing::FakeBoard::kCycles);
}

/// The program that `rtl` writes for a board, on such files.
TEST(BoardSlow, AHostProgramOfItsOwn) {
  const fpga::testing::Matmul shape = odd_product();
  const fpga::Design design = fpga::testing::design_of(shape);
  Rng rng(4);
  const std::vector<std::string> bytes = fpga::testing::arguments_of(shape, rng);
  testing::FakeBoard fake;
  fake.start(fpga::identity(design), [&](testing::FakeBoard& board) {
    std::vector<std::string> there;
    for (uint32_t a = 0; a < 3; ++a) there.emplace_back(board.argument(a), bytes[a].size());
    if (fpga::simulate(design, {}, there))
      std::memcpy(board.argument(2), there[2].data(), there[2].size());
  });
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  std::vector<fpga::HostArgument> arguments;
  const std::vector<std::string> names = {"A", "B", "Y"};
  for (size_t a = 0; a < 3; ++a) {
    arguments.push_back({names[a], static_cast<int64_t>(bytes[a].size()), a == 2});
    const Status written = write_file(folder->file(names[a] + ".bin"), bytes[a]);
    ASSERT_TRUE(written);
  }
  ASSERT_TRUE(write_file(folder->file("host.cpp"),
                         board_host(design, arguments, "tilewright", "udmabuf0")));
  const ToolOptions here{folder->path(), 600};
  const auto built = run_tool(
      {"g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "host.cpp", "-o", "host"}, here);
  ASSERT_TRUE(built && built->status == 0) << built->output;
  const auto ran = run_tool({folder->file("host"), fake.root()}, here);
  ASSERT_TRUE(ran && ran->status == 0) << ran->output;
  EXPECT_EQ(ran->output, "cycles: 77\n");
  EXPECT_TRUE(read_file(folder->file("Y.bin")).value_or("") ==
              fpga::testing::product_of(shape, bytes));
  fake.set(kIdentityRegister, 9);
  EXPECT_EQ(run_tool({folder->file("host"), fake.root()}, here)->status, 8);
  EXPECT_EQ(run_tool({folder->file("host"), "/nowhere"}, here)->status, 4);
}

TEST(Board, SaysWhatIsMissing) {
  const auto nothing = open_uio({}, "/nowhere");
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().kind, ErrorKind::Device);
  EXPECT_THAT(to_string(nothing.error()), HasSubstr("/nowhere/sys/class/uio"));
  const testing::FakeBoard fake;
  const auto name = open_uio({"other", "udmabuf0"}, fake.root());
  ASSERT_FALSE(name);
  EXPECT_THAT(to_string(name.error()), HasSubstr("'tilewright'"));
  const auto memory = open_uio({"tilewright", "udmabuf7"}, fake.root());
  ASSERT_FALSE(memory);
  EXPECT_THAT(to_string(memory.error()), HasSubstr("modprobe u-dma-buf udmabuf7="));
}

TEST(Board, BitstreamsAreLoadedWhenTheyAreNeeded) {
  testing::FakeBoard fake;
  fake.start(5, [](testing::FakeBoard& board) {
    *board.argument(0) = static_cast<char>(board.get(kIdentityRegister));
    *(board.argument(0) + 1) = static_cast<char>(board.get(kTableRegister + 4));
  });
  fake.offer(6);
  const auto board = open_uio({}, fake.root());
  ASSERT_TRUE(board) << to_string(board.error());
  std::string out(2, '\0');
  const std::vector<KernelArgument> arguments = {{out.data(), 2, false, true}};
  ASSERT_TRUE(run_kernel(**board, {5, {70, 71}}, arguments));
  EXPECT_EQ(out, "\x05G");
  ASSERT_TRUE(run_kernel(**board, {6, {80, 81}}, arguments));
  EXPECT_EQ(out, "\x06Q");
  const auto back = run_kernel(**board, {5}, arguments);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().kind, ErrorKind::Package);
  EXPECT_THAT(back.error().fix, HasSubstr("/lib/firmware/tilewright-00000005.bin"));
}

TEST(Board, ADesignAtWorkIsNotReplaced) {
  testing::FakeBoard fake;
  fake.set(kIdentityRegister, 1);
  fake.set(kControlRegister, 1);  // somebody else's run
  fake.offer(5);
  const auto board = open_uio({}, fake.root());
  ASSERT_TRUE(board) << to_string(board.error());
  const auto ran = run_kernel(**board, {5}, {});
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().what, HasSubstr("is at work"));
  EXPECT_EQ(read_file(fake.root() + kFpgaManager + "/firmware").value(), "");
}

TEST(BoardSlow, ABitstreamOfAnotherProgramUnderThisName) {
  testing::FakeBoard fake;
  fake.start(1, {});
  fake.offer(5, 4);
  const auto board = open_uio({}, fake.root());
  ASSERT_TRUE(board) << to_string(board.error());
  const auto wrong = run_kernel(**board, {5}, {});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::Device);
  EXPECT_THAT(wrong.error().why, HasSubstr("there is 0x00000004"));
  EXPECT_THAT(wrong.error().why, HasSubstr("says: operating"));
}

TEST(Board, ArgumentsMustFit) {
  testing::FakeBoard fake;
  fake.start(1, {});
  const auto board = open_uio({}, fake.root());
  ASSERT_TRUE(board) << to_string(board.error());
  std::string large(testing::FakeBoard::kMemory, 'x'), small = "x";
  const auto ran = run_kernel(
      **board, {1}, {{small.data(), 1, true, false}, {large.data(), large.size(), true, false}});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().kind, ErrorKind::Capacity);
  EXPECT_THAT(ran.error().why, HasSubstr("needs 69632 of 65536"));
}

TEST(Board, AKernelThatDoesNotEnd) {
  testing::FakeBoard fake;
  fake.set(kControlRegister, 4);
  fake.set(kIdentityRegister, 1);
  const auto board = open_uio({}, fake.root());
  ASSERT_TRUE(board) << to_string(board.error());
  const auto ran = run_kernel(**board, {1}, {}, 0.01);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().kind, ErrorKind::Device);
  EXPECT_THAT(ran.error().what, HasSubstr("did not end within 0.01 s"));
}

}  // namespace
}  // namespace tilewright::runtime
