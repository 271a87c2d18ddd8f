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
//
// tilewright-runner --serve -: the same through stdin and stdout, so that it works over ssh, too.
// The package comes first: a line of job.json with its size, then its bytes. Once all of it is
// here, and before any of its code runs, a line says so, and who this is:
//
//   {"device": "cpu", "threads": 2, "package": 41200}     then 41200 bytes, then requests
//   {"runner": "0.1.0", "package": 41200}                 then replies
//
// Where nobody reads the replies any more (the connection is gone) it ends, whatever it is doing.
#include "tilewright/runner/main/serve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/npy.h"
#include "tilewright/runner/main/run.h"
#include "tilewright/runtime.h"

namespace tilewright::runner {
namespace {

constexpr int kSocket = 3;
constexpr size_t kMostLine = 1 << 20;

/// The next bytes: at most `most`, and at least one; 0 at the end.
size_t read_some(int from, char* into, size_t most) {
  for (;;) {
    const ssize_t got = ::read(from, into, most);
    if (got < 0 && errno == EINTR) continue;
    return got > 0 ? static_cast<size_t>(got) : 0;
  }
}

bool write_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(to, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

/// What has arrived.
class Requests {
 public:
  explicit Requests(int from) : from_(from) {}

  /// Absent at the end, or if there is none.
  std::optional<std::string> line() {
    for (;;) {
      if (const size_t end = text_.find('\n'); end != text_.npos) return take(end + 1);
      char chunk[65536];
      const size_t got = text_.size() < kMostLine ? read_some(from_, chunk, sizeof chunk) : 0;
      if (got == 0) return std::nullopt;
      text_.append(chunk, got);
    }
  }
  std::optional<std::string> bytes(size_t count) {
    std::string taken = take(std::min(count, text_.size()));
    size_t have = taken.size();
    taken.resize(count);
    while (have < count) {
      const size_t got = read_some(from_, taken.data() + have, count - have);
      if (got == 0) return std::nullopt;
      have += got;
    }
    return taken;
  }
  /// The next so many bytes, put at the end of a file as they come: a board may not have the memory
  /// for a package. errors: Io; Invalid (they end before).
  Status append_to(int file, size_t count) {
    std::string chunk = take(std::min(count, text_.size()));
    for (;;) {
      if (!write_all(file, chunk))
        return fail(ErrorKind::Io, "the package cannot be written", std::strerror(errno),
                    "TMPDIR names a folder with more room");
      count -= chunk.size();
      if (count == 0) return {};
      constexpr size_t kChunk = 1 << 20;
      chunk.resize(std::min(count, kChunk));
      chunk.resize(read_some(from_, chunk.data(), chunk.size()));
      if (chunk.empty()) return fail(ErrorKind::Invalid, "the package that comes is cut off");
    }
  }

 private:
  std::string take(size_t count) {
    std::string taken = text_.substr(0, count);
    text_.erase(0, count);
    return taken;
  }
  int from_;
  std::string text_;
};

void remove_files(const std::string& folder) {
  for (const char* name : {"/job.json", "/model.twm"}) ::unlink((folder + name).c_str());
  ::rmdir(folder.c_str());
}

/// The package, opened by the first request: so that a failure is a reply.
struct Served {
  std::string folder;
  bool ours = false;  ///< it came through a stream: once it is open its files are not needed
  std::optional<PackageSession> session;

  Status open(double& open_ms) {
    const Result<std::string> text = read_file(folder + "/job.json");
    Result<RunnerJob> how = text ? parse_job(*text) : tl::unexpected<Error>(text.error());
    Result<PackageSession> opened =
        how ? open_package(folder, *how, open_ms) : tl::unexpected<Error>(how.error());
    if (ours) remove_files(folder);
    session = TW_TRY(std::move(opened));
    return {};
  }
};

Result<Json> run_request(Served& served, const RunnerJob& job,
                         const std::vector<std::string>& inputs, std::string& bytes) {
  double open_ms = 0;
  if (!served.session) TW_TRY_STATUS(served.open(open_ms));
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
  Json json = parse_ordered_json(line, std::nothrow);
  if (!json.is_object() || !json.contains("inputs") || !json["inputs"].is_array())
    return std::nullopt;
  for (const Json& size : json["inputs"]) {
    if (!size.is_number_unsigned()) return std::nullopt;
    sizes.push_back(size.get<size_t>());
  }
  json.erase("inputs");
  const Result<RunnerJob> job = parse_job(json_text(json));
  return job ? std::optional<RunnerJob>(*job) : std::nullopt;
}

int serve(Requests& requests, Served& served, int out) {
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
    const std::string text = json_text(reply) + "\n";
    if (!write_all(out, text) || (result && !write_all(out, bytes))) return TW_IO;
  }
  return 0;
}

/// The package that comes before the requests, as model.twm and job.json in `folder`; its size.
Result<size_t> receive_package(Requests& requests, const std::string& folder) {
  const std::optional<std::string> line = requests.line();
  Json job = line ? parse_ordered_json(*line, std::nothrow) : Json();
  if (!job.is_object() || !job.contains("package") || !job["package"].is_number_unsigned())
    return fail(ErrorKind::Invalid, "what comes through stdin begins with no package");
  const auto size = job["package"].get<size_t>();
  job.erase("package");
  TW_TRY_STATUS(write_file(folder + "/job.json", json_text(job)));
  const int file =
      ::open((folder + "/model.twm").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return fail(ErrorKind::Io, "the package cannot be written", std::strerror(errno));
  const Status written = requests.append_to(file, size);
  ::close(file);
  TW_TRY_STATUS(written);
  return size;
}

/// Ends this process once nobody can read `out` any more: a package that never returns would stay
/// on its board for ever.
void end_with_reader(int out, const std::string& folder) {
  std::thread([out, folder] {
    pollfd watched{out, 0, 0};  // errors are told without being asked for
    while (::poll(&watched, 1, -1) < 0 && errno == EINTR) {
    }
    ::sleep(1);  // who waits for a request finds out by itself
    remove_files(folder);
    ::_exit(TW_IO);
  }).detach();
}

}  // namespace

int serve_folder(const std::string& folder) {
  Requests requests(kSocket);
  Served served{folder, false, std::nullopt};
  return serve(requests, served, kSocket);
}

int serve_stream() {
  ::signal(SIGPIPE, SIG_IGN);  // that nobody reads an answer is an error of writing
  // What code of the package prints goes elsewhere.
  const int out = ::dup(STDOUT_FILENO);
  if (out < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return TW_IO;
  const char* parent = std::getenv("TMPDIR");
  std::string folder = fmt::format("{}/tilewright-XXXXXX", parent != nullptr ? parent : "/tmp");
  if (::mkdtemp(folder.data()) == nullptr) {
    std::fprintf(stderr, "error: cannot make a folder %s: %s\n", folder.c_str(),
                 std::strerror(errno));
    return TW_IO;
  }
  Served served{folder, true, std::nullopt};
  end_with_reader(out, folder);
  Requests requests(STDIN_FILENO);
  const Result<size_t> received = receive_package(requests, folder);
  if (!received) {
    remove_files(folder);
    std::fprintf(stderr, "%s", to_string(received.error()).c_str());
    return TW_IO;
  }
  const Json here = {{"runner", tw_version()}, {"package", *received}};
  const bool told = write_all(out, json_text(here) + "\n");
  const int status = told ? serve(requests, served, out) : TW_IO;
  if (!served.session) remove_files(folder);  // nothing was asked of it
  return status;
}

}  // namespace tilewright::runner
