#include "cases.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tilewright/codesign/workload.h"
#include "tilewright/tensor/workload.h"

namespace tilewright::bench {

std::vector<Operator> operators_of(const std::string& workload_file, const std::string& suites) {
  std::ifstream file(workload_file);
  std::vector<Operator> operators;
  const nlohmann::json workload = nlohmann::json::parse(file);
  for (const auto& entry : workload.at("cases")) {
    if (!entry.at("suite").get<std::string>().starts_with(suites)) continue;
    const auto name = entry.at("operator").get<std::string>();
    const auto params = entry.at("params").get<std::map<std::string, int64_t>>();
    const tensor::OpCall call = tensor::workload_call(name, params, DType::I8).value();
    const Func func = tensor::op_func(call).value();
    Operator one{entry.at("id").get<std::string>(), {}};
    codesign::Workload parts = codesign::workload_of(func).value();
    for (codesign::WorkloadLayer& layer : parts.layers) {
      layer.layer.tensors[1].packed = name == "conv2d" || name == "gemm";
      one.layers.push_back(std::move(layer.layer));
    }
    operators.push_back(std::move(one));
  }
  return operators;
}

}  // namespace tilewright::bench
