// What accelerators did, for people and machines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/compile/devices.h"

namespace tilewright::driver {

/// Whether a launch counted something: those on simulators do.
bool has_counts(const compile::LaunchLog& log);
/// Counters of every such launch; with recorded times also cycles and utilisation per layer.
nlohmann::ordered_json launches_json(const compile::LaunchLog& log);
/// The same as a table: one row per layer and a total; empty for a device without time.
std::string launches_table(const compile::LaunchLog& log);
/// A trace for ui.perfetto.dev, in protobuf if PATH ends with .pftrace, otherwise JSON: PATH, or
/// PATH with the launch's name if there are several. requires: recorded times.
/// errors: Io, Usage (a device without time or trace; nothing ran on an accelerator).
Status write_trace(const std::string& path, const compile::LaunchLog& log);
/// A picture of which unit did what, and when: a page, or SVG for a path that ends with .svg.
/// requires, errors: as write_trace; Usage also where the accelerator has no such picture.
Status write_timeline(const std::string& path, const compile::LaunchLog& log);

}  // namespace tilewright::driver
