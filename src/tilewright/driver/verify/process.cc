#include "tilewright/driver/verify/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/driver/console.h"

extern char** environ;

namespace tilewright::driver {
namespace {

std::vector<char*> c_argv(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (const std::string& arg : argv) pointers.push_back(const_cast<char*>(arg.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

tl::unexpected<Error> cannot_start(const std::string& program, int error) {
  return fail(ErrorKind::Tool, fmt::format("cannot start '{}'", program), std::strerror(error),
              "scripts/setup installs what is missing; `tilewright doctor` lists it");
}

}  // namespace

Result<std::unique_ptr<JsonProcess>> JsonProcess::start(const std::vector<std::string>& argv) {
  int to_child[2], from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0)
    return fail(ErrorKind::Io, "cannot create a pipe", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], 1);
  if (!console().verbose) posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, argv[0].c_str(), &actions, nullptr, c_argv(argv).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(to_child[0]);
  ::close(from_child[1]);
  std::unique_ptr<JsonProcess> process(new JsonProcess());
  process->name_ = argv[0];
  process->in_ = to_child[1];
  process->out_ = from_child[0];
  if (error != 0) return cannot_start(argv[0], error);
  process->pid_ = pid;
  return process;
}

JsonProcess::~JsonProcess() {
  if (in_ >= 0) ::close(in_);
  if (out_ >= 0) ::close(out_);
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
}

Result<nlohmann::json> JsonProcess::ask(const nlohmann::json& request) {
  const std::string line = json_text(request) + "\n";
  auto died = [&](const char* why) {
    return fail(ErrorKind::Tool, fmt::format("'{}' ended unexpectedly", name_), why,
                "run `tilewright doctor`");
  };
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::write(in_, line.data() + sent, line.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return died("it closed its input");
    sent += static_cast<size_t>(n);
  }
  size_t end = 0;
  while ((end = buffer_.find('\n')) == std::string::npos) {
    char chunk[1 << 14];
    const ssize_t n = ::read(out_, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return died("it closed its output");
    buffer_.append(chunk, static_cast<size_t>(n));
  }
  const std::string reply_text = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  nlohmann::json reply = parse_json(reply_text, std::nothrow);
  if (reply.is_discarded()) return died(reply_text.c_str());
  return reply;
}

}  // namespace tilewright::driver
