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

namespace {
constexpr size_t kReasonLetters = 240;  // of a reason: three lines

/// What ONNX Runtime says, on one line: without error codes and places in its sources.
std::string plain_reason(const std::string& text) {
  std::string line;
  for (const char c : text)
    if (c != '\n' || !line.ends_with(' ')) line += c == '\n' ? ' ' : c;
  // `Fail: [ONNXRuntimeError] : 1 : FAIL : Load model from PATH failed:REASON`
  for (const std::string mark :
       {" failed:", "Status Message: ", "Exception during initialization: "})
    if (const size_t at = line.find(mark); at != std::string::npos)
      line = line.substr(at + mark.size());
  // `/src/file.cc:12 onnxruntime::F(const T&) [with T = float] REASON`
  if (line.starts_with("/"))
    if (const size_t at = line.find("] ", line.find(" [with ")); at != std::string::npos)
      line = line.substr(at + 2);
  return line.size() <= kReasonLetters ? line : line.substr(0, kReasonLetters) + "...";
}
}  // namespace

Result<nlohmann::json> OrtPeer::ask(const char* done, const nlohmann::json& request) {
  nlohmann::json reply = TW_TRY(process_->ask(request));
  if (reply.value("ok", false)) return reply;
  return fail(ErrorKind::Tool, fmt::format("ONNX Runtime {} does not {} the model", version_, done),
              plain_reason(reply.value("error", "")),
              "--against interp compares with the reference interpreter");
}

Result<std::unique_ptr<OrtPeer>> OrtPeer::start() {
  std::unique_ptr<OrtPeer> peer(new OrtPeer(TW_TRY(TemporaryFolder::create())));
  peer->process_ = TW_TRY(JsonProcess::start({python_program(), "-c", kOrtPeerScript}));
  const Result<nlohmann::json> hello = peer->process_->ask({{"cmd", "hello"}});
  if (!hello || !hello->value("ok", false))
    return fail(ErrorKind::Tool, "ONNX Runtime did not start",
                fmt::format("'{}' cannot import onnxruntime", python_program()),
                "run scripts/setup, or set TILEWRIGHT_PYTHON to a Python that has onnxruntime");
  peer->version_ = hello->value("version", "?");
  return peer;
}

Status OrtPeer::load(const std::string& model, const LoadOptions& options) {
  TW_TRY(ask("read", {{"cmd", "load"},
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
  TW_TRY(ask("take the inputs of", {{"cmd", "set_inputs"}, {"inputs", paths}}));
  return {};
}

Result<std::vector<std::pair<std::string, Array>>> OrtPeer::run() {
  const nlohmann::json reply = TW_TRY(ask("run", {{"cmd", "run"}, {"out_dir", folder_.path()}}));
  std::vector<std::pair<std::string, Array>> outputs;
  for (size_t i = 0; i < reply["names"].size(); ++i)
    outputs.emplace_back(reply["names"][i], TW_TRY(read_npy(reply["paths"][i])));
  return outputs;
}

Result<std::vector<int64_t>> OrtPeer::bench(double seconds, int min_runs) {
  const nlohmann::json reply =
      TW_TRY(ask("run", {{"cmd", "bench"}, {"seconds", seconds}, {"min_runs", min_runs}}));
  return reply["times_ns"].get<std::vector<int64_t>>();
}

Result<std::vector<int64_t>> OrtPeer::own_times() {
  const nlohmann::json reply = TW_TRY(ask("time", {{"cmd", "profile_end"}}));
  return reply["own_ns"].get<std::vector<int64_t>>();
}

}  // namespace tilewright::driver
