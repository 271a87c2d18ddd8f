#include "tilewright/driver/report/quantization_report.h"

#include <fmt/format.h>

#include "tilewright/driver/cli.h"

namespace tilewright::driver {
namespace {

nlohmann::ordered_json value_json(const ValueLoss& value) {
  return {{"name", value.name}, {"sqnr_db", value.sqnr_db()}, {"least_db", value.least_db}};
}

std::string share(int64_t part, int64_t all) {
  if (all == 0) return "-";
  return fmt::format("{} of {} ({:.1f} %)", part, all,
                     100.0 * static_cast<double>(part) / static_cast<double>(all));
}

}  // namespace

nlohmann::ordered_json loss_json(const QuantizationLoss& loss) {
  nlohmann::ordered_json json = {{"samples", loss.samples}};
  json["outputs"] = json["layers"] = nlohmann::ordered_json::array();
  for (const OutputLoss& output : loss.outputs) {
    nlohmann::ordered_json row = value_json(output.value);
    const ClassLoss& classes = output.classes;
    if (classes.rows > 0)
      row["top1"] = {{"rows", classes.rows},
                     {"agree", classes.agree},
                     {"clear", classes.clear},
                     {"clear_agree", classes.clear_agree}};
    json["outputs"].push_back(std::move(row));
  }
  for (const ValueLoss& layer : loss.layers) json["layers"].push_back(value_json(layer));
  return json;
}

std::string loss_text(const QuantizationLoss& loss) {
  std::vector<std::vector<std::string>> outputs = {
      {"output", "SQNR", "worst sample", "same first class", "where f32 is clear"}};
  for (const OutputLoss& output : loss.outputs)
    outputs.push_back({output.value.name, fmt::format("{:.1f} dB", output.value.sqnr_db()),
                       fmt::format("{:.1f} dB", output.value.least_db),
                       share(output.classes.agree, output.classes.rows),
                       share(output.classes.clear_agree, output.classes.clear)});
  std::vector<std::vector<std::string>> layers = {{"layer", "SQNR", "worst sample"}};
  for (const ValueLoss& layer : loss.layers)
    layers.push_back({layer.name, fmt::format("{:.1f} dB", layer.sqnr_db()),
                      fmt::format("{:.1f} dB", layer.least_db)});
  return fmt::format("8-bit integers against f32, {} samples\n\n{}\n{}", loss.samples,
                     table(outputs), table(layers));
}

}  // namespace tilewright::driver
