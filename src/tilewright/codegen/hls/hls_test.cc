// What the text of kernels must and must not say: the traps of vendors' tools.
#include "tilewright/codegen/hls/hls.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/codegen/hls/widths.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/testing/dataflow_programs.h"

namespace tilewright::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<HlsKernel> emit(std::string_view text, HlsDialect dialect = HlsDialect::Vitis) {
  const Func func = TW_TRY(prepare_hls(TW_TRY(parse_func(std::string(text)))));
  hw::FpgaDevice device;
  device.name = "vu9p";
  HlsOptions options;
  options.dialect = dialect;
  return emit_hls(func, TW_TRY(lower::processes_of(func)), device, options);
}

std::string kernel_of(std::string_view text, HlsDialect dialect = HlsDialect::Vitis) {
  const auto kernel = emit(text, dialect);
  EXPECT_TRUE(kernel) << to_string(kernel.error());
  return kernel ? kernel->files.at("kernel.cpp") : "";
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The texts of functions, by where they begin.
std::vector<std::string> functions(const std::string& text) {
  std::vector<std::string> out;
  size_t at = text.find("static void ");
  while (at != std::string::npos) {
    const size_t next = std::min(text.find("static void ", at + 1), text.find("extern \"C\"", at));
    out.push_back(text.substr(at, next - at));
    at = next != std::string::npos && text[next] == 's' ? next : std::string::npos;
  }
  return out;
}

TEST(EmitHls, IsReadable) {
  EXPECT_EQ(kernel_of(lower::testing::kTwice), R"(// twice for vu9p (250 MHz).
// T: read_X -> write_Y, 2 blocks
#include <hls_streamofblocks.h>
#include "kernel.h"

typedef f32 T_block[16];

static void read_X(const ap_uint<512>* X, hls::stream_of_blocks<T_block, 2>& T_blocks) {
  for (i32 t = 0; t < 4; ++t) {
    hls::write_lock<T_block> T(T_blocks);
    for (i32 i = 0; i < 16; ++i) {  // 16 trips
      {  // T
        const i32 a = ((t * 16) + i);
        const i32 b = i;
        T[b] = tw_get<f32>(X, a);
      }
    }
  }
}

static void write_Y(ap_uint<512>* Y, hls::stream_of_blocks<T_block, 2>& T_blocks) {
  for (i32 t = 0; t < 4; ++t) {
    hls::read_lock<T_block> T(T_blocks);
    for (i32 j = 0; j < 16; ++j) {  // 16 trips
      {  // Y
        const i32 a_2 = ((t * 16) + j);
        const i32 b_2 = j;
        tw_put<f32>(Y, a_2, (T[b_2] * 2.0f));
      }
    }
  }
}

extern "C" void twice(const ap_uint<512>* X, ap_uint<512>* Y) {
#pragma HLS interface m_axi port=X offset=slave bundle=X max_read_burst_length=32 num_read_outstanding=32
#pragma HLS interface m_axi port=Y offset=slave bundle=Y max_write_burst_length=32 num_write_outstanding=32
#pragma HLS interface s_axilite port=return
#pragma HLS dataflow
  hls::stream_of_blocks<T_block, 2> T_blocks;
  TW_NAMED(T_blocks);
  TW_PROCESSES;
  TW_PROCESS(read_X, X, T_blocks);
  TW_PROCESS(write_Y, Y, T_blocks);
}
)");
}

// Dataflow inside of a loop passes synthesis and computes wrong results.
TEST(EmitHls, DataflowStandsAtTheTopOnly) {
  for (const std::string_view program : lower::testing::dataflow_programs()) {
    const std::string text = kernel_of(program);
    EXPECT_EQ(count(text, "#pragma HLS dataflow"), 1) << text;
    for (const std::string& function : functions(text))
      EXPECT_THAT(function, Not(HasSubstr("#pragma HLS dataflow")));
    // Processes hold the loops over tiles: none stands around the calls.
    const std::string top = text.substr(text.find("extern \"C\""));
    EXPECT_THAT(top, Not(HasSubstr("for (")));
  }
}

// Dataflow of one nest after another: each has a function of its own, the top has none.
TEST(EmitHls, RegionsAreFunctions) {
  std::string two(lower::testing::kTwice);
  two =
      "func two(X: f32[64], out Y: f32[64], out Z: f32[64]) {" +
      two.substr(two.find('{') + 1, two.rfind('}') - two.find('{') - 1) +
      "for t2 in 4 @(pipeline=dataflow) {\n"
      "    alloc U: f32[16] fpga.bram @(slots=2)\n"
      "    for i2 in 16 { block U(a: space 64 = t2 * 16 + i2, b: space 16 = i2) { U[b] = Y[a] } }\n"
      "    for j2 in 16 { block Z(a: space 64 = t2 * 16 + j2, b: space 16 = j2) { Z[a] = U[b] } }\n"
      "  }\n}\n";
  const std::string text = kernel_of(two);
  EXPECT_EQ(count(text, "#pragma HLS dataflow"), 2) << text;
  EXPECT_THAT(text.substr(text.find("extern \"C\"")), Not(HasSubstr("#pragma HLS dataflow")));
  EXPECT_THAT(text, HasSubstr("  region_1(X, Y, Z);\n  region_2(X, Y, Z);\n"));
}

// Two accesses to one bundle fail the check of dataflow; an input read twice is two arguments.
TEST(EmitHls, EachArgumentHasABundle) {
  const std::string text = kernel_of(R"(
func f(X: f32[64], out Y: f32[64]) {
  for t in 4 @(pipeline=dataflow) {
    alloc T: f32[16] fpga.bram @(slots=2)
    alloc U: f32[16] fpga.bram @(slots=2)
    for i in 16 {
      block T(a: space 64 = t * 16 + i, b: space 16 = i) @(port=0) { T[b] = X[a] }
    }
    for k in 16 {
      block U(a: space 64 = 63 - t * 16 - k, b: space 16 = k) @(port=1) { U[b] = X[a] }
    }
    for j in 16 {
      block Y(a: space 64 = t * 16 + j, b: space 16 = j) { Y[a] = T[b] + U[b] }
    }
  }
})");
  EXPECT_THAT(text, HasSubstr("extern \"C\" void f(const ap_uint<512>* X, const ap_uint<512>* X_2, "
                              "ap_uint<512>* Y)"));
  for (const char* name : {"X", "X_2", "Y"})
    EXPECT_EQ(count(text, fmt::format("port={0} offset=slave bundle={0} ", name)), 1) << text;
  EXPECT_THAT(text, HasSubstr("TW_PROCESS(read_X, X, T_blocks);"));
  EXPECT_THAT(text, HasSubstr("TW_PROCESS(read_X_2, X_2, U_blocks);"));
}

// A wrong partition stops synthesis: it is refused before; a right one is written.
TEST(EmitHls, PartitionsAreWritten) {
  const std::string text = kernel_of(lower::testing::kTiledConv);
  EXPECT_THAT(text, HasSubstr("variable=C_blocks type=cyclic factor=4 dim=1\n"));
  EXPECT_THAT(text, HasSubstr("variable=W_t_blocks type=complete dim=1\n"));
  EXPECT_THAT(text, HasSubstr("variable=W_t_blocks type=cyclic factor=2 dim=2\n"));
  EXPECT_THAT(text, HasSubstr("#pragma HLS pipeline II=1\n"));
  std::string wrong(lower::testing::kTiledConv);
  wrong.replace(wrong.find("c4_c1_c1"), 8, "c4_c1");
  EXPECT_FALSE(emit(wrong));
}

std::string product(int64_t wide, const char* math) {
  return fmt::format(R"(
func f(A: f32[{0}], B: f32[{0}], out Y: f32[{0}]) {1} {{
  for i in {0} unroll {{ block Y(a: space {0} = i) {{ Y[a] = A[a] * B[a] }} }}
}})",
                     wide, math);
}

// Vendors' tools do not unroll further.
TEST(EmitHls, TooManyOperationsSideBySideAreRefused) {
  EXPECT_TRUE(emit(product(4096, "")));
  const auto failed = emit(product(4097, ""));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(to_string(failed.error()), HasSubstr("4097 operations side by side"));
  EXPECT_TRUE(emit(product(4097, ""), HlsDialect::Plain));
}

// Locks of one channel are never nested.
TEST(EmitHls, AProcessLocksAChannelOnce) {
  for (const std::string_view program : lower::testing::dataflow_programs()) {
    const std::string text = kernel_of(program);
    for (const std::string& function : functions(text))
      for (size_t at = 0; (at = function.find("_lock<", at)) != std::string::npos; ++at) {
        const size_t end = function.find('>', at);
        const std::string channel = function.substr(end, function.find(';', end) - end);
        EXPECT_EQ(count(function, channel + ";"), 1) << function;
      }
    EXPECT_GE(count(text, "_lock<"), 2);
  }
}

// Tools do not regroup sums of floats, so the text does, where the program permits it.
TEST(EmitHls, UnrolledSumsAreTrees) {
  const auto program = [](const char* math) {
    return fmt::format(R"(
func f(A: f32[8,4], out Y: f32[8]) {} {{
  for i in 8 {{ block Y.init(a: space 8 = i) {{ Y[a] = 0.0 }} }}
  for j in 8, c in 4 unroll {{
    block Y(a: space 8 = j, c: reduce 4 = c) {{ Y[a] += A[a, c] * 2.0 }}
  }}
}})",
                       math);
  };
  const std::string fast = kernel_of(program(""), HlsDialect::Plain);
  EXPECT_THAT(fast, Not(HasSubstr("unroll")));
  EXPECT_EQ(count(fast, "* 2.0f"), 4) << fast;
  EXPECT_THAT(fast, HasSubstr(") + (("));
  const std::string exact = kernel_of(program("exact"), HlsDialect::Plain);
  EXPECT_THAT(exact, HasSubstr("unroll"));
  EXPECT_EQ(count(exact, "* 2.0f"), 1) << exact;
}

TEST(EmitHls, PlainNeedsNoVendor) {
  for (const std::string_view program : lower::testing::dataflow_programs()) {
    const auto kernel = emit(program, HlsDialect::Plain);
    ASSERT_TRUE(kernel) << to_string(kernel.error());
    for (const auto& [name, text] : kernel->files)
      for (const char* word : {"hls::", "ap_int", "ap_uint", "#pragma HLS", "TW_PROCESS"})
        EXPECT_THAT(text, Not(HasSubstr(word))) << name;
  }
}

TEST(EmitHls, HostNamesEveryArgument) {
  const auto kernel = emit(lower::testing::kTiledConv);
  ASSERT_TRUE(kernel);
  const std::string host = kernel->files.at("host.cpp"), link = kernel->files.at("link.cfg");
  EXPECT_THAT(host, HasSubstr("kernel(buffer_X, buffer_W, buffer_bias, buffer_Y)"));
  EXPECT_THAT(host, HasSubstr("xrt::bo buffer_X(device, 1152, kernel.group_id(0));"));
  EXPECT_THAT(host, HasSubstr("save(buffer_Y, \"Y.bin\", 512);"));
  EXPECT_THAT(host, Not(HasSubstr("fill(buffer_Y")));
  EXPECT_THAT(link, HasSubstr("sp=conv_1.bias:DDR["));
  EXPECT_THAT(kernel->files.at("build.sh"), HasSubstr("exit 7"));
}

std::string dot(int64_t terms) {
  return fmt::format(R"(
func dot(A: i8[{0}], B: i8[{0}], out Y: i32[1]) {{
  alloc C: i32[1] fpga.reg
  for o in 1 {{
    block C.init(a: space 1 = o) {{ C[a] = 0i32 }}
    for i in {0} {{ block C(a: space 1 = o, k: reduce {0} = i) {{ C[a] += i32(A[k]) * i32(B[k]) }} }}
    block Y(a: space 1 = o) {{ Y[a] = C[a] }}
  }}
}})",
                     terms);
}

int width_of_sum(const std::string& program) {
  const auto func = parse_func(program);
  EXPECT_TRUE(func) << to_string(func.error());
  const auto widths = proven_widths(*func);
  return widths.empty() ? 0 : widths.begin()->second;
}

TEST(Widths, AreThoseOfTheLargestSum) {
  EXPECT_EQ(width_of_sum(dot(9216)), 29);
  EXPECT_EQ(width_of_sum(dot(1)), 16);                // -128 * -128 = 2^14
  EXPECT_EQ(width_of_sum(dot(2)), 17);                // 2^15 needs a bit more than 2^15 - 1
  EXPECT_EQ(width_of_sum(dot(int64_t{1} << 17)), 0);  // 2^31 does not fit i32: sums wrap
  EXPECT_THAT(kernel_of(dot(9216)), HasSubstr("ap_int<29> C[1];"));
}

TEST(Widths, OfValuesThatGoRoundAreThoseOfTheType) {
  EXPECT_EQ(width_of_sum(R"(
func f(A: i8[64], out Y: i32[64]) {
  alloc S: i32[65] fpga.bram
  block S.init() { S[0] = 0i32 }
  for i in 64 { block S(t: scan 64 = i) { S[t + 1] = S[t] + i32(A[t]) } }
  for j in 64 { block Y(a: space 64 = j) { Y[a] = S[a + 1] } }
})"),
            0);
}

}  // namespace
}  // namespace tilewright::codegen
