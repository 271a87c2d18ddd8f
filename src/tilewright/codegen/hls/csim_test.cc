// Generated kernels, run on this machine, against the interpreter.
#include "tilewright/codegen/hls/csim.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/hls/testing/cases.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/testing/dataflow_programs.h"

namespace tilewright::codegen {
namespace {

using testing::check_all;
using testing::device_of;
using testing::kernel_of;

/// Without what marks and scopes of the general cases say to other targets.
Stmt without_marks(const Stmt& body) {
  BufferMap plain;
  walk(body, [&](const Stmt& s) {
    if (const auto* alloc = s.as<Alloc>())
      plain[alloc->buffer] =
          Buffer(alloc->buffer.name(), alloc->buffer.dtype(), alloc->buffer.shape());
  });
  return rewrite(replace_buffers(body, plain), [](const Stmt& s) {
    if (const auto* loop = s.as<For>(); loop != nullptr && !loop->marks.empty()) {
      For copy = *loop;
      copy.marks.clear();
      return make(std::move(copy));
    }
    const auto* alloc = s.as<Alloc>();
    return alloc != nullptr && !alloc->marks.empty() ? make(Alloc{alloc->buffer, {}}) : s;
  });
}

std::vector<testing::Case> general_cases() {
  std::vector<testing::Case> cases = testing::standard_cases();
  for (testing::Case& test : cases) test.func.body = without_marks(test.func.body);
  return cases;
}

/// Every `step`-th of them.
std::vector<testing::Case> some_of(size_t first, size_t step) {
  const std::vector<testing::Case> all = general_cases();
  std::vector<testing::Case> out;
  for (size_t i = first; i < all.size(); i += step) out.push_back(all[i]);
  return out;
}

TEST(Csim, F8_VitisAgreesWithTheInterpreter) { check_all(some_of(0, 2), {}); }

TEST(Csim, OtherWidthsOfPortsToo) { check_all(some_of(1, 10), {}, 16); }

TEST(Csim, F8_PlainAgreesWithTheInterpreter) {
  HlsOptions options;
  options.dialect = HlsDialect::Plain;
  check_all(some_of(0, 6), options);
}

/// The programs of tests of processes, with `slots` blocks in every channel.
std::vector<testing::Case> dataflow_cases(int slots) {
  std::vector<testing::Case> cases;
  for (const std::string_view text : lower::testing::dataflow_programs()) {
    Func func = *parse_func(std::string(text));
    func.body = rewrite(func.body, [&](const Stmt& s) {
      const auto* alloc = s.as<Alloc>();
      if (alloc == nullptr) return s;
      Alloc copy = *alloc;
      for (Mark& mark : copy.marks)
        if (mark.kind == MarkKind::Slots) mark.value = int64_t{slots};
      return make(std::move(copy));
    });
    cases.push_back({func.name, func, 1e-5, true});
  }
  return cases;
}

TEST(Csim, ProcessesAgreeWithTheInterpreterWhateverTheSlots) {
  for (const int slots : {1, 2, 3}) check_all(dataflow_cases(slots), {}, slots == 1 ? 8 : 64);
}

TEST(Csim, ExtremeSumsNeedTheLastBit) {
  const auto func = parse_func(R"(
func dot(A: i8[9216], B: i8[9216], out Y: i32[1]) {
  alloc C: i32[1] fpga.reg
  for o in 1 {
    block C.init(a: space 1 = o) { C[a] = 0i32 }
    for i in 9216 {
      block C(a: space 1 = o, k: reduce 9216 = i) { C[a] += i32(A[k]) * i32(B[k]) }
    }
    block Y(a: space 1 = o) { Y[a] = C[a] }
  }
})");
  ASSERT_TRUE(func) << to_string(func.error());
  auto kernel = kernel_of({"dot", *func}, {}, 64);
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  HlsKernel narrow = *kernel;
  std::string& text = narrow.files.at("kernel.cpp");
  ASSERT_NE(text.find("ap_int<29>"), std::string::npos) << text;
  text.replace(text.find("ap_int<29>"), 10, "ap_int<28>");
  interp::Arguments arguments;
  for (const char* name : {"A", "B"}) {
    Array array(DType::I8, {9216});
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, -128);
    arguments.arrays[name] = array;
  }
  const auto expected = interp::run(*func, arguments);
  ASSERT_TRUE(expected);
  for (const bool enough : {true, false}) {
    const HlsKernel& tried = enough ? *kernel : narrow;
    const auto library = CsimLibrary::build({tried});
    ASSERT_TRUE(library) << to_string(library.error());
    const auto got = testing::call_kernel(*func, library->find(tried), tried.info, arguments);
    ASSERT_TRUE(got) << to_string(got.error());
    EXPECT_EQ(static_cast<bool>(testing::compare(expected->outputs, *got, 0)), enough);
  }
}

/// Two processes, each of which waits for what the other makes first. No legal program is cut so.
/// Libraries beside it know nothing of that.
TEST(Csim, SaysWhichProcessWaitsForWhichChannel) {
  const auto copy = parse_func(
      "func copy(X: f32[4], out Y: f32[4]) { for i in 4 { block Y(a: space 4 = i) { Y[a] = X[a] } "
      "} }");
  ASSERT_TRUE(copy) << to_string(copy.error());
  const auto beside = CsimLibrary::build({kernel_of({"copy", *copy}, {}, 64).value()});
  ASSERT_TRUE(beside) << to_string(beside.error());

  const auto func = parse_func(R"(
func f(X: f32[4], out Y: f32[4]) {
  alloc A: f32[1] fpga.reg @(slots=2)
  alloc B: f32[1] fpga.reg @(slots=2)
  block B(o: space 1 = 0) { B[o] = A[o] }
  block A(o: space 1 = 0) { A[o] = B[o] }
})");
  ASSERT_TRUE(func) << to_string(func.error());
  const auto stmts = func->body.as<Seq>()->stmts;
  lower::DataflowRegion region;
  region.processes.push_back(
      {"first", lower::ProcessKind::Compute, seq({stmts[0], stmts[1], stmts[2]}), {}, {}});
  region.processes.push_back(
      {"second", lower::ProcessKind::Compute, seq({stmts[1], stmts[0], stmts[3]}), {}, {}});
  region.channels.push_back({stmts[0].as<Alloc>()->buffer, 2, 1, 0, false});
  region.channels.push_back({stmts[1].as<Alloc>()->buffer, 2, 0, 1, false});
  const auto kernel = emit_hls(*func, {{region}, {}}, device_of(64));
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  const auto library = CsimLibrary::build({*kernel});
  ASSERT_TRUE(library) << to_string(library.error());
  const auto arguments = testing::random_arguments(*func, 1);
  ASSERT_TRUE(testing::call_kernel(*func, library->find(*kernel), kernel->info, arguments));
  const Status status = library->finished();
  ASSERT_FALSE(status);
  EXPECT_THAT(
      to_string(status.error()),
      ::testing::HasSubstr("no process can go on: first waits for a full block of A_blocks; "
                           "second waits for a full block of B_blocks"));
  EXPECT_TRUE(beside->finished());
}

}  // namespace
}  // namespace tilewright::codegen
