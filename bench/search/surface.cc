#include "surface.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/rules/common/work.h"
#include "tilewright/search/space.h"
#include "tilewright/tune/tiling_space.h"

namespace tilewright::bench {
namespace {

/// The point of FlexTensor's space with these factors, by decision; the last value elsewhere.
std::optional<search::Point> point_of(const search::Space& space,
                                      const std::vector<std::vector<double>>& factors) {
  search::Point point;
  for (size_t d = 0; d < space.decisions().size(); ++d) {
    const auto& values = space.decisions()[d].values;
    size_t v = values.size() - 1;
    if (d < factors.size())
      for (v = 0; v < values.size() && values[v].features != factors[d];) ++v;
    if (v == values.size()) return std::nullopt;
    point.push_back(static_cast<int>(v));
  }
  return point;
}

double extent_of(const search::Decision& decision) {
  double product = 1;
  for (const double f : decision.values[0].features) product *= f;
  return product;
}

std::vector<int64_t> powers(double extent, int64_t least, int64_t most) {
  std::vector<int64_t> out;
  for (int64_t p = least; p <= most; p *= 2)
    if (std::fmod(extent, static_cast<double>(p)) == 0) out.push_back(p);
  return out;
}

}  // namespace

Result<Surface> measure_surface(const measure::Task& task, Judge& judge) {
  const auto space = tune::tiling_space(task, {true});
  const auto& decisions = space->space().decisions();
  if (decisions.size() != 4 || decisions[0].values[0].features.size() != 4)
    return fail(ErrorKind::Usage, fmt::format("{} is no plain matrix product", task.name));
  const double m = extent_of(decisions[0]), n = extent_of(decisions[1]),
               k = extent_of(decisions[2]);
  Surface surface{task.name, powers(m, 1, 64), powers(n, 4, 512), {}};
  constexpr double kSteps = 4;  // of the reduction, inside
  std::vector<schedule::Trace> traces;
  for (const int64_t row : surface.rows)
    for (const int64_t column : surface.columns) {
      const auto r = static_cast<double>(row), c = static_cast<double>(column);
      const auto point = point_of(space->space(),
                                  {{m / r, 1, 1, r}, {n / c, 1, 1, c}, {1, 1, k / kSteps, kSteps}});
      if (!point) return fail(ErrorKind::Usage, fmt::format("{}: no such split", task.name));
      traces.push_back(TW_TRY(space->trace(*point)));
    }
  const std::vector<Verdict> verdicts = judge.judge(traces);
  const double flops = 2 * m * n * k;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    if (i % surface.columns.size() == 0) surface.gflops.emplace_back();
    surface.gflops.back().push_back(flops / (verdicts[i].cost * judge.rule_ns()));
  }
  return surface;
}

std::string describe(const Surface& surface) {
  std::string out =
      fmt::format("{}: GFLOP/s by tile, rows down, columns across\n{:>6}", surface.name, "");
  for (const int64_t c : surface.columns) out += fmt::format("{:>8}", c);
  double best = 0, least = INFINITY;
  int optima = 0;
  for (size_t r = 0; r < surface.rows.size(); ++r) {
    out += fmt::format("\n{:>6}", surface.rows[r]);
    for (size_t c = 0; c < surface.columns.size(); ++c) {
      const double here = surface.gflops[r][c];
      out += fmt::format("{:8.1f}", here);
      best = std::max(best, here);
      if (here > 0) least = std::min(least, here);
      bool top = here > 0;
      for (size_t i = 0; i < surface.rows.size(); ++i)
        for (size_t j = 0; j < surface.columns.size(); ++j)
          if (std::max(i, r) - std::min(i, r) + std::max(j, c) - std::min(j, c) == 1)
            top &= here >= surface.gflops[i][j];
      optima += top ? 1 : 0;
    }
  }
  return out + fmt::format("\nbest {:.1f}, worst {:.1f} ({:.0f} times slower), {} local optima\n",
                           best, least, best / least, optima);
}

std::string to_html(const Surface& surface) {
  double best = 1e-9;
  for (const auto& row : surface.gflops)
    for (const double v : row) best = std::max(best, v);
  constexpr int kCell = 44;
  std::string out = fmt::format(
      R"(<!doctype html><meta charset="utf-8"><title>{0}</title><body style="font-family:sans-serif"><h1>{0}</h1><p>Speed over the size of the tile, of the best; rows down, columns across.</p><svg width="{1}" height="{2}" font-size="11">)",
      surface.name, kCell * (surface.columns.size() + 2), kCell * (surface.rows.size() + 2));
  for (size_t c = 0; c < surface.columns.size(); ++c)
    out += fmt::format(R"(<text x="{}" y="30">{}</text>)", kCell * (c + 1) + 8, surface.columns[c]);
  for (size_t r = 0; r < surface.rows.size(); ++r) {
    out += fmt::format(R"(<text x="8" y="{}">{}</text>)", kCell * (r + 1) + 26, surface.rows[r]);
    for (size_t c = 0; c < surface.columns.size(); ++c) {
      const double share = surface.gflops[r][c] / best;
      out += fmt::format(
          R"x(<rect x="{}" y="{}" width="{}" height="{}" fill="hsl({:.0f},70%,{:.0f}%)"/><text x="{}" y="{}">{:.0f}</text>)x",
          kCell * (c + 1), kCell * (r + 1), kCell, kCell, 240 - 200 * share, 80 - 25 * share,
          kCell * (c + 1) + 10, kCell * (r + 1) + 26, 100 * share);
    }
  }
  return out + "</svg></body>\n";
}

}  // namespace tilewright::bench
