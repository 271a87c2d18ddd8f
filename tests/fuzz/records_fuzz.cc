// Lines of records: broken ones are counted, and what was taken is exported and taken again.
#include "fuzz_common.h"
#include "tilewright/records/lines.h"
#include "tilewright/records/sqlite/sqlite.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  const auto store = *records::open_store(":memory:");
  const auto imported = records::import_lines(*store, std::string(fuzz::as_text(data, size)));
  if (!imported || imported->added == 0) return 0;
  const auto text = records::export_lines(*store, {});
  if (!text) fuzz::report("the store cannot be exported: " + text.error().what);
  const auto other = *records::open_store(":memory:");
  const auto again = records::import_lines(*other, *text);
  if (!again || again->broken != 0 || again->added != imported->added)
    fuzz::report("what was exported is not taken again:\n" + *text);
  return 0;
}
