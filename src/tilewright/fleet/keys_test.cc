// Keys and signatures, against OpenSSL's own program and with everything that may be changed.
#include "tilewright/fleet/keys.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/fleet/package_job.h"
#include "tilewright/fleet/signed_job.h"

namespace tilewright::fleet {
namespace {

using ::testing::HasSubstr;

struct Keys : ::testing::Test {
  const TemporaryFolder folder = *TemporaryFolder::create();
  std::string file(const std::string& name) const { return folder.file(name); }
  void openssl(std::vector<std::string> words) const {
    words.insert(words.begin(), "openssl");
    const auto done = run_checked(words, {folder.path()});
    ASSERT_TRUE(done) << to_string(done.error());
  }
};

TEST_F(Keys, OfTheProgramAndOfOpensslAreTheSame) {
  const SigningKey made = *SigningKey::make(file("a"));
  struct stat state{};
  ASSERT_EQ(::stat(file("a").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777u, 0600u);
  EXPECT_EQ(SigningKey::load(file("a"))->name(), made.name());
  const std::string signature = *made.sign("text");
  // OpenSSL's program checks ours ...
  std::string bytes;
  for (size_t i = 0; i < signature.size(); i += 2)
    bytes += static_cast<char>(std::stoi(signature.substr(i, 2), nullptr, 16));
  ASSERT_TRUE(write_file(file("text"), "text"));
  ASSERT_TRUE(write_file(file("signature"), bytes));
  openssl({"pkeyutl", "-verify", "-pubin", "-inkey", "a.pub", "-rawin", "-in", "text", "-sigfile",
           "signature"});
  // ... and makes keys that we take.
  openssl({"genpkey", "-algorithm", "ed25519", "-out", "b"});
  openssl({"pkey", "-in", "b", "-pubout", "-out", "b.pub"});
  const SigningKey theirs = *SigningKey::load(file("b"));
  const TrustedKeys both = *TrustedKeys::load(folder.path());
  EXPECT_EQ(both.size(), 2u);
  EXPECT_TRUE(both.verify(made.name(), "text", signature));
  EXPECT_TRUE(both.verify(theirs.name(), "text", *theirs.sign("text")));
  EXPECT_FALSE(both.verify(theirs.name(), "text", signature));
  EXPECT_FALSE(both.verify(made.name(), "texts", signature));
  EXPECT_FALSE(both.verify(made.name(), "text", signature.substr(2)));
  // A file may hold several.
  ASSERT_TRUE(write_file(file("all"), *read_file(file("a.pub")) + *read_file(file("b.pub"))));
  EXPECT_EQ(TrustedKeys::load(file("all"))->size(), 2u);
}

TEST_F(Keys, WhatIsNoneIsRefused) {
  ASSERT_TRUE(SigningKey::make(file("a")));
  EXPECT_THAT(SigningKey::make(file("a")).error().what, HasSubstr("is there already"));
  EXPECT_EQ(SigningKey::load(file("none")).error().kind, ErrorKind::Io);
  EXPECT_THAT(SigningKey::load(file("a.pub")).error().what, HasSubstr("no private Ed25519 key"));
  EXPECT_THAT(TrustedKeys::load(file("a")).error().what, HasSubstr("no public Ed25519 key"));
  openssl({"genpkey", "-algorithm", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "ec"});
  openssl({"pkey", "-in", "ec", "-pubout", "-out", "ec.pub"});
  EXPECT_THAT(SigningKey::load(file("ec")).error().why, HasSubstr("another kind"));
  EXPECT_THAT(TrustedKeys::load(folder.path()).error().why, HasSubstr("another kind"));
  openssl(
      {"genpkey", "-algorithm", "ed25519", "-aes-128-cbc", "-pass", "pass:x", "-out", "locked"});
  EXPECT_THAT(SigningKey::load(file("locked")).error().why, HasSubstr("passphrase"));
  const TemporaryFolder empty = *TemporaryFolder::create();
  EXPECT_THAT(TrustedKeys::load(empty.path()).error().why, HasSubstr(".pub"));
}

/// A signed job, as its worker gets it.
struct SignedJob : Keys {
  SignedJob() {
    run.pieces = {"piece"};
    run.seconds = .1;
    job.id = leased.id = "0198c0de-0000-7000-8000-000000000001";
    job.kind = leased.kind = "run";
    job.pool = "lab";
    job.device_class = "cpu:x";
    job.needs = {"desk"};
    job.limit_s = leased.limit_s = 600;
    leased.signature = job.signature = *sign_job(key, job, to_json(run).dump(), kNow);
  }
  Status check(int64_t now = kNow) const {
    // A database keeps numbers and orders of members in its own way.
    const nlohmann::json stored = nlohmann::json::parse(to_json(run).dump(2));
    return check_signature(keys, leased, to_json(*package_run_of(stored)).dump(), place, now);
  }
  void refused(const std::string& what) const {
    const Status checked = check();
    ASSERT_FALSE(checked) << what;
    EXPECT_EQ(checked.error().kind, ErrorKind::Package);
    EXPECT_THAT(checked.error().what, HasSubstr(what));
  }
  static constexpr int64_t kNow = 1'795'000'000, kDay = 24 * 3600;
  const SigningKey key = *SigningKey::make(file("ann"));
  const TrustedKeys keys = *TrustedKeys::load(file("ann.pub"));
  PackageRun run;
  Job job;
  LeasedJob leased;
  JobPlace place = {"lab", "cpu:x", "desk/cpu", {"desk", "spare"}};
};

TEST_F(SignedJob, RunsWhereItMay) {
  EXPECT_TRUE(check());
  EXPECT_TRUE(check(kNow - kDay)) << "the worker's clock is late by a day";
  EXPECT_TRUE(check(kNow + kDay));
  const Status late = check(kNow + kSignedFor + 1);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().what, HasSubstr("has ended"));
}

TEST_F(SignedJob, Unsigned) {
  leased.signature.clear();
  refused("is not signed");
}

TEST_F(SignedJob, ByAnUnknownKey) {
  const SigningKey other = *SigningKey::make(file("eve"));
  leased.signature = *sign_job(other, job, to_json(run).dump(), kNow);
  refused("unknown key " + other.name());
}

TEST_F(SignedJob, AnyChangeShows) {
  const LeasedJob as_it_was = leased;
  const PackageRun as_signed = run;
  const std::function<void()> changes[] = {
      [&] { run.pieces = {"another"}; },
      [&] { run.inputs = {"more"}; },
      [&] { run.device = "cuda"; },
      [&] { leased.limit_s = 6000; },
      [&] { leased.id.back() = '2'; },
      [&] { leased.kind = "build"; },
      [&] { leased.signature.replace(leased.signature.find("lab"), 3, "bar"); },
      [&] { leased.signature.replace(leased.signature.find("desk"), 4, "deck"); },
      [&] { leased.signature.replace(leased.signature.find("\"until\":1"), 9, "\"until\":2"); },
  };
  for (const auto& change : changes) {
    change();
    refused("not what was signed");
    leased = as_it_was;
    run = as_signed;
  }
  leased.signature.pop_back();
  refused("signature is damaged");
}

TEST_F(SignedJob, ElsewhereItDoesNotRun) {
  const JobPlace right = place;
  for (const JobPlace& wrong : {JobPlace{"attic", "cpu:x", "desk/cpu", {"desk"}},
                                JobPlace{"lab", "cpu:y", "desk/cpu", {"desk"}},
                                JobPlace{"lab", "cpu:x", "desk/cpu", {"spare"}}}) {
    place = wrong;
    refused("for another device");
  }
  place = right;
  job.device = "lab/cpu";
  leased.signature = *sign_job(key, job, to_json(run).dump(), kNow);
  refused("for another device");
}

}  // namespace
}  // namespace tilewright::fleet
