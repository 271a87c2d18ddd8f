// records: what tuning has measured: looking at it, moving it, checking that it still means the
// same.
#include <fmt/format.h>

#include <map>

#include "tilewright/base/file.h"
#include "tilewright/codegen/gpu/gpu.h"
#include "tilewright/compile/conv_record.h"
#include "tilewright/compile/cpu/kernels.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/tuning/conv_forms.h"
#include "tilewright/driver/tuning/record_place.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/driver/tuning/tuning_target.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/records/lines.h"
#include "tilewright/records/open/open.h"
#include "tilewright/records/sqlite/sqlite.h"
#include "tilewright/runtime/package.h"

namespace tilewright::driver {
namespace {

using records::Record;
using records::Store;
using Opened = Result<std::shared_ptr<Store>>;

struct RecordsVerb {
  std::string store;
  std::string workload, name, target;  ///< which records
  std::string outcome;
  std::vector<std::string> files;
  std::string output;
  int keep = 8;
  int64_t limit = 20;
  bool code = false;
};

std::string name_of(const RecordsVerb& verb) { return record_place(verb.store).name; }

/// A store that is there. `open`: to read or to write. errors: Io, Package, Unreachable.
Opened open_existing(const std::string& name,
                     Opened (*open)(const std::string& name) = records::open_any_store_to_read) {
  if (!records::store_exists(name))
    return fail(ErrorKind::Io, fmt::format("there is no record store {}", name), {},
                "tilewright tune makes one; --store and TILEWRIGHT_STORE name another");
  return open(name);
}

/// Records that the options select; a workload may be given by the first digits of its key.
Result<std::vector<Record>> selected(const Store& store, const RecordsVerb& verb) {
  std::vector<Record> found;
  TW_TRY_STATUS(store.each({}, [&](const Record& record) {
    const bool by_key = record.workload.starts_with(verb.workload) ||
                        record.workload.starts_with("sha256:" + verb.workload);
    if (by_key && (verb.name.empty() || record.name == verb.name) &&
        (verb.target.empty() || record.target == verb.target) &&
        (verb.outcome.empty() || record.outcome == verb.outcome))
      found.push_back(record);
  }));
  return found;
}

nlohmann::ordered_json to_json(const Record& record) {
  nlohmann::ordered_json json;
  for_each_field(
      record, [&](std::string_view name, const auto& value) { json[std::string(name)] = value; });
  return json;
}

/// `sha256:0123456789ab`
std::string short_key(const std::string& key) { return key.substr(0, 7 + 12); }

std::string cost_text(const Record& record) {
  return fmt::format("{:.1f} {}", record.cost / 1e3,
                     record.unit == "ns" ? "us" : "k" + record.unit);
}

std::vector<std::string> row_of(const Record& record) {
  return {short_key(record.workload),
          record.name,
          record.kind,
          record.target,
          record.outcome == "ok" ? cost_text(record) : record.outcome,
          record.searcher,
          record.when,
          record.outcome == "ok" ? record.point : record.reason};
}

int show(const std::vector<Record>& records, const std::string& action, int64_t limit,
         bool as_json) {
  nlohmann::ordered_json json = document("records");
  json["action"] = action;
  json["count"] = records.size();
  json["records"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {
      {"workload", "kernel", "kind", "target", "cost", "searcher", "when", "decisions"}};
  for (const Record& record : records) {
    if (as_json) json["records"].push_back(to_json(record));
    if (static_cast<int64_t>(rows.size()) <= limit) rows.push_back(row_of(record));
  }
  if (as_json) {
    print_json(json);
    return 0;
  }
  fmt::print("{}", table(rows));
  const int64_t hidden = static_cast<int64_t>(records.size() - rows.size()) + 1;
  if (hidden > 0) fmt::print("and {} more (--limit)\n", hidden);
  return 0;
}

Result<int> list(const RecordsVerb& verb, bool as_json) {
  const auto store = TW_TRY(open_existing(name_of(verb)));
  return show(TW_TRY(selected(*store, verb)), "ls", verb.limit, as_json);
}

/// What the compiler would take, per workload and target.
Result<int> best(const RecordsVerb& verb, bool as_json) {
  const auto store = TW_TRY(open_existing(name_of(verb)));
  std::map<std::tuple<std::string, std::string, std::string>, bool> seen;
  std::vector<Record> winners;
  for (const Record& record : TW_TRY(selected(*store, verb))) {
    if (!seen.emplace(std::tuple(record.workload, record.target, record.compiler), true).second)
      continue;
    records::RecordFilter filter;
    filter.workload = record.workload;
    filter.target = record.target;
    filter.compiler = record.compiler;
    if (std::optional<Record> chosen = TW_TRY(store->chosen(filter)))
      winners.push_back(*std::move(chosen));
  }
  return show(winners, "best", verb.limit, as_json);
}

Result<int> print_counts(const std::string& action, const records::Imported& counts, bool as_json) {
  nlohmann::ordered_json json = document("records");
  json["action"] = action;
  json["added"] = counts.added;
  json["known"] = counts.known;
  json["broken"] = counts.broken;
  if (as_json)
    print_json(json);
  else
    fmt::print("{} added, {} known already, {} lines not readable\n", counts.added, counts.known,
               counts.broken);
  if (counts.broken > 0) say(fmt::format("warning: {}", counts.first_problem));
  return 0;
}

/// Text of exported records: from a file of lines, or out of a package.
Result<std::string> lines_of(const std::string& path) {
  if (!path.ends_with(".twm")) return read_file(path);
  runtime::OpenOptions options;
  options.load_code = false;
  const auto package = TW_TRY(runtime::Package::open(path, options));
  const runtime::PackageMember* member = package->member("records.jsonl");
  return member == nullptr ? std::string() : std::string(member->bytes);
}

/// All files are read before the store is touched.
Result<int> import(const RecordsVerb& verb, bool as_json) {
  const auto found = TW_TRY(records::open_store(":memory:"));
  int64_t broken = 0;
  std::string problem;
  for (const std::string& file : verb.files) {
    Result<records::Imported> lines = records::import_lines(*found, TW_TRY(lines_of(file)));
    if (!lines) return tl::unexpected<Error>(std::move(lines.error()).at(file));
    if (broken == 0 && lines->broken > 0) problem = file + ": " + lines->first_problem;
    broken += lines->broken;
  }
  const auto store = TW_TRY(records::open_any_store(name_of(verb)));
  records::Imported counts = TW_TRY(records::merge(*store, *found));
  counts.broken = broken;
  counts.first_problem = problem;
  return print_counts("import", counts, as_json);
}

Result<int> merge(const RecordsVerb& verb, bool as_json) {
  const auto store = TW_TRY(records::open_any_store(name_of(verb)));
  records::Imported sum;
  for (const std::string& file : verb.files) {
    const auto other = TW_TRY(open_existing(file));
    const records::Imported counts = TW_TRY(records::merge(*store, *other));
    sum.added += counts.added;
    sum.known += counts.known;
  }
  return print_counts("merge", sum, as_json);
}

Result<int> export_lines(const RecordsVerb& verb, bool as_json) {
  const std::string file = verb.output.empty() ? "-" : verb.output;
  TW_TRY_STATUS(check_outputs({{file}, {}}, {records::store_file(name_of(verb))}, as_json));
  const auto store = TW_TRY(open_existing(name_of(verb)));
  std::string text = records::lines_header();
  const std::vector<Record> records = TW_TRY(selected(*store, verb));
  std::map<std::string, bool> written;
  for (const Record& record : records)
    if (written.emplace(record.workload, true).second)
      if (const Result<std::string> func = store->workload(record.workload))
        text += records::workload_line(record.workload, *func);
  for (const Record& record : records) text += records::line_of(record);
  TW_TRY_STATUS(write_file(file, text));
  nlohmann::ordered_json json = document("records");
  json["action"] = "export";
  json["count"] = records.size();
  json["file"] = file;
  if (as_json)
    print_json(json);
  else if (file != "-")
    say(fmt::format("{} records in {}", records.size(), file));
  return 0;
}

Result<int> prune(const RecordsVerb& verb, bool as_json) {
  const auto store = TW_TRY(open_existing(name_of(verb), records::open_any_store));
  const int64_t removed = TW_TRY(store->prune(verb.keep));
  nlohmann::ordered_json json = document("records");
  json["action"] = "prune";
  json["removed"] = removed;
  json["left"] = TW_TRY(store->count({}));
  if (as_json)
    print_json(json);
  else
    fmt::print("{} removed, {} left\n", removed, json["left"].get<int64_t>());
  return 0;
}

struct Replayed {
  Func scheduled;
  std::string code;  ///< lowered, as text
};

/// What a record is for: `opencl:NAME` a GPU, `cpu:znver4@1a2b3c4d:2`, or without the machine, a
/// processor; one without a name: this machine.
hw::Target target_of(const Record& record) {
  const auto gpu = hw::find_gpu_target(record.target.substr(0, record.target.find(':')));
  if (gpu) return hw::as_target(*gpu);
  std::string cpu = record.target.substr(0, record.target.rfind(':'));
  cpu = cpu.substr(0, cpu.find('@'));
  hw::CpuTarget found = hw::host();
  for (const hw::CpuTarget& target : hw::all_targets())
    if ("cpu:" + target.cpu == cpu) found = target;
  return hw::as_target(found);
}

/// The program a record is about, with its schedule applied. errors: Package (no program kept,
/// schedule not readable), NotApplicable.
Result<Replayed> replay_record(const Store& store, const Record& record) {
  const Func func = TW_TRY(parse_func(TW_TRY(store.workload(record.workload))));
  const schedule::Trace trace = TW_TRY(schedule::parse_trace(record.schedule));
  const hw::Target target = target_of(record);
  if (const hw::GpuTarget* gpu = target.gpu()) {
    Func scheduled = TW_TRY(schedule::replay(func, trace));
    const lower::GpuLaunches plan = TW_TRY(lower::lower_for_gpu(scheduled, *gpu));
    return Replayed{std::move(scheduled), TW_TRY(codegen::emit_gpu(plan.kernels, *gpu))};
  }
  compile::KernelOptions options;
  options.target = *target.cpu();
  options.trace = &trace;
  compile::ScheduledKernel kernel = TW_TRY(compile::schedule_and_lower(func, options));
  return Replayed{std::move(kernel.scheduled), print(kernel.lowered)};
}

/// Valid records must replay. Exit status of a package mismatch if one does not.
Result<int> validate(const RecordsVerb& verb, bool as_json) {
  const auto store = TW_TRY(open_existing(name_of(verb)));
  nlohmann::ordered_json json = document("records");
  json["action"] = "validate";
  json["broken"] = nlohmann::ordered_json::array();
  int64_t good = 0, other_compiler = 0;
  std::vector<std::vector<std::string>> rows = {{"workload", "kernel", "when", "problem"}};
  const std::vector<Record> records = TW_TRY(selected(*store, verb));
  Progress progress("replaying");
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    progress.update(static_cast<int64_t>(i), static_cast<int64_t>(records.size()), record.name);
    TW_TRY_STATUS(check_interrupt());
    if (record.outcome != "ok" || compile::form_in(record) || plans_launch(record)) continue;
    const Result<Replayed> kernel = replay_record(*store, record);
    other_compiler += record.compiler != compiler_key();
    if (kernel) {
      ++good;
      continue;
    }
    const std::string problem =
        kernel.error().what + (kernel.error().why.empty() ? "" : ": " + kernel.error().why);
    json["broken"].push_back(
        {{"workload", record.workload}, {"when", record.when}, {"problem", problem}});
    rows.push_back({short_key(record.workload), record.name, record.when, problem});
  }
  json["good"] = good;
  json["other_compiler"] = other_compiler;
  if (as_json) {
    print_json(json);
  } else {
    if (rows.size() > 1) fmt::print("{}\n", table(rows));
    fmt::print("{} replay, {} do not; {} are of another compiler than {}\n", good, rows.size() - 1,
               other_compiler, compiler_key());
  }
  if (rows.size() == 1) return 0;
  fmt::print(stderr,
             "error: {} records do not replay\n  why: the list says which step fails\n"
             "  fix: compiling skips them; tilewright tune measures anew\n",
             rows.size() - 1);
  return exit_code(ErrorKind::Package);
}

/// The program of what the compiler would take for one workload.
Result<int> replay(const RecordsVerb& verb, bool as_json) {
  const auto store = TW_TRY(open_existing(name_of(verb)));
  std::vector<Record> records = TW_TRY(selected(*store, verb));
  std::erase_if(records, [](const Record& record) {
    return record.outcome != "ok" || compile::form_in(record);
  });
  if (records.empty())
    return fail(ErrorKind::Usage, fmt::format("no valid record of '{}'", verb.workload), {},
                "tilewright records ls shows the keys of workloads");
  for (const Record& record : records)
    if (record.workload != records[0].workload)
      return fail(ErrorKind::Usage, fmt::format("'{}' names several workloads", verb.workload),
                  fmt::format("{} and {}", records[0].workload, record.workload));
  records::RecordFilter filter;
  filter.workload = records[0].workload;
  filter.target = records[0].target;
  filter.compiler = records[0].compiler;
  const Record record = TW_TRY(store->chosen(filter)).value_or(records[0]);
  const Replayed kernel = TW_TRY(replay_record(*store, record));
  const std::string code = sha256(kernel.code);
  nlohmann::ordered_json json = document("records");
  json["action"] = "replay";
  json["record"] = to_json(record);
  json["program"] = print(kernel.scheduled);
  json["code"] = "sha256:" + code;
  if (as_json)
    print_json(json);
  else if (verb.code)
    fmt::print("sha256:{}\n", code);
  else
    fmt::print("{}", print(kernel.scheduled));
  return 0;
}

struct Action {
  const char* name;
  const char* what;
  Result<int> (*run)(const RecordsVerb& verb, bool as_json);
  bool selects, files;
};
constexpr Action kActions[] = {
    {"ls", "lists records", list, true, false},
    {"best", "what compiling takes, per workload and target", best, true, false},
    {"merge", "adds the records of other stores", merge, false, true},
    {"export", "writes JSON lines", export_lines, true, false},
    {"import", "reads JSON lines, or the records of packages", import, false, true},
    {"prune", "keeps the cheapest records of each workload and target", prune, false, false},
    {"validate", "replays every valid record", validate, true, false},
    {"replay", "prints the scheduled program of one workload", replay, true, false},
};

}  // namespace

void add_records(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("records", "Lists, merges, exports and checks what tuning has measured");
  auto options = std::make_shared<RecordsVerb>();
  verb.add_option("--records,--store", options->store,
                  "FILE, sqlite:FILE or postgresql://HOST/DATABASE (default: the user's file)");
  verb.needs_action();
  for (const Action& action : kActions) {
    Verb sub = verb.add_verb(action.name, action.what);
    const std::string name = action.name;
    if (action.selects) {
      if (name == "replay")
        sub.add_option("workload", options->workload, "first digits of its key").required();
      else
        sub.add_option("--workload", options->workload, "first digits of its key");
      sub.add_option("--kernel", options->name, "only kernels of this name");
      sub.add_option("--target", options->target, "only records for this: cpu:znver5@1a2b3c4d:2");
      sub.add_option("--outcome", options->outcome, "only this outcome: ok, timeout, ...");
    }
    if (action.files) sub.add_option("files", options->files).required();
    if (name == "ls" || name == "best") sub.add_option("--limit", options->limit, "rows to print");
    if (name == "prune")
      sub.add_option("--keep", options->keep, "records of each to keep (default 8)")
          .in_range(1, 1 << 20);
    if (name == "export") sub.add_option("-o,--output", options->output, "file (default stdout)");
    if (name == "replay") sub.add_flag("--code", options->code, "only a hash of the lowered code");
    sub.callback([&context, options, run = action.run] {
      context.action = [&context, options, run] { return run(*options, context.json); };
    });
  }
}

}  // namespace tilewright::driver
