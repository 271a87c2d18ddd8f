#include "tilewright/ir/unique_names.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "tilewright/ir/walk.h"

namespace tilewright {
namespace {

using NameSet = std::set<std::string>;

/// `name`, or with the first number that makes it new.
std::string claim(const std::string& name, NameSet& names) {
  std::string unique = name;
  for (int number = 2; !names.insert(unique).second; ++number)
    unique = fmt::format("{}_{}", name, number);
  return unique;
}

/// Whether results stay the same if they are combined with `value` once more.
bool is_neutral(const Expr& value, Combine combine) {
  const auto* integer = value.as<IntImm>();
  const auto* real = value.as<FloatImm>();
  if (combine == Combine::Set || (integer == nullptr && real == nullptr)) return false;
  if (combine == Combine::Max || combine == Combine::Min) return true;
  return (integer ? static_cast<double>(integer->value) : real->value) ==
         (combine == Combine::Mul ? 1 : 0);
}

/// Blocks that begin a reduction, each with its new name.
std::map<const StmtNode*, std::string> beginnings(const Func& func) {
  std::map<const StmtNode*, std::string> begin;
  std::map<Buffer, Stmt> setters;  // the last block that set elements of a buffer
  walk(func.body, [&](const Stmt& s) {
    const auto* block = s.as<Block>();
    const auto* store = block != nullptr ? block->body.as<Store>() : nullptr;
    if (store == nullptr) return;
    const auto setter = setters.find(store->buffer);
    if (store->combine == Combine::Set) {
      setters[store->buffer] = s;
    } else if (setter != setters.end()) {
      if (is_neutral(setter->second.as<Block>()->body.as<Store>()->value, store->combine))
        begin[setter->second.get()] = block->name + ".init";
      setters.erase(setter);
    }
  });
  return begin;
}

Stmt name_blocks(const Func& func) {
  const auto begin = beginnings(func);
  NameSet names;
  std::map<const StmtNode*, std::string> all;  // in the order of the program
  walk(func.body, [&](const Stmt& s) {
    if (const auto* block = s.as<Block>())
      all[s.get()] = claim(begin.contains(s.get()) ? begin.at(s.get()) : block->name, names);
  });
  return rewrite(func.body, [&](const Stmt& s) {
    const auto found = all.find(s.get());
    if (found == all.end() || found->second == s.as<Block>()->name) return s;
    Block block = *s.as<Block>();
    block.name = found->second;
    return make(std::move(block));
  });
}

std::string first_block(const Stmt& s) {
  std::string name;
  walk(s, [&](const Stmt& x) {
    if (name.empty() && x.as<Block>() != nullptr) name = x.as<Block>()->name;
  });
  return name;
}

}  // namespace

Func with_unique_names(const Func& func) {
  Func out = func;
  out.body = name_blocks(func);
  NameSet loops, buffers;
  for (const Scalar& scalar : func.scalars) loops.insert(scalar.var.name());
  for (const Param& param : func.params) buffers.insert(param.buffer.name());
  VarMap vars;
  BufferMap renamed;
  walk(out.body, [&](const Stmt& s) {
    if (const auto* loop = s.as<For>()) {
      const std::string& name = loop->var.name();
      const std::string block = loops.contains(name) ? first_block(s) : "";
      const std::string unique = claim(block.empty() ? name : block + "." + name, loops);
      if (unique != name) vars[loop->var] = ref(Var(unique, loop->var.dtype()));
    } else if (const auto* alloc = s.as<Alloc>()) {
      const Buffer& b = alloc->buffer;
      const std::string unique = claim(b.name(), buffers);
      if (unique != b.name()) renamed[b] = Buffer(unique, b.dtype(), b.shape(), b.scope());
    }
  });
  if (!vars.empty())
    out.body = rewrite(
        out.body,
        [&](const Stmt& s) {
          const auto* loop = s.as<For>();
          if (loop == nullptr || !vars.contains(loop->var)) return s;
          For next = *loop;
          next.var = vars.at(loop->var).as<VarRef>()->var;
          return make(std::move(next));
        },
        [&](const Expr& e) { return substitute(e, vars); });
  out.body = replace_buffers(out.body, renamed);
  return out;
}

}  // namespace tilewright
