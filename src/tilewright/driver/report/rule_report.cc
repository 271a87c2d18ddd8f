#include "tilewright/driver/report/rule_report.h"

#include <fmt/format.h>

#include "tilewright/compile/backends.h"
#include "tilewright/driver/cli.h"

namespace tilewright::driver {
namespace {

nlohmann::ordered_json to_json(const rules::RuleChoice& choice) {
  nlohmann::ordered_json json{{"rule", choice.rule}};
  if (!choice.block.empty()) json["block"] = choice.block;
  json["declined"] = nlohmann::ordered_json::array();
  for (const rules::Declined& declined : choice.declined)
    json["declined"].push_back({{"rule", declined.rule}, {"reason", declined.reason}});
  return json;
}

std::string to_text(const rules::RuleChoice& choice) {
  std::string text = fmt::format("rule {}", choice.rule);
  if (!choice.block.empty()) text += fmt::format(", for the sum `{}`", choice.block);
  text += fmt::format(": {}\n", choice.what);
  if (choice.declined.empty()) return text;
  std::vector<std::vector<std::string>> rows = {{"declined before", "because"}};
  for (const rules::Declined& declined : choice.declined)
    rows.push_back({declined.rule, declined.reason});
  return text + table(rows);
}

std::vector<rules::RuleInfo> rules_of(const hw::Target& target) {
  return compile::backend_of(target).schedule_rules();
}

}  // namespace

nlohmann::ordered_json rules_json(const compile::KernelReport& kernel) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!kernel.rules.kernel.rule.empty()) json = to_json(kernel.rules.kernel);
  for (const rules::RuleChoice& sum : kernel.rules.sums) json["sums"].push_back(to_json(sum));
  if (kernel.record) json["recorded"] = true;
  return json;
}

std::string rules_text(const compile::KernelReport& kernel) {
  std::string text;
  if (!kernel.rules.kernel.rule.empty()) text += to_text(kernel.rules.kernel) + "\n";
  for (const rules::RuleChoice& sum : kernel.rules.sums) text += to_text(sum) + "\n";
  if (kernel.record) text += "a record of tuning says how (`tilewright records`)\n\n";
  return text;
}

nlohmann::ordered_json rule_list_json(const hw::Target& target) {
  nlohmann::ordered_json json{{"target", target.name}, {"rules", nlohmann::ordered_json::array()}};
  for (const rules::RuleInfo& rule : rules_of(target))
    json["rules"].push_back({{"rule", rule.name}, {"what", rule.what}});
  return json;
}

std::string rule_list_text(const hw::Target& target) {
  std::vector<std::vector<std::string>> rows = {{"rule", "for"}};
  for (const rules::RuleInfo& rule : rules_of(target)) rows.push_back({rule.name, rule.what});
  return table(rows);
}

}  // namespace tilewright::driver
