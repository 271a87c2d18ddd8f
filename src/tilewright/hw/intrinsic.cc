#include "tilewright/hw/intrinsic.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tilewright/base/file.h"
#include "tilewright/base/scanner.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"
#include "tilewright/ir/walk.h"

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

/// The value that combining with leaves the other unchanged.
Expr neutral(Combine combine, DType dtype) {
  const bool real = is_float(dtype), sign = is_signed_int(dtype);
  const int bits = bit_width(dtype);
  const double inf = std::numeric_limits<double>::infinity();
  const int64_t low = sign ? std::numeric_limits<int64_t>::min() >> (64 - bits) : 0;
  const int64_t high = sign         ? std::numeric_limits<int64_t>::max() >> (64 - bits)
                       : bits == 64 ? -1
                                    : (int64_t{1} << bits) - 1;
  switch (combine) {
    case Combine::Mul:
      return const_of(dtype, 1);
    case Combine::Max:
      return real ? float_imm(-inf, dtype) : int_imm(low, dtype);
    case Combine::Min:
      return real ? float_imm(inf, dtype) : int_imm(high, dtype);
    default:
      return const_of(dtype, 0);
  }
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

Result<std::vector<Intrinsic>> load_intrinsics(const std::string& path) {
  return parse_intrinsics(TW_TRY(read_file(path)), path);
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

Result<Func> reset_of(const Intrinsic& intrinsic) {
  const Func& f = intrinsic.meaning;
  const auto cannot = [&](std::string why) {
    return fail(ErrorKind::Unsupported, fmt::format("{} has no reset", f.name), std::move(why));
  };
  std::vector<For> loops;
  Stmt s = f.body;
  for (const For* loop = s.as<For>(); loop != nullptr; loop = s.as<For>()) {
    loops.push_back(*loop);
    s = loop->body;
  }
  const Block* block = s.as<Block>();
  const Store* store = block ? block->body.as<Store>() : nullptr;
  if (store == nullptr) return cannot("it is not a single nest around one store");
  if (store->combine == Combine::Set) return cannot("it does not combine");
  Block out{block->name + ".reset", {}, Expr(), {}, Stmt()};
  std::vector<Var> used;
  for (const Iter& iter : block->iters) {
    if (iter.kind == IterKind::Reduce) continue;
    out.iters.push_back(iter);
    for (const Var& v : free_vars(iter.binding)) used.push_back(v);
  }
  out.body = make(Store{store->buffer, store->indices,
                        neutral(store->combine, store->buffer.dtype()), Combine::Set});
  Func reset;
  reset.name = f.name + ".reset";
  reset.scalars = f.scalars;
  reset.params = {{store->buffer, ParamMode::Out, {}, {}}};
  reset.math = f.math;
  reset.body = make(std::move(out));
  for (size_t i = loops.size(); i-- > 0;) {
    if (std::find(used.begin(), used.end(), loops[i].var) == used.end()) continue;
    loops[i].body = reset.body;
    reset.body = make(loops[i]);
  }
  TW_TRY_STATUS(verify(reset, Stage::Scheduled));
  return reset;
}

std::string vta_gemm(int batch, int block_in, int block_out, const VtaTypes& types) {
  const std::string_view acc = name(types.acc);
  return fmt::format(
      R"(//@ layout.acc = vta.acc
//@ layout.inp = vta.inp
//@ layout.wgt = vta.wgt
//@ compute.opcode = 2
//@ compute.reset = 0
//@ compute.unit = gemm
//@ reset.opcode = 2
//@ reset.reset = 1
//@ reset.unit = gemm
func vta.gemm(inout acc: {acc}[{b},{o}], inp: {inp}[{b},{i}], wgt: {wgt}[{o},{i}]) {{
  for b in {b}, o in {o}, i in {i} {{
    block gemm(b: space {b} = b, o: space {o} = o, i: reduce {i} = i) {{
      acc[b, o] += {acc}(inp[b, i]) * {acc}(wgt[o, i])
    }}
  }}
}}
)",
      fmt::arg("acc", acc), fmt::arg("inp", name(types.inp)), fmt::arg("wgt", name(types.wgt)),
      fmt::arg("b", batch), fmt::arg("i", block_in), fmt::arg("o", block_out));
}

}  // namespace tilewright::hw
