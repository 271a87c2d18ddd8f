// Reading program dumps, the format `dpu-program-dump` (docs/dpu.md).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tilewright/accel/common/manifest.h"
#include "tilewright/accel/dpu/config_keys.h"
#include "tilewright/accel/dpu/dump_format.h"
#include "tilewright/accel/dpu/program.h"

namespace tilewright::dpu {
namespace {

using Json = accel::Json;

constexpr uint64_t kFileLimit = uint64_t{4} << 30;  // bytes; of all regions and patches, too
constexpr uint64_t kInsnLimit = uint64_t{1} << 24;  // instructions of all runs

class DumpReader : accel::ManifestReader {
 public:
  explicit DumpReader(std::string folder) : ManifestReader(std::move(folder), kFileLimit) {}

  Result<Dump> read() {
    TW_TRY_STATUS(open());
    read_header(kDumpFormat, kDumpVersion, dump_.program);
    read_config();
    read_regions();
    read_runs();
    read_outputs();
    TW_TRY_STATUS(status());
    if (Status status = validate(dump_.program); !status)
      return tl::unexpected<Error>(std::move(status.error()).at(folder()));
    return std::move(dump_);
  }

 private:
  /// The number of a region that a dump has.
  std::optional<size_t> reg(const Json& object, const std::string& where) {
    const auto value = number(object, "reg", where);
    if (!value) return std::nullopt;
    if (*value < kDumpedRegs.size()) return static_cast<size_t>(*value);
    problem(where, fmt::format("there is no region {}", *value));
    return std::nullopt;
  }

  /// As the TOML it stands for; keys that are not known are left out.
  void read_config() {
    const Json* config = member(json(), "config", "");
    if (config == nullptr) return;
    Result<Config> parsed =
        parse_config(toml_of(*config, "config", config_keys(), "compiler"), "config");
    if (parsed)
      dump_.program.config = *std::move(parsed);
    else
      problem("", std::move(parsed.error()));
  }

  void read_regions() {
    const Json& regions = list(json(), "regions", "");
    std::array<const Json*, kDumpedRegs.size()> found{};
    for (size_t i = 0; i < regions.size(); ++i) {
      const std::string where = fmt::format("region {}", i);
      const auto number_of = reg(regions[i], where);
      if (!number_of) continue;
      if (found[*number_of] != nullptr)
        problem(where, fmt::format("is region {} again", *number_of));
      found[*number_of] = &regions[i];
    }
    Program& program = dump_.program;
    for (size_t r = 0; r < found.size(); ++r) {
      if (found[r] != nullptr) read_region(static_cast<Reg>(r), *found[r]);
      // Regions that are empty still have a place.
      Region& region = program.regions[r];
      if (region.bytes == 0) region.address = program.end();
    }
  }
  void read_region(Reg id, const Json& json) {
    const std::string where = fmt::format("region `{}`", name(id));
    const auto bytes = number(json, "bytes", where);
    Program& program = dump_.program;
    if (!bytes) return;
    if (*bytes > kFileLimit - program.image.size())
      return problem(where, fmt::format("{} bytes are too many", *bytes));
    program.regions[static_cast<size_t>(id)] = {std::string(name(id)), program.end(), *bytes};
    const bool may_lack = *bytes == 0 || id == Reg::Output || id == Reg::Swap;
    if (may_lack && !json.contains("file")) {
      program.image.resize(program.image.size() + *bytes);
    } else if (const auto contents = part(json, where, bytes)) {
      program.image += *contents;
    }
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
    const auto bytes = part(json, where, std::nullopt);
    if (!count || !bytes) return;
    insns_ += *count;
    if (*count > kInsnLimit || insns_ > kInsnLimit)
      return problem(where, fmt::format("more than {} instructions", kInsnLimit));
    Result<std::vector<Insn>> insns = decode(*bytes, *count);
    if (!insns) return problem(where, std::move(insns.error()));
    run.insns = *std::move(insns);
  }
  void read_patch(const Json& json, const std::string& where, Run& run) {
    const auto id = reg(json, where);
    const auto addr = number(json, "addr", where);
    const auto contents = patch_part(json, where, number(json, "bytes", where, false));
    if (!id || !addr || !contents) return;
    const Region& region = dump_.program.regions[*id];
    if (*addr > region.bytes || contents->size() > region.bytes - *addr)
      return problem(where, fmt::format("{} bytes at {} are not inside the region of {}",
                                        contents->size(), *addr, region.bytes));
    run.patches.push_back({region.address + *addr, std::string(*contents)});
  }

  void read_outputs() {
    const Json& outputs = list(json(), "outputs", "");
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string where = fmt::format("output {}", i);
      const auto label = text(outputs[i], "name", where);
      const auto id = reg(outputs[i], where);
      const auto addr = number(outputs[i], "addr", where);
      const auto bytes = number(outputs[i], "bytes", where);
      const Json& shape = list(outputs[i], "shape", where);
      if (!label || !id || !addr || !bytes) continue;
      DdrTensor tensor;
      tensor.name = *label;
      tensor.reg = static_cast<Reg>(*id);
      tensor.addr = *addr;
      if (!read_shape(shape, tensor)) {
        problem(where, "`shape` must be four sizes: images, channels, rows, columns");
        continue;
      }
      if (const Json* fix = member(outputs[i], "fix_point", where, false);
          fix != nullptr && fix->is_number_integer())
        tensor.fix_point = static_cast<int>(std::clamp<int64_t>(fix->get<int64_t>(), -1000, 1000));
      const Region& region = dump_.program.regions[*id];
      dump_.program.outputs.push_back({*label, region.address + *addr, *bytes});
      dump_.program.output_tensors.push_back(tensor);
      dump_.expected.push_back(expected(outputs[i], *bytes, where));
    }
  }
  static bool read_shape(const Json& shape, DdrTensor& tensor) {
    if (shape.size() != 4) return false;
    for (const Json& size : shape)
      if (!size.is_number_unsigned() || size.get<uint64_t>() > (1u << 20)) return false;
    tensor.channels = shape[1].get<int64_t>();
    tensor.height = shape[2].get<int64_t>();
    tensor.width = shape[3].get<int64_t>();
    return true;
  }

  uint64_t insns_ = 0;
  Dump dump_;
};

}  // namespace

Result<Dump> read_dump(const std::string& folder) { return DumpReader(folder).read(); }

}  // namespace tilewright::dpu
