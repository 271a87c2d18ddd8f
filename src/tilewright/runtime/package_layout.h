// Names inside a package, shared by its reader and its writer.
#pragma once

#include <string>

#include "tilewright/runtime/program.h"

namespace tilewright::runtime {

inline constexpr const char* kPackageFormat = "tilewright-package";
inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kGraphName = "graph.onnx";
inline constexpr const char* kWeightsName = "weights.bin";
inline constexpr const char* kRecordsName = "records.jsonl";
/// The last member; `sha256sum -c manifest.sha256` checks it after unpacking.
inline constexpr const char* kManifestDigestName = "manifest.sha256";

inline std::string code_name(const TargetSpec& target) {
  std::string folder = target.name.empty() ? "any" : target.name.substr(0, 64);
  for (char& c : folder)
    if (c == '/' || c == '\0') c = '_';
  return "code/" + folder + "/model.so";
}

inline std::string launch_code_name(const std::string& name, const LaunchInfo& info) {
  return "code/" + info.device + "/" + name + ".bin";
}

inline std::string manifest_digest_line(const std::string& sha256) {
  return sha256 + "  " + kManifestName + "\n";
}

}  // namespace tilewright::runtime
