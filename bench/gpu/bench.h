/* The host of a benchmark on a GPU: the gradient that Slope makes (CUDA C++ in the namespace `slope`,
 * included before this) against one written by hand, on the same data, compiled by the same nvcc with the
 * same options.
 *
 * Measured by events, several launches between two of them, so that what a launch costs the host does not
 * count; the median of RUNS. The program prints one line: its name, how many items there are, nanoseconds per
 * item by Slope and by hand, and the greatest difference, relative to the greatest number of a column. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define DERIVATIVE_H /* bench/NAME.c, included for what it does by hand, needs nothing of it */
#define BY_HAND      static inline __device__
#define restrict __restrict__
#define R(constant) ((real)(constant))

enum { GROUP = 256, RUNS = 21, LAUNCHES = 5 };

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s\n", cudaGetErrorString(error));
    exit(1);
}

/* Numbers from low to high, always the same ones. */
template <typename Real> static std::vector<Real> numbers(size_t count, Real low, Real high) {
    static uint32_t state = 12345;
    std::vector<Real> all(count);
    for (Real &number : all) {
        state = state * 1664525u + 1013904223u;
        number = low + (high - low) * (Real)(state >> 8) / (Real)(1 << 24);
    }
    return all;
}

/* Memory of the device; to a buffer of Slope it is the same by `buffer`. */
template <typename Real> struct Memory {
    Real *data;
    size_t count;

    explicit Memory(size_t size) : count(size) {
        check(cudaMalloc(&data, count * sizeof(Real)));
        clear();
    }
    explicit Memory(const std::vector<Real> &from) : Memory(from.size()) {
        check(cudaMemcpy(data, from.data(), count * sizeof(Real), cudaMemcpyHostToDevice));
    }
    void clear() { check(cudaMemset(data, 0, count * sizeof(Real))); }
    std::vector<Real> read() const {
        std::vector<Real> all(count);
        check(cudaMemcpy(all.data(), data, count * sizeof(Real), cudaMemcpyDeviceToHost));
        return all;
    }
    template <typename Buffer> Buffer buffer() const {
        Buffer b;
        b.count = count * sizeof(Real) / sizeof *b.data;
        b.data = (decltype(b.data))data;
        return b;
    }
};

/* Makes memory a buffer of Slope's module, whose kernels find it by that name. */
template <typename Buffer, typename Real>
static void bind(cudaError_t (*set)(const Buffer *, cudaStream_t), const Memory<Real> &memory) {
    const Buffer buffer = memory.template buffer<Buffer>();
    check(set(&buffer, 0));
}

static double median(size_t items, const std::function<void()> &launch) {
    cudaEvent_t begin, end;
    std::vector<float> times;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    for (int i = 0; i < RUNS + 2; i++) {
        float time = 0;
        check(cudaEventRecord(begin));
        for (int k = 0; k < LAUNCHES; k++) launch();
        check(cudaEventRecord(end));
        check(cudaEventSynchronize(end));
        check(cudaEventElapsedTime(&time, begin, end));
        if (i >= 2) times.push_back(time);
    }
    std::sort(times.begin(), times.end());
    return (double)times[RUNS / 2] * 1e6 / (double)items / LAUNCHES;
}

/* Columns: numbers that belong together repeat after that many. */
template <typename Real>
static double difference(const std::vector<Real> &found, const std::vector<Real> &expected, size_t columns) {
    double worst = 0;
    for (size_t column = 0; column < columns; column++) {
        double scale = 1e-30;
        for (size_t i = column; i < expected.size(); i += columns)
            scale = std::max(scale, std::fabs((double)expected[i]));
        for (size_t i = column; i < expected.size(); i += columns) {
            const double error = std::fabs((double)found[i] - (double)expected[i]) / scale;
            worst = error <= worst ? worst : error; /* keeps a NaN */
        }
    }
    return worst;
}

/* Both write to `out`, or add to it. */
template <typename Real>
static int compare(const char *name, size_t items, Memory<Real> &out, size_t columns,
                   const std::function<void()> &by_slope, const std::function<void()> &by_hand) {
    out.clear();
    by_slope();
    const std::vector<Real> found = out.read();
    out.clear();
    by_hand();
    const double worst = difference(found, out.read(), columns);
    const double slope = median(items, by_slope), hand = median(items, by_hand);
    check(cudaGetLastError());
    printf("%s %zu %.6f %.6f %.2g\n", name, items, slope, hand, worst);
    return worst < 1e-2 ? 0 : 1;
}

static inline dim3 groups(size_t items) { return dim3((unsigned)((items + GROUP - 1) / GROUP)); }

/* Adds up over the threads of a group, by shuffles and shared memory; one thread per number adds it to
 * `to`. */
template <int COUNT> static __device__ void add_up(const float (&mine)[COUNT], float *to) {
    __shared__ float sums[GROUP / 32][COUNT];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        float sum = mine[k];
        for (int distance = 16; distance; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
        if (lane == 0) sums[warp][k] = sum;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < COUNT; k += GROUP) {
        float sum = 0;
        for (int i = 0; i < GROUP / 32; i++) sum += sums[i][k];
        atomicAdd(&to[k], sum);
    }
    __syncthreads();
}
