// Packages on a board: files are its registers and its memory, a thread with the cycle simulator is
// its design.
#include "tilewright/compile/fpga/board_launch.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tilewright/accel/fpga/rtl/axi_top.h"
#include "tilewright/compile/fpga/cpp_kernels.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/testing/dataflow_programs.h"
#include "tilewright/lower/testing/meaning.h"
#include "tilewright/runtime/fpga/testing/fake_board.h"
#include "tilewright/runtime/fpga/testing/fake_xclbin.h"

namespace tilewright::compile {
namespace {

using runtime::testing::FakeBoard;
using ::testing::HasSubstr;

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

/// kTwice over so many tiles.
FpgaNetwork::Design twice(int tiles, int structure) {
  const int all = 16 * tiles;
  const std::string text = fmt::format(R"(
    func twice{0}(X: f32[{1}], out Y: f32[{1}]) {{
      for t in {0} @(pipeline=dataflow) {{
        alloc T: f32[16] fpga.bram @(slots=2)
        for i in 16 {{ block T(a: space {1} = t * 16 + i, b: space 16 = i) {{ T[b] = X[a] }} }}
        for j in 16 {{
          block Y(a: space {1} = t * 16 + j, b: space 16 = j) {{ Y[a] = T[b] * 2.0 }}
        }}
      }}
    }})",
                                       tiles, all);
  return {*parse_func(text), 0, structure};
}

/// Three layers, of which the first two are one Verilog with numbers.
FpgaNetwork three_layers(const hw::FpgaDevice& device) {
  FpgaNetwork network;
  network.device = device;
  network.designs = {twice(4, 0), twice(2, 0), twice(4, 1)};
  network.values = {{256, -1}, {256, -1}, {256, -1}, {128, 0}, {128, -1}};
  network.calls = {{"first", 0, {0, 1}}, {"constant", 1, {3, 4}}, {"other", 2, {1, 2}}};
  network.inputs = {0};
  network.outputs = {2, 4};
  network.constants.assign(128, '\0');
  const float one = 1;
  std::memcpy(network.constants.data() + 4, &one, 4);
  return network;
}

void run_three_layers(runtime::Launch& launch) {
  std::vector<Array> outputs = {Array(DType::F32, {64}), Array(DType::F32, {32})};
  Array input(DType::F32, {64});
  std::fill(input.as<float>().begin(), input.as<float>().end(), 3.0F);
  const Status done = launch.run({input}, outputs);
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_THAT(outputs[0].as<float>(), ::testing::Each(12));
  EXPECT_EQ(outputs[1].as<float>()[1], 2);
  EXPECT_EQ(outputs[1].as<float>()[2], 0);
}

/// Each memory of a common kernel is along each axis as large as the largest: where the device has
/// no room for that, layers have kernels of their own.
TEST(FpgaBoard, LayersShareNoKernelThatIsTooLarge) {
  const auto copy = [](int rows, int columns) {
    const std::string text = fmt::format(R"(
      func copy(X: f32[{0},{1}], out Y: f32[{0},{1}]) {{
        for t in 1 @(pipeline=dataflow) {{
          alloc T: f32[{0},{1}] fpga.bram @(slots=2)
          for i in {0}, j in {1} {{ block T(a: space {0} = i, b: space {1} = j) {{ T[a, b] = X[a, b] }} }}
          for k in {0}, l in {1} {{ block Y(a: space {0} = k, b: space {1} = l) {{ Y[a, b] = T[a, b] }} }}
        }}
      }})",
                                         rows, columns);
    return FpgaNetwork::Design{*parse_func(text), 0, 0};
  };
  const FpgaNetwork::Design wide = copy(16, 256), tall = copy(256, 16);
  hw::FpgaDevice device = hw::load_fpga_device("u250").value();
  const auto kernels = [&] { return cpp_kernels({&wide, &tall}, device).value().kernels.size(); };
  EXPECT_EQ(kernels(), 1u);
  device.cells.bram18 = 64;  // a common one takes 256: 2 slots of 65 536 words of 32 bits
  EXPECT_EQ(kernels(), 2u);
}

/// A board whose design is found by the number and the table in its registers.
TEST(FpgaBoard, RunsLayersOfSeveralDesigns) {
  const hw::FpgaDevice device = hw::load_fpga_device("zynq7020").value();
  const FpgaNetwork network = three_layers(device);
  struct There {
    runtime::BoardKernel kernel;
    fpga::Design design;
  };
  std::vector<There> there;
  for (const auto& alike : network.by_structure()) {
    const SharedDesigns shared = shared_designs(alike, device).value();
    const auto kernels = board_kernels(shared).value();
    for (size_t i = 0; i < kernels.size(); ++i) there.push_back({kernels[i], shared.designs[i]});
  }
  ASSERT_EQ(there.size(), 3u);
  EXPECT_EQ(there[0].kernel.identity, there[1].kernel.identity);
  EXPECT_NE(there[0].kernel.table, there[1].kernel.table);
  EXPECT_THAT(there[2].kernel.table, ::testing::IsEmpty());
  std::vector<size_t> ran;
  FakeBoard fake;
  fake.start(there[0].kernel.identity, [&](FakeBoard& board) {
    for (size_t i = 0; i < there.size(); ++i) {
      bool same = board.get(runtime::kIdentityRegister) == there[i].kernel.identity;
      const std::vector<uint32_t>& table = there[i].kernel.table;
      for (uint32_t n = 0; n < table.size(); ++n)
        same &= board.get(runtime::kTableRegister + 4 * n) == table[n];
      if (!same) continue;
      ran.push_back(i);
      const size_t size = i == 1 ? 128 : 256;
      std::vector<std::string> bytes = {{board.argument(0), size}, {board.argument(1), size}};
      if (fpga::simulate(there[i].design, {}, bytes))
        std::memcpy(board.argument(1), bytes[1].data(), size);
    }
  });
  ::setenv("TILEWRIGHT_BOARD_ROOT", fake.root().c_str(), 1);
  const auto missing = load_fpga_launch("three", serialise(network), on_uio(), {});
  ASSERT_FALSE(missing);  // the other design's bitstream is nowhere
  EXPECT_EQ(missing.error().kind, ErrorKind::Package);

  fake.offer(there[0].kernel.identity);
  fake.offer(there[2].kernel.identity);
  const auto launch = load_fpga_launch("three", serialise(network), on_uio(), {});
  ASSERT_TRUE(launch) << to_string(launch.error());
  for (int run = 0; run < 2; ++run) run_three_layers(**launch);
  EXPECT_THAT(ran, ::testing::ElementsAre(0, 1, 2, 0, 1, 2));
  ::unsetenv("TILEWRIGHT_BOARD_ROOT");
}

#ifdef FAKE_XRT

TEST(FpgaCardSlow, RunsAPackage) {
  ::setenv("TILEWRIGHT_XRT", XRT_PLUGIN, 1);
  ASSERT_NE(::dlopen(FAKE_XRT, RTLD_NOW | RTLD_GLOBAL), nullptr) << ::dlerror();
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  ::setenv("TILEWRIGHT_XCLBIN", folder->path().c_str(), 1);
  // By itself it has memory of its own between its two regions, and reads an argument twice.
  const Func func = *parse_func(R"(
    func both(X: f32[32], out Y: f32[32], out Z: f32[32]) {
      alloc T: f32[32]
      for i in 32 { block T(a: space 32 = i) { T[a] = X[a] * 2.0 } }
      for j in 32 { block Y(a: space 32 = j) { Y[a] = T[a] + X[31 - a] } }
      for k in 32 { block Z(a: space 32 = k) { Z[a] = T[31 - a] } }
    })");
  const hw::FpgaDevice device = hw::load_fpga_device("u250").value();
  const Func prepared = codegen::prepare_hls(func).value();
  const auto kernel =
      codegen::emit_hls(prepared, lower::processes_of(prepared).value(), device).value();
  const std::string code = serialise(network_of(func, 0, device).value());
  LaunchSettings settings;
  settings.device = kFpgaXrt;
  const auto missing = load_fpga_launch("both", code, settings, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::Package);
  EXPECT_THAT(missing.error().what, HasSubstr("both.xclbin"));

  const Status made = runtime::testing::make_fake_xclbin(kernel, folder->path());
  ASSERT_TRUE(made) << to_string(made.error());
  const auto launch = load_fpga_launch("both", code, settings, {});
  ASSERT_TRUE(launch) << to_string(launch.error());
  const interp::Arguments arguments = lower::testing::arguments_of(func, 5);
  const auto expected = interp::run(func, arguments);
  std::vector<Array> outputs = {Array(DType::F32, {32}), Array(DType::F32, {32})};
  const Status ran = (*launch)->run({arguments.arrays.at("X")}, outputs);
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_EQ(std::memcmp(outputs[0].data(), expected->outputs.at("Y").data(), 32 * 4), 0);
  EXPECT_EQ(std::memcmp(outputs[1].data(), expected->outputs.at("Z").data(), 32 * 4), 0);
  ::unsetenv("TILEWRIGHT_XRT");
  ::unsetenv("TILEWRIGHT_XCLBIN");
}

/// Two layers on one kernel with a table, and one on another kernel.
TEST(FpgaCardSlow, LayersShareAKernel) {
  ::setenv("TILEWRIGHT_XRT", XRT_PLUGIN, 1);
  ASSERT_NE(::dlopen(FAKE_XRT, RTLD_NOW | RTLD_GLOBAL), nullptr) << ::dlerror();
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  ::setenv("TILEWRIGHT_XCLBIN", folder->path().c_str(), 1);
  const hw::FpgaDevice device = hw::load_fpga_device("u250").value();
  const FpgaNetwork network = three_layers(device);
  std::vector<std::string> names;
  for (const auto& alike : network.by_structure()) {
    const auto cpp = cpp_kernels(alike, device);
    ASSERT_TRUE(cpp) << to_string(cpp.error());
    ASSERT_EQ(cpp->kernels.size(), 1u);
    EXPECT_EQ(cpp->uses.size(), alike.size());
    names.push_back(cpp->kernels[0].kernel.symbol);
    const Status made = runtime::testing::make_fake_xclbin(cpp->kernels[0].kernel, folder->path());
    ASSERT_TRUE(made) << to_string(made.error());
  }
  EXPECT_THAT(names, ::testing::ElementsAre("twice2", "twice4_s1"));
  LaunchSettings settings;
  settings.device = kFpgaXrt;
  const auto launch = load_fpga_launch("three", serialise(network), settings, {});
  ASSERT_TRUE(launch) << to_string(launch.error());
  run_three_layers(**launch);
  ::unsetenv("TILEWRIGHT_XRT");
  ::unsetenv("TILEWRIGHT_XCLBIN");
}

#endif

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
