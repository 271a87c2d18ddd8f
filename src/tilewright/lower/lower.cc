#include "tilewright/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  std::string current;
  for (const char c : text + ",") {
    if (c == ',') {
      if (!current.empty()) names.push_back(current);
      current.clear();
    } else if (c != ' ') {
      current += c;
    }
  }
  return names;
}

Result<const Pass*> find_pass(const std::string& name) {
  for (const Pass& pass : all_passes())
    if (pass.name == name) return &pass;
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) names.push_back(pass.name);
  return fail(ErrorKind::Usage, fmt::format("no pass is called '{}'", name), {},
              fmt::format("the passes are {}", fmt::join(names, ", ")));
}

}  // namespace

const std::vector<Pass>& all_passes() {
  using enum Stage;
  static const std::vector<Pass> passes = {
      {"bind_iters", "dissolve blocks: iterations by their bindings, guards as ifs", Scheduled,
       Lowered, bind_iters},
      {"simplify", "canonical indices; drop unit loops and constant guards", Lowered, Lowered,
       simplify},
      {"place_allocs", "move allocations into the innermost scope of their uses", Lowered, Lowered,
       place_allocs},
      {"peel", "split loops where guards begin to matter", Lowered, Lowered, peel},
      {"compact", "shrink allocations to their footprint", Lowered, Lowered, compact},
      {"hoist_guards", "test guards outside of loops that they do not depend on", Lowered, Lowered,
       hoist_guards},
      {"unroll", "replace unroll loops by copies", Lowered, Lowered, unroll},
      {"expand_math", "f32 exp, log, tanh, sigmoid, erf, rsqrt as arithmetic", Lowered, Lowered,
       expand_math},
  };
  return passes;
}

std::string default_pipeline() {
  return "bind_iters,simplify,place_allocs,peel,compact,hoist_guards,unroll,expand_math";
}

Result<Func> run_pipeline(const Func& func, const hw::CpuTarget& target,
                          const PipelineOptions& options) {
#ifdef TILEWRIGHT_VERIFY_EACH
  const bool verify_each = true;
#else
  const bool verify_each = options.verify_each;
#endif
  Func current = func;
  int index = 0;
  for (const std::string& name : split_names(options.passes)) {
    const Pass* pass = TW_TRY(find_pass(name));
    Result<Func> next = pass->run(current, target);
    if (!next) return tl::unexpected<Error>(std::move(next.error()).at("pass " + name));
    if (verify_each) {
      Status status = verify(*next, pass->yields);
      if (!status) return tl::unexpected<Error>(std::move(status.error()).at("after pass " + name));
    }
    if (options.observer)
      options.observer(index, name, *next, next->body.get() != current.body.get());
    current = std::move(*next);
    ++index;
  }
  return current;
}

}  // namespace tilewright::lower
