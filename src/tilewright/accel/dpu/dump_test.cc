#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tilewright/accel/dpu/check.h"
#include "tilewright/accel/dpu/sim/testing/run_device.h"
#include "tilewright/accel/dpu/testing/random_program.h"
#include "tilewright/base/file.h"

namespace tilewright::dpu {
namespace {

namespace fs = std::filesystem;

class Dumps : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) /
            ("dpu_dump_" + std::to_string(::getpid()) + "_" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string folder() const { return (root_ / "dump").string(); }
  std::string text(const std::string& name) const {
    return read_file((fs::path(folder()) / name).string()).value();
  }

  fs::path root_;
};

/// Two runs: random instructions, and a copy of their first results with a patch before it; the
/// input goes through the format unit.
Program dumped_example() {
  Rng rng(5);
  Config config = testing::small_config(rng);
  config.name = "small \"one\"";
  Program program = testing::empty_program(config, rng);
  program = testing::program_of(std::move(program), testing::RandomOps(config, rng).make(30),
                                testing::Scheme::Addresses);
  program.regions[4] = {"format", program.end(), 4096};
  for (int i = 0; i < 4096; ++i) program.image += static_cast<char>(rng.next());
  FormatJob job;
  job.channels = 3;
  job.height = 5;
  job.width = 6;
  job.kernel_w = 3;
  program.formats = {job};
  program.runs.push_back(
      {{{program.regions[2].address + 7, "patch"}},
       parse_asm("LOAD dpby=S jump_read=16 jump_write=1 length=3 channel=16 reg_id=0\n"
                 "SAVE dpon=L jump_read=1 jump_write=16 length=3 channel=16 reg_id=1\nEND",
                 "")
           .value(),
       {{"copy", 0, 2}}});
  DdrTensor tensor{"y", Reg::Output, 0, 16, 1, 3, 4};
  program.output_tensors = {tensor};
  program.outputs = {{"y", program.regions[1].address, bytes_of(config, tensor)}};
  program.producer = "test";
  program.info = R"({"layer":"x"})";
  return program;
}

TEST_F(Dumps, RunAsTheProgramDoes) {
  const Program program = dumped_example();
  const auto device = make_tsim(program.config, program.end());
  DumpResults results;
  ASSERT_TRUE(load(*device, program) && run_format_unit(*device, program));
  for (const dpu::Run& run : program.runs) {
    for (const Patch& patch : run.patches) ASSERT_TRUE(device->write(patch.address, patch.data));
    const Result<LaunchReport> report = device->launch(run.insns, {.record_times = true});
    ASSERT_TRUE(report) << to_string(report.error());
    results.times.push_back(report->times);
  }
  results.final_image.resize(program.image.size());
  ASSERT_TRUE(device->read(program.base, results.final_image.data(), program.image.size()));
  const Status written = write_dump(folder(), program, results);
  ASSERT_TRUE(written) << to_string(written.error());

  const Result<Dump> dump = read_dump(folder());
  ASSERT_TRUE(dump) << to_string(dump.error());
  EXPECT_TRUE(same_hardware(dump->program.config, program.config));
  EXPECT_EQ(dump->program.config.name, program.config.name);
  EXPECT_EQ(dump->program.producer, "test");
  EXPECT_TRUE(dump->program.formats.empty()) << "its work is done";
  ASSERT_EQ(dump->program.runs.size(), 2u);
  EXPECT_TRUE(dump->program.runs[0].insns == program.runs[0].insns);
  EXPECT_EQ(dump->program.runs[1].spans[0].name, "copy");
  EXPECT_EQ(dump->program.output_tensors[0].fix_point, 4);
  EXPECT_TRUE(check_program(dump->program).empty());
  const Result<std::string> image = testing::fsim_image(dump->program);
  ASSERT_TRUE(image) << to_string(image.error());
  for (const size_t reg : {0, 1, 2, 3}) {
    const Region& mine = program.regions[reg];
    const Region& read = dump->program.regions[reg];
    ASSERT_EQ(mine.bytes, read.bytes);
    EXPECT_EQ(results.final_image.substr(mine.address - program.base, mine.bytes),
              image->substr(read.address - dump->program.base, read.bytes))
        << reg;
  }
  const Region& y = dump->program.outputs[0];
  EXPECT_EQ(dump->expected[0], image->substr(y.address - dump->program.base, y.bytes));
}

TEST_F(Dumps, TextsSayTheSame) {
  const Program program = dumped_example();
  DumpResults results;
  for (const dpu::Run& run : program.runs)
    results.times.push_back(
        simulate_time(program.config, run.insns, {.record_times = true})->times);
  ASSERT_TRUE(write_dump(folder(), program, results));
  EXPECT_EQ(text("insns.bin"), encode(program.runs[0].insns) + encode(program.runs[1].insns));
  const std::string lines = text("insns.jsonl");
  const size_t last = lines.rfind('\n', lines.size() - 2);
  EXPECT_EQ(lines.substr(last + 1), "{\"op\":\"END\",\"dpon\":\"\",\"dpby\":\"\"}\n");
  EXPECT_NE(lines.find("{\"op\":\"SAVE\",\"dpon\":\"L\",\"dpby\":\"\",\"bank_id\":0,"),
            std::string::npos);
  // The SAVE of the second run begins when its LOAD is done.
  const uint64_t begin = results.times[1][1].begin, done = results.times[1][1].end;
  const auto lat = static_cast<uint64_t>(program.config.timing.lat_ddr);
  EXPECT_NE(text("times.csv")
                .find("\n1,1,S," + std::to_string(begin) + "," + std::to_string(done - lat) + "," +
                      std::to_string(done) + "\n"),
            std::string::npos);
  const auto manifest = nlohmann::json::parse(text("manifest.json"));
  EXPECT_EQ(manifest["config"]["timing"]["queue"], program.config.timing.queue);
  EXPECT_FALSE(manifest["config"].contains("compiler"));
  EXPECT_FALSE(manifest["regions"][1].contains("file")) << "zeros need none";
}

TEST_F(Dumps, ReplaceOnlyDumps) {
  const Program program = dumped_example();
  ASSERT_TRUE(write_dump(folder(), program));
  ASSERT_TRUE(write_dump(folder(), program));
  EXPECT_FALSE(write_dump(root_.string(), program)) << "holds another folder";
  Program wrong = program;
  wrong.info = "[]";
  EXPECT_FALSE(write_dump(folder(), wrong));
  wrong = program;
  wrong.runs[1].patches[0].address = program.regions[4].address;
  EXPECT_FALSE(write_dump(folder(), wrong)) << "no dump has that region";
  EXPECT_TRUE(read_dump(folder())) << "the old one is still there";
}

TEST_F(Dumps, ProblemsAreNamed) {
  ASSERT_TRUE(write_dump(folder(), dumped_example()));
  const auto good = nlohmann::json::parse(text("manifest.json"));
  const std::string path = folder() + "/manifest.json";
  const auto problems = [&](const char* pointer, nlohmann::json value) {
    nlohmann::json changed = good;
    changed[nlohmann::json::json_pointer(pointer)] = std::move(value);
    EXPECT_TRUE(write_file(path, changed.dump()));
    const Result<Dump> dump = read_dump(folder());
    return dump ? std::string() : to_string(dump.error());
  };
  EXPECT_EQ(problems("/unknown", 1), "");
  EXPECT_EQ(problems("/config/unknown", 1), "");
  const std::tuple<const char*, nlohmann::json, const char*> cases[] = {
      {"/format", "vta-program-dump", "format is"},
      {"/version", 2, "version 2"},
      {"/config/pe", 9, "`pe` is 9"},
      {"/config/timing/queue", "many", "`timing.queue`"},
      {"/regions/0/file", "../x", "leads out"},
      {"/regions/0/file", "missing.bin", "missing.bin"},
      {"/regions/0/bytes", 1 << 30, "go beyond"},
      {"/regions/1/reg", 0, "again"},
      {"/regions/1/reg", 4, "no region 4"},
      {"/runs/0/insns/count", 1000000, "but not 1000000"},
      {"/runs/0/insns/offset", 2, "run 0"},
      {"/runs/1/patches/0/addr", 16384, "not inside the region"},
      {"/runs/1/spans/0/end", 99, "span 'copy'"},
      {"/runs", nlohmann::json::array(), "at least one run"},
      {"/outputs/0/shape", {1, 2}, "four sizes"},
      {"/outputs/0/bytes", 5, "not where the image says"},
      {"/info", 3, "`info`"},
  };
  for (const auto& [pointer, value, part] : cases)
    EXPECT_NE(problems(pointer, value).find(part), std::string::npos)
        << pointer << ": " << problems(pointer, value);
  ASSERT_TRUE(write_file(path, "[1"));
  EXPECT_FALSE(read_dump(folder()));
  ASSERT_TRUE(write_file(path, std::string(100000, '[')));
  EXPECT_FALSE(read_dump(folder()));
}

TEST_F(Dumps, MutatedManifestsNeverCrash) {
  ASSERT_TRUE(write_dump(folder(), dumped_example()));
  const std::string good = text("manifest.json");
  Rng rng(1);
  int accepted = 0;
  for (int i = 0; i < 300; ++i) {
    std::string changed = good;
    for (int64_t n = rng.below(2); n >= 0; --n)
      changed[static_cast<size_t>(rng.below(std::ssize(changed)))] =
          "0123456789{}[]\",:ax"[rng.below(19)];
    ASSERT_TRUE(write_file(folder() + "/manifest.json", changed));
    accepted += read_dump(folder()).has_value();
  }
  EXPECT_GT(accepted, 10);
}

}  // namespace
}  // namespace tilewright::dpu
