#include "tilewright/runtime/package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tilewright/runtime/executor.h"
#include "tilewright/runtime/tar.h"
#include "tilewright/runtime/testing/archive.h"
#include "tilewright/runtime/testing/mutate.h"

namespace tilewright::runtime {
namespace {

using Place = ValueSpec::Place;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A fresh folder, removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "twm-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

Program scale_program() {
  Program program;
  program.name = "scale";
  program.target.name = "cpu";
  program.values = {{Place::Input, "x", DType::F32, {8}, 0, -1},
                    {Place::Weights, "w", DType::F32, {8}, 128, -1},
                    {Place::Output, "y", DType::F32, {8}, 0, -1}};
  program.inputs = {0};
  program.outputs = {2};
  program.kernels["scale_and_shift"] = {"scale_and_shift", 0, 0};
  program.steps = {{"scale", "scale_and_shift", "", "", {0, 1, 2}, 1}};
  program.weights_bytes = 160;
  return program;
}

const float kWeights[8] = {0, 1, 2, 3, 4, 5, 6, 7};

struct Sample {
  Program program = scale_program();
  std::string code = *read_file(KERNELS_2);
  std::vector<WeightPiece> weights = {
      {128, {reinterpret_cast<const char*>(kWeights), sizeof kWeights}}, {0, "first"}};

  PackageContents contents() const { return {program, "the graph", code, weights, "{}\n"}; }
};

std::string error_text(const std::string& path, const OpenOptions& options = {}) {
  const auto package = Package::open(path, options);
  EXPECT_FALSE(package);
  if (package) return {};
  EXPECT_EQ(package.error().kind, ErrorKind::Package);
  EXPECT_THAT(package.error().place, HasSubstr(path));
  return to_string(package.error());
}

std::vector<double> run_scale(const std::shared_ptr<const Package>& package) {
  auto session = Session::create(package, {.threads = 2});
  EXPECT_TRUE(session) << to_string(session.error());
  if (!session) return {};
  Array x(DType::F32, {8});
  for (int i = 0; i < 8; ++i) x.set(i, 10);
  EXPECT_TRUE((*session)->set_input("x", x));
  EXPECT_TRUE((*session)->run());
  return (*session)->get_output("y")->to_doubles();
}

TEST(Package, WriteOpenRun) {
  const Folder folder;
  const std::string path = folder.file("a.twm");
  const Sample sample;
  const Status status = write_package(path, sample.contents());
  ASSERT_TRUE(status) << to_string(status.error());
  EXPECT_EQ(folder.entries(), 1u);
  const auto package = Package::open(path, {.verify_weights = true});
  ASSERT_TRUE(package) << to_string(package.error());
  std::vector<std::string> names;
  for (const PackageMember& member : (*package)->members()) names.push_back(member.name);
  EXPECT_THAT(names, ElementsAre("manifest.json", "graph.onnx", "code/cpu/model.so", "weights.bin",
                                 "records.jsonl", "manifest.sha256"));
  EXPECT_EQ((*package)->member("graph.onnx")->bytes, "the graph");
  EXPECT_EQ((*package)->member("nothing"), nullptr);
  const MappedFile weights = (*package)->weights();
  ASSERT_EQ(weights.bytes.size(), 160u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weights.bytes.data()) % 64, 0u);
  EXPECT_EQ(std::string(weights.bytes.data(), 6), std::string("first\0", 6));
  EXPECT_EQ((*package)->find("body"), nullptr);
  EXPECT_THAT(run_scale(*package), ElementsAre(2, 12, 22, 32, 42, 52, 62, 72));
}

TEST(Package, SessionKeepsCodeAndWeights) {
  const Folder folder;
  const std::string path = folder.file("a.twm");
  ASSERT_TRUE(write_package(path, Sample().contents()));
  std::unique_ptr<Session> session = *Session::create(*Package::open(path));
  std::filesystem::remove(path);
  ASSERT_TRUE(session->set_input("x", Array(DType::F32, {8})));
  ASSERT_TRUE(session->run());
  EXPECT_THAT(session->get_output("y")->get(5), 2);
}

TEST(Package, TwoPackagesWithTheSameSymbolsDoNotMix) {
  const Folder folder;
  Sample two, three;
  three.code = *read_file(KERNELS_3);
  ASSERT_TRUE(write_package(folder.file("2.twm"), two.contents()));
  ASSERT_TRUE(write_package(folder.file("3.twm"), three.contents()));
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto a = *Package::open(folder.file("2.twm"));
    const auto b = *Package::open(folder.file("3.twm"));
    EXPECT_EQ(run_scale(a)[0], 2);
    EXPECT_EQ(run_scale(b)[0], 3);
  }
  // One after the other: the second must not be taken for the first.
  EXPECT_EQ(run_scale(*Package::open(folder.file("2.twm")))[0], 2);
  EXPECT_EQ(run_scale(*Package::open(folder.file("3.twm")))[0], 3);
}

TEST(Package, EqualContentsGiveEqualBytesAndPlainTarReadsThem) {
  const Folder folder;
  ASSERT_TRUE(write_package(folder.file("a.twm"), Sample().contents()));
  ASSERT_TRUE(write_package(folder.file("b.twm"), Sample().contents()));
  EXPECT_EQ(*read_file(folder.file("a.twm")), *read_file(folder.file("b.twm")));
  if (std::system("command -v tar sha256sum > /dev/null") != 0) GTEST_SKIP() << "no tar here";
  const std::string command = "cd '" + folder.file("") + "' && tar -xf a.twm && " +
                              "sha256sum --quiet -c manifest.sha256 && tar -cf c.twm " +
                              "manifest.json graph.onnx code weights.bin records.jsonl " +
                              "manifest.sha256";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(*read_file(folder.file("graph.onnx")), "the graph");
  const auto packed_again = Package::open(folder.file("c.twm"), {.verify_weights = true});
  EXPECT_TRUE(packed_again) << to_string(packed_again.error());
}

TEST(Package, FilesThatAreNoPackages) {
  const Folder folder;
  const std::string path = folder.file("x.twm");
  const auto absent = Package::open(path);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().kind, ErrorKind::Io);
  EXPECT_THAT(to_string(absent.error()), HasSubstr("No such file"));
  EXPECT_THAT(to_string(Package::open("/").error()), HasSubstr("Is a directory"));
  ASSERT_TRUE(write_file(path, ""));
  const auto empty = Package::open(path);
  ASSERT_FALSE(empty);
  EXPECT_THAT(to_string(empty.error()), HasSubstr("x.twm' is empty"));
  ASSERT_TRUE(write_file(path, std::string(5000, 'x')));
  EXPECT_THAT(error_text(path), HasSubstr("not a tar archive"));
  ASSERT_TRUE(write_file(path, *tar_header("readme", 0) + std::string(kTarEnd, '\0')));
  EXPECT_THAT(error_text(path), HasSubstr("manifest.json is not its first member"));
}

TEST(Package, TruncationIsNoticedEverywhere) {
  const Folder folder;
  const std::string path = folder.file("a.twm");
  ASSERT_TRUE(write_package(path, Sample().contents()));
  const std::string whole = *read_file(path);
  for (size_t size = 1; size + kTarEnd <= whole.size(); size += 511) {
    const auto package = Package::open(in_memory(whole.substr(0, size)), "cut.twm");
    ASSERT_FALSE(package);
    EXPECT_THAT(to_string(package.error()),
                ::testing::AnyOf(HasSubstr("cut off"), HasSubstr("not a tar archive")))
        << size;
  }
}

/// Changes one byte of a member and opens the result.
std::string error_after_damage(const std::string& member, const OpenOptions& options = {}) {
  const Folder folder;
  const std::string path = folder.file("a.twm");
  EXPECT_TRUE(write_package(path, Sample().contents()));
  std::string bytes = *read_file(path);
  const std::vector<TarMember> entries = *read_tar(bytes);
  for (const TarMember& entry : entries) {
    if (entry.name != member) continue;
    const size_t at =
        static_cast<size_t>(entry.bytes.data() - bytes.data()) + entry.bytes.size() / 2;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    break;
  }
  EXPECT_TRUE(write_file(path, bytes));
  const auto package = Package::open(path, options);
  return package ? "" : to_string(package.error());
}

TEST(Package, DamageNamesTheMember) {
  EXPECT_THAT(error_after_damage("manifest.json"), HasSubstr("'manifest.json' is damaged"));
  EXPECT_THAT(error_after_damage("manifest.sha256"), HasSubstr("'manifest.json' is damaged"));
  EXPECT_THAT(error_after_damage("code/cpu/model.so"), HasSubstr("'code/cpu/model.so' is damaged"));
  EXPECT_EQ(error_after_damage("weights.bin"), "");
  EXPECT_THAT(error_after_damage("weights.bin", {.verify_weights = true}),
              HasSubstr("'weights.bin' is damaged"));
  EXPECT_THAT(error_after_damage("graph.onnx", {.verify_weights = true}),
              HasSubstr("'graph.onnx' is damaged"));
}

/// A sample package whose manifest was edited and hashed again; `dropped` is left out.
std::string edited(const std::function<void(nlohmann::json&)>& edit,
                   const std::string& dropped = "") {
  const Folder folder;
  const std::string path = folder.file("a.twm");
  EXPECT_TRUE(write_package(path, Sample().contents()));
  const std::string bytes = *read_file(path);
  std::vector<std::pair<std::string, std::string>> members;
  const std::vector<TarMember> entries = *read_tar(bytes);
  for (const TarMember& entry : entries) {
    std::string content(entry.bytes);
    if (entry.name == "manifest.json") {
      auto json = nlohmann::json::parse(content);
      edit(json);
      content = json.dump();
    }
    if (entry.name == "manifest.sha256") content = sha256(members[0].second) + "  manifest.json\n";
    if (entry.name != dropped) members.emplace_back(entry.name, content);
  }
  return pack(members);
}

std::string edited_error(const std::function<void(nlohmann::json&)>& edit,
                         const std::string& dropped = "", const OpenOptions& options = {}) {
  const Folder folder;
  const std::string path = folder.file("b.twm");
  EXPECT_TRUE(write_file(path, edited(edit, dropped)));
  return error_text(path, options);
}

TEST(Package, EditedManifests) {
  using Json = nlohmann::json;
  const Folder folder;
  ASSERT_TRUE(write_file(folder.file("same.twm"), edited([](Json&) {})));
  EXPECT_TRUE(Package::open(folder.file("same.twm"), {.verify_weights = true}));
  EXPECT_THAT(edited_error([](Json& j) { j["version"] = 2; }),
              HasSubstr("package version 2 is too new"));
  EXPECT_THAT(edited_error([](Json& j) { j["version"] = "1"; }), HasSubstr("no version"));
  EXPECT_THAT(edited_error([](Json& j) { j["format"] = "zip"; }),
              HasSubstr("does not describe a Tilewright package"));
  EXPECT_THAT(edited_error([](Json& j) { j = Json::array(); }), HasSubstr("not a JSON object"));
  EXPECT_THAT(edited_error([](Json& j) { j.erase("program"); }), HasSubstr("no program"));
  EXPECT_THAT(edited_error([](Json& j) { j.erase("members"); }), HasSubstr("lists no members"));
  EXPECT_THAT(edited_error([](Json& j) { j["members"][0]["bytes"] = 3; }),
              HasSubstr("'graph.onnx' has 9 bytes, not what the manifest says"));
  EXPECT_THAT(edited_error([](Json& j) { j["members"][1]["sha256"] = "ab"; }),
              HasSubstr("no hash of 'code/cpu/model.so'"));
  EXPECT_THAT(edited_error([](Json& j) { j["members"].erase(1); }),
              HasSubstr("no hash of 'code/cpu/model.so'"));
  EXPECT_THAT(edited_error([](Json& j) { j["program"]["values"][0]["dtype"] = "f1"; }),
              HasSubstr("$.values[0].dtype"));
  EXPECT_THAT(edited_error([](Json& j) { j["program"]["weights_bytes"] = 1600; }),
              HasSubstr("the program needs 1600 bytes, 160 are there"));
  EXPECT_THAT(edited_error([](Json& j) {
                j["program"]["kernels"]["other"] = {{"shared_bytes", 0}, {"per_worker_bytes", 0}};
              }),
              HasSubstr("has no kernel 'other'"));
}

TEST(Package, MissingMembers) {
  const auto same = [](nlohmann::json&) {};
  EXPECT_THAT(edited_error(same, "weights.bin"), HasSubstr("no member 'weights.bin'"));
  EXPECT_THAT(edited_error(same, "code/cpu/model.so"), HasSubstr("no member 'code/cpu/model.so'"));
  EXPECT_THAT(edited_error(same, "manifest.sha256"), HasSubstr("no member 'manifest.sha256'"));
  EXPECT_THAT(edited_error(same, "manifest.json"), HasSubstr("not a Tilewright package"));
}

TEST(Package, AnotherCpu) {
  const Folder folder;
  const std::string path = folder.file("a.twm");
  ASSERT_TRUE(write_package(path, Sample().contents()));
  OpenOptions options;
  options.missing_features = [](const TargetSpec& target) {
    EXPECT_EQ(target.name, "cpu");
    return std::vector<std::string>{"+avx9", "+amx"};
  };
  EXPECT_THAT(error_text(path, options), HasSubstr("this machine lacks +avx9, +amx"));
  options.load_code = false;  // looking inside is always possible
  const auto package = Package::open(path, options);
  ASSERT_TRUE(package);
  EXPECT_EQ((*package)->find("scale_and_shift"), nullptr);
  EXPECT_FALSE(Session::create(*package));
  const std::string alien = edited_error(
      [](nlohmann::json& json) { json["program"]["target"]["triple"] = "riscv64-unknown-elf"; });
  EXPECT_THAT(alien, HasSubstr("this machine lacks riscv64"));
}

TEST(Package, CodeThatIsNoLibrary) {
  const Folder folder;
  Sample sample;
  sample.code = "not ELF";
  ASSERT_TRUE(write_package(folder.file("a.twm"), sample.contents()));
  EXPECT_THAT(error_text(folder.file("a.twm")), HasSubstr("cannot be loaded"));
}

TEST(Package, WriterRefusesWhatReadersWould) {
  const Folder folder;
  const std::string path = folder.file("a.twm");
  Sample sample;
  sample.weights.push_back({156, "12345"});
  EXPECT_FALSE(write_package(path, sample.contents()));
  sample.weights = {{0, "12345"}, {4, "1"}};
  EXPECT_FALSE(write_package(path, sample.contents()));
  sample.weights = {{-1, "1"}};
  EXPECT_FALSE(write_package(path, sample.contents()));
  sample.weights.clear();
  sample.program.values[1].offset = 1;
  EXPECT_FALSE(write_package(path, sample.contents()));
  EXPECT_EQ(folder.entries(), 0u);
  const auto nowhere = write_package(folder.file("no/folder/a.twm"), Sample().contents());
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().kind, ErrorKind::Io);
}

TEST(Package, FullDiskLeavesTheOldFile) {
  const Folder folder;
  const std::string path = folder.file("a.twm");
  ASSERT_TRUE(write_file(path, "old"));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{5000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_package(path, Sample().contents());
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Io);
  EXPECT_EQ(folder.entries(), 1u);
  EXPECT_EQ(*read_file(path), "old");
}

TEST(Package, ProgramWithoutKernelsNeedsNoCode) {
  const Folder folder;
  Sample sample;
  sample.program.kernels.clear();
  sample.program.steps.clear();
  sample.program.target.triple = "riscv64-unknown-elf";
  sample.code.clear();
  ASSERT_TRUE(write_package(folder.file("a.twm"), sample.contents()));
  EXPECT_TRUE(Package::open(folder.file("a.twm")));
}

TEST(Package, MutatedBytesNeverCrash) {
  const std::string good = edited([](nlohmann::json&) {});
  const size_t manifest_end = 512 + read_tar(good)->front().bytes.size();
  Rng rng(5);
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string bytes = good;
    if (round % 2 == 0) {  // within the manifest, hashed again
      std::string manifest = good.substr(512, manifest_end - 512);
      mutate(rng, manifest);
      bytes = pack({{"manifest.json", manifest},
                    {"graph.onnx", "the graph"},
                    {"code/cpu/model.so", "none"},
                    {"weights.bin", std::string(160, '\0')},
                    {"records.jsonl", "{}\n"},
                    {"manifest.sha256", sha256(manifest) + "  manifest.json\n"}});
    } else {
      mutate(rng, bytes);
    }
    OpenOptions options;
    options.load_code = false;
    const auto package = Package::open(in_memory(bytes), "memory", options);
    refused += !package;
  }
  EXPECT_GT(refused, 700);
}

TEST(Tar, NumbersNamesAndKinds) {
  const std::string big = *tar_header("big", uint64_t{1} << 40);
  const auto cut = read_tar(big + std::string(1024, '\0'));
  ASSERT_FALSE(cut);
  EXPECT_THAT(to_string(cut.error()), HasSubstr("1024 of 1099511627776 bytes are there"));
  EXPECT_FALSE(tar_header("", 0));
  EXPECT_FALSE(tar_header(std::string(101, 'n'), 0));
  EXPECT_FALSE(read_tar(pack({{"a", "1"}, {"a", "2"}})));
  const std::string empty_members = pack({{"a", ""}, {"b", std::string(512, 'b')}, {"c", "c"}});
  const auto members = read_tar(empty_members);
  ASSERT_TRUE(members);
  ASSERT_EQ(members->size(), 3u);
  EXPECT_EQ((*members)[1].bytes.size(), 512u);
  EXPECT_EQ((*members)[2].bytes, "c");
}

}  // namespace
}  // namespace tilewright::runtime
