// Calls of instructions: what hw/intrinsics says of them as data becomes calls of LLVM intrinsics.
#include "tilewright/base/check.h"
#include "tilewright/codegen/llvm/kernel_emitter.h"
#include "tilewright/hw/cpu_intrinsics.h"

namespace tilewright::codegen {

using llvm::Value;

namespace {

/// Whether the elements of `region` lie side by side in memory.
bool dense(const Func& func, const Region& region) {
  std::vector<Expr> given;
  for (const Param& p : func.params)
    if (p.buffer == region.buffer) given = p.strides;
  const std::vector<Expr> strides = strides_of(region.buffer, given);
  int64_t expected = 1;
  for (size_t axis = region.dims.size(); axis-- > 0;) {
    const auto size = as_int(region.dims[axis].second);
    if (!size) return false;
    if (*size == 1) continue;
    if (as_int(strides[axis]) != expected) return false;
    expected *= *size;
  }
  return true;
}

llvm::Type* register_element(llvm::LLVMContext& context, DType dtype) {
  switch (dtype) {
    case DType::F32:
      return llvm::Type::getFloatTy(context);
    case DType::F64:
      return llvm::Type::getDoubleTy(context);
    case DType::F16:
      return llvm::Type::getHalfTy(context);
    case DType::BF16:
      return llvm::Type::getBFloatTy(context);
    default:
      return llvm::IntegerType::get(context, static_cast<unsigned>(bit_width(dtype)));
  }
}

/// `value` holds `rows` rows of `columns` elements; the same with its columns one after the other.
Value* by_columns(llvm::IRBuilder<>& b, Value* value, DType dtype, int64_t rows, int64_t columns) {
  auto* type = llvm::FixedVectorType::get(register_element(b.getContext(), dtype),
                                          static_cast<unsigned>(rows * columns));
  llvm::SmallVector<int, 64> order;
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t row = 0; row < rows; ++row)
      order.push_back(static_cast<int>(row * columns + column));
  Value* turned = b.CreateShuffleVector(b.CreateBitCast(value, type), order);
  return b.CreateBitCast(turned, value->getType());
}

}  // namespace

bool has_instruction(const Func& func, const Call& call, const hw::CpuTarget& target) {
  const hw::Intrinsic* in = hw::find_intrinsic(target, *call.callee);
  if (in == nullptr || !hw::cpu_call(*in)) return false;
  for (const auto& arg : call.args) {
    const auto* region = std::get_if<Region>(&arg);
    if (region == nullptr || !dense(func, *region)) return false;
  }
  return true;
}

/// The elements of `region` in a register; fewer than it holds are repeated.
Value* KernelEmitter::load_register(const Region& region, const Address& at,
                                    llvm::FixedVectorType* type, unsigned region_bits) {
  const llvm::Align align(
      std::max<uint64_t>(1, static_cast<uint64_t>(bit_width(region.buffer.dtype())) / 8));
  const auto bits = static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue());
  if (region_bits == bits) return tagged_load(region.buffer, type, at.pointer, align);
  Value* word = tagged_load(region.buffer, b_.getIntNTy(region_bits), at.pointer, align);
  return b_.CreateBitCast(b_.CreateVectorSplat(bits / region_bits, word), type);
}

void KernelEmitter::call(const Call& x) {
  memo_.clear(), memo_order_.clear(), lazy_.clear();
  TW_CHECK(!lanes_, "{} is called in a vector loop", x.callee->name);
  const hw::Intrinsic* in = hw::find_intrinsic(target_, *x.callee);
  TW_CHECK(in != nullptr, "calls of {} are inlined before", x.callee->name);
  const hw::CpuCall how = *hw::cpu_call(*in);
  std::vector<Value*> args;
  std::vector<Type*> types;
  Value* result = nullptr;
  for (const hw::CpuCall::Operand& operand : how.operands) {
    const Region& region = std::get<Region>(x.args[operand.param]);
    std::vector<Expr> begins;
    int64_t elements = 1;
    for (const auto& [begin, size] : region.dims) {
      begins.push_back(begin);
      elements *= *as_int(size);
    }
    const Address at = address(region.buffer, begins);
    if (result == nullptr) result = at.pointer;
    auto* type = llvm::FixedVectorType::get(register_element(context_, operand.type.dtype),
                                            static_cast<unsigned>(operand.type.lanes));
    const auto bits = static_cast<unsigned>(elements * bit_width(region.buffer.dtype()));
    types.push_back(type);
    args.push_back(load_register(region, at, type, bits));
    const Buffer& param = x.callee->params[operand.param].buffer;
    if (operand.turned)
      args.back() = by_columns(b_, args.back(), param.dtype(), *as_int(param.shape()[0]),
                               *as_int(param.shape()[1]));
  }
  llvm::FunctionCallee callee =
      module_.getOrInsertFunction(how.call, llvm::FunctionType::get(types[0], types, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  TW_CHECK(function->isIntrinsic() && function->getIntrinsicID() != llvm::Intrinsic::not_intrinsic,
           "LLVM has no intrinsic {}", how.call);
  function->setAttributes(llvm::Intrinsic::getAttributes(context_, function->getIntrinsicID()));
  const Buffer& written = std::get<Region>(x.args[how.operands[0].param]).buffer;
  const llvm::Align align(static_cast<uint64_t>(bit_width(written.dtype())) / 8);
  tagged_store(written, b_.CreateCall(callee, args), result, align);
}

}  // namespace tilewright::codegen
