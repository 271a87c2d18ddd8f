// Loads object files into this process.
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>

#include <map>

#include "tilewright/base/check.h"
#include "tilewright/codegen/llvm/llvm.h"

namespace tilewright::codegen {
namespace {

class LoadedModule final : public JitModule {
 public:
  LoadedModule(std::unique_ptr<llvm::orc::LLJIT> jit, std::vector<KernelInfo> kernels,
               std::map<std::string, tw_kernel> entries)
      : jit_(std::move(jit)), kernels_(std::move(kernels)), entries_(std::move(entries)) {}
  const std::vector<KernelInfo>& kernels() const override { return kernels_; }
  tw_kernel find(const std::string& symbol) const override {
    const auto it = entries_.find(symbol);
    TW_CHECK(it != entries_.end(), "no kernel {}", symbol);
    return it->second;
  }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::vector<KernelInfo> kernels_;
  std::map<std::string, tw_kernel> entries_;
};

tl::unexpected<Error> refused(llvm::Error error) {
  return fail(ErrorKind::Device, "compiled code could not be loaded",
              llvm::toString(std::move(error)));
}

}  // namespace

Result<std::unique_ptr<JitModule>> jit(const std::vector<Func>& lowered,
                                       const LlvmOptions& options) {
  std::vector<ObjectFile> objects = TW_TRY(emit_objects(lowered, options));
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto created = llvm::orc::LLJITBuilder().create();
  if (!created) return refused(created.takeError());
  std::unique_ptr<llvm::orc::LLJIT> engine = std::move(*created);
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      engine->getDataLayout().getGlobalPrefix());
  if (!process) return refused(process.takeError());
  engine->getMainJITDylib().addGenerator(std::move(*process));
  std::vector<KernelInfo> kernels;
  for (ObjectFile& object : objects) {
    for (const KernelInfo& info : object.kernels) {
      for (const KernelInfo& other : kernels)
        if (other.symbol == info.symbol)
          return fail(ErrorKind::Invalid, fmt::format("two kernels are called {}", info.symbol));
      kernels.push_back(info);
    }
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object.bytes, object.kernels[0].symbol);
    if (llvm::Error error = engine->addObjectFile(std::move(buffer)))
      return refused(std::move(error));
  }
  std::map<std::string, tw_kernel> entries;
  for (const KernelInfo& info : kernels) {
    auto address = engine->lookup(info.symbol);
    if (!address) return refused(address.takeError());
    entries[info.symbol] = address->toPtr<tw_kernel>();
  }
  return std::make_unique<LoadedModule>(std::move(engine), std::move(kernels), std::move(entries));
}

}  // namespace tilewright::codegen
