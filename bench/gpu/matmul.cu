/* The product of two matrices, a thread for each element. By hand, a group reads tiles of both into shared memory. */
#include "bench.h"

namespace hand {
enum { TILE = 16 };

static __global__ void __launch_bounds__(TILE *TILE) item(const float *left, const float *right, float *product, int size) {
    __shared__ float rows[TILE][TILE], columns[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * TILE + y, j = blockIdx.x * TILE + x;
    float sum = 0;
    for (int first = 0; first < size; first += TILE) {
        rows[y][x] = left[i * size + first + x];
        columns[y][x] = right[(first + y) * size + j];
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += rows[y][k] * columns[k][x];
        __syncthreads();
    }
    product[i * size + j] = sum;
}
} // namespace hand

int main() {
    const int size = 1024, count = size * size;
    Memory<float> left(numbers<float>(count, -1, 1)), right(numbers<float>(count, -1, 1)), product(count);
    bind(slope::left_set, left);
    bind(slope::right_set, right);
    bind(slope::product_set, product);
    check(slope::size_set(&size, 0));
    const dim3 tiles(size / hand::TILE, size / hand::TILE), threads(hand::TILE, hand::TILE);
    return compare<float>(
        "matmul", count, product, 1, [&] { slope::item_launch(groups(count), 0); },
        [&] { hand::item<<<tiles, threads>>>(left.data, right.data, product.data, size); });
}
