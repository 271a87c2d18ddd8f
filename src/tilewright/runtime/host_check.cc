// CheckRange: what comes at run time and decides where memory is read or written is looked at
// first.
#include <fmt/format.h>

#include "tilewright/runtime/host_op.h"

namespace tilewright::runtime {
namespace {

/// Position of the first element outside [least[i % n], most[i % n]], n of each; -1 if there is
/// none.
template <class T>
int64_t first_outside(const Array& x, const std::vector<int64_t>& least,
                      const std::vector<int64_t>& most) {
  const std::span<const T> values = x.as<T>();
  const size_t period = least.size();
  for (size_t start = 0; start < values.size(); start += period)
    for (size_t i = 0; i < period; ++i) {
      const T value = values[start + i];
      const bool beyond = std::is_same_v<T, uint64_t> && static_cast<uint64_t>(value) > INT64_MAX;
      if (beyond || static_cast<int64_t>(value) < least[i] || static_cast<int64_t>(value) > most[i])
        return static_cast<int64_t>(start + i);
    }
  return -1;
}

/// errors: Invalid, for elements that are no integers.
Result<int64_t> find_outside(const Array& x, const std::vector<int64_t>& least,
                             const std::vector<int64_t>& most) {
  switch (x.dtype()) {
    case DType::I8:
      return first_outside<int8_t>(x, least, most);
    case DType::I16:
      return first_outside<int16_t>(x, least, most);
    case DType::I32:
      return first_outside<int32_t>(x, least, most);
    case DType::I64:
      return first_outside<int64_t>(x, least, most);
    case DType::U8:
      return first_outside<uint8_t>(x, least, most);
    case DType::U16:
      return first_outside<uint16_t>(x, least, most);
    case DType::U32:
      return first_outside<uint32_t>(x, least, most);
    case DType::U64:
      return first_outside<uint64_t>(x, least, most);
    default:
      return fail(ErrorKind::Invalid, fmt::format("the values are {}", name(x.dtype())));
  }
}

}  // namespace

HostResult check_range(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array x = TW_TRY(inputs.get(0));
  const std::vector<int64_t> least = TW_TRY(attrs.integers("least"));
  const std::vector<int64_t> most = TW_TRY(attrs.integers("most"));
  if (least.empty() || least.size() != most.size() ||
      x.size() % static_cast<int64_t>(least.size()) != 0)
    return fail(ErrorKind::Invalid, "the limits do not fit the values",
                fmt::format("{} and {} limits for {} values", least.size(), most.size(), x.size()));
  if (!TW_TRY(inputs.truth(1, true))) return std::vector<Array>{x};
  const int64_t at = TW_TRY(find_outside(x, least, most));
  if (at < 0) return std::vector<Array>{x};
  const size_t i = static_cast<size_t>(at) % least.size();
  const std::string value = x.dtype() == DType::U64
                                ? std::to_string(static_cast<uint64_t>(x.get_int(at)))
                                : std::to_string(x.get_int(at));
  return fail(ErrorKind::Usage,
              fmt::format("{} {} of {} is out of range", TW_TRY(attrs.string("what", "value")),
                          value, TW_TRY(attrs.string("of", "an input"))),
              fmt::format("element {} of {} must be in {} to {}", at, to_string(x.shape()),
                          least[i], most[i]));
}

}  // namespace tilewright::runtime
