#include "tilewright/hw/cpu_intrinsics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cpu_intrinsics_text.h"
#include "tilewright/base/check.h"
#include "tilewright/base/names.h"

namespace tilewright::hw {
namespace {

int64_t elements(const Buffer& buffer) {
  int64_t count = 1;
  for (const Expr& extent : buffer.shape()) count *= as_int(extent).value_or(0);
  return count;
}

/// The meaning as a dot product of this kind; `lanes` is 0 for others.
Dot dot_of(const Intrinsic& in, DotKind kind) {
  Dot dot;
  const auto& params = in.meaning.params;
  const size_t rank = kind == DotKind::Repeated ? 1 : 2, sums = kind == DotKind::Tile ? 2 : 1;
  if (params.size() != 3 || params[0].buffer.rank() != sums || params[1].buffer.rank() != rank ||
      params[2].buffer.rank() != 2)
    return dot;
  dot.intrinsic = &in;
  dot.acc = params[0].buffer.dtype();
  dot.a = params[1].buffer.dtype();
  dot.b = params[2].buffer.dtype();
  dot.rows = sums == 1 ? 1 : as_int(params[0].buffer.shape()[0]).value_or(0);
  dot.lanes = as_int(params[0].buffer.shape().back()).value_or(0);
  dot.depth = as_int(params[2].buffer.shape()[1]).value_or(0);
  return dot;
}

}  // namespace

Result<RegisterType> parse_register_type(std::string_view text) {
  RegisterType out;
  const char* const end = text.data() + text.size();
  if (!text.empty() && text[0] == 'v') {
    const auto [rest, error] = std::from_chars(text.data() + 1, end, out.lanes);
    if (error == std::errc() && out.lanes > 0 && out.lanes <= 1024) {
      const std::string_view element(rest, static_cast<size_t>(end - rest));
      for (const DType dtype : kAllDTypes)
        if (name(dtype) == element) {
          out.dtype = dtype;
          return out;
        }
    }
  }
  return fail(ErrorKind::Parse, fmt::format("'{}' is no vector register", text),
              "write lanes and type: v16i32");
}

Result<CpuCall> cpu_call(const Intrinsic& intrinsic) {
  const auto bad = [&](const std::string& why) {
    return fail(ErrorKind::Invalid, fmt::format("{} cannot be called", intrinsic.name()), why);
  };
  CpuCall out;
  out.call = intrinsic.computed("call");
  if (out.call.empty()) return bad("it has no field compute.call");
  const auto& params = intrinsic.meaning.params;
  for (const std::string& word : split_words(intrinsic.computed("operands"))) {
    const auto param = std::find_if(params.begin(), params.end(),
                                    [&](const Param& p) { return p.buffer.name() == word; });
    if (param == params.end()) return bad(fmt::format("it has no parameter {}", word));
    const auto layout = intrinsic.layout.find(word);
    if (layout == intrinsic.layout.end()) return bad(fmt::format("{} has no layout", word));
    const RegisterType type = TW_TRY(parse_register_type(layout->second));
    const int64_t bits = elements(param->buffer) * bit_width(param->buffer.dtype());
    if (bits == 0 || type.bits() % bits != 0)
      return bad(fmt::format("{} has {} bits, its register {}", word, bits, type.bits()));
    const bool turned = word == intrinsic.computed("turned");
    if (turned && (param->buffer.rank() != 2 || type.bits() != bits))
      return bad(fmt::format("{} is no matrix that fills its register", word));
    out.operands.push_back({static_cast<size_t>(param - params.begin()), type, turned});
  }
  if (out.operands.size() != params.size()) return bad("compute.operands leaves some out");
  const Param& result = params[out.operands[0].param];
  if (result.mode != ParamMode::InOut || elements(result.buffer) != out.operands[0].type.lanes ||
      result.buffer.dtype() != out.operands[0].type.dtype)
    return bad("the first operand is not the whole result");
  return out;
}

const std::vector<Intrinsic>& cpu_intrinsics() {
  static const std::vector<Intrinsic> all = [] {
    std::vector<Intrinsic> out;
    for (const auto& [text, place] : {std::pair{kX86Intrinsics, "hw/intrinsics/x86.tw"},
                                      std::pair{kAarch64Intrinsics, "hw/intrinsics/aarch64.tw"}}) {
      auto parsed = parse_intrinsics(text, place);
      TW_CHECK(parsed.has_value(), "{}", parsed ? "" : to_string(parsed.error()));
      for (Intrinsic& in : *parsed) out.push_back(std::move(in));
    }
    return out;
  }();
  return all;
}

bool has_intrinsic(const CpuTarget& target, const Intrinsic& intrinsic) {
  const std::vector<std::string> any = split_words(intrinsic.computed("needs"));
  return std::any_of(any.begin(), any.end(), [&](const std::string& feature) {
    return std::find(target.features.begin(), target.features.end(), feature) !=
           target.features.end();
  });
}

const Intrinsic* find_intrinsic(const CpuTarget& target, const Func& callee) {
  for (const Intrinsic& in : cpu_intrinsics())
    if (in.name() == callee.name && has_intrinsic(target, in) && equal(in.meaning, callee))
      return &in;
  return nullptr;
}

std::vector<Dot> dots_of(const CpuTarget& target, DotKind kind) {
  std::vector<Dot> out;
  for (const Intrinsic& in : cpu_intrinsics())
    if (const Dot dot = dot_of(in, kind); dot.lanes > 0 && has_intrinsic(target, in))
      out.push_back(dot);
  std::stable_sort(out.begin(), out.end(),
                   [](const Dot& x, const Dot& y) { return x.lanes > y.lanes; });
  return out;
}

std::optional<Dot> find_dot(const CpuTarget& target, DType a, DType b, int64_t extent,
                            DotKind kind) {
  for (const Dot& dot : dots_of(target, kind))
    if (dot.a == a && dot.b == b && extent % dot.lanes == 0) return dot;
  return std::nullopt;
}

}  // namespace tilewright::hw
