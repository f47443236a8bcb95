/* A mixture of Gaussians, a point per thread. By hand, the mixture is in shared memory, with exponentials taken once per group; terms are computed, then their parts again, and the lanes of a
 * warp add up by shuffles. */
#include "bench.h"

namespace hand {
enum { D = 8, K = 10, LOWER = D * (D - 1) / 2 };

struct Mixture {
    double alpha[K], mean[K][D], diagonal[K][D], below[K][LOWER];
};

enum { PARAMETERS = sizeof(Mixture) / sizeof(double) };

/* Q (x - mean) in `y`, x - mean in `centered`; the square of the length. */
static inline __device__ double square_distance(const Mixture &m, int k, const double (&x)[D], double (&centered)[D], double (&y)[D]) {
    const double *below = m.below[k];
    double sum = 0;
#pragma unroll
    for (int i = 0; i < D; i++) {
        centered[i] = x[i] - m.mean[k][i];
        y[i] = m.diagonal[k][i] * centered[i];
    }
#pragma unroll
    for (int i = 0; i < D; i++)
#pragma unroll
        for (int j = i + 1; j < D; j++) y[j] += *below++ * centered[i];
#pragma unroll
    for (int i = 0; i < D; i++) sum += y[i] * y[i];
    return sum;
}

static inline __device__ void add(double value, double *to) {
    for (int distance = 16; distance; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
    if (threadIdx.x % 32 == 0) atomicAdd(to, value);
}

static inline __device__ void add_term(const Mixture &m, int k, double weight, const double (&x)[D], Mixture &sums) {
    double centered[D], y[D];
    const double *below = m.below[k];
    double *below_bar = sums.below[k];
    square_distance(m, k, x, centered, y);
    add(weight, &sums.alpha[k]);
#pragma unroll
    for (int i = 0; i < D; i++) {
        double back = -weight * y[i] * m.diagonal[k][i];
        add(-weight * y[i] * centered[i] * m.diagonal[k][i] + weight, &sums.diagonal[k][i]);
#pragma unroll
        for (int j = i + 1; j < D; j++) {
            add(-weight * y[j] * centered[i], below_bar++);
            back += -weight * y[j] * *below++;
        }
        add(-back, &sums.mean[k][i]);
    }
}

static __global__ void __launch_bounds__(GROUP) item(const Mixture *mixture, const double (*points)[D], double *gradients) {
    __shared__ Mixture m, sums;
    __shared__ double constant[K];
    const int id = blockIdx.x * blockDim.x + threadIdx.x;
    double x[D], terms[K], centered[D], y[D], greatest = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < PARAMETERS; i += GROUP) {
        ((double *)&m)[i] = ((const double *)mixture)[i];
        ((double *)&sums)[i] = 0;
    }
    __syncthreads();
    if (threadIdx.x < K) {
        constant[threadIdx.x] = m.alpha[threadIdx.x];
        for (int i = 0; i < D; i++) {
            constant[threadIdx.x] += m.diagonal[threadIdx.x][i];
            m.diagonal[threadIdx.x][i] = exp(m.diagonal[threadIdx.x][i]);
        }
    }
    __syncthreads();
    for (int i = 0; i < D; i++) x[i] = points[id][i];
#pragma unroll
    for (int k = 0; k < K; k++) {
        terms[k] = constant[k] - 0.5 * square_distance(m, k, x, centered, y);
        greatest = fmax(greatest, terms[k]);
    }
#pragma unroll
    for (int k = 0; k < K; k++) sum += terms[k] = exp(terms[k] - greatest);
#pragma unroll
    for (int k = 0; k < K; k++) add_term(m, k, terms[k] / sum, x, sums);
    __syncthreads();
    for (int i = threadIdx.x; i < PARAMETERS; i += GROUP) atomicAdd(&gradients[i], ((double *)&sums)[i]);
}
} // namespace hand

int main() {
    const int count = 1 << 16;
    Memory<double> mixture(numbers<double>(hand::PARAMETERS, -0.5, 0.5)), points(numbers<double>(hand::D * count, -2, 2)),
        gradients(hand::PARAMETERS);
    bind(slope::mixture_set, mixture);
    bind(slope::points_set, points);
    bind(slope::gradients_set, gradients);
    check(slope::count_set(&count, 0));
    return compare<double>(
        "gmm", count, gradients, 1, [&] { slope::item_launch(groups(count), 0); },
        [&] {
            hand::item<<<groups(count), GROUP>>>((const hand::Mixture *)mixture.data, (const double(*)[hand::D])points.data,
                                                 gradients.data);
        });
}
