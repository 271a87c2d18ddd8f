#include "tilewright/compile/fpga/cpp_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/accel/fpga/block_ram.h"
#include "tilewright/codegen/hls/table.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::compile {
namespace {

std::string cpp_name(const std::string& program, int structure, size_t table) {
  if (structure == 0 && table == 0) return program;
  return table == 0 ? fmt::format("{}_s{}", program, structure)
                    : fmt::format("{}_s{}_t{}", program, structure, table);
}

/// Steps are not known any more; the table is.
std::string table_notes(const codegen::HlsTable& table) {
  if (table.func.scalars.empty()) return {};
  std::string out = "The table of each layer that it computes:\n";
  for (const std::vector<int64_t>& row : table.rows)
    out += fmt::format("{}\n", fmt::join(row, " "));
  return out;
}

/// Block RAMs of a kernel's buffers. Banks of few words lie in look-up tables.
int64_t block_rams(const Func& func) {
  constexpr int64_t kFewWords = 64;  // of a look-up table as a RAM: vendors' data sheets
  int64_t sum = 0;
  walk(func.body, [&](const Stmt& s) {
    const auto* alloc = s.as<Alloc>();
    if (alloc == nullptr || fpga_memory(alloc->buffer.scope()).empty()) return;
    const auto banking = lower::banking_of(*alloc);
    int64_t banks = int_mark(alloc->marks, MarkKind::Slots).value_or(1), words = 1;
    for (size_t axis = 0; axis < alloc->buffer.rank(); ++axis) {
      const int64_t extent = as_int(alloc->buffer.shape()[axis]).value_or(1);
      using Kind = lower::Banking::Kind;
      const int64_t parts = !banking                                  ? 1
                            : (*banking)[axis].kind == Kind::Complete ? extent
                                                                      : (*banking)[axis].banks;
      banks *= parts;
      words *= ceil_div(extent, parts);
    }
    if (words > kFewWords) sum += banks * fpga::bram18_of(words, bit_width(alloc->buffer.dtype()));
  });
  return sum;
}

}  // namespace

Result<CppKernels> cpp_kernels(const std::vector<const FpgaNetwork::Design*>& alike,
                               const hw::FpgaDevice& device, codegen::HlsDialect dialect) {
  // In the order of their texts: launches have the same designs in different orders, and must make
  // the same kernels.
  std::vector<std::pair<std::string, size_t>> order;
  for (size_t i = 0; i < alike.size(); ++i) order.emplace_back(print(alike[i]->func), i);
  std::sort(order.begin(), order.end());
  std::vector<Func> funcs;
  for (const auto& [text, i] : order) funcs.push_back(TW_TRY(codegen::prepare_hls(alike[i]->func)));
  const int64_t most = device.usable_cells().bram18;
  codegen::HlsTables all = TW_TRY(
      codegen::hls_tables(funcs, [&](const Func& common) { return block_rams(common) <= most; }));
  CppKernels out;
  for (size_t t = 0; t < all.tables.size(); ++t) {
    codegen::HlsTable& table = all.tables[t];
    table.func.name = cpp_name(table.func.name, alike[0]->structure, t);
    codegen::HlsOptions options;
    options.dialect = dialect;
    options.notes = table_notes(table);
    out.kernels.push_back(
        {table.func, TW_TRY(codegen::emit_hls(table.func, TW_TRY(lower::processes_of(table.func)),
                                              device, options))});
  }
  out.uses.resize(alike.size());
  for (size_t k = 0; k < order.size(); ++k) {
    const auto [table, row] = all.places[k];
    out.uses[order[k].second] = {table, all.tables[table].rows[row]};
  }
  return out;
}

}  // namespace tilewright::compile
