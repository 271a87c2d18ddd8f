// Which layers of a network an FPGA computes, and their code: sums of products, with what is
// computed element by element behind them. Layers of one form share a design (shared.h); or each
// distinct layer is a design of its own, if the user wants that.
//
//   conv 1, relu | pool, lrn (processor) | conv 2, relu, conv 3, relu   =>   two launches
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/compile/fpga/network.h"
#include "tilewright/compile/fpga/program.h"
#include "tilewright/compile/fpga/shared.h"
#include "tilewright/compile/quantized_model.h"
#include "tilewright/graph/partition/fuse.h"

namespace tilewright::compile {

/// Designs that were found for one model: searching for them takes long.
class FpgaMemo final : public BackendMemo {
 public:
  explicit FpgaMemo(bool integers = false) : integers_(integers) {}

  /// Whether the graph was quantised: it needs no passes any more.
  bool integers() const { return integers_; }
  /// The design of `func`, names apart, with known weights in the best order. errors: why there is
  /// none.
  Result<const FpgaLayer*> layer(const Func& func, const CompileOptions& options);
  /// Lets programs of one form share a design from now on, where one for all is found.
  Status share(const std::vector<FpgaUse>& uses, const CompileOptions& options);
  /// Of the layer's design, for people: the first that is asked for is 0.
  int design_number(const FpgaLayer& layer);
  /// All layers that share this one's design. Empty: no other does.
  std::vector<const FpgaLayer*> sharing(const FpgaLayer& layer) const;

 private:
  bool integers_;
  int structures_ = 0;  ///< how many have a number
  std::map<std::string, FpgaLayer> layers_;
  std::map<std::string, FpgaLayer> shared_;  ///< of layers that share
  std::map<int, int> numbers_;               ///< of structures
};

/// Where each node of a graph runs.
struct FpgaPlaces {
  std::vector<graph::Placement> nodes;
  std::vector<std::string> devices;  ///< of each node: kFpgaTarget, or nothing
  std::string summary;  ///< for people: layers, designs, their time and cells by the model
};
/// What is no sum of products is meant for the processor.
Result<FpgaPlaces> place_on_fpga(const graph::Graph& graph, const CompileOptions& options,
                                 FpgaMemo& memo);

/// What the back-end alone knows of a launch: the programs of its designs.
struct FpgaLaunchCode final : LaunchDetail {
  std::vector<FpgaProgram> programs;
};
/// errors: Unsupported, Capacity, at the layer's name.
Result<LaunchCode> compile_fpga_layers(const graph::Graph& graph, const graph::Group& launch,
                                       const CompileOptions& options, FpgaMemo& memo);
/// The same of one program, which runs without a schedule too.
Result<LaunchCode> compile_fpga_program(const Func& func, const CompileOptions& options);

}  // namespace tilewright::compile
