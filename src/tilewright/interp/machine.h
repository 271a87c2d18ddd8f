// The state of a running program and the tree of small objects it is compiled to. Private to
// interp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::interp {

class Checker;
struct Shadow;

/// Ends a run from deep inside expressions, where a Result at every node would cost more than the
/// arithmetic; `run` turns it into its error.
struct Fault {
  Error error;
  bool out_of_bounds = false;  ///< the checking mode reports this one as a finding
};
[[noreturn]] void fault(std::string what, std::string why = {});

/// A buffer at run time: a view of memory, in elements.
struct BufferState {
  std::byte* data = nullptr;
  Shadow* shadow = nullptr;  ///< one per element in the checking mode, else null
  std::vector<int64_t> extents, strides;
  std::unique_ptr<std::byte[]> memory;  ///< of an allocation
  size_t capacity = 0;
  std::unique_ptr<Shadow[]> shadow_memory;

  BufferState();
  BufferState(BufferState&&) noexcept;
  ~BufferState();
};

/// Variables and buffers of the function that runs, by slot.
struct Machine {
  int64_t* vars = nullptr;
  BufferState* buffers = nullptr;
  const std::string* block = nullptr;  ///< name of the running block
  Checker* checker = nullptr;          ///< null outside the checking mode
  const std::function<bool()>* stop = nullptr;
  uint32_t ticks = 0;
};

/// A compiled expression whose value travels as R (see scalar.h).
template <class R>
struct Eval {
  virtual ~Eval() = default;
  virtual R get(Machine& m) const = 0;
};
template <class R>
using EvalPtr = std::unique_ptr<Eval<R>>;
using AnyEval = std::variant<EvalPtr<int64_t>, EvalPtr<float>, EvalPtr<double>>;

/// A compiled statement.
struct Exec {
  virtual ~Exec() = default;
  virtual void run(Machine& m) const = 0;
};
using ExecPtr = std::unique_ptr<Exec>;

/// constant + sum of coefficient * variable + sum of coefficient * anything else: the form of
/// nearly every index. Exact, because i64 arithmetic wraps.
struct Linear {
  struct Term {
    int slot;
    int64_t coefficient;
  };
  struct Rest {
    EvalPtr<int64_t> value;
    int64_t coefficient;
  };
  int64_t constant = 0;
  std::vector<Term> terms;
  std::vector<Rest> rest;

  bool is_constant() const { return terms.empty() && rest.empty(); }
  int64_t get(Machine& m) const {
    auto sum = static_cast<uint64_t>(constant);
    for (const Term& t : terms)
      sum += static_cast<uint64_t>(t.coefficient) * static_cast<uint64_t>(m.vars[t.slot]);
    for (const Rest& r : rest)
      sum += static_cast<uint64_t>(r.coefficient) * static_cast<uint64_t>(r.value->get(m));
    return static_cast<int64_t>(sum);
  }
};

/// An element of a buffer: slot and indices.
struct Element {
  int slot = 0;
  Buffer buffer;
  std::vector<Linear> indices;

  /// Offset of the element in elements. throws: Fault if an index is out of bounds.
  int64_t offset(Machine& m) const {
    const BufferState& b = m.buffers[slot];
    int64_t offset = 0;
    for (size_t k = 0; k < indices.size(); ++k) {
      const int64_t i = indices[k].get(m);
      if (static_cast<uint64_t>(i) >= static_cast<uint64_t>(b.extents[k])) out_of_bounds(m);
      offset += i * b.strides[k];
    }
    return offset;
  }
  [[noreturn]] void out_of_bounds(Machine& m) const;
  /// `C[3, 4]`, with the indices of this moment.
  std::string element(Machine& m) const;
};

/// A compiled function: scalars are variables 0.., parameters are buffers 0...
struct CompiledFunc {
  ExecPtr body;
  int num_vars = 0, num_buffers = 0;
  std::vector<std::vector<Linear>> param_shapes;
};
using ProgramPtr = std::shared_ptr<const CompiledFunc>;

/// throws: Fault for a program that names what is not in scope.
ProgramPtr compile(const Func& func);
/// A compiled expression over variables 0.. in the order of `vars`. throws: Fault.
AnyEval compile(const Expr& e, const std::vector<Var>& vars);

/// Gives `b` the shape, dense strides and undefined contents of an allocation.
void allocate(Machine& m, BufferState& b, const Buffer& buffer, std::vector<int64_t> extents);
/// Fills memory with what stands for "undefined": NaN, or an odd pattern for integers.
void poison(std::byte* data, DType dtype, int64_t count);
/// Product of extents. throws: Fault if one is negative or this host cannot hold so much.
int64_t checked_count(const std::vector<int64_t>& extents, const Buffer& buffer);

}  // namespace tilewright::interp
