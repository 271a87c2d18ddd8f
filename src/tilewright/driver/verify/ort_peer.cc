#include "tilewright/driver/verify/ort_peer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "ort_peer_script.h"
#include "tilewright/base/environment.h"

namespace tilewright::driver {

std::string python_program() {
  if (const auto chosen = environment("TILEWRIGHT_PYTHON")) return *chosen;
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  for (std::filesystem::path folder = program.parent_path(); !folder.empty();
       folder = folder.parent_path()) {
    const std::filesystem::path python = folder / ".venv/bin/python";
    if (::access(python.c_str(), X_OK) == 0) return python.string();
    if (folder == folder.parent_path()) break;
  }
  return "python3";
}

Result<std::unique_ptr<OrtPeer>> OrtPeer::start() {
  std::unique_ptr<OrtPeer> peer(new OrtPeer(TW_TRY(TemporaryFolder::create())));
  peer->process_ = TW_TRY(JsonProcess::start({python_program(), "-c", kOrtPeerScript}));
  const Result<nlohmann::json> hello = peer->process_->ask({{"cmd", "hello"}});
  if (!hello)
    return fail(ErrorKind::Tool, "ONNX Runtime did not start",
                fmt::format("'{}' cannot import onnxruntime", python_program()),
                "run scripts/setup, or set TILEWRIGHT_PYTHON to a Python that has onnxruntime");
  peer->version_ = hello->value("version", "?");
  return peer;
}

Status OrtPeer::load(const std::string& model, const LoadOptions& options) {
  TW_TRY(process_->ask({{"cmd", "load"},
                        {"model", std::filesystem::absolute(model).string()},
                        {"threads", options.threads},
                        {"profile", options.profile},
                        {"intermediates", options.intermediates},
                        {"optimise", options.optimise},
                        {"dims", options.dims}}));
  return {};
}

Status OrtPeer::set_inputs(const std::map<std::string, Array>& inputs) {
  nlohmann::json paths = nlohmann::json::object();
  int index = 0;
  for (const auto& [name, value] : inputs) {
    const std::string path = folder_.file(fmt::format("in{}.npy", index++));
    TW_TRY_STATUS(write_npy(path, value));
    paths[name] = path;
  }
  TW_TRY(process_->ask({{"cmd", "set_inputs"}, {"inputs", paths}}));
  return {};
}

Result<std::vector<std::pair<std::string, Array>>> OrtPeer::run() {
  const nlohmann::json reply = TW_TRY(process_->ask({{"cmd", "run"}, {"out_dir", folder_.path()}}));
  std::vector<std::pair<std::string, Array>> outputs;
  for (size_t i = 0; i < reply["names"].size(); ++i)
    outputs.emplace_back(reply["names"][i], TW_TRY(read_npy(reply["paths"][i])));
  return outputs;
}

Result<std::vector<int64_t>> OrtPeer::bench(double seconds, int min_runs) {
  const nlohmann::json reply =
      TW_TRY(process_->ask({{"cmd", "bench"}, {"seconds", seconds}, {"min_runs", min_runs}}));
  return reply["times_ns"].get<std::vector<int64_t>>();
}

Result<std::vector<int64_t>> OrtPeer::own_times() {
  const nlohmann::json reply = TW_TRY(process_->ask({{"cmd", "profile_end"}}));
  return reply["own_ns"].get<std::vector<int64_t>>();
}

}  // namespace tilewright::driver
