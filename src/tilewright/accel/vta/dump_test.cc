#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tilewright/accel/vta/replay.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/testing/hand_program.h"
#include "tilewright/accel/vta/testing/random_program.h"
#include "tilewright/base/file.h"

namespace tilewright::vta {
namespace {

using namespace testing;  // NOLINT: the helpers of this layer
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

template <class T>
std::string message(const T& result) {
  return result ? "" : to_string(result.error());
}

class DumpTest : public ::testing::Test {
 protected:
  DumpTest() {
    folder_ = fs::temp_directory_path() / ("vta_dump_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~DumpTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "dump") const { return (folder_ / name).string(); }
  std::string file(const std::string& name) const { return *read_file(path("dump/" + name)); }
  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(path("dump/" + name), std::ios::binary) << bytes;
  }
  Json manifest() const { return Json::parse(file("manifest.json")); }

  /// The hand program's dump with a changed manifest.
  std::string edited(const std::function<void(Json&)>& edit) {
    if (!fs::exists(path())) {
      EXPECT_TRUE(write_dump(path(), hand_program()));
      original_ = manifest();
    }
    Json json = original_;
    edit(json);
    put("manifest.json", json.dump());
    return message(read_dump(path()));
  }

  fs::path folder_;
  Json original_;
};

TEST_F(DumpTest, FollowsTheFormat) {
  Program program = hand_program();
  program.runs.push_back(program.runs[0]);
  program.runs[1].patches = {{5000, "abc"}, {6000, "de"}};
  const std::string final(program.image.size(), 'f');
  ASSERT_TRUE(write_dump(path(), program, final));
  const Json json = manifest();
  EXPECT_EQ(json["format"], "vta-program-dump");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["producer"], "hand");
  EXPECT_EQ(json["config"], Json::parse(R"({"LOG_INP_WIDTH": 3, "LOG_WGT_WIDTH": 3,
      "LOG_ACC_WIDTH": 5, "LOG_OUT_WIDTH": 3, "LOG_BATCH": 0, "LOG_UOP_BUFF_SIZE": 15,
      "LOG_INP_BUFF_SIZE": 15, "LOG_WGT_BUFF_SIZE": 18, "LOG_ACC_BUFF_SIZE": 17, "LOG_BLOCK": 4})"));
  EXPECT_EQ(json["dram"], Json::parse(R"({"file": "dram.bin", "base": 4096, "size": 28672})"));
  EXPECT_EQ(json["runs"][0]["insns"],
            Json::parse(R"({"file": "insns.bin", "offset": 0, "count": 8})"));
  EXPECT_EQ(json["runs"][1]["insns"]["offset"], 8 * 16);
  EXPECT_EQ(json["runs"][1]["patches"][1],
            Json::parse(R"({"addr": 6000, "file": "patches.bin", "offset": 3, "bytes": 2})"));
  EXPECT_EQ(json["outputs"], Json::parse(R"([{"name": "y", "addr": 16384, "bytes": 64}])"));
  EXPECT_EQ(json["final"]["file"], "final.bin");
  EXPECT_EQ(json["info"]["shape"], Json::parse("[4, 16]"));
  EXPECT_EQ(file("dram.bin"), program.image);
  EXPECT_EQ(file("final.bin"), final);
  EXPECT_EQ(file("patches.bin"), "abcde");
  // The second instruction: LOAD INP 0 from element 256, four, push_next.
  EXPECT_EQ(file("insns.bin").substr(16, 16),
            std::string("\x40\x01\x00\x00\x04\x00\x00\x00\x01\x00\x04\x00\x04\x00\x00\x00", 16));
}

TEST_F(DumpTest, RoundTrips) {
  Rng rng(1);
  for (int i = 0; i < 12; ++i) {
    const Config config =
        random_config(rng, {.max_log_block = 2, .extensions = true, .features = true});
    Program program = random_program(rng, config, {.insns = 8, .runs = 1 + i % 2});
    program.info = i % 2 ? "" : R"({"a":[1,2,{"b":null}]})";
    ASSERT_TRUE(write_dump(path(), program, program.image)) << i;  // replaces the one before
    const Result<Dump> dump = read_dump(path());
    ASSERT_TRUE(dump) << message(dump);
    Program back = dump->program;
    EXPECT_EQ(back.config, config);
    EXPECT_EQ(dump->final_image, program.image);
    EXPECT_EQ(dump->after_run, std::vector<int>{i % 2});
    EXPECT_TRUE(dump->expected.empty());
    Json info = Json::parse(back.info);
    EXPECT_EQ(info.erase("stats"), 1u);
    EXPECT_EQ(info.empty() ? "" : info.dump(), program.info);
    back.info = program.info;
    EXPECT_EQ(serialise(back), serialise(program));
  }
}

TEST_F(DumpTest, KeepsTiming) {
  Config config;
  config.name = "mine";
  config.timing.bus_bytes = 64, config.timing.read_latency = 200;
  config.timing.preset = "custom";
  ASSERT_TRUE(write_dump(path(), hand_program(config)));
  Result<Dump> dump = read_dump(path());
  ASSERT_TRUE(dump) << message(dump);
  EXPECT_EQ(dump->program.config, config);
  // The sizes are those of `config`: another reader knows no others.
  Json json = manifest();
  json["config"]["LOG_ACC_BUFF_SIZE"] = 16;
  put("manifest.json", json.dump());
  EXPECT_THAT(message(read_dump(path())), HasSubstr("`hw` is vta_1x16_i8w8a32_15_15_18_17"));
  json = manifest();
  json["tilewright"]["hw"] = "log_batch = x";
  put("manifest.json", json.dump());
  EXPECT_THAT(message(read_dump(path())), HasSubstr("tilewright: hw"));
}

TEST_F(DumpTest, SaysWhatItMovesAndComputes) {
  ASSERT_TRUE(write_dump(path(), hand_program()));
  EXPECT_EQ(manifest()["info"]["stats"], Json::parse(R"({"inp_load_nbytes": 64,
      "wgt_load_nbytes": 256, "acc_load_nbytes": 0, "uop_load_nbytes": 32, "out_store_nbytes": 64,
      "gemm_counter": 4, "alu_counter": 4})"));
}

TEST_F(DumpTest, ReplayFindsTheFirstByteThatDiffers) {
  Dump dump;
  dump.program = hand_program();
  const auto run = [&]() -> Result<Replay> {
    const auto device = make_fsim(dump.program.config, dump.program.end());
    return replay(*device, dump);
  };
  auto replayed = run();
  ASSERT_TRUE(replayed) << message(replayed);
  EXPECT_EQ(replayed->compared, 0u);
  // What the device leaves behind is what it is then compared with.
  const auto device = make_fsim(dump.program.config, dump.program.end());
  ASSERT_TRUE(execute(*device, dump.program));
  dump.final_image.resize(dump.program.image.size());
  ASSERT_TRUE(device->read(dump.program.base, dump.final_image.data(), dump.final_image.size()));
  const size_t y = 16384 - 4096;
  dump.expected = {dump.final_image.substr(y, 64)};
  dump.after_run = {0};
  replayed = run();
  ASSERT_TRUE(replayed);
  EXPECT_EQ(replayed->compared, dump.program.image.size() + 64);
  EXPECT_FALSE(replayed->mismatch);
  dump.final_image[y + 17] ^= 1, dump.final_image[y + 20] ^= 1;
  replayed = run();
  ASSERT_TRUE(replayed && replayed->mismatch);
  EXPECT_EQ(replayed->mismatch->where, "y");
  EXPECT_EQ(replayed->mismatch->first, 17u);
  EXPECT_EQ(replayed->mismatch->count, 2u);
  EXPECT_EQ(replayed->mismatch->actual, replayed->mismatch->expected ^ 1);
  dump.expected[0][3] ^= 2;
  EXPECT_EQ(run()->mismatch->first, 3u) << "outputs come before the whole image";
  dump.expected.clear();
  dump.final_image[5] ^= 4;
  EXPECT_EQ(run()->mismatch->where, "DRAM from address 4096");
}

TEST_F(DumpTest, OfTheExtendedDesignIsNotVersion1) {
  Config config = *load_config("vta-extended");
  ASSERT_TRUE(write_dump(path(), hand_program(config)));
  EXPECT_EQ(manifest()["version"], 2);
  EXPECT_EQ(manifest()["config"]["PIPELINE"], 4);
  EXPECT_EQ(manifest()["config"]["FUSED_RESET"], 1);
  EXPECT_TRUE(read_dump(path()));
  Json json = manifest();
  json["version"] = 1;
  put("manifest.json", json.dump());
  EXPECT_THAT(message(read_dump(path())), HasSubstr("version 1 has neither"));
  config = {};
  config.extensions.pipelined_alu = true;  // time only
  ASSERT_TRUE(write_dump(path(), hand_program(config)));
  EXPECT_EQ(manifest()["version"], 1);
}

TEST_F(DumpTest, InstructionsInsideTheImageFollowPatches) {
  ASSERT_TRUE(write_dump(path(), hand_program()));
  const std::string insns = file("insns.bin");
  std::string image = file("dram.bin");
  const uint64_t at = 24576;
  image.replace(at - 4096, insns.size(), insns);
  put("dram.bin", image);
  Json json = manifest();
  json["runs"][0]["insns"] = {{"addr", at}, {"count", 8}};
  // The second run's stream comes with a patch: FINISH alone.
  put("p.bin", std::string("xx\x03", 3) + std::string(15, '\0'));
  json["runs"].push_back({{"insns", {{"addr", at}, {"count", 1}}},
                          {"patches", {{{"addr", at}, {"file", "p.bin"}, {"offset", 2}}}}});
  json["outputs"][0]["after_run"] = 0;
  put("y.bin", "..." + std::string(64, 'y'));
  json["outputs"][0]["expected"] = "y.bin";
  json["outputs"][0]["offset"] = 3;
  put("manifest.json", json.dump());
  const Result<Dump> dump = read_dump(path());
  ASSERT_TRUE(dump) << message(dump);
  EXPECT_EQ(dump->program.runs[0].insns, hand_program().runs[0].insns);
  EXPECT_EQ(dump->program.runs[1].insns, (std::vector<Insn>{{{}, Finish{}}}));
  EXPECT_EQ(dump->program.runs[1].patches[0].data.size(), 16u);
  EXPECT_EQ(dump->after_run, std::vector<int>{0});
  EXPECT_EQ(dump->expected, std::vector<std::string>{std::string(64, 'y')});
  json["runs"][0]["insns"]["addr"] = at + 8;
  put("manifest.json", json.dump());
  EXPECT_THAT(message(read_dump(path())), HasSubstr("multiple of 16"));
}

TEST_F(DumpTest, EachViolatedRuleIsNamed) {
  const auto expect = [&](const std::function<void(Json&)>& edit, const std::string& text) {
    EXPECT_THAT(edited(edit), HasSubstr(text));
  };
  EXPECT_EQ(edited([](Json&) {}), "");
  expect([](Json& j) { j["format"] = "x"; }, "not 'vta-program-dump'");
  expect([](Json& j) { j.erase("format"); }, "`format` is missing");
  expect([](Json& j) { j["version"] = 3; }, "version 3");
  expect([](Json& j) { j["version"] = "1"; }, "`version` must be a number");
  expect([](Json& j) { j.erase("config"); }, "`config` is missing");
  expect([](Json& j) { j["config"] = 3; }, "`config` must be an object");
  expect([](Json& j) { j["config"].erase("LOG_BATCH"); }, "`LOG_BATCH` is missing");
  expect([](Json& j) { j["config"]["LOG_WGT_BUFF_SIZE"] = 19; }, "overflows");
  expect([](Json& j) { j["dram"]["base"] = 0; }, "base 0");
  expect([](Json& j) { j["dram"]["base"] = 4100; }, "base 4100");
  expect([](Json& j) { j["dram"]["base"] = 0xfffff000u; }, "4 GiB");
  expect([](Json& j) { j["dram"]["base"] = -4096; }, "not negative");
  expect([](Json& j) { j["dram"]["size"] = 1; }, "the file has 28672 bytes");
  expect([](Json& j) { j["dram"].erase("file"); }, "`file` is missing");
  expect([](Json& j) { j["dram"]["file"] = "none.bin"; }, "none.bin");
  expect([](Json& j) { j["runs"] = Json::array(); }, "at least one run");
  expect([](Json& j) { j["runs"] = 7; }, "`runs` must be an array");
  expect([](Json& j) { j["runs"][0].erase("insns"); }, "`insns` is missing");
  expect([](Json& j) { j["runs"][0]["insns"]["count"] = 9; }, "9 instructions from byte 0");
  expect([](Json& j) { j["runs"][0]["insns"]["offset"] = 1; }, "8 instructions from byte 1");
  expect([](Json& j) { j["runs"][0]["insns"]["offset"] = 1 << 20; }, "go beyond 128 bytes");
  expect([](Json& j) { j["runs"][0]["insns"]["count"] = uint64_t{1} << 60; }, "go beyond");
  expect([](Json& j) { j["runs"][0]["insns"]["addr"] = 4096; }, "either `addr` or `file`");
  expect([](Json& j) { j["runs"][0]["insns"] = {{"addr", 4096 + 1280}, {"count", 4}}; },
         "opcode 5");
  expect([](Json& j) { j["runs"][0]["insns"] = {{"addr", 16}, {"count", 4}}; }, "inside the image");
  const auto patch = [](Json fields) {
    return [fields](Json& j) { j["runs"][0]["patches"] = Json::array({fields}); };
  };
  expect(patch({{"addr", 4096}}), "`file` is missing");
  expect(patch({{"file", "insns.bin"}}), "`addr` is missing");
  expect(patch({{"addr", 4095}, {"file", "insns.bin"}}), "not inside the image");
  expect(patch({{"addr", 4096 + 28672 - 127}, {"file", "insns.bin"}}), "not inside the image");
  expect(patch({{"addr", 4096}, {"file", "insns.bin"}, {"offset", 129}}), "offset 129");
  expect(patch({{"addr", 4096}, {"file", "insns.bin"}, {"offset", 100}, {"bytes", 29}}),
         "29 bytes from offset 100");
  expect([](Json& j) { j.erase("outputs"); }, "`outputs` is missing");
  expect([](Json& j) { j["outputs"][0]["addr"] = 32768; }, "not inside the image");
  expect([](Json& j) { j["outputs"][0].erase("name"); }, "dump: output 0");
  expect([](Json& j) { j["outputs"][0].update({{"after_run", 1}}); }, "there are 1 runs");
  expect([](Json& j) { j["outputs"].push_back(j["outputs"][0]); }, "two outputs");
  expect(
      [](Json& j) {
        j["outputs"][0]["expected"] = "insns.bin";
        j["outputs"][0]["offset"] = 65;
      },
      "64 bytes from offset 65");
  expect([](Json& j) { j["final"]["file"] = "insns.bin"; }, "has 128 bytes, but the image 28672");
  expect([](Json& j) { j["info"] = 3; }, "`info` must be an object");
}

TEST_F(DumpTest, FileNames) {
  const auto expect = [&](const std::string& name, const std::string& text) {
    EXPECT_THAT(edited([&](Json& j) { j["dram"]["file"] = name; }), HasSubstr(text));
  };
  expect("a b.bin", "spaces");
  expect("a\nb", "control");
  expect("", "empty");
  expect("../dump/dram.bin", "leads out");
  expect("sub/../dram.bin", "leads out");
  expect(path("dump/dram.bin"), "not relative");
  expect("/dev/zero", "not relative");
  EXPECT_EQ(edited([&](Json& j) {
              fs::create_directories(path("dump/sub"));
              fs::copy_file(path("dump/dram.bin"), path("dump/sub/dram.bin"));
              j["dram"]["file"] = "sub/dram.bin";
            }),
            "");
  EXPECT_THAT(edited([&](Json& j) {
                fs::create_symlink(path("dump/dram.bin"), path("dump/link.bin"));
                j["dram"]["file"] = "link.bin";
              }),
              HasSubstr("link"));
  EXPECT_THAT(edited([&](Json& j) {
                fs::create_directory_symlink(path("dump"), path("dump/here"));
                j["dram"]["file"] = "here/dram.bin";
              }),
              HasSubstr("link"));
  expect(".", "dump");
}

TEST_F(DumpTest, AllProblemsAtOnce) {
  ASSERT_TRUE(write_dump(path(), hand_program()));
  Json json = manifest();
  json["version"] = 9;
  json["dram"]["size"] = 1;
  json["runs"][0]["insns"]["count"] = 100;
  json["outputs"][0].erase("addr");
  put("manifest.json", json.dump());
  const Result<Dump> dump = read_dump(path());
  ASSERT_FALSE(dump);
  EXPECT_EQ(dump.error().others.size(), 3u) << message(dump);
  EXPECT_THAT(dump.error().place, HasSubstr("dump"));
}

TEST_F(DumpTest, NothingIsOverwrittenOrLeftBehind) {
  const Program program = hand_program();
  fs::create_directories(path());
  put("precious.txt", "data");
  const Status status = write_dump(path(), program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Io);
  EXPECT_EQ(file("precious.txt"), "data");
  ASSERT_TRUE(write_file(path("file"), "data"));
  EXPECT_FALSE(write_dump(path("file"), program));
  EXPECT_FALSE(write_dump(path("file/dump"), program));
  Program bad = program;
  bad.outputs[0].bytes = 1 << 30;
  EXPECT_EQ(write_dump(path("bad"), bad).error().kind, ErrorKind::Invalid);
  EXPECT_FALSE(write_dump(path("bad"), program, "short"));
  bad = program;
  bad.info = "[1]";
  EXPECT_FALSE(write_dump(path("bad"), bad));
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++entries;
  EXPECT_EQ(entries, 2u);
  EXPECT_TRUE(write_dump(path("new/deep/"), program));
  EXPECT_TRUE(read_dump(path("new/deep")));
  EXPECT_EQ(read_dump(path("none")).error().kind, ErrorKind::Io);
}

TEST_F(DumpTest, MutatedManifestsNeverCrash) {
  Program program = hand_program();
  program.runs[0].patches = {{5000, "abc"}};
  ASSERT_TRUE(write_dump(path(), program, program.image));
  const std::string manifest = file("manifest.json");
  Rng rng(3);
  int read = 0;
  for (int i = 0; i < 200; ++i) {
    std::string bad = manifest;
    for (int64_t edits = rng.between(1, 3); edits > 0; --edits) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(bad.size())));
      switch (rng.below(3)) {
        case 0:
          bad[at] = static_cast<char>(rng.below(256));
          break;
        case 1:
          bad.insert(at, 1, "[]{}\",:-0123456789"[rng.below(18)]);
          break;
        default:
          bad.erase(at, static_cast<size_t>(rng.below(12)));
      }
    }
    put("manifest.json", bad);
    const Result<Dump> dump = read_dump(path());
    EXPECT_EQ(message(dump).empty(), dump.has_value());
    read += dump.has_value();
  }
  EXPECT_GT(read, 0);
  put("manifest.json", "{\"info\":" + std::string(100'000, '[') + "}");
  EXPECT_FALSE(read_dump(path()));
  put("manifest.json", "{\"info\":" + std::string(50'000, '[') + std::string(50'000, ']') + "}");
  EXPECT_THAT(message(read_dump(path())), HasSubstr("nested deeper"));
}

TEST_F(DumpTest, GarbledBinariesNeverCrash) {
  ASSERT_TRUE(write_dump(path(), hand_program()));
  const std::string insns = file("insns.bin");
  Rng rng(4);
  for (int i = 0; i < 100; ++i) {
    std::string bad = insns;
    for (int edits = 0; edits < 3; ++edits)
      bad[static_cast<size_t>(rng.below(128))] = static_cast<char>(rng.below(256));
    put("insns.bin", bad);
    const Result<Dump> dump = read_dump(path());
    EXPECT_TRUE(!dump || validate(dump->program));
  }
}

}  // namespace
}  // namespace tilewright::vta
