// The file of a search: what was searched, and every evaluation, written before the next begins.
//
// `tilewright codesign search M.onnx --space edge -o r50/` keeps r50/study.sqlite. The same line
// again goes on from there; another model, space or compiler is refused.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/codesign/level.h"
#include "tilewright/records/sqlite/file_system.h"
#include "tilewright/search/multi/multi_objective.h"

namespace tilewright::codesign {

/// What must be the same for results to be comparable, by name: `model`, `space`, ...
using StudyKey = std::map<std::string, std::string>;

/// What two keys do not share, by name; empty: nothing.
std::string differences(const StudyKey& here, const StudyKey& there);

/// One evaluation.
struct StudyRow {
  search::MultiTrial trial;
  std::string design;  ///< the file of the design (TOML)
  /// What it was evaluated with; a design may have a row for each.
  std::string level = kModelLevel;
};

class Study {
 public:
  /// Makes the file, or opens one of the same key.
  /// errors: Io (a network file system, too); Package (another key: what differs; no study).
  static Result<Study> open(const std::string& path, const StudyKey& key,
                            records::FileSystemOf kind_of = records::file_system_of);
  /// As it is. errors: Io, Package.
  static Result<Study> open_to_read(const std::string& path);
  Study(Study&&) noexcept;
  Study& operator=(Study&&) noexcept;
  ~Study();

  /// All of them, or after an error none, on the disk when it returns. errors: Io.
  Status add(const std::vector<StudyRow>& rows);
  /// In the order in which they were added. errors: Io, Package (a row that cannot be read).
  Result<std::vector<StudyRow>> rows() const;
  Result<StudyKey> key() const;

 private:
  struct State;
  explicit Study(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::codesign
