#include "tilewright/records/workload.h"

#include "tilewright/base/file.h"
#include "tilewright/ir/text.h"

namespace tilewright::records {

std::string workload_text(const Func& func) {
  Func named = func;
  named.name = "f";
  return print(named);
}

std::string workload_key(const std::string& text) { return "sha256:" + sha256(text); }

}  // namespace tilewright::records
