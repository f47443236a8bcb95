/* Interface values: a tag and, for each type that can stand behind the interface, a field.
 *
 * A call through an interface is a call of a dispatch function, whose body is a switch on the tag. A generic
 * function that is called with an interface value for its type parameter is opened in the same way: the
 * switch calls the specialisation for each type. Where the tag is known, inlining and simplification leave
 * the one call. */
#include "lower/lowerer.h"

static bool is_interface_diff(const Type *type) {
    return type->kind == TYPE_assoc && type->args[0]->kind == TYPE_interface;
}

/* ---- between forms */

static Val *tag_of(Fn *f, Val *interface) { return build_load(&f->b, build_field(&f->b, interface, 0)); }

static void move(Fn *f, const Type *front, Val *from, Val *to) {
    if (is_simple(lower_type(f->l, front))) build_store(&f->b, to, build_load(&f->b, from));
    else copy_object(f, to, from, false);
}

typedef void (*VariantVisitor)(Fn *f, const Type *type, int index, void *user);

/* A switch over the types behind `interface`, each case filled by `visit`. */
static void switch_variants(Fn *f, const Type *interface, Val *tag, VariantVisitor visit, void *user) {
    Lowerer *l = f->l;
    lower_type(l, interface);
    int n = check_conformers(l->c, interface)->count;
    SwitchCase *cases = arena_array(l->arena, SwitchCase, n + 1);
    int64_t *values = arena_array(l->arena, int64_t, n + 1);
    for (int i = 0; i < n; i++) {
        values[i] = i + 1;
        cases[i] = (SwitchCase){&values[i], 1, NULL};
    }
    Inst *inst = build_switch(&f->b, tag, cases, n, NULL, 0);
    Builder outer = f->b;
    for (int i = 0; i <= n; i++) {
        f->b = build_at_end(inst->regions[i]);
        f->b.loc = outer.loc;
        f->dead = false;
        if (i < n) visit(f, check_conformers(l->c, interface)->at[i], i, user);
        build_yield(&f->b, NULL, 0);
    }
    f->b = outer;
}

typedef struct Between {
    const Type *from_type, *to_type;
    Val *from, *to;
} Between;

static void widen_variant(Fn *f, const Type *type, int index, void *user) {
    const Between *between = user;
    int field = variant_index(f->l, between->to_type, type);
    build_store(&f->b, build_field(&f->b, between->to, 0), const_int(f, TYPE_uint, field));
    Val *from_part = build_field(&f->b, between->from, index + 1);
    Val *to_part = build_field(&f->b, between->to, field);
    move(f, type, from_part, to_part);
}

/* A differential of one type among those of all types behind an interface. */
static void through_differential(Fn *f, const Type *sum, Val *sum_at, const Type *type, Val *at,
                                 bool into_sum) {
    Checker *c = f->l->c;
    const TypeVec *types = check_conformers(c, sum->args[0]);
    for (int i = 0; i < types->count; i++) {
        if (part_of_variant(f->l, sum, types->at[i]) != type) continue;
        Val *field = build_field(&f->b, sum_at, i);
        if (into_sum) move(f, type, at, field);
        else {
            move(f, type, field, at);
            return;
        }
    }
}

/* Box<A> to Box<I>: the same struct, tuple, array or optional, of other parts. */
static bool pass_parts(Fn *f, const Type *from_type, Val *from, const Type *to_type, Val *to) {
    Checker *c = f->l->c;
    bool alike = from_type->kind == to_type->kind && from_type->decl == to_type->decl &&
                 from_type->nargs == to_type->nargs;
    if (!alike) return false;
    if (from_type->kind == TYPE_struct) {
        DeclVec fields = check_all_fields(c, from_type);
        const FieldSlot *slots = check_field_slots(c, from_type, &fields);
        for (int i = 0; i < fields.count; i++) {
            int member = slots[i].member;
            if (!slots[i].is_first) continue;
            const Type *to_field =
                slots[i].is_bits ? slots[i].word : check_field_type(c, to_type, fields.at[i]);
            Val *from_part = build_field(&f->b, from, member);
            Val *to_part = build_field(&f->b, to, member);
            pass_between(f, slots[i].word, from_part, to_field, to_part);
        }
    } else if (from_type->kind == TYPE_array) {
        for (int64_t i = 0; i < type_length(from_type); i++) {
            Val *index = const_int(f, TYPE_int, i);
            Val *from_part = build_elem(&f->b, from, index, true);
            Val *to_part = build_elem(&f->b, to, index, true);
            pass_between(f, from_type->args[0], from_part, to_type->args[0], to_part);
        }
    } else if (from_type->kind == TYPE_tuple || from_type->kind == TYPE_optional) {
        for (int i = 0; i < from_type->nargs; i++) {
            Val *from_part = build_field(&f->b, from, i);
            Val *to_part = build_field(&f->b, to, i);
            pass_between(f, from_type->args[i], from_part, to_type->args[i], to_part);
        }
        if (from_type->kind == TYPE_optional) {
            Val *to_part = build_field(&f->b, to, 1);
            Val *term = build_load(&f->b, build_field(&f->b, from, 1));
            build_store(&f->b, to_part, term);
        }
    } else return false;
    return true;
}

void pass_between(Fn *f, const Type *from_type, Val *from, const Type *to_type, Val *to) {
    bool sums = is_interface_diff(to_type) || is_interface_diff(from_type),
         interfaces = from_type->kind == TYPE_interface && to_type->kind == TYPE_interface;
    if (from_type == to_type) move(f, from_type, from, to);
    else if (from_type->kind == TYPE_pair && to_type->kind == TYPE_pair)
        convert_pair(f, from_type, from, to_type, to);
    else if (sums || interfaces) call_move(f, MOVE_between, from_type, to_type, from, to);
    else if (from_type->kind == TYPE_interface)
        move(f, to_type, build_field(&f->b, from, variant_index(f->l, from_type, to_type)), to);
    else if (to_type->kind == TYPE_interface) {
        bool simple = is_simple(lower_type(f->l, from_type));
        to_interface(f, to_type, from_type, simple ? build_load(&f->b, from) : NULL, simple ? NULL : from,
                     to);
    } else if (!pass_parts(f, from_type, from, to_type, to)) move(f, from_type, from, to);
}

/* ---- moves that depend on what is behind an interface */

void call_move(Fn *f, MoveKind kind, const Type *from_type, const Type *to_type, Val *from, Val *to) {
    Val *args[2] = {to, from};
    if (is_simple(lower_type(f->l, from_type))) args[1] = build_load(&f->b, from);
    if (is_simple(lower_type(f->l, to_type))) { /* a differential that is a number */
        args[0] = temp_var(f, to_type, "moved");
        build_call(&f->b, request_move(f->l, kind, from_type, to_type), args, 2);
        build_store(&f->b, to, build_load(&f->b, args[0]));
        return;
    }
    build_call(&f->b, request_move(f->l, kind, from_type, to_type), args, 2);
}

static Val *payload_as(Fn *f, Val *stored, const Type *type) {
    Val *payload = build_field(&f->b, stored, 2);
    return build_bitcast(&f->b, payload, type_pointer(f->l->types, lower_external_type(f->l, type)));
}

static void load_variants(Fn *f, const Type *interface, Val *from, Val *to) {
    Lowerer *l = f->l;
    int n = check_conformers(l->c, interface)->count;
    SwitchCase *cases = arena_array(l->arena, SwitchCase, n + 1);
    int64_t *values = arena_array(l->arena, int64_t, n + 1);
    for (int i = 0; i < n; i++) {
        values[i] = check_conformer_id(l->c, interface, i);
        cases[i] = (SwitchCase){&values[i], 1, NULL};
    }
    Inst *inst = build_switch(&f->b, build_load(&f->b, build_field(&f->b, from, 1)), cases, n, NULL, 0);
    Builder outer = f->b;
    for (int i = 0; i <= n; i++) {
        f->b = build_at_end(inst->regions[i]);
        f->b.loc = outer.loc;
        const Type *type = i < n ? check_conformers(l->c, interface)->at[i] : NULL;
        if (type && external_layout(l, type).size <= external_room(l, interface)) {
            build_store(&f->b, build_field(&f->b, to, 0), const_int(f, TYPE_uint, i + 1));
            Val *payload = payload_as(f, from, type);
            Val *to_part = build_field(&f->b, to, i + 1);
            from_external(f, type, payload, to_part);
        }
        build_yield(&f->b, NULL, 0);
    }
    f->b = outer;
}

static void store_variant(Fn *f, const Type *type, int index, void *user) {
    const Between *between = user;
    const Type *word = type_basic(f->l->types, TYPE_uint64);
    if (!fits_external(f->l, between->from_type, type)) return;
    int64_t id = check_conformer_id(f->l->c, between->from_type, index);
    build_store(&f->b, build_field(&f->b, between->to, 0), ir_const_int(f->l->m, word, id));
    build_store(&f->b, build_field(&f->b, between->to, 1), ir_const_int(f->l->m, word, id));
    Val *from_part = build_field(&f->b, between->from, index + 1);
    Val *payload = payload_as(f, between->to, type);
    to_external(f, type, from_part, payload);
}

/* ---- the differential of one type, out of that of an interface */

static void set_if_nonzero(Fn *f, Val *at, Val *flag) {
    const Type *type = at->type->args[0];
    if (type_is_float(type)) {
        Val *value = build_load(&f->b, at);
        Val *differs = build_binary(&f->b, OP_ne, value, ir_const_zero(f->l->m, type));
        build_store(&f->b, flag, build_binary(&f->b, OP_or, build_load(&f->b, flag), differs));
    } else if (type->kind == TYPE_vector || type->kind == TYPE_array) {
        int64_t n = type->kind == TYPE_vector ? type_count(type) : type_length(type);
        for (int64_t i = 0; i < n; i++)
            set_if_nonzero(f, build_elem(&f->b, at, const_int(f, TYPE_int, i), true), flag);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++)
            set_if_nonzero(f, build_field(&f->b, at, i), flag);
    }
}

static void take_variant(Fn *f, const Type *type, int index, void *user) {
    const Between *between = user;
    const Type *wanted = between->to_type->args[0];
    if (check_differential(f->l->c, type) != wanted) return;
    Val *from_part = build_field(&f->b, between->from, index);
    Val *to_part = build_field(&f->b, between->to, 0);
    move(f, wanted, from_part, to_part);
    build_store(&f->b, build_field(&f->b, between->to, 1), const_int(f, TYPE_bool, 1));
}

/* Without its value it does not know its type: it is of one where that part of it is not zero. */
static void if_nonzero(Fn *f, int index, Between *between, VariantVisitor visit) {
    const Type *type = check_conformers(f->l->c, between->from_type->args[0])->at[index];
    Val *flag = build_var(&f->b, type_basic(f->l->types, TYPE_bool), NULL, false);
    build_store(&f->b, flag, const_int(f, TYPE_bool, 0));
    set_if_nonzero(f, build_field(&f->b, between->from, index), flag);
    Inst *branch = build_if(&f->b, build_load(&f->b, flag), NULL, 0);
    Builder outer = f->b;
    f->b = build_at_end(branch->regions[0]);
    visit(f, type, index, between);
    build_yield(&f->b, NULL, 0);
    f->b = build_at_end(branch->regions[1]);
    build_yield(&f->b, NULL, 0);
    f->b = outer;
}

static void take_nonzero(Fn *f, Between *between) {
    const TypeVec *types = check_conformers(f->l->c, between->from_type->args[0]);
    for (int i = 0; i < types->count; i++)
        if (check_differential(f->l->c, types->at[i]) == between->to_type->args[0])
            if_nonzero(f, i, between, take_variant);
}

static void take_differential(Fn *f, Between *between) {
    if (between->from_type->kind != TYPE_pair) {
        take_nonzero(f, between);
        return;
    }
    Val *value = build_field(&f->b, between->from, 0);
    between->from = build_field(&f->b, between->from, 1);
    switch_variants(f, between->from_type->args[0], tag_of(f, value), take_variant, between);
}

/* ---- between the differential of an interface and a value of IDifferentiable */

static void into_sum_variant(Fn *f, const Type *type, int index, void *user) {
    const Between *between = user;
    through_differential(f, between->to_type, between->to, type, build_field(&f->b, between->from, index + 1),
                         true);
}

static void differential_variant(Fn *f, const Type *type, int index, void *user) {
    const Between *between = user;
    const Type *d = check_differential(f->l->c, type);
    if (!d) return;
    Val *at = build_field(&f->b, between->from, index);
    Val *value = is_simple(lower_type(f->l, d)) ? build_load(&f->b, at) : NULL;
    to_interface(f, between->to_type, d, value, at, between->to);
}

static void differential_to_interface(Fn *f, Between *between) {
    if (between->from_type->kind == TYPE_pair) {
        Val *value = build_field(&f->b, between->from, 0);
        between->from = build_field(&f->b, between->from, 1);
        switch_variants(f, between->from_type->args[0], tag_of(f, value), differential_variant, between);
        return;
    }
    const TypeVec *types = check_conformers(f->l->c, between->from_type->args[0]);
    for (int i = 0; i < types->count; i++)
        if (check_differential(f->l->c, types->at[i])) if_nonzero(f, i, between, differential_variant);
}

/* One function per pair of types: by the time it gets its body, all types behind the interface are known. */
void lower_move_body(Lowerer *l, Request *request) {
    Fn f = fn_begin(l, request);
    f.diff = (request->func->flags & (FUNC_FWD | FUNC_BWD)) != 0;
    Val *to = request->func->body->params[0], *from = request->func->body->params[1];
    const Type *from_type = request->type, *to_type = request->to;
    Between between = {from_type, to_type, from, to};
    if (!(request->func->params[1].flags & PARAM_BY_ADDRESS)) {
        from = temp_var(&f, from_type, "value");
        build_store(&f.b, from, request->func->body->params[1]);
    }
    if (request->move == MOVE_load || request->move == MOVE_store) settle_external(l, from_type);
    if (request->move != MOVE_store) build_zero(&f.b, to);
    if (request->move == MOVE_as) take_differential(&f, &between);
    else if (request->move == MOVE_load) load_variants(&f, from_type, from, to);
    else if (request->move == MOVE_store)
        switch_variants(&f, from_type, tag_of(&f, from), store_variant, &between);
    else if (is_interface_diff(to_type) && from_type->kind == TYPE_interface)
        switch_variants(&f, from_type, tag_of(&f, from), into_sum_variant, &between);
    else if (to_type->kind == TYPE_interface &&
             (is_interface_diff(from_type) || from_type->kind == TYPE_pair))
        differential_to_interface(&f, &between);
    else if (is_interface_diff(to_type)) through_differential(&f, to_type, to, from_type, from, true);
    else if (is_interface_diff(from_type)) through_differential(&f, from_type, from, to_type, to, false);
    else switch_variants(&f, from_type, tag_of(&f, from), widen_variant, &between);
    fn_end(&f);
}

/* ---- calling the implementation for one type */

typedef struct Dispatch {
    Request *request;
    const Type *interface;
    int open;          /* opened: index of the parameter, -1: this */
    const Decl *owner; /* opened: whose parameter */
    int owner_index;
} Dispatch;

/* The value of a parameter as the implementation wants it: a value, or an address. */
static Val *adapt(Fn *f, const Type *from_type, Val *value, bool by_address, const Type *to_type,
                  bool to_address) {
    const Type *to_ir = lower_type(f->l, to_type);
    if (from_type == to_type && by_address == to_address) return value;
    Val *at = value;
    if (!by_address) {
        at = temp_var(f, from_type, "arg");
        build_store(&f->b, at, value);
    }
    if (from_type->kind == TYPE_interface && to_type->kind != TYPE_interface)
        at = build_field(&f->b, at, variant_index(f->l, from_type, to_type));
    else if (from_type != to_type) {
        Val *converted = temp_var(f, to_type, "arg");
        pass_between(f, from_type, at, to_type, converted);
        at = converted;
    }
    if (to_address) return at;
    return is_simple(to_ir) ? build_load(&f->b, at) : at;
}

static void return_result(Fn *f, const Type *from_type, Val *value, Val *at, const Type *to_type) {
    const Type *ir = lower_type(f->l, to_type);
    if (ir->kind == TYPE_void) return;
    if (from_type == to_type) {
        if (is_simple(ir)) build_store(&f->b, f->result, value);
        return; /* else it is there */
    }
    if (value) {
        at = temp_var(f, from_type, "result");
        build_store(&f->b, at, value);
    }
    pass_between(f, from_type, at, to_type, f->result);
}

static void call_variant(Fn *f, Request *callee) {
    Lowerer *l = f->l;
    const FuncSig *have = f->sig, *want = &callee->sig;
    const Func *func = f->func;
    ValVec args = {0};
    int next = func->nparams && (func->params[0].flags & PARAM_RESULT) ? 1 : 0,
        target = callee->func->nparams && (callee->func->params[0].flags & PARAM_RESULT) ? 1 : 0;
    if (have->has_this) {
        bool by_address = (func->params[next].flags & PARAM_BY_ADDRESS) != 0;
        if (want->has_this) {
            bool to_address = (callee->func->params[target++].flags & PARAM_BY_ADDRESS) != 0;
            vec_push(
                l->arena, &args,
                adapt(f, have->this_type, func->body->params[next], by_address, want->this_type, to_address));
        }
        next++;
    }
    for (int i = 0; i < have->nparams && i < want->nparams; i++) {
        if (have->params[i].type->kind == TYPE_function) continue;
        bool by_address = (func->params[next].flags & PARAM_BY_ADDRESS) != 0,
             to_address = (callee->func->params[target].flags & PARAM_BY_ADDRESS) != 0;
        vec_push(l->arena, &args,
                 adapt(f, have->params[i].type, func->body->params[next], by_address, want->params[i].type,
                       to_address));
        next++;
        target++;
    }
    const Type *result = lower_type(l, want->result);
    Val *at = NULL;
    if (!is_simple(result))
        at = want->result == have->result ? f->result : temp_var(f, want->result, "result");
    Val *value = call_func(f, callee->func, args.at, args.count, result, at);
    return_result(f, want->result, value, at, have->result);
}

/* ---- requirements */

static Decl *accessor_like(Decl *property, const Decl *like) {
    for (int i = 0; i < property->members.count; i++)
        if (property->members.at[i]->kind == DECL_func && property->members.at[i]->flavour == like->flavour)
            return property->members.at[i];
    return NULL;
}

static void access_variant_field(Fn *f, const Type *type, int index, Decl *field, const Decl *accessor) {
    Place object = place_of_memory(build_field(&f->b, f->self.address, index + 1), type);
    Place place = place_field(f, object, field);
    bool simple = is_simple(lower_type(f->l, place.type));
    if (accessor->flavour == FUNC_get) place_load_into(f, &place, f->result);
    else {
        Val *value = f->func->body->params[f->func->nparams - 1];
        if (simple) place_store(f, &place, value);
        else place_store_from(f, &place, value);
    }
}

static void requirement_variant(Fn *f, const Type *type, int index, void *user) {
    const Dispatch *dispatch = user;
    Lowerer *l = f->l;
    Decl *requirement = dispatch->request->decl, *owner = requirement->parent;
    Decl *interface = owner->kind == DECL_interface ? owner : owner->parent;
    const Subst *subst = check_subst_behind(l->c, dispatch->request->subst, interface, type);
    if (owner != interface) { /* accessor of a property */
        Satisfaction found = check_witness(l->c, type, owner, subst);
        if (found.kind == SATISFY_field) {
            access_variant_field(f, type, index, found.decl, requirement);
            return;
        }
        Decl *accessor = requirement;
        if (found.kind == SATISFY_decl) {
            accessor = accessor_like(found.decl, requirement);
            subst = own_arguments(l, found.subst, found.decl, owner, subst);
        }
        if (accessor) call_variant(f, request_func(l, accessor, subst, false, NULL, 0));
        return;
    }
    Callee callee = resolve_callee(f, requirement, subst);
    if (callee.native) return;
    call_variant(f, callee.request ? callee.request
                                   : request_func(l, callee.decl, callee.subst, false, NULL, 0));
}

static void begin_dispatch(Fn *f) {
    const Func *func = f->func;
    int next = 0;
    if (func->nparams && (func->params[0].flags & PARAM_RESULT)) f->result = func->body->params[next++];
    else if (f->sig->result->kind != TYPE_void) f->result = temp_var(f, f->sig->result, "result");
    if (f->sig->has_this) f->self = (Local){.address = func->body->params[next]};
}

static void end_dispatch(Fn *f) {
    f->dead = false;
    if (f->func->nresults) {
        Val *value = build_load(&f->b, f->result);
        build_return(&f->b, &value, 1);
        f->dead = true;
    }
    fn_end(f);
}

void lower_dispatch_body(Lowerer *l, Request *request) {
    Fn f = fn_begin(l, request);
    f.diff = (request->func->flags & (FUNC_FWD | FUNC_BWD)) != 0;
    begin_dispatch(&f);
    const FuncSig *sig = &request->sig;
    const Type *self = sig->has_this ? sig->this_type : subst_find(request->subst, request->decl->parent, 0);
    Dispatch dispatch = {.request = request, .interface = self};
    if (self->kind == TYPE_interface)
        switch_variants(&f, self, tag_of(&f, f.self.address), requirement_variant, &dispatch);
    else requirement_variant(&f, self, 0, &dispatch);
    end_dispatch(&f);
}

/* ---- opened generics */

/* The only parameter whose declared type is just a generic parameter that is bound to an interface. */
static bool find_open(Lowerer *l, Decl *decl, const Subst *subst, Dispatch *out) {
    const FuncSig *sig = check_signature(l->c, decl);
    for (int i = sig->has_this ? -1 : 0; i < sig->nparams; i++) {
        const Type *type = i < 0 ? sig->this_type : sig->params[i].type;
        uint8_t pass = i < 0 ? sig->this_pass : sig->params[i].pass;
        if (type->kind != TYPE_param || pass != PASS_in) continue;
        const Decl *owner = type->decl;
        bool own = owner == decl || owner->kind == DECL_extension;
        const Type *bound = own ? subst_find(subst, owner, (int)type->number) : NULL;
        if (!bound || bound->kind != TYPE_interface || !check_opens(l->c, sig, type)) continue;
        *out = (Dispatch){.interface = bound, .open = i, .owner = owner, .owner_index = (int)type->number};
        return true;
    }
    return false;
}

bool needs_opening(Lowerer *l, Decl *decl, const Subst *subst) {
    Dispatch unused;
    for (const Subst *s = subst; s; s = s->outer)
        for (int i = 0; i < s->nargs; i++)
            if (s->args[i]->kind == TYPE_interface) return find_open(l, decl, subst, &unused);
    return false;
}

static const Subst *subst_with(Lowerer *l, const Subst *subst, const Decl *owner, int index,
                               const Type *type) {
    if (!subst) return NULL;
    const Type **args = arena_copy(l->arena, subst->args, sizeof subst->args[0] * (size_t)subst->nargs);
    if (subst->owner == owner) args[index] = type;
    return subst_new(l->c, subst_with(l, subst->outer, owner, index, type), subst->owner, args, subst->nargs);
}

static void opened_variant(Fn *f, const Type *type, int index, void *user) {
    const Dispatch *dispatch = user;
    (void)index;
    const Request *request = dispatch->request;
    const Subst *subst = subst_with(f->l, request->subst, dispatch->owner, dispatch->owner_index, type);
    call_variant(f, request_func(f->l, request->decl, subst, request->plain_this, request->bindings,
                                 request->nbindings));
}

void lower_opened_body(Lowerer *l, Request *request) {
    Dispatch dispatch;
    if (!find_open(l, request->decl, request->subst, &dispatch)) return;
    dispatch.request = request;
    Fn f = fn_begin(l, request);
    f.diff = (request->func->flags & (FUNC_FWD | FUNC_BWD)) != 0;
    begin_dispatch(&f);
    int result = request->func->nparams && (request->func->params[0].flags & PARAM_RESULT) ? 1 : 0;
    int index = result + (request->sig.has_this ? 1 : 0) + dispatch.open;
    switch_variants(&f, dispatch.interface, tag_of(&f, request->func->body->params[index]), opened_variant,
                    &dispatch);
    end_dispatch(&f);
}

/* ---- is, as */

static Val *has_type(Fn *f, Expr *e, Val **at) {
    const Type *type = concrete(f, e->b->type_value);
    bool names_type = e->a->kind == EXPR_type;
    const Type *from = concrete(f, names_type ? e->a->type_value : e->a->type);
    if (from->kind != TYPE_interface || names_type) {
        bool holds = check_type_is_a(f->l->c, from, type);
        if (at && holds) *at = lower_address(f, e->a);
        return const_int(f, TYPE_bool, holds);
    }
    Val *value = lower_address(f, e->a);
    if (!check_conforms(f->l->c, type, from, NULL)) return const_int(f, TYPE_bool, 0);
    int field = variant_index(f->l, from, type);
    if (at) *at = build_field(&f->b, value, field);
    return build_binary(&f->b, OP_eq, tag_of(f, value), const_int(f, TYPE_uint, field));
}

/* The pair of which an expression is the differential, if that is an interface's. */
static Expr *pair_around(Fn *f, Expr *e) {
    while (e->kind == EXPR_paren) e = e->a;
    bool part = e->kind == EXPR_part && e->number == 1 && concrete(f, e->a->type)->kind == TYPE_pair;
    return part && concrete(f, e->a->type)->args[0]->kind == TYPE_interface ? e->a : NULL;
}

static void differential_as(Fn *f, Expr *e, const Type *optional, Val *to) {
    Expr *pair = pair_around(f, e), *from = pair ? pair : e;
    call_move(f, MOVE_as, concrete(f, from->type), optional, lower_address(f, from), to);
}

/* A differential as a value of IDifferentiable: what it is of is known from its pair, or from what is not
 * zero in it. */
void differential_into_interface(Fn *f, Expr *e, const Type *interface, Val *to) {
    Expr *pair = pair_around(f, e), *from = pair ? pair : e;
    call_move(f, MOVE_between, concrete(f, from->type), interface, lower_address(f, from), to);
}

Val *lower_is(Fn *f, Expr *e) {
    bool names_type = e->a->kind == EXPR_type;
    if (names_type || !is_interface_diff(concrete(f, e->a->type))) return has_type(f, e, NULL);
    const Type *optional = type_wrap(f->l->types, TYPE_optional, concrete(f, e->b->type_value));
    Val *found = temp_var(f, optional, "found");
    differential_as(f, e->a, optional, found);
    return build_load(&f->b, build_field(&f->b, found, 1));
}

void lower_as(Fn *f, Expr *e, Val *to) {
    const Type *type = concrete(f, e->b->type_value);
    if (is_interface_diff(concrete(f, e->a->type))) {
        differential_as(f, e->a, concrete(f, e->type), to);
        return;
    }
    Val *at = NULL, *holds = has_type(f, e, &at);
    build_zero(&f->b, to);
    if (!at) return;
    Val *place = build_field(&f->b, to, 0);
    move(f, type, at, place);
    build_store(&f->b, build_field(&f->b, to, 1), holds);
}

/* ---- static constants, named through a value */

typedef struct ConstantOf {
    Decl *requirement;
    const Subst *subst;
    Val *to;
} ConstantOf;

static void constant_variant(Fn *f, const Type *type, int index, void *user) {
    const ConstantOf *constant = user;
    (void)index;
    const Subst *subst = check_subst_behind(f->l->c, constant->subst, constant->requirement->parent, type);
    const Type *self = subst_find(subst, constant->requirement->parent, 0);
    Satisfaction found = check_witness(f->l->c, self, constant->requirement, subst);
    if (!found.decl) return;
    Place place = global_place(f, found.decl, found.subst);
    place_load_into(f, &place, constant->to);
}

Place dispatch_constant(Fn *f, Decl *requirement, const Subst *subst, Expr *object) {
    const Type *type = check_subst(f->l->c, requirement->type, subst), *interface = concrete(f, object->type);
    ConstantOf constant = {requirement, subst, temp_var(f, type, "constant")};
    Val *tag = tag_of(f, lower_address(f, object));
    switch_variants(f, interface, tag, constant_variant, &constant);
    return (Place){.kind = PLACE_value, .type = type, .address = constant.to};
}
