// From a lowered Func to optimised LLVM IR, assembly or an object file.
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>

#include <map>
#include <mutex>
#include <tuple>

#include "tilewright/base/check.h"
#include "tilewright/base/parallel.h"
#include "tilewright/codegen/llvm/kernel_emitter.h"
#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/lower.h"

namespace tilewright::codegen {
namespace {

enum class Output { Ir, Assembly, Object };

struct Compiled {
  std::string bytes;
  KernelInfo info;
};

Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const hw::CpuTarget& target,
                                                          const std::string& features,
                                                          llvm::CodeGenOptLevel level) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
  });
  std::string reason;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, reason);
  if (found == nullptr)
    return fail(ErrorKind::Device, fmt::format("LLVM has no target '{}'", target.triple), reason);
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(target.triple, target.isa, features, llvm::TargetOptions(),
                                 llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
  if (machine == nullptr)
    return fail(ErrorKind::Device, fmt::format("LLVM cannot compile for '{}'", target.triple));
  return machine;
}

/// A thread keeps the machines it has made: tables of a processor take longer to make than a small
/// kernel to emit.
Result<llvm::TargetMachine*> machine_of(const LlvmOptions& options) {
  const hw::CpuTarget& target = options.target;
  std::string features;
  for (const std::string& feature : target.features)
    features += (features.empty() ? "" : ",") + feature;
  const auto level = options.opt_level <= 0   ? llvm::CodeGenOptLevel::None
                     : options.opt_level == 1 ? llvm::CodeGenOptLevel::Less
                                              : llvm::CodeGenOptLevel::Default;
  thread_local std::map<std::tuple<std::string, std::string, std::string, llvm::CodeGenOptLevel>,
                        std::unique_ptr<llvm::TargetMachine>>
      machines;
  auto& machine = machines[{target.triple, target.isa, features, level}];
  if (machine == nullptr) machine = TW_TRY(make_machine(target, features, level));
  return machine.get();
}

/// What register tiles need: they are unrolled and their vectors shaped already. A third of the
/// time of the general pipeline for the same code.
constexpr const char* kTilePipeline =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm),early-cse<memssa>,simplifycfg)";

/// Kernels with loops over single elements get LLVM's whole pipeline with its vectorisers; where
/// explicit vectors stand beside them, nothing is unrolled.
void optimise(llvm::Module& module, llvm::TargetMachine& machine, int level,
              const KernelEmitter& emitter) {
  if (level <= 0) return;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.LoopInterleaving = true;
  tuning.SLPVectorization = !emitter.has_vectors();
  tuning.LoopUnrolling = !emitter.has_vectors();
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::ModulePassManager passes;
  if (emitter.has_scalar_loops() && level >= 2) {
    passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  } else if (llvm::Error error = builder.parsePassPipeline(passes, kTilePipeline)) {
    TW_CHECK(false, "{}", llvm::toString(std::move(error)));
  }
  passes.run(module, modules);
}

/// Calls stay where the target has the instruction; others become what they mean.
Result<Func> prepare(const Func& func, const hw::CpuTarget& target) {
  const Func plain = TW_TRY(
      inline_calls(func, [&](const Call& call) { return has_instruction(func, call, target); }));
  return lower::run_passes(plain, {"bind_iters"});
}

Result<Compiled> compile(const Func& lowered, const LlvmOptions& options, Output output) {
  llvm::TargetMachine* const machine = TW_TRY(machine_of(options));
  const Func func = TW_TRY(prepare(lowered, options.target));
  const KernelPlan plan = TW_TRY(plan_kernel(func));
  llvm::LLVMContext context;
  llvm::Module module(plan.info.symbol, context);
  module.setTargetTriple(options.target.triple);
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  KernelEmitter emitter(func, plan, options.target, module);
  emitter.run();
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  TW_CHECK(!llvm::verifyModule(module, &problem_stream), "LLVM IR of {}: {}", func.name, problem);
  optimise(module, *machine, options.opt_level, emitter);
  Compiled out;
  out.info = plan.info;
  if (output == Output::Ir) {
    llvm::raw_string_ostream stream(out.bytes);
    module.print(stream, nullptr);
    return out;
  }
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  const auto kind = output == Output::Object ? llvm::CodeGenFileType::ObjectFile
                                             : llvm::CodeGenFileType::AssemblyFile;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, kind))
    return fail(ErrorKind::Unsupported, "LLVM cannot emit code for " + options.target.triple);
  passes.run(module);
  out.bytes.assign(buffer.begin(), buffer.end());
  return out;
}

}  // namespace

Result<std::vector<ObjectFile>> emit_objects(const std::vector<Func>& lowered,
                                             const LlvmOptions& options, int parallel) {
  const size_t count = lowered.size();
  std::vector<Result<Compiled>> results(count, Result<Compiled>(Compiled{}));
  for_each_part(count, parallel, [&](size_t i, size_t) {
    results[i] = compile(lowered[i], options, Output::Object);
  });
  std::vector<ObjectFile> objects;
  for (size_t i = 0; i < count; ++i) {
    Compiled one = TW_TRY(std::move(results[i]));
    objects.push_back(ObjectFile{std::move(one.bytes), {one.info}});
  }
  return objects;
}

Result<std::string> emit_assembly(const Func& lowered, const LlvmOptions& options) {
  return TW_TRY(compile(lowered, options, Output::Assembly)).bytes;
}

Result<std::string> emit_llvm_ir(const Func& lowered, const LlvmOptions& options) {
  return TW_TRY(compile(lowered, options, Output::Ir)).bytes;
}

}  // namespace tilewright::codegen
