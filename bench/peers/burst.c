/* Denominators of the comparison, measured in the process of each peer: multiply-adds on registers
 * only, and reads of memory larger than the caches. Wall time over all threads, so that anything
 * else that runs on these CPUs shows. Compiled on the machine it measures. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define CHAINS 12 /* enough to cover the latency of two pipes */
typedef float Vector __attribute__((vector_size(4 * LANES)));

typedef struct {
  pthread_barrier_t* start;
  const cpu_set_t* cpus;
  int turn;
  double seconds, begin, end, work;
  char* memory;
  size_t bytes;
} Job;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Puts this thread on the CPU number `turn` of those in `all`: left to the scheduler, two threads
 * that were just started may share one for longer than a burst takes. */
static void stay_on(const cpu_set_t* all, int turn) {
  int left = turn % CPU_COUNT(all);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, all) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

static void* fma_job(void* argument) {
  Job* job = argument;
  stay_on(job->cpus, job->turn);
  Vector acc[CHAINS], x, y;
  for (int l = 0; l < LANES; ++l) x[l] = 0.999f, y[l] = 1e-3f;
#pragma GCC unroll 12
  for (int c = 0; c < CHAINS; ++c) acc[c] = x;
  const int steps = 4000;
  pthread_barrier_wait(job->start);
  job->begin = now();
  do {
    for (int i = 0; i < steps; ++i) {
#pragma GCC unroll 12
      for (int c = 0; c < CHAINS; ++c) {
        acc[c] = acc[c] * x + y;
#if defined(__x86_64__)
        __asm__ volatile("" : "+v"(acc[c])); /* keeps every step */
#else
        __asm__ volatile("" : "+w"(acc[c]));
#endif
      }
    }
    job->work += 2.0 * steps * CHAINS * LANES;
    job->end = now();
  } while (job->end - job->begin < job->seconds);
  return NULL;
}

static void* read_job(void* argument) {
  Job* job = argument;
  stay_on(job->cpus, job->turn);
  memset(job->memory, 1, job->bytes); /* each thread touches its own pages */
  Vector sum[8] = {0};
  pthread_barrier_wait(job->start);
  job->begin = now();
  do {
    const Vector* p = (const Vector*)job->memory;
    for (size_t i = 0; i + 8 <= job->bytes / sizeof(Vector); i += 8) {
#pragma GCC unroll 8
      for (int c = 0; c < 8; ++c) sum[c] += p[i + (size_t)c];
      __builtin_prefetch((const char*)(p + i) + 2048);
    }
#if defined(__x86_64__)
    for (int c = 0; c < 8; ++c) __asm__ volatile("" : "+v"(sum[c]));
#else
    for (int c = 0; c < 8; ++c) __asm__ volatile("" : "+w"(sum[c]));
#endif
    job->work += (double)job->bytes;
    job->end = now();
  } while (job->end - job->begin < job->seconds);
  return NULL;
}

/* units: work per second of all threads together, from the first start to the last end. */
static double together(void* (*run)(void*), int threads, double seconds, size_t bytes) {
  Job* jobs = calloc((size_t)threads, sizeof *jobs);
  pthread_t* handles = calloc((size_t)threads, sizeof *handles);
  pthread_barrier_t start;
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof cpus, &cpus);
  pthread_barrier_init(&start, NULL, (unsigned)threads);
  for (int t = 0; t < threads; ++t) {
    jobs[t] = (Job){
        .start = &start, .cpus = &cpus, .turn = t, .seconds = seconds, .bytes = bytes};
    if (bytes != 0) jobs[t].memory = aligned_alloc(4096, bytes);
  }
  for (int t = 1; t < threads; ++t) pthread_create(&handles[t], NULL, run, &jobs[t]);
  run(&jobs[0]);
  for (int t = 1; t < threads; ++t) pthread_join(handles[t], NULL);
  sched_setaffinity(0, sizeof cpus, &cpus);
  double begin = jobs[0].begin, end = jobs[0].end, work = 0;
  for (int t = 0; t < threads; ++t) {
    if (jobs[t].begin < begin) begin = jobs[t].begin;
    if (jobs[t].end > end) end = jobs[t].end;
    work += jobs[t].work;
    free(jobs[t].memory);
  }
  pthread_barrier_destroy(&start);
  free(handles);
  free(jobs);
  return work / (end - begin);
}

/* units: flop/s of `threads` threads over about `seconds`. */
double burst_fma(int threads, double seconds) { return together(fma_job, threads, seconds, 0); }

/* units: byte/s read, `bytes` per thread. */
double burst_read(int threads, double seconds, int64_t bytes) {
  return together(read_job, threads, seconds, (size_t)bytes);
}
