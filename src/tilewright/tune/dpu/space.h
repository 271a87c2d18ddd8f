// The ways to compile a network for the DPU as a space: for searchers, whose measure is the
// simulator's cycles.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "tilewright/codegen/dpu/candidates.h"
#include "tilewright/search/searcher.h"

namespace tilewright::tune {

/// What is decided for the whole network, then for single layers and maps: one set of decisions for
/// each form of the network. The first value of each is what the compiler's rules would do.
class DpuSpace {
 public:
  /// `plain_strides`: of every way in which strided layers are reordered (dpu::Way). Nodes count
  /// differently with others.
  /// errors: Invalid, Unsupported (as dpu::candidates_of).
  static Result<std::unique_ptr<DpuSpace>> create(const dpu::Network& network,
                                                  const dpu::Config& config,
                                                  std::set<int> plain_strides = {});

  const search::Space& space() const { return space_; }
  dpu::Way way(const search::Point& point) const;
  std::string describe(const search::Point& point) const {
    return candidates_.describe(way(point));
  }
  /// The point that means `way`; absent where a decision of it is none of the space's.
  std::optional<search::Point> point(const dpu::Way& way) const;
  /// Cycles of the cycle simulator, or why there is no program. May be called by several threads.
  search::Evaluation judge(const search::Point& point) const;

 private:
  enum class Kind {
    Form,
    Schedule,
    Fuse,
    BehindPools,
    Pieces,
    Homes,
    Later,
    Apart,
    PiecesOf,
    Rows,
    Home
  };
  /// What a decision is about, and what its values mean.
  struct Meaning {
    Kind kind = Kind::Form;
    int form = 0;  ///< of decisions about one node or root
    int item = 0;  ///< the node or root
    std::vector<int> values;
  };
  struct Table {
    std::vector<search::Decision> decisions;
    std::vector<Meaning> meanings;
  };
  DpuSpace(dpu::Candidates candidates, std::set<int> plain_strides, Table table)
      : candidates_(std::move(candidates)),
        plain_strides_(std::move(plain_strides)),
        meanings_(std::move(table.meanings)),
        space_(std::move(table.decisions)) {}

  static void add(Table& table, const std::string& name, Meaning meaning,
                  const std::vector<std::string>& texts);
  static Table table_of(const dpu::Candidates& candidates, const std::set<int>& plain_strides);
  static void add_layers(const dpu::Candidates& candidates, const dpu::Way& usual, int value,
                         Table& table);
  static void set(const Meaning& meaning, int value, dpu::Way& way);

  dpu::Candidates candidates_;
  std::set<int> plain_strides_;
  std::vector<Meaning> meanings_;  ///< by decision
  search::Space space_;
};

/// `dpu:` and a hash of everything in `config` that programs or their times depend on.
std::string dpu_target_key(const dpu::Config& config);

}  // namespace tilewright::tune
