#include "tilewright/fleet/signed_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/json.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

/// Parts of a signed text that a leased job does not have by itself; they travel beside it.
struct SignedWith {
  std::string key, pool, device_class, device;
  std::vector<std::string> needs;
  int64_t until = 0;
};

std::string signed_text(const std::string& id, const std::string& kind, double limit_s,
                        const SignedWith& with, const std::string& payload) {
  return fmt::format(
      "tilewright job 1\nid {}\nkind {}\npool {}\nclass {}\ndevice {}\nneeds {}\nlimit_s {}\n"
      "until {}\npayload {}\n",
      id, kind, with.pool, with.device_class, with.device, json_text(Json(with.needs)), limit_s,
      with.until, payload);
}

/// errors: Package (another form).
Result<std::pair<SignedWith, std::string>> parse_signature(const std::string& text) {
  try {
    const Json json = parse_json(text);
    return std::pair(SignedWith{json.at("key"), json.at("pool"), json.at("class"),
                                json.at("device"), json.at("needs"), json.at("until")},
                     json.at("signature").get<std::string>());
  } catch (const Json::exception& error) {
    return fail(ErrorKind::Package, "the job's signature is damaged", error.what());
  }
}

bool is_for(const SignedWith& with, const JobPlace& place) {
  return with.pool == place.pool && with.device_class == place.device_class &&
         (with.device.empty() || with.device == place.device) &&
         std::all_of(with.needs.begin(), with.needs.end(), [&](const std::string& tag) {
           return std::find(place.tags.begin(), place.tags.end(), tag) != place.tags.end();
         });
}

}  // namespace

Result<std::string> sign_job(const SigningKey& key, const Job& job, const std::string& payload,
                             int64_t now) {
  const SignedWith with = {
      key.name(), job.pool,        job.device_class.value_or(""), job.device.value_or(""),
      job.needs,  now + kSignedFor};
  const std::string signature =
      TW_TRY(key.sign(signed_text(job.id, job.kind, job.limit_s, with, payload)));
  return json_text(Json{{"key", with.key},
                        {"pool", with.pool},
                        {"class", with.device_class},
                        {"device", with.device},
                        {"needs", with.needs},
                        {"until", with.until},
                        {"signature", signature}});
}

Status check_signature(const TrustedKeys& keys, const LeasedJob& job, const std::string& payload,
                       const JobPlace& place, int64_t now) {
  if (job.signature.empty())
    return fail(ErrorKind::Package, "the package is not signed",
                "this worker runs only what a key that it trusts has signed: --sign KEY");
  const auto [with, signature] = TW_TRY(parse_signature(job.signature));
  if (!keys.knows(with.key))
    return fail(ErrorKind::Package,
                fmt::format("the package is signed by the unknown key {}", with.key),
                "the worker's --trust holds the keys that it knows");
  if (!keys.verify(with.key, signed_text(job.id, job.kind, job.limit_s, with, payload), signature))
    return fail(ErrorKind::Package, "the job is not what was signed",
                fmt::format("the signature of the key {} is of something else: the job, or the "
                            "signature, was changed on the way",
                            with.key));
  if (!is_for(with, place))
    return fail(ErrorKind::Package, "the job was signed for another device",
                fmt::format("for pool {}, class {}", with.pool, with.device_class));
  if (now > with.until)
    return fail(ErrorKind::Package, "the job's signature has ended",
                fmt::format("{} s ago by this worker's clock", now - with.until));
  return {};
}

}  // namespace tilewright::fleet
