/* Bodies that attract each other, one per thread. By hand, a group reads those that attract into shared memory, a tile at a time. */
#include "bench.h"

namespace hand {
static __global__ void __launch_bounds__(GROUP) item(const float4 *bodies, float *accelerations, int count) {
    __shared__ float4 tile[GROUP];
    const int id = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 here = bodies[id];
    float x = 0, y = 0, z = 0;
    for (int first = 0; first < count; first += GROUP) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < GROUP; i++) {
            const float dx = tile[i].x - here.x, dy = tile[i].y - here.y, dz = tile[i].z - here.z;
            const float over = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), scale = tile[i].w * over * over * over;
            x += dx * scale;
            y += dy * scale;
            z += dz * scale;
        }
        __syncthreads();
    }
    accelerations[3 * id] = x;
    accelerations[3 * id + 1] = y;
    accelerations[3 * id + 2] = z;
}
} // namespace hand

int main() {
    const int count = 1 << 14;
    Memory<float> bodies(numbers<float>(4 * count, 0.1f, 1)), accelerations(3 * count);
    bind(slope::bodies_set, bodies);
    bind(slope::accelerations_set, accelerations);
    check(slope::count_set(&count, 0));
    return compare<float>(
        "nbody", count, accelerations, 3, [&] { slope::item_launch(groups(count), 0); },
        [&] { hand::item<<<groups(count), GROUP>>>((const float4 *)bodies.data, accelerations.data, count); });
}
