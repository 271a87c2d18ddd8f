// Code of a test in a process of its own: as another user, or where it may end or break itself.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace tilewright::fleet {

inline constexpr uid_t kNobody = 65534;

/// Runs `body` in a process of its own, as an ordinary user if so; gives the text that it returns.
inline std::string in_process(bool ordinary, const std::function<std::string()>& body) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    if (ordinary && (::setresgid(kNobody, kNobody, kNobody) != 0 ||
                     ::setresuid(kNobody, kNobody, kNobody) != 0))
      ::_exit(1);
    ::prctl(PR_SET_DUMPABLE, 1);  // as if that user had started it
    const std::string text = body();
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char chunk[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], chunk, sizeof chunk)) > 0;)
    text.append(chunk, static_cast<size_t>(got));
  ::close(ends[0]);
  ::waitpid(pid, nullptr, 0);
  return text;
}

}  // namespace tilewright::fleet
