// The fixed first part of every emitted C file: types, services and the helpers for arithmetic
// that C leaves undefined or defines otherwise.
#pragma once

namespace tilewright::codegen {

extern const char* const kCPrelude;

}  // namespace tilewright::codegen
