#include "tilewright/codegen/hls/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "tilewright/base/check.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

CDialect dialect_of(HlsDialect dialect) {
  CDialect out;
  out.f32_suffix = "";
  out.math_prefix = dialect == HlsDialect::Vitis ? "hls::" : "std::";
  out.narrow = true;
  return out;
}

bool has_loop(const Stmt& body) {
  bool found = false;
  walk(body, [&](const Stmt& s) { found = found || s.as<For>() != nullptr; });
  return found;
}

std::optional<int64_t> interval(const For& loop) {
  for (const Mark& mark : loop.marks)
    if (mark.kind == MarkKind::InitiationInterval) return std::get<int64_t>(mark.value);
  return std::nullopt;
}

class Writer {
 public:
  Writer(HlsScope& scope, const HlsProcessText& process)
      : scope_(scope), process_(process), exprs_(scope, *process.ports) {
    exprs_.bounds = scope.bounds;
  }

  /// The process: `body` and what is in it.
  void write(const Stmt& body, CText& out) {
    walk(
        body,
        [&](const Stmt& s) {
          const auto* store = s.as<Store>();
          if (store != nullptr && store->combine != Combine::Set) read_.insert(store->buffer);
        },
        [&](const Expr& e) {
          if (const auto* l = e.as<Load>()) read_.insert(l->buffer);
        });
    stmt(body, out);
  }

  Status status;

 private:
  void stmt(const Stmt& s, CText& out) {
    match(
        s, [&](const For& x) { loop(x, out); }, [&](const Block& x) { block(x, out); },
        [&](const Store& x) { exprs_.store(x, out); }, [&](const Alloc& x) { alloc(x, out); },
        [&](const If& x) { branch(x, out); },
        [&](const Seq& x) {
          for (const Stmt& child : x.stmts) stmt(child, out);
        },
        [](const Call&) { TW_CHECK(false, "calls are inlined before"); });
  }

  void pragma(const std::string& text, CText& out) const {
    if (scope_.dialect == HlsDialect::Vitis) out.text += "#pragma HLS " + text + "\n";
  }

  void branch(const If& x, CText& out) {
    exprs_.begin({x.condition});
    out.open(fmt::format("if ({}) {{", exprs_.value(x.condition, out)));
    stmt(x.then_body, out);
    if (x.else_body) {
      --out.indent, out.open("} else {");
      stmt(x.else_body, out);
    }
    out.close();
  }

  void loop(const For& x, CText& out) {
    exprs_.begin({x.extent});
    const std::string extent = exprs_.value(x.extent, out);
    const arith::Bounds outer = exprs_.bounds;
    exprs_.bounds.bind(x.var, x.extent);
    const std::string type = exprs_.declared_type(x.var), var = scope_.names.of(x.var);
    out.open(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1}) {{{3}", type, var, extent, note(x)));
    if (x.kind == ForKind::Unroll) pragma("unroll", out);
    if (const auto ii = interval(x)) pragma(fmt::format("pipeline II={}", *ii), out);
    const auto range = arith::const_range(x.extent, outer);
    if (range && !as_int(x.extent))
      pragma(fmt::format("loop_tripcount min={} max={}", std::max<int64_t>(range->first, 0),
                         std::max<int64_t>(range->second, 0)),
             out);
    stmt(x.body, out);
    out.close();
    exprs_.bounds = outer;
  }

  /// What the reader of the text wants to know of a loop: how often, how fast, of what kind.
  static std::string note(const For& x) {
    std::string text;
    if (x.kind != ForKind::Serial) text = std::string(name(x.kind));
    const auto trips = as_int(x.extent);
    const auto ii = interval(x);
    if (trips && (ii || !has_loop(x.body)))
      text += fmt::format("{}{} trips", text.empty() ? "" : ", ", *trips);
    if (ii) text += fmt::format("{}II {}", text.empty() ? "" : ", ", *ii);
    return text.empty() ? "" : "  // " + text;
  }

  void block(const Block& x, CText& out) {
    const arith::Bounds outer = exprs_.bounds;
    std::string head = "{";
    if (x.guard) {
      exprs_.begin({x.guard});
      head = fmt::format("if ({}) {{", exprs_.value(x.guard, out));
      exprs_.bounds.assume(x.guard);
    }
    out.open(fmt::format("{}  // {}", head, x.name));
    // Iterations that the text of the body does not need are left out of it.
    std::vector<std::string> bindings, types;
    for (const Iter& iter : x.iters) {
      exprs_.begin({iter.binding});
      bindings.push_back(exprs_.value(iter.binding, out));
    }
    for (const Iter& iter : x.iters) {
      exprs_.bounds.bind(iter.var, iter.extent);
      types.push_back(exprs_.declared_type(iter.var));
    }
    CText body;
    body.indent = out.indent;
    stmt(x.body, body);
    for (size_t i = 0; i < x.iters.size(); ++i) {
      const std::string id = scope_.names.of(x.iters[i].var);
      if (mentions(body.text, id))
        out.line(fmt::format("const {} {} = {};", types[i], id, bindings[i]));
    }
    out.text += body.text;
    out.close();
    exprs_.bounds = outer;
  }

  void alloc(const Alloc& x, CText& out) {
    const std::string id = scope_.names.of(x.buffer);
    if (process_.ports->contains(x.buffer)) return;
    if (const auto it = process_.locks->find(x.buffer); it != process_.locks->end()) {
      const HlsLock& lock = it->second;
      out.line(fmt::format("hls::{}_lock<{}> {}({});", lock.writes ? "write" : "read", lock.type,
                           id, lock.parameter));
      return;
    }
    const auto axes = hls_array_axes(x.buffer, exprs_.bounds);
    if (!axes) {
      if (status) status = tl::unexpected<Error>(axes.error());
      return;
    }
    out.line(fmt::format("{} {}{};", hls_element_type(scope_, x.buffer), id, *axes));
    if (!read_.contains(x.buffer)) out.line(fmt::format("(void){};", id));
    if (scope_.dialect == HlsDialect::Plain) return;
    const auto banks = hls_partitions(x, id);
    if (!banks && status) status = tl::unexpected<Error>(banks.error());
    if (banks)
      for (const std::string& line : *banks) out.text += line;
  }

  HlsScope& scope_;
  const HlsProcessText& process_;
  HlsExprs exprs_;
  std::set<Buffer> read_;  ///< buffers that the process reads
};

}  // namespace

HlsExprs::HlsExprs(HlsScope& scope, std::map<Buffer, std::string> ports)
    : CExprWriter(scope.names, scope.strides, dialect_of(scope.dialect)),
      scope_(scope),
      ports_(std::move(ports)) {}

std::string HlsExprs::place(const Buffer& buffer, const std::vector<Expr>& indices, CText& out) {
  std::string text = names_.of(buffer);
  for (const Expr& index : indices) text += fmt::format("[{}]", value(index, out));
  return indices.empty() ? text + "[0]" : text;
}

std::string HlsExprs::element(const Buffer& buffer, const std::vector<Expr>& indices, CText& out) {
  const std::string type = c_storage_type(buffer.dtype());
  const auto port = ports_.find(buffer);
  if (port == ports_.end()) {
    const std::string text = place(buffer, indices, out);
    return scope_.widths.contains(buffer) ? fmt::format("(({}){})", type, text) : text;
  }
  const std::string at = offset(buffer, indices, out);
  if (scope_.dialect == HlsDialect::Plain) return fmt::format("{}[{}]", port->second, at);
  return fmt::format("tw_get<{}>({}, {})", type, port->second, at);
}

void HlsExprs::assign(const Buffer& buffer, const std::vector<Expr>& indices,
                      const std::string& text, CText& out) {
  const auto port = ports_.find(buffer);
  if (port == ports_.end()) {
    const std::string target = place(buffer, indices, out);
    out.line(fmt::format("{} = {};", target, text));
    return;
  }
  const std::string at = offset(buffer, indices, out);
  if (scope_.dialect == HlsDialect::Plain)
    out.line(fmt::format("{}[{}] = {};", port->second, at, text));
  else
    out.line(fmt::format("tw_put<{}>({}, {}, {});", c_storage_type(buffer.dtype()), port->second,
                         at, text));
}

bool mentions(const std::string& text, const std::string& id) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find(id); at != std::string::npos; at = text.find(id, at + 1)) {
    const size_t end = at + id.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

std::string hls_element_type(const HlsScope& scope, const Buffer& buffer) {
  const auto it = scope.widths.find(buffer);
  if (it == scope.widths.end()) return c_storage_type(buffer.dtype());
  return fmt::format("{}<{}>", is_unsigned_int(buffer.dtype()) ? "ap_uint" : "ap_int", it->second);
}

Result<std::vector<std::string>> hls_partitions(const Alloc& alloc, const std::string& id) {
  using Kind = lower::Banking::Kind;
  std::vector<std::string> out;
  const std::vector<lower::Banking> banking = TW_TRY(lower::banking_of(alloc));
  for (size_t axis = 0; axis < banking.size(); ++axis) {
    const lower::Banking& b = banking[axis];
    if (b.kind == Kind::Complete)
      out.push_back(fmt::format("#pragma HLS array_partition variable={} type=complete dim={}\n",
                                id, axis + 1));
    else if (b.banks > 1)
      out.push_back(
          fmt::format("#pragma HLS array_partition variable={} type={} factor={} dim={}\n", id,
                      b.kind == Kind::Cyclic ? "cyclic" : "block", b.banks, axis + 1));
  }
  return out;
}

Result<std::string> hls_array_axes(const Buffer& buffer, const arith::Bounds& bounds) {
  std::string text;
  for (size_t axis = 0; axis < buffer.rank(); ++axis) {
    const auto range = arith::const_range(buffer.shape()[axis], bounds);
    if (!range)
      return fail(ErrorKind::Unsupported,
                  fmt::format("allocation {} has no upper bound on axis {}", buffer.name(), axis),
                  "memories on chip have a size", "give the scalars in its shape a range");
    text += fmt::format("[{}]", std::max<int64_t>(range->second, 1));
  }
  return text.empty() ? "[1]" : text;
}

Status write_hls_statements(const Stmt& body, HlsScope& scope, const HlsProcessText& process,
                            CText& out) {
  Writer writer(scope, process);
  writer.write(body, out);
  return writer.status;
}

}  // namespace tilewright::codegen
