// What the package fuzzer and its seeded driver do with one input.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/check.h"
#include "tilewright/runtime/executor.h"
#include "tilewright/runtime/package.h"
#include "tilewright/runtime/testing/archive.h"

namespace tilewright::runtime {

inline void do_nothing(void* const*, const int64_t*, void*, const tw_kernel_services*) {}

/// Bytes of memory a run needs, or a large number.
inline int64_t footprint(const Program& program) {
  constexpr int64_t kTooMuch = int64_t{1} << 40;
  int64_t total = program.arena_bytes + program.weights_bytes;
  for (const ValueSpec& value : program.values) {
    total += storage_bytes(value.dtype, element_count(value.shape));
    if (total > kTooMuch) return kTooMuch;
  }
  for (const auto& [symbol, kernel] : program.kernels)
    total = std::max(total, kernel.shared_bytes + kernel.per_worker_bytes);
  return total;
}

/// Runs a valid program on zeros, its kernels replaced by nothing; false if it stopped on the way.
inline bool fuzz_program(const Program& program) {
  const auto again = program_from_json(to_json(program));
  TW_CHECK(again && to_json(*again) == to_json(program), "a program must survive a round trip");
  if (footprint(program) > 1 << 20 || program.steps.size() > 100) return false;
  std::string ones(static_cast<size_t>(program.weights_bytes), '\0');
  for (size_t i = 0; i < ones.size(); i += 8) ones[i] = 1;  // as i64: a K that fits
  const MappedFile weights = in_memory(ones);
  auto session =
      Session::create(std::make_shared<Program>(program),
                      [](const std::string&) { return do_nothing; }, weights, {.threads = 1});
  if (!session) return false;
  for (int id : program.inputs) {
    const ValueSpec& value = program.values[static_cast<size_t>(id)];
    TW_CHECK((*session)->set_input(value.name, Array(value.dtype, value.shape)));
  }
  if (!(*session)->run()) return false;
  for (int id : program.outputs)
    TW_CHECK((*session)->get_output(program.values[static_cast<size_t>(id)].name));
  return true;
}

/// Takes `bytes` as a whole package, and as the manifest of one whose hashes are right. Code is
/// never loaded: it may do anything.
inline void fuzz_package(std::string_view bytes) {
  OpenOptions options;
  options.load_code = false;
  options.verify_weights = true;
  (void)Package::open(in_memory(bytes), "raw", options);
  const std::string manifest(bytes);
  const std::string wrapped = pack({{"manifest.json", manifest},
                                    {"graph.onnx", ""},
                                    {"code/cpu/model.so", ""},
                                    {"weights.bin", std::string(256, '\0')},
                                    {"records.jsonl", ""},
                                    {"manifest.sha256", sha256(manifest) + "  manifest.json\n"}});
  options.verify_weights = false;
  const auto package = Package::open(in_memory(wrapped), "wrapped", options);
  if (package) fuzz_program((*package)->program());
  if (const auto program = program_from_json(bytes)) fuzz_program(*program);
}

}  // namespace tilewright::runtime
