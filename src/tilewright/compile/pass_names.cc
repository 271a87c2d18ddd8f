#include "tilewright/compile/pass_names.h"

#include "tilewright/graph/passes/passes.h"

namespace tilewright::compile {

std::string pass_names(const CompileOptions& options, const std::vector<std::string>& left_out) {
  std::string names = graph::default_passes();
  const auto leave_out = [&](const std::string& pass) {
    names.erase(names.find(pass + ","), pass.size() + 1);
  };
  for (const std::string& pass : left_out) leave_out(pass);
  if (!options.fuse) leave_out("fold_batch_norm");
  return names;
}

}  // namespace tilewright::compile
