// Builds programs without thinking of tokens.
//
// Instructions are given in an order in which they are right one after the other. Tokens are added
// by one of two schemes. By addresses: the fewest that order all conflicts of different units. By
// barriers, as in the paper: the stream is cut into groups; whatever a group has in a unit begins
// when everything of the group before is done.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/dpu/program.h"

namespace tilewright::dpu {

class Builder {
 public:
  explicit Builder(const Config& config);
  ~Builder();
  Builder(Builder&&) noexcept;

  /// Appends `op`, whose operands are found through the INITs before it.
  /// errors: Invalid (fields; no INIT), Capacity (addresses beyond a memory).
  Status add(const Op& op);
  /// What follows begins when everything before is done (layer barriers; cheap if nothing is
  /// under way).
  void barrier();
  /// Barriers only: what follows is a new group. Its first instruction in each unit waits for the
  /// last one of every other unit that the group before has.
  void begin_group();
  /// The instructions from here on belong to `layer`.
  void begin_span(const std::string& layer);
  size_t size() const;

  /// The stream with tokens, END and spans. `addresses`: by which scheme.
  /// errors: Invalid (as accel::insert_tokens).
  Result<Run> finish(bool addresses);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::dpu
