// Signatures of jobs with native code: a worker that was told whom to trust runs nothing else.
//
// The submitter signs what is to run, where, and how long his word holds:
//
//   tilewright job 1
//   id 0198c0de-...
//   kind run
//   pool default
//   class cpu:znver4@1a2b3c4d
//   device                         (any of the class)
//   needs ["lab"]
//   limit_s 600
//   until 1795680000               (seconds since 1970)
//   payload {"device":"cpu",...}
//
// The payload has the hashes of package and inputs. A job runs once, since its id stays in the
// store for as long as the word holds; one that somebody moves to another pool, class or device is
// refused. So whoever gets hold of the database can have nothing of his own run. Jobs that measure
// schedules carry none: they are texts, which the worker compiles itself.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/fleet/jobs.h"
#include "tilewright/fleet/keys.h"

namespace tilewright::fleet {

/// How long a signature holds; units: s. A week: a host's clock may be wrong by a day.
inline constexpr int64_t kSignedFor = 7 * 24 * 3600;

/// Where a job runs.
struct JobPlace {
  std::string pool, device_class, device;  ///< device: by name
  std::vector<std::string> tags;
};

/// For `Job::signature`. `payload`: as the worker will write it anew out of what it read.
/// `now`: units: s since 1970. errors: Tool.
Result<std::string> sign_job(const SigningKey& key, const Job& job, const std::string& payload,
                             int64_t now);

/// errors: Package, each with its own text: not signed, signed by somebody unknown, for another
/// place, too long ago, or something else than what is here was signed.
Status check_signature(const TrustedKeys& keys, const LeasedJob& job, const std::string& payload,
                       const JobPlace& place, int64_t now);

}  // namespace tilewright::fleet
