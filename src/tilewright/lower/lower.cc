#include "tilewright/lower/lower.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/ir/verify.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

template <class Row>
std::vector<std::string> names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

Result<const Pass*> find_pass(const std::string& name) {
  for (const Pass& pass : all_passes())
    if (pass.name == name) return &pass;
  return fail(ErrorKind::Usage, fmt::format("no pass is called '{}'", name), {},
              fmt::format("the passes are {}", fmt::join(names_of(all_passes()), ", ")));
}

/// The name of a block in the program; empty if there is none.
std::string block_in(const Func& func) {
  std::string name;
  walk(func.body, [&](const Stmt& s) {
    if (const auto* block = s.as<Block>()) name = block->name;
  });
  return name;
}

Result<Func> run_pass(const Pass& pass, const Func& func, bool verify_each) {
  if (const std::string block = pass.takes == Takes::NoBlocks ? block_in(func) : ""; !block.empty())
    return fail(ErrorKind::Usage,
                fmt::format("pass '{}' needs a program without blocks", pass.name),
                fmt::format("there is block '{}'", block), "run the pass bind_iters before it");
  Result<Func> next = pass.run(func);
  if (!next) return tl::unexpected<Error>(std::move(next.error()).at("pass " + pass.name));
  if (!verify_each) return next;
  Status status = verify(*next, Stage::Lowered);
  if (!status)
    return tl::unexpected<Error>(std::move(status.error()).at("after pass " + pass.name));
  return next;
}

}  // namespace

const std::vector<Pass>& all_passes() {
  using enum Takes;
  static const std::vector<Pass> passes = {
      {"bind_iters", "dissolve blocks: iterations by their bindings, guards as ifs", Any,
       bind_iters},
      {"join_parallel", "make one loop of parallel loops that follow each other", NoBlocks,
       join_parallel},
      {"simplify", "canonical indices; drop unit loops and constant guards", Any, simplify},
      {"place_allocs", "move allocations into the innermost scope of their uses", Any,
       place_allocs},
      {"peel", "split loops where guards begin to matter", Any, peel},
      {"compact", "shrink allocations to their footprint", NoBlocks, compact},
      {"hoist_guards", "test guards outside of loops that they do not depend on", Any,
       hoist_guards},
      {"unroll", "replace unroll loops by copies", Any, unroll},
      {"expand_math", "f32 exp, log, tanh, sigmoid, erf, rsqrt as arithmetic", Any, expand_math},
      {"keep_async_marks", "mark shared buffers whose copies may finish later", Any,
       keep_async_marks},
      {"whole_tiles", "compute tiles that go over an end as all others, with zeros", NoBlocks,
       whole_tiles},
      {"keep_ports", "let loops say through which port blocks reach memory", Any, keep_ports},
      {"fragments", "give memory of warps the register layout of their instructions", NoBlocks,
       fragments},
      {"privatize", "give each thread its own part of local memory", NoBlocks, privatize},
      {"hold_copies", "read copies that threads make ahead, into registers", NoBlocks, hold_copies},
      {"insert_syncs", "barriers between uses of shared memory", NoBlocks, insert_syncs},
      {"insert_waits", "groups of asynchronous copies, and waits for them", NoBlocks, insert_waits},
      {"wait_for_products", "waits for products of groups of warps", NoBlocks, wait_for_products},
  };
  return passes;
}

const std::vector<Pipeline>& all_pipelines() {
  // On GPUs loops stay rolled (the device's compiler unrolls them) and functions stay calls
  // (devices have them in hardware).
  static const std::vector<Pipeline> pipelines = {
      {"cpu",
       "for CPUs",
       {"bind_iters", "join_parallel", "simplify", "place_allocs", "peel", "compact",
        "hoist_guards", "unroll", "expand_math"}},
      {"gpu",
       "for GPUs, before the program is split into kernels",
       {"keep_async_marks", "bind_iters", "simplify", "place_allocs", "compact", "hoist_guards",
        "fragments", "privatize", "hold_copies"}},
      {"gpu-kernel",
       "for each kernel of a GPU",
       {"insert_syncs", "insert_waits", "wait_for_products"}},
      // Loops of one iteration stay: marks stand on them.
      {"fpga",
       "for FPGAs, before the program is cut into processes",
       {"keep_ports", "bind_iters", "compact", "whole_tiles"}},
  };
  return pipelines;
}

Result<const Pipeline*> find_pipeline(std::string_view name) {
  for (const Pipeline& pipeline : all_pipelines())
    if (pipeline.name == name) return &pipeline;
  return fail(ErrorKind::Usage, fmt::format("no pipeline is called '{}'", name), {},
              fmt::format("the pipelines are {}", fmt::join(names_of(all_pipelines()), ", ")));
}

std::vector<std::string> pass_names(std::string_view list) {
  std::vector<std::string> names;
  std::string current;
  for (const char c : std::string(list) + ",") {
    if (c == ',') {
      if (!current.empty()) names.push_back(current);
      current.clear();
    } else if (c != ' ') {
      current += c;
    }
  }
  return names;
}

Result<Func> run_passes(const Func& func, const std::vector<std::string>& passes,
                        const PassOptions& options) {
#ifdef TILEWRIGHT_VERIFY_EACH
  const bool verify_each = true;
#else
  const bool verify_each = options.verify_each;
#endif
  Func current = func;
  for (const std::string& name : passes) {
    const Pass* pass = TW_TRY(find_pass(name));
    Func next = TW_TRY(run_pass(*pass, current, verify_each));
    if (options.observer) options.observer(name, next, next.body.get() != current.body.get());
    current = std::move(next);
  }
  return current;
}

Result<Func> run_pipeline(const Func& func, std::string_view pipeline, const PassOptions& options) {
  return run_passes(func, TW_TRY(find_pipeline(pipeline))->passes, options);
}

}  // namespace tilewright::lower
