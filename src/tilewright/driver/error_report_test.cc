#include "tilewright/driver/error_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::driver {
namespace {

Error problems() {
  Error first{ErrorKind::Unsupported,
              "there is no Scan",
              "net.onnx: node 'loop' (Scan)",
              "it loops",
              "unroll it",
              {}};
  first.others = {
      {ErrorKind::Invalid,
       "value 'a' is never defined",
       "node 'add' (Add) in function 'f' of node 'call' (f)",
       {},
       {},
       {}},
      {ErrorKind::Invalid, "the type is unknown", "weight 'w'", {}, {}, {}},
      {ErrorKind::Parse, "the data are cut", "node 'c' (Constant): attribute 'value'", {}, {}, {}}};
  return first;
}

TEST(ErrorReport, B1_EveryProblemIsARowWithOperatorNodePlaceReasonAndRemedy) {
  EXPECT_EQ("\n" + problems_table(problems(), "net.onnx", std::string::npos), R"(
operator  node  place                            reason                      remedy
-----------------------------------------------------------------------------------
Scan      loop  -                                there is no Scan: it loops  unroll it
Add       add   function 'f' of node 'call' (f)  value 'a' is never defined  -
-         -     weight 'w'                       the type is unknown         -
Constant  c     attribute 'value'                the data are cut            -
)");
}

TEST(ErrorReport, CellsAreBrokenAtSpaces) {
  EXPECT_EQ("\n" + problems_table(problems(), "net.onnx", 16), R"(
operator  node  place            reason            remedy
---------------------------------------------------------
Scan      loop  -                there is no       unroll it
                                 Scan: it loops
Add       add   function 'f' of  value 'a' is      -
                node 'call' (f)  never defined
-         -     weight 'w'       the type is       -
                                 unknown
Constant  c     attribute        the data are cut  -
                'value'
)");
}

TEST(ErrorReport, DocumentsNameTheNode) {
  const nlohmann::ordered_json json = error_json(problems());
  ASSERT_EQ(json["problems"].size(), 4u);
  EXPECT_EQ(json["problems"][0]["node"], "loop");
  EXPECT_EQ(json["problems"][1]["node"], "add");
  EXPECT_EQ(json["problems"][2]["node"], "");
}

}  // namespace
}  // namespace tilewright::driver
