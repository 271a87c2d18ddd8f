#include "tilewright/driver/verify/verify_report.h"

#include <fmt/format.h>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/report/quantization_report.h"

namespace tilewright::driver {
namespace {

std::string state_of(const measure::Difference& difference) {
  if (!difference.problem.empty()) return difference.problem;
  if (difference.nonfinite > 0) return fmt::format("{} elements not finite", difference.nonfinite);
  return difference.ok() ? "ok" : "off";
}

/// `35 values against cpu, 34 against ort`
std::string counts_text(const std::map<std::string, int>& compared) {
  std::string text;
  for (const auto& [against, count] : compared)
    text += fmt::format("{}{}{} against {}", text.empty() ? "" : ", ", count,
                        text.empty() ? " values" : "", against);
  return text;
}

}  // namespace

VerifyReport::VerifyReport(bool per_node)
    : per_node_(per_node),
      json_(tilewright::driver::document("verify")),
      rows_{{"subject", "against", "output", "error", "limit", "state"}} {
  json_["rows"] = nlohmann::ordered_json::array();
}

void VerifyReport::add(const QuantizationLoss& loss, const std::string& subject) {
  losses_ += loss_text(loss);
  json_["loss"].push_back(loss_json(loss));
  json_["loss"].back()["subject"] = subject;
}

void VerifyReport::add(const Row& row, const std::string& place) {
  const measure::Difference& d = row.difference;
  const std::string subject = place.empty() ? row.subject : row.subject + " on " + place;
  good_ &= d.ok();
  ++compared_[row.against];
  nlohmann::ordered_json known = nlohmann::ordered_json::array();
  for (const KnownCause& cause : row.known)
    known.push_back({{"text", cause.text}, {"by_values", cause.by_values}});
  add_notes(row);
  if (!per_node_ || !d.ok())
    rows_.push_back({subject, row.against, row.output, fmt::format("{:.2e}", d.error),
                     fmt::format("{:.0e}", d.limit), state_of(d)});
  json_["rows"].push_back({{"subject", row.subject},
                           {"against", row.against},
                           {"output", row.output},
                           {"error", d.error},
                           {"max_abs", d.max_abs},
                           {"limit", d.limit},
                           {"ok", d.ok()},
                           {"state", state_of(d)},
                           {"known_differences", known}});
  if (!place.empty()) json_["rows"].back()["device"] = place;
  if (per_node_) json_["rows"].back()["node"] = row.node;
  if (!row.node.empty() && !d.ok())
    first_off_.push_back(fmt::format("the first that is off against {}: {}, which computes {}\n",
                                     row.against, row.node, row.output));
}

void VerifyReport::add_notes(const Row& row) {
  // A detector chooses once per level and class: the nearest nodes say what there is to say.
  constexpr size_t kMost = 3;
  for (size_t i = 0; i < row.known.size() && i < kMost; ++i)
    notes_.insert(fmt::format("note: {} depends on {}", row.output, row.known[i].text));
  if (row.known.size() > kMost)
    notes_.insert(fmt::format("note: {} depends on {} more nodes of that kind (--json lists them)",
                              row.output, row.known.size() - kMost));
}

nlohmann::ordered_json VerifyReport::document() {
  json_["ok"] = good_;
  return json_;
}

std::string VerifyReport::text(bool losses_only) const {
  std::string text = losses_;
  if (losses_only) return text;
  if (per_node_ && good_) text += fmt::format("every node agrees: {}\n", counts_text(compared_));
  if (!per_node_ || !good_) text += table(rows_);
  for (const std::string& line : first_off_) text += line;
  for (const std::string& note : notes_) text += note + "\n";
  return text;
}

}  // namespace tilewright::driver
