#include "tilewright/records/store.h"

namespace tilewright::records {

Status Store::add(const Record& record) {
  TW_TRY(add_all({record}));
  return {};
}

Status Store::add_workload(const std::string& key, const std::string& func) {
  TW_TRY(add_all({}, {{key, func}}));
  return {};
}

Result<std::vector<Record>> Store::find(const RecordFilter& filter) const {
  std::vector<Record> found;
  TW_TRY_STATUS(each(filter, [&](const Record& record) { found.push_back(record); }));
  return found;
}

Result<std::optional<Record>> Store::chosen(const RecordFilter& filter) const {
  RecordFilter of_kind = filter;
  for (const char* kind : {kRaceKind, kAlgorithmKind}) {
    of_kind.kind = kind;
    if (std::optional<Record> decided = TW_TRY(last(of_kind))) return decided;
  }
  of_kind.kind = kRuleKind;
  const std::optional<Record> rule = TW_TRY(last(of_kind));
  std::optional<Record> cheapest = TW_TRY(best(filter));
  constexpr double kClearly = 0.97;  // readings of different moments differ by as much
  if (cheapest && rule && cheapest->cost > kClearly * rule->cost) cheapest.reset();
  return cheapest;
}

}  // namespace tilewright::records
