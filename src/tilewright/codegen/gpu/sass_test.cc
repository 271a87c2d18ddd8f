#include "tilewright/codegen/gpu/sass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tilewright/codegen/gpu/nvrtc.h"

namespace tilewright::codegen {
namespace {

using ::testing::HasSubstr;

/// Two kernels: a nest of two loops, the inner one closed by two branches; a slow path behind the
/// end that branches back without being a loop; the endless loop that stands behind every kernel.
constexpr const char* kText = R"(
	.target	sm_90a
//--------------------- .text.nest                --------------------------
	.section	.text.nest,"ax",@progbits
	.align	128
        .global         nest
        .size           nest,(.L_x_9 - nest)
nest:
.text.nest:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
.L_x_2:
        /*0020*/                   LDS.128 R8, [R1] ;
        /*0030*/                   FFMA R0, R4, R8, R0 ;
        /*0040*/               @P0 BRA `(.L_x_2) ;
        /*0050*/                   FFMA R1, R5, R9, R1 ;
        /*0060*/                   BRA P1, `(.L_x_2) ;
        /*0070*/                   FADD R0, R0, R1 ;
        /*0080*/              @!P2 BRA `(.L_x_1) ;
        /*0090*/                   EXIT ;
.L_x_3:
        /*00a0*/                   BRA `(.L_x_3);
        /*00b0*/                   NOP;
.L_x_9:

//--------------------- .text.flat                --------------------------
	.section	.text.flat,"ax",@progbits
	.sectioninfo	@"SHI_REGISTERS=213"
flat:
.text.flat:
        /*0000*/               @P0 BRA `(.L_y_1) ;
.L_y_0:
        /*0010*/                   STG.E [R2], R4 ;
        /*0020*/                   EXIT ;
.L_y_1:
        /*0030*/                   STL.64 [R1], R4 ;
        /*0040*/                   BRA `(.L_y_0) ;
.L_y_2:
        /*0050*/                   BRA `(.L_y_2);

//--------------------- SYMBOLS --------------------------
	.section	.nv.shared.reserved.0,"aw",@nobits
        /*0000*/                   BRA `(.nowhere) ;
)";

TEST(Sass, InstructionsOfKernelsAndInnermostLoops) {
  const auto kernels = parse_sass(kText);
  ASSERT_TRUE(kernels) << to_string(kernels.error());
  ASSERT_EQ(kernels->size(), 2u);
  const SassKernel& flat = (*kernels)[0];
  const SassKernel& nest = (*kernels)[1];
  EXPECT_EQ(flat.symbol, "flat");
  EXPECT_EQ(count(flat.all, "STL"), 1);
  EXPECT_TRUE(flat.loops.empty());
  EXPECT_EQ(nest.symbol, "nest");
  EXPECT_EQ(total(nest.all), 11);
  EXPECT_EQ(count(nest.all, "LDG", "128"), 1);
  EXPECT_EQ(count(nest.all, "LDG", "E.128"), 1);
  EXPECT_EQ(count(nest.all, "LDG", "12"), 0);
  EXPECT_EQ(count(nest.all, "LD"), 0);
  ASSERT_EQ(nest.loops.size(), 1u);
  const SassLoop& loop = nest.loops[0];
  EXPECT_EQ(loop.begin, 0x20);
  EXPECT_EQ(loop.end, 0x60);
  EXPECT_EQ(count(loop.counts, "FFMA"), 2);
  EXPECT_EQ(count(loop.counts, "LDS", "128"), 1);
  EXPECT_EQ(count(loop.counts, "LDG"), 0);
  EXPECT_EQ(count(loop.counts, "FADD"), 0);
  EXPECT_EQ(nest.loop_with("FFMA"), &loop);
  EXPECT_EQ(nest.loop_with("FADD"), nullptr);
}

TEST(Sass, LoopsThatOnlyWaitAreNone) {
  const auto loops_of = [](const std::string& inside) {
    const auto kernels = parse_sass(
        "\t.section\t.text.f,\"ax\",@progbits\n.L_round:\n"
        "/*0000*/ LDS.128 R4, [R0] ;\n.L_wait:\n"
        "/*0010*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR8], R5 ;\n" +
        inside +
        "/*0030*/ @!P0 BRA `(.L_wait) ;\n"
        "/*0040*/ HGMMA.64x256x16.F32 R24, gdesc[UR4], R24 ;\n"
        "/*0050*/ @P1 BRA `(.L_round) ;\n/*0060*/ EXIT ;\n");
    EXPECT_TRUE(kernels) << to_string(kernels.error());
    return kernels ? kernels->at(0).loops : std::vector<SassLoop>();
  };
  const std::vector<SassLoop> waits = loops_of("/*0020*/ IMAD.MOV R1, RZ, RZ, R2 ;\n");
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].begin, 0);
  EXPECT_EQ(count(waits[0].counts, "HGMMA"), 1);
  const std::vector<SassLoop> works = loops_of("/*0020*/ STS.128 [R1], R4 ;\n");
  ASSERT_EQ(works.size(), 1u);
  EXPECT_EQ(works[0].begin, 0x10);
}

TEST(Sass, BrokenTexts) {
  for (const char* text :
       {"\t.section\t.text.f,\"ax\"\n/*0000*/ BRA `(.L_1) ;\n.L_1:\n",
        "\t.section\t.text.f,\"ax\"\n/*0000*/ BRA `(.nowhere) ;\n",
        "\t.section\t.text.f,\"ax\"\n/*00x0*/ EXIT ;\n", "\t.section\t.text.f,\"ax\"\n/*0000*/ ;\n",
        "\t.section\t.text.f,\"ax\"\n/*0000\n"}) {
    const auto kernels = parse_sass(text);
    ASSERT_FALSE(kernels) << text;
    EXPECT_EQ(kernels.error().kind, ErrorKind::Parse);
  }
  EXPECT_TRUE(parse_sass("")->empty());
}

#define TOOLS_OR_SKIP()                                                                  \
  if (const auto tool = find_nvdisasm(); !tool) GTEST_SKIP() << to_string(tool.error()); \
  if (const auto version = nvrtc_version(); !version) GTEST_SKIP() << to_string(version.error())

TEST(Sass, ReadsMachineCodeBack) {
  TOOLS_OR_SKIP();
  const std::string source = R"(
    extern "C" __global__ void rows(const float* x, float* y, int n) {
      float sum = 0;
      #pragma unroll 1
      for (int i = 0; i < n; ++i) {
        const float4 v = ((const float4*)x)[i];
        sum = v.x * v.y + sum;
        sum = v.z * v.w + sum;
      }
      y[threadIdx.x] = sum;
    }
    extern "C" __global__ void array(float* x, int n) {
      float a[64];
      for (int i = 0; i < n; ++i) a[x[i] > 0 ? i : 63 - i] = x[2 * i];
      x[n] = a[n];
    })";
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Result<CudaCode> code = compile_cuda(source, arch);
    ASSERT_TRUE(code) << to_string(code.error());
    const auto kernels = disassemble(code->cubin);
    ASSERT_TRUE(kernels) << to_string(kernels.error());
    ASSERT_EQ(kernels->size(), 2u);
    const SassKernel& array = (*kernels)[0];
    const SassKernel& rows = (*kernels)[1];
    EXPECT_EQ(array.symbol, "array");
    EXPECT_GT(count(array.all, "STL"), 0);
    EXPECT_GT(count(array.all, "LDL"), 0);
    EXPECT_EQ(count(rows.all, "STL"), 0);
    ASSERT_EQ(rows.loops.size(), 1u) << arch;
    EXPECT_EQ(count(rows.loops[0].counts, "FFMA"), 2);
    EXPECT_EQ(count(rows.loops[0].counts, "LDG", "128"), 1);
    EXPECT_EQ(count(rows.loops[0].counts, "STG"), 0);
    EXPECT_GT(count(rows.all, "STG"), 0);
  }
}

TEST(Sass, WhatIsNoCubin) {
  TOOLS_OR_SKIP();
  const auto kernels = disassemble("no machine code");
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().kind, ErrorKind::Tool);
}

TEST(Sass, AMissingToolIsNamed) {
  const char* before = std::getenv("TILEWRIGHT_NVDISASM");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TILEWRIGHT_NVDISASM", "/nowhere/nvdisasm", 1);
  const auto kernels = disassemble("");
  before != nullptr ? ::setenv("TILEWRIGHT_NVDISASM", kept.c_str(), 1)
                    : ::unsetenv("TILEWRIGHT_NVDISASM");
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().kind, ErrorKind::Tool);
  EXPECT_THAT(to_string(kernels.error()), HasSubstr("/nowhere/nvdisasm"));
}

}  // namespace
}  // namespace tilewright::codegen
