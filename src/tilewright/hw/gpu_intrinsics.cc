#include "tilewright/hw/gpu_intrinsics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "gpu_intrinsics_text.h"
#include "tilewright/base/check.h"
#include "tilewright/base/names.h"
#include "tilewright/base/scanner.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::hw {
namespace {

/// `[i, j] -> [e, f]`
struct IndexMap {
  std::vector<Var> from;
  std::vector<Expr> to;
};

Result<IndexMap> parse_map(const std::string& text) {
  IndexMap map;
  Scanner in(text);
  TW_TRY_STATUS(in.expect_symbol("[", "before the axes"));
  while (!in.at_symbol("]")) {
    if (!map.from.empty()) TW_TRY_STATUS(in.expect_symbol(",", "between axes"));
    map.from.emplace_back(TW_TRY(in.expect_name("an axis")));
  }
  TW_TRY_STATUS(in.expect_symbol("]", "after the axes"));
  TW_TRY_STATUS(in.expect_symbol("->", "between axes and places"));
  const size_t open = in.offset(), close = text.rfind(']');
  if (!in.at_symbol("[") || close == std::string::npos || close < open)
    return in.error("the places stand in brackets");
  std::istringstream rest(text.substr(open + 1, close - open - 1));
  for (std::string piece; std::getline(rest, piece, ',');) {
    map.to.push_back(TW_TRY(parse_expr(piece, map.from)));
    if (map.to.back().dtype() != DType::I64) return in.error("a place is not an integer");
  }
  return map;
}

/// `16x8`
Result<std::vector<int64_t>> parse_tile(const std::string& text) {
  std::vector<int64_t> tile;
  const char *at = text.data(), *const end = at + text.size();
  for (;;) {
    int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 1 || extent > 1024)
      return fail(ErrorKind::Parse, fmt::format("'{}' is no tile", text), {}, "write 16x8");
    tile.push_back(extent);
    if (next == end) return tile;
    if (*next != 'x') return fail(ErrorKind::Parse, fmt::format("'{}' is no tile", text));
    at = next + 1;
  }
}

/// The value of an expression of + * / % over known variables; absent for anything else.
std::optional<int64_t> evaluate(const Expr& e, const std::vector<Var>& vars,
                                const std::vector<int64_t>& values) {
  if (const auto* i = e.as<IntImm>()) return i->value;
  if (const auto* v = e.as<VarRef>())
    for (size_t d = 0; d < vars.size(); ++d)
      if (vars[d] == v->var) return values[d];
  const auto* b = e.as<Binary>();
  if (b == nullptr) return std::nullopt;
  const auto x = evaluate(b->a, vars, values), y = evaluate(b->b, vars, values);
  if (!x || !y) return std::nullopt;
  switch (b->op) {
    case BinaryOp::Add:
      return *x + *y;
    case BinaryOp::Mul:
      return *x * *y;
    case BinaryOp::Div:
      return *x >= 0 && *y > 0 ? std::optional(*x / *y) : std::nullopt;
    case BinaryOp::Mod:
      return *x >= 0 && *y > 0 ? std::optional(*x % *y) : std::nullopt;
    default:
      return std::nullopt;
  }
}

bool is_bytes_of_registers(const LaneLayout& layout, DType dtype) {
  return layout.registers * bit_width(dtype) % 32 == 0;
}

}  // namespace

Result<LaneLayout> parse_lane_layout(const std::string& text) {
  const size_t open = text.find('[');
  const auto bad = [&](std::string why) {
    return fail(ErrorKind::Invalid, fmt::format("'{}' is no layout of lanes", text),
                std::move(why));
  };
  LaneLayout out;
  out.text = text;
  const std::vector<std::string> before = split_words(text.substr(0, open));
  if (open == std::string::npos || before.size() != 1)
    return bad("write 16x8 [i, j] -> [lane, register]");
  out.tile = TW_TRY(parse_tile(before[0]));
  IndexMap map = TW_TRY(parse_map(text.substr(open)));
  if (map.from.size() != out.tile.size() || map.to.size() != 2)
    return bad(fmt::format("{} axes for {} extents, {} places for lane and register",
                           map.from.size(), out.tile.size(), map.to.size()));
  out.axes = map.from, out.lane = map.to[0], out.reg = map.to[1];
  std::set<std::pair<int64_t, int64_t>> places;
  std::vector<int64_t> at(out.tile.size(), 0);
  int64_t elements = 1;
  for (const int64_t extent : out.tile) elements *= extent;
  for (int64_t element = 0; element < elements; ++element) {
    int64_t rest = element;
    for (size_t d = at.size(); d-- > 0;) at[d] = rest % out.tile[d], rest /= out.tile[d];
    const auto lane = evaluate(out.lane, out.axes, at), reg = evaluate(out.reg, out.axes, at);
    if (!lane || !reg || *lane < 0 || *lane >= kGroupLanes || *reg < 0)
      return bad(fmt::format("element {} has no lane below {}", element, kGroupLanes));
    if (*lane >= kWarpLanes) out.lanes = kGroupLanes;
    places.insert({*lane, *reg});
    out.registers = std::max(out.registers, *reg + 1);
  }
  if (static_cast<int64_t>(places.size()) != elements || elements != out.lanes * out.registers)
    return bad(fmt::format("{} elements are in {} of {} x {} registers", elements, places.size(),
                           out.lanes, out.registers));
  return out;
}

Result<LaneRows> parse_lane_rows(const std::string& text) {
  const std::string head = "rows";
  if (!text.starts_with(head))
    return fail(ErrorKind::Parse, fmt::format("'{}' does not begin with rows", text));
  const IndexMap map = TW_TRY(parse_map(text.substr(head.size())));
  if (map.from.size() != 1)
    return fail(ErrorKind::Parse, fmt::format("'{}' is not of one lane", text));
  return LaneRows{map.from[0], map.to};
}

Result<CoreAxes> parse_core_axes(const std::string& text) {
  if (text == "cores [rows, terms]") return CoreAxes{0, 1};
  if (text == "cores [terms, rows]") return CoreAxes{1, 0};
  return fail(ErrorKind::Parse, fmt::format("'{}' does not say how cores lie", text), {},
              "write cores [rows, terms] or cores [terms, rows]");
}

Result<PanelAxes> parse_panel_axes(const std::string& text) {
  if (text == "panels [rows, terms]") return PanelAxes{true};
  if (text == "panels [terms, rows]") return PanelAxes{false};
  return fail(ErrorKind::Parse, fmt::format("'{}' does not say how panels lie", text), {},
              "write panels [rows, terms] or panels [terms, rows]");
}

Result<GpuInstruction> gpu_instruction(const Intrinsic& intrinsic) {
  const auto bad = [&](const std::string& why) {
    return fail(ErrorKind::Invalid, fmt::format("{} cannot be written", intrinsic.name()), why);
  };
  GpuInstruction out;
  out.ptx = intrinsic.computed("ptx");
  out.immediates = intrinsic.computed("immediates");
  out.combine = intrinsic.computed("combine");
  out.opencl = intrinsic.computed("opencl");
  if (out.ptx.empty() && out.combine != "add" && out.combine != "max")
    return bad("it has no field compute.ptx, and compute.combine is neither add nor max");
  const std::string needs = intrinsic.computed("needs");
  if (!needs.starts_with("sm_") || (out.needs = std::atoi(needs.c_str() + 3)) < 50)
    return bad(fmt::format("compute.needs = {} is no architecture", needs));
  const auto& params = intrinsic.meaning.params;
  for (const std::string& word : split_words(intrinsic.computed("operands"))) {
    const auto param = std::find_if(params.begin(), params.end(),
                                    [&](const Param& p) { return p.buffer.name() == word; });
    if (param == params.end()) return bad(fmt::format("it has no parameter {}", word));
    const auto layout = intrinsic.layout.find(word);
    if (layout == intrinsic.layout.end()) return bad(fmt::format("{} has no layout", word));
    GpuInstruction::Operand operand{static_cast<size_t>(param - params.begin()), {}, {}, {}, {}};
    const auto& shape = param->buffer.shape();
    if (layout->second == "one" || layout->second == "thread") {
      (layout->second == "one" ? operand.one : operand.own) = true;
      if (shape.size() != 1 || !is_const_int(shape[0], 1))
        return bad(fmt::format("{} is not one element", word));
    } else if (layout->second == "word") {
      operand.word = true;
      if (shape.size() != 1 || !is_const_int(shape[0], 4) || bit_width(param->buffer.dtype()) != 8)
        return bad(fmt::format("{} is not four bytes", word));
    } else if (layout->second.starts_with("rows")) {
      operand.rows = TW_TRY(parse_lane_rows(layout->second));
      if (operand.rows->at.size() != shape.size()) return bad(fmt::format("rows of {}", word));
    } else if (layout->second.starts_with("cores")) {
      operand.cores = TW_TRY(parse_core_axes(layout->second));
      if (shape.size() != 4 || !is_const_int(shape[2], 8) || !is_const_int(shape[3], 8))
        return bad(fmt::format("{} is not made of cores of 8 x 8", word));
    } else if (layout->second.starts_with("panels")) {
      operand.panels = TW_TRY(parse_panel_axes(layout->second));
      const int64_t row = 8 * kPanelBytes / bit_width(param->buffer.dtype());
      const bool along = operand.panels->terms_along;
      if (shape.size() != (along ? 2u : 3u) ||
          (along ? row % as_int(shape.back()).value_or(row + 1) != 0
                 : !is_const_int(shape.back(), row)))
        return bad(fmt::format("{} is not made of rows of {} bytes", word, kPanelBytes));
    } else {
      operand.lanes = TW_TRY(parse_lane_layout(layout->second));
      bool whole = operand.lanes->tile.size() == shape.size() &&
                   is_bytes_of_registers(*operand.lanes, param->buffer.dtype());
      for (size_t d = 0; whole && d < shape.size(); ++d)
        whole = as_int(shape[d]).value_or(1) % operand.lanes->tile[d] == 0;
      if (!whole) return bad(fmt::format("{} is not made of its tiles", word));
    }
    out.operands.push_back(std::move(operand));
  }
  if (out.operands.size() != params.size()) return bad("compute.operands leaves some out");
  const ParamMode mode = params[out.operands[0].param].mode;
  const auto& result = out.operands[0];
  if ((!result.lanes && !result.one && !result.own) ||
      (mode != ParamMode::Out && mode != ParamMode::InOut))
    return bad("the first operand is not the result");
  return out;
}

const std::vector<Intrinsic>& gpu_intrinsics() {
  static const std::vector<Intrinsic> all = [] {
    auto parsed = parse_intrinsics(kCudaIntrinsics, "hw/intrinsics/cuda.tw");
    TW_CHECK(parsed.has_value(), "{}", parsed ? "" : to_string(parsed.error()));
    return std::move(*parsed);
  }();
  return all;
}

bool has_intrinsic(const GpuTarget& target, const Intrinsic& intrinsic) {
  if (target.language == GpuLanguage::OpenCl) return !intrinsic.computed("opencl").empty();
  if (!target.arch.starts_with("sm_")) return false;
  const std::string needs = intrinsic.computed("needs");
  if (needs.ends_with("a")) return needs == target.arch;
  return std::atoi(target.arch.c_str() + 3) >= std::atoi(needs.c_str() + 3);
}

std::string factor_types(const std::string& a, const std::string& b) { return a == b ? a : a + b; }

bool multiplies_matrices(const GpuTarget& target, const std::string& factor_types) {
  const Intrinsic* mma = find_gpu_intrinsic("cuda.mma_" + factor_types + "_t");
  return mma != nullptr && has_intrinsic(target, *mma);
}

const Intrinsic* find_dot_of_bytes(const GpuTarget& target, DType a, DType b) {
  const Intrinsic* dot =
      find_gpu_intrinsic("cuda.dp4a_" + factor_types(std::string(name(a)), std::string(name(b))));
  return dot != nullptr && has_intrinsic(target, *dot) ? dot : nullptr;
}

bool is_of_thread(const Intrinsic& intrinsic) {
  return std::any_of(intrinsic.layout.begin(), intrinsic.layout.end(),
                     [](const auto& operand) { return operand.second == "thread"; });
}

const Intrinsic* find_gpu_intrinsic(const Func& callee) {
  const Intrinsic* in = find_gpu_intrinsic(callee.name);
  return in != nullptr && equal(in->meaning, callee) ? in : nullptr;
}

const Intrinsic* find_gpu_intrinsic(std::string_view name) {
  for (const Intrinsic& in : gpu_intrinsics())
    if (in.name() == name) return &in;
  return nullptr;
}

}  // namespace tilewright::hw
