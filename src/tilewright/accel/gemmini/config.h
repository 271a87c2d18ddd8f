// Gemmini as a value: a systolic array of DIM x DIM multipliers with a scratchpad of int8 rows and
// an accumulator of int32 rows. docs/gemmini.md says what its commands do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::gemmini {

struct Config {
  std::string name = "gemmini";
  int dim = 16;  ///< rows and columns of the array, elements of a row of both memories; 2 to 64
  int spad_kb = 256;
  int banks = 4;  ///< of the scratchpad
  int acc_kb = 64;

  friend bool operator==(const Config&, const Config&) = default;

  int64_t spad_rows() const { return int64_t{spad_kb} * 1024 / dim; }
  int64_t acc_rows() const { return int64_t{acc_kb} * 1024 / (4 * int64_t{dim}); }
  /// Most columns that one mvin moves: 64 bytes, or one row of a memory where that is more.
  int most_columns(int element_bytes) const {
    const int blocks = 64 / (dim * element_bytes);
    return dim * (blocks > 1 ? blocks : 1);
  }
};

/// Whether the same programs mean the same: all but the name.
bool same_hardware(const Config& a, const Config& b);

/// errors: Invalid, all problems at once.
Status check(const Config& config);

/// TOML with `kind = "gemmini"`; keys as in hw/gemmini.toml, what is absent keeps its default.
/// `place` is for messages. errors: Parse, Invalid: all problems at once.
Result<Config> parse_config(std::string_view text, const std::string& place);
/// A file, or the built-in name `gemmini`. errors: also Usage, with the nearest name; Io.
Result<Config> load_config(const std::string& name_or_path);
std::vector<std::string> builtin_configs();
/// What `parse_config` reads back.
std::string to_toml(const Config& config);

}  // namespace tilewright::gemmini
