// From what the user named to something that runs: the options that were given become a target and
// settings, files become graphs or packages, and for an accelerator the graph is quantised and laid
// out.
//
// Example: `verify m.onnx --target vta --quantize c.npz` loads the graph, asks the back-end of
// `vta` to prepare it (int8, tiles), compiles that, and opens a device that can run it; `run p.twm`
// opens a package, which needs none of these steps.
#include "tilewright/driver/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tilewright/base/check.h"
#include "tilewright/base/file.h"
#include "tilewright/base/names.h"
#include "tilewright/compile/backends.h"
#include "tilewright/compile/evaluate.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/import_options.h"
#include "tilewright/driver/inputs/calibration_samples.h"
#include "tilewright/driver/inputs/samples.h"
#include "tilewright/driver/inputs/workload.h"
#include "tilewright/driver/tuning/gpu_knowledge.h"
#include "tilewright/driver/tuning/machine_rates.h"
#include "tilewright/driver/tuning/record_place.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/records/open/open.h"
#include "tilewright/runtime/thread_pool.h"
#include "tilewright/tensor/text.h"

namespace tilewright::driver {
namespace {

bool parse_int(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

tl::unexpected<Error> given_twice(const std::string& option) {
  return fail(ErrorKind::Usage, fmt::format("{} is given more than once", option), {},
              "leave all but one out");
}

Result<std::map<std::string, int64_t>> parse_dims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    int64_t value = 0;
    const bool named = equals != std::string::npos && equals > 0;
    if (!named || !parse_int(text.substr(equals + 1), value) || value < 0)
      return fail(ErrorKind::Usage, fmt::format("--dim '{}' is not NAME=EXTENT", text), {},
                  "--dim batch=1");
    if (!dims.emplace(text.substr(0, equals), value).second)
      return given_twice("--dim " + text.substr(0, equals));
  }
  return dims;
}

Result<std::map<std::string, Shape>> parse_shapes(const std::vector<std::string>& texts) {
  std::map<std::string, Shape> shapes;
  for (const std::string& text : texts) {
    const size_t colon = text.rfind(':');
    Shape shape;
    bool good = colon != std::string::npos && colon > 0;
    for (size_t start = colon + 1; good && start < text.size();) {
      const size_t end = std::min(text.find('x', start), text.size());
      int64_t extent = 0;
      good = parse_int(std::string_view(text).substr(start, end - start), extent) && extent >= 0;
      shape.push_back(extent);
      start = end + 1;
    }
    if (!good)
      return fail(ErrorKind::Usage, fmt::format("--shape '{}' is not INPUT:1x3x224x224", text));
    if (!shapes.emplace(text.substr(0, colon), shape).second)
      return given_twice("--shape " + text.substr(0, colon));
  }
  return shapes;
}

std::string stem(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  return file.substr(0, file.rfind('.'));
}

Result<Subject> load_path(const std::string& path, const SubjectOptions& options) {
  Subject subject;
  subject.name = stem(path);
  subject.path = path;
  if (path.ends_with(".twm")) {
    const auto start = std::chrono::steady_clock::now();
    runtime::OpenOptions open;
    open.verify_weights = options.verify_weights;
    open.load_code = !options.elsewhere;
    subject.package = TW_TRY(runtime::Package::open(path, open));
    subject.open_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } else if (path.ends_with(".tw")) {
    if (!options.dims.empty() || !options.shapes.empty() || !options.constants.empty())
      return fail(ErrorKind::Usage, "--dim, --shape and --const are for models",
                  fmt::format("{} gives its sizes itself", path), "change the sizes in the file");
    Result<Func> func = tensor::parse_tensor_file(TW_TRY(read_file(path)));
    if (!func) return tl::unexpected<Error>(std::move(func.error()).at(path));
    subject.func = *std::move(func);
  } else {
    subject.graph = TW_TRY(graph::import_onnx(path, TW_TRY(import_options(options))));
    for (const std::string& warning : subject.graph->warnings) say("warning: " + warning);
  }
  return subject;
}

}  // namespace

Result<graph::ImportOptions> import_options(const SubjectOptions& options) {
  graph::ImportOptions import;
  import.dims = TW_TRY(parse_dims(options.dims));
  import.shapes = TW_TRY(parse_shapes(options.shapes));
  import.allow_newer_opset = options.allow_newer_opset;
  import.evaluate = compile::make_evaluate(console_observer());
  for (const InputSpec& spec : TW_TRY(parse_input_specs(options.constants))) {
    if (spec.name.empty() || !spec.value.starts_with("@"))
      return fail(ErrorKind::Usage, fmt::format("--const {} needs a name and a file", spec.name),
                  {}, fmt::format("--const {}=@value.npy", spec.name.empty() ? "x" : spec.name));
    if (!import.constants.emplace(spec.name, TW_TRY(read_npy(spec.value.substr(1)))).second)
      return given_twice("--const " + spec.name);
  }
  return import;
}

int threads_of(const SubjectOptions& options) {
  return options.threads > 0 ? options.threads : runtime::default_threads();
}

namespace {

/// What must be there: models, workload, samples to calibrate with, values of inputs.
std::vector<std::string> needed_files(const SubjectOptions& options) {
  std::vector<std::string> files = options.paths;
  if (!options.workload.empty()) files.push_back(options.workload);
  const std::string& samples = options.quantize;
  if (!samples.empty() && samples != "random" && !samples.starts_with("random:"))
    files.push_back(samples);
  for (const std::vector<std::string>* texts : {&options.constants, &options.inputs})
    for (const std::string& text : *texts) {
      const std::string value = text.starts_with("@") ? text : text.substr(text.find('=') + 1);
      if (value.starts_with("@")) files.push_back(value.substr(1));
    }
  return files;
}

}  // namespace

std::vector<std::string> input_files(const SubjectOptions& options) {
  std::vector<std::string> files = needed_files(options);
  files.insert(files.end(), {options.hw, records::store_file(record_place(options.records).name)});
  return files;
}

namespace {

/// What the user asked for, with typical rates and without records: no schedule is chosen by it.
Result<compile::CompileOptions> unfitted_options(const SubjectOptions& options);
Status check_fit(const std::string& subject, const std::set<std::string>& kinds,
                 const SubjectOptions& options);

/// An operator is no network to quantise: where Funcs are taken, it is its definition.
Status prepare_operator(Subject& subject, const compile::CompileOptions& compile) {
  if (!compile::backend_of(compile.target).takes_funcs()) return {};
  subject.func =
      TW_TRY(tensor::op_func(graph::op_call(*subject.graph, subject.graph->nodes.at(0))));
  subject.graph.reset();
  subject.single_operator = false;
  return {};
}

/// For an accelerator the graph is replaced by its quantised, tiled form.
Status prepare(Subject& subject, const SubjectOptions& options) {
  if (subject.package) return {};
  const compile::CompileOptions compile = TW_TRY(unfitted_options(options));
  TW_TRY_STATUS(check_fit(subject.name, {compile.target.backend}, options));
  if (compile.target.kind != hw::TargetKind::Accelerator) {
    if (options.fallback != "cpu" && !options.per_channel) return {};
    return fail(ErrorKind::Usage,
                options.per_channel ? "--per-channel is for accelerators"
                                    : "--fallback cpu is for accelerators",
                fmt::format("the target is {}", options.target), "--target vta, or leave them out");
  }
  if (subject.single_operator) return prepare_operator(subject, compile);
  if (!subject.graph && compile::backend_of(compile.target).takes_funcs()) return {};
  if (!subject.graph)
    return fail(ErrorKind::Usage, fmt::format("'{}' is no ONNX model", subject.name),
                fmt::format("{} takes whole models", options.target));
  compile::QuantizeSettings settings;
  if (!options.quantize.empty())
    settings.samples = [&](const graph::Graph& graph) {
      return load_samples(options.quantize, options.seed, graph);
    };
  settings.per_channel = options.per_channel;
  settings.allow_cpu = options.fallback == "cpu";
  const compile::Backend& backend = compile::backend_of(compile.target);
  auto prepared = TW_TRY(backend.prepare(*subject.graph, settings, compile));
  if (!prepared) return {};
  subject.graph = prepared->laid_out;
  subject.placements = prepared->placements;
  subject.memo = prepared->memo;
  if (!prepared->quantized.graph.nodes.empty()) subject.quantized = std::move(prepared);
  return {};
}

}  // namespace

Status check_paths(const SubjectOptions& options) {
  for (const std::string& path : needed_files(options)) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) continue;
    const std::filesystem::path wanted(path);
    const std::filesystem::path folder = wanted.has_parent_path() ? wanted.parent_path() : ".";
    std::vector<std::string> there;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      there.push_back((wanted.parent_path() / entry.path().filename()).string());
    return fail(ErrorKind::Io, fmt::format("cannot open '{}'", path), "No such file or directory",
                did_you_mean(path, there));
  }
  return {};
}

Result<std::vector<Subject>> load_subjects(const SubjectOptions& options) {
  TW_TRY_STATUS(check_paths(options));
  // What is wrong with the target is wrong for all models; packages have theirs.
  if (!options.workload.empty() ||
      std::any_of(options.paths.begin(), options.paths.end(),
                  [](const std::string& path) { return !path.ends_with(".twm"); }))
    TW_TRY(unfitted_options(options));
  std::vector<Subject> subjects;
  for (const std::string& path : options.paths) {
    subjects.push_back(TW_TRY(load_path(path, options)));
    if (Status status = prepare(subjects.back(), options); !status)
      return tl::unexpected<Error>(std::move(status.error()).at(path));
    TW_TRY_STATUS(check_interrupt());
  }
  if (!options.workload.empty()) {
    for (Subject& subject : TW_TRY(load_workload(options))) {
      if (Status status = prepare(subject, options); !status)
        return tl::unexpected<Error>(std::move(status.error()).at(subject.name));
      subjects.push_back(std::move(subject));
    }
  }
  if (subjects.empty())
    return fail(ErrorKind::Usage, "nothing to work on", {},
                "name a model.onnx or file.tw, or give --workload FILE.json");
  return subjects;
}

namespace {

/// errors: Device (no such device).
Status check_device(const SubjectOptions& options) {
  if (options.device.empty()) return {};
  const std::string kind = compile::backend_name(options.device);
  std::vector<std::string> ids;
  const compile::Backend* named = compile::find_backend(kind);
  for (const compile::DeviceEntry& entry : compile::all_devices()) {
    const std::string& id = entry.row.id;
    // `opencl:1` is the second device of a kind.
    const bool numbered = named != nullptr && named->runtime().implies_target() && id == kind;
    if (id == options.device || numbered || options.device == entry.target) return {};
    ids.push_back(id);
  }
  const std::string near = did_you_mean(options.device, ids);
  return fail(ErrorKind::Device, fmt::format("there is no device '{}'", options.device),
              fmt::format("the devices are: {}", fmt::join(ids, ", ")),
              near.empty() ? "tilewright devices" : near);
}

/// Whether --device can run code of one of `kinds`. errors: Device (it cannot).
Status check_fit(const std::string& subject, const std::set<std::string>& kinds,
                 const SubjectOptions& options) {
  const std::string kind = compile::backend_name(options.device);
  if (kind.empty() || kinds.count(kind) > 0) return {};
  return fail(ErrorKind::Device, fmt::format("'{}' does not run on {}", subject, options.device),
              fmt::format("its code is for {}", fmt::join(kinds, ", ")),
              fmt::format("compile with --target {}, or leave --device out", kind));
}

/// What a package needs: `cpu`, or the devices of its launches.
std::set<std::string> kinds_of(const runtime::Program& program) {
  std::set<std::string> kinds;
  for (const auto& [name, launch] : program.launches) kinds.insert(launch.device);
  if (kinds.empty()) kinds.insert("cpu");
  return kinds;
}

Result<compile::CompileOptions> unfitted_options(const SubjectOptions& options) {
  compile::CompileOptions compile;
  compile.observer = console_observer();
  TW_TRY_STATUS(check_device(options));
  compile.target = TW_TRY(target_of(options));
  compile.memo = compile::backend_of(compile.target).make_memo();
  if (options.tf32 && options.math == "exact")
    return fail(ErrorKind::Usage, "--tf32 and --math exact exclude each other",
                "--tf32 rounds the factors of products", "leave one of them out");
  if (compile.target.kind == hw::TargetKind::Gpu && !options.backend.empty())
    return fail(
        ErrorKind::Usage, "--backend is for processors",
        fmt::format("the target is {}, for which there is one code generator", compile.target.name),
        "leave one of them out");
  compile.threads = threads_of(options);
  compile.math = options.math == "exact" ? MathMode::Exact : MathMode::Fast;
  compile.direct = options.direct;
  compile.level = options.level;
  compile.use_c = options.backend == "c";
  compile.jobs = runtime::default_threads();
  return compile;
}

}  // namespace

Result<hw::Target> target_of(const SubjectOptions& options) {
  std::string name = options.target;
  // A GPU's name says what to compile for.
  const compile::Backend* device = compile::find_backend(compile::backend_name(options.device));
  if (name == "cpu" && device != nullptr && device->runtime().implies_target())
    name = device->name();
  return compile::find_target(
      name, {options.hw, !options.quantize.empty(), options.tf32, options.designs == "own"});
}

Result<compile::CompileOptions> compile_options(const SubjectOptions& options) {
  compile::CompileOptions compile = TW_TRY(unfitted_options(options));
  if (auto* cpu = std::get_if<hw::CpuTarget>(&compile.target.special))
    if (cpu->name == hw::host().name) cpu->rates = machine_rates(!options.no_calibrate);
  if (compile.target.gpu() != nullptr) {
    TW_TRY_STATUS(use_gpu_knowledge(compile, options));
  } else if (!options.no_records) {
    StoredRecords stored = TW_TRY(stored_records(options.records, record_keys(compile)));
    compile.tuned = std::move(stored.schedules);
    compile.form = std::move(stored.forms);
    compile.network = std::move(stored.networks);
  }
  return compile;
}

Result<compile::CompiledModel> compile_subject(const Subject& subject,
                                               const compile::CompileOptions& options) {
  const PromptEnd prompt;
  if (!subject.graph) return compile::compile_func(*subject.func, options);
  compile::CompileOptions again = options;
  if (subject.memo) again.memo = subject.memo;
  return compile::compile_graph(*subject.graph, again);
}

namespace {

runtime::SessionOptions session_options(const SubjectOptions& options, bool record_times,
                                        const std::shared_ptr<compile::LaunchLog>& log) {
  runtime::SessionOptions session;
  session.threads = threads_of(options);
  session.flush_denormals = true;
  compile::LaunchSettings launch;
  launch.device = options.device == "cpu" ? "" : options.device;
  launch.record_times = record_times;
  launch.dump_folder = options.dump_program;
  launch.observer = console_observer();
  session.load_launch = compile::make_launch_loader(launch, log);
  return session;
}

}  // namespace

Result<Runnable> make_recorded(const Runnable& runnable, const Subject& subject,
                               const SubjectOptions& options) {
  Runnable recorded;
  recorded.launches = std::make_shared<compile::LaunchLog>();
  recorded.inputs = runnable.inputs;
  const runtime::SessionOptions session = session_options(options, true, recorded.launches);
  recorded.session = runnable.model ? TW_TRY(compile::open_session(*runnable.model, session))
                                    : TW_TRY(runtime::Session::create(subject.package, session));
  return recorded;
}

Status run(const Runnable& runnable) {
  Status status = runnable.session->run();
  const bool ours =
      !status && runnable.model.has_value() && status.error().kind == ErrorKind::Package;
  TW_CHECK(!ours, "{}", to_string(status.error()));
  return status;
}

namespace {

/// That --dump-program has something to write: programs of an accelerator. errors: Usage.
Status check_dumps(const std::string& subject, const runtime::Program& program) {
  for (const auto& [name, launch] : program.launches)
    if (const compile::Backend* backend = compile::find_backend(launch.device);
        backend != nullptr && backend->runtime().programs() != nullptr)
      return {};
  return fail(ErrorKind::Usage, fmt::format("'{}' has no program for an accelerator", subject),
              "--dump-program writes those", "leave --dump-program out");
}

}  // namespace

std::vector<InputType> input_types(const runtime::Program& program, const Subject& subject) {
  std::map<std::string, InputLimits> limits;
  if (subject.graph) limits = input_limits(*subject.graph);
  if (subject.package) limits = sample_limits(*subject.package);
  std::vector<InputType> types;
  for (int id : program.inputs) {
    const auto& input = program.values[static_cast<size_t>(id)];
    const auto found = limits.find(input.name);
    types.push_back({input.name, input.dtype, input.shape,
                     found == limits.end() ? std::optional<InputLimits>() : found->second});
  }
  return types;
}

Result<Runnable> make_runnable(const Subject& subject, const SubjectOptions& options) {
  Runnable runnable;
  runnable.launches = std::make_shared<compile::LaunchLog>();
  const runtime::SessionOptions session =
      session_options(options, options.record_times, runnable.launches);
  TW_TRY_STATUS(check_device(options));
  if (subject.package) {
    TW_TRY_STATUS(check_fit(subject.name, kinds_of(subject.package->program()), options));
    if (!options.hw.empty())
      TW_TRY_STATUS(compile::check_package_hardware(*subject.package, options.hw));
    runnable.session = TW_TRY(runtime::Session::create(subject.package, session));
  } else {
    compile::CompileOptions compile = TW_TRY(compile_options(options));
    TW_TRY_STATUS(check_fit(subject.name, {compile.target.backend}, options));
    compile.copies_apart = subject.single_operator;
    if (std::string why = hw::why_not_here(compile.cpu()); !why.empty())
      return fail(ErrorKind::Device,
                  fmt::format("code for target {} does not run on this machine", options.target),
                  std::move(why), "leave --target out");
    runnable.model = TW_TRY(compile_subject(subject, compile));
    say_tuned(*runnable.model);
    say_elsewhere(*runnable.model, compile, options.records, options.device);
    runnable.session = TW_TRY(compile::open_session(*runnable.model, session));
  }
  if (!options.dump_program.empty())
    TW_TRY_STATUS(check_dumps(subject.name, runnable.session->program()));
  runnable.inputs = input_types(runnable.session->program(), subject);
  return runnable;
}

}  // namespace tilewright::driver
