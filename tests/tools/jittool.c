/* Runs IR from text through the LLVM emitter, as the file itself says:
 *
 *   jittool [-O0..-O3 | -i] [--unchecked] [--contract | --fast] [-g] [--workers N] [--tape-limit BYTES] [--pass NAME] [--emit FORMAT [-o FILE]] [--cpu NAME --features LIST] FILE
 *
 *   ; call: NAME ARG, ...           calls a function; prints its results, then its out and inout parameters after `|`
 *   ; dispatch: NAME X Y Z ARG, ... runs a kernel over that many groups
 *   ; set: NAME ARG                 sets a uniform
 *   ; print: NAME                   prints a uniform; of a buffer, its elements
 *
 * An ARG is a number, or `{ numbers }`: the scalars of a vector, array or struct in order, the elements of a
 * buffer, or what a pointer points to; `{ N * number }` repeats. An error of the running program is printed
 * as `error: TEXT`. Without -O, everything is run at -O0, at -O3 and by the interpreter, and all must print
 * the same; -i: by the interpreter alone. */
#include "emit/interp/interp.h"
#include "irtool.h"
#include "jitload.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_ARGS = 32, MAX_BLOCKS = 1024 };

typedef struct Tool {
    ToolSession session;
    JitProgram program;
    EmitOptions options;
    RuntimeConfig config;
    bool both_levels, interpreted;
    const char *format, *output, *path;
    const char *pass; /* of the optimiser, that everything goes through first; NULL: none */
    Text out;         /* what is printed */
    RtBuffer blocks[MAX_BLOCKS];
    int nblocks;
    const char *at; /* in the directive */
    bool failed;
} Tool;

static bool complain(Tool *tool, const char *what) {
    if (!tool->failed) fprintf(stderr, "%s: %s near '%.40s'\n", tool->path, what, tool->at ? tool->at : "");
    tool->failed = true;
    return false;
}

/* ---- memory for arguments */

static char *take_block(Tool *tool, uint64_t count, uint64_t stride) {
    RtBuffer buffer = runtime_buffer_new(count, stride);
    if (!buffer.data || tool->nblocks == MAX_BLOCKS) abort();
    tool->blocks[tool->nblocks++] = buffer;
    return buffer.data;
}

static void free_blocks(Tool *tool, int keep) {
    while (tool->nblocks > keep) runtime_buffer_free(tool->blocks[--tool->nblocks]);
}

/* ---- reading values */

static void skip_space(Tool *tool) {
    while (*tool->at == ' ' || *tool->at == ',') tool->at++;
}

static void put_number(const char *text, char **end, const Type *type, char *to) {
    double real = strtod(text, end);
    char *integer_end;
    int64_t integer =
        text[0] == '-' ? strtoll(text, &integer_end, 0) : (int64_t)strtoull(text, &integer_end, 0);
    if (*end < integer_end) *end = integer_end;
    float single = (float)real;
    uint16_t half = half_from_double(real);
    switch (type->kind) {
    case TYPE_double: memcpy(to, &real, 8); break;
    case TYPE_float: memcpy(to, &single, 4); break;
    case TYPE_half: memcpy(to, &half, 2); break;
    default: memcpy(to, &integer, (size_t)type_layout(type, LAYOUT_scalar).size); break;
    }
}

typedef VEC(const char *) Numbers;

/* The texts of the numbers in braces, repetitions written out. */
static void read_list(Tool *tool, Numbers *numbers) {
    tool->at++;
    for (skip_space(tool); *tool->at && *tool->at != '}' && *tool->at != '\n'; skip_space(tool)) {
        const char *number = tool->at;
        long times = 1;
        while (*tool->at && !strchr(" ,}\n", *tool->at)) tool->at++;
        skip_space(tool);
        if (*tool->at == '*') {
            times = strtol(number, NULL, 10);
            tool->at++;
            skip_space(tool);
            number = tool->at;
            while (*tool->at && !strchr(" ,}\n", *tool->at)) tool->at++;
        }
        for (long i = 0; i < times; i++) vec_push(&tool->session.arena, numbers, number);
    }
    if (*tool->at == '}') tool->at++;
    else complain(tool, "no end of a list");
}

static int count_scalars(const Type *type) {
    if (type->kind == TYPE_vector) return type_count(type);
    if (type->kind == TYPE_array) return (int)type_length(type) * count_scalars(type->args[0]);
    if (type->kind != TYPE_record) return 1;
    int count = 0;
    for (int i = 0; i < type_record(type)->nfields; i++)
        count += count_scalars(type_record(type)->fields[i].type);
    return count;
}

static void fill(const Type *type, char *to, const Numbers *numbers, int *next) {
    char *end;
    if (type_is_scalar(type)) {
        if (*next < numbers->count) put_number(numbers->at[(*next)++], &end, type, to);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++)
            fill(type_record(type)->fields[i].type, to + type_field_offset(type, i, LAYOUT_scalar), numbers,
                 next);
    } else if (type->kind == TYPE_array || type->kind == TYPE_vector) {
        int64_t count = type->kind == TYPE_array ? type_length(type) : type_count(type);
        for (int64_t i = 0; i < count; i++)
            fill(type->args[0], to + i * type_element_stride(type, LAYOUT_scalar), numbers, next);
    }
}

static const Type *element_of(const Tool *tool, const Type *type) {
    if (type->args[0]->kind != TYPE_void) return type->args[0];
    return type_basic(&tool->session.types, TYPE_uint8);
}

/* Memory for as many elements as the numbers make. */
static char *fill_elements(Tool *tool, const Type *element, const Numbers *numbers, uint64_t *count) {
    int each = count_scalars(element), next = 0;
    int64_t stride = type_layout(element, LAYOUT_scalar).stride;
    *count = each > 0 ? (uint64_t)((numbers->count + each - 1) / each) : 0;
    char *data = take_block(tool, *count + 1, (uint64_t)stride);
    for (uint64_t i = 0; i < *count; i++) fill(element, data + (int64_t)i * stride, numbers, &next);
    return data;
}

static void read_value(Tool *tool, const Type *type, char *to) {
    Numbers numbers = {0};
    int next = 0;
    skip_space(tool);
    if (*tool->at == '{') {
        read_list(tool, &numbers);
    } else {
        vec_push(&tool->session.arena, &numbers, tool->at);
        while (*tool->at && !strchr(" ,\n", *tool->at)) tool->at++;
    }
    if (type->kind == TYPE_buffer) {
        RtBuffer buffer;
        buffer.data = fill_elements(tool, element_of(tool, type), &numbers, &buffer.count);
        memcpy(to, &buffer, sizeof buffer);
    } else if (type->kind == TYPE_pointer) {
        uint64_t count;
        char *data = fill_elements(tool, type->args[0], &numbers, &count);
        memcpy(to, &data, sizeof data);
    } else {
        fill(type, to, &numbers, &next);
    }
}

/* ---- printing values */

/* Shortest digits that read back as the same number of that width; plain up to 16 digits before the point. */
static void print_real(Text *out, double real, FloatWidth width) {
    char text[64];
    int precision = 1;
    for (; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, real);
        double back = strtod(text, NULL);
        if (width == WIDTH_float) back = (double)(float)back;
        if (width == WIDTH_half) back = (double)half_to_float(half_from_double(back));
        if (back == real) break;
    }
    const char *exponent = strchr(text, 'e');
    if (exponent && exponent[1] == '+' && atoi(exponent + 2) < 16) precision = atoi(exponent + 2) + 1;
    snprintf(text, sizeof text, "%.*g", precision, real);
    bool whole = strspn(text, "-0123456789") == strlen(text);
    if (isnan(real)) text_printf(out, "nan");
    else text_printf(out, whole ? "%s.0" : "%s", text);
}

static void print_scalar(Text *out, const Type *type, const char *from) {
    double real;
    float single;
    uint16_t half;
    int64_t integer = 0;
    switch (type->kind) {
    case TYPE_double: memcpy(&real, from, 8), print_real(out, real, WIDTH_double); return;
    case TYPE_float: memcpy(&single, from, 4), print_real(out, (double)single, WIDTH_float); return;
    case TYPE_half: memcpy(&half, from, 2), print_real(out, (double)half_to_float(half), WIDTH_half); return;
    case TYPE_bool: text_printf(out, "%s", *from ? "true" : "false"); return;
    default: break;
    }
    int bits = type_bits(type);
    memcpy(&integer, from, (size_t)bits / 8);
    if (type_is_signed(type))
        text_printf(out, "%lld", (long long)((int64_t)((uint64_t)integer << (64 - bits)) >> (64 - bits)));
    else text_printf(out, "%llu", (unsigned long long)integer);
}

static void print_value(Tool *tool, const Type *type, const char *from) {
    Text *out = &tool->out;
    if (type_is_scalar(type)) {
        if (out->len > 0 && out->at[out->len - 1] != '\n') text_char(out, ' ');
        print_scalar(out, type, from);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++)
            print_value(tool, type_record(type)->fields[i].type,
                        from + type_field_offset(type, i, LAYOUT_scalar));
    } else if (type->kind == TYPE_array || type->kind == TYPE_vector) {
        int64_t count = type->kind == TYPE_array ? type_length(type) : type_count(type);
        for (int64_t i = 0; i < count; i++)
            print_value(tool, type->args[0], from + i * type_element_stride(type, LAYOUT_scalar));
    } else if (type->kind == TYPE_buffer) {
        RtBuffer buffer;
        memcpy(&buffer, from, sizeof buffer);
        const Type *element = element_of(tool, type);
        for (uint64_t i = 0; i < buffer.count; i++)
            print_value(tool, element,
                        (char *)buffer.data + (int64_t)i * type_layout(element, LAYOUT_scalar).stride);
    } else {
        text_printf(out, " ?");
    }
}

/* ---- directives */

static Func *read_func(Tool *tool) {
    skip_space(tool);
    const char *start = tool->at;
    while (*tool->at && !strchr(" ,\n", *tool->at)) tool->at++;
    Func *func = module_find(tool->session.module,
                             name_of(&tool->session.names, (Str){start, (int)(tool->at - start)}));
    if (!func) complain(tool, "no such function");
    return func;
}

static int read_args(Tool *tool, const Func *func, void **args) {
    int count = 0;
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        if (param->flags & PARAM_RESULT) continue;
        args[count] = take_block(tool, 1, (uint64_t)type_layout(param->type, LAYOUT_scalar).stride);
        skip_space(tool);
        bool given = *tool->at && *tool->at != '\n';
        if (given) read_value(tool, param->type, args[count]);
        else if (param->dir != DIR_out) complain(tool, "too few arguments");
        count++;
    }
    return count;
}

static void end_line(Tool *tool) {
    if (tool->out.len > 0 && tool->out.at[tool->out.len - 1] != '\n') text_char(&tool->out, '\n');
}

static bool report_error(Tool *tool) {
    char *error = runtime_take_error(tool->program.runtime);
    if (!error) return false;
    end_line(tool);
    text_printf(&tool->out, "error: %s\n", error);
    free(error);
    return true;
}

static void print_outputs(Tool *tool, const Func *func, void **args) {
    int next = 0;
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        if (param->flags & PARAM_RESULT) continue;
        if (param->dir != DIR_in || param->type->kind == TYPE_buffer) {
            bool first = tool->out.len == 0 || tool->out.at[tool->out.len - 1] == '\n';
            text_printf(&tool->out, first ? "|" : " |");
            print_value(tool, param->type, args[next]);
        }
        next++;
    }
}

typedef union Code {
    void *data;
    const RtKernel *kernel;
} Code;

static void run_call(Tool *tool) {
    void *args[MAX_ARGS];
    Func *func = read_func(tool);
    if (!func) return;
    int count = read_args(tool, func, args), nresults = 0;
    const Type *results[MAX_ARGS];
    for (int i = 0; i < func->nparams; i++)
        if (func->params[i].flags & PARAM_RESULT) results[nresults++] = func->params[i].type;
    for (int i = 0; i < func->nresults; i++) results[nresults++] = func->results[i];
    for (int i = 0; i < nresults; i++)
        args[count + i] = take_block(tool, 1, (uint64_t)type_layout(results[i], LAYOUT_scalar).stride);
    Code code = {tool->program.backend->jit_find(tool->program.jit, EMIT_call, func->name->text)};
    if (!code.data) complain(tool, "not exported");
    if (tool->failed) return;
    tool->program.backend->jit_call(tool->program.jit, code.data, args);
    end_line(tool);
    if (!report_error(tool)) {
        for (int i = 0; i < nresults; i++) print_value(tool, results[i], args[count + i]);
        print_outputs(tool, func, args);
    }
    end_line(tool);
}

static void run_dispatch(Tool *tool) {
    void *args[MAX_ARGS];
    uint32_t groups[3];
    Func *func = read_func(tool);
    if (!func) return;
    for (int i = 0; i < 3; i++) {
        char *end;
        groups[i] = (uint32_t)strtoul(tool->at, &end, 10);
        tool->at = end;
    }
    read_args(tool, func, args);
    Code code = {tool->program.backend->jit_find(tool->program.jit, EMIT_kernel, func->name->text)};
    if (!code.data) complain(tool, "not a kernel");
    if (tool->failed) return;
    runtime_dispatch(tool->program.runtime, code.kernel, groups, args);
    if (!report_error(tool)) print_outputs(tool, func, args);
    end_line(tool);
}

static Global *read_uniform(Tool *tool) {
    skip_space(tool);
    const char *start = tool->at;
    while (*tool->at && !strchr(" ,\n", *tool->at)) tool->at++;
    Str name = {start, (int)(tool->at - start)};
    Module *module = tool->session.module;
    for (int i = 0; i < module->globals.count; i++)
        if (str_eq(str_of(module->globals.at[i]->name->text), name)) return module->globals.at[i];
    complain(tool, "no such uniform");
    return NULL;
}

static void use_uniform(Tool *tool, bool set) {
    Global *global = read_uniform(tool);
    if (!global) return;
    char *memory = tool->program.backend->jit_find(tool->program.jit, EMIT_uniform, global->name->text);
    if (!memory) complain(tool, "not in the program");
    else if (set) read_value(tool, global->type, memory);
    else {
        print_value(tool, global->type, memory);
        end_line(tool);
    }
}

static bool starts(Tool *tool, const char *word) {
    size_t length = strlen(word);
    if (strncmp(tool->at, word, length) != 0) return false;
    tool->at += length;
    return true;
}

static void run_directives(Tool *tool, const char *text) {
    for (const char *line = text; line && !tool->failed;) {
        tool->at = line;
        while (*tool->at == ' ') tool->at++;
        int blocks = tool->nblocks;
        if (starts(tool, "; call:")) run_call(tool);
        else if (starts(tool, "; dispatch:")) run_dispatch(tool);
        else if (starts(tool, "; set:")) {
            use_uniform(tool, true);
            blocks = tool->nblocks; /* uniforms go on using them */
        } else if (starts(tool, "; print:")) use_uniform(tool, false);
        free_blocks(tool, blocks);
        line = strchr(line, '\n');
        if (line) line++;
    }
}

/* ---- the program */

static void take_output(void *user, const char *text, size_t length) {
    text_add(&((Tool *)user)->out, (Str){text, (int)length});
}

static bool load(Tool *tool, Str *text) {
    ToolSession *session = &tool->session;
    bool fine = tool_open(session, tool->path, text);
    diags_flush(&session->diags);
    for (int i = 0; fine && i < session->module->funcs.count; i++) {
        Func *func = session->module->funcs.at[i];
        if (tool->pass && func->body) tool_run_pass(func, tool->pass, NULL);
        const char *wrong = func->body ? ir_verify(&session->arena, func) : NULL;
        if (wrong) fprintf(stderr, "%s\n", wrong);
        if (wrong) fine = false;
    }
    return fine;
}

static char *run_at(Tool *tool, const char *text, int level, const EmitBackend *backend) {
    tool->options.level = level;
    tool->out = (Text){.arena = &tool->session.arena};
    tool->config.write = take_output;
    tool->config.user = tool;
    if (!jit_open(&tool->program, backend, &tool->config)) return NULL;
    if (jit_compile(&tool->program, tool->session.module, &tool->options)) run_directives(tool, text);
    else tool->failed = true;
    jit_close(&tool->program);
    free_blocks(tool, 0);
    return tool->out.at ? tool->out.at : "";
}

static int emit(Tool *tool, const EmitBackend *backend) {
    static const char *const formats[] = {"llvm-ir", "asm", "obj", "shared"};
    char library[4096];
    EmitError error;
    EmitFile file = {.format = EMIT_llvm_ir, .path = tool->output};
    while (file.format < EMIT_shared && strcmp(formats[file.format], tool->format) != 0) file.format++;
    jit_legalize(tool->session.module, backend);
    file.runtime_library = jit_runtime_library(library, sizeof library);
    if (tool->output) {
        if (backend->write(tool->session.module, &tool->options, &file, NULL, &error)) return 0;
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    size_t size;
    char *data = backend->make(tool->session.module, &tool->options, &file, &size, NULL, &error);
    if (!data) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    fwrite(data, 1, size, stdout);
    free(data);
    return 0;
}

static bool read_options(Tool *tool, int argc, char **argv) {
    tool->both_levels = true;
    tool->options = (EmitOptions){.level = 3, .verify = true};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : "";
        if (strncmp(word, "-O", 2) == 0) tool->options.level = word[2] - '0', tool->both_levels = false;
        else if (strcmp(word, "-i") == 0) tool->interpreted = true;
        else if (strcmp(word, "--unchecked") == 0) tool->options.unchecked = true;
        else if (strcmp(word, "--contract") == 0) tool->options.floats = EMIT_floats_contract;
        else if (strcmp(word, "--fast") == 0) tool->options.floats = EMIT_floats_fast;
        else if (strcmp(word, "-g") == 0) tool->options.debug = true;
        else if (strcmp(word, "--workers") == 0) tool->config.workers = atoi(next), i++;
        else if (strcmp(word, "--tape-limit") == 0) tool->config.tape_limit = strtoull(next, NULL, 10), i++;
        else if (strcmp(word, "--cpu") == 0) tool->options.cpu = next, i++;
        else if (strcmp(word, "--features") == 0) tool->options.features = next, i++;
        else if (strcmp(word, "--pass") == 0) tool->pass = next, i++;
        else if (strcmp(word, "--emit") == 0) tool->format = next, i++;
        else if (strcmp(word, "-o") == 0) tool->output = next, i++;
        else tool->path = word;
    }
    return tool->path != NULL;
}

/* NULL: fine, else how the output is called that differs. */
static const char *run_again(Tool *tool, const char *text, const char *expected, const EmitBackend *backend) {
    char *compiled = run_at(tool, text, 3, backend);
    if (compiled && strcmp(expected, compiled) != 0) return "at -O3";
    char *interpreted = tool->failed ? NULL : run_at(tool, text, 3, interp_backend());
    return interpreted && strcmp(expected, interpreted) != 0 ? "interpreted" : NULL;
}

static int run(Tool *tool, const char *text, const EmitBackend *backend) {
    if (tool->format) return emit(tool, backend);
    int level = tool->both_levels ? 0 : tool->options.level;
    char *out = run_at(tool, text, level, tool->interpreted ? interp_backend() : backend);
    bool again = out && tool->both_levels && !tool->interpreted && !tool->failed;
    const char *differs = again ? run_again(tool, text, out, backend) : NULL;
    if (differs) {
        printf("at -O0:\n%s%s:\n%s", out, differs, tool->out.at);
        return 1;
    }
    if (out) fputs(out, stdout);
    return out && !tool->failed ? 0 : 1;
}

int main(int argc, char **argv) {
    Tool *tool = calloc(1, sizeof *tool);
    if (!tool || !read_options(tool, argc, argv)) {
        fprintf(stderr, "usage: jittool [options] FILE\n");
        free(tool);
        return 2;
    }
    Str text;
    const EmitBackend *backend = jit_load_backend();
    int status = load(tool, &text) && backend ? run(tool, text.at, backend) : 1;
    arena_free(&tool->session.arena);
    free(tool);
    return status;
}
