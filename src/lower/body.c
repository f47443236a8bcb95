/* Bodies and statements. Locals are memory; control flow is free: break, continue and return stand where they
 * are written. */
#include "lower/lowerer.h"

/* ---- locals */

void bind_local(Fn *f, Decl *decl, Local local) {
    map_put(f->l->arena, &f->locals, PTR_KEY(decl), arena_copy(f->l->arena, &local, sizeof local));
}

Local *find_local(Fn *f, const Decl *decl) { return map_get(&f->locals, PTR_KEY(decl)); }

/* ---- regions */

/* A statement that is the body of another: what it defers runs at its end. */
static void lower_scope(Fn *f, Stmt *stmt) {
    Defer *defers = f->defers;
    lower_stmt(f, stmt);
    if (!f->dead) run_defers(f, defers);
    f->defers = defers;
}

/* Lowers a statement into a region and ends it. */
void lower_region(Fn *f, Region *region, Stmt *stmt) {
    Builder outer = f->b;
    bool dead = f->dead;
    f->b = build_at_end(region);
    f->b.loc = outer.loc;
    f->dead = false;
    if (stmt) lower_scope(f, stmt);
    if (!f->dead) build_yield(&f->b, NULL, 0);
    f->dead = dead;
    f->b = outer;
}

static bool ends_dead(const Region *region) {
    return region->last && op_has(region->last->op, OP_LEAVES | OP_ENDS) && region->last->op != OP_yield;
}

/* ---- defer */

void run_defers(Fn *f, Defer *until) {
    Defer *saved = f->defers;
    while (f->defers != until && !f->dead) {
        Defer *defer = f->defers;
        f->defers = defer->outer;
        lower_stmt(f, defer->stmt);
    }
    f->defers = saved;
}

/* ---- declarations */

static bool takes_memory(const Type *front) {
    return front->kind != TYPE_function && front->kind != TYPE_void;
}

static void lower_local(Fn *f, Decl *decl) {
    if (decl->modifiers & MODIFIER_static) {
        lower_static(f, decl);
        return;
    }
    const Type *front = concrete(f, decl->type);
    if (front->kind == TYPE_function) return;
    f->b.loc = decl->loc;
    if (decl->modifiers & MODIFIER_precise) f->func->flags |= FUNC_PRECISE;
    if (front->kind == TYPE_void) {
        if (decl->init) lower_effect(f, decl->init);
        return;
    }
    const Type *ir = ir_type(f, front);
    const Local *early = find_local(f, decl);
    if (early && !early->early) early = NULL; /* from another time that the statement is lowered */
    bool constant = (decl->modifiers & (MODIFIER_let | MODIFIER_const)) && is_simple(ir) && decl->init;
    if (constant && !early && !(decl->flags & DECL_ASSIGNED)) {
        Val *value = lower_value(f, decl->init);
        if (!value->name && value->kind == VAL_inst) value->name = decl->name;
        bind_local(f, decl, (Local){.value = value});
        return;
    }
    bool whole = decl->init && is_simple(ir);
    Val *value = whole ? lower_value(f, decl->init) : NULL;
    Val *address = early ? early->address : build_var(&f->b, ir, decl->name, whole);
    if (value) build_store(&f->b, address, value);
    else if (decl->init) lower_into(f, decl->init, address);
    if (!early) bind_local(f, decl, (Local){.address = address});
}

static void lower_decls(Fn *f, Stmt *stmt) {
    for (int i = 0; i < stmt->decls.count && !f->dead; i++)
        if (stmt->decls.at[i]->kind == DECL_var) lower_local(f, stmt->decls.at[i]);
}

/* ---- if */

void after_if(Fn *f, const Inst *inst) {
    bool all = true;
    for (int i = 0; i < inst->nregions; i++) all &= ends_dead(inst->regions[i]);
    if (!all) return;
    build_unreachable(&f->b);
    f->dead = true;
}

/* if (let x = optional) */
static Val *lower_binding(Fn *f, Stmt *stmt) {
    Decl *decl = stmt->decls.at[0];
    Val *optional = lower_address(f, stmt->expr);
    Val *has = build_load(&f->b, build_field(&f->b, optional, 1));
    Local local = {.address = build_field(&f->b, optional, 0)};
    const Type *type = ir_type(f, decl->type);
    if (is_simple(type) && takes_memory(type)) local = (Local){.value = build_load(&f->b, local.address)};
    bind_local(f, decl, local);
    return has;
}

static Stmt *if_arm(const Chain *chain, int index) {
    Stmt *stmt = chain->of;
    return index ? stmt->body.at[index - 1] : stmt;
}

static Val *if_condition(Fn *f, Chain *chain, int index) {
    Stmt *arm = if_arm(chain, index);
    return arm->decls.count ? lower_binding(f, arm) : lower_condition(f, arm->expr);
}

static void if_branch(Fn *f, Chain *chain, int index) {
    Stmt *stmt = chain->of;
    Stmt *branch = index < chain->count ? if_arm(chain, index)->then : stmt->other;
    if (branch) lower_scope(f, branch);
}

static void lower_if(Fn *f, Stmt *stmt) {
    if (loop_ends_with(f, stmt)) return;
    Chain chain = {.count = stmt->body.count + 1, .condition = if_condition, .branch = if_branch, .of = stmt};
    lower_chain(f, &chain);
}

/* ---- switch */

typedef struct Section {
    int64_t *values;
    int nvalues;
    const EnumNames *of; /* as SwitchCase has it */
    bool is_default;
    int first, end; /* statements of the body */
} Section;
typedef VEC(Section) SectionVec;

static SectionVec sections_of(Fn *f, const Stmt *body) {
    SectionVec sections = {0};
    bool open = false;
    for (int i = 0; i < body->body.count; i++) {
        Stmt *s = body->body.at[i];
        if (s->kind != STMT_case) {
            open = false;
            if (sections.count) vec_last(&sections).end = i + 1;
            continue;
        }
        if (!open) vec_push(f->l->arena, &sections, ((Section){.first = i + 1, .end = i + 1}));
        open = true;
        Section *section = &vec_last(&sections);
        section->first = section->end = i + 1;
        section->is_default |= s->is_default;
        int64_t *values = arena_array(f->l->arena, int64_t, section->nvalues + s->values.count + 1);
        if (section->nvalues) memcpy(values, section->values, sizeof *values * (size_t)section->nvalues);
        for (int k = 0; k < s->values.count; k++) {
            const Type *type = s->values.at[k]->type;
            if (expr_constant(f, s->values.at[k], &values[section->nvalues])) section->nvalues++;
            if (type && type->kind == TYPE_enum) section->of = lower_enum(f->l, type);
        }
        section->values = values;
    }
    return sections;
}

static bool leaves(const Stmt *stmt) {
    if (stmt->kind == STMT_break || stmt->kind == STMT_return || stmt->kind == STMT_continue) return true;
    if (stmt->kind != STMT_block) return false;
    return stmt->body.count && leaves(stmt->body.at[stmt->body.count - 1]);
}

/* Does the section go on with the next one? */
static bool falls_through(const Stmt *body, const SectionVec *sections, int index) {
    const Section *section = &sections->at[index];
    bool stays = section->end == section->first || !leaves(body->body.at[section->end - 1]);
    return index + 1 < sections->count && stays;
}

static void lower_section(Fn *f, const Stmt *body, const Section *section) {
    Defer *defers = f->defers;
    for (int i = section->first; i < section->end && !f->dead; i++) lower_stmt(f, body->body.at[i]);
    run_defers(f, defers);
    f->defers = defers;
}

static void fill_section(Fn *f, Region *region, const Stmt *body, const Section *section) {
    Builder outer = f->b;
    f->b = build_at_end(region);
    f->b.loc = outer.loc;
    f->dead = false;
    lower_section(f, body, section);
    if (!f->dead) build_yield(&f->b, NULL, 0);
    f->dead = false;
    f->b = outer;
}

/* Sections of which each goes on with the next: the number of the one to start with, then all in order, each
 * under its condition. */
static void lower_joined(Fn *f, Val *value, const Stmt *body, const Section *sections, int count) {
    const Type *number = type_basic(f->l->types, TYPE_int);
    SwitchCase *cases = arena_array(f->l->arena, SwitchCase, count + 1);
    int fallback = count;
    for (int i = 0; i < count; i++) {
        cases[i] = (SwitchCase){sections[i].values, sections[i].nvalues, sections[i].of};
        if (sections[i].is_default) fallback = i;
    }
    Inst *choice = build_switch(&f->b, value, cases, count, &number, 1);
    for (int i = 0; i <= count; i++) {
        Builder b = build_at_end(choice->regions[i]);
        Val *which = const_int(f, TYPE_int, i == count ? fallback : i);
        build_yield(&b, &which, 1);
    }
    Val *start = inst_result(choice);
    for (int i = 0; i < count; i++) {
        Val *reached = build_binary(&f->b, OP_le, start, const_int(f, TYPE_int, i));
        Inst *inst = build_if(&f->b, reached, NULL, 0);
        fill_section(f, inst->regions[0], body, &sections[i]);
        Builder b = build_at_end(inst->regions[1]);
        build_yield(&b, NULL, 0);
    }
}

static void fill_joined(Fn *f, Region *region, Val *value, const Stmt *body, const Section *sections,
                        int count) {
    if (count == 1) {
        fill_section(f, region, body, sections);
        return;
    }
    Builder outer = f->b;
    f->b = build_at_end(region);
    f->b.loc = outer.loc;
    if (count) lower_joined(f, value, body, sections, count);
    build_yield(&f->b, NULL, 0);
    f->b = outer;
}

/* Sections that are reached in the same way: one, or several of which each goes on with the next. */
typedef struct Run {
    int first, count;
    bool is_default;
} Run;
typedef VEC(Run) RunVec;

static RunVec joined_sections(Fn *f, const Stmt *body, const SectionVec *sections) {
    RunVec runs = {0};
    for (int i = 0; i < sections->count; i++) {
        if (i == 0 || !falls_through(body, sections, i - 1))
            vec_push(f->l->arena, &runs, ((Run){.first = i}));
        vec_last(&runs).count++;
        vec_last(&runs).is_default |= sections->at[i].is_default;
    }
    return runs;
}

/* The values of all its sections. */
static SwitchCase case_of(Fn *f, const Section *sections, int count) {
    SwitchCase all = {.of = sections[0].of};
    for (int i = 0; i < count; i++) all.nvalues += sections[i].nvalues;
    int64_t *values = arena_array(f->l->arena, int64_t, all.nvalues + 1);
    all.values = values;
    for (int i = 0; i < count; i++) {
        if (sections[i].nvalues)
            memcpy(values, sections[i].values, sizeof *values * (size_t)sections[i].nvalues);
        values += sections[i].nvalues;
        if (!all.of) all.of = sections[i].of;
    }
    return all;
}

static void lower_sections(Fn *f, Val *value, const Stmt *body, const SectionVec *sections) {
    RunVec runs = joined_sections(f, body, sections);
    SwitchCase *cases = arena_array(f->l->arena, SwitchCase, runs.count + 1);
    Run fallback = {0};
    int n = 0;
    for (int i = 0; i < runs.count; i++) {
        const Run *run = &runs.at[i];
        if (run->is_default) fallback = *run;
        else cases[n++] = case_of(f, &sections->at[run->first], run->count);
    }
    Inst *inst = build_switch(&f->b, value, cases, n, NULL, 0);
    int k = 0;
    for (int i = 0; i < runs.count; i++) {
        const Run *run = &runs.at[i];
        if (!run->is_default)
            fill_joined(f, inst->regions[k++], value, body, &sections->at[run->first], run->count);
    }
    const Section *rest = fallback.count ? &sections->at[fallback.first] : NULL;
    fill_joined(f, inst->regions[n], value, body, rest, fallback.count);
}

/* Variables that one section declares and others use have their place before all of them. */
static void place_early(Fn *f, const Stmt *body) {
    for (int i = 0; i < body->body.count; i++) {
        const Stmt *s = body->body.at[i];
        for (int k = 0; s->kind == STMT_decl && k < s->decls.count; k++) {
            Decl *decl = s->decls.at[k];
            bool shared = decl->kind == DECL_var && decl->flags & DECL_IN_CASES;
            if (!shared || decl->modifiers & MODIFIER_static || !takes_memory(concrete(f, decl->type)))
                continue;
            Val *address = build_var(&f->b, ir_type(f, decl->type), decl->name, false);
            bind_local(f, decl, (Local){.address = address, .early = true});
        }
    }
}

static void lower_switch(Fn *f, Stmt *stmt) {
    Val *value = lower_value(f, stmt->expr);
    if (value->type->kind == TYPE_bool)
        value = build_convert(&f->b, value, type_basic(f->l->types, TYPE_int));
    if (!stmt->then) return;
    SectionVec sections = sections_of(f, stmt->then);
    Inst *block = build_block(&f->b);
    Builder outer = f->b;
    f->b = build_at_end(block->regions[0]);
    f->b.loc = outer.loc;
    Target target = {.outer = f->targets, .stmt = stmt, .inst = block, .defers = f->defers};
    f->targets = &target;
    place_early(f, stmt->then);
    lower_sections(f, value, stmt->then, &sections);
    build_yield(&f->b, NULL, 0);
    f->dead = false;
    f->targets = target.outer;
    f->b = outer;
}

/* ---- jumps */

Target *find_target(Fn *f, const Stmt *stmt) {
    for (Target *t = f->targets; t; t = t->outer)
        if (t->stmt == stmt) return t;
    arena_fault(f->l->arena, "a jump has no target");
}

static void lower_break(Fn *f, Stmt *stmt) {
    Target *target = find_target(f, stmt->target);
    run_defers(f, target->defers);
    build_break(&f->b, target->inst, NULL, 0);
    f->dead = true;
}

static void lower_continue(Fn *f, Stmt *stmt) {
    Target *target = find_target(f, stmt->target);
    run_defers(f, target->defers);
    if (target->step) build_break(&f->b, target->step, NULL, 0);
    else build_continue(&f->b, target->inst, NULL, 0);
    f->dead = true;
}

/* The set that a `ref` accessor stands for: the place it returns takes the new value. */
static void return_into_place(Fn *f, Stmt *stmt) {
    const Local *value = find_local(f, vec_last(&f->request->decl->params));
    Place place = lower_place(f, stmt->expr);
    if (value->value) place_store(f, &place, value->value);
    else place_store_from(f, &place, value->address);
}

/* The address that a `ref` accessor stands for. */
static Val *address_of_place(Fn *f, Stmt *stmt) {
    Place place = lower_place(f, stmt->expr);
    Val *address = place_reference(f, &place);
    if (!address) arena_fault(f->l->arena, "a place that a ref accessor gives has no address");
    return address;
}

/* The result of a function that says no_diff: nothing flows through it, inlined or not. */
static void lower_into_plain(Fn *f, Expr *e, Val *to) {
    Val *temp = temp_var(f, f->sig->result, "no_diff");
    lower_into(f, e, temp);
    copy_object(f, to, temp, true);
}

static void lower_return(Fn *f, Stmt *stmt) {
    Val *value = NULL;
    const Type *result = lower_type(f->l, f->sig->result);
    const Decl *decl = f->request->decl;
    bool plain = f->diff && f->sig->result_no_diff;
    bool of_ref = decl && decl->sema && decl->sema->ref_accessor;
    if (of_ref && decl->flavour == FUNC_set) return_into_place(f, stmt);
    else if (of_ref && decl->flavour == FUNC_plain) value = address_of_place(f, stmt);
    else if (stmt->expr) {
        if (f->sig->is_init || result->kind == TYPE_void) lower_effect(f, stmt->expr);
        else if (is_simple(result)) value = detached(f, lower_value(f, stmt->expr), plain);
        else if (plain) lower_into_plain(f, stmt->expr, f->result);
        else lower_into(f, stmt->expr, f->result);
    }
    run_defers(f, NULL);
    if (f->sig->is_init && !f->result) value = build_load(&f->b, f->self.address);
    build_return(&f->b, &value, value ? 1 : 0);
    f->dead = true;
}

static void lower_block(Fn *f, Stmt *stmt) {
    Defer *defers = f->defers;
    for (int i = 0; i < stmt->body.count && !f->dead; i++) lower_stmt(f, stmt->body.at[i]);
    if (!f->dead) run_defers(f, defers);
    f->defers = defers;
}

static void lower_static_assert(Fn *f, Stmt *stmt) {
    int64_t value;
    if (expr_constant(f, stmt->expr, &value) && !value)
        lower_report(f, DIAG_static_assert, stmt->loc, format_text(f->l->arena, "%.*s", STR_ARG(stmt->text)));
}

void lower_stmt(Fn *f, Stmt *stmt) {
    if (f->dead) return;
    f->b.loc = stmt->loc;
    switch ((StmtKind)stmt->kind) {
    case STMT_expr: lower_effect(f, stmt->expr); break;
    case STMT_decl: lower_decls(f, stmt); break;
    case STMT_block: lower_block(f, stmt); break;
    case STMT_if: lower_if(f, stmt); break;
    case STMT_switch: lower_switch(f, stmt); break;
    case STMT_for:
    case STMT_while:
    case STMT_do: lower_loop(f, stmt); break;
    case STMT_break: lower_break(f, stmt); break;
    case STMT_continue: lower_continue(f, stmt); break;
    case STMT_return: lower_return(f, stmt); break;
    case STMT_throw: lower_throw(f, stmt); break;
    case STMT_try: lower_try_block(f, stmt); break;
    case STMT_catch: break;
    case STMT_defer: {
        Defer *defer = arena_new(f->l->arena, Defer);
        *defer = (Defer){f->defers, stmt->then};
        f->defers = defer;
        break;
    }
    case STMT_label: lower_stmt(f, stmt->then); break;
    case STMT_static_for: lower_static_for(f, stmt); break;
    case STMT_static_assert: lower_static_assert(f, stmt); break;
    case STMT_empty:
    case STMT_case:
    case STMT_target_switch: /* none of its branches: the function is not lowered */
    case STMT_intrinsic_asm:
    case STMT_discard: break;
    }
}

/* ---- functions */

static Local param_local(Fn *f, Val *value, const Param *param, bool assigned) {
    if (!(param->flags & PARAM_BY_ADDRESS)) {
        if (!assigned) return (Local){.value = value};
        Val *address = build_var(&f->b, param->type, param->name, true);
        build_store(&f->b, address, value);
        return (Local){.address = address};
    }
    if (param->dir != DIR_in || !assigned) return (Local){.address = value, .shared = param->dir == DIR_ref};
    Val *copy = build_var(&f->b, param->type, param->name, true);
    copy_object(f, copy, value, false);
    return (Local){.address = copy};
}

static void bind_pack(Fn *f, Decl *decl, Local local) {
    Local *pack = find_local(f, decl);
    if (!pack) {
        bind_local(f, decl, (Local){0});
        pack = find_local(f, decl);
    }
    Local *elements = arena_array(f->l->arena, Local, pack->nelements + 1);
    if (pack->nelements) memcpy(elements, pack->elements, sizeof(Local) * (size_t)pack->nelements);
    elements[pack->nelements++] = local;
    pack->elements = elements;
}

static void bind_params(Fn *f) {
    const Func *func = f->func;
    int next = 0;
    Val **values = func->body->params;
    if (func->nparams && (func->params[0].flags & PARAM_RESULT)) f->result = values[next++];
    if (f->sig->has_this) {
        f->self = param_local(f, values[next], &func->params[next], false);
        next++;
    }
    for (int i = 0; i < f->sig->nparams; i++) {
        const ParamSig *param = &f->sig->params[i];
        if (param->type->kind == TYPE_function) continue;
        if (!is_passed(param)) { /* an element that is void */
            if (param->is_pack && param->decl) bind_pack(f, param->decl, (Local){0});
            continue;
        }
        bool assigned = param->decl && (param->decl->flags & DECL_ASSIGNED);
        Local local = param_local(f, values[next], &func->params[next], assigned);
        if (param->is_pack && param->decl) bind_pack(f, param->decl, local);
        else if (param->decl) bind_local(f, param->decl, local);
        next++;
    }
    for (int i = 0; i < f->request->generic.nparams; i++) { /* a pack of no elements */
        const ParamSig *param = &f->request->generic.params[i];
        if (param->is_pack && param->decl && !find_local(f, param->decl))
            bind_local(f, param->decl, (Local){0});
    }
}

Fn fn_begin(Lowerer *l, Request *request) {
    Fn f = {.l = l,
            .request = request,
            .func = request->func,
            .subst = request->subst,
            .sig = &request->sig,
            .pack_element = -1};
    f.b = build_at_end(func_begin(request->func));
    f.b.loc = request->func->loc;
    f.self_type = request->sig.this_type;
    return f;
}

/* A body whose end can be reached returns; what a function without a value there returns is zero. */
void fn_end(Fn *f) {
    if (!f->dead) {
        Val *zero = f->func->nresults ? ir_const_zero(f->l->m, f->func->results[0]) : NULL;
        build_return(&f->b, &zero, zero ? 1 : 0);
    }
}

/* A constructor's `this` is the result. Fields with default values have them before the body runs. */
static void begin_init(Fn *f) {
    const Type *front = f->sig->result;
    f->self_type = front;
    if (f->result) f->self = (Local){.address = f->result};
    else f->self = (Local){.address = build_var(&f->b, lower_type(f->l, front), NULL, false)};
    if (front->kind != TYPE_struct) return;
    DeclVec fields = check_all_fields(f->l->c, front);
    for (int i = 0; i < fields.count; i++) {
        if (!fields.at[i]->init) continue;
        Place place = place_new_field(f, f->self.address, front, fields.at[i]);
        place_default(f, &place, front, fields.at[i]);
    }
}

static void end_init(Fn *f) {
    if (f->dead || f->result) return;
    Val *value = build_load(&f->b, f->self.address);
    build_return(&f->b, &value, 1);
    f->dead = true;
}

/* A prelude function that is one operation: [__op(sin)]. Called as a function only when it is differentiated
 * by name. */
static void lower_op_body(Fn *f) {
    Val *value = lower_op(f, f->request->decl, f->request->subst, f->func->body->params + (f->result ? 1 : 0),
                          f->result);
    if (value) {
        build_return(&f->b, &value, 1);
        f->dead = true;
    }
}

/* A parameter of function type whose function is not known: nobody calls it in this form. */
static bool lacks_function(const Request *request) {
    int functions = 0;
    for (int i = 0; i < request->sig.nparams; i++)
        functions += request->sig.params[i].type->kind == TYPE_function;
    return functions > request->nbindings;
}

/* Said once for a function, however often it is specialised, with the way that leads there. */
bool report_foreign(Lowerer *l, const Request *request) {
    const Sema *sema = request->decl->sema;
    if (!sema || !sema->foreign) return false;
    if (map_has(&l->foreign, PTR_KEY(request->decl))) return true;
    map_put(l->arena, &l->foreign, PTR_KEY(request->decl), request->decl);
    const Decl *decl = request->decl;
    const char *name = decl->name ? decl->name->text : "get";
    const Request *cause = request->cause;
    for (; cause && cause->decl && decl_is_library(cause->decl); cause = cause->cause)
        if (cause->decl->name) name = cause->decl->name->text; /* what the program has written */
    if (decl_is_library(decl) && cause && cause->decl && cause->decl->name) {
        diag_report(l->m->diags, DIAG_foreign_library, cause->decl->loc, cause->decl->name->text, name);
        cause = cause->cause;
    } else diag_report(l->m->diags, DIAG_foreign_code, sema->foreign_loc, name, sema->foreign);
    for (const Request *r = cause; r; r = r->cause)
        if (r->decl && r->decl->name)
            diag_note(l->m->diags, DIAG_note_reached_from, r->decl->loc, r->decl->name->text);
    return true;
}

static void lower_decl_body(Lowerer *l, Request *request) {
    Decl *decl = request->decl;
    check_decl_body(l->c, decl);
    bool is_op = decl->sema && decl->sema->op;
    Decl *ref = decl->sema ? decl->sema->ref_accessor : NULL;
    if (!ref && !decl->body && !decl->body_expr && !is_op) { /* declared only */
        check_derivatives(l->c, decl);
        const Sema *sema =
            decl->sema; /* a function that is only differentiated needs none if its derivative is given */
        bool derived = sema->fwd.decl || sema->bwd.decl || sema->substitute.decl;
        if (request->cause && !derived)
            diag_report(l->m->diags, DIAG_no_body, decl->loc, decl->name ? decl->name->text : "?");
        return;
    }
    if ((decl->flags & DECL_BODY_ERRORS) || lacks_function(request)) return;
    if (report_foreign(l, request)) return;
    Fn f = fn_begin(l, request);
    f.diff = (request->func->flags & (FUNC_FWD | FUNC_BWD)) != 0;
    bind_params(&f);
    begin_error(&f);
    if (is_op) {
        lower_op_body(&f);
        fn_end(&f);
        return;
    }
    if (f.sig->is_init) begin_init(&f);
    if (decl->body_expr) {
        Stmt statement = {.kind = STMT_return, .expr = decl->body_expr, .loc = decl->body_expr->loc};
        if (decl->body_expr->type->kind == TYPE_void) lower_effect(&f, decl->body_expr);
        else lower_return(&f, &statement);
    } else lower_stmt(&f, ref ? ref->body : decl->body);
    if (f.sig->is_init) end_init(&f);
    fn_end(&f);
}

void lower_body(Lowerer *l, Request *request) {
    if (request->decl && !decl_is_library(request->decl)) l->at = request->decl->loc;
    if (request->func->body) return;
    Request *outer = l->current;
    l->current = request;
    switch (request->kind) {
    case REQUEST_decl: lower_decl_body(l, request); break;
    case REQUEST_dispatch: lower_dispatch_body(l, request); break;
    case REQUEST_opened: lower_opened_body(l, request); break;
    case REQUEST_init: lower_global_init(l, request); break;
    case REQUEST_entry: lower_entry_body(l, request); break;
    case REQUEST_move: lower_move_body(l, request); break;
    }
    l->current = outer;
}
