#include "tilewright/codegen/stream/nest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tilewright::codegen::stream {

int64_t ConcreteNest::iterations() const {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

void ConcreteNest::fix(size_t i, int64_t at) {
  extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(i));
  for (Form& f : forms) {
    f.c += f.k[i] * at;
    std::copy(f.k.begin() + static_cast<std::ptrdiff_t>(i) + 1, f.k.end(),
              f.k.begin() + static_cast<std::ptrdiff_t>(i));
    f.k.back() = 0;
  }
}

namespace {

/// Makes loops p, q (p = one whole run of q) one.
bool try_merge(ConcreteNest& nest, size_t p, size_t q) {
  const int64_t n = nest.extents[q];
  if (std::any_of(nest.forms.begin(), nest.forms.end(),
                  [&](const Form& f) { return f.k[p] != f.k[q] * n; }))
    return false;
  nest.extents[q] *= nest.extents[p];
  nest.fix(p, 0);
  return true;
}

bool merge_once(ConcreteNest& nest) {
  for (size_t p = 0; p < nest.size(); ++p)
    for (size_t q = 0; q < nest.size(); ++q)
      if (p != q && try_merge(nest, p, q)) return true;
  return false;
}

}  // namespace

void merge_loops(ConcreteNest& nest) {
  for (size_t i = nest.size(); i-- > 0;)
    if (nest.extents[i] == 1) nest.fix(i, 0);
  while (merge_once(nest)) {
  }
}

void point_forwards(ConcreteNest& nest) {
  for (size_t i = 0; i < nest.size(); ++i) {
    bool backwards = false, forwards = false;
    for (size_t a = 0; a < nest.addresses; ++a) {
      backwards |= nest.forms[a].k[i] < 0;
      forwards |= nest.forms[a].k[i] > 0;
    }
    if (!backwards || forwards) continue;
    for (Form& f : nest.forms) {
      f.c += f.k[i] * (nest.extents[i] - 1);
      f.k[i] = -f.k[i];
    }
  }
}

namespace {

tl::unexpected<Error> no_element(const std::string& why) {
  return fail(ErrorKind::Unsupported, "an access does not cover whole elements", why);
}

/// Splits the first `inner` iterations off loop i, as a loop of their own at
/// the end.
void split_loop(ConcreteNest& nest, size_t i, int64_t inner) {
  const size_t last = nest.size();
  nest.extents[i] /= inner;
  nest.extents.push_back(inner);
  for (Form& f : nest.forms) {
    f.k[last] = f.k[i];
    f.k[i] *= inner;
  }
}

/// The loop whose step in the first form is `step`; size() if none.
size_t loop_of_step(const ConcreteNest& nest, int64_t step) {
  size_t i = 0;
  while (i < nest.size() && (nest.forms[0].k[i] != step || nest.extents[i] == 1)) ++i;
  return i;
}

Status take_lane_loop(ConcreteNest& nest, int64_t covered, int64_t lanes) {
  size_t i = loop_of_step(nest, covered);
  if (i == nest.size())
    return no_element(
        fmt::format("no loop runs through scalars {} to {} of the element", covered, lanes));
  const int64_t inner = std::min(nest.extents[i], lanes / covered);
  if (nest.extents[i] % inner != 0 || (lanes / covered) % inner != 0)
    return no_element(fmt::format("a loop of {} iterations over elements of {} scalars",
                                  nest.extents[i], lanes / covered));
  if (nest.extents[i] > inner) {
    if (nest.size() == kMaxLoops) return no_element("the nest has too many loops");
    split_loop(nest, i, inner);
    i = nest.size() - 1;
  }
  for (size_t f = 1; f < nest.forms.size(); ++f)
    if (nest.forms[f].k[i] != (f < nest.addresses ? covered : 0))
      return no_element(f < nest.addresses
                            ? fmt::format("operands step by {} and {} within an element", covered,
                                          nest.forms[f].k[i])
                            : "a condition cuts through the scalars of an element");
  nest.fix(i, 0);
  return {};
}

}  // namespace

Status take_lanes(ConcreteNest& nest, int64_t lanes) {
  int64_t covered = 1;
  while (covered < lanes) {
    const int64_t before = nest.iterations();
    TW_TRY_STATUS(take_lane_loop(nest, covered, lanes));
    covered *= before / nest.iterations();
  }
  for (size_t a = 0; a < nest.addresses; ++a) {
    Form& f = nest.forms[a];
    bool aligned = f.c % lanes == 0;
    for (const int64_t k : f.k) aligned &= k % lanes == 0;
    if (!aligned)
      return no_element(
          fmt::format("an address is not a multiple of {} scalars (it starts at {})", lanes, f.c));
    f.c /= lanes;
    for (int64_t& k : f.k) k /= lanes;
  }
  return {};
}

bool injective(const ConcreteNest& nest, size_t which) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // size, span
  for (size_t i = 0; i < nest.size(); ++i)
    if (nest.extents[i] > 1)
      steps.emplace_back(std::abs(nest.forms[which].k[i]),
                         std::abs(nest.forms[which].k[i]) * (nest.extents[i] - 1));
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [step, span] : steps) {
    if (step <= reach) return false;
    reach += span;
  }
  return true;
}

ConcreteNest with_forms(const ConcreteNest& nest, const std::vector<size_t>& which) {
  ConcreteNest out;
  out.extents = nest.extents;
  for (const size_t f : which) out.forms.push_back(nest.forms[f]);
  out.addresses = which.size();
  return out;
}

}  // namespace tilewright::codegen::stream
