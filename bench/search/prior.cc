// How good the model's ranking of the constructive space is: schedules of an operator's main kernel
// run in turn, the first by the model and some drawn at random.
// Usage: bench_prior --workload FILE [--every N] [--from I] [--count C] [--id TEXT] [--threads N]
// [--first N] [--random N] [--seconds S] [--show N] [--math fast|exact|direct] [--around CMD]
// Percent is the best time found over that of the rule's schedule; rho is Spearman's correlation of
// predicted and measured times. --around: put before a command, it keeps the machine quiet while
// that runs; used while times are taken, not while schedules are compiled.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "tilewright/base/process.h"
#include "tilewright/base/rank_correlation.h"
#include "tilewright/base/rng.h"
#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/driver/subject.h"
#include "tilewright/lower/lower.h"
#include "tilewright/rules/common/work.h"
#include "tilewright/runtime/thread_pool.h"
#include "tilewright/tune/space.h"

namespace tilewright {
namespace {

struct Options {
  driver::SubjectOptions subjects;
  int every = 3, from = 0, count = 1000, first = 16, random = 16, show = 0;
  double seconds = 1;  ///< of measuring per operator
  std::string around;
};

/// Keeps the machine quiet for its lifetime, by a command put before one that others wait for.
class Quiet {
 public:
  explicit Quiet(const std::string& around) {
    if (around.empty()) return;
    Result<TemporaryFolder> folder = TemporaryFolder::create();
    if (!folder) return;
    folder_.emplace(*std::move(folder));
    const std::string wait =
        fmt::format("echo ready; while [ -d {} ]; do sleep 0.05; done", folder_->path());
    pipe_ = ::popen(fmt::format("{} sh -c '{}'", around, wait).c_str(), "r");
    if (pipe_ != nullptr) std::fgetc(pipe_);
  }
  ~Quiet() {
    folder_.reset();
    if (pipe_ != nullptr) ::pclose(pipe_);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  std::optional<TemporaryFolder> folder_;
  std::FILE* pipe_ = nullptr;
};

/// A schedule as code, with what it was predicted and measured to take.
struct Entry {
  search::Point point;
  double prior = 0, ns = INFINITY;
  std::unique_ptr<codegen::JitModule> module;
  tw_kernel kernel = nullptr;
  std::vector<char> workspace;
};

class Operands {
 public:
  explicit Operands(const Func& func) {
    for (const Param& p : func.params) {
      const auto bytes =
          static_cast<size_t>(storage_bytes(p.buffer.dtype(), *codegen::const_elements(p.buffer)));
      storage_.emplace_back(bytes + 64);
      buffers_.push_back(aligned(storage_.back()));
      if (p.buffer.dtype() != DType::F32) continue;
      auto* values = static_cast<float*>(buffers_.back());
      for (size_t i = 0; i < bytes / 4; ++i) values[i] = 0.1f * static_cast<float>(i % 7) - 0.3f;
    }
  }
  static void* aligned(std::vector<char>& bytes) {
    return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
  }
  void* const* buffers() const { return buffers_.data(); }

 private:
  std::vector<std::vector<char>> storage_;
  std::vector<void*> buffers_;
};

double now() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Status compile(Entry& entry, const measure::Task& task, const tune::ScheduleSpace& space) {
  const schedule::Trace trace = TW_TRY(space.trace(entry.point));
  const Func scheduled = TW_TRY(schedule::replay(task.func, trace));
  const Func lowered = TW_TRY(lower::run_pipeline(scheduled, "cpu"));
  codegen::LlvmOptions options;
  options.target = task.cpu();
  entry.module = TW_TRY(codegen::jit({lowered}, options));
  const KernelInfo& info = entry.module->kernels()[0];
  entry.kernel = entry.module->find(info.symbol);
  entry.workspace.resize(
      static_cast<size_t>(info.shared_bytes + task.threads * info.per_worker_bytes + 128));
  return {};
}

/// Least times of all, in turn, for about `seconds`.
void measure(std::vector<Entry>& entries, const measure::Task& task, double seconds) {
  runtime::ThreadPoolOptions pool_options;
  pool_options.threads = task.threads;
  runtime::ThreadPool pool(pool_options);
  const Operands operands(task.func);
  auto run = [&](Entry& e) {
    const double start = now();
    e.kernel(operands.buffers(), nullptr, Operands::aligned(e.workspace), &pool.services());
    return now() - start;
  };
  const double start = now();
  for (int round = 0; round < 400; ++round) {
    if (round >= 3 && now() - start > seconds * 1e9) break;
    for (Entry& e : entries) {
      if (round > 2 && e.ns > 3 * entries[0].ns) continue;
      const int calls = static_cast<int>(std::clamp(1e5 / std::max(e.ns, 1.0), 1.0, 20.0));
      for (int i = 0; i <= calls; ++i) {  // the first call warms the caches
        const double ns = run(e);
        if (i > 0) e.ns = std::min(e.ns, ns);
      }
    }
  }
}

/// The first points by the model and some at random; the rule's own choice leads.
std::vector<Entry> choose(const tune::ScheduleSpace& space, const Options& options) {
  const search::Space& points = space.space();
  std::vector<std::pair<double, search::Point>> ranked;
  for (int64_t i = 0; i < static_cast<int64_t>(std::min(points.size(), 20000.0)); ++i) {
    search::Point point = points.at(i);
    const double prior = space.prior(point);
    if (std::isfinite(prior)) ranked.emplace_back(prior, std::move(point));
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<Entry> entries;
  auto add = [&](size_t i) {
    Entry& entry = entries.emplace_back();
    entry.prior = ranked[i].first;
    entry.point = ranked[i].second;
  };
  const size_t first = std::min(ranked.size(), static_cast<size_t>(options.first));
  for (size_t i = 0; i < first; ++i) add(i);
  Rng rng(1);
  for (int i = 0; i < options.random && ranked.size() > first; ++i)
    add(static_cast<size_t>(
        rng.between(static_cast<int64_t>(first), static_cast<int64_t>(ranked.size()) - 1)));
  return entries;
}

/// Share of the best time found that the rule's schedule reaches.
Result<double> study(const std::string& name, const measure::Task& task, const Options& options) {
  const double begin = now();
  const std::unique_ptr<tune::ScheduleSpace> space = tune::constructive_space(task);
  std::vector<Entry> entries = choose(*space, options);
  const double ranked = now();
  size_t invalid = 0;
  std::string reason;
  std::erase_if(entries, [&](Entry& e) {
    const Status done = compile(e, task, *space);
    if (!done) ++invalid, reason = to_string(done.error());
    return !done;
  });
  if (entries.empty()) return fail(ErrorKind::NotApplicable, name + ": no schedule works", reason);
  {
    const Quiet quiet(options.around);
    measure(entries, task, options.seconds);
  }
  std::vector<double> priors, times;
  for (const Entry& e : entries) priors.push_back(e.prior), times.push_back(e.ns);
  const auto best = std::min_element(entries.begin(), entries.end(),
                                     [](const Entry& a, const Entry& b) { return a.ns < b.ns; });
  const double share = best->ns / entries[0].ns;
  fmt::print(
      "{:44} {:6.1f} %  rho {:5.2f}  {:9.1f} us, {:9.1f} by the model  space {:6} in {:4.0f} ms"
      "  {} invalid\n    rule {}\n    best {}\n",
      name, 100 * share, rank_correlation(priors, times), entries[0].ns * 1e-3,
      entries[0].prior * 1e-3, space->space().size(), (ranked - begin) * 1e-6, invalid,
      space->space().text(entries[0].point), space->space().text(best->point));
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.ns < b.ns; });
  for (size_t i = 0; i < std::min(entries.size(), static_cast<size_t>(options.show)); ++i)
    fmt::print("      {:9.1f} us {:9.1f} by the model: {}\n", entries[i].ns * 1e-3,
               entries[i].prior * 1e-3, space->space().text(entries[i].point));
  std::fflush(stdout);
  return share;
}

/// The kernel of `graph` with most work.
Result<measure::Task> main_task(const graph::Graph& graph, const compile::CompileOptions& options) {
  const compile::CompiledModel model = TW_TRY(compile::compile_graph(graph, options));
  const compile::KernelReport* main = nullptr;
  for (const compile::KernelReport& kernel : model.kernels)
    if (main == nullptr ||
        rules::work_of(kernel.func).operations > rules::work_of(main->func).operations)
      main = &kernel;
  if (main == nullptr) return fail(ErrorKind::NotApplicable, "the operator has no kernel", "");
  measure::Task task;
  task.name = main->symbol, task.func = main->func;
  task.target = options.target, task.threads = options.threads;
  return task;
}

Status run(const Options& options) {
  if (options.subjects.workload.empty())
    return fail(ErrorKind::Usage, "no operators are given", {}, "add --workload FILE");
  driver::SubjectOptions subjects = options.subjects;
  subjects.direct = subjects.math == "direct";
  if (subjects.direct) subjects.math = "fast";
  const compile::CompileOptions compile = TW_TRY(driver::compile_options(subjects));
  const std::vector<driver::Subject> all = TW_TRY(driver::load_subjects(subjects));
  double logs = 0, worst = 1;
  int index = 0, floats = 0, done = 0;
  for (const driver::Subject& subject : all) {
    if (!subject.graph) continue;
    const graph::Graph& graph = *subject.graph;
    if (graph.values[static_cast<size_t>(graph.outputs[0])].type.dtype != DType::F32) continue;
    if (floats++ % options.every != 0) continue;
    if (index++ < options.from || done >= options.count) continue;
    const Result<measure::Task> task = main_task(graph, compile);
    const Result<double> share =
        task ? study(subject.name, *task, options) : tl::unexpected(task.error());
    ++done;
    if (!share) fmt::print("{:44} {}", subject.name, to_string(share.error()));
    if (!share) continue;
    logs += std::log(*share), worst = std::min(worst, *share);
  }
  fmt::print(
      "{} operators: the rule reaches {:.1f} % (geomean) of the best found, worst {:.1f} %\n", done,
      100 * std::exp(logs / std::max(done, 1)), 100 * worst);
  return {};
}

Options parse(const std::vector<std::string>& args) {
  Options options;
  const std::map<std::string, int*> numbers = {{"--every", &options.every},
                                               {"--from", &options.from},
                                               {"--count", &options.count},
                                               {"--first", &options.first},
                                               {"--random", &options.random},
                                               {"--show", &options.show},
                                               {"--threads", &options.subjects.threads}};
  const std::map<std::string, std::string*> texts = {{"--workload", &options.subjects.workload},
                                                     {"--id", &options.subjects.id},
                                                     {"--suite", &options.subjects.suite},
                                                     {"--math", &options.subjects.math},
                                                     {"--around", &options.around}};
  for (size_t i = 0; i + 1 < args.size(); i += 2) {
    if (const auto n = numbers.find(args[i]); n != numbers.end())
      *n->second = std::atoi(args[i + 1].c_str());
    if (const auto t = texts.find(args[i]); t != texts.end()) *t->second = args[i + 1];
    if (args[i] == "--seconds") options.seconds = std::atof(args[i + 1].c_str());
  }
  return options;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  const auto ok = tilewright::run(tilewright::parse({argv + 1, argv + argc}));
  if (!ok) fmt::print(stderr, "{}", to_string(ok.error()));
  return ok ? 0 : 1;
}
