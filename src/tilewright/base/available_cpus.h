// How much of the machine this process may use: what its affinity and its control groups leave it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

/// Numbers of the CPUs the calling thread may run on; those of the machine where the system does
/// not say. Never empty.
std::vector<int> allowed_cpus();

/// How many CPUs' worth of time control groups grant this process: the least of its own group and
/// of those above it (`cpu.max` of version 2, `cpu.cfs_quota_us` of version 1); absent without a
/// limit. `root`: where the system's files are, for tests.
std::optional<double> cpu_quota(const std::string& root = "");

/// Workers that make sense where `allowed` CPUs and that quota are given: the lesser of both, the
/// quota rounded to the nearest number; at least 1.
int usable_cpus(size_t allowed, std::optional<double> quota);
/// The same for this process at this moment.
int usable_cpus();

}  // namespace tilewright
