#include "tilewright/runtime/host_ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/base/json.h"
#include "tilewright/runtime/host_op.h"

namespace tilewright::runtime {
namespace {

struct HostOp {
  const char* name;
  HostResult (*run)(const HostAttrs&, const HostInputs&);
};
// Sorted by name.
constexpr HostOp kHostOps[] = {{"CheckRange", check_range},
                               {"Compress", compress},
                               {"Concat", concat},
                               {"Copy", copy},
                               {"Expand", expand},
                               {"Gather", gather},
                               {"NonMaxSuppression", non_max_suppression},
                               {"NonZero", non_zero},
                               {"PadToStatic", pad_to_static},
                               {"Range", range},
                               {"Reshape", reshape},
                               {"ScatterElements", scatter_elements},
                               {"ScatterND", scatter_nd},
                               {"Select", select},
                               {"Shape", shape_of},
                               {"Slice", slice},
                               {"TopK", top_k},
                               {"Unique", unique}};

}  // namespace

std::vector<std::string> host_op_names() {
  std::vector<std::string> names;
  for (const HostOp& row : kHostOps) names.push_back(row.name);
  return names;
}

HostResult run_host_op(const std::string& name, const std::string& attrs,
                       const std::vector<Array>& inputs) {
  for (const HostOp& row : kHostOps) {
    if (name != row.name) continue;
    HostAttrs parsed;
    Status status = parsed.parse(attrs);
    if (!status) return tl::unexpected<Error>(std::move(status.error()).at(name));
    HostResult result = row.run(parsed, HostInputs(inputs));
    if (!result) return tl::unexpected<Error>(std::move(result.error()).at(name));
    return result;
  }
  return fail(ErrorKind::Unsupported, fmt::format("there is no host function '{}'", name),
              fmt::format("known: {}", fmt::join(host_op_names(), ", ")));
}

struct HostAttrs::Impl {
  nlohmann::json json;

  const nlohmann::json* find(const char* key) const {
    const auto it = json.is_object() ? json.find(key) : json.end();
    return it == json.end() ? nullptr : &*it;
  }
};

HostAttrs::HostAttrs() : impl_(std::make_unique<Impl>()) {}
HostAttrs::~HostAttrs() = default;

Status HostAttrs::parse(const std::string& text) {
  if (text.empty()) return {};
  impl_->json = parse_json(text, std::nothrow);
  if (impl_->json.is_object()) return {};
  return fail(ErrorKind::Invalid, "the attributes are not the text of a JSON object", text);
}

Result<std::optional<int64_t>> HostAttrs::maybe_integer(const char* key) const {
  const nlohmann::json* value = impl_->find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_integer()) return value->get<int64_t>();
  return fail(ErrorKind::Invalid, fmt::format("attribute '{}' is not an integer", key));
}

Result<int64_t> HostAttrs::integer(const char* key, int64_t fallback) const {
  return TW_TRY(maybe_integer(key)).value_or(fallback);
}

Result<std::vector<int64_t>> HostAttrs::integers(const char* key) const {
  std::vector<int64_t> numbers;
  const nlohmann::json* value = impl_->find(key);
  if (value == nullptr) return numbers;
  bool fits = value->is_array();
  for (size_t i = 0; fits && i < value->size(); ++i)
    if ((fits = (*value)[i].is_number_integer())) numbers.push_back((*value)[i].get<int64_t>());
  if (fits) return numbers;
  return fail(ErrorKind::Invalid, fmt::format("attribute '{}' is no list of integers", key));
}

Result<std::string> HostAttrs::string(const char* key, const std::string& fallback) const {
  const nlohmann::json* value = impl_->find(key);
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  return fail(ErrorKind::Invalid, fmt::format("attribute '{}' is not a string", key));
}

Result<Array> HostInputs::get(size_t i) const {
  if (has(i)) return arrays_[i];
  return fail(ErrorKind::Invalid, fmt::format("input {} is missing", i));
}

Result<int64_t> HostInputs::integer(size_t i, int64_t fallback) const {
  if (!has(i)) return fallback;
  const Array& array = arrays_[i];
  if (array.size() == 1 && is_int(array.dtype())) return array.get_int(0);
  return fail(
      ErrorKind::Invalid, fmt::format("input {} is not one integer", i),
      fmt::format("it is {} {}", tilewright::name(array.dtype()), to_string(array.shape())));
}

Result<bool> HostInputs::truth(size_t i, bool fallback) const {
  if (!has(i)) return fallback;
  const Array& array = arrays_[i];
  if (array.size() == 1 && array.dtype() == DType::Bool) return array.get_int(0) != 0;
  return fail(
      ErrorKind::Invalid, fmt::format("input {} is not one bool", i),
      fmt::format("it is {} {}", tilewright::name(array.dtype()), to_string(array.shape())));
}

Result<double> HostInputs::real(size_t i, double fallback) const {
  if (!has(i)) return fallback;
  const Array& array = arrays_[i];
  if (array.size() == 1 && is_float(array.dtype())) return array.get(0);
  return fail(
      ErrorKind::Invalid, fmt::format("input {} is not one float", i),
      fmt::format("it is {} {}", tilewright::name(array.dtype()), to_string(array.shape())));
}

Result<size_t> resolve_axis(int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (axis >= -signed_rank && axis < signed_rank)
    return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
  return fail(ErrorKind::Invalid,
              fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
}

AxisView axis_view(const Shape& shape, size_t axis) {
  AxisView view;
  for (size_t i = 0; i < shape.size(); ++i)
    (i < axis ? view.outer : i == axis ? view.extent : view.inner) *= shape[i];
  return view;
}

}  // namespace tilewright::runtime
