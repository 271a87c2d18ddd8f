#include "tilewright/accel/vta/program.h"

#include <fmt/format.h>

#include <limits>
#include <set>

#include "tilewright/base/bytes.h"

namespace tilewright::vta {
namespace {

constexpr std::string_view kMagic = "TWVTAPR1";

void put(std::string& out, uint64_t value) { put_number(out, value); }
void put(std::string& out, std::string_view bytes) { put_bytes(out, bytes); }
void put(std::string& out, const std::vector<Region>& regions) {
  put(out, regions.size());
  for (const Region& region : regions) {
    put(out, region.name);
    put(out, region.address);
    put(out, region.bytes);
  }
}
void put(std::string& out, const Config& config, const Run& run) {
  put(out, run.patches.size());
  for (const Patch& patch : run.patches) {
    put(out, patch.address);
    put(out, patch.data);
  }
  put(out, run.insns.size());
  for (const Insn& insn : run.insns)
    for (const uint64_t word : encode(config, insn)) put(out, word);
  put(out, run.spans.size());
  for (const Span& span : run.spans) {
    put(out, span.name);
    put(out, span.begin);
    put(out, span.end);
  }
}

Result<std::vector<Region>> read_regions(ByteReader& in) {
  std::vector<Region> regions(TW_TRY(in.count(24, "regions")));
  for (Region& region : regions) {
    region.name = TW_TRY(in.bytes("a name"));
    region.address = TW_TRY(in.number());
    region.bytes = TW_TRY(in.number());
  }
  return regions;
}

Result<std::vector<Insn>> read_insns(ByteReader& in, const Config& config) {
  const size_t count = TW_TRY(in.count(16, "instructions"));
  std::vector<Insn> insns;
  insns.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    Word word{};
    for (uint64_t& half : word) half = TW_TRY(in.number());
    Result<Insn> insn = decode(config, word);
    if (!insn)
      return tl::unexpected<Error>(std::move(insn.error()).at(fmt::format("instruction {}", i)));
    insns.push_back(*std::move(insn));
  }
  return insns;
}

Result<Run> read_run(ByteReader& in, const Config& config) {
  Run run;
  run.patches.resize(TW_TRY(in.count(16, "patches")));
  for (Patch& patch : run.patches) {
    patch.address = TW_TRY(in.number());
    patch.data = TW_TRY(in.bytes("a patch"));
  }
  run.insns = TW_TRY(read_insns(in, config));
  run.spans.resize(TW_TRY(in.count(24, "spans")));
  for (Span& span : run.spans) {
    span.name = TW_TRY(in.bytes("a name"));
    span.begin = TW_TRY(in.number());
    span.end = TW_TRY(in.number());
  }
  return run;
}

/// Gathers the problems of a program; a few dozen are enough for anyone.
class Validator {
 public:
  explicit Validator(const Program& program) : program_(program) {}

  Status run() {
    if (Status status = check(program_.config); !status) add(std::move(status.error()));
    if (program_.base % kPage != 0 || program_.base < kPage)
      add(fmt::format("base {} is not a positive multiple of {}", program_.base, kPage));
    if (program_.base > kDramLimit || program_.image.size() > kDramLimit - program_.base)
      add(fmt::format("the image of {} bytes from {} ends beyond 4 GiB", program_.image.size(),
                      program_.base));
    if (program_.runs.empty()) add("there is no run");
    regions("input", program_.inputs);
    regions("output", program_.outputs);
    // Fields have widths only if the configuration is legal.
    const bool encodable = errors_.empty();
    for (size_t i = 0; i < program_.runs.size(); ++i) check_run(i, encodable);
    return status();
  }

 private:
  static constexpr size_t kMost = 50;

  void add(Error error) {
    if (errors_.size() < kMost) errors_.push_back(std::move(error));
  }
  void add(std::string what) { add(Error{ErrorKind::Invalid, std::move(what), {}, {}, {}, {}}); }

  void inside(const std::string& what, uint64_t address, uint64_t bytes) {
    const uint64_t size = program_.image.size();
    if (address < program_.base || address - program_.base > size ||
        bytes > size - (address - program_.base))
      add(fmt::format("{} ({} bytes from {}) is not inside the image ({} bytes from {})", what,
                      bytes, address, size, program_.base));
  }
  void regions(std::string_view kind, const std::vector<Region>& all) {
    std::set<std::string> names;
    for (const Region& region : all) {
      inside(fmt::format("{} '{}'", kind, region.name), region.address, region.bytes);
      if (!names.insert(region.name).second)
        add(fmt::format("two {}s have the name '{}'", kind, region.name));
    }
  }
  void check_run(size_t index, bool encodable) {
    const Run& run = program_.runs[index];
    for (const Patch& patch : run.patches)
      inside(fmt::format("a patch of run {}", index), patch.address, patch.data.size());
    for (const Span& span : run.spans)
      if (span.begin > span.end || span.end > run.insns.size())
        add(fmt::format("span '{}' of run {} is {}..{}, but there are {} instructions", span.name,
                        index, span.begin, span.end, run.insns.size()));
    for (size_t i = 0; encodable && i < run.insns.size(); ++i)
      if (Status status = fits(program_.config, run.insns[i]); !status)
        add(std::move(status.error()).at(fmt::format("run {}: instruction {}", index, i)));
  }
  Status status() {
    if (errors_.empty()) return {};
    Error first = std::move(errors_.front());
    for (size_t i = 1; i < errors_.size(); ++i) first.others.push_back(std::move(errors_[i]));
    return tl::unexpected<Error>(std::move(first));
  }

  const Program& program_;
  std::vector<Error> errors_;
};

}  // namespace

Status validate(const Program& program) { return Validator(program).run(); }

std::string serialise(const Program& program) {
  std::string out(kMagic);
  put(out, to_toml(program.config));
  put(out, program.base);
  put(out, program.image);
  put(out, program.runs.size());
  for (const Run& run : program.runs) put(out, program.config, run);
  put(out, program.inputs);
  put(out, program.outputs);
  put(out, program.producer);
  put(out, program.info);
  return out;
}

Result<Program> parse_program(std::string_view bytes) {
  ByteReader in(bytes, ErrorKind::Parse, "VTA program");
  const Result<std::string_view> magic = in.take(kMagic.size(), "the signature");
  if (!magic || *magic != kMagic)
    return fail(ErrorKind::Parse, "not a VTA program",
                fmt::format("the signature `{}` is not there", kMagic),
                "compile the program again");
  Program program;
  const std::string config = TW_TRY(in.bytes("the configuration"));
  program.config = TW_TRY(parse_config(config, "configuration"));
  program.base = TW_TRY(in.number());
  program.image = TW_TRY(in.bytes("the image"));
  const size_t runs = TW_TRY(in.count(24, "runs"));
  for (size_t i = 0; i < runs; ++i) {
    Result<Run> run = read_run(in, program.config);
    if (!run) return tl::unexpected<Error>(std::move(run.error()).at(fmt::format("run {}", i)));
    program.runs.push_back(*std::move(run));
  }
  program.inputs = TW_TRY(read_regions(in));
  program.outputs = TW_TRY(read_regions(in));
  program.producer = TW_TRY(in.bytes("the producer"));
  program.info = TW_TRY(in.bytes("the information"));
  if (in.left() > 0)
    return fail(ErrorKind::Parse,
                fmt::format("{} bytes follow the VTA program at byte {}", in.left(), in.at()));
  TW_TRY_STATUS(validate(program));
  return program;
}

}  // namespace tilewright::vta
