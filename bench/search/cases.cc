#include "cases.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tilewright/base/file.h"
#include "tilewright/driver/tuning/machine_rates.h"
#include "tilewright/tensor/op.h"
#include "tilewright/tensor/workload.h"

namespace tilewright::bench {
namespace {

using Ints = std::vector<int64_t>;

/// Channels, filters, height and width, kernel, stride.
/// source: FlexTensor paper, table 4; TVM paper, table 2.
const std::map<std::string, Ints> kConvolutions = {
    {"yolo:C1", {3, 64, 448, 7, 2}},        {"yolo:C2", {64, 192, 112, 3, 1}},
    {"yolo:C3", {192, 128, 56, 1, 1}},      {"yolo:C4", {128, 256, 56, 3, 1}},
    {"yolo:C5", {256, 256, 56, 1, 1}},      {"yolo:C6", {256, 512, 56, 3, 1}},
    {"yolo:C7", {512, 256, 28, 1, 1}},      {"yolo:C8", {256, 512, 28, 3, 1}},
    {"yolo:C9", {512, 512, 28, 1, 1}},      {"yolo:C10", {512, 1024, 28, 3, 1}},
    {"yolo:C11", {1024, 512, 14, 1, 1}},    {"yolo:C12", {512, 1024, 14, 3, 1}},
    {"yolo:C13", {1024, 1024, 14, 3, 1}},   {"yolo:C14", {1024, 1024, 14, 3, 2}},
    {"yolo:C15", {1024, 1024, 7, 3, 1}},    {"resnet18:C2", {64, 64, 56, 3, 1}},
    {"resnet18:C3", {64, 64, 56, 1, 1}},    {"resnet18:C4", {64, 128, 56, 3, 2}},
    {"resnet18:C5", {64, 128, 56, 1, 2}},   {"resnet18:C6", {128, 128, 28, 3, 1}},
    {"resnet18:C7", {128, 256, 28, 3, 2}},  {"resnet18:C8", {128, 256, 28, 1, 2}},
    {"resnet18:C9", {256, 256, 14, 3, 1}},  {"resnet18:C10", {256, 512, 14, 3, 2}},
    {"resnet18:C11", {256, 512, 14, 1, 2}}, {"resnet18:C12", {512, 512, 7, 3, 1}},
};

/// Channels in blocks as in NCHWc, the layout that FlexTensor and TVM use on CPUs; fewer than a
/// block stay together.
tensor::OpCall blocked_conv(const Ints& s) {
  constexpr int64_t kBlock = 16;
  const int64_t in = s[0] % kBlock == 0 ? kBlock : s[0], pad = s[3] / 2;
  tensor::OpCall call;
  call.domain = "tilewright", call.op = "ConvBlocked";
  call.attrs.values = {{"pads", Ints{pad, pad, pad, pad}}, {"strides", Ints{s[4], s[4]}}};
  for (const Ints& shape : {Ints{1, s[0] / in, s[2], s[2], in},
                            Ints{s[1] / kBlock, s[0] / in, s[3], s[3], in, kBlock}, Ints{s[1]}})
    call.inputs.push_back({true, DType::F32, shape, {}});
  return call;
}

Result<Ints> sizes(const std::string& name, size_t count) {
  Ints out;
  std::istringstream list(name.substr(name.find(':') + 1));
  for (std::string item; std::getline(list, item, ',');) out.push_back(std::atoll(item.c_str()));
  for (const int64_t size : out)
    if (size < 1) return fail(ErrorKind::Usage, fmt::format("'{}': sizes are positive", name));
  if (out.size() != count)
    return fail(ErrorKind::Usage, fmt::format("'{}': {} sizes are needed", name, count));
  return out;
}

Result<tensor::OpCall> workload_case(const std::string& id, const std::string& path) {
  const std::string text = TW_TRY(read_file(path));
  const nlohmann::json file = nlohmann::json::parse(text, nullptr, false);
  if (file.is_discarded() || !file.contains("cases"))
    return fail(ErrorKind::Parse, fmt::format("{} is no workload file", path));
  for (const nlohmann::json& item : file["cases"])
    if (item.value("id", "") == id)
      return tensor::workload_call(item.value("operator", ""),
                                   item["params"].get<std::map<std::string, int64_t>>());
  return fail(ErrorKind::Usage, fmt::format("no case '{}' in {}", id, path));
}

Result<tensor::OpCall> call_of(const std::string& name, const CaseOptions& options) {
  if (const auto known = kConvolutions.find(name); known != kConvolutions.end())
    return blocked_conv(known->second);
  if (name.starts_with("conv:")) return blocked_conv(TW_TRY(sizes(name, 5)));
  if (name.starts_with("gemm:")) {
    const Ints s = TW_TRY(sizes(name, 3));
    return tensor::workload_call("gemm", {{"batch", 1}, {"m", s[0]}, {"n", s[1]}, {"k", s[2]}});
  }
  if (options.workload.empty())
    return fail(ErrorKind::Usage, fmt::format("'{}' is no kernel of this program", name), {},
                "for a case of a workload file, add --workload FILE");
  return workload_case(name, options.workload);
}

}  // namespace

Result<measure::Task> make_case(const std::string& name, const CaseOptions& options) {
  measure::Task task;
  task.name = name;
  task.func = TW_TRY(tensor::op_func(TW_TRY(call_of(name, options))));
  hw::CpuTarget host = hw::host();
  if (const auto rates = driver::kept_rates()) host.rates = *rates;
  task.target = hw::as_target(std::move(host));
  task.threads = options.threads;
  return task;
}

}  // namespace tilewright::bench
