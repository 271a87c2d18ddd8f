#include "tilewright/codesign/association.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace tilewright::codesign {
namespace {

using cost::SpatialDim;
using cost::SpatialLoop;
using cost::SpatialTensor;

using Mask = uint32_t;

/// A factor or the product of several.
struct Factor {
  std::string text;
  SpatialTensor tensor;  ///< its loops are those of the whole product
  DType dtype = DType::I32;
  int source = -1;
};

Mask loops_of(const SpatialTensor& tensor) {
  Mask mask = 0;
  for (const SpatialDim& dim : tensor.dims)
    for (const cost::SpatialTerm& term : dim.terms) mask |= Mask{1} << term.loop;
  return mask;
}

/// One way to put brackets around the factors of a set: the two parts of each bracket, inner first.
using Brackets = std::vector<std::pair<Mask, Mask>>;

std::vector<Brackets> brackets_of(Mask factors) {
  if ((factors & (factors - 1)) == 0) return {{}};
  const Mask lowest = factors & (~factors + 1);
  std::vector<Brackets> all;
  // The part with the lowest factor is the first, so that no pair comes twice.
  for (Mask part = (factors - 1) & factors; part != 0; part = (part - 1) & factors) {
    if ((part & lowest) == 0) continue;
    for (const Brackets& left : brackets_of(part))
      for (const Brackets& right : brackets_of(factors & ~part)) {
        Brackets one = left;
        one.insert(one.end(), right.begin(), right.end());
        one.emplace_back(part, factors & ~part);
        all.push_back(std::move(one));
      }
  }
  return all;
}

class OrderMaker {
 public:
  explicit OrderMaker(const cost::Computation& product) : product_(product) {
    for (size_t f = 0; f < product.factors.size(); ++f)
      nodes_[Mask{1} << f] = {product.factors[f].name, product.factors[f], product.dtypes[f],
                              product.sources.empty() ? -1 : product.sources[f]};
  }

  AssociationOrder make(const Brackets& brackets) {
    AssociationOrder order;
    const Mask all = (Mask{1} << product_.factors.size()) - 1;
    for (const auto& [left, right] : brackets) {
      const bool last = (left | right) == all;
      const Factor &a = nodes_.at(left), &b = nodes_.at(right);
      Factor made;
      made.text = fmt::format("{} * {}", in_brackets(left), in_brackets(right));
      made.tensor = last ? product_.result : between(left | right, order.stages.size() + 1);
      made.dtype = product_.dtypes.back();
      made.source = static_cast<int>(order.stages.size());
      order.stages.push_back(stage(a, b, made));
      order.macs += order.stages.back().macs();
      if (!last) order.intermediate_bytes += elements(made.tensor);
      order.text = made.text;
      nodes_[left | right] = std::move(made);
    }
    return order;
  }

 private:
  std::string in_brackets(Mask set) const {
    const std::string& text = nodes_.at(set).text;
    return (set & (set - 1)) == 0 ? text : "(" + text + ")";
  }

  static int64_t elements(const SpatialTensor& tensor) {
    int64_t count = 1;
    for (const SpatialDim& dim : tensor.dims) count *= dim.extent;
    return count;
  }

  /// Loops that the result or a factor outside of `set` needs stay.
  SpatialTensor between(Mask set, size_t number) const {
    Mask needed = loops_of(product_.result), inside = 0;
    for (size_t f = 0; f < product_.factors.size(); ++f)
      (set >> f & 1 ? inside : needed) |= loops_of(product_.factors[f]);
    SpatialTensor tensor;
    tensor.name = fmt::format("{}.{}", product_.name, number);
    for (int loop = 0; loop < static_cast<int>(product_.loops.size()); ++loop)
      if ((inside & needed) >> loop & 1)
        tensor.dims.push_back({{{loop, 1}}, product_.loops[static_cast<size_t>(loop)].extent, 0});
    return tensor;
  }

  /// The two factors with the loops that they need.
  cost::Computation stage(const Factor& a, const Factor& b, const Factor& made) const {
    cost::Computation c;
    c.name = made.tensor.name;
    const Mask result = loops_of(made.tensor);
    const Mask used = loops_of(a.tensor) | loops_of(b.tensor) | result;
    std::map<int, int> places;
    for (const bool reduces : {false, true})
      for (int loop = 0; loop < static_cast<int>(product_.loops.size()); ++loop) {
        if (!(used >> loop & 1) || ((result >> loop & 1) == 0) != reduces) continue;
        places[loop] = static_cast<int>(c.loops.size());
        const SpatialLoop& one = product_.loops[static_cast<size_t>(loop)];
        c.loops.push_back({one.name, one.extent, reduces});
      }
    const auto moved = [&](SpatialTensor tensor) {
      for (SpatialDim& dim : tensor.dims)
        for (cost::SpatialTerm& term : dim.terms) term.loop = places.at(term.loop);
      return tensor;
    };
    c.factors = {moved(a.tensor), moved(b.tensor)};
    c.result = moved(made.tensor);
    c.dtypes = {a.dtype, b.dtype, made.dtype};
    c.sources = {a.source, b.source};
    return c;
  }

  const cost::Computation& product_;
  std::map<Mask, Factor> nodes_;
};

/// Each index is a loop of its own, from its first to its last iteration.
bool plain(const SpatialTensor& tensor, const std::vector<SpatialLoop>& loops) {
  std::set<int> seen;
  for (const SpatialDim& dim : tensor.dims) {
    if (dim.terms.size() != 1 || dim.terms[0].stride != 1 || dim.begin != 0) return false;
    const int loop = dim.terms[0].loop;
    if (!seen.insert(loop).second || loops[static_cast<size_t>(loop)].extent != dim.extent)
      return false;
  }
  return true;
}

/// `outer` with `inner`, whose result is factor `place`, put in; nothing: indices do not fit.
std::optional<cost::Computation> put_in(const cost::Computation& outer, size_t place,
                                        const cost::Computation& inner) {
  const SpatialTensor& read = outer.factors[place];
  if (!plain(read, outer.loops) || !plain(inner.result, inner.loops)) return std::nullopt;
  if (read.dims.size() != inner.result.dims.size()) return std::nullopt;
  cost::Computation c = outer;
  std::map<int, int> places;  // of the inner loops
  std::set<std::string> names;
  for (const SpatialLoop& loop : c.loops) names.insert(loop.name);
  for (size_t i = 0; i < read.dims.size(); ++i)
    places[inner.result.dims[i].terms[0].loop] = read.dims[i].terms[0].loop;
  for (int loop = 0; loop < static_cast<int>(inner.loops.size()); ++loop) {
    if (places.contains(loop)) continue;
    SpatialLoop one = inner.loops[static_cast<size_t>(loop)];
    one.reduces = true;
    while (!names.insert(one.name).second) one.name += one.name.back();
    places[loop] = static_cast<int>(c.loops.size());
    c.loops.push_back(one);
  }
  const auto at = static_cast<std::ptrdiff_t>(place);
  c.factors.erase(c.factors.begin() + at);
  c.dtypes.erase(c.dtypes.begin() + at);
  c.sources.erase(c.sources.begin() + at);
  for (size_t f = 0; f < inner.factors.size(); ++f) {
    const auto here = at + static_cast<std::ptrdiff_t>(f);
    SpatialTensor factor = inner.factors[f];
    for (SpatialDim& dim : factor.dims)
      for (cost::SpatialTerm& term : dim.terms) term.loop = places.at(term.loop);
    c.factors.insert(c.factors.begin() + here, std::move(factor));
    c.dtypes.insert(c.dtypes.begin() + here, inner.dtypes[f]);
    c.sources.insert(c.sources.begin() + here, inner.sources[f]);
  }
  return c;
}

/// The chain that ends in sum `last`.
Chain chain_of(const cost::Computations& all, size_t last, const std::vector<int>& readers) {
  Chain chain{all.sums[last], {last}, {}};
  for (size_t f = 0; f < chain.product.factors.size();) {
    const int source = chain.product.sources[f];
    const bool only = source >= 0 && readers[static_cast<size_t>(source)] == 1;
    std::optional<cost::Computation> merged;
    if (only) merged = put_in(chain.product, f, all.sums[static_cast<size_t>(source)]);
    if (!merged || merged->factors.size() > kMostFactors) {
      ++f;
      continue;
    }
    chain.product = std::move(*merged);
    chain.sums.insert(chain.sums.begin(), static_cast<size_t>(source));
  }
  return chain;
}

/// Which sum makes which factor, by name.
void relink(std::vector<cost::Computation>& sums) {
  std::map<std::string, int> made;
  for (size_t i = 0; i < sums.size(); ++i) {
    for (size_t f = 0; f < sums[i].factors.size(); ++f) {
      const auto found = made.find(sums[i].factors[f].name);
      sums[i].sources[f] = found == made.end() ? -1 : found->second;
    }
    made[sums[i].name] = static_cast<int>(i);
  }
}

}  // namespace

std::vector<AssociationOrder> association_orders(const cost::Computation& product) {
  std::vector<AssociationOrder> orders;
  for (const Brackets& brackets : brackets_of((Mask{1} << product.factors.size()) - 1))
    orders.push_back(OrderMaker(product).make(brackets));
  for (AssociationOrder& order : orders) relink(order.stages);
  std::stable_sort(orders.begin(), orders.end(), [](const auto& a, const auto& b) {
    return std::tie(a.macs, a.intermediate_bytes, a.text) <
           std::tie(b.macs, b.intermediate_bytes, b.text);
  });
  return orders;
}

std::vector<Chain> chains_of(const cost::Computations& all) {
  std::vector<int> readers(all.sums.size());
  for (const cost::Computation& sum : all.sums)
    for (const int source : sum.sources)
      if (source >= 0) ++readers[static_cast<size_t>(source)];
  std::vector<Chain> chains;
  std::set<size_t> taken;
  for (size_t i = all.sums.size(); i-- > 0;) {
    if (taken.contains(i)) continue;
    Chain chain = chain_of(all, i, readers);
    const size_t factors = chain.product.factors.size();
    if (factors < 3 || factors > kMostFactors) continue;
    taken.insert(chain.sums.begin(), chain.sums.end());
    chain.orders = association_orders(chain.product);
    chains.insert(chains.begin(), std::move(chain));
  }
  return chains;
}

Result<cost::Computations> with_order(const cost::Computations& all, int order) {
  const std::vector<Chain> chains = chains_of(all);
  if (order > 0 && chains.empty())
    return fail(ErrorKind::Usage, "there is no product of three or more factors",
                "--order says in which order such a product is contracted");
  std::map<size_t, std::vector<cost::Computation>> replaced;  // by the place of a sum
  for (const Chain& chain : chains) {
    if (order > static_cast<int>(chain.orders.size()))
      return fail(ErrorKind::Usage, fmt::format("there is no order {}", order),
                  fmt::format("{} has {} of them", chain.product.name, chain.orders.size()),
                  "tilewright codesign choices");
    const bool pairs = std::all_of(chain.sums.begin(), chain.sums.end(),
                                   [&](size_t i) { return all.sums[i].factors.size() == 2; });
    if (order == 0 && pairs) continue;
    for (const size_t i : chain.sums) replaced[i] = {};
    replaced[chain.sums.back()] = chain.orders[static_cast<size_t>(std::max(order, 1)) - 1].stages;
  }
  cost::Computations out;
  out.others = all.others;
  for (size_t i = 0; i < all.sums.size(); ++i) {
    const auto found = replaced.find(i);
    if (found == replaced.end()) {
      out.sums.push_back(all.sums[i]);
    } else {
      out.sums.insert(out.sums.end(), found->second.begin(), found->second.end());
    }
  }
  relink(out.sums);
  return out;
}

}  // namespace tilewright::codesign
