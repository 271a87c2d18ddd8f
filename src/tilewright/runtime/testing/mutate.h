// Shared by the tests of this layer.
#pragma once

#include <string>

#include "tilewright/base/rng.h"

namespace tilewright::runtime {

/// One to four random edits: flip, overwrite, insert, remove, repeat or cut bytes.
inline void mutate(Rng& rng, std::string& bytes) {
  for (int64_t edits = rng.between(1, 4); edits > 0 && !bytes.empty(); --edits) {
    const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())));
    const auto length = static_cast<size_t>(rng.between(1, 16));
    switch (rng.below(7)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(rng.below(256));
        break;
      case 2:
        bytes.insert(at, 1, "0123456789-{}[],:\""[rng.below(18)]);
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 5:
        bytes[at] = static_cast<char>('0' + rng.below(10));
        break;
      default:
        if (rng.chance(0.1)) bytes.resize(at);
        break;
    }
  }
}

}  // namespace tilewright::runtime
