#include "tilewright/tensor/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/check.h"
#include "tilewright/ir/text.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/text_expr.h"

namespace tilewright::tensor {
namespace {

using text::DefinitionScope;

// Far above any memory; keeps products of extents inside 64 bits.
constexpr int64_t kMaxElements = int64_t{1} << 48;

/// One named index with its extent and where it stands.
struct IndexDecl {
  Dim dim;
  Var var;
};

class FileParser {
 public:
  FileParser(std::string_view source, const std::map<std::string, int64_t>& sizes)
      : scan_(source), overrides_(sizes) {}

  Result<Func> run();

 private:
  struct ParamDecl {
    std::string name;
    ParamMode mode;
    DType dtype;
    Scanner shape;  ///< at the first extent: sizes are known only after `where`
  };

  Result<ParamDecl> param();
  Status skip_shape();
  Status where_clause();
  Status declare_params(const std::vector<ParamDecl>& decls);
  Status definition();
  Result<IndexDecl> index_decl(std::map<std::string, Expr>& names);
  Result<std::vector<IndexDecl>> index_list(const std::string& close,
                                            std::map<std::string, Expr>& names);
  std::optional<Combine> reduction_ahead() const;
  Status check_shape(const Shape& shape, size_t offset) const;
  Status check_name(const std::string& name, size_t offset) const;
  Status check_reads(const Expr& e, const arith::Bounds& bounds,
                     const std::map<const ExprNode*, size_t>& reads) const;
  Status check_read(const Load& read, size_t offset, const arith::Bounds& bounds) const;

  Scanner scan_;
  const std::map<std::string, int64_t>& overrides_;
  DefinitionScope scope_;
  std::vector<Tensor> inputs_;
};

Status FileParser::check_name(const std::string& name, size_t offset) const {
  if (text::is_reserved(name))
    return scan_.error_at(offset, fmt::format("`{}` is a word of the language", name),
                          "choose another name");
  if (scope_.tensors.contains(name) || scope_.sizes.contains(name))
    return scan_.error_at(offset, fmt::format("`{}` is defined twice", name));
  return {};
}

Status FileParser::check_shape(const Shape& shape, size_t offset) const {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 1) return scan_.error_at(offset, fmt::format("an extent is {}", extent));
    if (extent > kMaxElements / count)
      return scan_.error_at(offset,
                            fmt::format("a tensor of shape {} is too large", to_string(shape)));
    count *= extent;
  }
  return {};
}

Status FileParser::skip_shape() {
  for (int depth = 0; !scan_.at_end(); scan_.next()) {
    if (scan_.at_symbol("]") && depth == 0) return {};
    if (scan_.at_symbol("(") || scan_.at_symbol("[")) ++depth;
    if (scan_.at_symbol(")") || scan_.at_symbol("]")) --depth;
  }
  return scan_.error("expected `]` after the extents, found the end of the text");
}

Result<FileParser::ParamDecl> FileParser::param() {
  ParamDecl decl{"", ParamMode::In, DType::F32, scan_};
  if (scan_.accept_word("const")) decl.mode = ParamMode::Const;
  const size_t start = scan_.offset();
  decl.name = TW_TRY(scan_.expect_name("a parameter"));
  TW_TRY_STATUS(check_name(decl.name, start));
  TW_TRY_STATUS(scan_.expect_symbol(":", "after the parameter's name"));
  const auto dtype =
      scan_.peek().kind == Token::Kind::Name ? parse_dtype(scan_.peek().text) : std::nullopt;
  if (!dtype)
    return scan_.error(fmt::format("expected an element type, found {}", scan_.found()),
                       "the types are f32 f64 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64 bool");
  decl.dtype = *dtype;
  scan_.next();
  TW_TRY_STATUS(scan_.expect_symbol("[", "before the extents"));
  decl.shape = scan_;
  TW_TRY_STATUS(skip_shape());
  TW_TRY_STATUS(scan_.expect_symbol("]", "after the extents"));
  return decl;
}

Status FileParser::where_clause() {
  if (!scan_.accept_word("where")) return {};
  do {
    const size_t start = scan_.offset();
    const std::string name = TW_TRY(scan_.expect_name("a size"));
    TW_TRY_STATUS(check_name(name, start));
    TW_TRY_STATUS(scan_.expect_symbol("=", "after the size's name"));
    int64_t value = TW_TRY(text::TensorExprParser(scan_, scope_).size("a size"));
    if (const auto it = overrides_.find(name); it != overrides_.end()) value = it->second;
    scope_.sizes[name] = value;
  } while (scan_.accept_symbol(","));
  return {};
}

Status FileParser::declare_params(const std::vector<ParamDecl>& decls) {
  for (const ParamDecl& decl : decls) {
    Scanner at = decl.shape;
    const size_t start = at.offset();
    Shape shape;
    text::TensorExprParser parser(at, scope_);
    while (!at.at_symbol("]")) {
      if (!shape.empty()) TW_TRY_STATUS(at.expect_symbol(",", "between extents"));
      shape.push_back(TW_TRY(parser.size("an extent")));
    }
    TW_TRY_STATUS(check_shape(shape, start));
    if (scope_.tensors.contains(decl.name))
      return scan_.error_at(start, fmt::format("`{}` is defined twice", decl.name));
    inputs_.push_back(placeholder(decl.name, decl.dtype, shape, decl.mode));
    scope_.tensors[decl.name] = inputs_.back();
  }
  return {};
}

Result<IndexDecl> FileParser::index_decl(std::map<std::string, Expr>& names) {
  const size_t start = scan_.offset();
  const std::string name = TW_TRY(scan_.expect_name("an index"));
  TW_TRY_STATUS(check_name(name, start));
  if (names.contains(name))
    return scan_.error_at(start, fmt::format("the index `{}` is named twice", name));
  TW_TRY_STATUS(scan_.expect_word("in", "after the index"));
  const size_t extent_at = scan_.offset();
  const int64_t extent = TW_TRY(text::TensorExprParser(scan_, scope_).size("an extent"));
  TW_TRY_STATUS(check_shape({extent}, extent_at));
  const Var var(name);
  names[name] = ref(var);
  return IndexDecl{{name, extent}, var};
}

Result<std::vector<IndexDecl>> FileParser::index_list(const std::string& close,
                                                      std::map<std::string, Expr>& names) {
  std::vector<IndexDecl> out;
  if (scan_.accept_symbol(close)) return out;
  do {
    out.push_back(TW_TRY(index_decl(names)));
  } while (scan_.accept_symbol(","));
  TW_TRY_STATUS(scan_.expect_symbol(close, "after the indices"));
  return out;
}

/// `sum(i in` and the like: a function call has no `in` there.
std::optional<Combine> FileParser::reduction_ahead() const {
  static constexpr std::pair<std::string_view, Combine> kWords[] = {
      {"sum", Combine::Add}, {"prod", Combine::Mul}, {"max", Combine::Max}, {"min", Combine::Min}};
  for (const auto& [word, combine] : kWords) {
    if (!scan_.at_word(word)) continue;
    Scanner ahead = scan_;
    ahead.next();
    if (!ahead.accept_symbol("(")) return std::nullopt;
    ahead.next();
    if (ahead.at_word("in")) return combine;
  }
  return std::nullopt;
}

Status FileParser::definition() {
  const size_t start = scan_.offset();
  const std::string name = TW_TRY(scan_.expect_name("a tensor, or `return`"));
  TW_TRY_STATUS(check_name(name, start));
  std::map<std::string, Expr> names;
  TW_TRY_STATUS(scan_.expect_symbol("[", "after the tensor's name"));
  const std::vector<IndexDecl> space = TW_TRY(index_list("]", names));
  TW_TRY_STATUS(scan_.expect_symbol("=", "after the indices"));
  const std::optional<Combine> combine = reduction_ahead();
  std::vector<IndexDecl> over;
  if (combine) {
    scan_.next();
    scan_.next();
    over = TW_TRY(index_list(")", names));
  }
  DefinitionScope inner = scope_;
  inner.indices = names;
  text::TensorExprParser parser(scan_, inner);
  const size_t value_at = scan_.offset();
  const Expr value = TW_TRY(parser.expr());
  if (combine && value.dtype() == DType::Bool)
    return scan_.error_at(value_at, "a reduction needs numbers, not bool",
                          "count with i32(...) or compare with select");
  arith::Bounds bounds;
  Shape shape;
  std::vector<Dim> space_dims, over_dims;
  for (const IndexDecl& d : space) {
    bounds.bind(d.var, int_imm(d.dim.extent));
    shape.push_back(d.dim.extent);
    space_dims.push_back(d.dim);
  }
  for (const IndexDecl& d : over) {
    bounds.bind(d.var, int_imm(d.dim.extent));
    over_dims.push_back(d.dim);
  }
  TW_TRY_STATUS(check_shape(shape, start));
  TW_TRY_STATUS(check_reads(value, bounds, parser.reads()));
  auto with = [&](const Indices& at, const Indices& r) {
    VarMap map;
    for (size_t i = 0; i < space.size(); ++i) map[space[i].var] = at[i];
    for (size_t i = 0; i < r.size(); ++i) map[over[i].var] = r[i];
    return substitute(value, map);
  };
  scope_.tensors[name] =
      combine ? reduce(name, space_dims, over_dims, *combine, with)
              : compute(name, space_dims, [&](const Indices& at) { return with(at, {}); });
  return {};
}

Status FileParser::check_read(const Load& read, size_t offset, const arith::Bounds& bounds) const {
  for (size_t i = 0; i < read.indices.size(); ++i) {
    const Expr &index = read.indices[i], &extent = read.buffer.shape()[i];
    if (arith::prove(index >= 0, bounds) &&
        arith::prove(binary(BinaryOp::Lt, index, extent), bounds))
      continue;
    const auto range = arith::const_range(index, bounds);
    const std::string runs =
        range ? fmt::format("the index runs from {} to {}", range->first, range->second)
              : std::string("the index has no known range");
    return scan_.error_at(
        offset,
        fmt::format("`{}` may be read outside: axis {} has extent {}, {}", read.buffer.name(), i,
                    as_int(extent).value_or(0), runs),
        "guard the read with select(inside, ..., other), or clamp the index with min and max");
  }
  return {};
}

/// Checks each read under the conditions that must hold for it to be evaluated.
Status FileParser::check_reads(const Expr& e, const arith::Bounds& bounds,
                               const std::map<const ExprNode*, size_t>& reads) const {
  auto under = [&](const Expr& part, const Expr& condition) {
    arith::Bounds more = bounds;
    more.assume(condition);
    return check_reads(part, more, reads);
  };
  auto all = [&](const std::vector<Expr>& parts) -> Status {
    for (const Expr& part : parts) TW_TRY_STATUS(check_reads(part, bounds, reads));
    return {};
  };
  return match(
      e, [](const IntImm&) -> Status { return {}; }, [](const FloatImm&) -> Status { return {}; },
      [](const VarRef&) -> Status { return {}; }, [&](const Unary& x) { return all({x.a}); },
      [&](const Binary& x) -> Status {
        TW_TRY_STATUS(check_reads(x.a, bounds, reads));
        if (x.op == BinaryOp::And) return under(x.b, x.a);
        if (x.op == BinaryOp::Or) return under(x.b, logical_not(x.a));
        return check_reads(x.b, bounds, reads);
      },
      [&](const Select& x) -> Status {
        TW_TRY_STATUS(check_reads(x.condition, bounds, reads));
        TW_TRY_STATUS(under(x.on_true, x.condition));
        return under(x.on_false, logical_not(x.condition));
      },
      [&](const Cast& x) { return all({x.a}); },
      [&](const Load& x) -> Status {
        TW_TRY_STATUS(all(x.indices));
        const auto it = reads.find(e.get());
        TW_CHECK(it != reads.end(), "a read of {} has no place", x.buffer.name());
        return check_read(x, it->second, bounds);
      },
      [&](const MathCall& x) { return all(x.args); });
}

Result<Func> FileParser::run() {
  TW_TRY_STATUS(scan_.expect_word("tensor", "or `func` at the start of the file"));
  const std::string name = TW_TRY(scan_.expect_name("the program"));
  TW_TRY_STATUS(scan_.expect_symbol("(", "before the parameters"));
  std::vector<ParamDecl> decls;
  if (!scan_.accept_symbol(")")) {
    do {
      decls.push_back(TW_TRY(param()));
    } while (scan_.accept_symbol(","));
    TW_TRY_STATUS(scan_.expect_symbol(")", "after the parameters"));
  }
  TW_TRY_STATUS(where_clause());
  for (const auto& entry : overrides_)
    if (!scope_.sizes.contains(entry.first))
      return fail(ErrorKind::Invalid, fmt::format("{} has no size named {}", name, entry.first));
  TW_TRY_STATUS(declare_params(decls));
  TW_TRY_STATUS(scan_.expect_symbol("{", "before the definitions"));
  while (!scan_.accept_word("return")) TW_TRY_STATUS(definition());
  std::vector<Tensor> outputs;
  do {
    const size_t start = scan_.offset();
    const std::string output = TW_TRY(scan_.expect_name("a tensor to return"));
    const auto it = scope_.tensors.find(output);
    if (it == scope_.tensors.end())
      return scan_.error_at(start, fmt::format("unknown tensor `{}`", output));
    outputs.push_back(it->second);
  } while (scan_.accept_symbol(","));
  TW_TRY_STATUS(scan_.expect_symbol("}", "after the returned tensors"));
  if (!scan_.at_end()) return scan_.error(fmt::format("{} behind the program", scan_.found()));
  return make_func(name, inputs_, outputs);
}

}  // namespace

Result<Func> parse_tensor_file(std::string_view source,
                               const std::map<std::string, int64_t>& sizes) {
  Scanner scan(source);
  if (!scan.at_word("func")) return FileParser(source, sizes).run();
  if (!sizes.empty())
    return fail(ErrorKind::Invalid, "a func in IR text has no sizes to set",
                "its extents are part of the program");
  return parse_func(source);
}

}  // namespace tilewright::tensor
