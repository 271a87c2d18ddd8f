#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {

Result<Func> keep_ports(const Func& func) {
  Namer namer(func);
  Func out = func;
  out.body = rewrite(func.body, [&](const Stmt& s) {
    const auto* block = s.as<Block>();
    const Mark* port = block != nullptr ? find_mark(block->marks, MarkKind::Port) : nullptr;
    if (port == nullptr) return s;
    For loop{Var(namer.fresh(block->name, ".port")), int_imm(1)};
    loop.marks = {*port};
    Block bare = *block;
    std::erase_if(bare.marks, [](const Mark& m) { return m.kind == MarkKind::Port; });
    loop.body = make(std::move(bare));
    return make(std::move(loop));
  });
  return out;
}

}  // namespace tilewright::lower
