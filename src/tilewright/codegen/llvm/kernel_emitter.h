// Inside of the LLVM back-end: one Func becomes LLVM IR. Only the .cc files here include this.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "tilewright/arith/bounds.h"
#include "tilewright/codegen/common/plan.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// The lanes a vector loop is executed in: lane l stands for iteration base + l.
struct Lanes {
  Var var;
  unsigned count = 0;
  llvm::Value* base = nullptr;        ///< i64
  std::optional<int64_t> const_base;  ///< if known while emitting
  llvm::Value* mask = nullptr;        ///< <count x i1> of lanes that run; null: all of them
  /// The mask only cuts the end of the loop's range, so padded registers need not obey it.
  bool only_tail = true;
  /// Some lane is known to run, so what all lanes share may be loaded.
  bool some_run = true;
};

/// A part of an index that all lanes share: coefficient * e, known inside of `depth` loops.
struct SharedTerm {
  Expr e;
  int64_t coefficient;
  int depth;
};

/// Whether `call`, in `func`, is one instruction of `target` on elements that lie side by side.
bool has_instruction(const Func& func, const Call& call, const hw::CpuTarget& target);

/// Emits one kernel into a module. f16 and bf16 values are f32 values rounded to their type.
class KernelEmitter {
 public:
  KernelEmitter(const Func& func, const KernelPlan& plan, const hw::CpuTarget& target,
                llvm::Module& module);
  void run();
  /// True if some loop was turned into explicit vectors.
  bool has_vectors() const { return has_vectors_; }
  /// True if some element is stored one at a time inside a loop: work for LLVM's vectorisers.
  bool has_scalar_loops() const { return has_scalar_loops_; }

 private:
  using Value = llvm::Value;
  using Type = llvm::Type;

  // kernel_emitter.cc: functions and statements.
  llvm::Function* new_function(const std::string& name, llvm::ArrayRef<Type*> args, bool exported);
  void emit_alias_groups();
  void stmt(const Stmt& s);
  void loop(const For& x);
  void counted_loop(Value* extent, const std::string& name, std::optional<int64_t> known,
                    const std::function<void(Value*)>& body);
  void block(const Block& x);
  void guarded(const Expr& condition, const Stmt& then_body, const Stmt& else_body);
  void masked(Value* mask, const Stmt& body);
  void alloc(const Alloc& x);
  void outline(const For& x);
  Value* stack_array(Type* type, int64_t elements, const std::string& name);

  // vector_loop.cc: loops as lanes.
  bool vector_loop(const For& x);
  bool can_use_lanes(const For& x) const;
  unsigned native_lanes(const For& x) const;
  void strip(const For& x, unsigned lanes, unsigned active, Value* base,
             std::optional<int64_t> const_base);
  void plan_registers();

  // memory.cc: addresses, loads, stores.
  struct Address {
    Value* pointer = nullptr;       ///< of the element of lane 0 (uniform part)
    std::optional<int64_t> stride;  ///< elements between lanes (0: shared); absent: `offsets`
    Value* offsets = nullptr;       ///< <lanes x i64>, elements from `pointer`
    std::vector<int64_t> steps;     ///< the same where they are constant; else empty
    bool inside = false;            ///< provably in the buffer whatever the conditions say
  };
  Address address(const Buffer& buffer, const std::vector<Expr>& indices);
  struct Place;
  void add_to(Place& place, const Expr& e, int64_t step);
  void add_to(Place& place, Value* v);
  Value* scaled(Value* v, Value* by);
  bool provably_inside(const Buffer& buffer, const std::vector<Expr>& indices) const;
  Value* load_element(const Load& x, DType dtype);
  void store(const Store& x);
  Value* extreme_of(const Expr& e, Combine combine);
  void prefetch(const Load& x, const Address& at);
  /// Where lane 0 reads in the buffer, in elements; absent if strides are not constant.
  std::optional<Expr> place_of(const Load& x) const;
  void fetch_next(const Load& x, const Address& at);  // fetch_next.cc
  Value* load_memory(const Buffer& buffer, const Address& at);
  void store_memory(const Buffer& buffer, const Address& at, Value* value);
  std::optional<unsigned> known_lanes() const;
  Value* picked(const Buffer& buffer, const Address& at, Type* element, unsigned active);
  Value* every_other(const Buffer& buffer, const Address& at, Type* element, unsigned active);
  Value* lane_pointers(const Address& at, Type* element);
  Value* lane_mask();
  bool in_register_row(const Buffer& buffer) const;
  Type* element_type(const Buffer& buffer);
  Value* from_memory(DType dtype, Value* raw);
  Value* to_memory(DType dtype, Value* value);
  template <class Instruction>
  Instruction* tagged(const Buffer& buffer, Instruction* instruction);
  Value* tagged_load(const Buffer& buffer, Type* type, Value* pointer, llvm::Align align);
  void tagged_store(const Buffer& buffer, Value* value, Value* pointer, llvm::Align align);

  // transpose.cc: tiles read across.
  struct Across;
  void sequence(const std::vector<Stmt>& stmts);
  std::optional<Across> read_across(const Stmt& s) const;
  std::vector<Across> tile_across(const std::vector<Stmt>& stmts, size_t first) const;
  void turn(const std::vector<Across>& tile);

  // intrinsic.cc: instructions of the target.
  void call(const Call& x);
  Value* load_register(const Region& region, const Address& at, llvm::FixedVectorType* type,
                       unsigned region_bits);

  // expr.cc: expressions.
  Value* emit(const Expr& e);
  Value* build(const Expr& e);
  Value* select(const Expr& e, const Select& s);
  Value* logic(const Binary& b);
  Value* branchy(Value* condition, const std::function<Value*()>& on_true,
                 const std::function<Value*()>& on_false);
  Value* under_mask(Value* mask, const std::function<Value*()>& body);
  bool must_stay_lazy(const Expr& e);
  bool varies(const Expr& e) const;
  Value* fused(const Expr& e, const Binary& b);
  void forget_after(size_t mark);

  // arith.cc: operations on values.
  Value* binary_op(BinaryOp op, DType dtype, Value* a, Value* b, bool index_math);
  Value* float_op(BinaryOp op, DType dtype, Value* a, Value* b);
  Value* int_op(BinaryOp op, DType dtype, Value* a, Value* b, bool index_math);
  Value* divide(BinaryOp op, DType dtype, Value* a, Value* b, bool non_negative);
  Value* min_max(bool is_max, Value* a, Value* b);
  Value* replace_nan(Value* out, Value* b);
  Value* convert(DType to, DType from, Value* v);
  Value* narrowed(DType to, Value* v);
  Value* reinterpret(DType to, DType from, Value* v);
  Value* math_call(const MathCall& m, DType dtype);
  Value* int_math(const MathCall& m, DType dtype, const std::vector<Value*>& args);
  Value* libm(const std::string& name, const std::vector<Value*>& args);
  Value* round_to(DType dtype, Value* v);
  Value* splat_to_match(Value* v, Value* like);
  void match_lanes(Value*& a, Value*& b);
  Value* splat(Value* v, unsigned lanes);
  Type* value_type(DType dtype);
  Type* memory_type(DType dtype);
  Type* like(Value* v, Type* scalar);
  Value* index(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }

  const Func& func_;
  const KernelPlan& plan_;
  const hw::CpuTarget& target_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  bool fast_;
  bool has_vectors_ = false;
  bool has_scalar_loops_ = false;

  // Of the function being emitted; `outline` saves and restores them.
  llvm::Function* function_ = nullptr;
  std::map<Var, Value*> vars_;
  std::map<Var, int> depth_;  ///< loop depth, for grouping address terms
  std::map<Buffer, Value*> pointers_;
  Value* workspace_ = nullptr;
  Value* worker_space_ = nullptr;
  Value* services_ = nullptr;
  bool inside_parallel_ = false;
  std::optional<Lanes> lanes_;
  arith::Bounds bounds_;
  /// The innermost loop marked `prefetch`, and the places already asked for in this loop body.
  struct Prefetch {
    Var var;
    int64_t distance = 0;  ///< in iterations
    struct Place {
      Buffer buffer;
      Expr element;
    };
  };
  std::optional<Prefetch> prefetch_;
  std::vector<Prefetch::Place> prefetched_;
  /// Loops around that count, outermost first.
  struct Around {
    Var var;
    int64_t extent = 0;  ///< 0: not constant
  };
  std::vector<Around> loops_;
  size_t first_loop_ = 0;  ///< of the function being emitted
  /// The innermost loop marked `fetch_next`, by its place in `loops_`.
  struct FetchNext {
    size_t loop = 0;
    int64_t bytes = 0;  ///< that the loop reads each time
  };
  std::optional<FetchNext> fetch_next_;
  bool fetched_next_ = false;  ///< in this loop body

  std::map<Buffer, std::vector<Expr>> strides_;
  /// Stack buffers whose last axis is padded to whole vectors, with their element count.
  std::map<Buffer, int64_t> padded_;
  /// Buffers allocated inside the vector loop being emitted: every lane has its own elements, so an
  /// element is a vector.
  std::set<Buffer> per_lane_;
  std::map<Buffer, std::pair<llvm::MDNode*, llvm::MDNode*>> alias_;
  int outlined_ = 0;

  /// Vectors of the tile being read across, by the loads they stand for.
  std::map<const Load*, Value*> turned_;

  // Of the statement being emitted.
  std::unordered_map<const ExprNode*, Value*> memo_;
  std::vector<const ExprNode*> memo_order_;
  std::unordered_map<const ExprNode*, bool> lazy_;
};

template <class Instruction>
Instruction* KernelEmitter::tagged(const Buffer& buffer, Instruction* instruction) {
  const auto it = alias_.find(buffer);
  if (it == alias_.end()) return instruction;
  instruction->setMetadata(llvm::LLVMContext::MD_alias_scope, it->second.first);
  instruction->setMetadata(llvm::LLVMContext::MD_noalias, it->second.second);
  return instruction;
}

}  // namespace tilewright::codegen
