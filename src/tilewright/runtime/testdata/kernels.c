// A package's code, as the tests use it: y[i] = x[i] * w[i] + FACTOR for eight floats.
#include <unistd.h>

#include "tilewright/runtime/kernel_abi.h"

#define EXPORT __attribute__((visibility("default")))

static void body(void* env, int64_t i, int32_t worker) {
  void* const* buffers = (void* const*)env;
  (void)worker;
  ((float*)buffers[2])[i] = ((const float*)buffers[0])[i] * ((const float*)buffers[1])[i] + FACTOR;
}

EXPORT void scale_and_shift(void* const* buffers, const int64_t* scalars, void* workspace,
                            const tw_kernel_services* services) {
  (void)scalars;
  (void)workspace;
  services->parallel_for(services->pool, 8, body, (void*)buffers);
}

EXPORT void never_returns(void* const* buffers, const int64_t* scalars, void* workspace,
                          const tw_kernel_services* services) {
  (void)buffers;
  (void)scalars;
  (void)workspace;
  (void)services;
  for (;;) pause();
}
