// Writing program dumps, the format `vta-program-dump` (docs/vta.md).
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tilewright/accel/vta/program.h"
#include "tilewright/base/file.h"

namespace tilewright::vta {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

tl::unexpected<Error> io_error(const char* verb, const fs::path& path,
                               const std::error_code& code) {
  return fail(ErrorKind::Io, fmt::format("cannot {} '{}'", verb, path.string()), code.message());
}

/// The files beside the manifest, filled while the manifest is made.
struct Files {
  std::string insns, patches;
};

Json region_json(const Region& region) {
  return {{"name", region.name}, {"addr", region.address}, {"bytes", region.bytes}};
}

Json run_json(const Config& config, const Run& run, Files& files) {
  Json json;
  json["insns"] = {
      {"file", "insns.bin"}, {"offset", files.insns.size()}, {"count", run.insns.size()}};
  for (const Insn& insn : run.insns)
    for (const uint64_t word : encode(config, insn))
      for (int i = 0; i < 8; ++i) files.insns += static_cast<char>(word >> (8 * i) & 0xff);
  for (const Patch& patch : run.patches) {
    json["patches"].push_back({{"addr", patch.address},
                               {"file", "patches.bin"},
                               {"offset", files.patches.size()},
                               {"bytes", patch.data.size()}});
    files.patches += patch.data;
  }
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
  for (const Run& run : program.runs) {
    Json list = Json::array();
    for (const Span& span : run.spans)
      list.push_back({{"name", span.name}, {"begin", span.begin}, {"end", span.end}});
    spans.push_back(std::move(list));
  }
  // Only the whole configuration has clock and timing.
  return {
      {"hw", to_toml(program.config)}, {"inputs", std::move(inputs)}, {"spans", std::move(spans)}};
}

Result<Json> manifest_json(const Program& program, bool with_final, Files& files) {
  const Extensions& extensions = program.config.extensions;
  Json json;
  json["format"] = "vta-program-dump";
  // Version 1 readers know neither four modules nor the extra bit of GEMM.
  json["version"] = extensions.pipeline4 || extensions.fused_reset ? 2 : 1;
  if (!program.producer.empty()) json["producer"] = program.producer;
  json["config"] = Json::parse(to_json(program.config));
  json["dram"] = {{"file", "dram.bin"}, {"base", program.base}, {"size", program.image.size()}};
  json["runs"] = Json::array();
  for (const Run& run : program.runs) json["runs"].push_back(run_json(program.config, run, files));
  json["outputs"] = Json::array();
  for (const Region& output : program.outputs) json["outputs"].push_back(region_json(output));
  if (with_final) json["final"] = {{"file", "final.bin"}};
  Json info = Json::object();
  if (!program.info.empty()) info = Json::parse(program.info, nullptr, /*allow_exceptions=*/false);
  if (!info.is_object())
    return fail(ErrorKind::Invalid, "the program's information is not a JSON object");
  info["stats"] = stats_json(program);
  json["info"] = std::move(info);
  json["tilewright"] = own_json(program);
  return json;
}

/// A folder that a dump may take the place of: absent, empty, or a dump.
Status check_replaceable(const fs::path& folder) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(folder, code);
  if (status.type() == fs::file_type::not_found) return {};
  if (!fs::is_directory(status))
    return fail(ErrorKind::Io, fmt::format("'{}' is in the way of a dump", folder.string()),
                "it is not a folder", "name another folder");
  if (fs::is_empty(folder, code)) return {};
  if (const Result<std::string> manifest = read_file((folder / "manifest.json").string());
      manifest && manifest->find("vta-program-dump") != std::string::npos)
    return {};
  return fail(ErrorKind::Io, fmt::format("folder '{}' holds other files", folder.string()),
              "only an empty folder or an earlier dump is replaced", "name another folder");
}

Status put_in_place(const fs::path& made, const fs::path& folder) {
  std::error_code code;
  const fs::path old = folder.string() + fmt::format(".old.{}", ::getpid());
  const bool there = fs::exists(folder, code);
  if (there) fs::rename(folder, old, code);
  if (code) return io_error("replace", folder, code);
  fs::rename(made, folder, code);
  if (code) {
    const Status failed = io_error("create", folder, code);
    if (there) fs::rename(old, folder, code);
    return failed;
  }
  if (there) fs::remove_all(old, code);
  return {};
}

Status write_files(const fs::path& folder, const std::string& manifest, const Files& files,
                   const Program& program, const std::string& final_image) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return io_error("create", folder, code);
  TW_TRY_STATUS(write_file((folder / "dram.bin").string(), program.image));
  TW_TRY_STATUS(write_file((folder / "insns.bin").string(), files.insns));
  if (!files.patches.empty())
    TW_TRY_STATUS(write_file((folder / "patches.bin").string(), files.patches));
  if (!final_image.empty()) TW_TRY_STATUS(write_file((folder / "final.bin").string(), final_image));
  return write_file((folder / "manifest.json").string(), manifest);
}

}  // namespace

Status write_dump(const std::string& folder, const Program& program,
                  const std::string& final_image) {
  TW_TRY_STATUS(validate(program));
  if (!final_image.empty() && final_image.size() != program.image.size())
    return fail(ErrorKind::Invalid, fmt::format("the final image has {} bytes, but the image {}",
                                                final_image.size(), program.image.size()));
  Files files;
  const Json manifest = TW_TRY(manifest_json(program, !final_image.empty(), files));
  // Names are the user's: bytes that are not UTF-8 are replaced rather than fatal.
  const std::string text = manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";

  fs::path target = fs::path(folder).lexically_normal();
  if (target.filename().empty()) target = target.parent_path();
  TW_TRY_STATUS(check_replaceable(target));
  const fs::path made = target.string() + fmt::format(".tmp.{}", ::getpid());
  Status status = write_files(made, text, files, program, final_image);
  if (status) status = put_in_place(made, target);
  if (!status) {
    std::error_code ignored;
    fs::remove_all(made, ignored);
  }
  return status;
}

}  // namespace tilewright::vta
