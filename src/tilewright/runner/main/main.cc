// tilewright-runner: runs a package on a device that has no compiler; run.cc has the protocol, and
// serve.cc that of runs one after the other.
#include <cstdio>
#include <string_view>

#include "tilewright/runner/main/run.h"
#include "tilewright/runner/main/serve.h"
#include "tilewright/runtime.h"

namespace {

/// The target that packages for this machine are compiled for: any processor of its kind runs them.
constexpr const char* kTarget =
#if defined(__aarch64__)
    "aarch64";
#else
    "x86-64-v2";
#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--serve")
    return std::string_view(argv[2]) == "-" ? tilewright::runner::serve_stream()
                                            : tilewright::runner::serve_folder(argv[2]);
  const std::string_view argument = argc == 2 ? argv[1] : "";
  if (argument == "--version")
    return std::printf("tilewright-runner %s %s\n", tw_version(), kTarget) < 0;
  if (argument.empty() || argument.starts_with("-")) {
    std::fprintf(
        stderr,
        "usage: tilewright-runner [--serve] FOLDER\n"
        "Runs FOLDER/model.twm on FOLDER/inputs/0.npy ... as FOLDER/job.json says; leaves\n"
        "FOLDER/outputs/0.npy ... and FOLDER/result.json.\n"
        "--serve: the package stays open; inputs come and outputs go through descriptor 3; with -\n"
        "  as FOLDER package and inputs come through stdin, outputs go through stdout.\n");
    return TW_INVALID;
  }
  const auto code = tilewright::runner::run_folder(std::string(argument));
  if (code) return *code;
  std::fprintf(stderr, "%s", to_string(code.error()).c_str());
  return TW_IO;
}
