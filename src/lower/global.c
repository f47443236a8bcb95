/* Global variables: constants, statics, group-shared memory, uniforms. */
#include "lower/lowerer.h"

static const char *global_name(Lowerer *l, const Decl *decl) {
    const char *name = decl->name ? decl->name->text : "global";
    const Decl *parent = decl->parent;
    if (decl->modifiers & MODIFIER_static)
        for (; parent && parent->kind != DECL_module; parent = parent->parent)
            if (parent->name) name = format_text(l->arena, "%s.%s", parent->name->text, name);
    return name;
}

static GlobalKind kind_of(Lowerer *l, Decl *decl);

static bool names_static(Lowerer *l, const Expr *e) {
    if (!e) return false;
    bool is_static =
        e->kind == EXPR_decl && e->decl->kind == DECL_var && (e->decl->modifiers & MODIFIER_static);
    if (is_static && kind_of(l, e->decl) == GLOBAL_static) return true;
    bool found = names_static(l, e->a) || names_static(l, e->b) || names_static(l, e->c);
    for (int i = 0; i < e->args.count && !found; i++) found = names_static(l, e->args.at[i]);
    return found;
}

/* What is computed from variables of a thread is one itself, though it never changes. */
static GlobalKind kind_of(Lowerer *l, Decl *decl) {
    if (decl->modifiers & MODIFIER_groupshared) return GLOBAL_shared;
    if (!is_constant(decl)) return decl->modifiers & MODIFIER_static ? GLOBAL_static : GLOBAL_uniform;
    static const GlobalKind kinds[] = {GLOBAL_const, GLOBAL_static};
    const GlobalKind *kind = map_get(&l->constant_kinds, PTR_KEY(decl));
    if (kind) return *kind;
    check_decl_body(l->c, decl);
    kind = &kinds[names_static(l, decl->init)];
    map_put(l->arena, &l->constant_kinds, PTR_KEY(decl), (void *)(uintptr_t)kind);
    return *kind;
}

/* ---- constants as data */

static bool set_data(Lowerer *l, Global *global, Expr *init, const Type *front, const Subst *subst) {
    ValVec values = {0};
    if (!constant_data(l, init, front, subst, &values)) return false;
    global->data = values.at;
    global->ndata = values.count;
    return true;
}

/* ---- images of a format that is declared: a uniform begins with it, whoever sets the rest */

/* A constant for each scalar: the format where an image has its own, which is behind fields named `image`,
 * else zero. */
static void add_formats(Lowerer *l, const Type *type, uint16_t format, ValVec *values) {
    if (type->kind == TYPE_array || type->kind == TYPE_vector) {
        int64_t count = type->kind == TYPE_array ? type_length(type) : type_count(type);
        for (int64_t i = 0; i < count; i++) add_formats(l, type->args[0], format, values);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++) {
            const Field *field = &type_record(type)->fields[i];
            bool is_image = strcmp(field->name->text, "image") == 0;
            uint16_t inner = is_image ? format : field->image_format;
            if (format && strcmp(field->name->text, "declared") == 0)
                vec_push(l->arena, values, ir_const_int(l->m, field->type, format));
            else add_formats(l, field->type, inner, values);
        }
    } else vec_push(l->arena, values, ir_const_zero(l->m, type));
}

static void set_formats(Lowerer *l, Global *global) {
    ValVec values = {0};
    if (!global->image_format && !has_image_format(global->type)) return;
    add_formats(l, global->type, global->image_format, &values);
    global->data = values.at;
    global->ndata = values.count;
}

/* ---- making globals */

static void set_init(Lowerer *l, Global *global, Decl *decl, const Subst *subst) {
    Request *request = arena_new(l->arena, Request);
    *request =
        (Request){.kind = REQUEST_init, .decl = decl, .subst = subst, .global = global, .init = decl->init};
    request->func = func_new(l->m, format_text(l->arena, "%s.init", global->name->text));
    request->func->source = request;
    request->func->loc = decl->loc;
    request->sig = (FuncSig){.result = type_basic(l->types, TYPE_void)};
    global->init = request->func;
    vec_push(l->arena, &l->pending, request);
}

void lower_global_init(Lowerer *l, Request *request) {
    if (!request->init) return;
    Fn f = fn_begin(l, request);
    lower_into(&f, request->init, build_global(&f.b, request->global));
    fn_end(&f);
}

/* Does it depend on when it is computed: on parameters, variables, this, on what a function of the program
 * does? */
static bool needs_run(const Expr *e) {
    if (!e) return false;
    bool variable = e->kind == EXPR_decl && e->decl->kind == DECL_var && !is_constant(e->decl),
         called = e->kind == EXPR_invoke && !(e->decl->flags & DECL_PRELUDE);
    if (e->kind == EXPR_this || variable || called) return true;
    bool found = needs_run(e->a) || needs_run(e->b) || needs_run(e->c);
    for (int i = 0; i < e->args.count && !found; i++) found = needs_run(e->args.at[i]);
    return found;
}

static bool is_set_when_reached(const Decl *decl) {
    return decl->flavour == VAR_local && (decl->modifiers & MODIFIER_static) && needs_run(decl->init);
}

static Global *find_global(Lowerer *l, Decl *decl, const Subst *subst) {
    subst = subst_for_decl(l->c, decl, subst);
    uint64_t key = hash_mix(PTR_KEY(decl), PTR_KEY(subst)) | 1;
    Global *global = map_get(&l->globals, key);
    if (global) return global;
    check_decl_body(l->c, decl);
    const Type *front = check_subst(l->c, decl->type, subst);
    bool block = front->kind == TYPE_buffer && front->number == BUFFER_constant;
    bool later = is_set_when_reached(decl);
    GlobalKind kind = later ? GLOBAL_static : kind_of(l, decl);
    const Type *held = block && kind == GLOBAL_uniform ? front->args[0] : front;
    const Type *type = kind == GLOBAL_uniform ? lower_external_type(l, held) : lower_type(l, held);
    global = global_new(l->m, kind, global_name(l, decl), type);
    global->loc = decl->loc;
    global->source = decl;
    global->layout = block ? LAYOUT_std140 : LAYOUT_scalar;
    global->is_block = kind == GLOBAL_uniform && is_block(front);
    global->image_format = image_format(decl);
    if (kind == GLOBAL_uniform) set_formats(l, global);
    map_put(l->arena, &l->globals, key, global);
    bool initialised = kind == GLOBAL_const || kind == GLOBAL_static;
    if (initialised && !decl->init && has_default(l->c, front))
        decl->init = check_default_value(l->c, decl->loc, front);
    if (!initialised || later || !decl->init || decl->init->kind == EXPR_error) return global;
    if (kind != GLOBAL_const || !set_data(l, global, decl->init, front, subst))
        set_init(l, global, decl, subst);
    return global;
}

/* The host lays out what it binds, so sizes are final from now on. */
Global *lower_uniform(Lowerer *l, Decl *decl) {
    Global *global = find_global(l, decl, NULL);
    const Type *held = decl->type->kind == TYPE_buffer || decl->type->kind == TYPE_pointer
                           ? decl->type->args[0]
                           : decl->type;
    if (has_external_form(l, held)) external_layout(l, held);
    return global;
}

Place global_place(Fn *f, Decl *decl, const Subst *subst) {
    Lowerer *l = f->l;
    subst = subst_for_decl(l->c, decl, subst);
    check_decl_body(l->c, decl);
    const Type *front = check_subst(l->c, decl->type, subst);
    const Type *ir = lower_type(l, front);
    const Constant *known = is_constant(decl) && is_simple(ir) ? constant_value(l, decl, subst) : NULL;
    if (known && constant_is_known(known))
        return (Place){.kind = PLACE_value, .type = front, .value = constant_build(f, known, ir)};
    Global *global = find_global(l, decl, subst);
    Val *address = build_global(&f->b, global);
    bool block = front->kind == TYPE_buffer && front->number == BUFFER_constant;
    bool uniform = global->kind == GLOBAL_uniform;
    if (block && uniform) return (Place){.kind = PLACE_value, .type = front, .value = address};
    bool constant = is_constant(decl) || uniform;
    Place place = {
        .kind = PLACE_memory, .type = front, .address = address, .shared = true, .constant = constant};
    if (uniform && has_external_form(l, front)) place.kind = PLACE_external;
    return place;
}

/* A static variable of a function whose first value depends on the run gets it when control first comes
 * there. */
void lower_static(Fn *f, Decl *decl) {
    Lowerer *l = f->l;
    if (!is_set_when_reached(decl)) return; /* made when first used */
    const Subst *subst = subst_for_decl(l->c, decl, f->subst);
    const Type *flag = type_basic(l->types, TYPE_bool);
    uint64_t key = hash_mix(hash_mix(PTR_KEY(decl), PTR_KEY(subst)), 1) | 1;
    Global *done = map_get(&l->globals, key);
    if (!done)
        done = global_new(l->m, GLOBAL_static, format_text(l->arena, "%s.set", decl->name->text), flag);
    map_put(l->arena, &l->globals, key, done);
    Inst *branch = build_if(&f->b, build_load(&f->b, build_global(&f->b, done)), NULL, 0);
    Builder outer = f->b;
    f->b = build_at_end(branch->regions[0]);
    build_yield(&f->b, NULL, 0);
    f->b = build_at_end(branch->regions[1]);
    f->b.loc = outer.loc;
    lower_into(f, decl->init, build_global(&f->b, find_global(l, decl, f->subst)));
    build_store(&f->b, build_global(&f->b, done), const_int(f, TYPE_bool, 1));
    build_yield(&f->b, NULL, 0);
    f->b = outer;
}

/* ---- text */

/* The address of its bytes, which a zero ends. */
Val *lower_text(Fn *f, Str text) {
    Lowerer *l = f->l;
    const Type *byte = type_basic(l->types, TYPE_int8);
    Global *global = global_new(l->m, GLOBAL_const, "text", type_array(l->types, byte, text.len + 1));
    global->ndata = text.len + 1;
    global->data = arena_array(l->arena, Val *, global->ndata);
    for (int i = 0; i < global->ndata; i++)
        global->data[i] = ir_const_int(l->m, byte, i < text.len ? text.at[i] : 0);
    const Type *held = type_pointer(l->types, type_unsized_array(l->types, byte));
    return build_bitcast(&f->b, build_global(&f->b, global), held);
}
