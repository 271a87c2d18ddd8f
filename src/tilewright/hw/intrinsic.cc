#include "tilewright/hw/intrinsic.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/scanner.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"

namespace tilewright::hw {
namespace {

constexpr std::string_view kMark = "//@";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

struct Field {
  std::string section, key, value, place;
  size_t offset;  ///< where its line starts
};

tl::unexpected<Error> bad(const Field& field, std::string what, std::string fix = {}) {
  return tl::unexpected<Error>(
      Error{ErrorKind::Invalid, std::move(what), field.place, {}, std::move(fix), {}});
}

/// `//@ section.key = value`
Result<Field> parse_field(std::string_view line, const std::string& place, size_t offset) {
  const std::string_view body = trimmed(trimmed(line).substr(kMark.size()));
  const size_t dot = body.find('.'), equals = body.find('=');
  Field field{"", "", "", place, offset};
  if (dot != std::string_view::npos && equals != std::string_view::npos && dot < equals) {
    field.section = trimmed(body.substr(0, dot));
    field.key = trimmed(body.substr(dot + 1, equals - dot - 1));
    field.value = trimmed(body.substr(equals + 1));
  }
  if (field.section.empty() || field.key.empty() || field.value.empty())
    return bad(field, fmt::format("a field that says nothing: `{}`", body),
               "write it as `//@ section.key = value`");
  return field;
}

Result<std::vector<Field>> parse_fields(std::string_view text, const std::string& place) {
  std::vector<Field> fields;
  size_t line_number = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    ++line_number;
    if (trimmed(line).substr(0, kMark.size()) == kMark)
      fields.push_back(TW_TRY(parse_field(line, fmt::format("{}:{}", place, line_number), start)));
    start = end + 1;
  }
  return fields;
}

/// Number of functions that start in `text`, which parses.
size_t functions_in(std::string_view text) {
  size_t count = 0;
  for (Scanner in(text); !in.at_end(); in.next()) count += in.at_word("func");
  return count;
}

Status add_field(Intrinsic& in, const Field& field) {
  const std::map<std::string_view, Intrinsic::Fields*> sections = {{"layout", &in.layout},
                                                                   {"compute", &in.compute},
                                                                   {"reset", &in.reset},
                                                                   {"update", &in.update}};
  const auto section = sections.find(field.section);
  if (section == sections.end())
    return bad(field, fmt::format("no section is named {}", field.section),
               "sections: layout, compute, reset, update");
  const auto& params = in.meaning.params;
  if (field.section == "layout" && std::none_of(params.begin(), params.end(), [&](const Param& p) {
        return p.buffer.name() == field.key;
      }))
    return bad(field, fmt::format("{} has no parameter {}", in.name(), field.key));
  if (!section->second->emplace(field.key, field.value).second)
    return bad(field, fmt::format("{}.{} of {} stands twice", field.section, field.key, in.name()));
  return {};
}

}  // namespace

Result<std::vector<Intrinsic>> parse_intrinsics(std::string_view text, const std::string& place) {
  Result<std::vector<Func>> funcs = parse_funcs(text);
  if (!funcs) return tl::unexpected<Error>(std::move(funcs).error().at(place));
  std::vector<Intrinsic> out;
  for (Func& f : *funcs) {
    Status valid = verify(f, Stage::Scheduled);
    if (!valid) return tl::unexpected<Error>(std::move(valid).error().at(place));
    Intrinsic in;
    in.meaning = std::move(f);
    out.push_back(std::move(in));
  }
  for (const Field& field : TW_TRY(parse_fields(text, place))) {
    const size_t index = functions_in(text.substr(0, field.offset));
    if (index >= out.size()) return bad(field, "a field behind the last function");
    TW_TRY_STATUS(add_field(out[index], field));
  }
  return out;
}

std::string print(const Intrinsic& intrinsic) {
  std::string out;
  auto section = [&](std::string_view name, const Intrinsic::Fields& fields) {
    for (const auto& [key, value] : fields)
      out += fmt::format("{} {}.{} = {}\n", kMark, name, key, value);
  };
  section("layout", intrinsic.layout);
  section("compute", intrinsic.compute);
  section("reset", intrinsic.reset);
  section("update", intrinsic.update);
  return out + tilewright::print(intrinsic.meaning);
}

Result<Intrinsic> vta_gemm(int batch, int block_in, int block_out, const VtaBits& bits) {
  const std::string text = fmt::format(
      R"(//@ layout.C = vta.acc
//@ layout.X = vta.inp
//@ layout.W = vta.wgt
//@ compute.opcode = 2
//@ compute.reset = 0
//@ compute.unit = gemm
//@ reset.opcode = 2
//@ reset.reset = 1
//@ reset.unit = gemm
func vta.gemm(inout C: i{acc}[{b},{o}], X: i{inp}[{b},{i}], W: i{wgt}[{o},{i}]) {{
  for g.b in {b}, g.o in {o}, g.i in {i} {{
    block g(b: space {b} = g.b, o: space {o} = g.o, i: reduce {i} = g.i) {{
      C[b, o] += i{acc}(X[b, i]) * i{acc}(W[o, i])
    }}
  }}
}}
)",
      fmt::arg("acc", bits.acc), fmt::arg("inp", bits.inp), fmt::arg("wgt", bits.wgt),
      fmt::arg("b", batch), fmt::arg("i", block_in), fmt::arg("o", block_out));
  return std::move(TW_TRY(parse_intrinsics(text, "vta.gemm")).front());
}

}  // namespace tilewright::hw
