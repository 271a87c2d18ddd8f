// For tests: a program as a design, in the cycle simulator or under Verilator.
#pragma once

#include <cstring>

#include "tilewright/accel/fpga/sim/tsim.h"
#include "tilewright/codegen/fpga/design_of.h"
#include "tilewright/lower/lower.h"
#include "tilewright/lower/testing/meaning.h"

namespace tilewright::codegen::testing {

inline Result<fpga::Design> design_for(const Func& func) {
  const Func lowered = TW_TRY(lower::run_pipeline(func, "fpga"));
  return design_of(lowered, TW_TRY(lower::processes_of(lowered)), hw::fpga_devices()[0]);
}

/// The bytes of all parameters; what is written is 0.
inline std::vector<std::string> bytes_of(const Func& func, const interp::Arguments& arguments) {
  std::vector<std::string> bytes;
  for (const Param& p : func.params) {
    Shape shape;
    for (const Expr& extent : p.buffer.shape()) shape.push_back(as_int(extent).value_or(0));
    Array array(p.buffer.dtype(), shape);
    if (const auto given = arguments.arrays.find(p.buffer.name()); given != arguments.arrays.end())
      array = given->second;
    if (p.values) array = *p.values;
    bytes.emplace_back(static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes()));
  }
  return bytes;
}

/// What differs between the program in order and `bytes`; empty if nothing.
inline std::string difference(const Func& func, const interp::Outcome& expected,
                              const std::vector<std::string>& bytes) {
  interp::Outcome got = expected;
  for (size_t i = 0; i < func.params.size(); ++i) {
    const auto at = got.outputs.find(func.params[i].buffer.name());
    if (at == got.outputs.end()) continue;
    at->second = at->second.clone();
    std::memcpy(at->second.data(), bytes[i].data(), bytes[i].size());
  }
  return lower::testing::difference(expected, got, 0);
}

}  // namespace tilewright::codegen::testing
