// Runs ONNX backend test cases through the whole compiler: import, passes, schedule, native code.
//
//   onnx_cases [--floor PERCENT] [--table FILE.md] [--only SUBSTRING] [-v] FOLDER...
//
// A case passes if all outputs agree (integers equal; floats as the ONNX backend tests: rtol 1e-3,
// atol 1e-7, f16 and bf16 looser). A case whose operators or dtypes are not in the operator library
// is unsupported. Exit 1 if of the cases with supported operators and dtypes fewer than --floor
// percent pass.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tilewright/base/check.h"
#include "tilewright/base/file.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/evaluate.h"
#include "tilewright/driver/verify/known_differences.h"
#include "tilewright/graph/onnx/import.h"
#include "tilewright/graph/onnx/model_inputs.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

enum class Outcome { Pass, Unsupported, Fail };

struct CaseResult {
  Outcome outcome = Outcome::Fail;
  std::string name, text;
  std::set<std::string> ops;
};

std::vector<Array> read_arrays(const fs::path& folder, const std::string& kind,
                               std::string& problem) {
  std::vector<Array> arrays;
  for (int i = 0;; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", kind, i);
    if (!fs::exists(path)) return arrays;
    Result<Array> array = graph::read_onnx_tensor(path.string());
    if (!array) {
      problem = array.error().what;
      return {};
    }
    arrays.push_back(*std::move(array));
  }
}

/// Empty if all elements agree.
std::string disagreement(const Array& actual, const Array& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    return fmt::format("{} {} instead of {} {}", name(actual.dtype()), to_string(actual.shape()),
                       name(expected.dtype()), to_string(expected.shape()));
  double rtol = 1e-3, atol = 1e-7;
  if (expected.dtype() == DType::F16) rtol = 2e-3, atol = 1e-3;
  if (expected.dtype() == DType::BF16) rtol = 1e-2, atol = 1e-2;
  for (int64_t i = 0; i < actual.size(); ++i) {
    if (!is_float(expected.dtype())) {
      if (actual.get_int(i) != expected.get_int(i))
        return fmt::format("element {}: {} instead of {}", i, actual.get_int(i),
                           expected.get_int(i));
      continue;
    }
    const double a = actual.get(i), e = expected.get(i);
    const bool same =
        a == e || (std::isnan(a) && std::isnan(e)) || std::abs(a - e) <= atol + rtol * std::abs(e);
    if (!same) return fmt::format("element {}: {} instead of {}", i, a, e);
  }
  return "";
}

bool is_unsupported(const Error& error) {
  if (error.kind != ErrorKind::Unsupported) return false;
  return std::all_of(error.others.begin(), error.others.end(), is_unsupported);
}

std::string short_text(const Error& error) {
  std::string text = error.what + (error.why.empty() ? "" : " (" + error.why + ")");
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.substr(0, 220);
}

/// The same for a case that cannot be imported: its inputs are what --shape is for users.
std::string import_problem(const Error& error) {
  const std::string text = short_text(error), shape = "--shape ";
  if (!text.starts_with(shape)) return text;
  return "the case's data contradict its model: input " + text.substr(shape.size());
}

/// Imports; inputs from `first_constant` on are bound as constants, if they are small.
Result<graph::Graph> import_case(const fs::path& folder, const std::vector<Array>& inputs,
                                 size_t first_constant) {
  graph::ImportOptions options;
  options.allow_newer_opset = true;
  options.evaluate = compile::make_evaluate();
  Result<std::vector<std::string>> names =
      graph::read_onnx_input_names((folder / "model.onnx").string());
  if (!names) return tl::unexpected<Error>(names.error());
  for (size_t i = 0; i < inputs.size() && i < names->size(); ++i) {
    options.shapes[(*names)[i]] = inputs[i].shape();
    if (i >= first_constant && inputs[i].size() <= 4096) options.constants[(*names)[i]] = inputs[i];
  }
  for (const auto& bound : options.constants) options.shapes.erase(bound.first);
  return graph::import_onnx((folder / "model.onnx").string(), options);
}

void run_case(const fs::path& folder, CaseResult& result) {
  std::string problem;
  const std::vector<Array> inputs = read_arrays(folder / "test_data_set_0", "input", problem);
  const std::vector<Array> expected = read_arrays(folder / "test_data_set_0", "output", problem);
  if (!problem.empty()) {
    result.outcome = Outcome::Unsupported;
    result.text = problem;
    return;
  }
  // Operators such as Reshape and Range need values at compile time that these cases give as
  // inputs.
  Result<graph::Graph> graph = import_case(folder, inputs, inputs.size());
  for (size_t first : {size_t{1}, size_t{0}}) {
    if (graph) break;
    Result<graph::Graph> bound = import_case(folder, inputs, first);
    if (bound) graph = std::move(bound);
  }
  if (!graph) {
    result.outcome = is_unsupported(graph.error()) ? Outcome::Unsupported : Outcome::Fail;
    result.text = import_problem(graph.error());
    return;
  }
  for (const graph::Node& node : graph->nodes)
    if (node.domain.empty()) result.ops.insert(node.op);  // not what the importer adds of its own
  compile::CompileOptions options;
  options.jobs = 1;
  options.math = MathMode::Exact;
  Result<compile::CompiledModel> model = compile::compile_graph(*graph, options);
  if (!model) {
    result.text = "compile: " + short_text(model.error());
    return;
  }
  Result<std::unique_ptr<runtime::Session>> session = compile::open_session(*model, {.threads = 1});
  if (!session) {
    result.text = "load: " + short_text(session.error());
    return;
  }
  const std::vector<std::string> names =
      *graph::read_onnx_input_names((folder / "model.onnx").string());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool asked = std::any_of(
        model->program->inputs.begin(), model->program->inputs.end(),
        [&](int id) { return model->program->values[static_cast<size_t>(id)].name == names[i]; });
    if (!asked) continue;
    if (Status set = (*session)->set_input(names[i], inputs[i]); !set) {
      result.text = "input: " + short_text(set.error());
      return;
    }
  }
  if (Status ran = (*session)->run(); !ran) {
    result.text = "run: " + short_text(ran.error());
    return;
  }
  for (size_t i = 0; i < expected.size() && i < model->program->outputs.size(); ++i) {
    const auto id = static_cast<size_t>(model->program->outputs[i]);
    Result<Array> actual = (*session)->get_output(model->program->values[id].name);
    result.text = actual ? disagreement(*actual, expected[i]) : short_text(actual.error());
    if (!result.text.empty()) {
      result.text = fmt::format("output {}: {}", i, result.text);
      return;
    }
  }
  result.outcome = Outcome::Pass;
}

CaseResult guarded_case(const fs::path& folder) {
  CaseResult result;
  result.name = folder.filename().string();
  try {
    run_case(folder, result);
  } catch (const std::exception& bug) {
    result.outcome = Outcome::Fail;
    result.text = std::string("bug: ") + bug.what();
  }
  return result;
}

/// Of the page: how many cases, how many of them supported, passed, refused.
constexpr const char* kHead = R"(# Operators

`tilewright check model.onnx` says whether a model is supported: it names every operator that is
not, with the reason and what to do. This page says how well each operator is tested.

The ONNX backend cases (Debian's libonnx-testdata and PyPI's onnx) are {} small models of one
or a few operators. Tilewright supports the operators and types of {} of them; {} of these
give the expected results. The other {} are refused, each for the reason given at the end.
A case counts for every operator in it. Attention, DFT, RotaryEmbedding, STFT, NegativeLogLikelihoodLoss
and SoftmaxCrossEntropyLoss are read as the operators that they are made of, and have no rows. Other
operators without a row are in no case that is supported, or no node of them is left at run time, as
of Constant, Shape and those of the next paragraph.

If, Loop, Scan, Sequence*, SplitToSequence, ConcatFromSequence and Optional* are resolved when the model
is read: the branch taken, or the body once for each iteration, stands in the place of the node.
Numbers of iterations, lengths of sequences and positions in them must therefore be known at compile
time: they follow from constants, shapes and inputs bound by `--const`. A model with its loops unrolled
may have at most 20000 nodes. If may also depend on the run: both branches are computed, and one of the
results is taken. An index out of range in the other branch is no error then; a shape that does not fit,
or a place to scatter to, still is. Inputs and outputs of the model must be tensors.

The extents of inputs are fixed (`--dim`, `--shape`), but the run may decide others: how many elements
NonZero, Compress, Unique or NonMaxSuppression find. Each value may have one such extent, and it must
have a bound, as `min(1000, N)` has. Behind it work: operators that compute each row from that row
(convolutions of a batch, products, Softmax, element-wise ones), reductions, Shape and arithmetic with
extents, Reshape, Slice, Concat, Gather, TopK, Expand, Range, ConstantOfShape, RoiAlign, If. Compiled
code computes as many rows as there can be. So torchvision's SSD, RetinaNet, FCOS and Faster R-CNN run;
Mask R-CNN and Keypoint R-CNN are refused, since they loop over what they found. `check` says which
operator needs an extent that it cannot have.

Generated by `tests/onnx_cases/run.sh build/release/onnx_cases docs/operators.md`.

| operator | cases that pass | cases that fail |
|---|---|---|
)";

struct Tally {
  int pass = 0, fail = 0;
};

Status write_table(const std::string& path, const std::vector<CaseResult>& results, int supported) {
  std::map<std::string, Tally> tallies;
  std::map<std::string, int> reasons;
  int pass = 0, unsupported = 0;
  for (const CaseResult& result : results) {
    pass += result.outcome == Outcome::Pass;
    unsupported += result.outcome == Outcome::Unsupported;
    for (const std::string& op : result.ops)
      ++(result.outcome == Outcome::Pass ? tallies[op].pass : tallies[op].fail);
  }
  std::string text = fmt::format(kHead, results.size(), supported, pass, unsupported);
  for (const auto& [op, tally] : tallies)
    text += fmt::format("| {} | {} | {} |\n", op, tally.pass, tally.fail);
  text += driver::known_differences_section();
  text += "\n## Cases that fail\n\n";
  for (const CaseResult& result : results)
    if (result.outcome == Outcome::Fail)
      text += fmt::format("- `{}`: {}\n", result.name, result.text);
  text += "\n## Unsupported cases\n\n";
  for (const CaseResult& result : results)
    if (result.outcome == Outcome::Unsupported)
      text += fmt::format("- `{}`: {}\n", result.name, result.text);
  return write_file(path, text);
}

int run(const std::vector<std::string>& arguments) {
  double floor = 0;
  std::string table_path, only;
  bool verbose = false;
  std::vector<fs::path> cases;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--floor") {
      floor = std::stod(arguments.at(++i));
    } else if (word == "--table") {
      table_path = arguments.at(++i);
    } else if (word == "--only") {
      only = arguments.at(++i);
    } else if (word == "-v") {
      verbose = true;
    } else {
      for (const auto& entry : fs::directory_iterator(word))
        if (fs::exists(entry.path() / "model.onnx") &&
            entry.path().filename().string().find(only) != std::string::npos)
          cases.push_back(entry.path());
    }
  }
  std::sort(cases.begin(), cases.end());
  std::vector<CaseResult> results(cases.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < cases.size(); i = next++) results[i] = guarded_case(cases[i]);
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  int pass = 0, failed = 0, unsupported = 0;
  for (const CaseResult& result : results) {
    pass += result.outcome == Outcome::Pass;
    failed += result.outcome == Outcome::Fail;
    unsupported += result.outcome == Outcome::Unsupported;
    if (result.outcome == Outcome::Fail || (verbose && result.outcome == Outcome::Unsupported))
      fmt::print("{} {}: {}\n", result.outcome == Outcome::Fail ? "FAIL" : "unsupported",
                 result.name, result.text);
  }
  const double percent = pass + failed > 0 ? 100.0 * pass / (pass + failed) : 0;
  fmt::print("{} cases: {} pass, {} fail, {} unsupported; {:.1f} % of the supported pass\n",
             results.size(), pass, failed, unsupported, percent);
  if (!table_path.empty())
    if (Status written = write_table(table_path, results, pass + failed); !written)
      fmt::print(stderr, "{}", to_string(written.error()));
  return percent >= floor && !results.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) { return tilewright::run({argv + 1, argv + argc}); }
