// tilewright-runner --serve FOLDER: FOLDER/model.twm is opened once, as FOLDER/job.json says, and
// run for each request that comes through descriptor 3. A request is a line and, right behind it,
// the bytes of the inputs as .npy files; a reply is the same with the outputs:
//
//   {"warmup": 0, "runs": 1, "seconds": 0, "inputs": [3200]}                  then 3200 bytes
//   {"ok": true, "open_ms": 1.9, "first_ns": 71200, "run_ns": [65100],
//    "outputs": [{"name": "y", "dtype": "f32", "shape": [1, 10], "bytes": 168}]}   then 168 bytes
//   {"ok": false, "kind": "invalid", "error": "..."}
//
// `open_ms` is told with the first reply; later ones have 0. Whoever writes requests is trusted;
// whoever reads the replies need not trust them, since the package's code runs in this process.
#include "tilewright/runner/main/serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>

#include "tilewright/base/file.h"
#include "tilewright/base/npy.h"
#include "tilewright/runner/main/run.h"

namespace tilewright::runner {
namespace {

constexpr int kSocket = 3;
constexpr size_t kMostLine = 1 << 20;

/// The next bytes: at most `most`, and at least one; 0 at the end.
size_t read_some(char* into, size_t most) {
  for (;;) {
    const ssize_t got = ::read(kSocket, into, most);
    if (got < 0 && errno == EINTR) continue;
    return got > 0 ? static_cast<size_t>(got) : 0;
  }
}

bool write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(kSocket, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

/// What has arrived.
class Requests {
 public:
  /// Absent at the end, or if there is none.
  std::optional<std::string> line() {
    for (;;) {
      if (const size_t end = text_.find('\n'); end != text_.npos) return take(end + 1);
      char chunk[65536];
      const size_t got = text_.size() < kMostLine ? read_some(chunk, sizeof chunk) : 0;
      if (got == 0) return std::nullopt;
      text_.append(chunk, got);
    }
  }
  std::optional<std::string> bytes(size_t count) {
    std::string taken = take(std::min(count, text_.size()));
    size_t have = taken.size();
    taken.resize(count);
    while (have < count) {
      const size_t got = read_some(taken.data() + have, count - have);
      if (got == 0) return std::nullopt;
      have += got;
    }
    return taken;
  }

 private:
  std::string take(size_t count) {
    std::string taken = text_.substr(0, count);
    text_.erase(0, count);
    return taken;
  }
  std::string text_;
};

/// The package, opened by the first request: so that a failure is a reply.
struct Served {
  std::string folder;
  std::optional<PackageSession> session;
};

Result<Json> run_request(Served& served, const RunnerJob& job,
                         const std::vector<std::string>& inputs, std::string& bytes) {
  double open_ms = 0;
  if (!served.session) {
    const RunnerJob how = TW_TRY(parse_job(TW_TRY(read_file(served.folder + "/job.json"))));
    served.session = TW_TRY(open_package(served.folder, how, open_ms));
  }
  PackageSession& session = *served.session;
  if (inputs.size() != session.inputs().size())
    return fail(ErrorKind::Invalid, fmt::format("{} inputs were given", inputs.size()),
                fmt::format("the package has {}", session.inputs().size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    TW_TRY_STATUS(session.set_input(
        i,
        TW_TRY(parse_npy(inputs[i], fmt::format("input {} ('{}')", i, session.inputs()[i].name)))));
  const Times times = TW_TRY(run_times(session, job));
  Json outputs = Json::array();
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    const Array value = TW_TRY(session.output(i));
    const std::string file = TW_TRY(npy_bytes(value));
    outputs.push_back(describe_output(session, i, value));
    outputs.back()["bytes"] = file.size();
    bytes += file;
  }
  return Json{{"ok", true},
              {"open_ms", open_ms},
              {"first_ns", times.first_ns},
              {"run_ns", times.run_ns},
              {"outputs", outputs}};
}

/// The job and the bytes that follow a line. Absent: it is none.
std::optional<RunnerJob> request_of(const std::string& line, std::vector<size_t>& sizes) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("inputs") || !json["inputs"].is_array())
    return std::nullopt;
  for (const Json& size : json["inputs"]) {
    if (!size.is_number_unsigned()) return std::nullopt;
    sizes.push_back(size.get<size_t>());
  }
  json.erase("inputs");
  const Result<RunnerJob> job = parse_job(json.dump());
  return job ? std::optional<RunnerJob>(*job) : std::nullopt;
}

}  // namespace

int serve_folder(const std::string& folder) {
  Requests requests;
  Served served{folder, std::nullopt};
  while (const std::optional<std::string> line = requests.line()) {
    std::vector<size_t> sizes;
    const std::optional<RunnerJob> job = request_of(*line, sizes);
    if (!job) return TW_IO;
    std::vector<std::string> inputs;
    for (const size_t size : sizes) {
      std::optional<std::string> input = requests.bytes(size);
      if (!input) return TW_IO;
      inputs.push_back(*std::move(input));
    }
    std::string bytes;
    const auto result = guarded([&] { return run_request(served, *job, inputs, bytes); });
    const Json reply = result ? *result : failure_json(result.error());
    // Names are what the package says they are, UTF-8 or not.
    const std::string text =
        reply.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
    if (!write_all(text) || (result && !write_all(bytes))) return TW_IO;
  }
  return 0;
}

}  // namespace tilewright::runner
