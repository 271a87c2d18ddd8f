#include <fmt/format.h>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// Statements one Func may grow to; beyond it unrolled loops stay loops.
constexpr int64_t kMostUnrolled = 12000;

class Unroller {
 public:
  explicit Unroller(const Func& func) : namer_(func) {}

  /// Children first, so that the cost of a copy is known.
  Stmt run(const Stmt& s) {
    return rewrite(s, [&](const Stmt& x) {
      const auto* loop = x.as<For>();
      if (loop == nullptr || loop->kind != ForKind::Unroll) return x;
      return expand(*loop);
    });
  }

 private:
  Stmt expand(const For& loop) {
    const auto extent = as_int(loop.extent);
    const int64_t size = count_statements(loop.body);
    if (!extent || *extent * size > kMostUnrolled - total_) {
      For serial = loop;
      serial.kind = ForKind::Serial;
      return make(std::move(serial));
    }
    total_ += (*extent - 1) * size;
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *extent; ++i) {
      const Stmt body = clone(loop.body, [&](const std::string& name) {
        return namer_.fresh(name, fmt::format(".u{}", i));
      });
      copies.push_back(substitute(body, {{loop.var, int_imm(i)}}));
    }
    return seq(std::move(copies));
  }

  Namer namer_;
  int64_t total_ = 0;
};

}  // namespace

Result<Func> unroll(const Func& func) {
  Func out = func;
  out.body = tidy(Unroller(func).run(func.body), arith::Bounds(func));
  return out;
}

}  // namespace tilewright::lower
