/* A copy of a function, and of all that it calls, that computes in double where the original has half and
 * float.
 *
 * Everything the function owns is widened: values, variables, parameters, results, and so the records they
 * are made of. Memory that belongs to others keeps its type, since others look at it too: globals, buffers,
 * whatever a pointer leads to. What is read from there is converted, and so is what goes there. A parameter
 * that is passed by address belongs to the function: where the caller has only foreign memory to give, it
 * passes a converted copy.
 *
 * The function is cloned with a map of types first, which gets all values right that are no addresses. Then
 * clone and original are walked side by side. An address has the type that follows from its operands, so that
 * the type of an address tells whose memory it leads to: that of the original, or the widened one. Where the
 * two meet (load, store, copy, call) conversions are put in. An address of a widened variable that gets out
 * of sight (stored, cast, chosen from two) cannot be followed: then there is no copy, and a reason.
 *
 * printf is left out: the copy is made to be evaluated often. */
#include "gradcheck/copy.h"

static void give_up(Widener *w, const char *wrong) {
    if (!w->wrong) w->wrong = wrong;
}

/* ---- types */

static const Type *widen_type(void *user, const Type *type);

static bool any_field_changes(Widener *w, const Record *record) {
    for (int i = 0; i < record->nfields; i++)
        if (widen_type(w, record->fields[i].type) != record->fields[i].type) return true;
    return false;
}

static const Type *widen_record(Widener *w, const Type *type) {
    Module *m = w->module;
    const Type *known = map_get(&w->types, PTR_KEY(type));
    if (known) return known;
    Record *record = type_record(type);
    if (!any_field_changes(w, record)) return type;
    Record *wide =
        record_new(m->types, name_from(m->names, format_text(m->arena, "%s.wide", record->name->text)));
    wide->fields = arena_array(m->arena, Field, record->nfields);
    wide->nfields = record->nfields;
    vec_push(m->arena, &m->records, wide);
    map_put(m->arena, &w->types, PTR_KEY(type), (void *)(uintptr_t)wide->type);
    for (int i = 0; i < record->nfields; i++)
        wide->fields[i] =
            (Field){.name = record->fields[i].name, .type = widen_type(w, record->fields[i].type)};
    ir_record_diff(m, type);
    wide->has_diff = true;
    if (record->diff.differential) wide->diff.differential = widen_type(w, record->diff.differential);
    wide->diff.field_map = record->diff.field_map;
    wide->diff.optional = record->diff.optional;
    return wide->type;
}

static const Type *widen_type(void *user, const Type *type) {
    Widener *w = user;
    Types *types = w->module->types;
    if (type_is_float(type)) return type_basic(types, TYPE_double);
    if (type->kind == TYPE_vector && type_is_float(type->args[0]))
        return type_vector(types, type_basic(types, TYPE_double), type_count(type));
    if (type->kind == TYPE_record) return widen_record(w, type);
    if (type->kind != TYPE_array) return type;
    const Type *element = widen_type(w, type->args[0]);
    return element == type->args[0] ? type : type_array(types, element, type_length(type));
}

const Type *gradcheck_widen_type(Widener *w, const Type *type) { return widen_type(w, type); }

/* ---- copies between the two */

static void convert_object(Widener *w, Builder *b, Val *to, Val *from);

static void convert_elements(Widener *w, Builder *b, Val *to, Val *from) {
    CountLoop loop = build_count(b, 0, type_length(to->type->args[0]));
    Val *to_part = build_elem(&loop.body, to, loop.index, true);
    Val *from_part = build_elem(&loop.body, from, loop.index, true);
    convert_object(w, &loop.body, to_part, from_part);
    build_next(&loop);
}

static void convert_object(Widener *w, Builder *b, Val *to, Val *from) {
    const Type *type = to->type->args[0];
    if (type->kind != TYPE_record && type->kind != TYPE_array)
        build_store(b, to, build_convert(b, build_load(b, from), type));
    else if (type == from->type->args[0]) build_copy(b, to, from);
    else if (type->kind == TYPE_array) convert_elements(w, b, to, from);
    else
        for (int i = 0; i < type_record(type)->nfields; i++) {
            Val *to_part = build_field(b, to, i);
            Val *from_part = build_field(b, from, i);
            convert_object(w, b, to_part, from_part);
        }
}

/* ---- instructions */

static Val *widen_constant(Widener *w, Val *constant) {
    const Type *type = widen_type(w, constant->type);
    if (type == constant->type) return constant;
    return type_is_float(type) ? ir_const_real(w->module, type, constant->real)
                               : ir_const_zero(w->module, type);
}

static void replace(Inst *inst, Val *with) {
    if (inst->nresults) inst->results[0]->forward = with;
    inst_remove(inst);
}

static const Type *type_at(const Inst *inst, int index) { return inst->args[index]->type; }
static const Type *target_at(const Inst *inst, int index) { return type_at(inst, index)->args[0]; }

/* Is the operand an address whose memory was widened? */
static bool leads_to_wide(const Inst *inst, const Inst *original, int index) {
    const Type *was = ir_resolve(original->args[index])->type;
    return was->kind == TYPE_pointer && ir_target(was) != ir_target(type_at(inst, index));
}

static void fix_load(Widener *w, Inst *inst) {
    const Type *type = target_at(inst, 0), *wide = widen_type(w, type);
    if (type == wide) return;
    Builder b = build_before(inst);
    replace(inst, build_convert(&b, build_load(&b, inst->args[0]), wide));
}

static void fix_store(Widener *w, Inst *inst, const Inst *original) {
    Builder b = build_before(inst);
    if (leads_to_wide(inst, original, 1)) give_up(w, "it keeps the address of a variable");
    else if (!ir_target(type_at(inst, 1)) && type_at(inst, 1) != target_at(inst, 0))
        inst->args[1] = build_convert(&b, inst->args[1], target_at(inst, 0));
}

static void fix_copy(Widener *w, Inst *inst) {
    if (target_at(inst, 0) == target_at(inst, 1)) return;
    Builder b = build_before(inst);
    if (inst->op != OP_copy) give_up(w, "it adds to memory that others see");
    else convert_object(w, &b, inst->args[0], inst->args[1]);
    replace(inst, NULL);
}

static void fix_atomic(Widener *w, Inst *inst) {
    const Type *type = target_at(inst, 0), *wide = widen_type(w, type);
    if (type == wide) return;
    Builder b = build_before(inst);
    Val *args[3] = {inst->args[0]};
    for (int i = 1; i < inst->nargs; i++) args[i] = build_convert(&b, inst->args[i], type);
    Inst *narrow = build_inst(&b, (Op)inst->op, args, inst->nargs, 1, 0);
    narrow->index = inst->index;
    narrow->results[0]->type = type;
    replace(inst, build_convert(&b, narrow->results[0], wide));
}

/* A struct that is seen as the one it inherits from: that begins it, and so does its copy. */
static bool is_upcast(const Type *from, const Type *to) {
    from = ir_target(from), to = ir_target(to);
    if (!from || !to || from->kind != TYPE_record || to->kind != TYPE_record) return false;
    const Record *whole = type_record(from), *part = type_record(to);
    if (part->nfields > whole->nfields) return false;
    for (int i = 0; i < part->nfields; i++)
        if (part->fields[i].name != whole->fields[i].name || part->fields[i].type != whole->fields[i].type)
            return false;
    return true;
}

/* Bits are those that the original looks at. */
static void fix_bitcast(Widener *w, Inst *inst, const Inst *original) {
    const Type *from = ir_resolve(original->args[0])->type, *to = original->results[0]->type;
    bool wide = leads_to_wide(inst, original, 0), upcast = wide && is_upcast(from, to);
    if (wide && !upcast) give_up(w, "it casts the address of a variable");
    if (upcast) {
        Builder before = build_before(inst);
        replace(inst, build_bitcast(&before, inst->args[0],
                                    type_pointer(w->module->types, widen_type(w, ir_target(to)))));
        return;
    }
    if (w->wrong || (from == type_at(inst, 0) && to == inst->results[0]->type)) return;
    Builder b = build_before(inst);
    Val *bits = build_bitcast(&b, build_convert(&b, inst->args[0], from), to);
    replace(inst, build_convert(&b, bits, inst->results[0]->type));
}

static void fix_address(Widener *w, Inst *inst) { inst->results[0]->type = ir_result_type(w->module, inst); }

/* ---- calls */

static Func *widen_func(Widener *w, Func *func, bool plain);

/* What is called in place of a callee, and whether it is plain from there on. */
static Func *callee_of(const Widener *w, const Inst *call, bool *plain) {
    return w->redirect && !*plain ? w->redirect(w->user, call, plain) : call->callee;
}

/* Foreign memory where the callee takes widened one: a copy goes in its place. */
static void fix_argument(Widener *w, Inst *call, int index) {
    const Param *param = &call->callee->params[index];
    Val *given = call->args[index];
    if (!(param->flags & PARAM_BY_ADDRESS) || given->type->args[0] == param->type) return;
    Builder before = build_before(call);
    Val *copy = call->args[index] = build_var(&before, param->type, param->name, param->dir == DIR_out);
    if (param->dir != DIR_out) convert_object(w, &before, copy, given);
    if (param->dir == DIR_in) return;
    Builder after = build_before(call->next); /* there is one: a call does not end a region */
    convert_object(w, &after, given, copy);
}

static void fix_call(Widener *w, Inst *call, const Inst *original) {
    bool plain = w->plain;
    Func *callee = callee_of(w, original, &plain);
    call->callee = widen_func(w, callee, plain);
    if (!call->callee) return;
    for (int i = 0; i < call->nargs; i++) {
        bool by_address = (call->callee->params[i].flags & PARAM_BY_ADDRESS) != 0;
        if (!by_address && leads_to_wide(call, original, i))
            give_up(w, "it hands on the address of a variable");
        if (w->wrong) return;
        fix_argument(w, call, i);
    }
}

/* ---- bodies */

static void fix_region(Widener *w, Region *region, const Region *original);

static void fix_others(Widener *w, Inst *inst, const Inst *original) {
    for (int i = 0; i < inst->nargs && inst->op != OP_zero; i++)
        if (leads_to_wide(inst, original, i)) give_up(w, "it chooses between addresses of variables");
    for (int i = 0; i < inst->nregions && !w->wrong; i++)
        fix_region(w, inst->regions[i], original->regions[i]);
}

static void fix_inst(Widener *w, Inst *inst, const Inst *original) {
    for (int i = 0; i < inst->nargs; i++) {
        Val *arg = ir_resolve(inst->args[i]);
        inst->args[i] = val_is_const(arg) ? widen_constant(w, arg) : arg;
    }
    switch ((Op)inst->op) {
    case OP_var:
    case OP_field:
    case OP_elem:
    case OP_offset: fix_address(w, inst); break;
    case OP_load: fix_load(w, inst); break;
    case OP_store: fix_store(w, inst, original); break;
    case OP_copy:
    case OP_acc: fix_copy(w, inst); break;
    case OP_atomic:
    case OP_atomic_cas: fix_atomic(w, inst); break;
    case OP_bitcast: fix_bitcast(w, inst, original); break;
    case OP_convert:
        if (type_at(inst, 0) == inst->results[0]->type) replace(inst, inst->args[0]);
        break;
    case OP_call: fix_call(w, inst, original); break;
    case OP_printf: replace(inst, NULL); break;
    default: fix_others(w, inst, original); break;
    }
}

/* The clone has the instructions of the original, in the same order, until they are fixed. */
static void fix_region(Widener *w, Region *region, const Region *original) {
    const Inst *from = original->first;
    for (Inst *inst = region->first, *next; inst && !w->wrong; inst = next, from = from->next) {
        next = inst->next;
        fix_inst(w, inst, from);
    }
}

static void declare(Widener *w, const Func *func, Func *copy) {
    func_set_params(copy, func->params, func->nparams);
    func_set_results(copy, func->results, func->nresults);
    for (int i = 0; i < copy->nparams; i++) copy->params[i].type = widen_type(w, copy->params[i].type);
    for (int i = 0; i < copy->nresults; i++) copy->results[i] = widen_type(w, copy->results[i]);
    copy->flags = func->flags & ~(uint32_t)FUNC_EXPORT;
    copy->loc = func->loc;
    copy->custom = func->custom;
}

static void fill(Widener *w, Func *func, Func *copy) {
    CloneMap map = {.module = w->module, .func = copy, .map_type = widen_type, .user = w};
    copy->body = clone_region(&map, func->body, NULL);
    for (int i = 0; i < copy->nparams; i++)
        copy->body->params[i]->type = param_value_type(w->module, &copy->params[i]);
    fix_region(w, copy->body, func->body);
}

static Func *widen_func(Widener *w, Func *func, bool plain) {
    Arena *arena = w->module->arena;
    Func *copy = map_get(&w->funcs[plain], PTR_KEY(func));
    if (copy) return copy;
    if (!func->body) {
        give_up(w, format_text(arena, "'%s' has no body", func->name->text));
        return NULL;
    }
    copy = func_new(w->module, format_text(arena, "%s.wide", func->name->text));
    map_put(arena, &w->funcs[plain], PTR_KEY(func), copy);
    vec_push(arena, &w->added, ((Wide){func, copy, plain}));
    declare(w, func, copy);
    bool outer = w->plain;
    w->plain = plain;
    fill(w, func, copy);
    w->plain = outer;
    return copy;
}

Func *gradcheck_widen(Widener *w, Func *func, bool plain) {
    int before = w->added.count;
    w->wrong = NULL;
    Func *copy = widen_func(w, func, plain);
    if (!w->wrong) return copy;
    for (int i = before; i < w->added.count; i++) { /* half done, or calling what is */
        const Wide *wide = &w->added.at[i];
        wide->copy->body = NULL;
        map_put(w->module->arena, &w->funcs[wide->plain], PTR_KEY(wide->original), NULL);
    }
    w->added.count = before;
    return NULL;
}

/* ---- what it is made of */

typedef struct Surveyor {
    Widener *w;
    WidenSurvey *survey;
    Map seen, plain_seen;
    bool plain; /* what is looked at */
} Surveyor;

static void survey_func(Surveyor *s, const Func *func, bool plain);

static void survey_type(Surveyor *s, const Type *type) {
    if (type->kind == TYPE_vector) type = type->args[0];
    if (type_is_float(type) && type->kind < s->survey->narrowest) s->survey->narrowest = type->kind;
}

static void survey_inst(void *user, Inst *inst) {
    Surveyor *s = user;
    Arena *arena = s->w->module->arena;
    for (int i = 0; i < inst->nresults; i++) survey_type(s, inst->results[i]->type);
    for (int i = 0; i < inst->nargs; i++) survey_type(s, ir_resolve(inst->args[i])->type);
    bool plain = s->plain;
    Func *callee = inst->op == OP_call ? callee_of(s->w, inst, &plain) : NULL;
    if (callee) survey_func(s, callee, plain);
    if (inst->op != OP_global || map_has(&s->seen, PTR_KEY(inst->global))) return;
    map_put(arena, &s->seen, PTR_KEY(inst->global), inst);
    vec_push(arena, &s->survey->globals, inst->global);
}

static void survey_func(Surveyor *s, const Func *func, bool plain) {
    Map *seen = plain ? &s->plain_seen : &s->seen;
    if (map_has(seen, PTR_KEY(func))) return;
    map_put(s->w->module->arena, seen, PTR_KEY(func), s);
    for (int i = 0; i < func->nresults; i++) survey_type(s, func->results[i]);
    s->survey->stores_once |= strstr(func->name->text, ".storeOnce") != NULL;
    bool outer = s->plain;
    s->plain = plain;
    if (func->body) region_walk(func->body, survey_inst, s);
    s->plain = outer;
}

WidenSurvey gradcheck_widen_survey(Widener *w, const Func *func, bool plain) {
    WidenSurvey survey = {.narrowest = TYPE_double};
    Surveyor s = {.w = w, .survey = &survey};
    survey_func(&s, func, plain);
    return survey;
}
