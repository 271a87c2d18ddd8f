// Children that do what packages must not: `hostile WHAT ARGUMENT...`. Exit status 0: it could;
// 10 + n: it was refused in step n. The reason is printed.
//
// Nothing here harms a machine that has no sandbox: see `kill_all`.
#include <arpa/inet.h>
#include <asm/unistd.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using Arguments = std::vector<std::string>;

int refused(int step, const char* what) {
  std::printf("%s: %s\n", what, std::strerror(errno));
  return 10 + step;
}
int could(const char* what) {
  std::printf("it could: %s\n", what);
  return 0;
}
long number(const std::string& text) { return std::strtol(text.c_str(), nullptr, 10); }

/// hostile connect PORT: to a server on this machine.
int connect_to(const Arguments& a) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return refused(0, "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(number(a.at(0))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return refused(1, "connect");
  return could("connect");
}

/// hostile read FILE
int read_file(const Arguments& a) {
  const int fd = ::open(a.at(0).c_str(), O_RDONLY);
  char text[64] = {};
  if (fd < 0) return refused(0, "open");
  if (::read(fd, text, sizeof text - 1) < 0) return refused(1, "read");
  std::printf("%s\n", text);
  return could("read");
}

/// hostile fork MOST: as many processes as there may be, at most MOST. They wait for their end.
int fork_bomb(const Arguments& a) {
  long count = 0;
  for (; count < number(a.at(0)); ++count) {
    const pid_t pid = ::fork();
    if (pid < 0) break;
    if (pid == 0)
      for (;;) ::pause();
  }
  std::printf("%ld processes\n", count);
  return count == number(a.at(0)) ? 0 : refused(0, "fork");
}

/// hostile threads MOST
int thread_bomb(const Arguments& a) {
  long count = 0;
  static char stacks[4096][4096];
  for (; count < number(a.at(0)); ++count) {
    const auto body = [](void*) -> int {
      for (;;) ::pause();
    };
    constexpr int kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    if (::clone(body, stacks[count % 4096] + 4096, kThread, nullptr) < 0) break;
  }
  std::printf("%ld threads\n", count);
  return count == number(a.at(0)) ? 0 : refused(0, "clone");
}

/// hostile daemon FILE: leaves a process behind that goes on writing after its parent's end.
int leave_daemon(const Arguments& a) {
  const pid_t pid = ::fork();
  if (pid < 0) return refused(0, "fork");
  if (pid > 0) return could("fork");
  ::setsid();
  if (::fork() > 0) ::_exit(0);
  for (;;) {
    const int fd = ::open(a.at(0).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    (void)!::write(fd, "x", 1);
    ::close(fd);
    ::usleep(1000);
  }
}

/// hostile fill FOLDER: one file after the other, each of 1 MiB, up to 200.
int fill_disk(const Arguments& a) {
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < 200; ++i) {
    const int fd = ::open((a.at(0) + "/" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT, 0644);
    if (fd < 0) return refused(0, "open");
    if (::write(fd, block.data(), block.size()) < 0) return refused(1, "write");
    ::close(fd);
    ::usleep(2000);
  }
  return could("fill");
}

/// hostile file FILE: one file that grows.
int grow_file(const Arguments& a) {
  const std::string block(1 << 20, 'x');
  const int fd = ::open(a.at(0).c_str(), O_WRONLY | O_CREAT, 0644);
  if (fd < 0) return refused(0, "open");
  for (int i = 0; i < 200; ++i)
    if (::write(fd, block.data(), block.size()) < 0) return refused(1, "write");
  return could("grow");
}

/// hostile hide FOLDER: files that have no name any more; `-`: files in memory.
int hide_files(const Arguments& a) {
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < 50; ++i) {
    const std::string path = a.at(0) + "/" + std::to_string(i);
    const int fd = a[0] == "-" ? static_cast<int>(::syscall(__NR_memfd_create, "x", 0))
                               : ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
    if (fd < 0) return refused(0, "open");
    if (a[0] != "-" && ::unlink(path.c_str()) != 0) return refused(1, "unlink");
    for (int k = 0; k < 4; ++k)
      if (::write(fd, block.data(), block.size()) < 0) return refused(2, "write");
    ::usleep(5000);
  }
  return could("hide");
}

/// hostile many FOLDER: files without contents.
int make_many(const Arguments& a) {
  for (int i = 0; i < 5000; ++i) {
    const int fd = ::open((a.at(0) + "/" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT, 0644);
    if (fd < 0) return refused(0, "open");
    ::close(fd);
    ::usleep(50);
  }
  return could("make thousands of files");
}

/// hostile ptrace PID
int trace(const Arguments& a) {
  const auto pid = static_cast<pid_t>(number(a.at(0)));
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) return refused(0, "ptrace");
  return could("ptrace");
}

/// hostile peek PID: reads another's memory.
int peek(const Arguments& a) {
  char byte = 0;
  iovec here{&byte, 1}, there{reinterpret_cast<void*>(0x400000), 1};
  if (::process_vm_readv(static_cast<pid_t>(number(a.at(0))), &here, 1, &there, 1, 0) < 0 &&
      errno != EFAULT)
    return refused(0, "process_vm_readv");
  return could("process_vm_readv");
}

/// hostile kill VICTIM NAMESPACE: a signal to one process, then to all. The second one is sent only
/// in a namespace of process numbers that is not NAMESPACE, that of the test; else signal 0 asks
/// whether it would arrive, which harms nobody.
int kill_all(const Arguments& a) {
  const auto victim = static_cast<pid_t>(number(a.at(0)));
  if (victim > 1 && ::kill(victim, SIGKILL) == 0) return could("kill a process");
  if (::kill(::getppid(), 0) == 0 && ::getppid() > 1) return could("signal its parent");
  std::printf("kill: %s\n", std::strerror(errno));
  struct rlimit none{0, 0};
  if (::prlimit(victim, RLIMIT_CPU, &none, nullptr) == 0) return could("limit another");
  if (::fcntl(0, F_SETOWN, victim) == 0 && ::fcntl(0, F_GETOWN) == victim)
    return could("make another the owner of a file");
  char space[64] = {};
  const ssize_t size = ::readlink("/proc/self/ns/pid", space, sizeof space - 1);
  const bool own_numbers = size > 0 && std::string(space) != a.at(1) && ::getppid() == 1;
  if (!own_numbers) return ::kill(-1, 0) == 0 ? could("signal all") : refused(0, "kill -1");
  ::kill(-1, SIGKILL);
  return refused(0, "after kill -1");
}

/// hostile memory MIB
int take_memory(const Arguments& a) {
  for (long i = 0; i < number(a.at(0)); ++i) {
    void* block =
        ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return refused(0, "mmap");
    std::memset(block, 1, 1 << 20);
    ::usleep(200);
  }
  return could("memory");
}

/// hostile spin: an endless loop, with all signals blocked.
int spin(const Arguments&) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  for (;;) asm volatile("");
}

/// hostile forge FOLDER FILE: replies that are something else: a link to FILE, a pipe, a folder
/// behind a link, a large file without contents, FILE under a second name.
int forge(const Arguments& a) {
  const std::string& folder = a.at(0);
  const std::string outside = a.at(1).substr(0, a[1].rfind('/'));
  int made = 0;
  made += ::symlink(a[1].c_str(), (folder + "/link").c_str()) == 0;
  made += ::symlink(outside.c_str(), (folder + "/folder").c_str()) == 0;
  made += ::mkfifo((folder + "/pipe").c_str(), 0644) == 0;
  made += ::link(a[1].c_str(), (folder + "/second").c_str()) == 0;
  const int large = ::open((folder + "/large").c_str(), O_WRONLY | O_CREAT, 0644);
  made += ::ftruncate(large, 1 << 22) == 0;
  const int text = ::open((folder + "/result.json").c_str(), O_WRONLY | O_CREAT, 0644);
  constexpr char kText[] = "{\"ok\": true, \"run_ns\": [1e-300]}";
  made += ::write(text, kText, sizeof kText - 1) > 0;
  ::mkdir((folder + "/locked").c_str(), 0700);
  ::close(::open((folder + "/locked/x").c_str(), O_WRONLY | O_CREAT, 0));
  ::chmod((folder + "/locked").c_str(), 0);
  ::mkdir((folder + "/shut").c_str(), 0);
  std::printf("\x1b[2J\xff forged %d\n", made);
  return 0;
}

/// hostile proc PID: what the system tells of another process.
int look_at(const Arguments& a) {
  const std::string folder = "/proc/" + a.at(0);
  char text[4096];
  for (const char* file : {"/environ", "/mem", "/maps", "/cmdline", "/status"})
    if (::open((folder + file).c_str(), O_RDONLY) >= 0) return could(file);
  for (const char* link : {"/cwd", "/exe", "/root"})
    if (::readlink((folder + link).c_str(), text, sizeof text) >= 0) return could(link);
  if (::open((folder + "/root/etc/passwd").c_str(), O_RDONLY) >= 0) return could("root");
  if (::open((folder + "/fd").c_str(), O_RDONLY | O_DIRECTORY) >= 0) return could("fd");
  return refused(0, "proc");
}

/// hostile write FILE FOLDER: FILE is not its own, nor is FOLDER.
int write_outside(const Arguments& a) {
  const char* file = a.at(0).c_str();
  const std::string fresh = a.at(1) + "/new";
  if (::open(file, O_WRONLY) >= 0) return could("open");
  if (::open(file, O_RDONLY | O_TRUNC) >= 0) return could("empty");
  if (::truncate(file, 0) == 0) return could("truncate");
  if (::chmod(file, 0777) == 0) return could("chmod");
  if (::utimensat(AT_FDCWD, file, nullptr, 0) == 0) return could("utimensat");
  if (::unlink(file) == 0) return could("unlink");
  if (::rename(file, fresh.c_str()) == 0) return could("rename");
  if (::open(fresh.c_str(), O_WRONLY | O_CREAT, 0644) >= 0) return could("create");
  if (::mkdir(fresh.c_str(), 0755) == 0) return could("mkdir");
  if (::symlink("/", fresh.c_str()) == 0) return could("symlink");
  for (const char* place : {"/usr/x", "/x", "/dev/x", "/etc/x", "/lib64/x"})
    if (::open(place, O_WRONLY | O_CREAT, 0644) >= 0) return could(place);
  return refused(0, "write");
}

/// hostile call NUMBER FIRST: a system call by its number; the status is its errno.
int call(const Arguments& a) {
  errno = 0;
  const long result = ::syscall(number(a.at(0)), number(a.at(1)), 0, 0, 0, 0, 0);
  return result >= 0 ? 0 : errno;
}

/// hostile survive: gives away the signal that comes when its parent dies, then waits.
int survive(const Arguments&) {
  std::printf("%s\n", ::prctl(PR_SET_PDEATHSIG, 0) == 0 ? "it could" : "refused");
  std::fflush(stdout);
  for (;;) ::pause();
}

/// hostile decent: what programs need: threads, memory, its folder, numbers of its own.
int decent(const Arguments& a) {
  for (int fd = 3; fd < 64; ++fd)
    if (::fcntl(fd, F_GETFD) >= 0) return refused(6, "a descriptor that is not its own");
  int sum = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&sum, i] { __atomic_fetch_add(&sum, i, 5); });
  for (std::thread& thread : threads) thread.join();
  if (sum != 3) return refused(0, "threads");
  std::FILE* file = std::fopen("out", "w");  // in the folder where it starts
  if (file == nullptr || std::fputs("done", file) < 0 || std::fclose(file) != 0)
    return refused(1, "out");
  if (::mkdir("inner", 0700) != 0 || ::rename("out", "inner/out") != 0 ||
      ::rename("inner/out", (a.at(0) + "/renamed").c_str()) != 0)
    return refused(2, "rename");
  for (const char* known : {"/proc/cpuinfo", "/proc/meminfo"})
    if (::open(known, O_RDONLY) < 0) return refused(7, known);
  if (::open("/dev/null", O_WRONLY) < 0) return refused(3, "/dev/null");
  if (::open("/dev/urandom", O_RDONLY) < 0) return refused(4, "/dev/urandom");
  if (::kill(::getpid(), 0) != 0) return refused(5, "a signal to itself");
  for (char** variable = environ; *variable != nullptr; ++variable) std::printf("%s\n", *variable);
  return 0;
}

/// hostile ends HOW: by exit status, or by a signal.
int ends(const Arguments& a) {
  const long how = number(a.at(0));
  if (how < 128) return static_cast<int>(how);
  ::raise(static_cast<int>(how) - 128);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const struct {
    const char* name;
    int (*run)(const Arguments&);
  } commands[] = {{"connect", connect_to},  {"read", read_file},      {"fork", fork_bomb},
                  {"threads", thread_bomb}, {"daemon", leave_daemon}, {"fill", fill_disk},
                  {"file", grow_file},      {"hide", hide_files},     {"many", make_many},
                  {"ptrace", trace},        {"peek", peek},           {"kill", kill_all},
                  {"memory", take_memory},  {"spin", spin},           {"forge", forge},
                  {"proc", look_at},        {"write", write_outside}, {"call", call},
                  {"survive", survive},     {"decent", decent},       {"ends", ends}};
  for (const auto& command : commands) {
    if (std::strcmp(command.name, argv[1]) != 0) continue;
    const int status = command.run(Arguments(argv + 2, argv + argc));
    std::fflush(stdout);
    return status;
  }
  return 2;
}
