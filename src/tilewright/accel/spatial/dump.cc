// Writing program dumps, the format `spatial-program-dump` (docs/spatial.md).
#include <fmt/format.h>

#include "tilewright/accel/common/manifest.h"
#include "tilewright/accel/spatial/assembly.h"
#include "tilewright/accel/spatial/design_keys.h"
#include "tilewright/accel/spatial/dump_format.h"
#include "tilewright/accel/spatial/program.h"

namespace tilewright::spatial {
namespace {

using Json = accel::Json;
using accel::Files;

Json value_json(const Key& key, const Design& design) {
  if (const auto* words = std::get_if<Words>(&key.value))
    return std::string(words->words[static_cast<size_t>(words->get(design))]);
  if (key.whole()) return static_cast<int>(key.get(design));
  return key.get(design);
}

Json design_json(const Design& design) {
  Json json = {{"kind", "spatial"}, {"name", design.name}};
  for (const Key& key : design_keys()) {
    Json& into = key.table.empty() ? json : json[std::string(key.table)];
    into[std::string(key.name)] = value_json(key, design);
  }
  return json;
}

Json run_json(const Run& run, Files& files) {
  std::string& insns = files["insns.bin"];
  Json json;
  json["insns"] = {{"file", "insns.bin"}, {"offset", insns.size()}, {"count", run.insns.size()}};
  for (const Insn& insn : run.insns) insns += encode(insn);
  json["patches"] = Json::array();
  for (const Patch& patch : run.patches)
    json["patches"].push_back(
        accel::with_part({{"address", patch.address}}, files, "patches.bin", patch.data));
  json["spans"] = accel::spans_json(run.spans);
  return json;
}

Json regions_json(const Program& program, const std::vector<Region>& regions, bool expected) {
  Json json = Json::array();
  for (const Region& region : regions) {
    Json entry = {{"name", region.name}, {"address", region.address}, {"bytes", region.bytes}};
    if (expected) {
      entry["expected"] = "final.bin";
      entry["offset"] = region.address - program.base;
    }
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

Status write_dump(const std::string& folder, const Program& program,
                  const std::string& final_image) {
  TW_TRY_STATUS(validate(program));
  TW_TRY_STATUS(accel::check_final_image(program, final_image));
  Files files;
  Json json = accel::header_json(kDumpFormat, kDumpVersion, program);
  json["design"] = design_json(program.design);
  json["image"] = {
      {"address", program.base}, {"bytes", program.image.size()}, {"file", "image.bin"}};
  files["image.bin"] = program.image;
  json["runs"] = Json::array();
  for (const Run& run : program.runs) json["runs"].push_back(run_json(run, files));
  json["inputs"] = regions_json(program, program.inputs, false);
  json["outputs"] = regions_json(program, program.outputs, !final_image.empty());
  if (!final_image.empty()) files["final.bin"] = final_image;
  files["insns.asm"] = assembly(program.runs);
  json["info"] = TW_TRY(accel::info_json(program.info));
  files["manifest.json"] = accel::manifest_text(json);
  return accel::write_dump_folder(folder, kDumpFormat, files);
}

}  // namespace tilewright::spatial
