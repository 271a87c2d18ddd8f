/*
 * Tilewright's runtime: load a compiled package (.twm) and run it. Plain C99.
 *
 * Every function that can fail returns 0 or one of enum tw_code; with a non-null `error` it also
 * stores an object that says what went wrong, to be freed with tw_error_free. Structs begin with
 * struct_size = sizeof of the struct as the caller was compiled, so that either side may be newer.
 * Strings are UTF-8. A module may be used by many threads, a session by one at a time. Loading a
 * package runs its code: open only what you trust.
 */
#ifndef TILEWRIGHT_RUNTIME_H_
#define TILEWRIGHT_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors are described as by DLPack 0.6 or newer; include dlpack.h first to use its own types. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLOpenCL = 4, kDLExtDev = 12 } DLDeviceType;
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;
typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4 } DLDataTypeCode;
typedef struct {
  uint8_t code; /* DLDataTypeCode, or TW_DL_BOOL */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* null: row-major without gaps, the only layout accepted here */
  uint64_t byte_offset;
} DLTensor;
#endif

/* DLPack's kDLBool, which version 0.6 lacks. Bool tensors may also be given as 8-bit kDLUInt. */
#define TW_DL_BOOL 6

enum tw_code {
  TW_OK = 0,
  TW_INTERNAL = 1,    /* a bug in Tilewright */
  TW_INVALID = 2,     /* wrong name, type, shape, argument or value of an input */
  TW_UNSUPPORTED = 3, /* the package needs a newer runtime */
  TW_DEVICE = 4,      /* no driver, no such device, or code that it cannot run */
  TW_PACKAGE = 8,     /* not a package, damaged, too new, or for another CPU */
  TW_IO = 20,
  TW_MEMORY = 21
};

typedef struct tw_error tw_error;
typedef struct tw_module tw_module;   /* an open package */
typedef struct tw_session tw_session; /* one instance of it: memory and threads */

/* "0.1.0" */
const char* tw_version(void);

int tw_error_code(const tw_error* error);
/* Lines for people, valid until the error is freed. */
const char* tw_error_text(const tw_error* error);
void tw_error_free(tw_error* error);

typedef struct tw_open_options {
  uint64_t struct_size;
  int32_t verify_weights; /* nonzero: also hash the weights, not only manifest and code */
} tw_open_options;

/* `options` may be null. */
int tw_module_open(const char* path, const tw_open_options* options, tw_module** module,
                   tw_error** error);
/* Sessions of the module stay usable. */
void tw_module_close(tw_module* module);

typedef struct tw_session_options {
  uint64_t struct_size;
  int32_t threads;         /* 0: all CPUs of the process, or $TILEWRIGHT_THREADS */
  int32_t flush_denormals; /* nonzero: treat denormal floats as zero */
  /* Of a package for a GPU: "opencl:1", "cuda:0", or "opencl:TEXT" with a part of the device's
     name; null: the first device that the package's code is for. */
  const char* device;
} tw_session_options;

/* `options` may be null. */
int tw_session_create(tw_module* module, const tw_session_options* options, tw_session** session,
                      tw_error** error);
void tw_session_close(tw_session* session);

typedef struct tw_tensor_info {
  uint64_t struct_size;
  const char* name;
  const int64_t* shape;
  int32_t ndim;
  DLDataType dtype;
  int32_t dynamic_axis; /* this axis may be shorter than `shape` says; -1: none */
} tw_tensor_info;

size_t tw_session_input_count(const tw_session* session);
size_t tw_session_output_count(const tw_session* session);
/* Null beyond the last one. Names and shapes live as long as the session. */
const char* tw_session_input_name(const tw_session* session, size_t index);
const char* tw_session_output_name(const tw_session* session, size_t index);
int tw_session_input_info(const tw_session* session, size_t index, tw_tensor_info* info,
                          tw_error** error);
int tw_session_output_info(const tw_session* session, size_t index, tw_tensor_info* info,
                           tw_error** error);

/* Copies a tensor for this and all later runs. */
int tw_session_set_input(tw_session* session, const char* name, const DLTensor* tensor,
                         tw_error** error);

/*
 * Runs once. The given inputs are read in place (64-byte aligned memory is not copied); all others
 * must have been set before. Outputs whose `data` is not null are written to that memory, which has
 * room for the full shape and says so; their shape[dynamic axis] then becomes the real extent.
 * Outputs whose `data` is null become views as from tw_session_get_output. Null names mean the
 * first inputs or outputs in order.
 */
int tw_session_run(tw_session* session, const char* const* input_names, const DLTensor* inputs,
                   size_t input_count, const char* const* output_names, DLTensor* outputs,
                   size_t output_count, tw_error** error);

/* A view of the session's memory, valid until the next call with this session. */
int tw_session_get_output(tw_session* session, const char* name, DLTensor* tensor,
                          tw_error** error);

/* Times of one step of the program over all runs of the session. */
typedef struct tw_step_info {
  uint64_t struct_size;
  const char* name;
  const char* callee; /* kernel or host function */
  int64_t calls, total_ns, min_ns, last_ns;
} tw_step_info;

size_t tw_session_step_count(const tw_session* session);
int tw_session_step_info(const tw_session* session, size_t index, tw_step_info* info,
                         tw_error** error);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_RUNTIME_H_ */
