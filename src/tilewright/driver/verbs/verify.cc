// verify: results against the interpreter and ONNX Runtime.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tilewright/base/names.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/device_need.h"
#include "tilewright/driver/fleet/remote.h"
#include "tilewright/driver/import_options.h"
#include "tilewright/driver/inputs/calibration_samples.h"
#include "tilewright/driver/inputs/ignored_options.h"
#include "tilewright/driver/subject.h"
#include "tilewright/driver/verify/checked_values.h"
#include "tilewright/driver/verify/compare_outputs.h"
#include "tilewright/driver/verify/known_differences.h"
#include "tilewright/driver/verify/ort_peer.h"
#include "tilewright/driver/verify/package_check.h"
#include "tilewright/driver/verify/reference.h"
#include "tilewright/driver/verify/rounding_limit.h"
#include "tilewright/driver/verify/verify_report.h"
#include "tilewright/graph/onnx/export.h"
#include "tilewright/measure/compare.h"

namespace tilewright::driver {
namespace {

struct VerifyOptions {
  SubjectOptions subject;
  WorkerChoice remote;
  std::string command;                      ///< as typed
  RemoteDevice* device = nullptr;           ///< of the fleet; null: here
  const TemporaryFolder* folder = nullptr;  ///< for what goes there
  std::string against;                      ///< empty: interp; a package's own samples
  std::string model;                        ///< what a package was made from; empty: not said
  bool per_node = false;
  std::string test_inputs;  ///< for f32: FILE.npz or random:N; empty: those of the calibration

  bool asks_for(const std::string& word) const {
    const std::string asked = against.empty() ? "interp" : against;
    return ("," + asked + ",").find("," + word + ",") != std::string::npos;
  }
};

Result<Named> interpret_subject(const Subject& subject,
                                const std::map<std::string, Array>& inputs) {
  if (subject.graph) {
    const std::map<std::string, Array> all = TW_TRY(run_reference(*subject.graph, inputs));
    return Named(all.begin(), all.end());
  }
  const std::map<std::string, Array> all = TW_TRY(run_reference(*subject.func, inputs));
  return Named(all.begin(), all.end());
}

/// A model file ONNX Runtime can read for this subject: its own, or the operator exported.
Result<std::string> model_file(const Subject& subject, const TemporaryFolder& folder,
                               bool changed_graph) {
  if (subject.package || subject.func) {
    return fail(ErrorKind::Usage, fmt::format("ONNX Runtime cannot run '{}'", subject.name),
                "it is no ONNX model", "name the model itself, or use --against interp");
  }
  if (!subject.path.empty() && !changed_graph) return subject.path;
  const std::string path = folder.file("model.onnx");
  TW_TRY_STATUS(graph::save_onnx(path, *subject.graph));
  return path;
}

/// The quantised model in standard operators. Node by node, each layer reads the integers that the
/// subject's layers made: those of `actual` that it has in the same form go to `inputs`.
Result<graph::Graph> standard_form(const Subject& subject, bool per_node, const Named& actual,
                                   std::map<std::string, Array>& inputs) {
  graph::Graph whole = TW_TRY(graph::to_qdq(subject.quantized->quantized));
  if (!per_node) return whole;
  std::map<std::string, const Array*> made;
  for (const auto& [name, array] : actual) made[name] = &array;
  std::set<std::string> given;
  for (size_t v = 0; v < whole.values.size(); ++v) {
    const graph::Value& value = whole.values[v];
    const auto found = made.find(value.name);
    if (found == made.end() || value.constant || found->second->dtype() != value.type.dtype ||
        found->second->shape() != value.type.shape)
      continue;
    if (value.type.dtype == DType::I8) {
      given.insert(value.name);
      inputs[value.name + graph::kGiven] = *found->second;
    } else {
      add_outputs(whole, {static_cast<graph::ValueId>(v)});
    }
  }
  return graph::layers_alone(whole, given);
}

Result<Named> ask_peer(OrtPeer& peer, const std::string& path, const OrtPeer::LoadOptions& load,
                       const std::map<std::string, Array>& inputs) {
  TW_TRY_STATUS(peer.load(path, load));
  TW_TRY_STATUS(peer.set_inputs(inputs));
  return peer.run();
}

Result<Named> ask_onnxruntime(OrtPeer& peer, const Subject& subject, const VerifyOptions& verify,
                              std::map<std::string, Array> inputs, const Named& actual) {
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  const SubjectOptions& options = verify.subject;
  const bool rebound =
      !options.dims.empty() || !options.shapes.empty() || !options.constants.empty();
  const bool more_outputs = verify.per_node || !before_final_activation(*subject.graph).empty();
  std::string path;
  if (subject.quantized) {  // the same scales as a standard model
    path = folder.file("model.onnx");
    TW_TRY_STATUS(
        graph::save_onnx(path, TW_TRY(standard_form(subject, verify.per_node, actual, inputs))));
  } else {
    path = TW_TRY(model_file(subject, folder, rebound || more_outputs));
  }
  OrtPeer::LoadOptions load;
  load.threads = threads_of(options);
  load.optimise = !subject.quantized;  // fused forms round in other places
  Result<Named> outputs = ask_peer(peer, path, load, inputs);
  if (outputs || !load.optimise || outputs.error().kind != ErrorKind::Tool) return outputs;
  load.optimise = false;  // some nodes end its process only in the layouts that it optimises for
  return ask_peer(*TW_TRY(OrtPeer::start()), path, load, inputs);
}

Result<Named> outputs_of(const Runnable& runnable) {
  Named outputs;
  const runtime::Program& program = runnable.session->program();
  for (int id : program.outputs) {
    const std::string& name = program.values[id].name;
    outputs.emplace_back(name, TW_TRY(runnable.session->get_output(name)));
  }
  return outputs;
}

/// The graph as the accelerator has it (quantised, tiled), computed by compiled code on this CPU.
Result<Named> compute_on_cpu(const Subject& subject, const SubjectOptions& options,
                             const std::map<std::string, Array>& inputs) {
  if (!subject.graph)
    return fail(ErrorKind::Usage,
                fmt::format("--against cpu is not possible for '{}'", subject.name),
                "it compiles the model again, and this is no ONNX model");
  SubjectOptions on_cpu = options;
  on_cpu.target = on_cpu.device = "cpu";
  on_cpu.hw = on_cpu.quantize = on_cpu.dump_program = "";
  on_cpu.designs = SubjectOptions().designs;
  Runnable runnable = TW_TRY(make_runnable(subject, on_cpu));
  for (const auto& [name, value] : inputs) TW_TRY_STATUS(runnable.session->set_input(name, value));
  TW_TRY_STATUS(run(runnable));
  return outputs_of(runnable);
}

/// Whether sums are scaled by multipliers in integers: ONNX Runtime does so in f32.
bool has_multipliers(const graph::Graph& quantized) {
  return std::any_of(quantized.nodes.begin(), quantized.nodes.end(), [](const graph::Node& node) {
    return node.op == "Requantize" && node.inputs.size() > 3 && node.inputs[3] >= 0;
  });
}

std::map<std::string, RoundingLimit> named_limits(const graph::Graph& graph,
                                                  const std::vector<RoundingLimit>& all) {
  std::map<std::string, RoundingLimit> limits;
  for (size_t id = 0; id < all.size(); ++id) limits[graph.values[id].name] = all[id];
  return limits;
}

/// What each value may differ by besides the rounding of floats. Accelerators and their references
/// round alike; ONNX Runtime does as long as its floats hold every integer on the way.
Result<std::map<std::string, RoundingLimit>> limits_by_name(const Subject& subject,
                                                            const std::string& against, bool tf32,
                                                            bool per_node) {
  if (!subject.graph) return std::map<std::string, RoundingLimit>();
  if (!subject.quantized)
    return named_limits(*subject.graph, rounding_limits(*subject.graph, tf32));
  if (against != "ort") return std::map<std::string, RoundingLimit>();
  const graph::Graph& integer = subject.quantized->quantized.graph;
  const std::vector<RoundingLimit> layers = layer_limits(integer);
  const bool off = std::any_of(layers.begin(), layers.end(),
                               [](const RoundingLimit& limit) { return limit.absolute > 0; });
  if (!has_multipliers(integer) && (per_node || !off)) return named_limits(integer, layers);
  const graph::Graph standard = TW_TRY(graph::to_qdq(subject.quantized->quantized));
  return named_limits(standard, rounding_limits(standard, tf32));
}

/// The node of `graph` that computes the value called `name`.
std::string node_of(const graph::Graph& graph, const std::string& name) {
  for (const graph::Node& node : graph.nodes)
    for (const graph::ValueId id : node.outputs)
      if (id >= 0 && graph.values[static_cast<size_t>(id)].name == name)
        return fmt::format("node '{}' ({})", node.name, node.op);
  return "";
}

/// An operator that ONNX does not have, by itself: only the interpreter knows it.
bool is_own_operator(const Subject& subject) {
  return subject.single_operator && subject.graph && !subject.graph->nodes[0].domain.empty();
}

/// ONNX Runtime, if it is asked. Before all that takes long, since it may be missing.
Result<std::unique_ptr<OrtPeer>> start_peer(const Subject& subject, const VerifyOptions& options) {
  if (!options.asks_for("ort") || is_own_operator(subject)) return nullptr;
  if (!subject.graph) TW_TRY(model_file(subject, TW_TRY(TemporaryFolder::create()), true));
  return OrtPeer::start();
}

/// What `against` computes. Nothing if it cannot know the operator. `peer`: of start_peer.
Result<std::optional<Named>> ask(const Subject& subject, const std::string& against,
                                 const VerifyOptions& options, OrtPeer* peer,
                                 const std::map<std::string, Array>& inputs, const Named& actual) {
  if (against == "interp") return TW_TRY(interpret_subject(subject, inputs));
  if (is_own_operator(subject)) return std::nullopt;
  if (against == "cpu") return TW_TRY(compute_on_cpu(subject, options.subject, inputs));
  return TW_TRY(ask_onnxruntime(*peer, subject, options, inputs, actual));
}

/// The model with all nodes that ONNX Runtime may compute otherwise: when a model is read, nodes on
/// constants become constants, and a difference could not be traced to them. As read, if that
/// cannot be.
Result<graph::Graph> with_suspects(const Subject& subject, const SubjectOptions& options) {
  if (subject.path.empty() || subject.quantized) return *subject.graph;
  graph::ImportOptions import = TW_TRY(import_options(options));
  import.evaluate = [evaluate = import.evaluate](const tensor::OpCall& call,
                                                 const std::vector<Array>& inputs) {
    if (may_differ(call.domain, call.op))
      return Result<std::vector<Array>>(fail(ErrorKind::Unsupported, "it stays a node"));
    return evaluate(call, inputs);
  };
  Result<graph::Graph> whole = graph::import_onnx(subject.path, import);
  return whole ? *std::move(whole) : *subject.graph;
}

/// Adds to the rows that are off where the references are known to differ.
Status explain(std::vector<Row>& rows, const Subject& subject, const SubjectOptions& options) {
  const auto off = [](const Row& row) { return !row.difference.ok(); };
  if (!subject.graph || std::none_of(rows.begin(), rows.end(), off)) return {};
  const graph::Graph graph = TW_TRY(with_suspects(subject, options));
  for (Row& row : rows)
    for (size_t id = 0; off(row) && id < graph.values.size(); ++id)
      if (graph.values[id].name == row.output)
        row.known = known_differences_of(graph, static_cast<graph::ValueId>(id));
  return {};
}

/// What is compared, and the inputs that it is the result of.
struct Computed {
  std::map<std::string, Array> inputs;
  Named actual;
  bool tf32 = false;
};

Result<Computed> compute_here(const Subject& subject, const VerifyOptions& options,
                              const Subject* package) {
  Runnable runnable =
      TW_TRY(make_runnable(package != nullptr ? *package : subject, options.subject));
  runnable.inputs = input_types(runnable.session->program(), subject);
  Computed computed;
  computed.inputs =
      TW_TRY(make_inputs(runnable.inputs, TW_TRY(parse_input_specs(options.subject.inputs)),
                         options.subject.seed, options.subject.files));
  for (const auto& [name, value] : computed.inputs)
    TW_TRY_STATUS(runnable.session->set_input(name, value));
  TW_TRY_STATUS(run(runnable));
  for (auto& [name, value] : TW_TRY(outputs_of(runnable)))
    computed.actual.emplace_back(name, value.clone());
  computed.tf32 = runnable.session->program().notes.contains("tf32");
  return computed;
}

Result<Computed> compute_there(const Subject& subject, const VerifyOptions& options,
                               const Subject* package) {
  const RemotePackage remote = TW_TRY(remote_package(
      package != nullptr ? *package : subject, options.subject, *options.device, *options.folder));
  const runtime::Program& program = remote.package->program();
  Computed computed;
  computed.inputs = TW_TRY(make_inputs(input_types(program, subject),
                                       TW_TRY(parse_input_specs(options.subject.inputs)),
                                       options.subject.seed, options.subject.files));
  computed.actual = remote_outputs(TW_TRY(
      run_remote(*options.device, remote, computed.inputs, options.subject, {}, options.command)));
  computed.tf32 = program.notes.contains("tf32");
  return computed;
}

/// `package`: whose results are compared; nullptr: those of `subject`, compiled now.
Result<std::vector<Row>> verify_subject(Subject subject, const VerifyOptions& options,
                                        const Subject* package) {
  if (subject.package) {
    if (options.against.empty() && !options.per_node && options.device == nullptr)
      return verify_by_samples(subject, options.subject);
    return fail(ErrorKind::Usage,
                fmt::format("--{} needs the model that '{}' was made from",
                            options.per_node ? "per-node" : "against", subject.name),
                "a package holds compiled code, not the operators' definitions",
                "--model MODEL.onnx; without both, the package's own samples are checked");
  }
  if (package != nullptr) TW_TRY_STATUS(check_made_from(*package, subject));
  CompareSettings settings;
  settings.math = options.subject.math == "exact" ? MathMode::Exact : MathMode::Fast;
  settings.first_only = options.per_node;
  if (subject.graph) {
    for (const graph::ValueId id : subject.graph->outputs)
      settings.required.insert(subject.graph->values[id].name);
    if (package == nullptr)
      add_checked_values(*subject.graph, options.per_node, subject.quantized.has_value());
  }
  const std::unique_ptr<OrtPeer> peer = TW_TRY(start_peer(subject, options));
  const Computed computed =
      TW_TRY(options.device == nullptr ? compute_here(subject, options, package)
                                       : compute_there(subject, options, package));
  const auto& [inputs, actual, tf32] = computed;
  std::vector<Row> rows;
  for (const std::string against : {"interp", "ort", "cpu"}) {
    if (!options.asks_for(against)) continue;
    const std::optional<Named> reference =
        TW_TRY(ask(subject, against, options, peer.get(), inputs, actual));
    if (!reference) continue;
    CompareSettings mine = settings;
    mine.limits = TW_TRY(limits_by_name(subject, against, tf32, options.per_node));
    if (against == "ort" &&
        !subject.quantized)  // a quantised model is exported with other names inside
      for (const auto& output : *reference) mine.required.insert(output.first);
    std::vector<Row> compared = compare_outputs(subject.name, against, actual, *reference, mine);
    if (against == "ort") TW_TRY_STATUS(explain(compared, subject, options.subject));
    for (Row& row : compared) {
      if (options.per_node && subject.graph) row.node = node_of(*subject.graph, row.output);
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty())
    return fail(ErrorKind::Mismatch, fmt::format("nothing of '{}' was compared", subject.name),
                fmt::format("'{}' has no value of it to compare with", options.against),
                "verify it --against interp");
  return rows;
}

/// The loss of quantisation, over the samples that the user names or those of the calibration.
Result<QuantizationLoss> loss_of(const Subject& subject, const VerifyOptions& options) {
  if (!subject.quantized || !subject.quantized->prepared)
    return fail(ErrorKind::Usage, fmt::format("'{}' was not quantised here", subject.name),
                subject.quantized
                    ? "the model came in integers, there is no f32 model to compare with"
                    : "--against f32 shows what 8-bit integers cost",
                subject.quantized ? "--against ort" : "--target vta --quantize FILE.npz");
  const compile::CompileOptions compile = TW_TRY(compile_options(options.subject));
  if (options.test_inputs.empty())
    return quantization_loss(*subject.quantized, subject.quantized->calibration, compile);
  const compile::Samples samples =
      TW_TRY(load_samples(options.test_inputs, options.subject.seed, *subject.quantized->prepared));
  return quantization_loss(*subject.quantized, samples, compile);
}

/// The package's model, if one is named.
Result<std::optional<Subject>> model_of(const Subject& package, const VerifyOptions& options) {
  if (options.model.empty()) return std::nullopt;
  if (!package.package)
    return fail(ErrorKind::Usage, "--model is for packages",
                fmt::format("'{}' is none", package.name), "leave it out");
  if (options.per_node)
    return fail(ErrorKind::Usage, "--per-node compares values inside a model",
                "a package hands out its outputs only", "verify the model --per-node");
  SubjectOptions model = options.subject;
  model.paths = {options.model};
  return std::move(TW_TRY(load_subjects(model)).at(0));
}

/// That the words of `--against` are known ones. errors: Usage.
Status check_against(const std::string& against) {
  const std::vector<std::string> words = {"interp", "ort", "cpu", "f32"};
  for (size_t start = 0; !against.empty() && start <= against.size();) {
    const size_t end = std::min(against.find(',', start), against.size());
    const std::string word = against.substr(start, end - start);
    if (std::find(words.begin(), words.end(), word) == words.end())
      return fail(ErrorKind::Usage, fmt::format("cannot verify against '{}'", word),
                  fmt::format("it takes {}", fmt::join(words, ", ")), did_you_mean(word, words));
    start = end + 1;
  }
  return {};
}

/// What does something only beside a certain `--against`. errors: Usage.
Status check_choices(const VerifyOptions& options) {
  if (!options.test_inputs.empty() && !options.asks_for("f32"))
    return fail(ErrorKind::Usage, "--test-inputs does nothing without --against f32",
                "they show what integers cost", "--against f32, or leave --test-inputs out");
  if (options.per_node && options.against == "f32")
    return fail(ErrorKind::Usage, "--per-node does nothing with --against f32 alone",
                "f32 is compared at the outputs", "--against f32,interp, or leave --per-node out");
  return {};
}

/// All subjects, on one place.
Status verify_all(const VerifyOptions& options, VerifyReport& report) {
  const std::vector<Subject> subjects = TW_TRY(load_subjects(options.subject));
  // A model beside the package is compiled as the options say; a fleet's device sets some itself.
  if (options.model.empty() && options.device == nullptr) note_ignored(subjects, options.subject);
  TW_TRY_STATUS(check_against(options.against));
  const std::string place = options.device == nullptr ? "" : options.device->selected.device_class;
  for (const Subject& subject : subjects) {
    if (options.asks_for("f32")) report.add(TW_TRY(loss_of(subject, options)), subject.name);
    if (options.against == "f32") continue;
    const std::optional<Subject> model = TW_TRY(model_of(subject, options));
    for (const Row& row :
         TW_TRY(verify_subject(model ? *model : subject, options, model ? &subject : nullptr)))
      report.add(row, place);
  }
  return {};
}

Result<int> verify(const VerifyOptions& options, bool as_json) {
  TW_TRY_STATUS(check_choices(options));
  VerifyReport report(options.per_node);
  if (options.remote.workers.empty()) TW_TRY_STATUS(verify_all(options, report));
  for (const std::string& worker : options.remote.workers) {
    const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
    RemoteDevice device = TW_TRY(find_remote(options.remote, worker, options.subject.records,
                                             package_need(options.subject)));
    VerifyOptions there = options;
    there.device = &device;
    there.folder = &folder;
    there.subject = TW_TRY(for_device(options.subject, device, folder));
    TW_TRY_STATUS(verify_all(there, report));
  }
  if (as_json)
    print_json(report.document());
  else
    fmt::print("{}", report.text(options.against == "f32"));
  return report.good() ? 0 : exit_code(ErrorKind::Mismatch);
}

}  // namespace

void add_verify(Verb app, VerbContext& context) {
  Verb verb = app.add_verb(
      "verify",
      "Compares results with the interpreter and ONNX Runtime; exit code 5 if they differ");
  auto options = std::make_shared<VerifyOptions>();
  add_run_options(verb, options->subject, true);
  add_input_options(verb, options->subject);
  add_worker_options(verb, options->remote);
  verb.add_option(
      "--against", options->against,
      "interp, ort, cpu, f32 (what quantisation costs), or several with commas (default "
      "interp; of a package its samples)");
  verb.add_option("--test-inputs", options->test_inputs,
                  "for f32: FILE.npz, arrays named as the inputs (default: the calibration's)");
  verb.add_option("--model", options->model, "compare a package with this model");
  options->subject.verify_weights = true;
  verb.add_flag("--per-node", options->per_node, "compare every node, name the first that is off");
  verb.callback([&context, options] {
    options->command = context.command;
    context.action = [&context, options] { return verify(*options, context.json); };
  });
}

}  // namespace tilewright::driver
