/* The host of cuda_kernel.slang: 1000 groups, against sums of the CPU. */
#include <vector>

template <class T> static T *on_device(const std::vector<T> &values) {
    T *memory = nullptr;
    if (cudaMalloc(&memory, values.size() * sizeof(T)) != cudaSuccess) exit(2);
    cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
    return memory;
}

template <class T> static std::vector<T> from_device(const T *memory, size_t count) {
    std::vector<T> values(count);
    const cudaError_t error = cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost);
    if (error != cudaSuccess) fprintf(stderr, "%s\n", cudaGetErrorString(error));
    return values;
}

int main() {
    const int groups = 1000, count = groups * 64;
    cudaDeviceSetLimit(cudaLimitMallocHeapSize, (size_t)512 << 20); /* for what reverse passes keep */
    std::vector<float> inputs(count);
    for (int i = 0; i < count; i++) inputs[i] = (float)(i % 64 % 5) + 0.25f;
    const slope::Weights weights = {{0.5f, 2.0f}, 0.75f};
    const float offset = 0.25f, seed = 1.0f;
    const slope::Buffer_Weights given = {on_device(std::vector<slope::Weights>{weights}), 1};
    const slope::Buffer_float from = {on_device(inputs), (uint64_t)count};
    const slope::Buffer_float sums = {on_device(std::vector<float>(3)), 3};
    const slope::Buffer_float results = {on_device(std::vector<float>(count)), (uint64_t)count};
    const slope::Buffer_uint counts = {on_device(std::vector<uint32_t>(3)), 3};
    slope::weights_set(&given, 0);
    slope::inputs_set(&from, 0);
    slope::gradients_set(&sums, 0);
    slope::results_set(&results, 0);
    slope::counts_set(&counts, 0);
    slope::offset_set(&offset, 0);
    cudaError_t error = slope::fit_launch(dim3(groups, 1, 1), seed, 0);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    if (error != cudaSuccess) return fprintf(stderr, "%s\n", cudaGetErrorString(error)), 1;
    double scale = 0, shift = 0, power = 0, worst = 0;
    const std::vector<float> printed = from_device(results.data, (size_t)count);
    for (int i = 0; i < count; i++) {
        const double x = inputs[i / 64 * 64 + 63 - i % 64] + offset, q = weights.power;
        double sum = 0, by_power = 0, by_scale = 0, by_x = 0;
        for (int k = 0; k < (int)x + 1; k++) {
            by_power = by_power * q + sum;
            by_scale = by_scale * q + x;
            by_x = by_x * q + weights.scale.x;
            sum = sum * q + weights.scale.x * x;
        }
        scale += by_scale, shift += 1, power += by_power;
        worst = fmax(worst, fabs(printed[i] - (by_x + 10 + i % 64)));
    }
    const std::vector<float> found = from_device(sums.data, 3);
    const std::vector<uint32_t> counted = from_device(counts.data, 3);
    printf("%d %d %d %d\n", fabs(found[0] / scale - 1) < 1e-4, fabs(found[1] / shift - 1) < 1e-4,
           fabs(found[2] / power - 1) < 1e-4, worst < 1e-4);
    printf("%u %u %u\n", counted[0], counted[1], counted[2]);
    return 0;
}
