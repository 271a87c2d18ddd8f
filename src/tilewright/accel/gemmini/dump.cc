// Program dumps, the format `gemmini-program-dump` (docs/gemmini.md): written and read.
#include <fmt/format.h>

#include <map>
#include <optional>

#include "tilewright/accel/common/manifest.h"
#include "tilewright/accel/common/program_bytes.h"
#include "tilewright/accel/gemmini/program.h"

namespace tilewright::gemmini {
namespace {

using Json = accel::Json;

constexpr std::string_view kDumpFormat = "gemmini-program-dump";
constexpr int kDumpVersion = 1;
constexpr uint64_t kFileLimit = kDramBytes;
constexpr uint64_t kCommandLimit = uint64_t{1} << 26;  // of all runs
constexpr uint64_t kCommandBytesInFile = 24;

Json config_json(const Config& config) {
  return {{"name", config.name},
          {"dim", config.dim},
          {"spad_kb", config.spad_kb},
          {"banks", config.banks},
          {"acc_kb", config.acc_kb}};
}

Json regions_json(const std::vector<Region>& regions) {
  Json json = Json::array();
  for (const Region& region : regions)
    json.push_back({{"name", region.name}, {"address", region.address}, {"bytes", region.bytes}});
  return json;
}

Json run_json(const Run& run, std::map<std::string, std::string>& files) {
  std::string& commands = files["commands.bin"];
  Json json;
  json["commands"] = {
      {"file", "commands.bin"}, {"offset", commands.size()}, {"count", run.insns.size()}};
  for (const Insn& insn : run.insns) {
    const RawCommand raw = encode(insn);
    put_number(commands, raw.funct), put_number(commands, raw.rs1), put_number(commands, raw.rs2);
  }
  json["patches"] = Json::array();
  for (const Patch& patch : run.patches) {
    std::string& patches = files["patches.bin"];
    json["patches"].push_back({{"address", patch.address},
                               {"file", "patches.bin"},
                               {"offset", patches.size()},
                               {"bytes", patch.data.size()}});
    patches += patch.data;
  }
  json["spans"] = accel::spans_json(run.spans);
  return json;
}

class DumpReader : accel::ManifestReader {
 public:
  explicit DumpReader(std::string folder) : ManifestReader(std::move(folder), kFileLimit) {}

  Result<Dump> read() {
    TW_TRY_STATUS(open());
    check_format(kDumpFormat);
    if (const auto version = number(json(), "version", ""); version && *version != kDumpVersion)
      problem("", fmt::format("version {} is not known; {} is", *version, kDumpVersion));
    Program& program = dump_.program;
    program.producer = text(json(), "producer", "", false).value_or("");
    program.info = read_info();
    read_config();
    if (const Json* image = member(json(), "image", "")) {
      if (const auto base = number(*image, "address", "image")) program.base = *base;
      if (const auto bytes = part(*image, "image", number(*image, "bytes", "image")))
        program.image = *bytes;
    }
    read_regions("inputs", program.inputs);
    read_regions("outputs", program.outputs);
    read_runs();
    TW_TRY_STATUS(status());
    if (Status status = validate(program); !status)
      return tl::unexpected<Error>(std::move(status.error()).at(folder()));
    read_expected();
    TW_TRY_STATUS(status());
    return std::move(dump_);
  }

 private:
  /// `bytes` bytes (default: the rest) of the file that an object names, from its offset on.
  std::optional<std::string_view> part(const Json& object, const std::string& where,
                                       std::optional<uint64_t> bytes) {
    const auto name = text(object, "file", where);
    const std::string* contents = name ? file(*name, where) : nullptr;
    if (contents == nullptr) return std::nullopt;
    const uint64_t offset = number(object, "offset", where, false).value_or(0);
    if (offset <= contents->size() && bytes.value_or(0) <= contents->size() - offset)
      return std::string_view(*contents).substr(offset, bytes.value_or(std::string::npos));
    problem(where, fmt::format("{} bytes from offset {} go beyond the {} of '{}'",
                               bytes.value_or(0), offset, contents->size(), *name));
    return std::nullopt;
  }

  void read_config() {
    const Json* config = member(json(), "config", "");
    if (config == nullptr) return;
    Config& into = dump_.program.config;
    into.name = text(*config, "name", "config", false).value_or(into.name);
    const auto read = [&](const char* key, int& value) {
      if (const auto found = number(*config, key, "config", false))
        value = static_cast<int>(std::min<uint64_t>(*found, 1 << 30));
    };
    read("dim", into.dim), read("spad_kb", into.spad_kb);
    read("banks", into.banks), read("acc_kb", into.acc_kb);
  }

  void read_regions(const char* key, std::vector<Region>& into) {
    const Json& regions = list(json(), key, "");
    for (size_t i = 0; i < regions.size(); ++i) {
      const std::string where = fmt::format("{} {}", key, i);
      const auto name = text(regions[i], "name", where);
      const auto address = number(regions[i], "address", where);
      const auto bytes = number(regions[i], "bytes", where);
      if (name && address && bytes) into.push_back({*name, *address, *bytes});
    }
  }

  void read_runs() {
    const Json& runs = list(json(), "runs", "");
    for (size_t i = 0; i < runs.size(); ++i) {
      const std::string where = fmt::format("run {}", i);
      Run run;
      if (const Json* commands = member(runs[i], "commands", where))
        read_commands(*commands, where, run);
      const Json& patches = list(runs[i], "patches", where, false);
      for (size_t p = 0; p < patches.size(); ++p) {
        const std::string place = fmt::format("{}: patch {}", where, p);
        const auto address = number(patches[p], "address", place);
        const auto bytes = part(patches[p], place, number(patches[p], "bytes", place));
        if (!address || !bytes) continue;
        patched_ += bytes->size();
        if (patched_ > kFileLimit) return problem(place, "all patches together are too large");
        run.patches.push_back({*address, std::string(*bytes)});
      }
      read_spans(list(runs[i], "spans", where, false), where, run.spans);
      dump_.program.runs.push_back(std::move(run));
    }
  }

  void read_commands(const Json& json, const std::string& where, Run& run) {
    const auto count = number(json, "count", where);
    if (!count) return;
    commands_ += *count;
    if (*count > kCommandLimit || commands_ > kCommandLimit)
      return problem(where, fmt::format("more than {} commands", kCommandLimit));
    const auto bytes = part(json, where, *count * kCommandBytesInFile);
    if (!bytes) return;
    ByteReader in(*bytes, ErrorKind::Parse, "the commands");
    for (uint64_t i = 0; i < *count; ++i) {
      // There are as many bytes as they take.
      const uint64_t funct = *in.number(), rs1 = *in.number(), rs2 = *in.number();
      Result<Insn> insn = decode({funct > 127 ? 127 : static_cast<uint32_t>(funct), rs1, rs2});
      if (!insn) return problem(where, std::move(insn.error()).at(fmt::format("command {}", i)));
      run.insns.push_back(*std::move(insn));
    }
  }

  /// After the regions are known to be inside of the image.
  void read_expected() {
    const Program& program = dump_.program;
    dump_.expected.resize(program.outputs.size());
    const auto name = text(json(), "final", "", false);
    const std::string* image = name ? file(*name, "final") : nullptr;
    if (image == nullptr) return;
    if (image->size() != program.image.size())
      return problem("final", fmt::format("it has {} bytes, but the image {}", image->size(),
                                          program.image.size()));
    for (size_t o = 0; o < program.outputs.size(); ++o)
      dump_.expected[o] =
          image->substr(program.outputs[o].address - program.base, program.outputs[o].bytes);
  }

  uint64_t commands_ = 0, patched_ = 0;
  Dump dump_;
};

}  // namespace

Status write_dump(const std::string& folder, const Program& program,
                  const std::string& final_image) {
  TW_TRY_STATUS(validate(program));
  if (!final_image.empty() && final_image.size() != program.image.size())
    return fail(ErrorKind::Invalid, fmt::format("the final image has {} bytes, but the image {}",
                                                final_image.size(), program.image.size()));
  std::map<std::string, std::string> files;
  Json json;
  json["format"] = kDumpFormat;
  json["version"] = kDumpVersion;
  if (!program.producer.empty()) json["producer"] = program.producer;
  json["config"] = config_json(program.config);
  json["image"] = {
      {"address", program.base}, {"bytes", program.image.size()}, {"file", "image.bin"}};
  files["image.bin"] = program.image;
  json["inputs"] = regions_json(program.inputs);
  json["outputs"] = regions_json(program.outputs);
  json["runs"] = Json::array();
  for (const Run& run : program.runs) json["runs"].push_back(run_json(run, files));
  files["commands.txt"] = assembly(program);
  if (!final_image.empty()) json["final"] = "final.bin", files["final.bin"] = final_image;
  json["info"] = TW_TRY(accel::info_json(program.info));
  files["manifest.json"] = accel::manifest_text(json);
  return accel::write_dump_folder(folder, kDumpFormat, files);
}

Result<Dump> read_dump(const std::string& folder) { return DumpReader(folder).read(); }

}  // namespace tilewright::gemmini
