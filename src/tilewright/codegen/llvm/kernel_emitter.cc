// One Func as LLVM IR: functions and statements. Expressions, memory, vector loops and calls are in
// the files that kernel_emitter.h names.
//
//   for i in n { S }  ->  entry: br(n > 0, head, end)   head: i = phi(0, next); S; next = i + 1;
//                         br(next < n, head, end)
//
// Each buffer is an alias scope of its own, so LLVM knows that buffers do not overlap; small
// constant tables become constants of the module. Outermost parallel loops become functions that
// parallel_for of the runtime calls.
#include "tilewright/codegen/llvm/kernel_emitter.h"

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {

using llvm::Value;

namespace {

/// Constant tables up to this size become part of the code, so that their entries fold.
constexpr int64_t kMaxTableBytes = 64 << 10;
/// Buffers that get an alias scope of their own.
constexpr size_t kMaxAliasGroups = 48;

/// Offsets in tw_kernel_services (runtime/kernel_abi.h).
constexpr uint64_t kPoolOffset = 8, kParallelForOffset = 16;

bool overlap(const AllocPlacement& a, const AllocPlacement& b) {
  return a.where == b.where && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

KernelEmitter::KernelEmitter(const Func& func, const KernelPlan& plan, const hw::CpuTarget& target,
                             llvm::Module& module)
    : func_(func),
      plan_(plan),
      target_(target),
      module_(module),
      context_(module.getContext()),
      b_(context_),
      fast_(func.math == MathMode::Fast),
      bounds_(func) {
  for (const Param& p : func.params) strides_[p.buffer] = strides_of(p.buffer, p.strides);
  walk(func.body, [&](const Stmt& s) {
    if (const auto* a = s.as<Alloc>()) strides_[a->buffer] = strides_of(a->buffer, {});
  });
  if (fast_) {
    llvm::FastMathFlags flags;
    flags.setAllowContract();
    b_.setFastMathFlags(flags);
  }
}

llvm::Function* KernelEmitter::new_function(const std::string& name, llvm::ArrayRef<Type*> args,
                                            bool exported) {
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), args, false);
  const auto linkage = exported ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage;
  auto* f = llvm::Function::Create(type, linkage, name, module_);
  f->setDoesNotThrow();
  f->addFnAttr("target-cpu", target_.isa);
  f->addFnAttr("tune-cpu", target_.cpu);
  std::string features;
  for (const std::string& feature : target_.features)
    features += (features.empty() ? "" : ",") + feature;
  if (!features.empty()) f->addFnAttr("target-features", features);
  f->addFnAttr("prefer-vector-width", std::to_string(8 * target_.vector_bytes));
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", f));
  function_ = f;
  return f;
}

/// One alias scope per buffer; allocations that share workspace bytes share a scope.
void KernelEmitter::emit_alias_groups() {
  std::vector<std::vector<Buffer>> groups;
  for (const Param& p : func_.params) groups.push_back({p.buffer});
  std::vector<Buffer> allocated;
  walk(func_.body, [&](const Stmt& s) {
    // Scalars become values; they need no scope.
    if (const auto* a = s.as<Alloc>(); a && a->buffer.rank() > 0) allocated.push_back(a->buffer);
  });
  const size_t params = groups.size();
  for (const Buffer& buffer : allocated) {
    const AllocPlacement& place = plan_.places.at(buffer);
    std::vector<Buffer> merged = {buffer};
    for (size_t g = params; g < groups.size();) {
      const bool shares = std::any_of(groups[g].begin(), groups[g].end(), [&](const Buffer& other) {
        return place.where != AllocPlacement::Where::Stack &&
               overlap(place, plan_.places.at(other));
      });
      if (!shares) {
        ++g;
        continue;
      }
      merged.insert(merged.end(), groups[g].begin(), groups[g].end());
      groups.erase(groups.begin() + static_cast<ptrdiff_t>(g));
    }
    groups.push_back(merged);
  }
  if (groups.size() > kMaxAliasGroups) groups.resize(params);
  llvm::MDBuilder md(context_);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain(plan_.info.symbol);
  std::vector<llvm::Metadata*> scopes;
  for (const auto& group : groups)
    scopes.push_back(md.createAnonymousAliasScope(domain, group[0].name()));
  for (size_t g = 0; g < groups.size(); ++g) {
    std::vector<llvm::Metadata*> others;
    for (size_t h = 0; h < groups.size(); ++h)
      if (h != g) others.push_back(scopes[h]);
    auto* own = llvm::MDNode::get(context_, {scopes[g]});
    auto* rest = llvm::MDNode::get(context_, others);
    for (const Buffer& buffer : groups[g]) alias_[buffer] = {own, rest};
  }
}

void KernelEmitter::run() {
  Type* ptr = b_.getPtrTy();
  llvm::Function* f = new_function(plan_.info.symbol, {ptr, ptr, ptr, ptr}, true);
  for (unsigned i = 0; i < 4; ++i) f->addParamAttr(i, llvm::Attribute::NoAlias);
  emit_alias_groups();
  plan_registers();
  Value *buffers = f->getArg(0), *scalars = f->getArg(1);
  workspace_ = f->getArg(2);
  services_ = f->getArg(3);
  for (size_t i = 0; i < func_.params.size(); ++i) {
    const Param& p = func_.params[i];
    if (p.values && p.strides.empty() && p.values->bytes() <= kMaxTableBytes &&
        p.values->size() > 0) {
      // The bytes as an array of the element type, so that constant indices fold.
      Type* element = memory_type(p.buffer.dtype());
      const llvm::StringRef bytes(static_cast<const char*>(p.values->data()),
                                  static_cast<size_t>(p.values->bytes()));
      auto* data =
          llvm::ConstantDataArray::getRaw(bytes, static_cast<uint64_t>(p.values->size()), element);
      auto* table = new llvm::GlobalVariable(module_, data->getType(), true,
                                             llvm::GlobalValue::PrivateLinkage, data,
                                             plan_.info.symbol + "." + p.buffer.name());
      table->setAlignment(llvm::Align(64));
      pointers_[p.buffer] = table;
      continue;
    }
    Value* slot = b_.CreateConstGEP1_64(ptr, buffers, i);
    pointers_[p.buffer] = b_.CreateLoad(ptr, slot, p.buffer.name());
  }
  for (size_t i = 0; i < func_.scalars.size(); ++i) {
    Value* slot = b_.CreateConstGEP1_64(b_.getInt64Ty(), scalars, i);
    const Var& var = func_.scalars[i].var;
    vars_[var] = b_.CreateLoad(b_.getInt64Ty(), slot, var.name());
  }
  stmt(func_.body);
  b_.CreateRetVoid();
}

void KernelEmitter::stmt(const Stmt& s) {
  match(
      s, [&](const For& x) { loop(x); }, [&](const Block& x) { block(x); },
      [&](const Store& x) { store(x); }, [&](const Alloc& x) { alloc(x); },
      [&](const If& x) { guarded(x.condition, x.then_body, x.else_body); },
      [&](const Seq& x) { sequence(x.stmts); }, [&](const Call& x) { call(x); });
}

void KernelEmitter::counted_loop(Value* extent, const std::string& name,
                                 std::optional<int64_t> known,
                                 const std::function<void(Value*)>& body) {
  if (known && *known <= 0) return;
  auto* before = b_.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(context_, name, function_);
  auto* after = llvm::BasicBlock::Create(context_, name + ".end", function_);
  if (known) {
    b_.CreateBr(head);
  } else {
    b_.CreateCondBr(b_.CreateICmpSGT(extent, index(0)), head, after);
  }
  b_.SetInsertPoint(head);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2, name);
  i->addIncoming(index(0), before);
  prefetched_.clear(), fetched_next_ = false;
  body(i);
  prefetched_.clear(), fetched_next_ = false;
  Value* next = b_.CreateAdd(i, index(1), name + ".next", true, true);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpULT(next, extent), head, after);
  b_.SetInsertPoint(after);
}

void KernelEmitter::loop(const For& x) {
  const arith::Bounds outer = bounds_;
  bounds_.bind(x.var, x.extent);
  depth_[x.var] = static_cast<int>(depth_.size()) + 1;
  const std::optional<Prefetch> outer_prefetch = prefetch_;
  const std::optional<FetchNext> outer_next = fetch_next_;
  if (const auto n = int_mark(x.marks, MarkKind::Prefetch)) prefetch_ = Prefetch{x.var, *n};
  if (const auto n = int_mark(x.marks, MarkKind::FetchNext))
    fetch_next_ = FetchNext{loops_.size(), *n};
  const size_t around = loops_.size();
  if (x.kind != ForKind::Vector) loops_.push_back({x.var, as_int(x.extent).value_or(0)});
  if (is_outlined(x, inside_parallel_) && !lanes_) {
    outline(x);
  } else if (x.kind != ForKind::Vector || !vector_loop(x)) {
    memo_.clear(), memo_order_.clear(), lazy_.clear();
    Value* extent = emit(x.extent);
    counted_loop(extent, x.var.name(), as_int(x.extent), [&](Value* i) {
      vars_[x.var] = i;
      stmt(x.body);
    });
    vars_.erase(x.var);
  }
  depth_.erase(x.var);
  loops_.resize(around);
  prefetch_ = outer_prefetch;
  fetch_next_ = outer_next;
  bounds_ = outer;
}

void KernelEmitter::block(const Block& x) {
  TW_CHECK(x.iters.empty(), "iterations of {} are bound before", x.name);
  if (x.guard) {
    guarded(x.guard, x.body, Stmt());
  } else {
    stmt(x.body);
  }
}

/// Runs `body` in the lanes of `mask`, and not at all if there are none.
void KernelEmitter::masked(Value* mask, const Stmt& body) {
  const Lanes outer = *lanes_;
  Value* both = outer.mask ? b_.CreateAnd(outer.mask, mask) : mask;
  auto* some = llvm::BasicBlock::Create(context_, "some", function_);
  auto* after = llvm::BasicBlock::Create(context_, "after", function_);
  b_.CreateCondBr(b_.CreateOrReduce(both), some, after);
  b_.SetInsertPoint(some);
  lanes_->mask = both;
  lanes_->only_tail = false;
  lanes_->some_run = true;
  stmt(body);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  lanes_ = outer;
}

void KernelEmitter::guarded(const Expr& condition, const Stmt& then_body, const Stmt& else_body) {
  memo_.clear(), memo_order_.clear(), lazy_.clear();
  Value* c = emit(condition);
  if (c->getType()->isVectorTy()) {
    masked(c, then_body);
    if (else_body) masked(b_.CreateNot(c), else_body);
    return;
  }
  auto* yes = llvm::BasicBlock::Create(context_, "then", function_);
  auto* no = else_body ? llvm::BasicBlock::Create(context_, "else", function_) : nullptr;
  auto* after = llvm::BasicBlock::Create(context_, "after", function_);
  b_.CreateCondBr(c, yes, no ? no : after);
  b_.SetInsertPoint(yes);
  const arith::Bounds outer = bounds_;
  bounds_.assume(condition);
  stmt(then_body);
  bounds_ = outer;
  b_.CreateBr(after);
  if (no) {
    b_.SetInsertPoint(no);
    bounds_.assume(logical_not(condition));
    stmt(else_body);
    bounds_ = outer;
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

Value* KernelEmitter::stack_array(Type* type, int64_t elements, const std::string& name) {
  llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  auto* array = llvm::ArrayType::get(type, static_cast<uint64_t>(std::max<int64_t>(1, elements)));
  llvm::AllocaInst* slot = entry.CreateAlloca(array, nullptr, name);
  slot->setAlignment(llvm::Align(64));
  return slot;
}

void KernelEmitter::alloc(const Alloc& x) {
  const AllocPlacement& place = plan_.places.at(x.buffer);
  Type* element = memory_type(x.buffer.dtype());
  if (place.where == AllocPlacement::Where::Stack) {
    const auto padded = padded_.find(x.buffer);
    int64_t elements =
        padded != padded_.end() ? padded->second : place.bytes * 8 / bit_width(x.buffer.dtype());
    if (lanes_) {
      per_lane_.insert(x.buffer);
      element = element_type(x.buffer);
      elements = *const_elements(x.buffer);
    }
    pointers_[x.buffer] = stack_array(element, elements, x.buffer.name());
    return;
  }
  Value* base = place.where == AllocPlacement::Where::Shared ? workspace_ : worker_space_;
  pointers_[x.buffer] =
      b_.CreateConstGEP1_64(b_.getInt8Ty(), base, static_cast<uint64_t>(place.offset));
}

/// The loop's body becomes a function; what it needs travels in an array of 8-byte slots.
void KernelEmitter::outline(const For& x) {
  Captures taken = captures(x);
  for (const Scalar& s : func_.scalars)
    if (std::find(taken.vars.begin(), taken.vars.end(), s.var) == taken.vars.end())
      taken.vars.push_back(s.var);
  std::erase_if(taken.buffers,
                [&](const Buffer& b) { return llvm::isa<llvm::GlobalVariable>(pointers_.at(b)); });
  memo_.clear(), memo_order_.clear(), lazy_.clear();
  Value* count = emit(x.extent);
  Type *ptr = b_.getPtrTy(), *i64 = b_.getInt64Ty();
  const auto slots = static_cast<int64_t>(1 + taken.buffers.size() + taken.vars.size());
  Value* env = stack_array(i64, slots, "env");
  uint64_t next = 0;
  auto pass = [&](Value* v) { b_.CreateStore(v, b_.CreateConstGEP1_64(i64, env, next++)); };
  pass(workspace_);
  for (const Buffer& b : taken.buffers) pass(pointers_.at(b));
  for (const Var& v : taken.vars) pass(vars_.at(v));

  auto* const outer_function = function_;
  auto* const outer_block = b_.GetInsertBlock();
  const auto outer_vars = vars_;
  const auto outer_pointers = pointers_;
  Value *const outer_workspace = workspace_, *const outer_services = services_;

  llvm::Function* body = new_function(plan_.info.symbol + ".body" + std::to_string(outlined_++),
                                      {ptr, i64, b_.getInt32Ty()}, false);
  body->addParamAttr(0, llvm::Attribute::NoAlias);
  Value* slots_in = body->getArg(0);
  next = 0;
  auto take = [&](Type* type, const std::string& name) {
    return b_.CreateLoad(type, b_.CreateConstGEP1_64(i64, slots_in, next++), name);
  };
  workspace_ = take(ptr, "workspace");
  for (const Buffer& b : taken.buffers) pointers_[b] = take(ptr, b.name());
  for (const Var& v : taken.vars) vars_[v] = take(i64, v.name());
  Value* worker = b_.CreateZExt(body->getArg(2), i64);
  Value* offset =
      b_.CreateAdd(b_.CreateMul(worker, index(plan_.info.per_worker_bytes), "", true, true),
                   index(plan_.info.shared_bytes), "", true, true);
  worker_space_ = b_.CreateGEP(b_.getInt8Ty(), workspace_, offset);
  vars_[x.var] = body->getArg(1);
  services_ = nullptr;
  inside_parallel_ = true;
  first_loop_ = loops_.size() - 1;
  stmt(x.body);
  first_loop_ = 0;
  inside_parallel_ = false;
  b_.CreateRetVoid();

  function_ = outer_function;
  b_.SetInsertPoint(outer_block);
  vars_ = outer_vars;
  pointers_ = outer_pointers;
  workspace_ = outer_workspace;
  services_ = outer_services;
  worker_space_ = nullptr;
  auto field = [&](uint64_t bytes) {
    return b_.CreateLoad(ptr, b_.CreateConstGEP1_64(b_.getInt8Ty(), services_, bytes));
  };
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, i64, ptr, ptr}, false);
  b_.CreateCall(type, field(kParallelForOffset), {field(kPoolOffset), count, body, env});
}

}  // namespace tilewright::codegen
