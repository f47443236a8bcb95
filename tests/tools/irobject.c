/* See irobject.h. */
#include "irobject.h"

#include <math.h>

/* ---- objects */

char *object_new(Arena *arena, const Type *type) {
    return arena_take(arena, (size_t)type_layout(type, LAYOUT_scalar).stride + 1);
}

static bool has_parts(const Type *type) {
    return type->kind == TYPE_record || type->kind == TYPE_array || type->kind == TYPE_vector;
}

static int64_t part_count(const Type *type) {
    if (type->kind == TYPE_record) return type_record(type)->nfields;
    return type->kind == TYPE_array ? type_length(type) : type_count(type);
}

static const Type *part_type(const Type *type, int64_t i) {
    return type->kind == TYPE_record ? type_record(type)->fields[i].type : type_element(type);
}

static int64_t part_offset(const Type *type, int64_t i) {
    return type->kind == TYPE_record ? type_field_offset(type, (int)i, LAYOUT_scalar)
                                     : i * type_element_stride(type, LAYOUT_scalar);
}

static void put_real(const Type *type, char *at, double value) {
    float single = (float)value;
    uint16_t half = half_from_double(value);
    if (type->kind == TYPE_half) memcpy(at, &half, sizeof half);
    else if (type->kind == TYPE_float) memcpy(at, &single, sizeof single);
    else memcpy(at, &value, sizeof value);
}

static double get_real(const Type *type, const char *at) {
    double value;
    float single;
    uint16_t half;
    if (type->kind == TYPE_half) return memcpy(&half, at, sizeof half), (double)half_to_float(half);
    if (type->kind == TYPE_float) return memcpy(&single, at, sizeof single), (double)single;
    return memcpy(&value, at, sizeof value), value;
}

void object_fill(Random *random, const Type *type, char *at, bool with_nan) {
    static const double reals[] = {0.0, -0.0, 1.0, 2.5, -3.0, 0.125, 1e20, 7.0};
    if (has_parts(type)) {
        for (int64_t i = 0; i < part_count(type); i++)
            object_fill(random, part_type(type, i), at + part_offset(type, i), with_nan);
    } else if (type_is_float(type)) {
        bool nan = with_nan && random_chance(random, 5);
        put_real(type, at, nan ? (double)NAN : reals[random_below(random, 8)]);
    } else {
        int64_t value = type->kind == TYPE_bool ? random_below(random, 2) : random_below(random, 12) - 3;
        memcpy(at, &value, (size_t)type_layout(type, LAYOUT_scalar).size);
    }
}

bool object_equal(const Type *type, const char *a, const char *b) {
    if (has_parts(type)) {
        for (int64_t i = 0; i < part_count(type); i++)
            if (!object_equal(part_type(type, i), a + part_offset(type, i), b + part_offset(type, i)))
                return false;
        return true;
    }
    if (!type_is_scalar(type)) return true;
    bool nan = type_is_float(type) && isnan(get_real(type, a)) && isnan(get_real(type, b));
    return nan || memcmp(a, b, (size_t)type_layout(type, LAYOUT_scalar).size) == 0;
}

/* ---- runs */

void run_fill(ObjectRun *run, Arena *arena, const Func *func, uint64_t seed, bool with_nan) {
    Random random = {seed};
    float *elements = arena_array(arena, float, OBJECT_BUFFER);
    for (int i = 0; i < OBJECT_BUFFER; i++) elements[i] = (float)random_below(&random, 10);
    *run = (ObjectRun){.buffer = {elements, OBJECT_BUFFER}};
    for (int i = 0; i < func->nparams; i++) {
        const Type *type = func->params[i].type;
        char *object = object_new(arena, type);
        if (type->kind == TYPE_buffer) memcpy(object, &run->buffer, sizeof run->buffer);
        else object_fill(&random, type, object, with_nan);
        run->args[i] = object;
    }
    for (int i = 0; i < func->nresults; i++)
        run->args[func->nparams + i] = object_new(arena, func->results[i]);
}

const char *run_difference(const Func *func, const ObjectRun *a, const ObjectRun *b) {
    const float *one = a->buffer.data, *other = b->buffer.data;
    for (int i = 0; i < func->nresults; i++)
        if (!object_equal(func->results[i], a->args[func->nparams + i], b->args[func->nparams + i]))
            return "results";
    for (int i = 0; i < func->nparams; i++)
        if ((func->params[i].flags & PARAM_BY_ADDRESS) &&
            !object_equal(func->params[i].type, a->args[i], b->args[i]))
            return "memory";
    for (int i = 0; i < OBJECT_BUFFER; i++)
        if (memcmp(&one[i], &other[i], 4) != 0 && !(isnan(one[i]) && isnan(other[i]))) return "buffer";
    return NULL;
}

bool interp_open(JitProgram *program, Module *module, const RuntimeConfig *config, InterpCounts *counts) {
    EmitOptions options = {0};
    if (!jit_open(program, interp_backend(), config)) return false;
    interp_count(program->jit, counts);
    if (jit_compile(program, module, &options)) return true;
    jit_close(program);
    return false;
}
