#include "tilewright/codegen/gpu/matrix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/check.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

/// Bytes of a row that a lane hands over.
constexpr int64_t kRowBytes = 16;
/// Bytes of a word.
constexpr int64_t kWordBytes = 4;

hw::GpuInstruction instruction_of(const hw::Intrinsic& in) {
  auto found = hw::gpu_instruction(in);
  TW_CHECK(found.has_value(), "{}", found ? "" : to_string(found.error()));
  return std::move(*found);
}

/// Operands of inline PTX: numbered in order of use.
struct Operands {
  std::vector<std::string> results, inputs;
  size_t next = 0;

  /// `{%0,%1}` for `count` registers, with their constraints in `to`.
  std::string registers(int64_t count, const std::string& constraint, const std::string& array,
                        std::vector<std::string>& to) {
    std::vector<std::string> used;
    for (int64_t i = 0; i < count; ++i) {
      used.push_back(fmt::format("%{}", next++));
      to.push_back(fmt::format("\"{}\"({}[{}])", constraint, array, i));
    }
    return fmt::format("{{{}}}", fmt::join(used, ","));
  }
};

int64_t elements(const Buffer& buffer) {
  int64_t count = 1;
  for (const Expr& extent : buffer.shape()) count *= as_int(extent).value_or(1);
  return count;
}

/// The linear index of a region's first element.
Expr linear(const std::vector<Expr>& indices, const std::vector<Expr>& strides) {
  Expr sum = int_imm(0);
  for (size_t axis = 0; axis < indices.size(); ++axis) sum = sum + indices[axis] * strides[axis];
  return sum;
}

/// Whether the elements of `region` that a lane holds lie side by side.
bool side_by_side(const Region& region, const std::vector<Expr>& strides) {
  int64_t expected = 1;
  for (size_t axis = region.dims.size(); axis-- > 0;) {
    const auto size = as_int(region.dims[axis].second), stride = as_int(strides[axis]);
    if (!size || !stride) return false;
    if (*size == 1 || *stride == 0) continue;
    if (*stride != expected) return false;
    expected *= *size;
  }
  return true;
}

/// Bytes from a core to the next along rows and along the terms, `, 128u, 1024u`; empty if its rows
/// do not lie one behind the other.
std::string core_steps(const Region& region, const hw::CoreAxes& cores,
                       const std::vector<Expr>& strides) {
  std::vector<int64_t> steps;
  for (size_t axis = 0; axis < region.dims.size(); ++axis)
    if (!is_const_int(region.dims[axis].second, 1))
      steps.push_back(as_int(strides[axis]).value_or(0) * bit_width(region.buffer.dtype()) / 8);
  if (steps.size() != 4 || steps[2] != kRowBytes || steps[3] * 8 != kRowBytes) return {};
  return fmt::format(", {}u, {}u", steps[cores.rows], steps[cores.terms]);
}

/// Bytes from a panel to the next, `, 8192u`, where rows of the operand lie along; empty if its
/// rows are not panels' rows, of which every eighth begins one.
std::string panel_step(const Region& region, const hw::PanelAxes& panels,
                       const std::vector<Expr>& strides, const arith::Bounds& bounds) {
  constexpr int64_t kRepeat = hw::kPanelAlign / hw::kPanelBytes;
  const int64_t bits = bit_width(region.buffer.dtype());
  const size_t rank = region.dims.size();
  if (rank < 3 || !is_const_int(strides[rank - 2], hw::kPanelBytes * 8 / bits) ||
      !arith::prove(eq(region.dims[rank - 2].first % kRepeat, int_imm(0)), bounds) ||
      (!panels.terms_along && !is_const_int(region.dims[rank - 1].first, 0)))
    return {};
  // The other order needs no step: instructions want 1, in units of 16 bytes.
  const int64_t step =
      panels.terms_along ? kRowBytes : as_int(strides[rank - 3]).value_or(0) * bits / 8;
  return step > 0 ? fmt::format(", {}u", step) : "";
}

/// The indices of the element whose address `lane` hands over.
std::vector<Expr> row_of(const Region& region, const hw::LaneRows& rows, const Var& lane) {
  std::vector<Expr> indices;
  size_t next = 0;
  for (const auto& [begin, size] : region.dims) {
    const bool along = !is_const_int(size, 1) && next < rows.at.size();
    indices.push_back(along ? begin + substitute(rows.at[next++], {{rows.lane, ref(lane)}})
                            : begin);
  }
  return indices;
}

/// Lanes exchange what they have until each has combined all, in pairs, fours, and so on.
std::string shuffling_function(const hw::Intrinsic& intrinsic, const hw::GpuInstruction& how) {
  const auto& params = intrinsic.meaning.params;
  const std::string to = params[how.operands[0].param].buffer.name(),
                    from = params[how.operands[1].param].buffer.name(),
                    type = c_storage_type(params[how.operands[0].param].buffer.dtype());
  const auto combined = [&](const std::string& x, const std::string& y) {
    return how.combine == "add" ? fmt::format("{} + {}", x, y)
                                : fmt::format("tw_max_{}({}, {})", type, x, y);
  };
  return fmt::format(
      R"c(TW_FN void {0}({1}* {2}, const {1}* {3}) {{
  {1} x = {3}[0];
#pragma unroll
  for (int apart = {4}; apart > 0; apart /= 2) {{
    const {1} y = __shfl_xor_sync(0xffffffffu, x, apart);
    x = {5};
  }}
  if (threadIdx.x == 0) {2}[0] = {6};
}}
)c",
      matrix_function_name(intrinsic), type, to, from, hw::kWarpLanes / 2, combined("x", "y"),
      combined(to + "[0]", "x"));
}

/// `c + dp4a(a, b)`.
std::string thread_function(const hw::Intrinsic& intrinsic, const hw::GpuInstruction& how) {
  return fmt::format(
      "TW_FN i32 {}(i32 c, tw_b4 a, tw_b4 b) {{\n  asm(\"{} %0, %1, %2, %0;\" : \"+r\"(c) : "
      "\"r\"(a), \"r\"(b));\n  return c;\n}}\n",
      matrix_function_name(intrinsic), how.ptx);
}

}  // namespace

std::string opencl_thread_function(const hw::Intrinsic& intrinsic) {
  const hw::GpuInstruction how = instruction_of(intrinsic);
  const auto type = [&](size_t operand) {
    return c_storage_type(intrinsic.meaning.params[how.operands[operand].param].buffer.dtype());
  };
  return fmt::format(
      R"c(#if defined(cl_khr_integer_dot_product) && \
    defined(__opencl_c_integer_dot_product_input_4x8bit_packed)
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
TW_FN i32 {0}(i32 c, u32 a, u32 b) {{ return c + (i32){1}(a, b); }}
#else
TW_FN i32 {0}(i32 c, u32 a, u32 b) {{
  for (int i = 0; i < 32; i += 8) c += (i32)({2})(a >> i) * (i32)({3})(b >> i);
  return c;
}}
#endif
)c",
      matrix_function_name(intrinsic), how.opencl, type(1), type(2));
}

std::string matrix_function_name(const hw::Intrinsic& intrinsic) {
  std::string out = "tw_" + intrinsic.name();
  for (char& c : out)
    if (c == '.') c = '_';
  return out;
}

std::string cuda_matrix_function(const hw::Intrinsic& intrinsic) {
  const hw::GpuInstruction how = instruction_of(intrinsic);
  if (!how.combine.empty()) return shuffling_function(intrinsic, how);
  if (how.lanes() == 1) return thread_function(intrinsic, how);
  std::vector<std::string> parameters, views, parts;
  Operands operands;
  for (size_t i = 0; i < how.operands.size(); ++i) {
    const Param& p = intrinsic.meaning.params[how.operands[i].param];
    const std::string& name = p.buffer.name();
    parameters.push_back(
        fmt::format("{}{}* {}", i == 0 ? "" : "const ", c_storage_type(p.buffer.dtype()), name));
    if (how.operands[i].rows) {
      parts.push_back(fmt::format("[%{}]", operands.next++));
      operands.inputs.push_back(fmt::format("\"r\"((u32)__cvta_generic_to_shared({}))", name));
    } else if (how.operands[i].cores) {
      parameters.back() += fmt::format(", u32 {0}_rows, u32 {0}_terms", name);
      parts.push_back(fmt::format("%{}", operands.next++));
      operands.inputs.push_back(fmt::format("\"l\"(tw_cores({0}, {0}_rows, {0}_terms))", name));
    } else if (how.operands[i].panels) {
      parameters.back() += fmt::format(", u32 {}_panels", name);
      parts.push_back(fmt::format("%{}", operands.next++));
      operands.inputs.push_back(fmt::format("\"l\"(tw_panels({0}, {0}_panels))", name));
    } else {
      // Only sums are of type f32 to the instruction.
      const bool sums = p.buffer.dtype() == DType::F32 && p.mode == ParamMode::InOut;
      const bool whole = sums || p.buffer.dtype() == DType::I32;
      const int64_t count = elements(p.buffer) * bit_width(p.buffer.dtype()) / 32 / how.lanes();
      const std::string array = whole ? name : name + "_";
      if (!whole)
        views.push_back(
            fmt::format("{0}u32* {1} = ({0}u32*){2};", i == 0 ? "" : "const ", array, name));
      const std::string kind = sums ? "f" : "r";
      const std::string mode = p.mode == ParamMode::InOut ? "+" : "=";
      parts.push_back(operands.registers(count, i == 0 ? mode + kind : kind, array,
                                         i == 0 ? operands.results : operands.inputs));
    }
  }
  std::string code = how.ptx + " ";
  if (how.asynchronous()) {
    code = "{.reg .pred p; setp.ne.b32 p, 1, 0; " + code;
    parts.push_back("p, " + how.immediates);
  } else if (intrinsic.meaning.params[how.operands[0].param].mode == ParamMode::InOut) {
    parts.push_back(parts[0]);
  }
  code += fmt::format("{};{}", fmt::join(parts, ", "), how.asynchronous() ? "}" : "");
  std::string text = fmt::format("TW_FN void {}({}) {{\n", matrix_function_name(intrinsic),
                                 fmt::join(parameters, ", "));
  for (const std::string& view : views) text += "  " + view + "\n";
  return text +
         fmt::format("  asm volatile(\"{}\"\n               : {}\n               : {}{});\n}}\n",
                     code, fmt::join(operands.results, ", "), fmt::join(operands.inputs, ", "),
                     how.operands.back().lanes ? "" : "\n               : \"memory\"");
}

std::string cuda_matrix_helpers() {
  return R"c(TW_FN u64 tw_cores(const void* at, u32 rows, u32 terms) {
  const u32 from = (u32)__cvta_generic_to_shared(at);
  return (u64)((from & 0x3ffffu) >> 4) | (u64)(terms >> 4) << 16 | (u64)(rows >> 4) << 32;
}
TW_FN u64 tw_panels(const void* at, u32 panels) {
  const u32 from = (u32)__cvta_generic_to_shared(at);
  return (u64)((from & 0x3ffffu) >> 4) | (u64)(panels >> 4) << 16 | (u64)(1024 >> 4) << 32 |
         (u64)1 << 62;
}
TW_FN void tw_show_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
TW_FN void tw_begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TW_FN void tw_commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
#define tw_wait_products(runs) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(runs) : "memory")
)c";
}

Result<std::string> matrix_definitions(const MatrixFunctions& functions,
                                       const hw::GpuTarget& target, const std::string& given) {
  std::string text, helpers;
  bool of_warps = false;
  for (const auto& [name, in] : functions) {
    if (!hw::is_of_thread(*in) && !given.empty()) {
      of_warps = true;
      continue;
    }
    if (!hw::has_intrinsic(target, *in))
      return fail(ErrorKind::Unsupported, fmt::format("{} has no {}", target.name, in->name()));
    text += target.language == hw::GpuLanguage::OpenCl ? opencl_thread_function(*in)
                                                       : cuda_matrix_function(*in);
    if (hw::gpu_instruction(*in)->asynchronous()) helpers = cuda_matrix_helpers();
  }
  return helpers + text + (of_warps ? given : "");
}

Result<std::string> matrix_call(const Call& call, const hw::Intrinsic& intrinsic, const Var& lane,
                                const CExprWriter::Strides& strides,
                                const std::function<std::string(const Buffer&)>& space,
                                CNames& names, CExprWriter& exprs, CText& out) {
  const hw::GpuInstruction how = instruction_of(intrinsic);
  std::vector<std::vector<Expr>> places(call.args.size());
  std::vector<std::string> steps(call.args.size());
  std::vector<bool> words(call.args.size());
  std::vector<Expr> roots;
  for (const auto& operand : how.operands) {
    const Region& region = std::get<Region>(call.args[operand.param]);
    const std::vector<Expr>& own = strides.at(region.buffer);
    std::vector<Expr>& at = places[operand.param];
    if (operand.rows)
      at = row_of(region, *operand.rows, lane);
    else
      for (const auto& dim : region.dims) at.push_back(dim.first);
    const auto refuse = [&](const char* why) {
      return fail(ErrorKind::Unsupported,
                  fmt::format("{} cannot use '{}'", intrinsic.name(), region.buffer.name()), why);
    };
    if (operand.lanes && !side_by_side(region, own))
      return refuse("registers of an operand do not lie side by side");
    const int64_t row = kRowBytes * 8 / bit_width(region.buffer.dtype());
    if (operand.cores) {
      steps[operand.param] = core_steps(region, *operand.cores, own);
      if (steps[operand.param].empty()) return refuse("its cores are not 8 rows of 16 bytes");
    }
    if (operand.panels) {
      steps[operand.param] = panel_step(region, *operand.panels, own, exprs.bounds);
      if (steps[operand.param].empty()) return refuse("its rows are not those of panels");
    }
    words[operand.param] = operand.word;
    if (operand.word && (!side_by_side(region, own) ||
                         !arith::prove(eq(linear(at, own) % kWordBytes, int_imm(0)), exprs.bounds)))
      return refuse("its bytes do not lie side by side in words of four");
    if ((operand.rows || operand.cores || operand.panels) &&
        (!is_const_int(own.back(), 1) ||
         !arith::prove(eq(linear(at, own) % row, int_imm(0)), exprs.bounds)))
      return refuse("its rows do not begin on multiples of 16 bytes");
    roots.insert(roots.end(), at.begin(), at.end());
  }
  exprs.begin(roots);
  std::vector<std::string> args;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Buffer& buffer = std::get<Region>(call.args[i]).buffer;
    const std::string place =
        fmt::format("{} + {}", names.of(buffer), exprs.offset(buffer, places[i], out));
    args.push_back(words[i] ? fmt::format("*({}const tw_b4*)({})", space(buffer), place)
                            : place + steps[i]);
  }
  if (how.lanes() == 1) {
    std::string& sum = args[how.operands[0].param];
    sum = fmt::format("*({})", sum);
    return fmt::format("{} = {}({});", sum, matrix_function_name(intrinsic), fmt::join(args, ", "));
  }
  return fmt::format("{}({});", matrix_function_name(intrinsic), fmt::join(args, ", "));
}

}  // namespace tilewright::codegen
