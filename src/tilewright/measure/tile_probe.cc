#include "tilewright/measure/tile_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "tilewright/base/check.h"
#include "tilewright/base/statistics.h"
#include "tilewright/hw/cpu_intrinsics.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"
#include "tilewright/measure/probes.h"

namespace tilewright::measure {
namespace {

constexpr int64_t kPasses = 16;  ///< over the panels: hides the start and the end of a tile
constexpr int64_t kGroup = 16;  ///< steps of k beside each other in memory, as blocked channels are

/// The dot product of a narrow type.
std::optional<hw::Dot> dot_of(const ProbeTile& tile, const hw::CpuTarget& target) {
  if (tile.dtype == DType::F32) return std::nullopt;
  return hw::find_dot(target, tile.dtype == DType::I8 ? DType::U8 : tile.dtype, tile.dtype);
}

/// Groups of k whose panels fill about half of L1. A group of narrow elements is as wide as one
/// f32.
int64_t groups_of(const ProbeTile& tile, const hw::CpuTarget& target) {
  const int64_t step = 4 * (tile.rows + int64_t{tile.columns} * target.lanes(32));
  return std::clamp<int64_t>(target.l1_bytes / 2 / (step * kGroup), 1, 32);
}

/// units: operations of one call.
double operations_of(const ProbeTile& tile, const hw::CpuTarget& target) {
  const std::optional<hw::Dot> dot = dot_of(tile, target);
  const int64_t lanes = dot ? dot->lanes * dot->depth : target.lanes(32);
  return 2.0 * static_cast<double>(tile.rows * tile.columns * lanes) *
         static_cast<double>(groups_of(tile, target) * kGroup * kPasses);
}

/// Memory of a kernel's parameters and workspace, 64-byte aligned, of small numbers.
class Operands {
 public:
  Operands(const Func& func, const KernelInfo& info) {
    for (const Param& param : func.params) {
      int64_t count = 1;
      for (const Expr& extent : param.buffer.shape()) count *= as_int(extent).value_or(1);
      Array array(param.buffer.dtype(), {count});
      for (int64_t i = 0; i < count; ++i) {
        if (is_float(array.dtype()))
          array.set(i, static_cast<double>(i % 7 - 3));
        else
          array.set_int(i, i % 7);
      }
      add(std::move(array));
    }
    add(Array(DType::U8, {info.shared_bytes + info.per_worker_bytes + 64}));
  }
  void* const* buffers() const { return pointers_.data(); }
  void* workspace() const { return pointers_.back(); }

 private:
  void add(Array array) {
    pointers_.push_back(array.data());
    arrays_.push_back(std::move(array));
  }
  std::vector<Array> arrays_;
  std::vector<void*> pointers_;
};

void serial(void*, int64_t count, tw_parallel_body body, void* env) {
  for (int64_t i = 0; i < count; ++i) body(env, i, 0);
}

}  // namespace

std::vector<ProbeTile> legal_tiles(const hw::CpuTarget& target) {
  constexpr int kCourse[] = {1, 2, 4, 6, 8, 10, 12, 14, 20, 28};
  std::vector<ProbeTile> tiles;
  for (const DType dtype : {DType::F32, DType::BF16, DType::I8}) {
    const bool narrow = dtype != DType::F32;
    if (narrow && !dot_of({1, 1, dtype}, target)) continue;
    for (int columns : {1, 2, 3, 4, 5, 6, 8})
      for (int rows = 1; rows * columns + columns + 1 <= target.vector_registers; ++rows)
        if (!narrow || std::find(std::begin(kCourse), std::end(kCourse), rows) != std::end(kCourse))
          tiles.push_back({rows, columns, dtype});
  }
  return tiles;
}

namespace {

std::string dot_text(const ProbeTile& tile, const hw::Dot& dot, int64_t groups) {
  return fmt::format(
      R"({meaning}
func tile(A: {a}[{K}, {R}, {G}, {D}], const B: {b}[{K}, {G}, {C}, {L}, {D}], out Y: {acc}[{R}, {C}, {L}]) {{
  alloc T: {acc}[{R}, {C}, {L}] local
  for T.init.r in {R} unroll, T.init.c in {C} unroll, T.init.l in {L} vector {{
    block T.init(r: space {R} = T.init.r, c: space {C} = T.init.c, l: space {L} = T.init.l) {{
      T[r, c, l] = {zero}
    }}
  }}
  for T.p in {P}, T.k in {K}, T.g in {G}, T.r in {R} unroll, T.c in {C} unroll {{
    block T(r: space {R} = T.r, c: space {C} = T.c, p: reduce {P} = T.p, k: reduce {K} = T.k, g: reduce {G} = T.g) {{
      call {callee}(T[r:+1, c:+1, 0:+{L}], A[k:+1, r:+1, g:+1, 0:+{D}], B[k:+1, g:+1, c:+1, 0:+{L}, 0:+{D}])
    }}
  }}
  for Y.r in {R} unroll, Y.c in {C} unroll, Y.l in {L} vector {{
    block Y(r: space {R} = Y.r, c: space {C} = Y.c, l: space {L} = Y.l) {{
      Y[r, c, l] = T[r, c, l]
    }}
  }}
}}
)",
      fmt::arg("meaning", print(dot.intrinsic->meaning)), fmt::arg("callee", dot.intrinsic->name()),
      fmt::arg("a", name(dot.a)), fmt::arg("b", name(dot.b)), fmt::arg("acc", name(dot.acc)),
      fmt::arg("R", tile.rows), fmt::arg("C", tile.columns), fmt::arg("L", dot.lanes),
      fmt::arg("D", dot.depth), fmt::arg("K", groups), fmt::arg("G", kGroup),
      fmt::arg("P", kPasses), fmt::arg("zero", is_float(dot.acc) ? "0.0" : "0i32"));
}

std::string f32_text(const ProbeTile& tile, int64_t lanes, int64_t groups) {
  return fmt::format(
      R"(func tile(A: f32[{K}, {R}, {G}], const B: f32[{K}, {G}, {C}, {L}], out Y: f32[{R}, {C}, {L}]) {{
  alloc T: f32[{R}, {C}, {L}] local
  for T.init.r in {R} unroll, T.init.c in {C} unroll, T.init.l in {L} vector {{
    block T.init(r: space {R} = T.init.r, c: space {C} = T.init.c, l: space {L} = T.init.l) {{
      T[r, c, l] = 0.0
    }}
  }}
  for T.p in {P}, T.k in {K}, T.g in {G}, T.r in {R} unroll, T.c in {C} unroll, T.l in {L} vector {{
    block T(r: space {R} = T.r, c: space {C} = T.c, l: space {L} = T.l, p: reduce {P} = T.p, k: reduce {K} = T.k, g: reduce {G} = T.g) {{
      T[r, c, l] += A[k, r, g] * B[k, g, c, l]
    }}
  }}
  for Y.r in {R} unroll, Y.c in {C} unroll, Y.l in {L} vector {{
    block Y(r: space {R} = Y.r, c: space {C} = Y.c, l: space {L} = Y.l) {{
      Y[r, c, l] = T[r, c, l]
    }}
  }}
}}
)",
      fmt::arg("R", tile.rows), fmt::arg("C", tile.columns), fmt::arg("L", lanes),
      fmt::arg("K", groups), fmt::arg("G", kGroup), fmt::arg("P", kPasses));
}

}  // namespace

Func tile_func(const ProbeTile& tile, const hw::CpuTarget& target) {
  const std::optional<hw::Dot> dot = dot_of(tile, target);
  TW_CHECK(dot || tile.dtype == DType::F32, "{} has no dot products of {}", target.name,
           name(tile.dtype));
  const int64_t groups = groups_of(tile, target);
  Result<Func> func =
      parse_func(dot ? dot_text(tile, *dot, groups) : f32_text(tile, target.lanes(32), groups));
  TW_CHECK(func, "{}", to_string(func.error()));
  return *std::move(func);
}

namespace {

/// Comparisons of a tile with the peak of the moment, of which some may be spoilt.
TileReading compare(const std::function<double()>& tile_now, const std::function<double()>& peak) {
  constexpr int kComparisons = 5;
  std::vector<double> shares;
  TileReading reading;
  for (int i = 0; i < kComparisons; ++i) {
    const double before = peak(), tile = tile_now(), best = std::max(before, peak());
    if (tile <= 0 || best <= 0) continue;
    shares.push_back(tile / best);
    reading.rate = std::max(reading.rate, tile);
  }
  reading.share = median(std::move(shares));
  return reading;
}

}  // namespace

Result<TileReading> read_tile(const ProbeTile& tile, const hw::CpuTarget& target,
                              const CompileKernel& compile) {
  constexpr int kTimings = 4, kPeakBursts = 7, kAttempts = 4;
  constexpr double kGood = 0.98;
  constexpr double kOneTiming = 0.00015;  ///< of one timing
  const Func func = tile_func(tile, target);
  const Func lowered = TW_TRY(lower::run_pipeline(func, "cpu"));
  const runtime::CompiledKernel kernel = TW_TRY(compile(lowered));
  const Operands operands(lowered, kernel.info);
  const double operations = operations_of(tile, target);
  const tw_kernel_services services{sizeof(tw_kernel_services), nullptr, serial, 1};
  const Clocks& clocks = system_clocks();
  const auto run = [&](int calls) {
    return timed(clocks, [&] {
      for (int n = 0; n < calls; ++n)
        kernel.run(operands.buffers(), nullptr, operands.workspace(), &services);
    });
  };
  run(1);
  const int calls = std::max(1, static_cast<int>(kOneTiming / std::max(run(1).wall, 1e-9)));
  const auto tile_now = [&] {
    double best = 0;
    for (int timing = 0; timing < kTimings; ++timing) {
      const BurstTime time = run(calls);
      if (undisturbed(time))
        best = std::max(best, operations * calls / (1e9 * std::max(time.wall, time.own)));
    }
    return best;
  };
  // A weak moment may last longer than one median: low ones are measured again.
  TileReading best;
  for (int attempt = 0; attempt < kAttempts && best.share < kGood; ++attempt) {
    const TileReading now = compare(tile_now, [&] { return peak_now(tile.dtype, kPeakBursts); });
    best = {std::max(best.share, now.share), std::max(best.rate, now.rate)};
  }
  return best;
}

}  // namespace tilewright::measure
