#include "tilewright/postgres/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/postgres/connection.h"

extern char** environ;

namespace tilewright::postgres {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUser = "tilewright";
constexpr int kLeastVersion = 15;
constexpr int kStartSteps = 1200, kStep = 50'000;  ///< a minute; units of the step: us
constexpr int kAttemptsToStart = 100;
constexpr size_t kShownLog = 1500;

/// A program of the newest PostgreSQL: Debian keeps them apart from PATH.
Result<std::string> program_path(const std::string& name) {
  std::string found = find_program(name);
  int newest = kLeastVersion - 1;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const int version = std::atoi(entry.path().filename().c_str());
    const std::string path = entry.path() / "bin" / name;
    if (version <= newest || ::access(path.c_str(), X_OK) != 0) continue;
    newest = version;
    found = path;
  }
  if (!found.empty()) return found;
  return fail(ErrorKind::Tool, fmt::format("PostgreSQL's '{}' is not installed", name),
              "it is neither in /usr/lib/postgresql/*/bin nor on PATH",
              fmt::format("install PostgreSQL {} or newer (Debian: postgresql-15)", kLeastVersion));
}

/// What runs a program of PostgreSQL: as somebody else than root; `bound`: killed with this
/// process.
Result<std::vector<std::string>> run_as(bool bound) {
  std::vector<std::string> words = {"setpriv"};
  if (bound) words.insert(words.end(), {"--pdeathsig", "QUIT"});
  if (::geteuid() == 0) {
    if (::getpwnam("postgres") == nullptr)
      return fail(ErrorKind::Tool, "PostgreSQL does not run as root",
                  "there is no user 'postgres' to run it as", "adduser --system postgres");
    words.insert(words.end(), {"--reuid", "postgres", "--regid", "postgres", "--init-groups"});
  }
  return words;
}

std::string end_of_log(const std::string& path) {
  const std::string text = read_file(path).value_or("");
  return text.substr(text.size() - std::min(text.size(), kShownLog));
}

Status prepare_folder(const std::string& folder) {
  const std::string socket = folder + "/.s.PGSQL.5432";
  if (socket.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorKind::Usage, fmt::format("the path {} is too long for a socket", folder),
                fmt::format("with the socket's name it has {} bytes, at most {} may be",
                            socket.size(), sizeof(sockaddr_un::sun_path) - 1));
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_empty(folder, error) || error)
    return fail(error ? ErrorKind::Io : ErrorKind::Usage,
                fmt::format("{} cannot become a server's folder", folder),
                error ? error.message() : "there is something in it", "name a new folder");
  const passwd* owner = ::geteuid() == 0 ? ::getpwnam("postgres") : nullptr;
  if (::chmod(folder.c_str(), 0700) != 0 ||
      (owner != nullptr && ::chown(folder.c_str(), owner->pw_uid, owner->pw_gid) != 0))
    return fail(ErrorKind::Io, fmt::format("{} cannot be made private", folder),
                std::strerror(errno));
  return {};
}

/// Starts `words` in a session of its own, so that Ctrl-C does not reach it, its output in a file.
Result<pid_t> spawn(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> args;
  for (const std::string& word : words) args.push_back(const_cast<char*>(word.c_str()));
  args.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, args[0], &actions, &attributes, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  return fail(ErrorKind::Tool, fmt::format("cannot start '{}'", words[0]), std::strerror(error));
}

/// Of the server that runs in a folder; 0: none.
pid_t pid_in(const std::string& folder) {
  return std::atoi(read_file(folder + "/data/postmaster.pid").value_or("").c_str());
}

bool has_ended(pid_t pid) {
  if (::waitpid(pid, nullptr, WNOHANG) == pid) return true;
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

/// State and parent of a process; nothing of one that is gone.
struct ProcessStat {
  char state = 'X';
  pid_t parent = 0;
};
ProcessStat stat_of(const std::string& pid) {
  const std::string text = read_file("/proc/" + pid + "/stat").value_or("");
  // `7 (name) S 1 ..`: the name may hold anything.
  ProcessStat stat;
  const size_t behind = text.rfind(')');
  if (behind != std::string::npos)
    std::sscanf(text.c_str() + behind + 1, " %c %d", &stat.state, &stat.parent);
  return stat;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", ignored)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && stat_of(std::to_string(pid)).parent == parent) children.push_back(pid);
  }
  return children;
}

/// For root: that the user who runs the server gets to the folder. errors: Usage.
Status check_reach(const fs::path& path) {
  if (::geteuid() != 0) return {};
  for (fs::path above = path.parent_path(); above.has_relative_path();
       above = above.parent_path()) {
    std::error_code ignored;
    const fs::perms rights = fs::status(above, ignored).permissions();
    if (!ignored && (rights & fs::perms::others_exec) == fs::perms::none)
      return fail(ErrorKind::Usage,
                  fmt::format("the user postgres, who runs a server for root, cannot reach {}",
                              path.string()),
                  fmt::format("{} lets no other user through", above.string()),
                  fmt::format("another folder, or: chmod o+x {}", above.string()));
  }
  return {};
}

}  // namespace

Status PrivateServer::init(const std::string& folder) {
  const std::string path = fs::absolute(folder), data = path + "/data";
  if (::access((data + "/PG_VERSION").c_str(), F_OK) == 0) return {};
  TW_TRY_STATUS(check_reach(path));
  std::vector<std::string> words = TW_TRY(run_as(false));
  words.push_back(TW_TRY(program_path("initdb")));
  TW_TRY_STATUS(prepare_folder(path));
  // Who gets to the socket may be anybody in the database: the folder keeps others out.
  words.insert(words.end(),
               {"--pgdata=" + data, fmt::format("--username={}", kUser), "--auth-local=trust",
                "--auth-host=reject", "--encoding=UTF8", "--locale=C", "--no-instructions"});
  TW_TRY(run_checked(words, {path}));
  return {};
}

Result<std::unique_ptr<PrivateServer>> PrivateServer::start(const std::string& folder,
                                                            const ServerOptions& options) {
  const std::string path = fs::absolute(folder);
  std::vector<std::string> words = TW_TRY(run_as(options.bound));
  words.insert(words.end(),
               {TW_TRY(program_path("postgres")), "-D", path + "/data", "-k", path, "-p", "5432",
                "-c", "listen_addresses=", "-c", "unix_socket_permissions=0700"});
  for (const std::string& setting : options.settings) words.insert(words.end(), {"-c", setting});
  for (int attempt = 1;; ++attempt) {
    const pid_t pid = TW_TRY(spawn(words, path + "/log"));
    std::unique_ptr<PrivateServer> server(new PrivateServer(path, pid, options.bound));
    Status ready = server->wait_until_ready();
    if (ready) return server;
    // Children of a server that was killed end a moment after it.
    const bool children = ready.error().why.find("shared memory block") != std::string::npos;
    if (!children || attempt == kAttemptsToStart) return tl::unexpected<Error>(ready.error());
    ::usleep(kStep);
  }
}

Status PrivateServer::wait_until_ready() {
  for (int step = 0; step < kStartSteps; ++step) {
    const bool ended = has_ended(pid_);
    if (ended) pid_ = -1;
    if (ended) break;
    const auto connection = Connection::open(url());
    // Another one may be there already: then this one ends soon.
    if (connection && pid_in(folder_) == pid_) return {};
    if (!connection && connection.error().kind != ErrorKind::Unreachable)
      return tl::unexpected<Error>(connection.error());
    ::usleep(kStep);
  }
  return fail(ErrorKind::Tool, fmt::format("the PostgreSQL in {} does not start", folder_),
              end_of_log(folder_ + "/log"));
}

Status PrivateServer::stop(const std::string& folder) {
  const pid_t pid = pid_in(folder);
  if (pid <= 0 || ::kill(pid, SIGINT) != 0)
    return fail(ErrorKind::Io, fmt::format("no PostgreSQL runs in {}", folder));
  for (int step = 0; step < 10 * kStartSteps; ++step) {
    if (has_ended(pid)) return {};
    ::usleep(kStep / 10);
  }
  return fail(ErrorKind::Io, fmt::format("the PostgreSQL in {} does not end", folder),
              end_of_log(folder + "/log"));
}

std::string PrivateServer::url(const std::string& folder, const std::string& database) {
  std::string host;
  for (const char c : fs::absolute(folder).string())
    host += std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("/._-", c) != nullptr
                ? std::string(1, c)
                : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return fmt::format("postgresql://{}@:5432/{}?host={}", kUser, database, host);
}

void PrivateServer::kill() {
  if (pid_ <= 0) return;
  // Stopped first: a server that sees a child end would start others.
  ::kill(pid_, SIGSTOP);
  const std::vector<pid_t> children = children_of(pid_);
  for (const pid_t child : children) ::kill(child, SIGKILL);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  for (const pid_t child : children)
    while (std::strchr("XZ", stat_of(std::to_string(child)).state) == nullptr) ::usleep(kStep / 50);
  pid_ = -1;
}

PrivateServer::~PrivateServer() {
  if (!bound_ || pid_ <= 0 || has_ended(pid_)) return;
  ::kill(pid_, SIGINT);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace tilewright::postgres
