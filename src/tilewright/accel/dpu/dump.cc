// Writing program dumps, the format `dpu-program-dump` (docs/dpu.md).
#include <fmt/format.h>

#include "tilewright/accel/common/manifest.h"
#include "tilewright/accel/dpu/config_keys.h"
#include "tilewright/accel/dpu/device.h"
#include "tilewright/accel/dpu/dump_format.h"
#include "tilewright/accel/dpu/program.h"
#include "tilewright/base/json.h"

namespace tilewright::dpu {
namespace {

using Json = accel::Json;
using accel::Files;

std::string letters(unsigned mask) {
  std::string text;
  for (int u = 0; u < kUnits; ++u)
    if ((mask >> u & 1) != 0) text += letter(static_cast<Unit>(u));
  return text;
}

Json value_json(const Key& key, Config& config) {
  if (const auto* number = std::get_if<IntOf>(&key.value)) return (*number)(config);
  if (const auto* real = std::get_if<DoubleOf>(&key.value)) return (*real)(config);
  if (const auto* depths = std::get_if<DepthsOf>(&key.value)) return (*depths)(config);
  const bool value = std::get<BoolOf>(key.value)(config);
  if (key.when_true.empty()) return value;
  return std::string(value ? key.when_true : key.when_false);
}

/// Every key but those of the compiler: no reader needs them.
Json config_json(const Config& config) {
  Config copy = config;
  Json json = {{"kind", "dpu"}, {"name", config.name}};
  for (const Key& key : config_keys()) {
    if (key.table == "compiler") continue;
    Json& into = key.table.empty() ? json : json[std::string(key.table)];
    into[std::string(key.name)] = value_json(key, copy);
  }
  return json;
}

std::string insn_line(const Insn& insn) {
  Json json = {{"op", std::string(op_name(insn.op))},
               {"dpon", letters(insn.dpon)},
               {"dpby", letters(insn.dpby)}};
  std::visit(
      [&](const auto& op) {
        for (const auto& field : op.fields()) json[std::string(field.name)] = op.*field.member;
      },
      insn.op);
  return json_text(json) + "\n";
}

/// The region that bytes of the image lie in, as far as dumps have it.
Result<size_t> region_of(const Program& program, uint64_t address, uint64_t bytes) {
  for (const Reg reg : kDumpedRegs) {
    const Region& region = program.regions[static_cast<size_t>(reg)];
    if (address >= region.address && address - region.address <= region.bytes &&
        bytes <= region.bytes - (address - region.address))
      return static_cast<size_t>(reg);
  }
  return fail(ErrorKind::Invalid, "a patch writes outside of the regions that a dump has",
              fmt::format("{} bytes at {}", bytes, address));
}

Result<Json> run_json(const Program& program, const Run& run, Files& files) {
  std::string& insns = files["insns.bin"];
  Json json;
  json["insns"] = {{"file", "insns.bin"}, {"offset", insns.size()}, {"count", run.insns.size()}};
  for (const Insn& insn : run.insns) {
    encode(insn, insns);
    files["insns.jsonl"] += insn_line(insn);
  }
  json["patches"] = Json::array();
  for (const Patch& patch : run.patches) {
    const size_t reg = TW_TRY(region_of(program, patch.address, patch.data.size()));
    const Json place = {{"reg", reg}, {"addr", patch.address - program.regions[reg].address}};
    json["patches"].push_back(accel::with_part(place, files, "patches.bin", patch.data));
  }
  json["spans"] = accel::spans_json(run.spans);
  return json;
}

std::string region_bytes(const Program& program, const std::string& image, Reg reg) {
  const Region& region = program.regions[static_cast<size_t>(reg)];
  return image.substr(region.address - program.base, region.bytes);
}

/// The image as the format unit leaves it.
std::string formatted_image(const Program& program) {
  std::string image = program.image;
  for (const FormatJob& job : program.formats) {
    const auto offset = [&](Reg reg) {
      return program.regions[static_cast<size_t>(reg)].address - program.base;
    };
    const std::string target = format_bytes(
        program.config, job, std::string_view(image).substr(offset(Reg::Format) + job.source));
    image.replace(offset(Reg::Input) + job.target, target.size(), target);
  }
  return image;
}

Json regions_json(const Program& program, Files& files) {
  const std::string image = formatted_image(program);
  Json json = Json::array();
  for (const Reg reg : kDumpedRegs) {
    const Region& region = program.regions[static_cast<size_t>(reg)];
    const std::string label(name(reg));
    Json entry = {{"name", label}, {"reg", static_cast<int>(reg)}, {"bytes", region.bytes}};
    if (region.bytes > 0) {
      std::string bytes = region_bytes(program, image, reg);
      // Results begin as zeros, which need no file.
      const bool result = reg == Reg::Output || reg == Reg::Swap;
      if (!result || bytes.find_first_not_of('\0') != bytes.npos) {
        entry["file"] = label + ".bin";
        files[label + ".bin"] = std::move(bytes);
      }
    }
    json.push_back(std::move(entry));
  }
  return json;
}

Json outputs_json(const Program& program, bool with_results) {
  Json json = Json::array();
  for (const DdrTensor& tensor : program.output_tensors) {
    Json entry = {{"name", tensor.name},
                  {"reg", static_cast<int>(tensor.reg)},
                  {"addr", tensor.addr},
                  {"shape", {program.config.pe, tensor.channels, tensor.height, tensor.width}},
                  {"fix_point", tensor.fix_point},
                  {"bytes", bytes_of(program.config, tensor)},
                  {"after_run", program.runs.size() - 1}};
    if (with_results) {
      entry["expected"] = fmt::format("final_{}.bin", name(tensor.reg));
      entry["offset"] = tensor.addr;
    }
    json.push_back(std::move(entry));
  }
  return json;
}

/// When each unit was busy, and when results were there.
std::string times_text(const Program& program, const DumpResults& results) {
  std::string text = "run,insn,unit,begin,end,done\n";
  for (size_t r = 0; r < results.times.size(); ++r)
    for (const accel::InsnTime& time : results.times[r]) {
      const Insn& insn = program.runs[r].insns[time.insn];
      text += fmt::format("{},{},{},{},{},{}\n", r, time.insn, letter(unit_of(insn)), time.begin,
                          busy_end(program.config, insn, time), time.end);
    }
  return text;
}

Status check_results(const Program& program, const DumpResults& results) {
  TW_TRY_STATUS(accel::check_final_image(program, results.final_image));
  if (results.times.empty()) return {};
  bool fits = results.times.size() == program.runs.size();
  for (size_t r = 0; fits && r < program.runs.size(); ++r)
    for (const accel::InsnTime& time : results.times[r])
      fits = fits && size_t{time.insn} + 1 < program.runs[r].insns.size();
  if (fits) return {};
  return fail(ErrorKind::Invalid, "the times are not those of the program");
}

}  // namespace

Status write_dump(const std::string& folder, const Program& program, const DumpResults& results) {
  TW_TRY_STATUS(validate(program));
  TW_TRY_STATUS(check_results(program, results));
  Files files;
  Json json = accel::header_json(kDumpFormat, kDumpVersion, program);
  json["config"] = config_json(program.config);
  json["regions"] = regions_json(program, files);
  json["runs"] = Json::array();
  for (const Run& run : program.runs) json["runs"].push_back(TW_TRY(run_json(program, run, files)));
  json["outputs"] = outputs_json(program, !results.final_image.empty());
  if (!results.final_image.empty()) {
    json["final"] = Json::array();
    for (const Reg reg : kDumpedRegs) {
      if (program.regions[static_cast<size_t>(reg)].bytes == 0) continue;
      const std::string file = fmt::format("final_{}.bin", name(reg));
      json["final"].push_back({{"reg", static_cast<int>(reg)}, {"file", file}});
      files[file] = region_bytes(program, results.final_image, reg);
    }
  }
  if (!results.times.empty()) files["times.csv"] = times_text(program, results);
  json["info"] = TW_TRY(accel::info_json(program.info));
  files["manifest.json"] = accel::manifest_text(json);
  return accel::write_dump_folder(folder, kDumpFormat, files);
}

}  // namespace tilewright::dpu
