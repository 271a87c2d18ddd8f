// A stand-in for NVIDIA's driver: memory is the host's, its kernels are C functions, and every
// call that changes something is logged. The first bytes of an image say what it is: ELF for a
// cubin, `.version` for PTX.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kSuccess = 0,
  kOutOfMemory = 2,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNotFound = 500,
  kMostCalls = 64
};

struct Function {
  const char* name;
  int buffers, scalars, maps;
  void (*run)(const unsigned* grid, const unsigned* block, void* const* parameters);
};
/// What a map holds here; the driver's is opaque and of the same size.
struct Map {
  float* address;
  uint64_t dims[2], stride;
  uint32_t box[2];
  uint64_t unused[11];
};
struct Event {
  int64_t tick;
};
/// A node of a graph: a call of a function, or the time of an event.
struct Launch {
  struct Event* event;
  const struct Function* function;
  unsigned grid[3], block[3];
  uint64_t values[8];
  struct Map map;
};
struct Graph {
  int count;
  struct Launch launches[kMostCalls];
};
struct Stream {
  struct Graph* capture;
};

static struct {
  char log[1 << 14];
  size_t logged;
  int devices, major, minor, depth;
  char failing[64];
  unsigned shared[3];  // bytes that a launch of each function may ask for
  int code;
  int64_t live, ticks;
  float kernel_ms;  // what each kernel takes
} state = {.devices = 1, .major = 9};

const char* fake_cuda_log(void) { return state.log; }
/// Objects and memory that were made and not released.
int64_t fake_cuda_live(void) { return state.live; }
void fake_cuda_kernel_ms(float ms) { state.kernel_ms = ms; }
/// Starts afresh; the entry point `failing`, if any, gives `code` from now on.
void fake_cuda_setup(int devices, int major, int minor, const char* failing, int code) {
  memset(&state, 0, sizeof state);
  state.devices = devices;
  state.major = major;
  state.minor = minor;
  state.code = code;
  state.kernel_ms = 0.25f;
  if (failing != NULL) strncpy(state.failing, failing, sizeof state.failing - 1);
}

static void note(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t room = sizeof state.log - state.logged;
  const int length = vsnprintf(state.log + state.logged, room, format, arguments);
  va_end(arguments);
  if (length > 0 && (size_t)length < room) state.logged += (size_t)length;
}
static int result_of(const char* call) {
  return strcmp(call, state.failing) == 0 ? state.code : kSuccess;
}
/// For calls that need a current context.
static int enter(const char* call) { return state.depth > 0 ? result_of(call) : kInvalidContext; }

static float* floats(void* parameter) { return (float*)(uintptr_t)*(uint64_t*)parameter; }

static void run_scale(const unsigned* grid, const unsigned* block, void* const* parameters) {
  const float *x = floats(parameters[0]), *w = floats(parameters[1]);
  float* to = floats(parameters[2]);
  const int64_t shift = *(int64_t*)parameters[3];
  const unsigned rows = grid[1] * block[1], columns = grid[0] * block[0];
  for (unsigned n = 0; n < grid[2] * block[2]; ++n)
    for (unsigned r = 0; r < rows; ++r)
      for (unsigned c = 0; c < columns; ++c) {
        const unsigned i = (n * rows + r) * columns + c;
        to[i] = x[i] * w[r] + (float)shift;
      }
}
static void run_sum(const unsigned* grid, const unsigned* block, void* const* parameters) {
  const float* x = floats(parameters[0]);
  float* to = floats(parameters[1]);
  for (unsigned row = 0; row < grid[0] * grid[1]; ++row) {
    to[row] = 0;
    for (unsigned c = 0; c < block[0]; ++c) to[row] += x[row * block[0] + c];
  }
}
/// The box at the end of a map's rows and columns, of which half lies outside: zeros.
static void run_fetch(const unsigned* grid, const unsigned* block, void* const* parameters) {
  (void)grid, (void)block;
  float* to = floats(parameters[1]);
  const struct Map* map = parameters[2];
  for (uint32_t r = 0; r < map->box[1]; ++r)
    for (uint32_t c = 0; c < map->box[0]; ++c) {
      const uint64_t row = map->dims[1] - map->box[1] / 2 + r;
      const uint64_t column = map->dims[0] - map->box[0] / 2 + c;
      to[r * map->box[0] + c] = row < map->dims[1] && column < map->dims[0]
                                    ? map->address[row * map->stride / 4 + column]
                                    : 0;
    }
}
static const struct Function functions[] = {
    {"scale", 3, 1, 0, run_scale}, {"sum", 2, 0, 0, run_sum}, {"fetch", 2, 0, 1, run_fetch}};

static void run_launch(struct Launch* launch) {
  void* parameters[8];
  const struct Function* function = launch->function;
  for (int i = 0; i < 8; ++i) parameters[i] = &launch->values[i];
  if (function->maps > 0) parameters[function->buffers + function->scalars] = &launch->map;
  launch->function->run(launch->grid, launch->block, parameters);
  ++state.ticks;
}

int cuInit(unsigned flags) { return flags == 0 ? result_of("cuInit") : 1; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuGetErrorName(int code, const char** text) {
  *text = code == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
  return kSuccess;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory ? "out of memory" : "something else";
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = state.devices;
  return kSuccess;
}
int cuDeviceGet(int* device, int index) {
  *device = 100 + index;
  return kSuccess;
}
int cuDeviceGetName(char* name, int length, int device) {
  snprintf(name, (size_t)length, "Fake GPU %d", device - 100);
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)1 << 30;
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  *value = attribute == 1    ? 1024
           : attribute == 8  ? 49152
           : attribute == 16 ? 132
           : attribute == 75 ? state.major
           : attribute == 76 ? state.minor
           : attribute == 97 ? 232448
                             : -1;
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  const int code = result_of("cuDevicePrimaryCtxRetain");
  if (code != kSuccess) return code;
  *context = (void*)(intptr_t)device;
  ++state.live;
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  --state.live;
  return kSuccess;
}
int cuCtxPushCurrent_v2(void* context) {
  if (context == NULL) return kInvalidContext;
  ++state.depth;
  return kSuccess;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = NULL;
  --state.depth;
  return kSuccess;
}
int cuModuleLoadDataEx(void** module, const char* image, unsigned count, int* options,
                       void** values) {
  const int code = enter("cuModuleLoadDataEx");
  if (code != kSuccess) {
    if (count == 2 && options[0] == 5 && options[1] == 6)
      snprintf((char*)values[0], (size_t)values[1], "ptxas says no");
    return code;
  }
  const int cubin = memcmp(image, "\177ELF", 4) == 0;
  if (!cubin && memcmp(image, ".version", 8) != 0) return kInvalidImage;
  note("module %s\n", cubin ? "cubin" : "ptx");
  *module = malloc(1);
  ++state.live;
  return kSuccess;
}
int cuModuleUnload(void* module) {
  free(module);
  --state.live;
  return enter("cuModuleUnload");
}
int cuModuleGetFunction(const void** function, void* module, const char* name) {
  (void)module;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i)
    if (strcmp(functions[i].name, name) == 0) {
      *function = &functions[i];
      return enter("cuModuleGetFunction");
    }
  return kNotFound;
}
int cuFuncGetAttribute(int* value, int attribute, const void* function) {
  (void)function;
  *value = attribute == 0 ? 512 : attribute == 1 ? 128 : -1;
  return enter("cuFuncGetAttribute");
}
int cuFuncSetAttribute(const struct Function* function, int attribute, int value) {
  if (attribute != 8) return 1;
  const int code = enter("cuFuncSetAttribute");
  if (code == kSuccess) state.shared[function - functions] = (unsigned)value;
  return code;
}
int cuMemAlloc_v2(uint64_t* memory, size_t bytes) {
  const int code = bytes > (size_t)1 << 30 ? kOutOfMemory : enter("cuMemAlloc");
  if (code != kSuccess) return code;
  note("alloc %zu\n", bytes);
  *memory = (uint64_t)(uintptr_t)malloc(bytes);
  ++state.live;
  return kSuccess;
}
int cuMemFree_v2(uint64_t memory) {
  free((void*)(uintptr_t)memory);
  --state.live;
  return enter("cuMemFree");
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, struct Stream* stream) {
  (void)stream;
  memcpy((void*)(uintptr_t)to, from, bytes);
  note("to device %zu\n", bytes);
  return enter("cuMemcpyHtoDAsync");
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, struct Stream* stream) {
  (void)stream;
  memcpy(to, (const void*)(uintptr_t)from, bytes);
  note("to host %zu\n", bytes);
  return enter("cuMemcpyDtoHAsync");
}
int cuStreamCreate(struct Stream** stream, unsigned flags) {
  const int code = flags == 1 ? enter("cuStreamCreate") : 1;
  if (code != kSuccess) return code;
  *stream = calloc(1, sizeof **stream);
  ++state.live;
  return kSuccess;
}
int cuStreamDestroy_v2(struct Stream* stream) {
  free(stream);
  --state.live;
  return enter("cuStreamDestroy");
}
int cuStreamSynchronize(struct Stream* stream) {
  (void)stream;
  note("wait\n");
  return enter("cuStreamSynchronize");
}
int cuStreamBeginCapture_v2(struct Stream* stream, int mode) {
  const int code = mode == 1 ? enter("cuStreamBeginCapture") : 1;
  if (code != kSuccess) return code;
  note("capture\n");
  stream->capture = calloc(1, sizeof *stream->capture);
  ++state.live;
  return kSuccess;
}
int cuStreamEndCapture(struct Stream* stream, struct Graph** graph) {
  const int code = enter("cuStreamEndCapture");
  *graph = code == kSuccess ? stream->capture : NULL;
  if (code != kSuccess) {
    free(stream->capture);
    --state.live;
  }
  stream->capture = NULL;
  return code;
}
int cuGraphInstantiateWithFlags(struct Graph** exec, const struct Graph* graph,
                                unsigned long long flags) {
  const int code = flags == 0 ? enter("cuGraphInstantiateWithFlags") : 1;
  if (code != kSuccess) return code;
  note("instantiate %d\n", graph->count);
  *exec = malloc(sizeof **exec);
  **exec = *graph;
  ++state.live;
  return kSuccess;
}
int cuGraphLaunch(struct Graph* exec, struct Stream* stream) {
  (void)stream;
  note("graph\n");
  for (int i = 0; i < exec->count; ++i) {
    struct Launch* node = &exec->launches[i];
    if (node->event != NULL)
      node->event->tick = state.ticks;
    else
      run_launch(node);
  }
  return enter("cuGraphLaunch");
}
int cuGraphDestroy(struct Graph* graph) {
  free(graph);
  --state.live;
  return kSuccess;
}
int cuGraphExecDestroy(struct Graph* exec) {
  free(exec);
  --state.live;
  return kSuccess;
}
int cuEventCreate(struct Event** event, unsigned flags) {
  const int code = flags == 0 ? enter("cuEventCreate") : 1;
  if (code != kSuccess) return code;
  *event = calloc(1, sizeof **event);
  ++state.live;
  return kSuccess;
}
int cuEventRecordWithFlags(struct Event* event, struct Stream* stream, unsigned flags) {
  const unsigned external = 1;
  if (stream->capture == NULL) {
    if (flags != 0) return 1;
    note("event\n");
    event->tick = state.ticks;
    return enter("cuEventRecordWithFlags");
  }
  if (flags != external) return 1;
  if (stream->capture->count < kMostCalls)
    stream->capture->launches[stream->capture->count++] = (struct Launch){.event = event};
  return enter("cuEventRecordWithFlags");
}
int cuEventElapsedTime(float* milliseconds, const struct Event* from, const struct Event* to) {
  *milliseconds = state.kernel_ms * (float)(to->tick - from->tick);
  return enter("cuEventElapsedTime");
}
int cuEventDestroy_v2(struct Event* event) {
  free(event);
  --state.live;
  return kSuccess;
}
int cuTensorMapEncodeTiled(struct Map* map, int type, unsigned rank, void* address,
                           const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                           const uint32_t* steps, int interleave, int swizzle, int promotion,
                           int fill) {
  const int code = enter("cuTensorMapEncodeTiled");
  if (code != kSuccess) return code;
  if ((uintptr_t)map % 64 != 0 || (uintptr_t)address % 16 != 0 || rank != 2) return 1;
  note("map type %d %llux%llu by %llu box %ux%u steps %ux%u %d %d %d %d\n", type,
       (unsigned long long)dims[0], (unsigned long long)dims[1], (unsigned long long)strides[0],
       box[0], box[1], steps[0], steps[1], interleave, swizzle, promotion, fill);
  *map = (struct Map){address, {dims[0], dims[1]}, strides[0], {box[0], box[1]}, {0}};
  return kSuccess;
}
int cuLaunchKernel(const struct Function* function, unsigned gx, unsigned gy, unsigned gz,
                   unsigned bx, unsigned by, unsigned bz, unsigned shared, struct Stream* stream,
                   void** parameters, void** extra) {
  if (shared > state.shared[function - functions] || extra != NULL) return 1;
  const int code = enter("cuLaunchKernel");
  if (code != kSuccess) return code;
  struct Launch launch = {.function = function, .grid = {gx, gy, gz}, .block = {bx, by, bz}};
  const int values = function->buffers + function->scalars;
  for (int i = 0; i < values; ++i) memcpy(&launch.values[i], parameters[i], 8);
  if (function->maps > 0) memcpy(&launch.map, parameters[values], sizeof launch.map);
  note("launch %s %ux%ux%u %ux%ux%u", function->name, gx, gy, gz, bx, by, bz);
  note(shared > 0 ? " %u bytes\n" : "\n", shared);
  if (stream->capture == NULL)
    run_launch(&launch);
  else if (stream->capture->count < kMostCalls)
    stream->capture->launches[stream->capture->count++] = launch;
  return kSuccess;
}
