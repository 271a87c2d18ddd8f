// TopK and Unique: operators that sort.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "tilewright/runtime/host_op.h"

namespace tilewright::runtime {
namespace {

/// Copies the elements of `from` at flat positions to consecutive ones of `to`.
class ElementCopy {
 public:
  ElementCopy(Array& to, const Array& from)
      : to_(static_cast<char*>(to.data())),
        from_(static_cast<const char*>(from.data())),
        bytes_(static_cast<size_t>(storage_bytes(from.dtype(), 1))) {}
  void copy(int64_t to, int64_t from) {
    std::memcpy(to_ + static_cast<size_t>(to) * bytes_, from_ + static_cast<size_t>(from) * bytes_,
                bytes_);
  }

 private:
  char* to_;
  const char* from_;
  size_t bytes_;
};

/// The k first positions of one row by (value, position), in order. `best`: a heap whose front is
/// the last of those that were found so far, so most elements cost one comparison.
template <class Key>
void select(std::span<const Key> keys, int64_t base, const AxisView& view, bool largest,
            std::vector<std::pair<Key, int64_t>>& best) {
  const auto above = [&](Key x, Key y) { return largest ? key_less(y, x) : key_less(x, y); };
  const auto before = [&](const auto& x, const auto& y) {
    return above(x.first, y.first) || (!above(y.first, x.first) && x.second < y.second);
  };
  const auto k = static_cast<int64_t>(best.size());
  if (k == 0) return;
  for (int64_t i = 0; i < view.extent; ++i) {
    const Key key = keys[static_cast<size_t>(base + i * view.inner)];
    if (i < k) best[static_cast<size_t>(i)] = {key, i};
    if (i == k - 1) std::make_heap(best.begin(), best.end(), before);
    if (i < k || !above(key, best.front().first)) continue;
    std::pop_heap(best.begin(), best.end(), before);
    best.back() = {key, i};
    std::push_heap(best.begin(), best.end(), before);
  }
  std::sort_heap(best.begin(), best.end(), before);
}

/// Slices of `array` along one axis (single elements if it was flattened) as a sortable list.
template <class Key>
struct Slices {
  std::span<const Key> keys;
  AxisView view;

  /// Negative, zero or positive like the order of slices a and b.
  int compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t n = 0; n < view.inner; ++n) {
        const Key x = keys[static_cast<size_t>((o * view.extent + a) * view.inner + n)];
        const Key y = keys[static_cast<size_t>((o * view.extent + b) * view.inner + n)];
        if (key_less(x, y)) return -1;
        if (key_less(y, x)) return 1;
      }
    return 0;
  }
};

/// Equal slices, numbered in the order of the result.
struct Groups {
  std::vector<int64_t> first, count;  // by group
  std::vector<int64_t> of;            // by slice
};

template <class Key>
Groups group(const Slices<Key>& slices, bool sorted) {
  const auto extent = static_cast<size_t>(slices.view.extent);
  std::vector<int64_t> order(extent);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int way = slices.compare(a, b);
    return way != 0 ? way < 0 : a < b;
  });
  std::vector<std::vector<int64_t>> classes;
  for (int64_t slice : order) {
    if (classes.empty() || slices.compare(classes.back().front(), slice) != 0)
      classes.emplace_back();
    classes.back().push_back(slice);
  }
  if (!sorted)
    std::sort(classes.begin(), classes.end(),
              [](const auto& a, const auto& b) { return a.front() < b.front(); });
  Groups groups;
  groups.of.resize(extent);
  for (const auto& members : classes) {
    for (int64_t slice : members)
      groups.of[static_cast<size_t>(slice)] = static_cast<int64_t>(groups.first.size());
    groups.first.push_back(members.front());
    groups.count.push_back(static_cast<int64_t>(members.size()));
  }
  return groups;
}

Array int_vector(const std::vector<int64_t>& values) {
  Array array(DType::I64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.as<int64_t>().begin());
  return array;
}

}  // namespace

HostResult top_k(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array x = TW_TRY(inputs.get(0));
  const int64_t k = TW_TRY(inputs.integer(1, TW_TRY(attrs.integer("k", -1))));
  const size_t axis = TW_TRY(resolve_axis(TW_TRY(attrs.integer("axis", -1)), x.shape().size()));
  const bool largest = TW_TRY(attrs.integer("largest", 1)) != 0;
  const AxisView view = axis_view(x.shape(), axis);
  if (k < 0 || k > view.extent)
    return fail(ErrorKind::Usage, fmt::format("k = {} is outside 0 to {}", k, view.extent),
                fmt::format("axis {} of {}", axis, to_string(x.shape())));
  Shape shape = x.shape();
  shape[axis] = k;
  Array values(x.dtype(), shape), indices(DType::I64, shape);
  ElementCopy copy(values, x);
  with_keys(x, [&](const auto& keys) {
    using Key = typename std::decay_t<decltype(keys)>::value_type;
    std::vector<std::pair<Key, int64_t>> best(static_cast<size_t>(k));
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t n = 0; n < view.inner; ++n) {
        const int64_t base = o * view.extent * view.inner + n;
        select(keys, base, view, largest, best);
        for (int64_t i = 0; i < k; ++i) {
          const int64_t to = (o * k + i) * view.inner + n, at = best[static_cast<size_t>(i)].second;
          copy.copy(to, base + at * view.inner);
          indices.as<int64_t>()[static_cast<size_t>(to)] = at;
        }
      }
  });
  return std::vector<Array>{values, indices};
}

HostResult unique(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array x = TW_TRY(inputs.get(0));
  const std::optional<int64_t> wanted_axis = TW_TRY(attrs.maybe_integer("axis"));
  const bool sorted = TW_TRY(attrs.integer("sorted", 1)) != 0;
  const Array source = wanted_axis ? x : x.reshaped({x.size()});
  const size_t axis = TW_TRY(resolve_axis(wanted_axis.value_or(0), source.shape().size()));
  const AxisView view = axis_view(source.shape(), axis);
  const Groups groups = with_keys(source, [&](const auto& keys) {
    using Key = typename std::decay_t<decltype(keys)>::value_type;
    return group(Slices<Key>{keys, view}, sorted);
  });
  Shape shape = source.shape();
  shape[axis] = static_cast<int64_t>(groups.first.size());
  Array values(x.dtype(), shape);
  ElementCopy copy(values, source);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t g = 0; g < shape[axis]; ++g)
      for (int64_t n = 0; n < view.inner; ++n)
        copy.copy((o * shape[axis] + g) * view.inner + n,
                  (o * view.extent + groups.first[static_cast<size_t>(g)]) * view.inner + n);
  return std::vector<Array>{values, int_vector(groups.first), int_vector(groups.of),
                            int_vector(groups.count)};
}

}  // namespace tilewright::runtime
