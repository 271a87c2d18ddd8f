#include "tilewright/accel/common/rtl/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "tilewright/base/cache.h"
#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/base/tool_version.h"

namespace tilewright::accel {
namespace {

namespace fs = std::filesystem;
constexpr double kLimitSeconds = 1800;

std::string library_name(const Model& model) { return fmt::format("lib{}.so", model.top); }

// clang-format off
std::vector<std::string> verilator_flags(const std::string& top) {
  return {"--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "--top-module",
          top, "--unroll-count", "1024", "--unroll-stmts", "1000000", "--Mdir", "model",
          "-Wno-fatal", "-Wno-lint", "-Wno-style"};
}
const std::vector<std::string> kCompilerFlags = {
    "-std=c++17", "-O2", "-fPIC", "-fno-gnu-unique", "-pthread", "-w",
    "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0"};
// clang-format on
constexpr const char* kShortRun = "-O0";

/// Folder with Verilator's include files.
Result<std::string> verilator_include(const std::string& folder) {
  ToolResult root =
      TW_TRY(run_checked({"verilator", "--getenv", "VERILATOR_ROOT"}, {folder, kLimitSeconds}));
  while (!root.output.empty() && root.output.back() == '\n') root.output.pop_back();
  return root.output + "/include";
}

/// Moves a finished folder into the cache, unless another process was faster.
Status publish(TemporaryFolder& temporary, const std::string& folder) {
  std::error_code error;
  fs::rename(temporary.path(), folder, error);
  if (!error)
    temporary.release();
  else if (!fs::exists(folder))
    return fail(ErrorKind::Io, fmt::format("cannot move '{}' to '{}'", temporary.path(), folder),
                error.message());
  return {};
}

std::vector<std::string> compiler(const std::string& include, bool short_run = false) {
  std::vector<std::string> argv = {"g++"};
  for (const std::string& flag : kCompilerFlags) argv.push_back(flag);
  if (short_run) argv.push_back(kShortRun);
  for (const std::string& path : {include, include + "/vltstd"}) argv.push_back("-I" + path);
  return argv;
}

/// Objects of Verilator's runtime, which all models share.
Result<std::vector<std::string>> runtime_objects(const std::string& cache,
                                                 const std::string& include) {
  std::vector<std::string> sources, objects;
  std::string key = fmt::format("{}", fmt::join(kCompilerFlags, " "));
  for (const char* name : {"verilated", "verilated_threads"}) {
    const std::string source = fmt::format("{}/{}.cpp", include, name);
    if (!fs::exists(source)) continue;
    sources.push_back(source);
    key += TW_TRY(read_file(source));
  }
  const std::string folder = cache + "/runtime-" + sha256(key).substr(0, 32);
  for (const std::string& source : sources)
    objects.push_back(folder + "/" + fs::path(source).stem().string() + ".o");
  if (fs::exists(folder)) return objects;
  TemporaryFolder temporary = TW_TRY(TemporaryFolder::create(cache));
  std::vector<std::string> compile = compiler(include);
  compile.push_back("-c");
  compile.insert(compile.end(), sources.begin(), sources.end());
  TW_TRY(run_checked(compile, {temporary.path(), kLimitSeconds}));
  TW_TRY_STATUS(publish(temporary, folder));
  return objects;
}

Status build(const Model& model, const std::string& cache, const std::string& folder) {
  const std::string file = model.top + ".v";
  TW_TRY_STATUS(write_file(folder + "/" + file, model.verilog));
  std::vector<std::string> verilate = {"verilator"};
  for (const std::string& flag : verilator_flags(model.top)) verilate.push_back(flag);
  verilate.push_back(file);
  TW_TRY(run_checked(verilate, {folder, kLimitSeconds}));
  if (std::error_code ignored; !fs::is_directory(folder + "/model", ignored))
    return fail(ErrorKind::Tool, "'verilator' is broken", "it ended well, but wrote nothing",
                "install it anew; `tilewright doctor` lists what is found");
  const std::string include = TW_TRY(verilator_include(folder));

  // One translation unit: most of the time goes into headers otherwise.
  std::vector<std::string> sources;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder + "/model"))
    if (entry.path().extension() == ".cpp") sources.push_back(entry.path().filename().string());
  std::sort(sources.begin(), sources.end());
  std::string all = model.harness;
  for (const std::string& source : sources) all += fmt::format("#include \"{}\"\n", source);
  TW_TRY_STATUS(write_file(folder + "/model.cc", all));

  std::vector<std::string> compile = compiler(include, model.short_run);
  compile.insert(compile.end(),
                 {"-shared", "-Wl,-Bsymbolic", "-Imodel", "-o", library_name(model), "model.cc"});
  for (const std::string& object : TW_TRY(runtime_objects(cache, include)))
    compile.push_back(object);
  TW_TRY(run_checked(compile, {folder, kLimitSeconds}));
  std::error_code ignored;
  fs::remove_all(folder + "/model", ignored);
  return {};
}

}  // namespace

Result<std::string> compiled(const Model& model) {
  const std::string key =
      sha256(fmt::format("{}\n{}\n{}\n{}{}", model.verilog, model.harness,
                         fmt::join(verilator_flags(model.top), " "), fmt::join(kCompilerFlags, " "),
                         model.short_run ? kShortRun : ""))
          .substr(0, 32);
  const std::string cache = TW_TRY(cache_folder("rtl"));
  const std::string folder = cache + "/" + key, library = folder + "/" + library_name(model);
  if (fs::exists(library)) return library;
  TW_TRY(checked_version(kVerilator));
  TemporaryFolder temporary = TW_TRY(TemporaryFolder::create(cache));
  TW_TRY_STATUS(build(model, cache, temporary.path()));
  TW_TRY_STATUS(publish(temporary, folder));
  return library;
}

}  // namespace tilewright::accel
