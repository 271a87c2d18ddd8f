// Reading program dumps, the format `vta-program-dump` (docs/vta.md).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tilewright/accel/common/manifest.h"
#include "tilewright/accel/vta/program.h"

namespace tilewright::vta {
namespace {

using Json = accel::Json;

constexpr uint64_t kInsnLimit = uint64_t{1} << 24;  // instructions of all runs

class DumpReader : accel::ManifestReader {
 public:
  explicit DumpReader(std::string folder) : ManifestReader(std::move(folder), kDramLimit) {}

  Result<Dump> read() {
    TW_TRY_STATUS(open());
    read_header();
    read_config();
    read_dram();
    read_runs();
    read_outputs();
    read_final();
    read_own();
    TW_TRY_STATUS(status());
    if (Status status = validate(dump_.program); !status)
      return tl::unexpected<Error>(std::move(status.error()).at(folder()));
    return std::move(dump_);
  }

 private:
  std::optional<Region> region(const Json& json, const std::string& where) {
    const auto name = text(json, "name", where);
    const auto address = number(json, "addr", where), bytes = number(json, "bytes", where);
    if (!name || !address || !bytes) return std::nullopt;
    return Region{*name, *address, *bytes};
  }

  const std::string* file_of(const Json& object, const std::string& where) {
    const auto name = text(object, "file", where);
    return name ? file(*name, where) : nullptr;
  }

  void read_header() {
    check_format("vta-program-dump");
    version_ = number(json(), "version", "").value_or(1);
    if (version_ != 1 && version_ != 2)
      problem("", fmt::format("version {} is not known; 1 and 2 are", version_));
    dump_.program.producer = read_producer();
    dump_.program.info = read_info();
  }

  void read_config() {
    const Json* config = member(json(), "config", "", true);
    if (config == nullptr) return;
    if (!config->is_object()) return problem("", "`config` must be an object", ErrorKind::Parse);
    Result<Config> parsed =
        parse_config(config->dump(-1, ' ', false, Json::error_handler_t::replace), "config");
    if (!parsed) return problem("", std::move(parsed.error()));
    dump_.program.config = *std::move(parsed);
    const Extensions& extensions = dump_.program.config.extensions;
    if (version_ == 1 && (extensions.pipeline4 || extensions.fused_reset))
      problem("config", "version 1 has neither PIPELINE 4 nor FUSED_RESET");
    have_config_ = true;
  }

  void read_dram() {
    const Json* dram = member(json(), "dram", "", true);
    if (dram == nullptr) return;
    const auto base = number(*dram, "base", "dram");
    const auto size = number(*dram, "size", "dram", false);
    const std::string* image = file_of(*dram, "dram");
    if (!base || image == nullptr) return;
    if (size && *size != image->size())
      problem("dram", fmt::format("`size` is {}, but the file has {} bytes", *size, image->size()));
    if (*base < kPage || *base % kPage != 0 || *base > kDramLimit ||
        image->size() > kDramLimit - *base)
      return problem("dram", fmt::format("base {} with {} bytes: must be a positive multiple of {} "
                                         "and end within 4 GiB",
                                         *base, image->size(), kPage));
    dump_.program.base = *base;
    dump_.program.image = *image;
    have_image_ = true;
  }

  bool inside(uint64_t address, uint64_t bytes) const {
    const uint64_t base = dump_.program.base, size = dump_.program.image.size();
    return address >= base && address - base <= size && bytes <= size - (address - base);
  }

  void read_runs() {
    const Json& runs = list(json(), "runs", "", true);
    if (runs.empty()) problem("", "`runs` needs at least one run");
    if (!have_config_ || !have_image_) return;
    // Instructions may lie in the image, where patches reach them.
    memory_ = dump_.program.image;
    for (size_t i = 0; i < runs.size(); ++i) {
      const std::string where = fmt::format("run {}", i);
      Run run;
      const Json& patches = list(runs[i], "patches", where, false);
      for (size_t p = 0; p < patches.size(); ++p)
        read_patch(patches[p], fmt::format("{}: patch {}", where, p), run);
      if (const Json* insns = member(runs[i], "insns", where, true)) read_insns(*insns, where, run);
      dump_.program.runs.push_back(std::move(run));
    }
  }

  void read_patch(const Json& json, const std::string& where, Run& run) {
    const auto address = number(json, "addr", where);
    const auto contents = patch_part(json, where, number(json, "bytes", where, false));
    if (!address || !contents) return;
    if (!inside(*address, contents->size()))
      return problem(where, fmt::format("{} bytes at {} are not inside the image", contents->size(),
                                        *address));
    run.patches.push_back({*address, std::string(*contents)});
    memory_.replace(*address - dump_.program.base, contents->size(), *contents);
  }

  void read_insns(const Json& json, const std::string& where, Run& run) {
    const auto count = number(json, "count", where);
    if (!count) return;
    const bool in_image = json.contains("addr");
    if (in_image == json.contains("file"))
      return problem(where, "`insns` needs either `addr` or `file`", ErrorKind::Parse);
    uint64_t offset = 0;
    const std::string* bytes = &memory_;
    if (in_image) {
      const auto address = number(json, "addr", where);
      if (!address) return;
      if (*address % 16 != 0 || !inside(*address, 0))
        return problem(where, fmt::format("instructions at {}: must be a multiple of 16 inside the "
                                          "image",
                                          *address));
      offset = *address - dump_.program.base;
    } else {
      offset = number(json, "offset", where, false).value_or(0);
      bytes = file_of(json, where);
      if (bytes == nullptr) return;
    }
    if (offset > bytes->size() || *count > (bytes->size() - offset) / 16)
      return problem(where, fmt::format("{} instructions from byte {} go beyond {} bytes", *count,
                                        offset, bytes->size()));
    total_insns_ += *count;
    if (total_insns_ > kInsnLimit)
      return problem(where, fmt::format("more than {} instructions", kInsnLimit));
    decode_all(std::string_view(*bytes).substr(offset, *count * 16), where, run);
  }

  void decode_all(std::string_view bytes, const std::string& where, Run& run) {
    run.insns.reserve(bytes.size() / 16);
    for (size_t i = 0; i < bytes.size() / 16; ++i) {
      Word word{};
      for (size_t b = 0; b < 16; ++b)
        word.at(b / 8) |= uint64_t{static_cast<unsigned char>(bytes[i * 16 + b])} << (b % 8 * 8);
      Result<Insn> insn = decode(dump_.program.config, word);
      if (!insn) {
        problem(fmt::format("{}: instruction {}", where, i), std::move(insn.error()));
        continue;
      }
      note_features(*insn);
      run.insns.push_back(*std::move(insn));
    }
  }
  /// The device a dump was made for has what its streams use.
  void note_features(const Insn& insn) {
    if (const auto* alu = std::get_if<Alu>(&insn.op); alu != nullptr && alu->op == AluOp::Mul)
      dump_.program.config.has_mul = true;
    if (const auto* move = std::get_if<Transfer>(&insn.op);
        move != nullptr && move->mem == Mem::Acc8)
      dump_.program.config.has_acc8 = true;
  }

  void read_outputs() {
    const Json& outputs = list(json(), "outputs", "", true);
    const size_t runs = list(json(), "runs", "", false).size();
    bool any = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string where = fmt::format("output {}", i);
      const auto found = region(outputs[i], where);
      if (!found) continue;
      const uint64_t after =
          number(outputs[i], "after_run", where, false).value_or(runs == 0 ? 0 : runs - 1);
      if (after >= runs)
        problem(where, fmt::format("`after_run` is {}, but there are {} runs", after, runs));
      any = any || outputs[i].contains("expected");
      dump_.program.outputs.push_back(*found);
      dump_.after_run.push_back(static_cast<int>(std::min<uint64_t>(after, runs)));
      dump_.expected.push_back(expected(outputs[i], found->bytes, where));
    }
    if (!any) dump_.expected.clear();
  }

  void read_final() {
    const Json* final = member(json(), "final", "", false);
    if (final == nullptr) return;
    const std::string* contents = file_of(*final, "final");
    if (contents == nullptr || !have_image_) return;
    if (contents->size() != dump_.program.image.size())
      return problem("final", fmt::format("has {} bytes, but the image {}", contents->size(),
                                          dump_.program.image.size()));
    dump_.final_image = *contents;
  }

  /// The keys that only Tilewright writes.
  void read_own() {
    const Json* own = member(json(), "tilewright", "", false);
    if (own == nullptr) return;
    if (const auto hw = text(*own, "hw", "tilewright", false)) read_hw(*hw);
    const Json& inputs = list(*own, "inputs", "tilewright", false);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (const auto found = region(inputs[i], fmt::format("tilewright: input {}", i)))
        dump_.program.inputs.push_back(*found);
    const Json& spans = list(*own, "spans", "tilewright", false);
    for (size_t i = 0; i < std::min(spans.size(), dump_.program.runs.size()); ++i) {
      const std::string where = fmt::format("tilewright: spans of run {}", i);
      if (!spans[i].is_array()) {
        problem(where, "must be an array", ErrorKind::Parse);
        continue;
      }
      read_spans(spans[i], where, dump_.program.runs[i].spans);
    }
  }

  /// The configuration in full: with name, clock and timing, which `config` has no keys for.
  void read_hw(const std::string& toml) {
    Result<Config> hw = parse_config(toml, "hw");
    if (!hw) return problem("tilewright", std::move(hw.error()));
    Config& config = dump_.program.config;
    hw->has_mul = config.has_mul = hw->has_mul || config.has_mul;
    hw->has_acc8 = config.has_acc8 = hw->has_acc8 || config.has_acc8;
    if (!same_architecture(*hw, config))
      return problem("tilewright",
                     fmt::format("`hw` is {}, but `config` is {}", label(*hw), label(config)));
    config = *std::move(hw);
  }

  uint64_t version_ = 1, total_insns_ = 0;
  bool have_config_ = false, have_image_ = false;
  std::string memory_;  ///< the image with the patches so far
  Dump dump_;
};

}  // namespace

Result<Dump> read_dump(const std::string& folder) { return DumpReader(folder).read(); }

}  // namespace tilewright::vta
