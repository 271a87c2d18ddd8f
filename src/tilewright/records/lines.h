// Records as JSON lines, and from one store to another.
#pragma once

#include <string>

#include "tilewright/records/store.h"

namespace tilewright::records {

/// Lines of the exchange format: the first one, a workload, a record.
std::string lines_header();
std::string workload_line(const std::string& key, const std::string& func);
std::string line_of(const Record& record);

/// A header, workloads, records.
Result<std::string> export_lines(const Store& store, const RecordFilter& filter);

/// What was added. Records that were here already are skipped. Lines that cannot be read are
/// counted, never fatal.
struct Imported {
  int64_t added = 0, known = 0, broken = 0;
  std::string first_problem;
};
/// Lines of any version. errors: Parse (other text), of the store.
Result<Imported> import_lines(Store& store, const std::string& text);
/// All that `other` has. errors: of the stores.
Result<Imported> merge(Store& store, const Store& other);

}  // namespace tilewright::records
