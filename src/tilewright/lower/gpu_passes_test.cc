// Passes for GPUs one by one, by name: text before and after, and the same meaning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"
#include "tilewright/lower/testing/meaning.h"

namespace tilewright::lower {
namespace {

using ::testing::HasSubstr;

Func last_func(const std::string& text) {
  Result<std::vector<Func>> funcs = parse_funcs(text);
  if (!funcs) throw std::runtime_error(to_string(funcs.error()));
  return std::move(funcs->back());
}

/// The body of the last function of `text` after the pass, which is checked on the way.
std::string body_after(const std::string& pass, const std::string& text) {
  const Func before = last_func(text);
  const auto after = run_passes(before, {pass}, {.verify_each = true, .observer = {}});
  if (!after) return to_string(after.error());
  EXPECT_EQ(testing::changed_meaning(before, *after, pass, 3), "") << print(*after);
  return "\n" + print(after->body);
}

TEST(GpuPasses, KeepAsyncMarks) {
  const auto text = [](const std::string& mark) {
    return R"(func f(A: f32[8], out Y: f32[8]) {
  alloc S: f32[8] shared
  for a in 8 bind(thread.x) {
    block S(i: space 8 = a) )" +
           mark + R"({
      S[i] = A[i]
    }
  }
  for b in 8 bind(thread.x) {
    block Y(i: space 8 = b) {
      Y[i] = S[7 - i]
    }
  }
}
)";
  };
  EXPECT_EQ(body_after("keep_async_marks", text("@(async) ")), R"(
alloc S: f32[8] shared @(async)
for a in 8 bind(thread.x) {
  block S(i: space 8 = a) @(async) {
    S[i] = A[i]
  }
}
for b in 8 bind(thread.x) {
  block Y(i: space 8 = b) {
    Y[i] = S[7 - i]
  }
})");
  EXPECT_THAT(body_after("keep_async_marks", text("")), HasSubstr("alloc S: f32[8] shared\n"));
  EXPECT_THAT(body_after("keep_async_marks", text("@(async=bulk) ")),
              HasSubstr("alloc S: f32[8] shared @(async=bulk)\n"));
}

TEST(GpuPasses, Fragments) {
  EXPECT_EQ(body_after("fragments", print(hw::find_gpu_intrinsic("cuda.mma_bf16")->meaning) + R"(
func f(A: bf16[16,16], B: bf16[16,8], out Y: f32[16,8]) {
  alloc C: f32[16,8] warp
  alloc FA: bf16[16,16] warp
  alloc FB: bf16[16,8] warp
  for l in 32 bind(thread.x), r in 2, c in 2 {
    C[r * 8 + l / 4, l % 4 * 2 + c] = 0.0
  }
  for la in 32 bind(thread.x), ra in 2, ka in 2, ca in 2 {
    FA[ra * 8 + la / 4, ka * 8 + la % 4 * 2 + ca] = A[ra * 8 + la / 4, ka * 8 + la % 4 * 2 + ca]
  }
  for lb in 32 bind(thread.x), kb in 2, cb in 2 {
    FB[kb * 8 + lb % 4 * 2 + cb, lb / 4] = B[kb * 8 + lb % 4 * 2 + cb, lb / 4]
  }
  call cuda.mma_bf16(C[0:+16, 0:+8], FA[0:+16, 0:+16], FB[0:+16, 0:+8])
  for ly in 32 bind(thread.x), ry in 2, cy in 2 {
    Y[ry * 8 + ly / 4, ly % 4 * 2 + cy] = C[ry * 8 + ly / 4, ly % 4 * 2 + cy]
  }
}
)"),
            R"(
alloc C: f32[32,1,1,4] warp
alloc FA: bf16[32,1,1,8] warp
alloc FB: bf16[32,1,1,4] warp
for l in 32 bind(thread.x), r in 2, c in 2 {
  C[l, 0, 0, r * 2 + c] = 0.0
}
for la in 32 bind(thread.x), ra in 2, ka in 2, ca in 2 {
  FA[la, 0, 0, ka * 4 + ra * 2 + ca] = A[ra * 8 + la / 4, ka * 8 + la % 4 * 2 + ca]
}
for lb in 32 bind(thread.x), kb in 2, cb in 2 {
  FB[lb, 0, 0, kb * 2 + cb] = B[kb * 8 + lb % 4 * 2 + cb, lb / 4]
}
call cuda.mma_bf16.lanes(C[0:+32, 0:+1, 0:+1, 0:+4], FA[0:+32, 0:+1, 0:+1, 0:+8], FB[0:+32, 0:+1, 0:+1, 0:+4])
for ly in 32 bind(thread.x), ry in 2, cy in 2 {
  Y[ry * 8 + ly / 4, ly % 4 * 2 + cy] = C[ly, 0, 0, ry * 2 + cy]
})");
}

TEST(GpuPasses, Privatize) {
  EXPECT_EQ(body_after("privatize", R"(func f(A: f32[8], out Y: f32[8]) {
  alloc C: f32[8] local
  for a in 4 bind(thread.x), i in 2 {
    C[i * 4 + a] = A[i * 4 + a]
  }
  for b in 4 bind(thread.x), j in 2 {
    Y[j * 4 + b] = C[j * 4 + b] * 2.0
  }
}
)"),
            R"(
alloc C: f32[4,2] local
for a in 4 bind(thread.x), i in 2 {
  C[a, i] = A[i * 4 + a]
}
for b in 4 bind(thread.x), j in 2 {
  Y[j * 4 + b] = C[b, j] * 2.0
})");
  EXPECT_THAT(body_after("privatize", R"(func f(A: f32[4], out Y: f32[4]) {
  alloc C: f32[4] local
  for a in 4 bind(thread.x) {
    C[a] = A[a]
  }
  for b in 4 bind(thread.x) {
    Y[b] = C[3 - b]
  }
}
)"),
              HasSubstr("'C' would be shared by threads"));
}

TEST(GpuPasses, HoldCopies) {
  EXPECT_EQ(body_after("hold_copies", R"(func f(A: f32[16,8], out Y: f32[8]) {
  alloc S: f32[2,8] shared @(async=1)
  for p in 8 bind(thread.x) {
    S[0, p] = A[0, p] + 1.0
  }
  for t in 16 @(pipeline=2) {
    if t < 15 {
      for c in 8 bind(thread.x) {
        S[(t + 1) % 2, c] = A[t + 1, c] + 1.0
      }
    }
    for i in 8 bind(thread.x) {
      Y[i] = S[t % 2, 7 - i]
    }
  }
}
)"),
            R"(
alloc S: f32[2,8] shared
for p in 8 bind(thread.x) {
  S[0, p] = A[0, p] + 1.0
}
for t in 16 @(pipeline=2) {
  alloc S.held: f32[8] local
  if t < 15 {
    for c in 8 bind(thread.x) {
      S.held[c] = A[t + 1, c] + 1.0
    }
  }
  for i in 8 bind(thread.x) {
    Y[i] = S[t % 2, 7 - i]
  }
  if t < 15 {
    for c.late in 8 bind(thread.x) {
      S[(t + 1) % 2, c.late] = S.held[c.late]
    }
  }
})");
}

TEST(GpuPasses, InsertSyncs) {
  EXPECT_EQ(body_after("insert_syncs", R"(func f(A: f32[4,8], out Y: f32[4,8]) {
  alloc S: f32[8] shared
  for t in 4 {
    for a in 8 bind(thread.x) {
      S[a] = A[t, a]
    }
    for b in 8 bind(thread.x) {
      Y[t, b] = S[7 - b]
    }
  }
}
)"),
            R"(
alloc S: f32[8] shared
for t in 4 {
  call sync.block()
  for a in 8 bind(thread.x) {
    S[a] = A[t, a]
  }
  call sync.block()
  for b in 8 bind(thread.x) {
    Y[t, b] = S[7 - b]
  }
})");
}

TEST(GpuPasses, InsertWaits) {
  EXPECT_EQ(body_after("insert_waits", R"(
func sync.block() {
}

func f(A: f32[16,8], out Y: f32[8]) {
  alloc S: f32[3,8] shared @(async=1)
  for p in 2 @(pipeline=3) {
    for a in 8 bind(thread.x) {
      S[p, a] = A[p, a]
    }
  }
  for t in 16 @(pipeline=3) {
    call sync.block()
    if t < 14 {
      for c in 8 bind(thread.x) {
        S[(t + 2) % 3, c] = A[t + 2, c]
      }
    }
    for i in 8 bind(thread.x) {
      Y[i] = S[t % 3, 7 - i]
    }
  }
}
)"),
            R"(
alloc S: f32[3,8] shared @(async)
for p in 2 @(pipeline=3) {
  for a in 8 bind(thread.x) {
    S[p, a] = A[p, a]
  }
  call sync.commit()
}
for t in 16 @(pipeline=3) {
  call sync.wait(1)
  call sync.block()
  if t < 14 {
    for c in 8 bind(thread.x) {
      S[(t + 2) % 3, c] = A[t + 2, c]
    }
  }
  call sync.commit()
  for i in 8 bind(thread.x) {
    Y[i] = S[t % 3, 7 - i]
  }
})");
}

TEST(GpuPasses, NeedProgramsWithoutBlocks) {
  const std::string text = R"(func f(A: f32[8], out Y: f32[8]) {
  for a in 8 bind(thread.x) {
    block Y(i: space 8 = a) {
      Y[i] = A[i]
    }
  }
}
)";
  for (const char* pass :
       {"fragments", "privatize", "hold_copies", "insert_syncs", "insert_waits"}) {
    const std::string said = body_after(pass, text);
    EXPECT_THAT(said, HasSubstr("needs a program without blocks")) << pass;
    EXPECT_THAT(said, HasSubstr("there is block 'Y'")) << pass;
  }
}

}  // namespace
}  // namespace tilewright::lower
