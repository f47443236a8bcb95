/* Signatures taken apart: what are the inputs and outputs of a function, and where are they in memory, in the
 * function itself, in its widened copy, and in the pairs and differentials of its derivatives. */
#include "gradcheck/gradcheck.h"

#include <math.h>

enum { BUFFER_ELEMENTS = 64, PAIRED_ELEMENTS = 6, MOST_SLOTS = 100000 };

/* ---- random numbers: splitmix64 */

uint64_t gradcheck_random(Random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double gradcheck_uniform(Random *random, double low, double high) {
    return low + (high - low) * (double)(gradcheck_random(random) >> 11) * 0x1p-53;
}

/* ---- scalars */

double gradcheck_round(TypeKind kind, double value) {
    if (kind == TYPE_half) return (double)half_to_float(half_from_double(value));
    return kind == TYPE_float ? (double)(float)value : value;
}

void gradcheck_put(TypeKind kind, void *at, double value) {
    uint16_t half = half_from_double(value);
    float single = (float)value;
    int64_t integer = fabs(value) < 0x1p63 ? (int64_t)value : 0;
    uint8_t truth = value != 0;
    switch (kind) {
    case TYPE_double: memcpy(at, &value, 8); break;
    case TYPE_float: memcpy(at, &single, 4); break;
    case TYPE_half: memcpy(at, &half, 2); break;
    case TYPE_bool: memcpy(at, &truth, 1); break;
    case TYPE_int8:
    case TYPE_uint8:
        memcpy(at, &integer, 1);
        break; /* little-endian, as is every machine that code is made for */
    case TYPE_int16:
    case TYPE_uint16: memcpy(at, &integer, 2); break;
    case TYPE_int:
    case TYPE_uint: memcpy(at, &integer, 4); break;
    default: memcpy(at, &integer, 8); break;
    }
}

double gradcheck_get(TypeKind kind, const void *at) {
    uint16_t half;
    float single;
    double value;
    switch (kind) {
    case TYPE_double: memcpy(&value, at, 8); return value;
    case TYPE_float: memcpy(&single, at, 4); return (double)single;
    case TYPE_half: memcpy(&half, at, 2); return (double)half_to_float(half);
    case TYPE_bool: return *(const uint8_t *)at != 0;
    default: return 0; /* only flags, derivatives and what has one are read */
    }
}

/* ---- types */

bool gradcheck_holds_pointer(const Type *type) {
    if (type->kind == TYPE_pointer) return true;
    if (type->kind == TYPE_array || type->kind == TYPE_buffer) return gradcheck_holds_pointer(type->args[0]);
    if (type->kind != TYPE_record) return false;
    for (int i = 0; i < type_record(type)->nfields; i++)
        if (gradcheck_holds_pointer(type_record(type)->fields[i].type)) return true;
    return false;
}

bool gradcheck_holds_view(const Type *type) {
    if (type->kind == TYPE_array || type->kind == TYPE_pointer) return gradcheck_holds_view(type->args[0]);
    if (type->kind != TYPE_record || type_record(type)->is_view) return type->kind == TYPE_record;
    for (int i = 0; i < type_record(type)->nfields; i++)
        if (gradcheck_holds_view(type_record(type)->fields[i].type)) return true;
    return false;
}

static bool holds_float(const Type *type) {
    if (type->kind == TYPE_array || type->kind == TYPE_vector) return holds_float(type->args[0]);
    if (type->kind != TYPE_record) return type_is_float(type);
    for (int i = 0; i < type_record(type)->nfields; i++)
        if (holds_float(type_record(type)->fields[i].type)) return true;
    return false;
}

static bool holds_interface(Checker *checker, const Type *front) {
    if (front->kind == TYPE_interface) return true;
    if (front->kind == TYPE_pair || front->kind == TYPE_optional || front->kind == TYPE_tuple ||
        front->kind == TYPE_array)
        for (int i = 0; i < front->nargs; i++)
            if (holds_interface(checker, front->args[i])) return true;
    if (front->kind != TYPE_struct) return false;
    DeclVec fields = check_all_fields(checker, front);
    for (int i = 0; i < fields.count; i++)
        if (holds_interface(checker, check_field_type(checker, front, fields.at[i]))) return true;
    return false;
}

/* ---- slots */

typedef struct Walk {
    Check *check;
    Subject *subject;
    int argument;
    bool in, out;
    bool reference;
    bool own;         /* the reference has its counterpart with it, in the same argument */
    int hole;         /* the buffer that the part is in; -1: none */
    bool is_gradient; /* of a view of a tensor */
} Walk;

/* A part of an argument. */
typedef struct Part {
    const Type *types[WIDTHS], *diffs[WIDTHS]; /* diffs NULL: no derivative */
    int64_t at[WIDTHS], diff_at[WIDTHS];
    const char *name;
} Part;

static void skip(Walk *w, const char *why) {
    if (!w->subject->skip) w->subject->skip = why;
}

static void add_slot(Walk *w, const Part *part) {
    Subject *s = w->subject;
    Slot slot = {
        .name = part->name, .kind = part->types[NARROW]->kind, .argument = w->argument, .hole = w->hole};
    bool inside = w->reference && w->hole < 0; /* such a number says where, it does not move */
    bool same = part->diffs[NARROW] == part->types[NARROW] && !type_is_float(part->types[NARROW]);
    slot.mirrored = inside && same;
    slot.own = slot.mirrored && w->own;
    slot.flag = !inside && same;
    slot.has_diff = !inside && part->diffs[NARROW] && type_is_float(part->types[NARROW]) &&
                    type_is_float(part->diffs[NARROW]);
    slot.diff_kind = slot.has_diff ? part->diffs[NARROW]->kind : TYPE_void;
    memcpy(slot.at, part->at, sizeof slot.at);
    memcpy(slot.diff_at, part->diff_at, sizeof slot.diff_at);
    slot.in = w->in ? s->nin++ : -1;
    slot.input = slot.has_diff && w->in ? s->ninputs++ : -1;
    slot.output = slot.has_diff && w->out ? s->noutputs++ : -1;
    if (slot.input >= 0) vec_push(w->check->arena, &s->inputs, s->slots.count);
    if (slot.output >= 0) vec_push(w->check->arena, &s->outputs, s->slots.count);
    vec_push(w->check->arena, &s->slots, slot);
    if (s->slots.count > MOST_SLOTS) skip(w, "it has too many parameters to be checked");
}

static void walk(Walk *w, const Part *part);

static void walk_elements(Walk *w, const Part *part, int64_t count) {
    Arena *arena = w->check->arena;
    bool lanes = part->types[NARROW]->kind == TYPE_vector && count <= 4;
    for (int64_t i = 0; i < count && !w->subject->skip; i++) {
        Part element = *part;
        for (int k = 0; k < WIDTHS; k++) {
            element.types[k] = part->types[k]->args[0];
            element.at[k] += i * type_element_stride(part->types[k], LAYOUT_scalar);
            if (!part->diffs[k]) continue;
            element.diffs[k] = part->diffs[k]->args[0];
            element.diff_at[k] += i * type_element_stride(part->diffs[k], LAYOUT_scalar);
        }
        element.name = lanes ? format_text(arena, "%s.%c", part->name, "xyzw"[i])
                             : format_text(arena, "%s[%d]", part->name, (int)i);
        walk(w, &element);
    }
}

/* Field of the differential for each field; NULL: it is not made field by field. */
static const int *field_map(Walk *w, const Part *part) {
    const Record *record = type_record(part->types[NARROW]);
    const Type *diff = part->diffs[NARROW];
    const RecordDiff *rule = ir_record_diff(w->check->widener.module, part->types[NARROW]);
    if (rule->differential != diff || diff->kind != TYPE_record || !rule->field_map) return NULL;
    const Record *target = type_record(diff);
    bool *covered = arena_array(w->check->arena, bool, target->nfields + 1);
    for (int i = 0; i < record->nfields; i++)
        if (record->diff.field_map[i] >= 0) covered[record->diff.field_map[i]] = true;
    for (int i = 0; i < target->nfields; i++)
        if (!covered[i] && holds_float(target->fields[i].type)) return NULL;
    return record->diff.field_map;
}

static Part field_of(const Part *part, int field, int diff_field) {
    Part inner = {0};
    for (int k = 0; k < WIDTHS; k++) {
        inner.types[k] = type_record(part->types[k])->fields[field].type;
        inner.at[k] = part->at[k] + type_field_offset(part->types[k], field, LAYOUT_scalar);
        if (diff_field < 0) continue;
        inner.diffs[k] = type_record(part->diffs[k])->fields[diff_field].type;
        inner.diff_at[k] = part->diff_at[k] + type_field_offset(part->diffs[k], diff_field, LAYOUT_scalar);
    }
    return inner;
}

/* Is the counterpart of a reference an instance of the same type? Only then do they refer alike. */
static bool is_alike(const Part *part) {
    const Type *diff = part->diffs[NARROW];
    const Type *a = type_record(part->types[NARROW])->user,
               *b = diff->kind == TYPE_record ? type_record(diff)->user : NULL;
    return a && b && a->kind == b->kind && a->decl == b->decl;
}

/* Which of its fields is the counterpart of one, in derivatives of the subject: of the elements their
 * gradient; of a derivative, which has both, the tangents. -1: none. */
static int own_counterpart(const Subject *s, int field) {
    enum { ELEMENTS, GRADIENT, TANGENT, GRADIENT_TANGENT };
    if (s->nmodes == 0) return field == ELEMENTS ? GRADIENT : -1;
    if (s->nmodes > 1) return -1;
    return field == ELEMENTS ? TANGENT : field == GRADIENT ? GRADIENT_TANGENT : -1;
}

static bool is_own_counterpart(const Subject *s, int field) {
    for (int i = 0; i < field; i++)
        if (own_counterpart(s, i) == field) return true;
    return false;
}

static void walk_view(Walk *w, const Part *part) {
    const Record *record = type_record(part->types[NARROW]);
    for (int i = 0; i < record->nfields && !w->subject->skip; i++) {
        int counterpart = own_counterpart(w->subject, i);
        if (is_own_counterpart(w->subject, i)) continue;
        Part inner = field_of(part, i, -1);
        Walk inside = *w;
        inside.reference = inside.own = counterpart >= 0;
        inside.is_gradient = i > 0 && !inside.own;
        inner.name = format_text(w->check->arena, "%s.%s", part->name, record->fields[i].name->text);
        if (inside.own) {
            Part other = field_of(part, counterpart, -1);
            memcpy(inner.diffs, other.types, sizeof inner.diffs);
            memcpy(inner.diff_at, other.at, sizeof inner.diff_at);
        }
        walk(&inside, &inner);
    }
}

static bool is_list_named(const Field *field, const char *name) {
    return field->type->kind == TYPE_array && strcmp(field->name->text, name) == 0;
}

/* A tensor says with `shape` and `strides`, and where it is a view with `rank` before them, how its elements
 * lie in a buffer. */
static bool has_strides(const Record *record, int field) {
    bool has_shape = field > 0 && is_list_named(&record->fields[field - 1], "shape");
    return record->fields[0].type->kind == TYPE_buffer && has_shape &&
           is_list_named(&record->fields[field], "strides");
}

/* `begin`: of the record, `first`: of its strides. */
static void mark_strides(const Subject *s, const Record *record, int field, int begin, int first) {
    int axes = s->slots.count - first;
    for (int i = begin; i < s->slots.count; i++) s->slots.at[i].is_extent = s->slots.at[i].hole < 0;
    for (int i = first; i < s->slots.count; i++) {
        s->slots.at[i].axis = i - first;
        s->slots.at[i].axes = axes;
    }
    if (field < 2 || strcmp(record->fields[field - 2].name->text, "rank") != 0) return;
    Slot *rank = &s->slots.at[first - axes - 1];
    rank->axis = -1;
    rank->axes = axes;
}

static void walk_fields(Walk *w, const Part *part) {
    Arena *arena = w->check->arena;
    const Record *record = type_record(part->types[NARROW]);
    bool own = w->own && w->hole < 0;
    const int *map = part->diffs[NARROW] && !own ? field_map(w, part) : NULL;
    if (w->reference && w->hole < 0 && part->diffs[NARROW] && !is_alike(part))
        skip(w, format_text(arena, "the Differential of %s refers in another way", record->name->text));
    if (part->diffs[NARROW] && !map && !own)
        skip(w, format_text(arena, "the Differential of %s is not made field by field", record->name->text));
    const Type *front = record->user;
    bool is_interface = front && front->kind == TYPE_interface;
    if (is_interface && record->nfields < 2)
        skip(w, format_text(arena, "no type stands behind '%s'", part->name));
    int begin = w->subject->slots.count;
    for (int i = 0; i < record->nfields && !w->subject->skip; i++) {
        int mapped = map ? map[i] : own ? i : -1;
        if (w->reference && w->hole < 0 && part->diffs[NARROW] == part->types[NARROW]) mapped = i;
        if (map && i == 1 && ir_record_diff(w->check->widener.module, part->types[NARROW])->optional)
            mapped = i;
        Part inner = field_of(part, i, mapped);
        inner.name = format_text(arena, "%s.%s", part->name, record->fields[i].name->text);
        int first = w->subject->slots.count;
        walk(w, &inner);
        if (has_strides(record, i)) mark_strides(w->subject, record, i, begin, first);
        if (is_interface && i == 0)
            w->subject->slots.at[w->subject->slots.count - 1].choices = record->nfields - 1;
    }
}

/* What a reference refers to: the elements come in and go out, whatever the function does with them. */
static void walk_referred(Walk *w, const Part *part) {
    const Type *type = part->types[NARROW]->args[0], *diff = part->diffs[NARROW]->args[0];
    Walk inside = *w;
    inside.hole = w->subject->holes.count - 1;
    inside.out = true;
    for (int i = 0; i < PAIRED_ELEMENTS && type->kind != TYPE_void; i++) {
        int64_t at = i * (int64_t)type_layout(type, LAYOUT_scalar).stride,
                diff_at = i * (int64_t)type_layout(diff, LAYOUT_scalar).stride;
        Part element = {
            .types = {type, type}, .diffs = {diff, diff}, .at = {at, at}, .diff_at = {diff_at, diff_at}};
        element.name = format_text(w->check->arena, "%s[%d]", part->name, i);
        walk(&inside, &element);
    }
}

/* A buffer, or a raw pointer, to memory of the check. Without a counterpart that stands still: no derivative
 * goes there. */
static void walk_hole(Walk *w, const Part *part) {
    const Type *type = part->types[NARROW], *diff = part->diffs[NARROW];
    Hole hole = {.argument = w->argument, .at = {part->at[NARROW], part->at[WIDE]}, .element = type->args[0]};
    hole.is_pointer = type->kind == TYPE_pointer;
    hole.is_zero = w->is_gradient;
    hole.paired = w->reference && diff && diff->kind == type->kind;
    hole.own = hole.paired && w->own;
    if (hole.paired) {
        hole.diff_element = diff->args[0];
        memcpy(hole.diff_at, part->diff_at, sizeof hole.diff_at);
    }
    vec_push(w->check->arena, &w->subject->holes, hole);
    if (hole.paired) walk_referred(w, part);
}

static void walk(Walk *w, const Part *part) {
    const Type *type = part->types[NARROW];
    if (w->subject->skip) return;
    if (type_is_scalar(type)) add_slot(w, part);
    else if (type->kind == TYPE_vector) walk_elements(w, part, type_count(type));
    else if (type->kind == TYPE_array) walk_elements(w, part, type_length(type));
    else if (type->kind == TYPE_record && type_record(type)->is_view) walk_view(w, part);
    else if (type->kind == TYPE_record) walk_fields(w, part);
    else if ((type->kind == TYPE_buffer || type->kind == TYPE_pointer) &&
             !gradcheck_holds_pointer(type->args[0]))
        walk_hole(w, part);
    else if (type->kind != TYPE_void) skip(w, format_text(w->check->arena, "'%s' is a pointer", part->name));
}

/* ---- arguments */

static bool is_result(const Param *param) { return (param->flags & PARAM_RESULT) != 0; }

static void complete_form(Form *form) {
    if (!form->pair) return;
    form->diff = type_record(form->pair)->fields[1].type;
    form->p_at = type_field_offset(form->pair, 0, LAYOUT_scalar);
    form->d_at = type_field_offset(form->pair, 1, LAYOUT_scalar);
}

/* With its narrow form as far as it is known from signatures. */
static void add_argument(Check *check, Subject *s, Argument argument, const char *name) {
    Form *narrow = &argument.forms[NARROW], *wide = &argument.forms[WIDE];
    complete_form(narrow);
    wide->type = gradcheck_widen_type(&check->widener, narrow->type);
    if (narrow->pair) wide->pair = gradcheck_widen_type(&check->widener, narrow->pair);
    if (narrow->diff) wide->diff = gradcheck_widen_type(&check->widener, narrow->diff);
    complete_form(wide);
    Walk w = {.check = check,
              .subject = s,
              .argument = s->arguments.count,
              .in = argument.dir != DIR_out,
              .out = argument.dir != DIR_in,
              .reference = argument.is_reference,
              .hole = -1};
    vec_push(check->arena, &s->arguments, argument);
    Part part = {.types = {narrow->type, wide->type}, .diffs = {narrow->diff, wide->diff}, .name = name};
    walk(&w, &part);
}

static const Type *param_type(const Func *func, int index) {
    return func && index < func->nparams ? func->params[index].type : NULL;
}

static void add_result(Check *check, Subject *s, const Type *in_bwd) {
    const Func *func = s->func;
    bool by_address = func->nparams && is_result(&func->params[0]);
    if (!by_address && !func->nresults) return;
    bool diff =
        by_address ? (func->params[0].flags & PARAM_DIFF) != 0 : (func->flags & FUNC_RESULT_DIFF) != 0;
    Argument result = {.dir = DIR_out, .is_result = true};
    Form *form = &result.forms[NARROW];
    form->type = by_address ? func->params[0].type : func->results[0];
    if (diff && s->fwd) form->pair = s->fwd->params[0].type;
    else if (diff) form->diff = in_bwd;
    add_argument(check, s, result, "result");
}

/* The parameters of derivatives stand in the order of those of the function, see the rules of fwd_diff and
 * bwd_diff. */
static void add_arguments(Check *check, Subject *s) {
    const Func *func = s->func;
    int fwd_at = s->fwd && s->fwd->nparams && is_result(&s->fwd->params[0]), bwd_at = 0;
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        bool diff = (param->flags & PARAM_DIFF) != 0, reference = (param->flags & PARAM_PTR_DIFF) != 0;
        if (is_result(param)) continue;
        const Type *in_fwd = param_type(s->fwd, fwd_at), *in_bwd = param_type(s->bwd, bwd_at);
        Argument argument = {.name = param->name, .dir = param->dir, .is_reference = reference};
        Form *form = &argument.forms[NARROW];
        form->type = param->type;
        fwd_at++;
        if (param->dir != DIR_out || diff) bwd_at++;
        if (diff && param->dir == DIR_out && !in_fwd) form->diff = in_bwd;
        else if (diff || reference) form->pair = in_fwd ? in_fwd : in_bwd;
        add_argument(check, s, argument, param->name ? param->name->text : "_");
    }
    add_result(check, s, param_type(s->bwd, bwd_at));
}

const char *gradcheck_signature_trouble(Check *check, const Subject *s) {
    Checker *checker = check->program->unit->checker;
    FuncSig sig = check_signature_of(checker, s->decl, s->subst, s->modes, s->nmodes, false);
    for (int i = 0; i < sig.nparams; i++) {
        const ParamSig *param = &sig.params[i];
        const char *name = param->name ? param->name->text : "_";
        if (param->type->kind == TYPE_function) return format_text(check->arena, "'%s' is a function", name);
        if (param->pass != PASS_in && holds_interface(checker, param->type))
            return format_text(check->arena, "'%s' gives an interface value", name);
    }
    return holds_interface(checker, sig.result) ? "the result is an interface value" : NULL;
}

void gradcheck_shape(Check *check, Subject *s) {
    if (s->skip) return;
    add_arguments(check, s);
    if (s->skip) return;
    if (s->ninputs == 0) s->skip = "no parameter of it is differentiable";
    else if (s->noutputs == 0) s->skip = "no result of it is differentiable";
}

/* ---- memory and data */

static char *take(Check *check, const Type *type) {
    return type ? arena_take(check->arena, (size_t)type_layout(type, LAYOUT_scalar).stride + 16) : NULL;
}

static void fill(Check *check, const Type *type, char *at);

/* `start`: what it holds before each call. `before`: so many elements lie in front of it. */
static RtBuffer make_buffer(Check *check, const Type *element, uint64_t before, char **start) {
    uint64_t stride = element->kind == TYPE_void ? 4 : (uint64_t)type_layout(element, LAYOUT_scalar).stride;
    uint64_t count = before + BUFFER_ELEMENTS;
    RtBuffer buffer = runtime_buffer_new(count, stride);
    if (!buffer.data) trap_spring(&check->session->trap, TRAP_memory, "out of memory");
    size_t size = (size_t)(count * stride);
    Restored restored = {.data = buffer.data, .size = size, .is_buffer = true};
    for (uint64_t i = 0; i < count; i++) {
        char *at = (char *)buffer.data + i * stride;
        if (element->kind == TYPE_void)
            gradcheck_put(TYPE_float, at, gradcheck_uniform(&check->random, 0.25, 2));
        else fill(check, element, at);
    }
    char *pristine = arena_copy(check->arena, buffer.data, size);
    restored.pristine = pristine;
    vec_push(check->arena, &check->restored, restored);
    *start = pristine + before * stride;
    count -= before;
    return (RtBuffer){(char *)buffer.data + before * stride,
                      element->kind == TYPE_void ? count * stride : count};
}

static double data_value(Check *check, TypeKind kind) {
    if (kind >= TYPE_half) return gradcheck_uniform(&check->random, 0.25, 2);
    return (double)(gradcheck_random(&check->random) % (kind == TYPE_bool ? 2 : 4));
}

/* ---- textures */

static bool is_library_record(const Type *type, const char *name) {
    return type->kind == TYPE_record && strcmp(type_record(type)->name->text, name) == 0;
}

/* Four texels by four, in as many layers as a cube has faces, for any kind of texture (prelude/texture.slang). */
static void fill_image(Check *check, const Type *image, char *at) {
    enum { WIDTH = 4, HEIGHT = 4, LAYERS = 6, CHANNELS = 4, NUMBERS = WIDTH * HEIGHT * LAYERS * CHANNELS };
    static const struct {
        const char *field;
        int value;
    } sizes[] = {{"width", WIDTH}, {"height", HEIGHT}, {"depth", LAYERS}, {"layered", 1}};
    RtBuffer texels = runtime_buffer_new(NUMBERS, sizeof(float));
    if (!texels.data) trap_spring(&check->session->trap, TRAP_memory, "out of memory");
    for (int i = 0; i < NUMBERS; i++)
        gradcheck_put(TYPE_float, (char *)texels.data + (size_t)i * sizeof(float),
                      data_value(check, TYPE_float));
    size_t size = NUMBERS * sizeof(float);
    Restored restored = {.data = texels.data, .size = size, .is_buffer = true};
    restored.pristine = arena_copy(check->arena, texels.data, size);
    vec_push(check->arena, &check->restored, restored);
    const Record *record = type_record(image);
    for (int i = 0; i < record->nfields; i++) {
        char *field = at + type_field_offset(image, i, LAYOUT_scalar);
        if (record->fields[i].type->kind == TYPE_buffer) memcpy(field, &texels, sizeof texels);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            if (strcmp(record->fields[i].name->text, sizes[k].field) == 0)
                gradcheck_put(record->fields[i].type->kind, field, sizes[k].value);
    }
}

static void fill(Check *check, const Type *type, char *at) {
    if (is_library_record(type, "SamplerState")) return; /* all zero: linear, to the edge */
    if (is_library_record(type, "__Image")) {
        fill_image(check, type, at);
        return;
    }
    if (type_is_scalar(type)) gradcheck_put(type->kind, at, data_value(check, type->kind));
    else if (type->kind == TYPE_vector || type->kind == TYPE_array) {
        int64_t count = type->kind == TYPE_vector ? type_count(type) : type_length(type);
        for (int64_t i = 0; i < count; i++)
            fill(check, type->args[0], at + i * type_element_stride(type, LAYOUT_scalar));
    } else if (type->kind ==
               TYPE_record) /* of a view the elements alone: derivatives of it would be tangents */
        for (int i = 0; i < (type_record(type)->is_view ? 1 : type_record(type)->nfields); i++)
            fill(check, type_record(type)->fields[i].type, at + type_field_offset(type, i, LAYOUT_scalar));
    else if (type->kind == TYPE_buffer) {
        char *start;
        RtBuffer buffer = make_buffer(check, type->args[0], 0, &start);
        memcpy(at, &buffer, sizeof buffer);
    }
}

static void clear_buffer(const Hole *hole) {
    size_t size = (size_t)BUFFER_ELEMENTS * (size_t)type_layout(hole->element, LAYOUT_scalar).stride;
    memset(hole->buffer.data, 0, size);
    memset(hole->start, 0, size);
}

void gradcheck_make_memory(Check *check, Subject *s) {
    for (int i = 0; i < s->arguments.count; i++)
        for (int k = 0; k < WIDTHS; k++) {
            Form *form = &s->arguments.at[i].forms[k];
            form->memory = take(check, form->type);
            form->pair_memory = take(check, form->pair);
            form->diff_memory = take(check, form->diff);
        }
    for (int i = 0; i < s->holes.count; i++) {
        Hole *hole = &s->holes.at[i];
        hole->before = hole->is_pointer ? BUFFER_ELEMENTS : 0; /* whose indices are not tested */
        hole->buffer = make_buffer(check, hole->element, hole->before, &hole->start);
        if (hole->is_zero) clear_buffer(hole);
        if (hole->paired)
            hole->diff = make_buffer(check, hole->diff_element, hole->before, &hole->diff_start);
    }
}

const char *gradcheck_host_value(const Check *check, const Global *global) {
    for (int i = 0; i < check->host->uniforms.count; i++) {
        const Uniform *uniform = check->host->uniforms.at[i];
        if (!uniform->global || strcmp(uniform->global->name->text, global->name->text) != 0)
            continue; /* they need not be of the same program */
        int64_t size = type_layout(uniform->type, uniform->rules).size;
        for (int64_t k = 0; k < size; k++)
            if (uniform->data[k]) return uniform->data;
    }
    return NULL;
}

/* What a function writes to a buffer of the host is undone as well. */
static void keep_bound(Check *check, const Type *type, const char *value) {
    RtBuffer buffer;
    if (type->kind != TYPE_buffer) return;
    memcpy(&buffer, value, sizeof buffer);
    const Type *element = type->args[0];
    int64_t stride = element->kind == TYPE_void ? 1 : type_layout(element, LAYOUT_scalar).stride;
    Restored restored = {.data = buffer.data, .size = (size_t)buffer.count * (size_t)stride, .is_host = true};
    restored.pristine = arena_copy(check->arena, buffer.data, restored.size);
    vec_push(check->arena, &check->restored, restored);
}

void gradcheck_fill_uniforms(Check *check, const WidenSurvey *survey) {
    for (int i = 0; i < survey->globals.count; i++) {
        Global *global = survey->globals.at[i];
        if (global->kind != GLOBAL_uniform || map_has(&check->filled, PTR_KEY(global))) continue;
        map_put(check->arena, &check->filled, PTR_KEY(global), check);
        char *address = driver_uniform_address(check->program, global);
        if (!address) continue;
        Restored restored = {.data = address, .size = (size_t)type_layout(global->type, LAYOUT_scalar).size};
        const char *value = gradcheck_host_value(check, global);
        if (value) {
            driver_copy_value(&(LayoutCopy){.rules = (LayoutRules)global->layout}, global->type, value,
                              address);
            keep_bound(check, global->type, value);
        } else fill(check, global->type, address);
        restored.pristine = arena_copy(check->arena, address, restored.size);
        vec_push(check->arena, &check->restored, restored);
    }
}
