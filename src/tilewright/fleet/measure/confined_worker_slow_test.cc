#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tilewright/fleet/measure/confined_worker.h"

namespace tilewright::fleet {
namespace {

/// Others may need the processors just then. Killed, it would count as one that took all memory.
TEST(ConfinedWorkers, OneThatIsSlowToLeaveSaysHow) {
  for (const SandboxKind kind : {SandboxKind::None, best_sandbox().value_or(SandboxKind::None)}) {
    Confined confined;
    confined.starts_processes = true;  // the shell's `sleep`
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    auto worker = confined_workers(kind, std::move(confined))(
        {"/bin/sh", "-c", "exec 3>&- 4>&- 5>&-; sleep 2; exit 3"}, {nothing, nothing, nothing});
    ASSERT_TRUE(worker) << to_string(worker.error());
    const measure::Ending ending = (*worker)->end(true);
    EXPECT_EQ(ending.status, 3) << name(kind) << ending.log;
    EXPECT_EQ(ending.signal, 0);
    ::close(nothing);
  }
}

}  // namespace
}  // namespace tilewright::fleet
