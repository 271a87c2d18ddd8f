// `.twm` packages: a plain tar of manifest, graph, code, weights and records.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/file.h"
#include "tilewright/runtime/kernel_abi.h"
#include "tilewright/runtime/program.h"

namespace tilewright::runtime {

class Library;

/// Version of the package format written here; newer ones are refused.
inline constexpr int kPackageVersion = 1;

/// Bytes of weights.bin from `offset` on.
struct WeightPiece {
  int64_t offset = 0;
  std::string_view bytes;
};

/// What goes into a package. Views must stay valid during the call.
struct PackageContents {
  Program program;
  std::string_view graph;            ///< graph.onnx; may be empty
  std::string_view code;             ///< code/<target>/model.so; empty if there are no kernels
  std::vector<WeightPiece> weights;  ///< in any order, not overlapping; gaps are zero
  std::string_view records;          ///< records.jsonl; may be empty
  /// Code of the program's launches, by name.
  std::map<std::string, std::string_view> launches;
  /// Further members by name, for whoever knows them; the runtime does not.
  std::map<std::string, std::string_view> extras;
};

/// Writes to a temporary file in the same folder and renames; on error nothing is left behind.
/// Equal contents give equal bytes. errors: Io, Package (weights not as long as the program says).
Status write_package(const std::string& path, const PackageContents& contents);

struct OpenOptions {
  bool verify_weights = false;  ///< also hash weights, graph and records (reads the whole file)
  bool load_code = true;        ///< false: only look inside, whatever CPU the code is for
  /// Features of a target that this machine lacks; empty: missing_cpu_features.
  std::function<std::vector<std::string>(const TargetSpec&)> missing_features;
};

struct PackageMember {
  std::string name;
  std::string_view bytes;
  std::string sha256;  ///< as the manifest says; empty if it does not mention the member
};

/// An open package: mapped file, loaded code. Loading runs the package's code.
class Package {
 public:
  /// errors: Io, Package (not a tar, cut off, version, hash, missing members, another CPU).
  static Result<std::shared_ptr<const Package>> open(const std::string& path,
                                                     const OpenOptions& options = {});
  /// The same from bytes in memory, 64-byte aligned; `name` is for messages.
  static Result<std::shared_ptr<const Package>> open(MappedFile file, const std::string& name,
                                                     const OpenOptions& options = {});

  const Program& program() const { return program_; }
  /// In the order of the file; the manifest is first.
  const std::vector<PackageMember>& members() const { return members_; }
  /// nullptr if there is no such member.
  const PackageMember* member(std::string_view name) const;
  MappedFile weights() const;
  /// nullptr if the code has no such symbol.
  tw_kernel find(const std::string& symbol) const;
  /// Code of a launch; empty if there is none of that name.
  std::string_view launch_code(const std::string& name) const;

 private:
  Package() = default;
  Status read_manifest();
  Status check_members(const OpenOptions& options) const;
  Status load_code(const OpenOptions& options);

  MappedFile file_;
  std::vector<PackageMember> members_;
  Program program_;
  std::shared_ptr<const Library> library_;
};

/// The subset of `required` (LLVM's spelling, `+avx2`) that this machine lacks; names that this
/// runtime does not know count as there.
std::vector<std::string> missing_cpu_features(const TargetSpec& required);

}  // namespace tilewright::runtime
