/* Loads a package, fills its inputs with ones, runs it and prints the first values of each output.
 * usage: 01_run_package model.twm */
#include <stdio.h>
#include <stdlib.h>

#include "tilewright/runtime.h"

/* Ends the program with what went wrong. It takes the address of the error: arguments are evaluated
 * in any order, so the error itself might be read before the call that sets it. */
static void check(int code, tw_error** error) {
  if (code == TW_OK) return;
  fprintf(stderr, "%s\n", tw_error_text(*error));
  exit(code);
}

int main(int argc, char** argv) {
  tw_error* error = NULL;
  tw_module* module = NULL;
  tw_session* session = NULL;
  if (argc != 2) return fprintf(stderr, "usage: %s model.twm\n", argv[0]), 2;
  check(tw_module_open(argv[1], NULL, &module, &error), &error);
  check(tw_session_create(module, NULL, &session, &error), &error);

  for (size_t i = 0; i < tw_session_input_count(session); ++i) {
    tw_tensor_info info = {.struct_size = sizeof info};
    check(tw_session_input_info(session, i, &info, &error), &error);
    size_t count = 1;
    for (int d = 0; d < info.ndim; ++d) count *= (size_t)info.shape[d];
    void* data = calloc(count + 1, info.dtype.bits / 8);
    if (info.dtype.code == kDLFloat && info.dtype.bits == 32)
      for (size_t k = 0; k < count; ++k) ((float*)data)[k] = 1.0f;
    DLTensor tensor = {data, {kDLCPU, 0}, info.ndim, info.dtype, (int64_t*)info.shape, NULL, 0};
    check(tw_session_set_input(session, info.name, &tensor, &error), &error);
    free(data);
  }
  check(tw_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &error), &error);

  for (size_t i = 0; i < tw_session_output_count(session); ++i) {
    DLTensor tensor;
    check(tw_session_get_output(session, tw_session_output_name(session, i), &tensor, &error),
          &error);
    size_t count = 1;
    for (int d = 0; d < tensor.ndim; ++d) count *= (size_t)tensor.shape[d];
    printf("%s: %zu values", tw_session_output_name(session, i), count);
    if (tensor.dtype.code == kDLFloat && tensor.dtype.bits == 32)
      for (size_t k = 0; k < count && k < 5; ++k) printf(" %g", ((float*)tensor.data)[k]);
    printf("\n");
  }
  tw_session_close(session);
  tw_module_close(module);
  return 0;
}
