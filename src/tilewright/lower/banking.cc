// Reads the mark `partition`: `c16_b2_f` says for each axis how its elements lie in banks.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tilewright/lower/processes.h"

namespace tilewright::lower {
namespace {

/// Tools of vendors stop here.
constexpr int64_t kMostBanks = 4096;

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find('_', from), text.size());
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

tl::unexpected<Error> no_banking(int requirement, const Buffer& buffer, std::string why) {
  Error e{ErrorKind::Invalid,
          fmt::format("requirement {} does not hold", requirement),
          {},
          std::move(why),
          {},
          {}};
  e.place = fmt::format("partition of {}", buffer.name());
  return tl::unexpected<Error>(std::move(e));
}

Result<Banking> part_of(std::string_view part, const Buffer& buffer, size_t axis) {
  const auto extent = as_int(buffer.shape()[axis]);
  if (part == "f") {
    if (!extent || *extent < 1)
      return no_banking(
          3, buffer, fmt::format("`f` needs an axis of constant extent, axis {} has none", axis));
    return Banking{Banking::Kind::Complete, *extent};
  }
  const auto kind = part.starts_with('c')   ? std::optional(Banking::Kind::Cyclic)
                    : part.starts_with('b') ? std::optional(Banking::Kind::Block)
                                            : std::nullopt;
  int64_t banks = 0;
  const auto [end, error] =
      std::from_chars(part.data() + (part.empty() ? 0 : 1), part.data() + part.size(), banks);
  if (!kind || error != std::errc() || end != part.data() + part.size())
    return no_banking(2, buffer,
                      fmt::format("`{}` is no part of a partition: cN is N banks, cyclic; bN is N "
                                  "blocks; f gives each element its own",
                                  part));
  if (banks < 1 || (extent && banks > *extent))
    return no_banking(3, buffer,
                      fmt::format("`{}` makes {} banks of axis {}, which has {} elements", part,
                                  banks, axis, extent ? fmt::to_string(*extent) : "any number of"));
  return Banking{*kind, banks};
}

}  // namespace

Result<std::vector<Banking>> banking_of(const Alloc& alloc) {
  const Buffer& buffer = alloc.buffer;
  const Mark* mark = find_mark(alloc.marks, MarkKind::Partition);
  std::vector<Banking> all(buffer.rank());
  if (mark == nullptr) return all;
  const auto* text = std::get_if<std::string>(&mark->value);
  if (text == nullptr)
    return no_banking(2, buffer, "its value is a number; it is a part for each axis, as c4_b2_f");
  const std::vector<std::string_view> parts = parts_of(*text);
  if (parts.size() != buffer.rank())
    return no_banking(
        2, buffer, fmt::format("{} parts for {} axes in `{}`", parts.size(), buffer.rank(), *text));
  int64_t banks = 1;
  for (size_t axis = 0; axis < parts.size(); ++axis) {
    all[axis] = TW_TRY(part_of(parts[axis], buffer, axis));
    if (all[axis].banks > kMostBanks / banks)
      return no_banking(4, buffer, fmt::format("`{}` makes more than {} banks", *text, kMostBanks));
    banks *= all[axis].banks;
  }
  return all;
}

}  // namespace tilewright::lower
