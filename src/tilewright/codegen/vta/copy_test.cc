#include <gtest/gtest.h>

#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/base/rng.h"
#include "tilewright/codegen/vta/vta.h"

namespace tilewright::codegen {
namespace {

TEST(EmitVtaCopy, MovesBytesOfAnyCount) {
  for (const uint64_t elements : {1, 2, 5, 2048, 5000}) {
    const vta::Config config;
    vta::Builder builder(config);
    const uint64_t bytes = elements * 16;
    const auto from = builder.allocate("from", bytes), to = builder.allocate("to", bytes);
    ASSERT_TRUE(from && to);
    std::string data(bytes, '\0');
    Rng rng(elements);
    for (char& c : data) c = static_cast<char>(rng.below(256));
    builder.write(*from, data);
    ASSERT_TRUE(emit_vta_copy(*from, *to, bytes, builder));
    const auto program = builder.finish();
    ASSERT_TRUE(program) << to_string(program.error());
    EXPECT_TRUE(vta::check_program(*program).empty());
    const auto device = vta::make_fsim(config, program->end());
    ASSERT_TRUE(vta::execute(*device, *program));
    std::string copied(bytes, 'x');
    ASSERT_TRUE(device->read(*to, copied.data(), bytes));
    EXPECT_EQ(copied, data) << elements;
  }
}

TEST(EmitVtaCopy, RefusesElementsOfDifferentSizes) {
  vta::Config config;
  config.log_block_out = 3;
  vta::Builder builder(config);
  EXPECT_FALSE(emit_vta_copy(4096, 8192, 64, builder));
}

}  // namespace
}  // namespace tilewright::codegen
