// The experiments of published tuners on this machine.
//   bench_search contest --case "yolo:C9;..." [--methods random,p,q,xgb,evolution,ours] [--seeds 5]
//     [--trials 200] [--space tiling|paper|ours|FILE.sketch] [--limit SECONDS] [--out DIR]
//   bench_search surface --case gemm:1024,1024,1024     FlexTensor, figure 1
//   bench_search hand --workload FILE --case "ID;ID"    FlexTensor, block circulant and shift
// Verdicts are kept in DIR, so that a schedule is measured once whatever searches need it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cases.h"
#include "contest_report.h"
#include "hand_tiling.h"
#include "surface.h"
#include "tilewright/base/file.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/measure/worker.h"
#include "tilewright/tune/sketch_space.h"
#include "tilewright/tune/tiling_space.h"

namespace tilewright::bench {
namespace {

struct Options {
  std::string cases = "yolo:C9", methods = "random,p,q,xgb,evolution,ours";
  std::string spaces = "tiling", out = "bench_search_out";
  CaseOptions made;
  ContestOptions contest;
  double limit = measure::MeasureOptions().limit_seconds;
  bool replay = false;   ///< measure nothing
  std::string teachers;  ///< cases that are searched before, by model
  std::string taught_by = "xgb";
};

std::vector<std::string> words(const std::string& text, char by) {
  std::vector<std::string> out;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, by);) out.push_back(item);
  return out;
}

Result<std::unique_ptr<tune::ScheduleSpace>> make_space(const std::string& name,
                                                        const measure::Task& task) {
  if (name == "tiling") return tune::tiling_space(task, {});
  if (name == "paper") return tune::tiling_space(task, {true});
  if (name == "ours") return tune::constructive_space(task);
  if (name.ends_with(".sketch"))
    return tune::sketch_space(task, TW_TRY(schedule::parse_sketch(TW_TRY(read_file(name)))));
  return fail(ErrorKind::Usage, fmt::format("no space '{}'", name),
              "there are tiling, paper, ours and files of sketches");
}

std::string file_of(const Options& options, const measure::Task& task, const std::string& suffix) {
  std::string name = task.name;
  for (char& c : name)
    if (c == '/' || c == ':' || c == ',') c = '_';
  return fmt::format("{}/{}.t{}{}", options.out, name, task.threads, suffix);
}

Result<std::unique_ptr<measure::Measurer>> measurer_of(const Options& options) {
  if (options.replay) return std::unique_ptr<measure::Measurer>();
  measure::MeasureOptions how;
  how.limit_seconds = options.limit;
  return measure::start_measurer(how);
}

Status contests(Options options) {
  std::filesystem::create_directories(options.out);
  options.contest.methods = words(options.methods, ',');
  const auto measurer = TW_TRY(measurer_of(options));
  std::vector<Contest> all;
  for (const std::string& name : words(options.teachers, ';')) {
    const measure::Task task = TW_TRY(make_case(name, options.made));
    const auto space = TW_TRY(make_space(words(options.spaces, ',').at(0), task));
    options.contest.teachers.push_back(
        TW_TRY(taught_by(task, *space, options.taught_by, options.contest.trials)));
  }
  for (const std::string& name : words(options.cases, ';')) {
    const measure::Task task = TW_TRY(make_case(name, options.made));
    const auto judge =
        TW_TRY(Judge::open(task, file_of(options, task, ".verdicts"), measurer.get()));
    for (const std::string& space_name : words(options.spaces, ',')) {
      const auto space = TW_TRY(make_space(space_name, task));
      all.push_back(TW_TRY(hold_contest(task, space_name, *space, *judge, options.contest)));
      fmt::print("{}\n", table(all.back()));
      std::fflush(stdout);
      TW_TRY_STATUS(write_file(options.out + "/contest.json", to_json(all)));
      TW_TRY_STATUS(write_file(options.out + "/contest.html", to_html(all)));
    }
  }
  return {};
}

Status surface(const Options& options) {
  std::filesystem::create_directories(options.out);
  const auto measurer = TW_TRY(measurer_of(options));
  const measure::Task task = TW_TRY(make_case(options.cases, options.made));
  const auto judge = TW_TRY(Judge::open(task, file_of(options, task, ".verdicts"), measurer.get()));
  const Surface found = TW_TRY(measure_surface(task, *judge));
  fmt::print("{}", describe(found));
  return write_file(options.out + "/surface.html", to_html(found));
}

Status hand(const Options& options) {
  std::filesystem::create_directories(options.out);
  const auto measurer = TW_TRY(measurer_of(options));
  for (const std::string& name : words(options.cases, ';')) {
    const measure::Task task = TW_TRY(make_case(name, options.made));
    const auto judge =
        TW_TRY(Judge::open(task, file_of(options, task, ".verdicts"), measurer.get()));
    fmt::print("{}\n", TW_TRY(against_hand_tiling(task, *judge, options.contest.trials)));
    std::fflush(stdout);
  }
  return {};
}

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "measure-child")
    return measure::serve_worker(compile::compile_kernel);
  Options options;
  CLI::App app("Experiments with searchers");
  app.require_subcommand(1);
  std::function<Status()> action;
  const auto add = [&](const char* name, const char* text, Status (*run)(Options)) {
    CLI::App* verb = app.add_subcommand(name, text);
    verb->add_option("--case", options.cases, "Kernels, separated by ;");
    verb->add_option("--out", options.out, "Folder of results and verdicts");
    verb->add_option("--threads", options.made.threads);
    verb->add_option("--workload", options.made.workload, "File of cases that are not built in");
    verb->add_option("--trials", options.contest.trials);
    verb->add_option("--limit", options.limit, "Seconds that one schedule may take");
    verb->add_flag("--replay", options.replay, "Kept verdicts alone");
    verb->callback([&options, &action, run] { action = [&options, run] { return run(options); }; });
    return verb;
  };
  CLI::App* contest = add("contest", "Searchers against each other", contests);
  contest->add_option("--methods", options.methods);
  contest->add_option("--space", options.spaces, "tiling, paper, ours, FILE.sketch");
  contest->add_option("--seeds", options.contest.seeds);
  contest->add_option("--warm-up", options.contest.warm_up);
  contest->add_option("--batch", options.contest.batch);
  contest->add_flag("--by-model", options.contest.by_model,
                    "Costs by the model of the machine: nothing is measured but the rule");
  contest->add_option("--teachers", options.teachers,
                      "Cases that are searched before, for xgb-taught; with --by-model");
  contest->add_option("--taught-by", options.taught_by, "The method that searches these");
  contest->add_option("--seconds", options.contest.seconds, "Per run");
  add("surface", "Performance over two splits of a matrix product",
      [](Options o) { return surface(o); });
  add("hand", "Found schedules against a tiling written by hand",
      [](Options o) { return hand(o); });
  CLI11_PARSE(app, argc, argv);
  const Status ok = action();
  if (!ok) fmt::print(stderr, "{}", to_string(ok.error()));
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace tilewright::bench

int main(int argc, char** argv) { return tilewright::bench::main(argc, argv); }
