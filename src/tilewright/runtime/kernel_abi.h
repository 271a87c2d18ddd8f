/* The contract between generated kernels and whoever runs them (C, so that emitted C can use it).
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One iteration of a parallel loop. worker < the number of workers given to the kernel. */
typedef void (*tw_parallel_body)(void* env, int64_t index, int32_t worker);

/* Services a kernel may use. struct_size first: older kernels run with newer services. */
typedef struct tw_kernel_services {
  uint64_t struct_size;
  void* pool;
  /* Runs body for 0 <= index < count, in any order and concurrently; returns when all are done. */
  void (*parallel_for)(void* pool, int64_t count, tw_parallel_body body, void* env);
  int32_t workers; /* greatest number of concurrent bodies */
} tw_kernel_services;

/*
 * A kernel: buffers and scalars in the order of the Func's parameters. `workspace` is 64-byte
 * aligned and holds the kernel's shared bytes, then `workers` times its per-worker bytes
 * (tw::KernelInfo). Kernels cannot fail: everything was checked at compile time.
 */
typedef void (*tw_kernel)(void* const* buffers, const int64_t* scalars, void* workspace,
                          const tw_kernel_services* services);

#ifdef __cplusplus
}

#include <string>

namespace tilewright {

/// What the executor must know of one compiled Func.
struct KernelInfo {
  std::string symbol;            ///< exported name, of type tw_kernel
  int64_t shared_bytes = 0;      ///< workspace used by the whole kernel
  int64_t per_worker_bytes = 0;  ///< further workspace per worker (multiple of 64)
};

}  // namespace tilewright
#endif
