#include "tilewright/compile/fpga/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "tilewright/base/bytes.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/ir/text.h"

namespace tilewright::compile {
namespace {

constexpr std::string_view kFpgaSignature = "TWFPGA3\n";

void put_fpga_indices(std::string& out, const std::vector<int>& indices) {
  put_number(out, indices.size());
  for (const int index : indices) put_number(out, static_cast<uint64_t>(index));
}

/// Numbers beyond int become -1, which no index is.
Result<int> read_fpga_index(ByteReader& in) {
  const uint64_t number = TW_TRY(in.number());
  return number > std::numeric_limits<int>::max() ? -1 : static_cast<int>(number);
}
Result<std::vector<int>> read_fpga_indices(ByteReader& in) {
  std::vector<int> indices(TW_TRY(in.count(8, "values")));
  for (int& index : indices) index = TW_TRY(read_fpga_index(in));
  return indices;
}

Result<FpgaNetwork> read_network(ByteReader& in) {
  FpgaNetwork network;
  network.device =
      TW_TRY(hw::parse_fpga_device(TW_TRY(in.bytes("the device")), "the package's device"));
  network.designs.resize(TW_TRY(in.count(24, "designs")));
  for (FpgaNetwork::Design& design : network.designs) {
    design.func = TW_TRY(parse_func(TW_TRY(in.bytes("a program"))));
    design.cycles = static_cast<int64_t>(TW_TRY(in.number()));
    design.structure = TW_TRY(read_fpga_index(in));
  }
  network.values.resize(TW_TRY(in.count(16, "values")));
  for (FpgaNetwork::Value& value : network.values) {
    value.bytes = static_cast<int64_t>(TW_TRY(in.number()));
    value.constant = static_cast<int64_t>(TW_TRY(in.number()));
  }
  network.calls.resize(TW_TRY(in.count(24, "calls")));
  for (FpgaNetwork::Call& call : network.calls) {
    call.name = TW_TRY(in.bytes("a layer"));
    call.design = TW_TRY(read_fpga_index(in));
    call.values = TW_TRY(read_fpga_indices(in));
  }
  network.inputs = TW_TRY(read_fpga_indices(in));
  network.outputs = TW_TRY(read_fpga_indices(in));
  network.constants = TW_TRY(in.bytes("the constants"));
  return network;
}

/// What is wrong with a network; empty: nothing.
class NetworkCheck {
 public:
  explicit NetworkCheck(const FpgaNetwork& network) : network_(network) {}

  std::string run() const {
    const auto there = static_cast<int64_t>(network_.constants.size());
    for (const FpgaNetwork::Value& value : network_.values)
      if (value.bytes < 0 || value.constant < -1 ||
          (value.constant >= 0 && (value.bytes > there || value.constant > there - value.bytes)))
        return "a value lies outside of the constants";
    for (const FpgaNetwork::Design& design : network_.designs)
      if (design.structure < 0) return "a design has no structure";
    for (const auto* border : {&network_.inputs, &network_.outputs})
      for (const int index : *border)
        if (!is_value(index) || is_constant(index)) return "an input or output is no value";
    for (const FpgaNetwork::Call& call : network_.calls)
      if (std::string wrong = check(call); !wrong.empty()) return wrong + " of layer " + call.name;
    return "";
  }

 private:
  bool is_value(int index) const {
    return index >= 0 && static_cast<size_t>(index) < network_.values.size();
  }
  bool is_constant(int index) const {
    return network_.values[static_cast<size_t>(index)].constant >= 0;
  }

  std::string check(const FpgaNetwork::Call& call) const {
    if (call.design < 0 || static_cast<size_t>(call.design) >= network_.designs.size())
      return "there is no design";
    size_t next = 0;
    for (const Param& param : network_.designs[static_cast<size_t>(call.design)].func.params) {
      if (param.values) continue;
      if (next == call.values.size()) return "a parameter has no value";
      const int index = call.values[next++];
      const Result<int64_t> bytes = param_bytes(param);
      const bool fits =
          is_value(index) && bytes && *bytes == network_.values[static_cast<size_t>(index)].bytes;
      if (!fits || (param.mode == ParamMode::Out && is_constant(index)))
        return fmt::format("parameter {} does not fit its value", param.buffer.name());
    }
    return next == call.values.size() ? "" : "there are more values than parameters";
  }

  const FpgaNetwork& network_;
};

}  // namespace

int64_t FpgaNetwork::cycles() const {
  int64_t sum = 0;
  for (const Call& call : calls) sum += designs[static_cast<size_t>(call.design)].cycles;
  return sum;
}

size_t FpgaNetwork::used_designs() const {
  int used = 0;
  for (const Call& call : calls) used = std::max(used, call.design + 1);
  return static_cast<size_t>(used);
}

std::vector<std::vector<const FpgaNetwork::Design*>> FpgaNetwork::by_structure() const {
  std::map<int, std::vector<const Design*>> by_number;
  for (const Design& design : designs) by_number[design.structure].push_back(&design);
  std::vector<std::vector<const Design*>> all;
  for (auto& [number, alike] : by_number) all.push_back(std::move(alike));
  return all;
}

std::string serialise(const FpgaNetwork& network) {
  std::string out(kFpgaSignature);
  put_bytes(out, hw::to_toml(network.device));
  put_number(out, network.designs.size());
  for (const FpgaNetwork::Design& design : network.designs) {
    put_bytes(out, print(design.func));
    put_number(out, static_cast<uint64_t>(design.cycles));
    put_number(out, static_cast<uint64_t>(design.structure));
  }
  put_number(out, network.values.size());
  for (const FpgaNetwork::Value& value : network.values) {
    put_number(out, static_cast<uint64_t>(value.bytes));
    put_number(out, static_cast<uint64_t>(value.constant));
  }
  put_number(out, network.calls.size());
  for (const FpgaNetwork::Call& call : network.calls) {
    put_bytes(out, call.name);
    put_number(out, static_cast<uint64_t>(call.design));
    put_fpga_indices(out, call.values);
  }
  put_fpga_indices(out, network.inputs);
  put_fpga_indices(out, network.outputs);
  put_bytes(out, network.constants);
  return out;
}

Result<FpgaNetwork> parse_fpga_network(std::string_view code) {
  const auto damaged = [](const std::string& why) {
    return fail(ErrorKind::Package, "the code for an FPGA is damaged", why, "compile it again");
  };
  if (!code.starts_with(kFpgaSignature)) return damaged("it does not begin as such code does");
  ByteReader in(code.substr(kFpgaSignature.size()), ErrorKind::Package, "the code for an FPGA");
  Result<FpgaNetwork> network = read_network(in);
  if (!network) return damaged(network.error().what);
  if (in.left() > 0) return damaged("bytes follow");
  if (const std::string wrong = NetworkCheck(*network).run(); !wrong.empty()) return damaged(wrong);
  return network;
}

std::string layers_text(size_t layers, size_t designs) {
  if (layers == 1) return "1 layer on 1 design";
  return layers == designs
             ? fmt::format("{} layers, each a design of its own", layers)
             : fmt::format("{} layers on {} design{}", layers, designs, designs == 1 ? "" : "s");
}

std::string layers_text(const FpgaNetwork& network) {
  const std::string text = layers_text(network.calls.size(), network.structures());
  return network.designs.size() == network.used_designs() ? text
                                                          : text + ", which other launches share";
}

Result<int64_t> param_bytes(const Param& param) {
  int64_t elements = 1;
  for (const Expr& extent : param.buffer.shape()) {
    const auto whole = as_int(extent);
    if (!whole)
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' has a symbolic shape", param.buffer.name()), {},
                  "give its sizes as numbers");
    elements *= *whole;
  }
  return storage_bytes(param.buffer.dtype(), elements);
}

Result<FpgaNetwork> network_of(const Func& func, int64_t cycles, const hw::FpgaDevice& device) {
  FpgaNetwork network;
  network.device = device;
  network.designs.push_back({func, cycles, 0});
  FpgaNetwork::Call& call = network.calls.emplace_back();
  call.name = func.name;
  for (const Param& p : func.params) {
    const char* what = p.mode == ParamMode::InOut ? "is read and written"
                       : !p.strides.empty()       ? "has strides"
                                                  : nullptr;
    if (what != nullptr)
      return fail(ErrorKind::Unsupported,
                  fmt::format("parameter {} of '{}' {}", p.buffer.name(), func.name, what),
                  "programs for FPGAs take whole arrays in and give whole arrays out",
                  "`tilewright hls` writes its C++");
    if (p.values) continue;
    const auto index = static_cast<int>(network.values.size());
    network.values.push_back({TW_TRY(param_bytes(p)), -1});
    call.values.push_back(index);
    (p.mode == ParamMode::Out ? network.outputs : network.inputs).push_back(index);
  }
  return network;
}

}  // namespace tilewright::compile
