/* Functions of the IR: which were asked for, their names and signatures, and the derivatives that the source
 * provides. */
#include "lower/lowerer.h"

/* ---- requests */

static uint64_t request_hash(const Request *r) {
    uint64_t h = hash_mix(PTR_KEY(r->decl), PTR_KEY(r->subst));
    h = hash_mix(h, (uint64_t)r->kind * 4 + r->plain_this + r->as_declared * 2u);
    h = hash_mix(hash_mix(h, PTR_KEY(r->by_reference)), PTR_KEY(r->type));
    h = hash_mix(h, hash_mix(PTR_KEY(r->to), (uint64_t)r->move));
    h = hash_mix(h, PTR_KEY(r->global));
    for (int i = 0; i < r->nbindings; i++)
        h = hash_mix(h, hash_mix(PTR_KEY(r->bindings[i].decl), PTR_KEY(r->bindings[i].subst)));
    return h | 1;
}

static bool same_request(const Request *a, const Request *b) {
    if (a->kind != b->kind || a->decl != b->decl || a->subst != b->subst) return false;
    if (a->plain_this != b->plain_this || a->as_declared != b->as_declared) return false;
    if (a->type != b->type || a->to != b->to || a->move != b->move || a->by_reference != b->by_reference)
        return false;
    if (a->global != b->global || a->nbindings != b->nbindings) return false;
    for (int i = 0; i < a->nbindings; i++) {
        const FuncBinding *x = &a->bindings[i], *y = &b->bindings[i];
        if (x->param != y->param || x->decl != y->decl || x->subst != y->subst) return false;
        if (x->lambda != y->lambda || x->object != y->object || x->around != y->around) return false;
        if (x->drops != y->drops) return false;
    }
    return true;
}

typedef VEC(Request *) RequestVec;

/* The request equal to `wanted`, or a new one, to be declared by the caller (func NULL). */
static Request *find_request(Lowerer *l, const Request *wanted) {
    uint64_t hash = request_hash(wanted);
    RequestVec *list = map_get(&l->requests, hash);
    if (!list) {
        list = arena_new(l->arena, RequestVec);
        map_put(l->arena, &l->requests, hash, list);
    }
    for (int i = 0; i < list->count; i++)
        if (same_request(list->at[i], wanted)) return list->at[i];
    Request *request = arena_copy(l->arena, wanted, sizeof *wanted);
    request->cause = l->current;
    vec_push(l->arena, list, request);
    vec_push(l->arena, &l->pending, request);
    return request;
}

/* ---- names */

static void add_qualified(Lowerer *l, Text *text, const Decl *decl, const Subst *subst) {
    const Decl *parent = decl->parent;
    if (parent && parent->kind != DECL_module) {
        if (parent->kind == DECL_extension) {
            type_print(text, check_subst(l->c, check_self_type(l->c, parent), subst));
        } else add_qualified(l, text, parent, subst);
        text_char(text, '.');
    }
    const char *name = decl->name                     ? decl->name->text
                       : decl->kind == DECL_subscript ? "subscript"
                                                      : "anonymous";
    if (decl->kind == DECL_func && decl->flavour == FUNC_get) name = "get";
    if (decl->kind == DECL_func && decl->flavour == FUNC_set) name = "set";
    if (decl->kind == DECL_func && decl->flavour == FUNC_ref) name = "ref";
    text_add(text, str_of(name));
    for (const Subst *s = subst; s; s = s->outer) {
        if (s->owner != decl || decl->kind == DECL_interface) continue;
        text_char(text, '<');
        for (int i = 0; i < s->nargs; i++) {
            if (i) text_char(text, ',');
            type_print(text, s->args[i]);
        }
        text_char(text, '>');
    }
}

const char *func_name(Lowerer *l, const Decl *decl, const Subst *subst) {
    Text text = {.arena = l->arena};
    add_qualified(l, &text, decl, subst);
    return text.at;
}

/* ---- signatures */

/* A pack becomes as many parameters as it has elements. */
FuncSig flatten_signature(Lowerer *l, const FuncSig *sig) {
    FuncSig flat = *sig;
    int n = 0;
    for (int i = 0; i < sig->nparams; i++)
        n += sig->params[i].type->kind == TYPE_pack ? sig->params[i].type->nargs : 1;
    flat.params = arena_array(l->arena, ParamSig, n ? n : 1);
    flat.nparams = 0;
    for (int i = 0; i < sig->nparams; i++) {
        const Type *type = sig->params[i].type;
        int times = type->kind == TYPE_pack ? type->nargs : 1;
        for (int k = 0; k < times; k++) {
            flat.params[flat.nparams] = sig->params[i];
            flat.params[flat.nparams].index = i;
            if (type->kind == TYPE_pack) flat.params[flat.nparams].type = type->args[k];
            flat.nparams++;
        }
    }
    return flat;
}

static uint8_t direction(uint8_t pass) {
    static const uint8_t directions[] = {DIR_in, DIR_out, DIR_inout, DIR_ref, DIR_in};
    return directions[pass];
}

static uint8_t diff_flags(Lowerer *l, const Type *generic, bool no_diff, const Decl *context) {
    if (check_is_diff_type(l->c, generic, context)) return no_diff ? 0 : PARAM_DIFF;
    if (!check_is_ptr_diff_type(l->c, generic, context)) return 0;
    return no_diff ? PARAM_NO_DIFF : PARAM_PTR_DIFF;
}

/* What the declaration leaves open, the arguments decide, unless the derivative's signature is that of the
 * declaration. */
static uint8_t flags_in(Lowerer *l, const Type *generic, const Type *type, bool no_diff, const Decl *context,
                        bool as_declared) {
    uint8_t flags = diff_flags(l, generic, no_diff, context);
    return flags || as_declared ? flags : diff_flags(l, type, no_diff, context);
}

typedef VEC(Param) ParamVec;

static void add_param(Lowerer *l, ParamVec *params, Name name, const Type *type, uint8_t dir, uint8_t flags) {
    Param param = {.name = name, .type = type, .dir = dir, .flags = flags};
    if (dir != DIR_in || !is_simple(type)) param.flags |= PARAM_BY_ADDRESS;
    vec_push(l->arena, params, param);
}

/* Functions are known, and void has no value. */
bool is_passed(const ParamSig *param) {
    return param->type->kind != TYPE_function && param->type->kind != TYPE_void;
}

static void declare_signature(Lowerer *l, Func *func, const FuncSig *sig, const FuncSig *generic,
                              Decl *context, bool plain_this, bool as_declared) {
    ParamVec params = {0};
    if (!decl_is_library(context)) l->at = context->loc;
    const Type *result = lower_type(l, sig->result);
    uint8_t result_flags =
        flags_in(l, generic->result, sig->result, generic->result_no_diff, context, as_declared);
    if (!is_simple(result))
        add_param(l, &params, name_from(l->m->names, "result"), result, DIR_out,
                  (uint8_t)(PARAM_RESULT | result_flags));
    if (sig->has_this) {
        uint8_t flags = flags_in(l, generic->this_type, sig->this_type, sig->this_no_diff || plain_this,
                                 context, as_declared);
        add_param(l, &params, name_from(l->m->names, "this"), lower_type(l, sig->this_type),
                  direction(sig->this_pass), (uint8_t)(flags | PARAM_THIS));
    }
    for (int i = 0; i < sig->nparams; i++) {
        const ParamSig *param = &sig->params[i],
                       *declared = generic == sig ? param : &generic->params[param->index];
        if (!is_passed(param)) continue;
        uint8_t flags = flags_in(l, declared->type, param->type, param->no_diff, context, as_declared);
        add_param(l, &params, param->name, lower_type(l, param->type), direction(param->pass), flags);
    }
    func_set_params(func, params.at, params.count);
    if (is_simple(result) && result->kind != TYPE_void) {
        func_set_results(func, &result, 1);
        if (result_flags & PARAM_DIFF) func->flags |= FUNC_RESULT_DIFF;
    }
}

static bool is_precise(const Decl *decl) {
    uint32_t modifiers = decl->modifiers;
    for (int i = 0; i < decl->params.count; i++) modifiers |= decl->params.at[i]->modifiers;
    return modifiers & MODIFIER_precise;
}

static void set_flags(Lowerer *l, Func *func, Decl *decl) {
    static const struct {
        uint32_t from, to;
    } table[] = {
        {DECL_FWD, FUNC_FWD},
        {DECL_BWD, FUNC_FWD | FUNC_BWD},
        {DECL_FORCE_INLINE, FUNC_INLINE},
        {DECL_NO_INLINE, FUNC_NOINLINE},
        {DECL_TREAT_AS_DIFF, FUNC_TREAT_AS_DIFF},
        {DECL_RECOMPUTE, FUNC_RECOMPUTE},
        {DECL_RECOMPUTE_EFFECTS, FUNC_RECOMPUTE_EFFECTS},
        {DECL_CHECKPOINT, FUNC_CHECKPOINT},
        {DECL_TRANSPOSABLE, FUNC_TRANSPOSABLE},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (decl->flags & table[i].from) func->flags |= table[i].to;
    if (is_precise(decl)) func->flags |= FUNC_PRECISE;
    if (decl->sema && decl->sema->ref_accessor && decl->flavour == FUNC_plain) func->flags |= FUNC_PLACE;
    if (decl->flags & DECL_FORCE_INLINE) check_derivatives(l->c, decl);
    if ((decl->flags & DECL_FORCE_INLINE) && check_is_inlined(decl)) func->flags |= FUNC_FWD | FUNC_BWD;
    func->loc = decl->loc;
    func->is_library = decl_is_library(decl);
}

/* A function that dispatches is derived: what it calls has the derivatives that the source provides. */
static void set_promised(Lowerer *l, Func *func, Decl *decl) {
    if (check_is_differentiable(l->c, decl, DIFF_fwd)) func->flags |= FUNC_FWD;
    if (check_is_differentiable(l->c, decl, DIFF_bwd)) func->flags |= FUNC_BWD;
    func->flags &= ~(uint32_t)FUNC_TREAT_AS_DIFF;
}

/* ---- endless specialisation
 *
 * f<T> that calls f<Wrap<T>> is told by the size of the types, f<N> that calls f<N + 1> by how often f stands in the chain of
 * requests that led here. */

enum { MAX_TYPE_NESTING = 64, MAX_TYPE_PARTS = 10000, MAX_CHAIN = 500 };

typedef struct TypeSize {
    int depth;
    int64_t parts; /* as written, with repetitions */
} TypeSize;

static TypeSize type_size(Lowerer *l, const Type *type) {
    TypeSize size = {1, 1}, *known = type->nargs ? map_get(&l->type_sizes, PTR_KEY(type)) : &size;
    if (known) return *known;
    for (int i = 0; i < type->nargs; i++) {
        TypeSize part = type_size(l, type->args[i]);
        if (part.depth + 1 > size.depth) size.depth = part.depth + 1;
        if (size.parts <= MAX_TYPE_PARTS) size.parts += part.parts;
    }
    map_put(l->arena, &l->type_sizes, PTR_KEY(type), arena_copy(l->arena, &size, sizeof size));
    return size;
}

static bool has_huge_argument(Lowerer *l, const Subst *subst) {
    for (; subst; subst = subst->outer)
        for (int i = 0; i < subst->nargs; i++) {
            TypeSize size = type_size(l, subst->args[i]);
            if (size.depth > MAX_TYPE_NESTING || size.parts > MAX_TYPE_PARTS) return true;
        }
    return false;
}

static bool repeats(const Request *request) {
    int count = 0;
    for (const Request *r = request->cause; r; r = r->cause) count += r->decl == request->decl;
    return count > MAX_CHAIN;
}

static bool is_endless(Lowerer *l, const Request *request) {
    if (!request->subst || (!has_huge_argument(l, request->subst) && !repeats(request))) return false;
    const Decl *decl = request->decl;
    if (!l->too_deep)
        diag_report(l->m->diags, DIAG_endless_specialisation, decl->loc, decl->name ? decl->name->text : "?");
    l->too_deep = true;
    return true;
}

/* The data of a function that holds some is passed in its place. */
static void pass_objects(Lowerer *l, const Request *request, FuncSig *sig) {
    bool any = false;
    for (int i = 0; i < request->nbindings; i++) any |= request->bindings[i].object != NULL;
    if (!any) return;
    sig->params = arena_copy(l->arena, sig->params, sizeof *sig->params * (size_t)sig->nparams);
    for (int i = 0; i < request->nbindings; i++)
        for (int k = 0; k < sig->nparams; k++)
            if (request->bindings[i].object && sig->params[k].decl == request->bindings[i].param)
                sig->params[k].type = request->bindings[i].object;
}

/* Of a derivative: as a pair, as any argument that has a derivative. */
static const Type *object_in_derivative(Lowerer *l, const Type *object, int nmodes) {
    if (!check_is_diff_type(l->c, object, NULL)) return object;
    for (int i = 0; i < nmodes; i++) object = type_wrap(l->types, TYPE_pair, object);
    return object;
}

void pass_objects_to_derivative(Lowerer *l, const Request *request, const uint8_t *modes, int nmodes,
                                FuncSig *sig) {
    bool reverse = false;
    int next = 0;
    for (int i = 0; i < nmodes; i++) reverse |= modes[i] == DIFF_bwd;
    if (!request->nbindings) return;
    sig->params = arena_copy(l->arena, sig->params, sizeof *sig->params * (size_t)sig->nparams);
    for (int k = 0; k < sig->nparams && next < request->nbindings; k++) {
        ParamSig *param = &sig->params[k];
        if (param->type->kind != TYPE_function) continue;
        const Type *object = request->bindings[next++].object;
        if (!object) continue;
        param->type = object_in_derivative(l, object, nmodes);
        if (param->type != object && reverse) param->pass = PASS_inout;
    }
}

/* ---- what derivatives go through
 *
 * The signature of a derivative follows from the declaration: a parameter of type T is plain in it unless T is constrained. A call in
 * differentiable code knows more: derivatives go through all that is differentiable in this specialisation. So a generic function can
 * be two functions of the IR: one that is called, and one whose derivative is asked for by name, or is written by hand. */

static bool is_left_open(Lowerer *l, const Type *generic, const Type *type, bool no_diff,
                         const Decl *context) {
    for (int i = 0; type->kind == TYPE_pack && i < type->nargs; i++)
        if (is_left_open(l, generic, type->args[i], no_diff, context)) return true;
    return type->kind != TYPE_pack && flags_in(l, generic, type, no_diff, context, true) !=
                                          flags_in(l, generic, type, no_diff, context, false);
}

static bool leaves_open(Lowerer *l, const Request *wanted) {
    const Decl *decl = wanted->decl;
    FuncSig generic = check_declared_signature(l->c, wanted->decl, wanted->subst);
    FuncSig sig = check_subst_signature(l->c, &generic, wanted->subst);
    if (is_left_open(l, generic.result, sig.result, sig.result_no_diff, decl)) return true;
    bool no_diff = sig.this_no_diff || wanted->plain_this;
    if (sig.has_this && is_left_open(l, generic.this_type, sig.this_type, no_diff, decl)) return true;
    for (int i = 0; i < sig.nparams; i++) {
        const ParamSig *param = &sig.params[i];
        if (is_left_open(l, generic.params[i].type, param->type, param->no_diff, decl)) return true;
    }
    return false;
}

static bool has_derivatives(Lowerer *l, Decl *decl) {
    if (decl->kind != DECL_func) return false;
    check_derivatives(l->c, decl);
    const Sema *sema = decl_sema(l->c, decl);
    return sema->fwd.decl || sema->bwd.decl || sema->substitute.decl || sema->specials.count;
}

static bool is_library(Lowerer *l, const Decl *decl) { return decl_module(decl) == check_prelude(l->c); }

static Request *request_decl(Lowerer *l, Request *wanted) {
    Decl *decl = wanted->decl;
    const Subst *subst = wanted->subst;
    if (needs_opening(l, decl, subst)) wanted->kind = REQUEST_opened;
    Request *request = find_request(l, wanted);
    if (request->func) return request;
    bool endless = is_endless(l, request);
    if (endless) request->kind = REQUEST_init; /* no body */
    request->func = func_new(l->m, endless ? "endless" : func_name(l, decl, subst));
    request->func->source = request;
    request->generic = *check_signature(l->c, decl);
    FuncSig concrete_sig = check_signature_of(l->c, decl, subst, NULL, 0, true);
    request->sig = flatten_signature(l, &concrete_sig);
    pass_objects(l, request, &request->sig);
    pass_objects(l, request, &request->generic);
    const FuncSig *generic =
        is_library(l, decl) ? &request->sig : &request->generic; /* makeTuple<T>: where T is */
    declare_signature(l, request->func, &request->sig, generic, decl, request->plain_this,
                      request->as_declared);
    set_flags(l, request->func, decl);
    if (request->plain_this && !request->sig.this_no_diff) request->func->flags |= FUNC_BOUND;
    if (request->kind == REQUEST_opened) set_promised(l, request->func, decl);
    return request;
}

static Request wanted_func(Lowerer *l, Decl *decl, const Subst *subst, bool plain_this,
                           const FuncBinding *bindings, int nbindings) {
    Request wanted = {.kind = REQUEST_decl, .decl = decl, .plain_this = plain_this, .nbindings = nbindings};
    wanted.subst = subst_for_decl(l->c, decl, subst);
    wanted.bindings = nbindings ? arena_copy(l->arena, bindings, sizeof *bindings * (size_t)nbindings) : NULL;
    return wanted;
}

Request *request_func(Lowerer *l, Decl *decl, const Subst *subst, bool plain_this,
                      const FuncBinding *bindings, int nbindings) {
    Request wanted = wanted_func(l, decl, subst, plain_this, bindings, nbindings);
    wanted.as_declared =
        wanted.subst && !is_library(l, decl) && has_derivatives(l, decl) && leaves_open(l, &wanted);
    return request_decl(l, &wanted);
}

Request *request_declared(Lowerer *l, Decl *decl, const Subst *subst, bool plain_this,
                          const FuncBinding *bindings, int nbindings) {
    Request wanted = wanted_func(l, decl, subst, plain_this, bindings, nbindings);
    wanted.as_declared = wanted.subst && !is_library(l, decl) && leaves_open(l, &wanted);
    return request_decl(l, &wanted);
}

static FuncSig with_references(Lowerer *l, const FuncSig *sig, Name params) {
    FuncSig all = *sig;
    all.params = arena_array(l->arena, ParamSig, sig->nparams + 1);
    if (sig->nparams) memcpy(all.params, sig->params, sizeof(ParamSig) * (size_t)sig->nparams);
    int first = sig->has_this ? 1 : 0;
    if (first && params->text[0] == '&') all.this_pass = PASS_ref;
    for (int i = 0; i < all.nparams; i++)
        if (params->text[i + first] == '&') all.params[i].pass = PASS_ref;
    return all;
}

Request *request_by_reference(Lowerer *l, const Request *of, Name params) {
    Request wanted = {.kind = of->kind, .decl = of->decl, .subst = of->subst, .plain_this = of->plain_this};
    wanted.bindings = of->bindings, wanted.nbindings = of->nbindings, wanted.by_reference = params;
    Request *request = find_request(l, &wanted);
    if (request->func) return request;
    request->func = func_new(l->m, of->func->name->text);
    request->func->source = request;
    request->generic = of->generic;
    request->sig = with_references(l, &of->sig, params);
    declare_signature(l, request->func, &request->sig, &request->generic, request->decl, request->plain_this,
                      true);
    set_flags(l, request->func, request->decl);
    request->func->flags &= ~(uint32_t)(FUNC_FWD | FUNC_BWD); /* nobody differentiates it */
    return request;
}

/* A static method that is called on an interface value takes it as an object: its type decides. */
void add_object(const Request *request, FuncSig *sig) {
    if (!request->object) return;
    sig->has_this = sig->this_no_diff = true;
    sig->this_pass = PASS_in;
    sig->this_type = request->object;
}

Request *request_dispatch(Lowerer *l, Decl *requirement, const Subst *subst, bool declared) {
    Request wanted = {.kind = REQUEST_dispatch, .decl = requirement, .subst = subst};
    wanted.as_declared = declared && leaves_open(l, &wanted);
    Request *request = find_request(l, &wanted);
    if (request->func) return request;
    request->func = func_new(l->m, func_name(l, requirement, subst));
    request->func->source = request;
    request->generic = check_declared_signature(l->c, requirement, subst);
    FuncSig concrete_sig = check_subst_signature(l->c, &request->generic, subst);
    request->sig = flatten_signature(l, &concrete_sig);
    Decl *interface =
        requirement->parent->kind == DECL_interface ? requirement->parent : requirement->parent->parent;
    const Type *self = subst_find(subst, interface, 0);
    bool dynamic = self->kind == TYPE_interface || self->kind == TYPE_assoc;
    if (!request->sig.has_this && dynamic) request->object = self->kind == TYPE_assoc ? self->args[0] : self;
    add_object(request, &request->sig);
    add_object(request, &request->generic);
    declare_signature(l, request->func, &request->sig, &request->generic, requirement, false,
                      wanted.as_declared);
    set_flags(l, request->func, requirement);
    set_promised(l, request->func, requirement);
    return request;
}

Func *request_move(Lowerer *l, MoveKind kind, const Type *from, const Type *to) {
    Request wanted = {.kind = REQUEST_move, .move = kind, .type = from, .to = to};
    Request *request = find_request(l, &wanted);
    if (request->func) return request->func;
    static const char *const words[] = {"move", "as", "load", "store"};
    request->func = func_new(l->m, format_text(l->arena, "%s<%s,%s>", words[kind], type_text(l->arena, from),
                                               type_text(l->arena, to)));
    request->func->source = request;
    const Type *from_ir = kind == MOVE_load ? lower_external_type(l, from) : lower_type(l, from),
               *to_ir = kind == MOVE_store ? lower_external_type(l, to) : lower_type(l, to);
    bool diff = kind <= MOVE_as && check_is_diff_type(l->c, from, NULL) && check_is_diff_type(l->c, to, NULL);
    uint8_t flags = diff ? PARAM_DIFF : 0;
    ParamVec params = {0};
    add_param(l, &params, name_from(l->m->names, "to"), to_ir, DIR_out, flags);
    add_param(l, &params, name_from(l->m->names, "from"), from_ir, DIR_in, flags);
    func_set_params(request->func, params.at, params.count);
    request->sig = (FuncSig){.result = type_basic(l->types, TYPE_void)};
    if (diff) request->func->flags |= FUNC_FWD | FUNC_BWD;
    return request->func;
}

/* ---- derivatives */

static const char *mode_name(uint8_t mode) { return mode == DIFF_fwd ? "fwd_diff" : "bwd_diff"; }

static bool is_derivative(const Func *func, const Func *of, uint8_t mode, bool still) {
    return func->derivation.of == of && func->derivation.mode == mode &&
           ((func->flags & FUNC_BOUND) != 0) == still;
}

static Func *find_derivative(Lowerer *l, const Func *of, uint8_t mode, bool still) {
    for (int i = 0; i < l->m->funcs.count; i++)
        if (is_derivative(l->m->funcs.at[i], of, mode, still)) return l->m->funcs.at[i];
    return NULL;
}

/* The derivative of `func`, which is the (k-1)-th of the request. `still`: it is differentiated further, and
 * the object that is bound to it stands still in that, too. */
static Func *derivative_of(Lowerer *l, Request *request, Func *func, const uint8_t *modes, int k,
                           bool still) {
    uint8_t mode = modes[k - 1];
    uint64_t key = hash_mix(PTR_KEY(func), mode + (still ? 4u : 0)) | 1;
    Func *derivative = map_get(&l->derivatives, key);
    if (derivative && !is_derivative(derivative, func, mode, still))
        derivative = find_derivative(l, func, mode, still);
    if (derivative) return derivative;
    derivative = func_new(l->m, format_text(l->arena, "%s(%s)", mode_name(mode), func->name->text));
    derivative->derivation = (Derivation){func, mode};
    derivative->source = request;
    FuncSig sig = check_signature_of(l->c, request->decl, request->subst, modes, k, request->plain_this);
    FuncSig generic =
        check_generic_signature(l->c, request->decl, request->subst, modes, k, request->plain_this);
    add_object(request, &sig);
    add_object(request, &generic);
    pass_objects_to_derivative(l, request, modes, k, &sig);
    pass_objects_to_derivative(l, request, modes, k, &generic);
    FuncSig flat = flatten_signature(l, &sig);
    bool plain_this = still || (request->plain_this && !(request->func->flags & FUNC_BOUND));
    declare_signature(l, derivative, &flat, &generic, request->decl, plain_this, true);
    derivative->flags |= FUNC_FWD | FUNC_BWD | (still ? FUNC_BOUND : 0);
    map_put(l->arena, &l->derivatives, key, derivative);
    return derivative;
}

Func *request_derivative(Lowerer *l, Request *request, const uint8_t *modes, int nmodes) {
    bool is_bound = (request->func->flags & FUNC_BOUND) != 0;
    Func *func = request->func;
    for (int k = 1; k <= nmodes; k++)
        func = derivative_of(l, request, func, modes, k, is_bound && k < nmodes);
    return func;
}

Func *lower_func(Lowerer *l, Decl *decl, const Subst *subst, const uint8_t *modes, int nmodes) {
    Request *request = request_declared(l, decl, subst, false, NULL, 0);
    return nmodes ? request_derivative(l, request, modes, nmodes) : request->func;
}

static Func *custom_func(Lowerer *l, const Request *request, FuncRef ref) {
    if (!ref.decl) return NULL;
    return request_declared(l, ref.decl, check_subst_subst(l->c, ref.subst, request->subst), false, NULL, 0)
        ->func;
}

/* Fills in what the source says about derivatives of a function. */
void complete_func_diff(void *user, Func *func) {
    Lowerer *l = user;
    const Request *request = func->source;
    if (func->custom.complete) return;
    func->custom.complete = true;
    if (func->derivation.of || !request || request->kind != REQUEST_decl) return;
    bool bound_pointer = request->plain_this && request->generic.has_this && !request->generic.this_no_diff &&
                         check_is_ptr_diff_type(l->c, request->generic.this_type, request->decl);
    if (bound_pointer) { /* without a counterpart: derivatives that want one are not used */
        func->flags |= FUNC_FWD | FUNC_BWD;
        return;
    }
    check_derivatives(l->c, request->decl);
    const Sema *sema = decl_sema(l->c, request->decl);
    func->custom.fwd = custom_func(l, request, sema->fwd);
    func->custom.bwd = custom_func(l, request, sema->bwd);
    if (sema->bwd.decl) func->custom.primal = custom_func(l, request, sema->primal);
    func->custom.substitute = custom_func(l, request, sema->substitute);
    FuncRef special;
    if (check_special(l->c, request->decl, request->subst, &special))
        func->custom.substitute = request_declared(l, special.decl, special.subst, false, NULL, 0)->func;
    lower_run(l);
}

/* For those who look at what was lowered: autodiff completes functions when it comes to them. */
void lower_links(Lowerer *l) {
    for (int i = 0; i < l->pending.count; i++) {
        const Request *request = l->pending.at[i];
        if (request->kind != REQUEST_decl || request->decl->kind != DECL_func ||
            (request->decl->flags & DECL_PRELUDE))
            continue;
        check_derivatives(l->c, request->decl);
        const Sema *sema = decl_sema(l->c, request->decl);
        if (sema->fwd.decl || sema->bwd.decl || sema->substitute.decl) complete_func_diff(l, request->func);
    }
}

/* The rule for an elementary operation: __d_sin for sin. */
Func *op_rule(void *user, const Inst *inst) {
    Lowerer *l = user;
    const Type *type = inst->results[0]->type;
    bool is_steep = inst->op == OP_sqrt && inst_has(inst, INST_STEEP);
    const char *name = is_steep ? "root" : op_info[inst->op].name;
    Decl *decl = check_prelude_decl(l->c, format_text(l->arena, "__d_%s", name));
    if (!decl) return NULL;
    const Subst *subst = decl->generics ? subst_new(l->c, NULL, decl, &type, 1) : NULL;
    Func *func = request_func(l, decl, subst, false, NULL, 0)->func;
    lower_run(l);
    return func;
}

Func *library_func(void *user, const char *name) {
    Lowerer *l = user;
    Decl *decl = check_prelude_decl(l->c, name);
    if (!decl) return NULL;
    Func *func = request_func(l, decl, NULL, false, NULL, 0)->func;
    lower_run(l);
    return func;
}
