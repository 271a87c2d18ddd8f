/*
 * Runs a package once through the C interface: run_package MODEL.twm THREADS OUTPUT INPUT...
 * Inputs are raw bytes in the package's order; OUTPUT receives those of the first output.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tilewright/runtime.h"

static int failed(tw_error* error) {
  fprintf(stderr, "error: %s\n", tw_error_text(error));
  tw_error_free(error);
  return 1;
}

static size_t bytes_of(const int64_t* shape, int32_t ndim, DLDataType dtype) {
  size_t bytes = dtype.bits / 8;
  for (int32_t i = 0; i < ndim; ++i) bytes *= (size_t)shape[i];
  return bytes;
}

/* Fills an input from a file of exactly its size. */
static int give(tw_session* session, size_t index, const char* path) {
  tw_error* error = NULL;
  tw_tensor_info info = {sizeof(info)};
  if (tw_session_input_info(session, index, &info, &error)) return failed(error);
  const size_t bytes = bytes_of(info.shape, info.ndim, info.dtype);
  void* data = malloc(bytes + 1);
  FILE* file = fopen(path, "rb");
  if (data == NULL || file == NULL || fread(data, 1, bytes + 1, file) != bytes) {
    fprintf(stderr, "error: %s does not hold the %zu bytes of %s\n", path, bytes, info.name);
    return 1;
  }
  fclose(file);
  DLTensor tensor = {data, {kDLCPU, 0}, info.ndim, info.dtype, (int64_t*)info.shape, NULL, 0};
  const int code = tw_session_set_input(session, info.name, &tensor, &error);
  free(data);
  return code ? failed(error) : 0;
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: run_package MODEL.twm THREADS OUTPUT INPUT...\n");
    return 2;
  }
  tw_error* error = NULL;
  tw_module* module = NULL;
  tw_session* session = NULL;
  tw_session_options options = {sizeof(options)};
  options.threads = atoi(argv[2]);
  if (tw_module_open(argv[1], NULL, &module, &error)) return failed(error);
  if (tw_session_create(module, &options, &session, &error)) return failed(error);
  for (int i = 4; i < argc; ++i)
    if (give(session, (size_t)(i - 4), argv[i])) return 1;
  if (tw_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &error)) return failed(error);
  DLTensor out;
  if (tw_session_get_output(session, tw_session_output_name(session, 0), &out, &error))
    return failed(error);
  const size_t bytes = bytes_of(out.shape, out.ndim, out.dtype);
  FILE* file = fopen(argv[3], "wb");
  if (file == NULL || fwrite((char*)out.data + out.byte_offset, 1, bytes, file) != bytes ||
      fclose(file) != 0) {
    fprintf(stderr, "error: %s cannot be written\n", argv[3]);
    return 1;
  }
  tw_session_close(session);
  tw_module_close(module);
  return 0;
}
