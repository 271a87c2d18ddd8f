// Kernels through XRT, whose library is a stand-in that runs their C++: the host program that `hls`
// writes, compiled with XRT's own headers, and the plug-in. Values are those of the interpreter.
#include "tilewright/runtime/fpga/xrt.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/codegen/fpga/testing/run_design.h"
#include "tilewright/codegen/hls/hls.h"
#include "tilewright/runtime/fpga/testing/fake_xclbin.h"
#include "tilewright/schedule/testing/fpga_traces.h"

namespace tilewright::runtime {
namespace {

using ::testing::HasSubstr;

#ifdef FAKE_XRT

struct Built {
  Func func;
  codegen::HlsKernel kernel;
  interp::Arguments arguments;
  interp::Outcome expected;
  std::vector<std::string> bytes;  ///< of the parameters, before the run
  TemporaryFolder folder;

  std::string xclbin() const { return folder.file(kernel.symbol + ".xclbin"); }
};

Result<ToolResult> tool(const std::string& folder, const std::vector<std::string>& argv) {
  return run_tool(argv, {folder, 600});
}

/// The files of `hls`, with the kernel as the stand-in takes it.
Result<Built> built(const Func& func) {
  const Func prepared = TW_TRY(codegen::prepare_hls(func));
  codegen::HlsKernel kernel = TW_TRY(
      codegen::emit_hls(prepared, TW_TRY(lower::processes_of(prepared)), hw::fpga_devices()[0]));
  interp::Arguments arguments = lower::testing::arguments_of(func, 7);
  interp::Outcome expected = TW_TRY(interp::run(func, arguments));
  std::vector<std::string> bytes = codegen::testing::bytes_of(func, arguments);
  Built made{func,     std::move(kernel), std::move(arguments),
             expected, std::move(bytes),  TW_TRY(TemporaryFolder::create())};
  for (size_t i = 0; i < func.params.size(); ++i)
    if (func.params[i].mode != ParamMode::Out)
      TW_TRY_STATUS(
          write_file(made.folder.file(func.params[i].buffer.name() + ".bin"), made.bytes[i]));
  TW_TRY_STATUS(testing::make_fake_xclbin(made.kernel, made.folder.path()));
  return made;
}

std::vector<Func> programs() {
  namespace traces = schedule::testing;
  return {traces::scheduled(traces::kFpgaConv, traces::conv_trace({})),
          traces::scheduled(traces::kFpgaProduct, traces::product_trace({}))};
}

TEST(XrtSlow, TheHostProgram) {
  const std::string fake =
      "LD_LIBRARY_PATH=" + std::filesystem::path(FAKE_XRT).parent_path().string();
  for (const Func& func : programs()) {
    SCOPED_TRACE(func.name);
    const auto made = built(func);
    ASSERT_TRUE(made) << to_string(made.error());
    const std::string& folder = made->folder.path();
    const auto compiled =
        tool(folder, {"g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-isystem", XRT_HEADERS,
                      "host.cpp", XRT_LIBRARY, "-o", "host"});
    ASSERT_TRUE(compiled && compiled->status == 0) << compiled->output;
    const std::string file = made->kernel.symbol + ".xclbin";
    const auto ran = tool(folder, {"env", fake, "./host", file});
    ASSERT_TRUE(ran && ran->status == 0) << ran->output;
    EXPECT_EQ(ran->output, "host: fake_u250\n");
    std::vector<std::string> got = made->bytes;
    for (size_t i = 0; i < func.params.size(); ++i)
      got[i] = read_file(made->folder.file(func.params[i].buffer.name() + ".bin")).value_or("");
    EXPECT_EQ(codegen::testing::difference(func, made->expected, got), "");

    const auto none = tool(folder, {"env", fake, "./host", "none.xclbin"});
    EXPECT_EQ(none->status, 8) << none->output;
    const auto third = tool(folder, {"env", fake, "./host", file, "3"});
    EXPECT_EQ(third->status, 4) << third->output;
    // XRT itself, which has no card here.
    const auto real = tool(folder, {made->folder.file("host"), file});
    EXPECT_EQ(real->status, 4) << real->output;
    const std::string first = func.params[0].buffer.name() + ".bin";
    ASSERT_TRUE(write_file(made->folder.file(first), "short"));
    const auto cut = tool(folder, {"env", fake, "./host", file});
    EXPECT_EQ(cut->status, 1);
    EXPECT_THAT(cut->output, HasSubstr(first + " must have"));
  }
}

TEST(XrtSlow, ThePlugIn) {
  ::setenv("TILEWRIGHT_XRT", XRT_PLUGIN, 1);
  // It needs a library by the name that the stand-in has.
  ASSERT_NE(::dlopen(FAKE_XRT, RTLD_NOW | RTLD_GLOBAL), nullptr) << ::dlerror();
  std::vector<Built> all;
  std::vector<std::unique_ptr<XrtKernel>> kernels;
  for (const Func& func : programs()) {
    auto made = built(func);
    ASSERT_TRUE(made) << to_string(made.error());
    auto opened = open_xrt(made->xclbin(), made->kernel.symbol);
    ASSERT_TRUE(opened) << to_string(opened.error());
    EXPECT_EQ((*opened)->card(), "fake_u250");
    all.push_back(*std::move(made));
    kernels.push_back(*std::move(opened));
  }
  // In turns: the card has one file at a time.
  for (const size_t k : {0, 1, 1, 0}) {
    Built& built = all[k];
    std::vector<std::string> bytes = built.bytes;
    std::vector<KernelArgument> arguments;
    for (const codegen::HlsPort& port : built.kernel.ports) {
      std::string& of = bytes.at(static_cast<size_t>(port.param));
      arguments.push_back({of.data(), of.size(), !port.writes, port.writes});
    }
    const Status ran = kernels[k]->run(arguments);
    ASSERT_TRUE(ran) << to_string(ran.error());
    EXPECT_EQ(codegen::testing::difference(built.func, built.expected, bytes), "");
    arguments.pop_back();
    EXPECT_FALSE(kernels[k]->run(arguments));
  }
  const auto other = open_xrt(all[0].xclbin(), "another");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::Package);
  EXPECT_THAT(other.error().why, HasSubstr("No such kernel 'another'"));
  const auto missing = open_xrt("/nowhere.xclbin", "x");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::Package);
  ::unsetenv("TILEWRIGHT_XRT");
}

#else

TEST(XrtSlow, TheHostProgram) {
  GTEST_SKIP() << "XRT's headers are missing: scripts/setup installs libxrt-dev";
}

#endif

TEST(Xrt, WithoutThePlugIn) {
  ::setenv("TILEWRIGHT_XRT", "/nowhere/libtilewright_xrt.so", 1);
  const auto opened = open_xrt("x.xclbin", "x");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::Device);
  EXPECT_THAT(to_string(opened.error()), HasSubstr("libxrt-dev"));
  ::unsetenv("TILEWRIGHT_XRT");
}

}  // namespace
}  // namespace tilewright::runtime
