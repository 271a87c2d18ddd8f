#include "tilewright/driver/tuned.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "tilewright/driver/backend.h"
#include "tilewright/driver/console.h"
#include "tilewright/hw/rates.h"
#include "tilewright/tune/space.h"

namespace tilewright::driver {

std::string compiler_key() {
  static const std::string key = hw::rates_key().compiler + (has_llvm() ? "+llvm" : "+c");
  return key;
}

Result<FindRecord> stored_schedules(const std::string& path, const hw::CpuTarget& target,
                                    int threads) {
  const std::string file = path.empty() ? tune::RecordStore::default_path() : path;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    if (path.empty()) return FindRecord();
    return fail(ErrorKind::Io, fmt::format("there is no record store {}", path), {},
                "tilewright tune --records " + path + " makes one");
  }
  Result<tune::RecordStore> store = tune::RecordStore::open(file);
  if (!store) {
    if (!path.empty()) return tl::unexpected<Error>(std::move(store.error()));
    say(fmt::format("warning: schedules by rule alone: {}: {}", store.error().what,
                    store.error().why));
    return FindRecord();
  }
  tune::Task key;  // for its target's key
  key.target = target;
  key.threads = threads;
  const auto lock = std::make_shared<std::mutex>();
  return [store = *store, lock,
          target_key = key.target_key()](const Func& func) -> std::optional<tune::Record> {
    tune::RecordFilter filter;
    filter.workload = tune::workload_key(tune::workload_text(func));
    filter.target = target_key;
    filter.compiler = compiler_key();
    const std::lock_guard<std::mutex> guard(*lock);
    return store.chosen(filter).value_or(std::nullopt);
  };
}

int64_t tuned_kernels(const CompiledModel& model) {
  return std::count_if(model.kernels.begin(), model.kernels.end(),
                       [](const KernelReport& kernel) { return kernel.record.has_value(); });
}

void say_tuned(const CompiledModel& model) {
  const int64_t tuned = tuned_kernels(model);
  if (tuned == 0 && model.stale_records == 0) return;
  const std::string stale = model.stale_records == 0
                                ? ""
                                : fmt::format(
                                      "; {} records do not fit this compiler's kernels "
                                      "and are skipped",
                                      model.stale_records);
  say(fmt::format("{} of {} kernels tuned{}", tuned, model.kernels.size(), stale));
}

}  // namespace tilewright::driver
