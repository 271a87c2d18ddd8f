#include "tilewright/codegen/gpu/kernel_head.h"

#include <fmt/format.h>

namespace tilewright::codegen {
namespace {

void add_cuda(const Param& p, CNames& names, KernelHead& head) {
  const std::string id = names.of(p.buffer), type = c_storage_type(p.buffer.dtype());
  const bool reads = p.mode == ParamMode::In || p.mode == ParamMode::Const;
  // Knowing the alignment, the compiler joins stores to neighbours; of what a kernel only reads, it
  // would forget that nobody writes it.
  const std::string given = reads ? id : names.fresh(id + "_given");
  head.parameters.push_back(
      fmt::format("{}{}* __restrict__ {}", reads ? "const " : "", type, given));
  if (!reads)
    head.views.push_back(
        fmt::format("{0}* const {1} = ({0}*)__builtin_assume_aligned({2}, 16);", type, id, given));
}

void add_opencl(const Param& p, CNames& names, KernelHead& head) {
  const std::string id = names.of(p.buffer), type = c_storage_type(p.buffer.dtype());
  const bool reads = p.mode == ParamMode::In || p.mode == ParamMode::Const;
  const std::string base = names.fresh(id + "_base"), offset = names.fresh(id + "_offset");
  head.parameters.push_back(fmt::format("__global char* {}", base));
  head.parameters.push_back("long " + offset);
  const std::string pointer = fmt::format("__global {}{}*", reads ? "const " : "", type);
  head.views.push_back(
      fmt::format("{0} restrict {1} = ({0})({2} + {3});", pointer, id, base, offset));
}

}  // namespace

KernelHead kernel_head(const Func& func, bool opencl, CNames& names, CExprWriter& exprs) {
  KernelHead head;
  for (const Param& p : func.params) (opencl ? add_opencl : add_cuda)(p, names, head);
  for (const Scalar& s : func.scalars) {
    const std::string type = exprs.declared_type(s.var), id = names.of(s.var);
    const std::string given = names.fresh(id + "_given");
    head.parameters.push_back("i64 " + given);
    head.views.push_back(fmt::format("const {0} {1} = ({0}){2};", type, id, given));
  }
  return head;
}

}  // namespace tilewright::codegen
