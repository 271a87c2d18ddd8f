#include "tilewright/compile/evaluate.h"

#include <fmt/format.h>

#include "tilewright/base/check.h"
#include "tilewright/base/json.h"
#include "tilewright/compile/cpu/kernels.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/walk.h"
#include "tilewright/runtime/host_ops.h"
#include "tilewright/tensor/op.h"
#if TILEWRIGHT_LLVM
#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/runtime/thread_pool.h"
#endif

namespace tilewright::compile {
namespace {

/// Up to this many multiply-adds the interpreter answers sooner than a compiler.
constexpr int64_t kInterpretedWork = 20000;

/// Arrays of the parameters of `func`: inputs in order, then fresh outputs.
Result<std::vector<Array>> bind(const Func& func, const std::vector<Array>& inputs) {
  std::vector<Array> arrays;
  for (const Param& param : func.params) {
    if (param.mode == ParamMode::Out) {
      Shape shape;
      for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
      arrays.emplace_back(param.buffer.dtype(), std::move(shape));
    } else if (param.values) {
      arrays.push_back(*param.values);
    } else {
      const std::string& name = param.buffer.name();
      const size_t index = static_cast<size_t>(std::stoi(name.substr(1)));
      TW_CHECK(name[0] == 'x' && index < inputs.size(), "parameter {}", name);
      arrays.push_back(inputs[index]);
    }
  }
  return arrays;
}

Result<std::vector<Array>> outputs_of(const Func& func, std::vector<Array> arrays) {
  std::vector<Array> outputs;
  for (size_t i = 0; i < func.params.size(); ++i)
    if (func.params[i].mode == ParamMode::Out) outputs.push_back(std::move(arrays[i]));
  return outputs;
}

Result<std::vector<Array>> interpret(const Func& func, const std::vector<Array>& inputs,
                                     const Observer& observer = {}) {
  std::vector<Array> arrays = TW_TRY(bind(func, inputs));
  interp::Arguments arguments;
  interp::Options options;
  options.stop = observer.cancelled;
  for (size_t i = 0; i < func.params.size(); ++i)
    if (func.params[i].mode != ParamMode::Out)
      arguments.arrays[func.params[i].buffer.name()] = arrays[i];
  interp::Outcome outcome = TW_TRY(interp::run(func, arguments, options));
  for (size_t i = 0; i < func.params.size(); ++i)
    if (func.params[i].mode == ParamMode::Out)
      arrays[i] = outcome.outputs.at(func.params[i].buffer.name());
  return outputs_of(func, std::move(arrays));
}

#if TILEWRIGHT_LLVM
Result<std::vector<Array>> run_compiled(const Func& func, const std::vector<Array>& inputs) {
  const ScheduledKernel kernel =
      TW_TRY(schedule_and_lower(func, {.target = hw::host(), .threads = 1}));
  const std::unique_ptr<codegen::JitModule> module = TW_TRY(codegen::jit({kernel.lowered}));
  const KernelInfo info = module->kernels().at(0);
  std::vector<Array> arrays = TW_TRY(bind(func, inputs));
  std::vector<void*> pointers;
  for (Array& array : arrays) pointers.push_back(array.data());
  Array workspace(DType::U8, {info.shared_bytes + info.per_worker_bytes});
  runtime::ThreadPool pool({.threads = 1});
  module->find(info.symbol)(pointers.data(), nullptr, workspace.data(), &pool.services());
  return outputs_of(func, std::move(arrays));
}
#else
Result<std::vector<Array>> run_compiled(const Func& func, const std::vector<Array>& inputs) {
  return interpret(func, inputs);
}
#endif

Result<std::vector<Array>> run_host(const tensor::OpCall& call, const std::string& name,
                                    const std::vector<Array>& inputs) {
  return runtime::run_host_op(name, attrs_to_json(call.attrs), inputs);
}

/// Total iterations of all blocks: loops around each block multiplied.
int64_t work_of(const Stmt& s) {
  if (s.as<Block>() != nullptr) return 1;
  int64_t total = 0;
  for (const Stmt& child : children(s)) total += work_of(child);
  const For* loop = s.as<For>();
  return loop == nullptr ? total : total * as_int(loop->extent).value_or(1);
}

}  // namespace

std::string attrs_to_json(const tensor::Attrs& attrs) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : attrs.values) {
    std::visit(Overloaded{[&](const Array& array) { json[name] = array.to_doubles(); },
                          [&](const auto& plain) { json[name] = plain; }},
               value);
  }
  return json_text(json);
}

Result<std::vector<Array>> interpret_op(const tensor::OpCall& call,
                                        const std::vector<Array>& inputs) {
  const tensor::OpDef* op = tensor::find_op(call.domain, call.op);
  if (op != nullptr && !op->host.empty()) return run_host(call, op->host, inputs);
  return interpret(TW_TRY(tensor::op_func(call)), inputs);
}

graph::Evaluate make_evaluate(const Observer& observer) {
  return [observer](const tensor::OpCall& call,
                    const std::vector<Array>& inputs) -> Result<std::vector<Array>> {
    TW_TRY_STATUS(observer.check());
    const tensor::OpDef* op = tensor::find_op(call.domain, call.op);
    if (op != nullptr && !op->host.empty()) return run_host(call, op->host, inputs);
    const Func func = TW_TRY(tensor::op_func(call));
    return work_of(func.body) <= kInterpretedWork ? interpret(func, inputs, observer)
                                                  : run_compiled(func, inputs);
  };
}

}  // namespace tilewright::compile
