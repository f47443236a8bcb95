/* A 5 x 5 filter over an image; the gradient of the squared error by weights and pixels. */
#include "derivative.h"

enum { WIDTH = 96, HEIGHT = 64, SIZE = 5, WEIGHTS = SIZE * SIZE, PARAMETERS = WEIGHTS + WIDTH * HEIGHT };

typedef struct Data {
    const real *parameters, *targets; /* weights, then pixels */
} Data;

static inline real error_at(const Data *d, int x, int y) {
    const real *weights = d->parameters, *image = weights + WEIGHTS;
    real sum = 0;
    for (int j = 0; j < SIZE; j++)
        for (int i = 0; i < SIZE; i++) sum += weights[j * SIZE + i] * image[(y + j) * WIDTH + x + i];
    return sum - d->targets[y * WIDTH + x];
}

static void primal(const void *data, real *restrict values) {
    real sum = 0;
    for (int y = 0; y <= HEIGHT - SIZE; y++)
        for (int x = 0; x <= WIDTH - SIZE; x++) {
            real error = error_at(data, x, y);
            sum += error * error;
        }
    values[0] = sum;
}

static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    const real *weights = d->parameters, *image = weights + WEIGHTS;
    real *weights_bar = gradients, *image_bar = gradients + WEIGHTS;
    memset(gradients, 0, sizeof(real) * PARAMETERS);
    for (int y = 0; y <= HEIGHT - SIZE; y++)
        for (int x = 0; x <= WIDTH - SIZE; x++) {
            real g = 2 * error_at(d, x, y);
            for (int j = 0; j < SIZE; j++)
                for (int i = 0; i < SIZE; i++) {
                    weights_bar[j * SIZE + i] += g * image[(y + j) * WIDTH + x + i];
                    image_bar[(y + j) * WIDTH + x + i] += g * weights[j * SIZE + i];
                }
        }
}

BY_ENZYME(1, PARAMETERS, parameters, targets)

int main(int argc, char **argv) {
    real *parameters = derivative_numbers(PARAMETERS, -1, 1),
         *targets = derivative_numbers(WIDTH * HEIGHT, -1, 1);
    Data data = {parameters, targets};
    Derivative d = derivative_open((Problem){1, PARAMETERS, primal, gradient, &data, 1e-3});
    derivative_bind(&d, "parameters", parameters, sizeof(real) * PARAMETERS);
    derivative_bind(&d, "targets", targets, sizeof(real) * WIDTH * HEIGHT);
    derivative_set(&d, "width", WIDTH);
    derivative_set(&d, "height", HEIGHT);
    return derivative_run(&d, argc, argv);
}
