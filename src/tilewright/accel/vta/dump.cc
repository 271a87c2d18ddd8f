// Writing program dumps, the format `vta-program-dump` (docs/vta.md).
#include <fmt/format.h>

#include "tilewright/accel/common/manifest.h"
#include "tilewright/accel/vta/program.h"
#include "tilewright/base/json.h"

namespace tilewright::vta {
namespace {

using Json = accel::Json;
using accel::Files;

constexpr std::string_view kDumpFormat = "vta-program-dump";

Json region_json(const Region& region) {
  return {{"name", region.name}, {"addr", region.address}, {"bytes", region.bytes}};
}

Json run_json(const Config& config, const Run& run, Files& files) {
  std::string& insns = files["insns.bin"];
  Json json;
  json["insns"] = {{"file", "insns.bin"}, {"offset", insns.size()}, {"count", run.insns.size()}};
  for (const Insn& insn : run.insns)
    for (const uint64_t word : encode(config, insn))
      for (int i = 0; i < 8; ++i) insns += static_cast<char>(word >> (8 * i) & 0xff);
  for (const Patch& patch : run.patches)
    json["patches"].push_back(
        accel::with_part({{"addr", patch.address}}, files, "patches.bin", patch.data));
  return json;
}

/// Traffic and steps of all runs, by the names of the format; ACC_8BIT counts as ACC.
Json stats_json(const Program& program) {
  uint64_t loaded[4] = {}, stored = 0, gemm_steps = 0, alu_steps = 0;
  for (const Run& run : program.runs)
    for (const Insn& insn : run.insns) {
      if (const auto* move = std::get_if<Transfer>(&insn.op)) {
        const Mem mem = move->mem == Mem::Acc8 ? Mem::Acc : move->mem;
        const uint64_t bytes = uint64_t{move->x_size} * move->y_size *
                               static_cast<uint64_t>(program.config.element_bytes(mem));
        (move->store ? stored : loaded[static_cast<size_t>(mem)]) += bytes;
      } else if (const auto* gemm = std::get_if<Gemm>(&insn.op)) {
        if (!gemm->reset) gemm_steps += gemm->loops.steps();
      } else if (const auto* alu = std::get_if<Alu>(&insn.op)) {
        alu_steps += alu->loops.steps();
      }
    }
  const auto of = [&](Mem mem) { return loaded[static_cast<size_t>(mem)]; };
  return {{"inp_load_nbytes", of(Mem::Inp)}, {"wgt_load_nbytes", of(Mem::Wgt)},
          {"acc_load_nbytes", of(Mem::Acc)}, {"uop_load_nbytes", of(Mem::Uop)},
          {"out_store_nbytes", stored},      {"gemm_counter", gemm_steps},
          {"alu_counter", alu_steps}};
}

/// What the format has no keys for.
Json own_json(const Program& program) {
  Json inputs = Json::array(), spans = Json::array();
  for (const Region& input : program.inputs) inputs.push_back(region_json(input));
  for (const Run& run : program.runs) spans.push_back(accel::spans_json(run.spans));
  // Only the whole configuration has clock and timing.
  return {
      {"hw", to_toml(program.config)}, {"inputs", std::move(inputs)}, {"spans", std::move(spans)}};
}

Result<Json> manifest_json(const Program& program, bool with_final, Files& files) {
  const Extensions& extensions = program.config.extensions;
  // Version 1 readers know neither four modules nor the extra bit of GEMM.
  const int version = extensions.pipeline4 || extensions.fused_reset ? 2 : 1;
  Json json = accel::header_json(kDumpFormat, version, program);
  json["config"] = parse_ordered_json(to_json(program.config));
  json["dram"] = {{"file", "dram.bin"}, {"base", program.base}, {"size", program.image.size()}};
  json["runs"] = Json::array();
  for (const Run& run : program.runs) json["runs"].push_back(run_json(program.config, run, files));
  json["outputs"] = Json::array();
  for (const Region& output : program.outputs) json["outputs"].push_back(region_json(output));
  if (with_final) json["final"] = {{"file", "final.bin"}};
  Json info = TW_TRY(accel::info_json(program.info));
  info["stats"] = stats_json(program);
  json["info"] = std::move(info);
  json["tilewright"] = own_json(program);
  return json;
}

}  // namespace

Status write_dump(const std::string& folder, const Program& program,
                  const std::string& final_image) {
  TW_TRY_STATUS(validate(program));
  TW_TRY_STATUS(accel::check_final_image(program, final_image));
  Files files = {{"dram.bin", program.image}};
  const Json manifest = TW_TRY(manifest_json(program, !final_image.empty(), files));
  if (!final_image.empty()) files["final.bin"] = final_image;
  files["manifest.json"] = accel::manifest_text(manifest);
  return accel::write_dump_folder(folder, kDumpFormat, files);
}

}  // namespace tilewright::vta
