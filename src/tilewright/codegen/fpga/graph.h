// The stores inside of a nest's counters as a graph of operators. Internal.
//
//   for u in 2 unroll { C[k] += X[2*c + u] * W[k, 2*c + u] }
//     ->  C[k] = C[k] + (X[2*c] * W[k, 2*c] + X[2*c + 1] * W[k, 2*c + 1])
//
// Loops inside are copied, so that each copy is hardware of its own; terms of one sum are added by
// a balanced tree. Equal operators are built once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/codegen/fpga/addresses.h"
#include "tilewright/hw/fpga_device.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen::fpga_design {

/// What the buffers of a program are in the design.
struct Surroundings {
  const hw::FpgaDevice* device = nullptr;
  std::map<Buffer, BankedBuffer> memories;
  std::map<Buffer, int> arguments;  ///< buffers outside of the chip
};

class GraphBuilder {
 public:
  GraphBuilder(const Surroundings& around, const Loops& loops, int lanes)
      : around_(around), loops_(loops), lanes_(lanes) {}

  /// The nest of `body`, without name, interval and port; `argument` says what it moves.
  /// errors: Unsupported, with what the Verilog lacks.
  Result<fpga::Nest> run(const Stmt& body);
  /// What the nest moves through a port: an argument, or -1.
  int argument() const { return argument_; }
  bool writes() const { return writes_; }
  /// Why run failed, if splitting a counter mends it.
  const std::optional<CounterSplit>& split() const { return split_; }

 private:
  /// An element that is stored in this iteration.
  struct Pending {
    fpga::Place place;
    DType dtype;
    std::string name;
    Combine combine = Combine::Set;
    struct Term {
      int node;
      std::vector<fpga::Range> ranges;
    };
    std::vector<Term> terms;  ///< of Set: one
  };

  Status statement(const Stmt& s, const VarMap& copies);
  Status store(const Store& store, const VarMap& copies);
  Status store_outside(const Store& store, int value);
  Result<int> value(const Expr& e);
  Result<int> binary(const Binary& op, DType dtype);
  Result<int> condition(const Expr& e);
  Result<int> chosen(const Select& op, DType dtype);
  Result<int> loaded(const Load& load);
  Result<int> streamed(const Load& load, int argument);
  Status group(const std::vector<Expr>& indices, const Buffer& buffer, int& lane);
  Result<fpga::Place> place(const Buffer& buffer, const std::vector<Expr>& indices);
  int constant(DType dtype, double real, int64_t whole);
  int node(fpga::Node node);
  /// Of type `type`; sums and products of integers are computed no wider than they can be.
  int apply(fpga::Op op, fpga::Number type, std::vector<int> inputs);
  const fpga::Number& type_of(int node) const;
  int before_cast(int node) const;
  int tree(fpga::Op op, fpga::Number type, std::vector<int> terms);
  Status read_once(const fpga::Place& place, const std::string& name);
  Status finish();
  void leave_out_unused();

  const Surroundings& around_;
  const Loops& loops_;
  int lanes_;
  fpga::Nest nest_;
  int argument_ = -1;
  bool writes_ = false;
  std::optional<CounterSplit> split_;
  std::map<std::string, int> built_;
  std::vector<Expr> guards_, conditions_;  ///< of stores; of loads
  std::vector<Pending> pending_;
  std::vector<fpga::Place> read_;
};

/// Whether values of `e` come from memory.
bool has_loads(const Expr& e);

}  // namespace tilewright::codegen::fpga_design
