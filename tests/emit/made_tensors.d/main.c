/* Calls the functions of made_tensors.slang and counts what is not freed. */
#include "c.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *memory);

static atomic_int left;

void *__wrap_malloc(size_t size) {
    left++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    left++;
    return __real_calloc(count, size);
}

void __wrap_free(void *memory) {
    if (memory) left--;
    __real_free(memory);
}

static void give(Buffer_float made) { free((char *)made.data - 16); }

static void use(int show) {
    float values[3] = {1, 2, 3};
    TorchTensor_float a = {{{values, 3}, 0, 1, {3}, {1}}}, g, own, same, made[2];
    Parts other = {a, {1, 2}};
    uint32_t counted;
    float sum = total(3), slope = derived(2, 3);
    gradient(&g, &a);
    chosen(&own, &a, true, 10);
    chosen(&same, &a, false, 10);
    parts(made, &other, &counted);
    Buffer_float zeros = elements(5);
    if (show) {
        const float *d = g.view.data.data;
        printf("%g %g, %g %g %g, %g %d\n", sum, slope, d[0], d[1], d[2], own.view.data.data[9],
               same.view.data.data == values);
        printf("%g %g %g, %u %g, %g %u\n", made[0].view.data.data[2], made[1].view.data.data[0],
               other.at.view.data.data[4], counted, zeros.data[9],
               own.view.data.data[0] + (float)(zeros.count == 10), (unsigned)g.view.shape[0]);
    }
    give(g.view.data);
    give(own.view.data);
    give(made[0].view.data);
    give(made[1].view.data);
    give(other.at.view.data);
    give(zeros);
}

int main(int count, char **args) {
    static float memory[128];
    (void)args;
    if (count > 1) return (int)taken(0xffffffffu);
    use(1);
    sums.data = memory;
    sums.count = 128;
    many(64, 1, 1);
    int before = left;
    for (int i = 0; i < 100; i++) use(0), many(64, 1, 1);
    float sum = 0;
    for (int i = 0; i < 128; i++) sum += memory[i];
    printf("%g left over: %d\n", sum / 2, left - before);
    return 0;
}
