#include "tilewright/records/workload.h"

#include "tilewright/ir/text.h"

namespace tilewright::records {

std::string workload_text(const Func& func) {
  Func named = func;
  named.name = "f";
  return print(named);
}

}  // namespace tilewright::records
