/* Uniforms: what the host sets before a run.
 *
 * Every uniform has its value here, in `data`, whether or not compiled code refers to it;
 * driver_apply_uniforms copies the values over when code is made and when one changes, from the layout that
 * the host sees (std140 in constant buffers) to that of all memory of the program. A name may reach into a
 * uniform: fields and elements are found in `data`, and going into a constant buffer makes its memory, if
 * none is bound. Constant buffers that the program reads through a pointer are gone into by their name
 * alone: what they hold is set, as with those that are globals. */
#include "driver.h"

#include <limits.h>

/* ---- the list */

static Uniform *add_uniform(SlopeProgram *program, Name name, Held held) {
    Uniform *uniform = arena_new(&program->arena, Uniform);
    *uniform = (Uniform){.name = name, .type = held.type, .rules = held.rules, .is_block = held.is_block};
    uniform->data = arena_take(&program->arena, (size_t)type_layout(held.type, held.rules).stride);
    driver_prepare(program, held, uniform->data);
    vec_push(&program->arena, &program->uniforms, uniform);
    return uniform;
}

void driver_add_uniform(SlopeProgram *program, Name name, Name full, Global *global) {
    Held held = {global->type, (LayoutRules)global->layout, false, global->image_format};
    Uniform *uniform = add_uniform(program, name, held);
    uniform->global = global;
    uniform->full = full;
}

static SlopeStatus list(DriverWork *work) { return driver_list_uniforms(work->program); }

static SlopeStatus list_uniforms(SlopeProgram *program) {
    if (program->uniforms_listed) return SLOPE_STATUS_ok;
    DriverWork work = {.program = program};
    SlopeStatus status = driver_leave(program->session, driver_deep(program->session, list, &work));
    program->uniforms_listed = status == SLOPE_STATUS_ok;
    return status;
}

void driver_add_parameters(SlopeKernel *kernel) {
    SlopeProgram *program = kernel->program;
    const Func *func = kernel->func;
    list_uniforms(program); /* globals come first, whatever was asked for first */
    kernel->args = arena_array(&program->arena, void *, func->nparams);
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        const char *name = param->name ? param->name->text : "";
        const char *full = format_text(&program->arena, "%s.%s", kernel->name, name);
        Held held = {param->type, LAYOUT_scalar, (param->flags & PARAM_BLOCK) != 0, param->image_format};
        kernel->args[i] = add_uniform(program, name_from(&program->names, full), held)->data;
    }
}

void driver_apply_uniforms(SlopeProgram *program) {
    list_uniforms(program); /* so that every constant buffer has memory */
    driver_copy_constants(program);
    for (int i = 0; i < program->uniforms.count; i++) {
        const Uniform *uniform = program->uniforms.at[i];
        void *address = uniform->global ? driver_uniform_address(program, uniform->global) : NULL;
        if (address)
            driver_copy_value(&(LayoutCopy){.rules = uniform->rules}, uniform->type, uniform->data, address);
    }
}

/* ---- finding by name */

/* Where a value is: a uniform or a part of one. */
typedef struct Place {
    const Type *type;
    LayoutRules rules;
    char *data;
    bool is_block; /* pointers in it are those of constant buffers */
} Place;

static bool is_name_end(char c) { return c == 0 || c == '.' || c == '['; }

/* The length of `name` if `text` is it, or it and a path into it; else 0. */
static int match(const char *text, const char *name) {
    size_t length = strlen(name);
    return length && strncmp(text, name, length) == 0 && is_name_end(text[length]) ? (int)length : 0;
}

static const char *short_name(const Uniform *uniform) {
    const char *text = uniform->name->text, *dot = uniform->global ? strrchr(text, '.') : strchr(text, '.');
    return dot ? dot + 1 : text;
}

/* By full name first, the longest that matches; then parameters by their own name. */
static Uniform *find_by_full_name(SlopeProgram *program, const char *text, int *length) {
    Uniform *found = NULL;
    *length = 0;
    for (int i = 0; i < program->uniforms.count; i++) {
        Uniform *uniform = program->uniforms.at[i];
        int n = match(text, uniform->name->text), m = uniform->full ? match(text, uniform->full->text) : 0;
        if (m > n) n = m;
        if (n > *length) *length = n, found = uniform;
    }
    return found;
}

static Uniform *find_by_short_name(SlopeProgram *program, const char *text, int *length, Uniform **other) {
    Uniform *found = NULL;
    for (int i = 0; i < program->uniforms.count; i++) {
        int n = match(text, short_name(program->uniforms.at[i]));
        if (!n) continue;
        if (found) *other = found;
        found = program->uniforms.at[i];
        *length = n;
    }
    return found;
}

static void report_unknown(SlopeProgram *program, const char *text) {
    SlopeSession *session = program->session;
    diag_report(session->diags, DIAG_unknown_uniform, 0, text);
    VEC(Name) names = {0};
    for (int i = 0; i < program->uniforms.count; i++) {
        const char *name = short_name(program->uniforms.at[i]);
        vec_push(&program->arena, &names, name_from(&program->names, name));
    }
    Name nearest = diag_nearest(name_from(&program->names, text), names.at, names.count);
    if (nearest) diag_note(session->diags, DIAG_did_you_mean_uniform, 0, nearest->text);
}

static Uniform *find_uniform(SlopeProgram *program, const char *text, int *length) {
    Uniform *other = NULL, *found = find_by_full_name(program, text, length);
    if (!found) found = find_by_short_name(program, text, length, &other);
    if (!found) report_unknown(program, text);
    if (!other) return found;
    diag_report(program->session->diags, DIAG_ambiguous_uniform, 0, text, found->name->text);
    return NULL;
}

static void enter_block(SlopeProgram *program, Place *place) {
    if (!place->is_block || place->type->kind != TYPE_pointer) return;
    *place = (Place){place->type->args[0], LAYOUT_std140, driver_constant_data(program, place->data), false};
}

/* A constant buffer that is gone into becomes the struct it holds. */
static void enter_constant_buffer(SlopeProgram *program, Place *place) {
    if (place->type->kind != TYPE_buffer || place->type->number != BUFFER_constant) return;
    const Type *element = place->type->args[0];
    RtBuffer buffer;
    memcpy(&buffer, place->data, sizeof buffer);
    if (!buffer.data) {
        size_t size = (size_t)type_layout(element, place->rules).stride;
        buffer = (RtBuffer){arena_take(&program->arena, size), 1};
        memcpy(place->data, &buffer, sizeof buffer);
    }
    place->data = buffer.data;
    place->type = element;
}

static bool step_into_field(Place *place, const char *name, int length) {
    if (place->type->kind != TYPE_record) return false;
    const Record *record = type_record(place->type);
    for (int i = 0; i < record->nfields; i++) {
        Name field = record->fields[i].name;
        if (!field || field->len != length || memcmp(field->text, name, (size_t)length) != 0) continue;
        place->data += type_field_offset(place->type, i, place->rules);
        place->type = record->fields[i].type;
        place->is_block = record->fields[i].is_block;
        return true;
    }
    return false;
}

static bool step_into_element(Place *place, const char *digits, int length) {
    if (place->type->kind != TYPE_array && place->type->kind != TYPE_vector) return false;
    int64_t count = place->type->kind == TYPE_array ? type_length(place->type) : type_count(place->type),
            index = 0;
    for (int i = 0; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9' || index > INT_MAX) return false;
        index = index * 10 + digits[i] - '0';
    }
    if (length == 0 || index >= count) return false;
    place->data += index * type_element_stride(place->type, place->rules);
    place->type = place->type->args[0];
    return true;
}

/* One `.field` or `[index]`; returns its length, 0 if there is no such part. */
static int step(SlopeProgram *program, Place *place, const char *path) {
    enter_constant_buffer(program, place);
    if (*path == '.') {
        int length = 1 + (int)strcspn(path + 1, ".[");
        return step_into_field(place, path + 1, length - 1) ? length : 0;
    }
    int digits = (int)strcspn(path + 1, "]");
    return path[1 + digits] == ']' && step_into_element(place, path + 1, digits) ? digits + 2 : 0;
}

static const char *type_of(SlopeProgram *program, const Place *place) {
    return type_text(&program->arena, place->type);
}

static SlopeStatus find_place(SlopeProgram *program, const char *text, Place *place) {
    SlopeSession *session = program->session;
    SlopeStatus status = list_uniforms(program);
    if (status != SLOPE_STATUS_ok) return status;
    int at = 0;
    Uniform *uniform = find_uniform(program, text, &at);
    if (!uniform) return driver_leave(session, SLOPE_STATUS_misuse);
    *place = (Place){uniform->type, uniform->rules, uniform->data, uniform->is_block};
    enter_block(program, place);
    for (int length; text[at]; at += length) {
        length = step(program, place, text + at);
        enter_block(program, place);
        if (length) continue;
        const char *whole = format_text(&program->arena, "%.*s", at, text);
        diag_report(session->diags, DIAG_unknown_part, 0, whole, type_of(program, place), text + at);
        return driver_leave(session, SLOPE_STATUS_misuse);
    }
    return SLOPE_STATUS_ok;
}

/* ---- the API */

int slope_uniform_count(SlopeProgram *program) {
    if (!program) return 0;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) {
        driver_trapped(session);
        return 0;
    }
    if (!driver_enter_program(program)) return 0;
    list_uniforms(program);
    return program->uniforms.count;
}

bool slope_uniform(SlopeProgram *program, int index, SlopeUniform *out) {
    if (!program || !out) return false;
    if (index < 0 || index >= slope_uniform_count(program)) return false;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) {
        driver_trapped(session);
        return false;
    }
    if (!driver_enter_program(program)) return false;
    const Uniform *uniform = program->uniforms.at[index];
    Place place = {uniform->type, uniform->rules, uniform->data, uniform->is_block};
    enter_block(program, &place);
    *out = (SlopeUniform){uniform->name->text, driver_type(program, place.type, place.rules),
                          place.rules == LAYOUT_std140};
    return true;
}

const char *slope_built_name(SlopeProgram *program, const char *name) {
    if (!program || !name) return NULL;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) {
        driver_trapped(session);
        return NULL;
    }
    if (!driver_enter_program(program)) return NULL;
    return driver_built_name(program, name);
}

typedef struct Mention {
    SlopeKernel *kernel;
    const Global *global;
    bool found;
} Mention;

static SlopeStatus look_for(DriverWork *work) {
    Mention *mention = work->user;
    mention->found = driver_mentions(mention->kernel, mention->global);
    return SLOPE_STATUS_ok;
}

bool slope_kernel_uses(SlopeKernel *kernel, int index) {
    if (!kernel) return false;
    SlopeProgram *program = kernel->program;
    if (index < 0 || index >= program->uniforms.count) return false;
    const Uniform *uniform = program->uniforms.at[index];
    size_t length = strlen(kernel->name);
    if (!uniform->global)
        return strncmp(uniform->name->text, kernel->name, length) == 0 && uniform->name->text[length] == '.';
    if (setjmp(program->session->trap.at)) {
        driver_trapped(program->session);
        return false;
    }
    if (!driver_enter_program(program)) return false;
    Mention mention = {.kernel = kernel, .global = uniform->global};
    DriverWork work = {.program = program, .user = &mention};
    driver_leave(program->session, driver_deep(program->session, look_for, &work));
    return mention.found;
}

SlopeStatus slope_find_uniform(SlopeProgram *program, const char *name, SlopeUniform *out) {
    if (!program || !out) return SLOPE_STATUS_misuse;
    SlopeSession *session = program->session;
    *out = (SlopeUniform){0};
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    if (!name) return driver_missing(session, "slope_find_uniform", "name");
    Place place;
    SlopeStatus status = find_place(program, name, &place);
    if (status != SLOPE_STATUS_ok) return status;
    out->name = name_from(&program->names, name)->text;
    out->type = driver_type(program, place.type, place.rules);
    out->is_block = place.rules == LAYOUT_std140;
    return SLOPE_STATUS_ok;
}

static size_t size_of(const Place *place) {
    Layout layout = type_layout(place->type, place->rules);
    return (size_t)(place->type->kind == TYPE_record ? layout.stride : layout.size);
}

static bool is_reference(const Type *type) { return type->kind == TYPE_buffer || type->kind == TYPE_pointer; }

static SlopeStatus set_uniform(SlopeProgram *program, const char *name, const void *data, size_t size) {
    Diags *diags = program->session->diags;
    Place place;
    SlopeStatus status = find_place(program, name, &place);
    if (status != SLOPE_STATUS_ok) return status;
    if (is_reference(place.type)) {
        diag_report(diags, DIAG_uniform_is_reference, 0, name, type_of(program, &place));
        return SLOPE_STATUS_misuse;
    }
    if (size != size_of(&place)) {
        diag_report(diags, DIAG_uniform_wrong_size, 0, name, type_of(program, &place), size_of(&place), size);
        return SLOPE_STATUS_misuse;
    }
    /* Padding at the end of a struct may be the place of something else. */
    memcpy(place.data, data, (size_t)type_layout(place.type, place.rules).size);
    driver_apply_uniforms(program);
    return SLOPE_STATUS_ok;
}

SlopeStatus slope_set_uniform(SlopeProgram *program, const char *name, const void *data, size_t size) {
    if (!program) return SLOPE_STATUS_misuse;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    if (!name || !data) return driver_missing(session, "slope_set_uniform", name ? "data" : "name");
    return driver_leave(session, set_uniform(program, name, data, size));
}

static size_t stride_of(const Place *place) {
    const Type *element = place->type->args[0];
    bool is_constant = place->type->kind == TYPE_buffer && place->type->number == BUFFER_constant;
    if (element->kind == TYPE_void) return 1; /* byte buffers */
    return (size_t)type_layout(element, is_constant ? place->rules : LAYOUT_scalar).stride;
}

static bool needs_counter(const Type *type) {
    return type->kind == TYPE_buffer && (type->number == BUFFER_append || type->number == BUFFER_consume);
}

static SlopeStatus refuse(SlopeProgram *program, DiagId why, const char *name, const Place *place) {
    diag_report(program->session->diags, why, 0, name, type_of(program, place));
    return SLOPE_STATUS_misuse;
}

/* A struct that ends in an array of any length is there once, with as much of the array as there is room
 * for. */
static bool is_whole(const Type *element, size_t size, size_t stride) {
    int last = element->kind == TYPE_record ? type_record(element)->nfields - 1 : -1;
    const Type *tail = last >= 0 ? type_record(element)->fields[last].type : NULL;
    if (!tail || tail->kind != TYPE_array || type_length(tail) > 0) return size % stride == 0;
    size_t start = (size_t)type_field_offset(element, last, LAYOUT_scalar);
    return size >= start && (size - start) % (size_t)type_element_stride(tail, LAYOUT_scalar) == 0;
}

static SlopeStatus bind_buffer(SlopeProgram *program, const char *name, SlopeBuffer *buffer) {
    Place place;
    SlopeStatus status = find_place(program, name, &place);
    if (status != SLOPE_STATUS_ok) return status;
    if (!is_reference(place.type)) return refuse(program, DIAG_uniform_is_no_buffer, name, &place);
    RtBuffer value = {0};
    if (buffer) {
        size_t stride = stride_of(&place), size = buffer->memory.count;
        bool is_constant = place.type->kind == TYPE_buffer && place.type->number == BUFFER_constant;
        if (buffer->wrapped && needs_counter(place.type))
            return refuse(program, DIAG_buffer_needs_counter, name, &place);
        if (is_constant ? size != stride : !is_whole(place.type->args[0], size, stride)) {
            diag_report(program->session->diags, DIAG_buffer_wrong_size, 0, name, type_of(program, &place),
                        size, stride);
            return SLOPE_STATUS_misuse;
        }
        value = (RtBuffer){buffer->memory.data, size / stride};
    }
    memcpy(place.data, &value, place.type->kind == TYPE_pointer ? sizeof value.data : sizeof value);
    driver_apply_uniforms(program);
    return SLOPE_STATUS_ok;
}

SlopeStatus slope_bind_buffer(SlopeProgram *program, const char *name, SlopeBuffer *buffer) {
    if (!program) return SLOPE_STATUS_misuse;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    if (!name) return driver_missing(session, "slope_bind_buffer", "name");
    return driver_leave(session, bind_buffer(program, name, buffer));
}
