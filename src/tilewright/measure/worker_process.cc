#include "tilewright/measure/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace tilewright::measure {
namespace {

/// Beyond the numbers a worker gets its files under.
constexpr int kAside = 16;
/// Of a line from a worker: what it runs may write there too, and without an end.
constexpr size_t kLongestReply = 1 << 20;

tl::unexpected<Error> refused(const std::string& what) {
  return fail(ErrorKind::Io, what, std::strerror(errno));
}

OwnedFile moved_aside(int file) { return OwnedFile(::fcntl(file, F_DUPFD_CLOEXEC, kAside)); }

std::string last_line(int file) {
  char tail[512];
  const off_t size = ::lseek(file, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(sizeof tail));
  const ssize_t n = ::pread(file, tail, sizeof tail, from);
  std::string text(tail, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  text.erase(text.find_last_not_of(" \n") + 1);
  return text.substr(text.rfind('\n') + 1);
}

/// A process of ours with all that a user may.
class SpawnedWorker final : public RunningWorker {
 public:
  SpawnedWorker(pid_t pid, OwnedFile log) : pid_(pid), log_(std::move(log)) {}
  ~SpawnedWorker() override { (void)end(false); }
  SpawnedWorker(const SpawnedWorker&) = delete;
  SpawnedWorker& operator=(const SpawnedWorker&) = delete;

  Ending end(bool) override {
    Ending ending;
    if (pid_ <= 0) return ending;
    int status = 0;
    // It may be about to end by itself, which tells more than our signal would.
    pid_t done = ::waitpid(pid_, &status, WNOHANG);
    if (done == 0) {
      ::kill(-pid_, SIGKILL);
      ::kill(pid_, SIGKILL);
      while ((done = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
      }
    }
    if (done == pid_ && WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
    if (done == pid_ && WIFEXITED(status)) ending.status = WEXITSTATUS(status);
    ending.log = last_line(log_.get());
    pid_ = -1;
    return ending;
  }

 private:
  pid_t pid_;
  OwnedFile log_;
};

}  // namespace

OwnedFile& OwnedFile::operator=(OwnedFile&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

OwnedFile::~OwnedFile() {
  if (file_ >= 0) ::close(file_);
}

Result<OwnedFile> nameless_file(const char* purpose) {
  OwnedFile file(::memfd_create(purpose, MFD_CLOEXEC));
  if (file.get() < 0) return refused(fmt::format("cannot create a file in memory ({})", purpose));
  return moved_aside(file.get());
}

Result<std::unique_ptr<RunningWorker>> start_unconfined(const std::vector<std::string>& argv,
                                                        const std::array<int, 3>& files) {
  OwnedFile log = TW_TRY(nameless_file("log"));
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, log.get(), 2);
  for (size_t i = 0; i < files.size(); ++i)
    posix_spawn_file_actions_adddup2(&actions, files[i], kJobsFile + static_cast<int>(i));
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return fail(ErrorKind::Tool, fmt::format("cannot start '{}'", argv[0]), std::strerror(error));
  return std::make_unique<SpawnedWorker>(pid, std::move(log));
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const StartWorker& start,
                                                            const std::vector<std::string>& argv,
                                                            int turn_file, int results_file) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return refused("cannot create a pair of sockets");
  const OwnedFile first(ends[0]), second(ends[1]);
  OwnedFile ours = moved_aside(first.get());
  const OwnedFile theirs = moved_aside(second.get());
  auto running = TW_TRY(start(argv, {theirs.get(), turn_file, results_file}));
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(std::move(running), std::move(ours)));
}

bool WorkerProcess::send(const Job& job) {
  const std::string line = to_line(job);
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::send(socket(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

std::vector<Reply> WorkerProcess::receive(bool& gone) {
  char chunk[1 << 14];
  for (;;) {
    const ssize_t n = ::recv(socket(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    closed_ = n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
    gone = closed_;
    if (n <= 0) break;
    text_.append(chunk, static_cast<size_t>(n));
    if (text_.size() > kLongestReply) break;
  }
  std::vector<Reply> replies;
  for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
    const Result<Reply> reply = parse_reply(std::string_view(text_).substr(0, end));
    if (reply) replies.push_back(*reply);
    gone |= !reply;
    text_.erase(0, end + 1);
  }
  gone |= text_.size() > kLongestReply;
  return replies;
}

}  // namespace tilewright::measure
