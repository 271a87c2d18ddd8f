// The designs of a package for FPGAs, of all its launches.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/compile/fpga/network.h"

namespace tilewright::driver {

/// Designs of one structure, and the layers that they compute.
struct PackageStructure {
  std::vector<compile::FpgaNetwork::Design> designs;
  /// Name, and its design: an index of `designs`.
  std::vector<std::pair<std::string, size_t>> layers;
};
struct PackageDesigns {
  hw::FpgaDevice device;
  std::map<int, PackageStructure> structures;  ///< by their numbers
};

/// errors: those of opening the package; Usage (nothing in it runs on an FPGA).
Result<PackageDesigns> package_designs(const std::string& path);

/// Pointers to all of them.
std::vector<const compile::FpgaNetwork::Design*> pointers(const PackageStructure& structure);

}  // namespace tilewright::driver
