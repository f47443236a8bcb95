/* Which values get a name, and when expressions that wait are written down. */
#include "emit/clike/clike.h"

enum { LONGEST = 72, SHORT_CHOICE = 16 }; /* longer expressions are not nested; ... in a choice, on a GPU */

/* ---- names */

static const char *called(Printer *p, const Val *v);

static bool is_pair(const Type *record) {
    return strncmp(type_record(record)->name->text, "DifferentialPair<", 17) == 0;
}

static const char *name_of_lane(Printer *p, const char *vector, int lane) {
    return vector && lane >= 0 && lane < 4 ? clike_format(p, "%s_%c", vector, "xyzw"[lane]) : NULL;
}

static const char *name_of_field(Printer *p, const Inst *field) {
    const Type *record = field->args[0]->type->args[0];
    const char *name = clike_field(p, record, field->index), *whole = NULL;
    if (!is_pair(record)) return name;
    whole = called(p, ir_resolve(field->args[0]));
    return whole && *name == 'd' ? clike_format(p, "d%s", whole) : whole;
}

const char *clike_id_name(int index) {
    static const char *const names[] = {"thread_id",  "group_id",    "local_id", "local_index",
                                        "group_size", "group_count", "wave_size"};
    return names[index];
}

/* What somebody would call it, as what it is read from is called; NULL: nothing comes to mind. */
static const char *called(Printer *p, const Val *v) {
    if (v->name) return emit_c_name(&p->arena, v->name->text);
    if (v->kind != VAL_inst) return NULL;
    const Inst *inst = v->inst;
    int64_t lane;
    switch ((Op)inst->op) {
    case OP_global: return emit_c_name(&p->arena, inst->global->name->text);
    case OP_load: return called(p, ir_resolve(inst->args[0]));
    case OP_field: return name_of_field(p, inst);
    case OP_thread_id: return clike_id_name(inst->index);
    case OP_elem:
        if (inst->args[0]->type->args[0]->kind != TYPE_vector) return called(p, ir_resolve(inst->args[0]));
        if (!val_is_int(ir_resolve(inst->args[1]), &lane)) return NULL;
        return name_of_lane(p, called(p, ir_resolve(inst->args[0])), (int)lane);
    case OP_extract:
        if (!val_is_int(ir_resolve(inst->args[1]), &lane)) return NULL;
        return name_of_lane(p, called(p, ir_resolve(inst->args[0])), (int)lane);
    default: return NULL;
    }
}

const char *clike_name_value(Printer *p, const Val *v) {
    const char *wish = called(p, v);
    if (!wish) wish = "t";
    size_t length = strlen(wish);
    if (length && wish[length - 1] == '_') wish = clike_format(p, "%sv", wish);
    return clike_local(p, wish);
}

const char *clike_local(Printer *p, const char *wish) {
    uint64_t key = PTR_KEY(name_from(p->module->names, wish));
    if (map_has(&p->names, key) || map_has(&p->reserved, key) || clike_is_claimed(p, wish, SCOPE_inside))
        wish = clike_format(p, "%s_", wish);
    return clike_unique(p, &p->at->names, wish);
}

/* ---- waiting */

static void forget(Printer *p, const Val *v) {
    FuncState *at = p->at;
    int kept = 0;
    for (int i = 0; i < at->pending.count; i++)
        if (at->pending.at[i] != v) at->pending.at[kept++] = at->pending.at[i];
    at->pending.count = kept;
}

void clike_consume(Printer *p, const Inst *inst) {
    if (p->at->pending.count == 0) return;
    for (int i = 0; i < inst->nargs; i++) forget(p, ir_resolve(inst->args[i]));
}

static bool crosses(const Printer *p, const Val *v) { return p->at->crosses && p->at->crosses[v->id]; }
static bool is_said_again(const Printer *p, const Val *v) { return p->at->again && p->at->again[v->id]; }

static void write_down(Printer *p, const Val *v, Value value) {
    const char *name = clike_name_value(p, v);
    if (value.guarded) value = clike_guarded(p, v->inst, false);
    const char *text = value.text;
    if (crosses(p, v)) name = clike_spread(p, v->type, name, true);
    Value named = clike_value(name, LEVEL_primary);
    if (v->type->kind == TYPE_pointer) {
        text = clike_pointer(p, value, v->type->args[0], false);
        named.raw = value.raw;
        named.steady = value.steady;
    }
    if (crosses(p, v)) clike_line(p, "%s = %s;", name, text);
    else
        clike_line(p, "%s = %s;",
                   clike_declare_value(
                       p, v->type, v->type->kind == TYPE_pointer ? clike_format(p, "const %s", name) : name),
                   text);
    p->at->values[v->id] = named;
}

/* An address that is said anew at each use: what it is made of stays as it is now. So does that of one which
 * later phases of a group say again, where no variable of this phase is known. */
static void settle_guarded(Printer *p, const Inst *inst) {
    if (is_said_again(p, inst->results[0]) || clike_bind_element(p, inst)) return;
    for (int i = 0; i < inst->nargs; i++) clike_settle(p, inst, i);
    p->dialect->language->address(p, inst, &p->at->values[inst->results[0]->id]);
}

/* A variable, or a part of one. */
static bool is_name(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.";
    return strspn(text, letters) == strlen(text);
}

void clike_settle(Printer *p, const Inst *inst, int index) {
    const Val *v = ir_resolve(inst->args[index]);
    if (val_is_const(v)) return;
    Value value = p->at->values[v->id];
    if (value.guarded) {
        settle_guarded(p, v->inst);
        return;
    }
    if (!value.reads && (strlen(value.text) <= LONGEST / 3 || is_name(value.text))) return;
    forget(p, v);
    write_down(p, v, value);
}

void clike_flush(Printer *p) {
    FuncState *at = p->at;
    for (int i = 0; i < at->pending.count; i++) {
        const Val *v = at->pending.at[i];
        Value value = at->values[v->id];
        if (value.guarded) settle_guarded(p, v->inst);
        else write_down(p, v, value);
    }
    at->pending.count = 0;
}

/* ---- new values */

static bool is_address(const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_global:
    case OP_field:
    case OP_elem: return true;
    default: return false;
    }
}

/* A number and one that never changes: where something begins on a tape. */
static bool is_steady_sum(const Inst *inst) {
    const Val *base = inst->op == OP_add ? ir_resolve(inst->args[0]) : NULL;
    if (!base || !val_is_const(ir_resolve(inst->args[1]))) return false;
    return base->kind == VAL_param ? base->region == inst->func->body
                                   : base->kind == VAL_inst && base->inst->op == OP_tape_grow;
}

/* On a GPU, what takes more than an operation is computed before it is chosen: NVIDIA's compilers make `c ? 0
 * : f(x)` a branch, and do not mix what stands before it with what comes after. */
static bool is_chosen_late(const Printer *p, const Inst *inst, Value value) {
    const Val *v = inst->results[0];
    const Inst *user = p->at->user[v->id];
    return p->dialect->warp_sums && user->op == OP_select && ir_resolve(user->args[0]) != v && !value.reads &&
           !value.guarded && strlen(value.text) > SHORT_CHOICE;
}

static bool is_index_only(const Printer *p, const Val *v) {
    const FuncState *at = p->at;
    for (int i = at->first_use[v->id]; i < at->first_use[v->id + 1]; i++) {
        const Inst *user = at->all_uses[i];
        bool is_access = user->op == OP_elem || user->op == OP_buffer_elem;
        if (!is_access || ir_resolve(user->args[1]) != v) return false;
    }
    return true;
}

/* Is it what a variable is called that stays as it is for as long as the value can be used? Loops count in
 * their head. */
static bool is_lasting(const Val *v) {
    int64_t step;
    if (v->kind == VAL_inst) return !v->inst->nregions && v->inst->op != OP_load;
    const Inst *loop = v->kind == VAL_param ? v->region->owner : NULL;
    if (!loop || loop->op != OP_loop || loop->nregions > 2 || v->region != loop->regions[1]) return false;
    if (!loop_step(loop, v->index, &step)) return false;
    const Val *next = inst_operand(v->region->last, v->index);
    return next->kind != VAL_inst || !next->inst->nregions; /* else it may change where that stands */
}

/* An index is as good with 64 bits as with 32 if it is the same number. */
static bool is_index_as_it_was(const Printer *p, const Inst *inst) {
    if (inst->op != OP_convert || !p->dialect->steers_loops || inst->results[0]->type->kind != TYPE_int)
        return false;
    const Val *wide = inst_operand(inst, 0);
    if (wide->type->kind != TYPE_int64 || val_is_const(wide) || !is_lasting(wide)) return false;
    const char *text = p->at->values[wide->id].text;
    if (!is_name(text) || strchr(text, '.')) return false;
    Interval range = ir_interval(&p->at->jumps, wide);
    return range.known && range.low >= INT32_MIN && range.high <= INT32_MAX &&
           is_index_only(p, inst->results[0]);
}

void clike_set(Printer *p, const Inst *inst, Value value) {
    FuncState *at = p->at;
    const Val *v = inst->results[0];
    clike_consume(p, inst);
    at->values[v->id] = value;
    if (at->uses[v->id] == 0 || value.named) return;
    if (is_index_as_it_was(p, inst)) {
        at->values[v->id] = at->values[inst_operand(inst, 0)->id];
        return;
    }
    if (p->dialect->language->has_places_only && v->type->kind == TYPE_pointer && !clike_is_text(v->type))
        return; /* a place, as often as it is used */
    if (is_said_again(p, v)) return;
    if (crosses(p, v)) {
        write_down(p, v, value);
        return;
    }
    if (v->type->kind == TYPE_pointer && clike_is_nothing(v->type->args[0]) && !value.reads)
        return; /* nowhere: only calls are told of it */
    bool is_short = value.guarded || strlen(value.text) <= LONGEST;
    if (is_address(inst) && !value.guarded && !value.reads && is_short) return; /* as often as it is used */
    bool is_part = at->places[v->id] && at->places[v->id] == at->uses[v->id];
    if (is_part && is_steady_sum(inst)) return; /* likewise */
    bool once = at->uses[v->id] == 1 && at->user[v->id]->parent == inst->parent && is_short &&
                !is_chosen_late(p, inst, value);
    if (!once && value.guarded) settle_guarded(p, inst);
    else if (!once) write_down(p, v, value);
    else if (value.reads) vec_push(&p->arena, &at->pending, v);
}

void clike_set_statement(Printer *p, const Inst *inst, const char *text) {
    const Val *v = inst->results[0];
    if (p->at->uses[v->id] == 0) clike_line(p, "%s;", text);
    else write_down(p, v, clike_value(text, LEVEL_primary));
}

static bool is_any_used(const Printer *p, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++)
        if (p->at->uses[inst->results[i]->id]) return true;
    return false;
}

/* Is the result put into a variable or what a parameter leads to, right behind the call? Nothing is tested
 * before that, and nothing read. */
static bool is_put_away(const Printer *p, const Inst *call) {
    const Val *v = call->results[0];
    const Inst *store = call->next;
    if (p->at->uses[v->id] != 1 || crosses(p, v) || !store || store->op != OP_store) return false;
    const Val *at = ir_resolve(store->args[0]);
    while (at->kind == VAL_inst && at->inst->op == OP_field) at = ir_resolve(at->inst->args[0]);
    bool is_param = at->kind == VAL_param && at->region == p->at->func->body;
    bool is_local = is_param || (at->kind == VAL_inst && at->inst->op == OP_var);
    return is_local && ir_resolve(store->args[1]) == v && type_is_scalar(v->type);
}

void clike_set_results(Printer *p, const Inst *inst, const char *text) {
    if (!is_any_used(p, inst)) {
        clike_line(p, "%s;", text);
    } else if (inst->nresults == 1 && is_put_away(p, inst)) {
        p->at->values[inst->results[0]->id] = clike_value(text, LEVEL_primary);
    } else if (inst->nresults == 1) {
        clike_set_statement(p, inst, text);
    } else {
        const char *name = clike_local(p, clike_format(p, "from_%s", clike_func_name(p, inst->callee)));
        clike_line(p, "const %s %s = %s;", clike_results_type(p, inst->callee), name, text);
        for (int i = 0; i < inst->nresults; i++) {
            const Val *v = inst->results[i];
            const char *field = clike_result_field(p, inst->callee, i);
            p->at->values[v->id] = clike_value(clike_format(p, "%s.%s", name, field), LEVEL_primary);
            if (crosses(p, v)) write_down(p, v, p->at->values[v->id]);
        }
    }
}
