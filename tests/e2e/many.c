/*
 * Memory of a process that serves many shapes: many ROUNDS PACKAGE...
 * Every round opens each package, runs it once and closes it. Prints the memory in use after a
 * tenth of the rounds and at the end, in KiB.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tilewright/runtime.h"

static int failed(tw_error* error) {
  fprintf(stderr, "error: %s\n", tw_error_text(error));
  tw_error_free(error);
  return 1;
}

static long resident_kib(void) {
  long size = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &size, &resident) != 2) return -1;
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Sets the first input to zeros. */
static int give_zeros(tw_session* session) {
  tw_error* error = NULL;
  tw_tensor_info info = {sizeof(info)};
  if (tw_session_input_info(session, 0, &info, &error)) return failed(error);
  size_t bytes = info.dtype.bits / 8;
  for (int32_t i = 0; i < info.ndim; ++i) bytes *= (size_t)info.shape[i];
  void* data = calloc(1, bytes);
  if (data == NULL) return 1;
  DLTensor tensor = {data, {kDLCPU, 0}, info.ndim, info.dtype, (int64_t*)info.shape, NULL, 0};
  const int code = tw_session_set_input(session, info.name, &tensor, &error);
  free(data);
  return code ? failed(error) : 0;
}

static int run_once(const char* path) {
  tw_error* error = NULL;
  tw_module* module = NULL;
  tw_session* session = NULL;
  tw_session_options options = {sizeof(options)};
  options.threads = 1;
  if (tw_module_open(path, NULL, &module, &error)) return failed(error);
  if (tw_session_create(module, &options, &session, &error)) return failed(error);
  if (give_zeros(session)) return 1;
  if (tw_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &error)) return failed(error);
  tw_session_close(session);
  tw_module_close(module);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: many ROUNDS PACKAGE...\n");
    return 2;
  }
  const int rounds = atoi(argv[1]);
  for (int round = 1; round <= rounds; ++round) {
    for (int i = 2; i < argc; ++i)
      if (run_once(argv[i])) return 1;
    if (round == rounds / 10 || round == rounds) printf("%ld\n", resident_kib());
  }
  return 0;
}
