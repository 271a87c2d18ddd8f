#include "tilewright/records/record.h"

namespace tilewright::records {

std::string old_kind(std::string_view searcher, std::string_view point) {
  if (searcher == "rule") return kRuleKind;
  if (searcher != "race") return kScheduleKind;
  return point.starts_with("algorithm: ") ? kAlgorithmKind : kRaceKind;
}

/// `cpu:znver4@1a2b3c4d:2` names a machine, `cpu:znver4:2` none; `cuda-sm_90a:NVIDIA H200` names a
/// device; what follows `vta:` is a configuration.
std::string old_machine(std::string_view target) {
  const size_t colon = target.find(':');
  if (colon == target.npos || target.starts_with("vta:")) return "";
  const std::string_view rest = target.substr(colon + 1);
  if (!target.starts_with("cpu:")) return std::string(rest);
  const size_t at = rest.find('@');
  return at == rest.npos ? "" : std::string(rest.substr(at + 1, rest.rfind(':') - at - 1));
}

std::string old_unit(std::string_view target) {
  return target.starts_with("vta:") ? "cycles" : "ns";
}

void complete_old(Record& record) {
  record.kind = old_kind(record.searcher, record.point);
  record.machine = old_machine(record.target);
  record.unit = old_unit(record.target);
}

}  // namespace tilewright::records
