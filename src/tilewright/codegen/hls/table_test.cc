// Layers through one kernel with a table, against the interpreter on each layer's own program.
#include "tilewright/codegen/hls/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/hls/testing/cases.h"

namespace tilewright::codegen {
namespace {

using ::testing::HasSubstr;

/// A kernel with its row of the table, called as one without scalars.
struct WithRow {
  tw_kernel kernel;
  std::vector<int64_t> row;
} with_row;
void call_with_row(void* const* buffers, const int64_t*, void* workspace,
                   const tw_kernel_services* services) {
  with_row.kernel(buffers, with_row.row.data(), workspace, services);
}

/// Sums over `inputs` channels in tiles of `tile`, for outputs in tiles of 4; the last of either
/// may be partial. Outputs are limited by a guard, or, if their number is odd, by a condition
/// around the block.
Func product(int outputs, int inputs, int tile, int factor) {
  const int tiles = (inputs + tile - 1) / tile, padded = (outputs + 3) / 4 * 4;
  const std::string image =
      inputs % tile == 0 ? "X[a]" : fmt::format("select(a < {}, X[a], 0i32)", inputs);
  const std::string weight = fmt::format("select(k < {}, W[k, c], 0i32)", outputs);
  const std::string inside = fmt::format("k.o * 4 + y < {}", outputs);
  const auto func = parse_func(fmt::format(
      R"(
    func layer(X: i32[{inputs}], const W: i32[{outputs}, {padded_in}], out Y: i32[{outputs}]) {{
      for k.o in {blocks} @(pipeline=dataflow) {{
        alloc S: i32[4] fpga.bram @(slots=2)
        for z in 4 {{ block S.init(k: space 4 = z) {{ S[k] = 0i32 }} }}
        for c.o in {tiles} {{
          alloc T: i32[{tile}] fpga.bram @(slots=2, partition=c2)
          for i in {tile} {{
            block T(t: space {tile} = i, a: space {padded_in} = c.o * {tile} + i) {{ T[t] = {image} }}
          }}
          alloc V: i32[4, {tile}] fpga.bram @(slots=2, partition=c1_c2)
          for p in 4, q in {tile} {{
            block V(r: space 4 = p, t: space {tile} = q, k: space {padded} = k.o * 4 + p,
                    c: space {padded_in} = c.o * {tile} + q) {{ V[r, t] = {weight} }}
          }}
          for m in 4, n.o in {steps}, n.i in 2 unroll {{
            block S(k: space 4 = m, t: reduce {tile} = n.o * 2 + n.i) {{ S[k] += T[t] * V[k, t] }}
          }}
        }}
        for y in 4 {{
          {before}
          block Y(r: space 4 = y, k: space {outputs} = k.o * 4 + y) {guard} {{
            Y[k] = max(S[r] * i32({factor}), 0i32)
          }}
          {behind}
        }}
      }}
    }})",
      fmt::arg("outputs", outputs), fmt::arg("inputs", inputs), fmt::arg("padded", padded),
      fmt::arg("padded_in", tiles * tile), fmt::arg("blocks", padded / 4), fmt::arg("tiles", tiles),
      fmt::arg("tile", tile), fmt::arg("steps", tile / 2), fmt::arg("image", image),
      fmt::arg("weight", weight), fmt::arg("factor", factor),
      fmt::arg("guard", outputs % 4 == 2 ? "where " + inside : ""),
      fmt::arg("before", outputs % 2 == 1 ? fmt::format("if {} {{", inside) : ""),
      fmt::arg("behind", outputs % 2 == 1 ? "}" : "")));
  if (!func) ADD_FAILURE() << to_string(func.error());
  return func.value();
}

/// Runs each program through the kernel that it shares and by the interpreter.
void check_tables(const std::vector<Func>& programs, size_t kernels) {
  std::vector<Func> prepared;
  for (const Func& func : programs) prepared.push_back(prepare_hls(func).value());
  const auto tables = hls_tables(prepared);
  ASSERT_TRUE(tables) << to_string(tables.error());
  EXPECT_EQ(tables->tables.size(), kernels);
  std::vector<HlsKernel> texts;
  for (size_t t = 0; t < tables->tables.size(); ++t) {
    Func func = tables->tables[t].func;
    func.name += std::to_string(t);
    auto text = emit_hls(func, lower::processes_of(func).value(), testing::device_of(64));
    ASSERT_TRUE(text) << to_string(text.error());
    texts.push_back(*std::move(text));
  }
  const auto library = CsimLibrary::build(texts);
  ASSERT_TRUE(library) << to_string(library.error());
  for (size_t p = 0; p < programs.size(); ++p) {
    const auto [table, row] = tables->places[p];
    const tw_kernel kernel = library->find(texts[table]);
    ASSERT_NE(kernel, nullptr);
    with_row = {kernel, tables->tables[table].rows[row]};
    const Status ok = testing::check({"layer", programs[p]}, call_with_row, texts[table].info);
    EXPECT_TRUE(ok) << to_string(ok.error()) << print(tables->tables[table].func);
  }
}

TEST(HlsTableSlow, LayersOfOneFormAreOneKernel) {
  // Full and partial tiles of inputs and outputs, one tile and several, other constants.
  check_tables(
      {product(8, 12, 4, 3), product(6, 10, 4, 3), product(4, 6, 6, 2), product(12, 4, 4, 5)}, 1);
  check_tables({product(8, 12, 4, 3), product(3, 7, 8, -1), product(5, 6, 4, 2)}, 1);
}

TEST(HlsTableSlow, WhatNoTableHoldsIsAnotherKernel) {
  Func other = product(8, 12, 4, 3);
  std::string text = print(other);
  const size_t at = text.find("max(");
  ASSERT_NE(at, std::string::npos);
  check_tables(
      {product(6, 10, 4, 3), *parse_func(text.replace(at, 4, "min(")), product(4, 6, 6, 2)}, 2);
  const auto refused =
      hls_table({prepare_hls(other).value(), prepare_hls(*parse_func(text)).value()});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(refused.error().why, HasSubstr("differ in operators"));
}

TEST(HlsTable, BanksStayKnown) {
  // The second program has one tile, so its loop of tiles has no factor.
  std::string text = print(product(8, 4, 4, 3));
  const size_t at = text.find("c.o * 4 + i");
  ASSERT_NE(at, std::string::npos);
  const auto table = hls_table({prepare_hls(product(8, 12, 4, 3)).value(),
                                prepare_hls(*parse_func(text.replace(at, 11, "i"))).value()});
  ASSERT_TRUE(table) << to_string(table.error());
  EXPECT_THAT(print(table->func), HasSubstr("a: space table.0 = c.o * 4 + i)"));
  // Tiles of 4 and 6 have the factor 2 in common, and two banks.
  const auto other = hls_table(
      {prepare_hls(product(8, 12, 4, 3)).value(), prepare_hls(product(8, 12, 6, 3)).value()});
  ASSERT_TRUE(other) << to_string(other.error());
  EXPECT_THAT(print(other->func), ::testing::ContainsRegex("c.o \\* table.[0-9]+ \\* 2 \\+ i"));
}

TEST(HlsTable, OneProgramHasNoTable) {
  const auto tables = hls_tables({prepare_hls(product(8, 12, 4, 3)).value()});
  ASSERT_TRUE(tables);
  EXPECT_TRUE(tables->tables[0].func.scalars.empty());
  EXPECT_TRUE(tables->tables[0].rows[0].empty());
}

}  // namespace
}  // namespace tilewright::codegen
