/* Times the kernel of splat.slang over a million pixels, and compares some of its gradient with differences computed here. */
#include <algorithm>
#include <vector>

enum { COUNT = 64, WIDTH = 1024, PIXELS = WIDTH * WIDTH, RUNS = 20 };

static double brightness(const std::vector<slope::Gaussian> &gaussians, double x, double y) {
    double light[3] = {0}, through = 1;
    for (const slope::Gaussian &g : gaussians) {
        const double dx = x - g.center.x, dy = y - g.center.y;
        const double alpha =
            g.opacity * exp(-0.5 * (g.conic.x * dx * dx + g.conic.z * dy * dy) - g.conic.y * dx * dy);
        light[0] += through * alpha * g.color.x;
        light[1] += through * alpha * g.color.y;
        light[2] += through * alpha * g.color.z;
        through *= 1 - alpha;
    }
    return light[0] * light[0] + light[1] * light[1] + light[2] * light[2];
}

static double total(const std::vector<slope::Gaussian> &gaussians) {
    double sum = 0;
    for (int i = 0; i < PIXELS; i += 64)
        sum += brightness(gaussians, (double)(i % WIDTH) / WIDTH, (double)(i / WIDTH) / WIDTH);
    return sum;
}

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s\n", cudaGetErrorString(error));
    exit(1);
}

static float number(unsigned *seed) {
    return (float)((*seed = *seed * 1664525u + 1013904223u) >> 8) / (1 << 24);
}

int main() {
    std::vector<slope::Gaussian> gaussians(COUNT);
    unsigned seed = 1;
    for (slope::Gaussian &g : gaussians) {
        g.center = {number(&seed), number(&seed)};
        g.conic = {100 + 100 * number(&seed), 20 * number(&seed), 100 + 100 * number(&seed)};
        g.color = {number(&seed), number(&seed), number(&seed)};
        g.opacity = 0.2f + 0.6f * number(&seed);
    }
    slope::Buffer_Gaussian given = {nullptr, COUNT};
    slope::Buffer_float gradient = {nullptr, COUNT * 9};
    const uint32_t width = WIDTH;
    check(cudaMalloc(&given.data, COUNT * sizeof(slope::Gaussian)));
    check(cudaMalloc(&gradient.data, COUNT * 9 * sizeof(float)));
    check(cudaMemcpy(given.data, gaussians.data(), COUNT * sizeof(slope::Gaussian), cudaMemcpyHostToDevice));
    check(slope::gaussians_set(&given, 0));
    check(slope::gradient_set(&gradient, 0));
    check(slope::width_set(&width, 0));
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    std::vector<float> times;
    for (int i = 0; i < RUNS + 3; i++) {
        float time = 0;
        check(cudaMemset(gradient.data, 0, COUNT * 9 * sizeof(float)));
        check(cudaEventRecord(begin));
        check(slope::splat_launch(dim3(PIXELS / 256), 0));
        check(cudaEventRecord(end));
        check(cudaEventSynchronize(end));
        check(cudaEventElapsedTime(&time, begin, end));
        if (i >= 3) times.push_back(time);
    }
    std::sort(times.begin(), times.end());
    std::vector<float> found(COUNT * 9);
    check(cudaMemcpy(found.data(), gradient.data, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int i = 0; i < COUNT; i += 9) {
        std::vector<slope::Gaussian> more = gaussians, less = gaussians;
        const float step = 1e-3f;
        more[i].opacity += step;
        less[i].opacity -= step;
        const double expected =
            (total(more) - total(less)) / ((double)more[i].opacity - less[i].opacity) * 64;
        worst = std::max(worst, fabs(found[9 * i + 8] / expected - 1));
    }
    printf("splat: %.3f ns per pixel (median of %d), gradient within %.1f %% of differences on every 64th "
           "pixel\n",
           (double)times[RUNS / 2] * 1e6 / PIXELS, (int)RUNS, worst * 100);
    return worst < 0.05 ? 0 : 1;
}
