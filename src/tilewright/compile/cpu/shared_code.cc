#include "tilewright/compile/cpu/shared_code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/codegen/c/c.h"
#if TILEWRIGHT_LLVM
#include "tilewright/codegen/llvm/llvm.h"
#endif

namespace tilewright::compile {
namespace {

/// The first of `names` found on PATH.
std::string find_first_program(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::string path = find_program(name); !path.empty()) return path;
  return "";
}

tl::unexpected<Error> no_tool(const std::string& what, const std::vector<std::string>& names) {
  return fail(ErrorKind::Tool, fmt::format("no {} found", what),
              fmt::format("looked for {} on PATH", fmt::join(names, ", ")),
              "install one, for instance the Debian package gcc or lld-19");
}

Result<SharedCode> through_c(const std::vector<Func>& lowered, const BackendOptions& options) {
  const codegen::CModule module = TW_TRY(codegen::emit_c(lowered));
  if (options.target.triple != hw::host().triple)
    return fail(ErrorKind::Unsupported, "the C back-end compiles for this machine only",
                "the target is " + options.target.triple);
  const std::vector<std::string> names = {"cc", "gcc", "clang-19", "clang"};
  const std::string compiler = find_first_program(names);
  if (compiler.empty()) return no_tool("C compiler", names);
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  const std::string source = folder.file("model.c"), output = folder.file("model.so");
  TW_TRY_STATUS(write_file(source, module.source));
  TW_TRY(run_checked({compiler, "-std=gnu11", "-O2", "-march=native", "-ffp-contract=off",
                      "-fno-strict-aliasing", "-fPIC", "-shared", "-o", output, source, "-lm"}));
  SharedCode code;
  code.bytes = TW_TRY(read_file(output));
  for (const KernelInfo& kernel : module.kernels) code.kernels[kernel.symbol] = kernel;
  return code;
}

#if TILEWRIGHT_LLVM
Result<std::string> link_shared(const std::vector<std::string>& objects,
                                const TemporaryFolder& folder, bool native) {
  // A compiler driver knows where libm lies; a bare linker will do for code without libm calls.
  const std::vector<std::string> drivers = {"cc", "gcc", "clang-19", "clang"};
  const std::vector<std::string> linkers = {"ld.lld-19", "ld.lld", "ld.mold", "ld"};
  const std::string compiler = native ? find_first_program(drivers) : "";
  const std::string linker = compiler.empty() ? find_first_program(linkers) : "";
  if (compiler.empty() && linker.empty())
    return no_tool("linker", {"cc", "gcc", "ld.lld-19", "ld"});
  const std::string output = folder.file("model.so");
  // Most code calls nothing outside: a linker alone takes 3 ms for it, a driver with libm 17 ms.
  if (const std::string bare = compiler.empty() ? "" : find_program("ld"); !bare.empty()) {
    std::vector<std::string> argv = {bare, "-shared", "-z", "defs", "-o", output};
    argv.insert(argv.end(), objects.begin(), objects.end());
    if (run_checked(argv)) return read_file(output);
  }
  std::vector<std::string> argv = {compiler.empty() ? linker : compiler, "-shared", "-o", output};
  argv.insert(argv.end(), objects.begin(), objects.end());
  if (!compiler.empty()) argv.insert(argv.end(), {"-nostartfiles", "-lm"});
  TW_TRY(run_checked(argv));
  return read_file(output);
}

Result<SharedCode> through_llvm(const std::vector<Func>& lowered, const BackendOptions& options) {
  codegen::LlvmOptions llvm;
  llvm.target = options.target;
  const std::vector<codegen::ObjectFile> objects =
      TW_TRY(codegen::emit_objects(lowered, llvm, options.jobs));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  SharedCode code;
  std::vector<std::string> paths;
  for (const codegen::ObjectFile& object : objects) {
    paths.push_back(folder.file(fmt::format("part{}.o", paths.size())));
    TW_TRY_STATUS(write_file(paths.back(), object.bytes));
    for (const KernelInfo& kernel : object.kernels) code.kernels[kernel.symbol] = kernel;
  }
  code.bytes = TW_TRY(link_shared(paths, folder, options.target.triple == hw::host().triple));
  return code;
}
#endif

}  // namespace

bool has_llvm() {
#if TILEWRIGHT_LLVM
  return true;
#else
  return false;
#endif
}

Result<SharedCode> compile_shared(const std::vector<Func>& lowered, const BackendOptions& options) {
#if TILEWRIGHT_LLVM
  if (!options.use_c) return through_llvm(lowered, options);
#endif
  return through_c(lowered, options);
}

#if TILEWRIGHT_LLVM
Result<runtime::CompiledKernel> compile_kernel(const Func& lowered, const hw::CpuTarget& target) {
  codegen::LlvmOptions options;
  options.target = target;
  const std::shared_ptr<const codegen::JitModule> module = TW_TRY(codegen::jit({lowered}, options));
  runtime::CompiledKernel kernel;
  kernel.info = module->kernels().at(0);
  kernel.run = module->find(kernel.info.symbol);
  kernel.owner = module;
  return kernel;
}
#else
Result<runtime::CompiledKernel> compile_kernel(const Func&, const hw::CpuTarget&) {
  return fail(ErrorKind::Unsupported, "kernels cannot be compiled in this process",
              "this build has no LLVM");
}
#endif

}  // namespace tilewright::compile
