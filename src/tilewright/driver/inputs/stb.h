// The decoders of libstb that are used: PNG, JPEG and deflate, from memory only. Implemented in
// stb.cc.
#pragma once

#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_FAILURE_USERMSG
#define STBI_MAX_DIMENSIONS (1 << 15)
#include <stb/stb_image.h>
