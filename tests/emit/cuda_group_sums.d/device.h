/* A GPU for one kernel, on threads of the host: a group at a time, each lane for itself (which CUDA allows:
 * it may see the lanes of a warp in any parts), or, with WHOLE_WARPS, all lanes together, in kernels where
 * they never part, but for those that return at once: `warp_lanes`. To be included before CUDA C++ as NVRTC
 * takes it, which brings its own integer types; hence no headers. */
#define __CUDACC_RTC__
#define __global__
#define __device__
#define __constant__
#define __shared__
#define __noinline__
#define __launch_bounds__(...)
#define __syncthreads() pthread_barrier_wait(barrier)
#define asm(...) lane = threadIdx.x % 32 /* the only use */

typedef unsigned long size_t;
struct Index {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static thread_local Index threadIdx, blockIdx, blockDim, gridDim;
static long barrier[16];

extern "C" {
int printf(const char *, ...);
void *memset(void *, int, size_t);
void *memcpy(void *, const void *, size_t);
int pthread_create(unsigned long *, const void *, void *(*)(void *), void *);
int pthread_join(unsigned long, void **);
int pthread_barrier_init(void *, const void *, unsigned);
int pthread_barrier_wait(void *);
}

static int __ffs(int bits) { return __builtin_ffs(bits); }
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
#ifdef WHOLE_WARPS
static long meetings[32][16]; /* one for each warp */
static double shown[32][32];
static unsigned warp_lanes = ~0u;
/* What all lanes show, until they have seen it. */
template <typename See> static double meet(double value, See see) {
    const unsigned warp = threadIdx.x / 32;
    shown[warp][threadIdx.x % 32] = value;
    pthread_barrier_wait(meetings[warp]);
    value = see(shown[warp]);
    pthread_barrier_wait(meetings[warp]);
    return value;
}
static double __shfl_sync(unsigned, double value, unsigned lane) {
    return meet(value, [=](const double *all) { return all[lane]; });
}
static unsigned __activemask() { return warp_lanes; }
static void __syncwarp() { pthread_barrier_wait(meetings[threadIdx.x / 32]); }
static double __shfl_xor_sync(unsigned, double value, unsigned bit) {
    return __shfl_sync(~0u, value, threadIdx.x % 32 ^ bit);
}
static double __shfl_down_sync(unsigned, double value, unsigned distance) {
    return __shfl_sync(~0u, value, (threadIdx.x + distance) % 32);
}
static bool __all_sync(unsigned, bool value) {
    return meet(value, [](const double *all) {
        double least = 1;
        for (unsigned i = 0; i < 32; i++)
            if ((warp_lanes >> i & 1) && all[i] < least) least = all[i];
        return least;
    });
}
static void __match_all_sync(unsigned, unsigned long long value, int *same) {
    *same = __all_sync(~0u, __shfl_sync(~0u, (double)value, __ffs(warp_lanes) - 1) == (double)value);
}
#else
static void __match_all_sync(unsigned, unsigned long long, int *same) { *same = 1; }
template <typename T> static T __shfl_sync(unsigned, T value, int) { return value; }
static unsigned __activemask() { return 1u << threadIdx.x % 32; }
static void __syncwarp() {}
template <typename T> static T __shfl_xor_sync(unsigned, T value, int) { return value; }
static bool __all_sync(unsigned, bool value) { return value; }
template <typename T> static T __shfl_down_sync(unsigned, T value, int) { return value; }
#endif
static bool __isLocal(const void *p) {
    char here;
    const long distance = (const char *)p - &here;
    return distance > -65536 && distance < 65536;
}
static double atomicAdd(double *p, double value) {
    unsigned long long old = __atomic_load_n((unsigned long long *)p, __ATOMIC_SEQ_CST), now;
    double sum;
    do {
        memcpy(&sum, &old, 8);
        sum += value;
        memcpy(&now, &sum, 8);
    } while (!__atomic_compare_exchange_n((unsigned long long *)p, &old, now, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST));
    return sum - value;
}
static float atomicAdd(float *p, float value) {
    unsigned old = __atomic_load_n((unsigned *)p, __ATOMIC_SEQ_CST), now;
    float sum;
    do {
        memcpy(&sum, &old, 4);
        sum += value;
        memcpy(&now, &sum, 4);
    } while (
        !__atomic_compare_exchange_n((unsigned *)p, &old, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return sum - value;
}
static unsigned long long atomicCAS(unsigned long long *p, unsigned long long expected,
                                    unsigned long long wanted) {
    __atomic_compare_exchange_n(p, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

struct Thread {
    Index index, group, size, groups;
    void (*kernel)();
};

static void *run_thread(void *data) {
    const Thread *thread = (const Thread *)data;
    threadIdx = thread->index;
    blockIdx = thread->group;
    blockDim = thread->size;
    gridDim = thread->groups;
    thread->kernel();
    return 0;
}

static void launch(void (*kernel)(), unsigned groups, unsigned size) {
    static Thread threads[1024];
    static unsigned long handles[1024];
    pthread_barrier_init(barrier, 0, size);
#ifdef WHOLE_WARPS
    for (unsigned i = 0; i < size / 32; i++)
        pthread_barrier_init(meetings[i], 0, (unsigned)__popc(warp_lanes));
#endif
    for (unsigned group = 0; group < groups; group++) {
        for (unsigned i = 0; i < size; i++) {
            threads[i] = {{i, 0, 0}, {group, 0, 0}, {size, 1, 1}, {groups, 1, 1}, kernel};
            pthread_create(&handles[i], 0, run_thread, &threads[i]);
        }
        for (unsigned i = 0; i < size; i++) pthread_join(handles[i], 0);
    }
}
