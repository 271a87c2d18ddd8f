#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tilewright/accel/fpga/testing/matmul_design.h"

namespace tilewright::fpga {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Each change makes the product illegal, and the checker names it.
struct Illegal {
  const char* name;
  std::function<void(Design&)> change;
  const char* says;
};

Nest& nest_of(Design& design, size_t process) {
  for (Item& item : design.processes[process].items)
    if (auto* nest = std::get_if<Nest>(&item)) return *nest;
  std::abort();
}
std::vector<Item>& items_of(Design& design, size_t process) {
  return design.processes[process].items;
}
template <class T>
void erase_first(std::vector<Item>& items) {
  items.erase(std::find_if(items.begin(), items.end(),
                           [](const Item& item) { return std::holds_alternative<T>(item); }));
}

class FpgaChecker : public ::testing::TestWithParam<Illegal> {};

TEST_P(FpgaChecker, Refuses) {
  Design design = testing::design_of({});
  ASSERT_THAT(problems(design), IsEmpty());
  GetParam().change(design);
  EXPECT_THAT(problems(design), Contains(HasSubstr(GetParam().says)));
  EXPECT_FALSE(check_legal(design));
}

INSTANTIATE_TEST_SUITE_P(
    All, FpgaChecker,
    ::testing::Values(
        Illegal{"Beat", [](Design& d) { d.bus.beat_bytes = 12; }, "beats of 12 bytes"},
        Illegal{"Burst", [](Design& d) { d.bus.burst_beats = 300; }, "AXI4 has 1 to 256"},
        Illegal{"Banks", [](Design& d) { d.memories[0].banks = 5000; }, "A has 5000 banks"},
        Illegal{"Words", [](Design& d) { d.memories[0].words = 0; }, "A has no words"},
        Illegal{"Latency", [](Design& d) { d.memories[1].read_latency = 3; }, "read in 3 cycles"},
        Illegal{"Argument", [](Design& d) { d.ports[0].argument = 3; }, "port A has no argument"},
        Illegal{"NoRelease", [](Design& d) { erase_first<Release>(items_of(d, 0)); },
                "read_A keeps a block"},
        Illegal{"NoAcquire", [](Design& d) { erase_first<Acquire>(items_of(d, 0)); },
                "releases a block that it has not"},
        Illegal{"NoBlock", [](Design& d) { erase_first<Acquire>(items_of(d, 0)); },
                "read_A.A uses A without a block of it"},
        Illegal{"OpenLoop", [](Design& d) { erase_first<LoopEnd>(items_of(d, 0)); },
                "read_A leaves a loop open"},
        Illegal{"Counter", [](Design& d) { nest_of(d, 2).extents[0] = 0; }, "an empty counter"},
        Illegal{"Interval", [](Design& d) { nest_of(d, 2).ii = 0; }, "no initiation interval"},
        Illegal{"Bank", [](Design& d) { nest_of(d, 0).stores[0].place.bank.constant = 9; },
                "read_A.A uses bank 9 of A"},
        Illegal{"StoredTwice", [](Design& d) { nest_of(d, 0).stores[1].place.bank.constant = 0; },
                "read_A.A stores to one bank twice"},
        Illegal{"StoresNothing", [](Design& d) { nest_of(d, 0).stores[0].node = 7; },
                "stores a value that is not there"},
        Illegal{"Behind", [](Design& d) { nest_of(d, 2).nodes.back().inputs[0] = 99; },
                "inputs behind it"},
        Illegal{"Port", [](Design& d) { nest_of(d, 0).stream.port = 9; }, "a port that is not"},
        Illegal{"Gaps", [](Design& d) { nest_of(d, 0).stream.address.counters.back() = 8; },
                "moves rows with gaps"},
        Illegal{"Lanes", [](Design& d) { nest_of(d, 3).stream.nodes.pop_back(); },
                "not a value for each lane"},
        Illegal{"TwoReaders", [](Design& d) { d.processes.push_back(d.processes[3]); },
                "channel C is not filled by one process and emptied by another"},
        Illegal{"SharedMemory", [](Design& d) { d.memories[2].slots = 0; },
                "C is no channel, but 2 processes use it"}),
    [](const auto& illegal) { return illegal.param.name; });

TEST(FpgaDesign, AllProblemsAreSaidAtOnce) {
  Design design = testing::design_of({});
  design.memories[0].words = 0;
  design.bus.burst_beats = 0;
  EXPECT_THAT(problems(design), ElementsAre(HasSubstr("bursts of 0"), HasSubstr("no words")));
  EXPECT_THAT(to_string(check_legal(design).error()),
              ::testing::AllOf(HasSubstr("bursts of 0"), HasSubstr("no words")));
}

TEST(FpgaDesign, TextSaysWhatIsInIt) {
  const std::string text = to_text(testing::design_of({}));
  for (const char* part :
       {"design matmul: 3 arguments", "memory C: i32[2 banks x 8 words] slots 2 accumulated",
        "port C: writes argument 2", "process multiply:", "acquire B", "release C"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(FpgaDesign, SumsWaitForTheAdditionAlone) {
  // Read 2, add 1, write 1: docs/fpga-timing.md 2.
  Design design = testing::design_of({});
  const Nest& nest = nest_of(design, 2);
  EXPECT_EQ(recurrence(nest, times_of(design, nest), 2), 4);
}

}  // namespace
}  // namespace tilewright::fpga
