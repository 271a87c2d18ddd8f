// Passes after scheduling: a table of all of them, and pipelines, which are lists of passes by
// name. A scheduled Func goes in, a Func ready for code generation comes out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// Programs that a pass works on: without blocks after `bind_iters`, which dissolves them.
enum class Takes { Any, NoBlocks };

struct Pass {
  std::string name;
  std::string doc;  ///< one line
  Takes takes;
  /// No pass reads a target: what a device lacks is found out after the passes.
  Result<Func> (*run)(const Func&);
};

/// Every pass, in no particular order; pipelines order them. Programs go in and come out at stage
/// Lowered, which those of other stages satisfy too.
const std::vector<Pass>& all_passes();

struct Pipeline {
  std::string name;
  std::string doc;  ///< one line
  std::vector<std::string> passes;
};

/// `cpu`; `gpu`, up to the split into kernels; `gpu-kernel`, for each of these; `fpga`, before
/// processes_of.
const std::vector<Pipeline>& all_pipelines();
/// errors: Usage (unknown pipeline, with the list).
Result<const Pipeline*> find_pipeline(std::string_view name);

/// The names in a comma-separated list.
std::vector<std::string> pass_names(std::string_view list);

struct PassOptions {
  /// Whether the verifier looks at the program after each pass; TILEWRIGHT_VERIFY_EACH: always.
  bool verify_each = false;
  /// Called after each pass with its name, the program and whether it changed.
  std::function<void(const std::string&, const Func&, bool)> observer;
};

/// Runs passes by name, in the given order. errors: Usage (unknown pass, with the list; a program
/// with blocks where there must be none), or what a pass reports.
Result<Func> run_passes(const Func& func, const std::vector<std::string>& passes,
                        const PassOptions& options = {});

/// errors: as find_pipeline and run_passes.
Result<Func> run_pipeline(const Func& func, std::string_view pipeline,
                          const PassOptions& options = {});

}  // namespace tilewright::lower
