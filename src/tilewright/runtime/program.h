// What a package says: values, where they live, and the steps to run. Serialised as manifest.json.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/runtime/kernel_abi.h"

namespace tilewright::runtime {

/// A tensor of the program and where its bytes are.
struct ValueSpec {
  /// View: the bytes of the input or output `of`, under a shape of its own.
  enum class Place { Input, Output, Arena, Weights, View } place = Place::Arena;
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  int64_t offset = 0;     ///< bytes into the arena or weights.bin (multiple of 64)
  int dynamic_axis = -1;  ///< its extent is an upper bound; the host function says the real one
  int of = -1;            ///< the value a View shows
};

/// One call, in program order.
struct StepSpec {
  std::string name;    ///< node or group name, for profiles and messages
  std::string kernel;  ///< symbol of compiled code, or
  std::string
      host;  ///< name of a host function (host_ops.h) with `attrs` (a JSON object), or `launch`
  std::string attrs;
  std::vector<int> args;  ///< value ids in the callee's order: inputs, then outputs; -1 = absent
  int num_outputs = 1;    ///< the last this many of args
  std::string launch;     ///< name of a program for another device (Program::launches)
};

/// Code for another device; its bytes are the package member `code/<device>/<name>.bin`.
struct LaunchInfo {
  std::string device;  ///< `vta`
};

/// Arithmetic of one kernel, for reports: a run needs none of it.
struct KernelWork {
  int64_t operations = 0;    ///< of the plain definition; a multiply-add is two
  DType dtype = DType::F32;  ///< in which most of it happens
  std::string algorithm;     ///< `winograd F(4x4)`, where another one is used; else empty
};

struct TargetSpec {
  std::string name, triple, cpu;
  std::vector<std::string> features;
};

struct Program {
  std::string name;
  TargetSpec target;
  std::vector<ValueSpec> values;
  std::vector<int> inputs, outputs;  ///< value ids
  std::vector<StepSpec> steps;
  std::map<std::string, KernelInfo> kernels;   ///< by symbol
  std::map<std::string, KernelWork> works;     ///< by symbol, of kernels where it is known
  std::map<std::string, LaunchInfo> launches;  ///< by name
  int64_t arena_bytes = 0, arena_lower_bound = 0, weights_bytes = 0;
  std::string math = "fast";
  std::map<std::string, std::string>
      notes;  ///< command, seed, source model hash, compiler version, ...
};

std::string to_json(const Program& program);
/// errors: Package, with the JSON path. Validates everything the executor relies on: ids, offsets,
/// sizes.
Result<Program> program_from_json(std::string_view text);

}  // namespace tilewright::runtime
