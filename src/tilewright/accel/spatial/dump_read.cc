// Reading program dumps, the format `spatial-program-dump` (docs/spatial.md).
#include <fmt/format.h>

#include <optional>

#include "tilewright/accel/common/manifest.h"
#include "tilewright/accel/spatial/design_keys.h"
#include "tilewright/accel/spatial/dump_format.h"
#include "tilewright/accel/spatial/program.h"

namespace tilewright::spatial {
namespace {

using Json = accel::Json;

constexpr uint64_t kFileLimit = uint64_t{4} << 30;  // bytes; of all patches, too
constexpr uint64_t kInsnLimit = uint64_t{1} << 24;  // instructions of all runs

class DumpReader : accel::ManifestReader {
 public:
  explicit DumpReader(std::string folder) : ManifestReader(std::move(folder), kFileLimit) {}

  Result<Dump> read() {
    TW_TRY_STATUS(open());
    read_header(kDumpFormat, kDumpVersion, dump_.program);
    read_design_values();
    read_image();
    read_runs();
    dump_.program.inputs = read_regions("inputs");
    dump_.program.outputs = read_regions("outputs");
    read_expected();
    TW_TRY_STATUS(status());
    if (Status status = validate(dump_.program); !status)
      return tl::unexpected<Error>(std::move(status.error()).at(folder()));
    return std::move(dump_);
  }

 private:
  /// As the TOML it stands for; keys that are not known are left out.
  void read_design_values() {
    const Json* design = member(json(), "design", "");
    if (design == nullptr) return;
    Result<Design> parsed = read_design(toml_of(*design, "design", design_keys()), "design");
    if (parsed)
      dump_.program.design = *std::move(parsed);
    else
      problem("", std::move(parsed.error()));
  }

  void read_image() {
    const Json* image = member(json(), "image", "");
    if (image == nullptr) return;
    const auto address = number(*image, "address", "image");
    const auto bytes = number(*image, "bytes", "image");
    if (!address || !bytes) return;
    const auto contents = part(*image, "image", bytes);
    if (!contents) return;
    dump_.program.base = *address;
    dump_.program.image = *contents;
  }

  void read_runs() {
    const Json& runs = list(json(), "runs", "");
    if (runs.empty()) problem("", "`runs` needs at least one run");
    for (size_t i = 0; i < runs.size(); ++i) {
      const std::string where = fmt::format("run {}", i);
      Run run;
      if (const Json* insns = member(runs[i], "insns", where)) read_insns(*insns, where, run);
      const Json& patches = list(runs[i], "patches", where, false);
      for (size_t p = 0; p < patches.size(); ++p)
        read_patch(patches[p], fmt::format("{}: patch {}", where, p), run);
      read_spans(list(runs[i], "spans", where, false), where, run.spans);
      dump_.program.runs.push_back(std::move(run));
    }
  }
  void read_insns(const Json& json, const std::string& where, Run& run) {
    const auto count = number(json, "count", where);
    if (!count) return;
    insns_ += *count;
    if (*count > kInsnLimit || insns_ > kInsnLimit)
      return problem(where, fmt::format("more than {} instructions", kInsnLimit));
    const auto bytes = part(json, where, *count * kInsnBytes);
    if (!bytes) return;
    Result<std::vector<Insn>> insns = decode_all(*bytes);
    if (!insns) return problem(where, std::move(insns.error()));
    run.insns = *std::move(insns);
  }
  void read_patch(const Json& json, const std::string& where, Run& run) {
    const auto address = number(json, "address", where);
    const auto contents = patch_part(json, where, number(json, "bytes", where));
    if (!address || !contents) return;
    run.patches.push_back({*address, std::string(*contents)});
  }

  /// What each output is to hold; entries without a region were problems.
  void read_expected() {
    const Json& outputs = list(json(), "outputs", "");
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const auto bytes = number(outputs[i], "bytes", "", false))
        dump_.expected.push_back(expected(outputs[i], *bytes, fmt::format("outputs {}", i)));
  }

  uint64_t insns_ = 0;
  Dump dump_;
};

}  // namespace

Result<Dump> read_dump(const std::string& folder) { return DumpReader(folder).read(); }

}  // namespace tilewright::spatial
