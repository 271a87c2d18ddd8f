#include "tilewright/driver/tuning/tuned.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "tilewright/base/counted.h"
#include "tilewright/compile/conv_record.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/compile/dpu/backend.h"
#include "tilewright/compile/fpga/program.h"
#include "tilewright/compile/spatial/backend.h"
#include "tilewright/compile/vta/backend.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/tuning/conv_forms.h"
#include "tilewright/driver/tuning/gpu_kernel.h"
#include "tilewright/driver/tuning/record_place.h"
#include "tilewright/hw/rates.h"
#include "tilewright/records/open/open.h"
#include "tilewright/records/workload.h"
#include "tilewright/tune/dpu/space.h"
#include "tilewright/tune/space.h"
#include "tilewright/tune/spatial/space.h"
#include "tilewright/tune/vta/space.h"

namespace tilewright::driver {

std::string compiler_key() {
  static const std::string key = hw::rates_key().compiler + (compile::has_llvm() ? "+llvm" : "+c");
  return key;
}

std::string cpu_key(const hw::CpuTarget& target, int threads) {
  measure::Task task;
  task.target = hw::as_target(target);
  task.threads = threads;
  return task.target_key();
}

std::vector<std::string> record_keys(const compile::CompileOptions& options) {
  std::vector<std::string> keys = cpu_keys(options.cpu(), options.threads);
  if (const compile::VtaTarget* vta = compile::vta_target(options.target))
    keys.push_back(tune::vta_target_key(vta->config));
  if (const compile::DpuTarget* dpu = compile::dpu_target(options.target))
    keys.push_back(tune::dpu_target_key(dpu->config));
  if (const compile::SpatialTarget* spatial = compile::spatial_target(options.target))
    keys.push_back(tune::spatial_target_key(spatial->design));
  if (const compile::FpgaTarget* fpga = compile::fpga_target(options.target))
    keys.push_back(compile::fpga_record_key(fpga->device));
  return keys;
}

std::vector<std::string> cpu_keys(const hw::CpuTarget& target, int threads) {
  std::vector<std::string> keys = {cpu_key(target, threads)};
  if (!target.machine.empty() && target.cpu != target.isa) {
    hw::CpuTarget kind = target;
    kind.machine.clear();
    keys.push_back(cpu_key(kind, threads));
  }
  return keys;
}

StoredRecords answers_of(std::shared_ptr<const records::Store> store,
                         const std::vector<std::string>& target_keys) {
  const auto lock = std::make_shared<std::mutex>();
  const auto lost = std::make_shared<bool>(false);
  const auto chosen = [store, lock, lost,
                       target_keys](const std::string& workload) -> std::optional<records::Record> {
    records::RecordFilter filter;
    filter.workload = workload;
    filter.compiler = compiler_key();
    const std::lock_guard<std::mutex> guard(*lock);
    for (const std::string& key : target_keys) {
      if (*lost) break;
      filter.target = key;
      Result<std::optional<records::Record>> record = store->chosen(filter);
      if (record && *record) return *std::move(record);
      if (record || record.error().kind != ErrorKind::Unreachable) continue;
      *lost = true;  // each question would wait for it again
      say(fmt::format("warning: no more tuning records: {}: {}", record.error().what,
                      record.error().why));
    }
    return std::nullopt;
  };
  return {[chosen](const Func& func) {
            return chosen(records::workload_key(records::workload_text(func)));
          },
          [chosen](const tensor::Conv2dShape& conv) { return chosen(compile::conv_key(conv)); },
          chosen};
}

Result<StoredRecords> stored_records(const std::string& path,
                                     const std::vector<std::string>& target_keys) {
  const RecordPlace place = record_place(path);
  const std::string& name = place.name;
  if (!records::store_exists(name)) {
    if (path.empty()) return StoredRecords();
    return fail(ErrorKind::Io, fmt::format("there is no record store {}", path), {},
                "tilewright tune --records " + path + " makes one");
  }
  auto store = open_place_to_read(place);
  if (store && *store == nullptr) return StoredRecords();
  if (store) return answers_of(*store, target_keys);
  // A file that happens to be there need not be a store; a server was named for its records.
  if (!path.empty() || (records::store_file(name).empty() && !place.by_settings))
    return tl::unexpected<Error>(std::move(store.error()));
  static std::once_flag said;  // a verb may ask for several targets
  std::call_once(said, [&] {
    say(fmt::format("warning: schedules by rule alone: {}: {}: {}", name, store.error().what,
                    store.error().why));
  });
  return StoredRecords();
}

records::GroupedAdds::Away say_away() {
  constexpr double kEvery = 10;  // units: s
  return [next = 0.0, waited = false](double seconds, const Error& error, bool waits) mutable {
    if (seconds + kEvery < next || waits != waited) next = 0;  // it had come back
    if (seconds < next) return;
    next = seconds + kEvery;
    waited = waits;
    say(fmt::format("the store does not answer ({:.0f} s); {}: {}", seconds,
                    waits ? "records of the search wait for it" : "measuring goes on", error.what));
  };
}

Status keep_verdicts(records::GroupedAdds& kept, const std::vector<records::Record>& verdicts,
                     bool interrupted) {
  TW_TRY_STATUS(kept.add(verdicts));
  Status done = kept.flush(interrupted ? records::GroupedAdds::kPatienceInterrupted
                                       : records::GroupedAdds::kPatience);
  if (done || done.error().kind != ErrorKind::Unreachable) return done;
  return fail(
      ErrorKind::Unreachable, "what the search came to is not in the store",
      done.error().why.empty() ? done.error().what : done.error().what + ": " + done.error().why,
      "the same command goes on from what is there");
}

RecordedKernels recorded_kernels(const compile::CompiledModel& model) {
  RecordedKernels count;
  const auto add = [&count](const std::optional<records::Record>& record) {
    if (!record) return;
    ++count.measured;
    count.faster += !record->point.empty();  // else the default schedule won
  };
  for (const compile::KernelReport* kernel : compile::all_kernels(model)) add(kernel->record);
  for (const auto& [name, launch] : model.launches)
    count.launches += launch.record && !launch.record->point.empty();
  return count;
}

namespace {

/// A field of a record's key: what it is called in words, and its value.
using KeyField = std::pair<std::string, std::string>;

/// What decides whether a record counts. Its target is `cpu:znver4@1a2b3c4d:8`, without the machine
/// in old ones, or that of another device: `cuda-sm_90a:NVIDIA H200`.
std::vector<KeyField> fields_of(const records::Record& record) {
  const std::string& key = record.target;
  const size_t first = std::min(key.find(':'), key.size());
  std::string processor, threads;
  if (key.starts_with("cpu:") && key.rfind(':') > first) {
    processor = key.substr(first + 1, key.find_first_of("@:", first + 1) - first - 1);
    threads = key.substr(key.rfind(':') + 1);
  }
  return {{"target", key.substr(0, first)},
          {"processor", processor},
          {"machine", record.machine},
          {"threads", threads},
          {"compiler", record.compiler}};
}

/// A record of what `options` compile for.
records::Record record_for(const compile::CompileOptions& options, const std::string& device) {
  records::Record here;
  here.compiler = compiler_key();
  here.target = cpu_key(options.cpu(), options.threads);
  here.machine = options.cpu().machine;
  const hw::GpuTarget* target = options.target.gpu();
  if (target == nullptr) return here;
  if (const auto gpu = gpu_for(*target, device)) {
    here.target = gpu_target_key(*target, (*gpu)->info());
    here.machine = (*gpu)->info().name;
  }
  return here;
}

}  // namespace

std::string nearest_difference(const std::vector<records::Record>& records,
                               const records::Record& compiled_for) {
  const std::vector<KeyField> here = fields_of(compiled_for);
  size_t least = here.size() + 1;
  std::string text;
  for (const records::Record& record : records) {
    const std::vector<KeyField> there = fields_of(record);
    size_t differences = 0, first = here.size();
    for (size_t i = here.size(); i-- > 0;)
      if (there[i] != here[i]) ++differences, first = i;
    if (differences == 0) return "";
    if (differences >= least) continue;
    least = differences;
    text =
        fmt::format("{} {}, here {}", here[first].first, there[first].second, here[first].second);
  }
  return text;
}

void say_elsewhere(const compile::CompiledModel& model, const compile::CompileOptions& options,
                   const std::string& path, const std::string& device) {
  const RecordPlace place = record_place(path);
  if (!options.tuned || !records::store_exists(place.name)) return;
  const auto store = open_place_to_read(place);
  if (!store || *store == nullptr) return;  // who asked it for schedules has said so
  const records::Record here = record_for(options, device);
  std::map<std::string, int64_t> counts;
  for (const compile::KernelReport* kernel : compile::all_kernels(model)) {
    if (kernel->record || kernel->symbol.empty()) continue;
    records::RecordFilter filter;
    filter.workload = records::workload_key(records::workload_text(kernel->func));
    filter.kind = records::kRaceKind;
    const std::string text =
        nearest_difference((*store)->find(filter).value_or(std::vector<records::Record>()), here);
    if (!text.empty()) ++counts[text];
  }
  for (const auto& [text, count] : counts)
    say(fmt::format("note: tuning records of {} kernel{} do not count here: they are for {}", count,
                    count == 1 ? "" : "s", text));
}

void say_tuned(const compile::CompiledModel& model) {
  const RecordedKernels recorded = recorded_kernels(model);
  if (recorded.launches > 0)
    say(fmt::format("plans of {} of {} launch{} from tuning records", recorded.launches,
                    model.launches.size(), model.launches.size() == 1 ? "" : "es"));
  if (recorded.measured == 0 && model.stale_records == 0 && model.forms.empty()) return;
  const std::string best = recorded.measured == recorded.faster
                               ? ""
                               : fmt::format(" ({} measured, whose default schedule was fastest)",
                                             recorded.measured - recorded.faster);
  const std::string forms =
      model.forms.empty()
          ? ""
          : fmt::format("; the algorithm of {} too", counted(model.forms.size(), "convolution"));
  const std::string stale = model.stale_records == 0
                                ? ""
                                : fmt::format(
                                      "; {} records do not fit this compiler's kernels "
                                      "and are skipped",
                                      model.stale_records);
  say(fmt::format("schedules: {} of {} from tuning records{}{}{}", recorded.faster,
                  counted(compile::all_kernels(model).size(), "kernel"), best, forms, stale));
}

}  // namespace tilewright::driver
