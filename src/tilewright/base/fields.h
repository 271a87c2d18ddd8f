// Field lists: a plain struct names its members once; text, parsing and equality derive from it.
//
//   struct Split { std::string loop; int64_t factor;
//                  static constexpr auto fields() {
//                    return std::tuple{field("loop", &Split::loop), field("factor",
//                    &Split::factor)}; } };
#pragma once

#include <string_view>
#include <tuple>

namespace tilewright {

template <class Struct, class Member>
struct Field {
  std::string_view name;
  Member Struct::* member;
};

template <class Struct, class Member>
constexpr Field<Struct, Member> field(std::string_view name, Member Struct::* member) {
  return {name, member};
}

/// Calls f(name, member reference) for each field of `object`, in order.
template <class Struct, class F>
constexpr void for_each_field(Struct& object, F&& f) {
  std::apply([&](const auto&... entry) { (f(entry.name, object.*entry.member), ...); },
             std::remove_const_t<Struct>::fields());
}

}  // namespace tilewright
