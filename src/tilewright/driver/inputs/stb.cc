// The one place where libstb's decoders are compiled.
#define STB_IMAGE_IMPLEMENTATION
#include "tilewright/driver/inputs/stb.h"
