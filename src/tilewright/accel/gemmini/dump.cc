// Program dumps, the format `gemmini-program-dump` (docs/gemmini.md): written and read.
#include <fmt/format.h>

#include <optional>

#include "tilewright/accel/common/manifest.h"
#include "tilewright/accel/common/program_bytes.h"
#include "tilewright/accel/gemmini/program.h"

namespace tilewright::gemmini {
namespace {

using Json = accel::Json;
using accel::Files;

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

Json run_json(const Run& run, Files& files) {
  std::string& commands = files["commands.bin"];
  Json json;
  json["commands"] = {
      {"file", "commands.bin"}, {"offset", commands.size()}, {"count", run.insns.size()}};
  for (const Insn& insn : run.insns) {
    const RawCommand raw = encode(insn);
    put_number(commands, raw.funct), put_number(commands, raw.rs1), put_number(commands, raw.rs2);
  }
  json["patches"] = Json::array();
  for (const Patch& patch : run.patches)
    json["patches"].push_back(
        accel::with_part({{"address", patch.address}}, files, "patches.bin", patch.data));
  json["spans"] = accel::spans_json(run.spans);
  return json;
}

class DumpReader : accel::ManifestReader {
 public:
  explicit DumpReader(std::string folder) : ManifestReader(std::move(folder), kFileLimit) {}

  Result<Dump> read() {
    TW_TRY_STATUS(open());
    Program& program = dump_.program;
    read_header(kDumpFormat, kDumpVersion, program);
    read_config();
    if (const Json* image = member(json(), "image", "")) {
      if (const auto base = number(*image, "address", "image")) program.base = *base;
      if (const auto bytes = part(*image, "image", number(*image, "bytes", "image")))
        program.image = *bytes;
    }
    program.inputs = read_regions("inputs");
    program.outputs = read_regions("outputs");
    read_runs();
    TW_TRY_STATUS(status());
    if (Status status = validate(program); !status)
      return tl::unexpected<Error>(std::move(status.error()).at(folder()));
    read_expected();
    TW_TRY_STATUS(status());
    return std::move(dump_);
  }

 private:
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
        const auto bytes = patch_part(patches[p], place, number(patches[p], "bytes", place));
        if (!address || !bytes) continue;
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

  uint64_t commands_ = 0;
  Dump dump_;
};

}  // namespace

Status write_dump(const std::string& folder, const Program& program,
                  const std::string& final_image) {
  TW_TRY_STATUS(validate(program));
  TW_TRY_STATUS(accel::check_final_image(program, final_image));
  Files files;
  Json json = accel::header_json(kDumpFormat, kDumpVersion, program);
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
