/* Entry points: thread ids come from the machine, other parameters are set from outside. */
#include "lower/lowerer.h"

typedef VEC(Param) Params;

static Request *new_entry(Lowerer *l, Decl *decl, const Subst *subst, const char *name) {
    Request *request = arena_new(l->arena, Request);
    *request = (Request){.kind = REQUEST_entry,
                         .decl = decl,
                         .subst = subst,
                         .sig = {.result = type_basic(l->types, TYPE_void)}};
    request->func = func_new(l->m, name);
    request->func->source = request;
    request->func->loc = decl->loc;
    request->func->flags |= FUNC_EXPORT;
    for (int i = 0; i < 3; i++) {
        int size = decl->sema ? decl->sema->group_size[i] : 0;
        request->func->group_size[i] = size ? size : 1;
    }
    return request;
}

static Func *add_entry(Lowerer *l, Request *request, const Params *params) {
    func_set_params(request->func, params->at, params->count);
    vec_push(l->arena, &l->pending, request);
    return request->func;
}

Func *lower_entry(Lowerer *l, Decl *decl, const Subst *subst) {
    Request *request = new_entry(l, decl, subst, subst ? func_name(l, decl, subst) : decl->name->text);
    const FuncSig *sig = check_signature(l->c, decl);
    Params params = {0};
    for (int i = 0; i < sig->nparams; i++) {
        const ParamSig *param = &sig->params[i];
        if (check_takes_thread(l->c, param->decl)) continue;
        const Type *front = check_subst(l->c, param->type, subst), *type = lower_type(l, front);
        uint8_t flags = is_simple(type) ? 0 : PARAM_BY_ADDRESS;
        if (is_block(front)) flags |= PARAM_BLOCK;
        vec_push(l->arena, &params,
                 ((Param){.name = param->name,
                          .type = type,
                          .dir = DIR_in,
                          .flags = flags,
                          .image_format = image_format(param->decl)}));
    }
    return add_entry(l, request, &params);
}

static const Decl *param_of_name(const Decl *decl, Name name) {
    for (int i = 0; i < decl->params.count; i++)
        if (decl->params.at[i]->name == name) return decl->params.at[i];
    return NULL;
}

static const Decl *thread_param(Lowerer *l, const Decl *decl, Name name) {
    const Decl *param = param_of_name(decl, name);
    return param && check_takes_thread(l->c, param) ? param : NULL;
}

static bool is_set_outside(Lowerer *l, const Request *request, const Param *param) {
    return !(param->flags & PARAM_RESULT) && !thread_param(l, request->decl, param->name);
}

Func *lower_derived_entry(Lowerer *l, Decl *decl, const Subst *subst, const uint8_t *modes, int nmodes) {
    const char *name = decl->name->text;
    for (int i = 0; i < nmodes; i++)
        name = format_text(l->arena, "%s_%s_diff", name, modes[i] == DIFF_fwd ? "fwd" : "bwd");
    Request *request = new_entry(l, decl, NULL, name);
    request->derived = lower_func(l, decl, subst, modes, nmodes);
    Params params = {0};
    for (int i = 0; i < request->derived->nparams; i++) {
        Param param = request->derived->params[i];
        if (!is_set_outside(l, request, &param)) continue;
        param.dir = DIR_in;
        param.flags &= PARAM_BY_ADDRESS;
        param.image_format = image_format(param_of_name(decl, param.name));
        vec_push(l->arena, &params, param);
    }
    return add_entry(l, request, &params);
}

/* Any integer type, 1 to 3 components. */
static Val *semantic_value(Fn *f, int semantic, const Type *type) {
    const Type *word = type_basic(f->l->types, TYPE_uint);
    Inst *inst = build_inst(&f->b, OP_thread_id, NULL, 0, 0, 0);
    inst->index = semantic;
    Val *id = inst_add_result(inst, semantic == 3 ? word : type_vector(f->l->types, word, 3), NULL);
    static const uint8_t lanes[3] = {0, 1, 2};
    int wanted = type->kind == TYPE_vector ? type_count(type) : 1;
    if (semantic == 3) return convert_numeric(f, id, type);
    if (type->kind != TYPE_vector) return build_convert(&f->b, build_extract_lane(&f->b, id, 0), type);
    if (wanted == 1) {
        Val *lane = build_extract_lane(&f->b, id, 0);
        id = build_vec(&f->b, type_vector(f->l->types, word, 1), &lane);
    } else if (wanted < 3) id = build_shuffle(&f->b, id, lanes, wanted);
    return build_convert(&f->b, id, type);
}

static void fill_thread_struct(Fn *f, const Place *object) {
    DeclVec fields = check_all_fields(f->l->c, object->type);
    for (int i = 0; i < fields.count; i++) {
        Place field = place_field(f, *object, fields.at[i]);
        if (!fields.at[i]->semantic) fill_thread_struct(f, &field);
        else {
            int semantic = check_semantic(fields.at[i]->semantic);
            place_store(f, &field, semantic_value(f, semantic, lower_type(f->l, field.type)));
        }
    }
}

/* The value, or where the struct is. */
static Val *thread_value(Fn *f, const Decl *param) {
    const Type *type = concrete(f, param->type);
    if (param->semantic) return semantic_value(f, check_semantic(param->semantic), lower_type(f->l, type));
    Place object = place_of_memory(temp_var(f, type, param->name->text), type);
    fill_thread_struct(f, &object);
    return object.address;
}

/* ---- what is set from outside */

/* An image knows the format that it is declared with: behind fields named `image`, or where a field says one
 * of its own. */
static void declare_formats(Fn *f, Val *address, const Type *type, uint16_t format) {
    if (type->kind == TYPE_array)
        for (int64_t i = 0; i < type_length(type); i++) {
            Val *at = ir_const_int(f->l->m, type_basic(f->l->types, TYPE_int), i);
            declare_formats(f, build_elem(&f->b, address, at, true), type->args[0], format);
        }
    for (int i = 0; type->kind == TYPE_record && i < type_record(type)->nfields; i++) {
        const Field *field = &type_record(type)->fields[i];
        uint16_t inner = strcmp(field->name->text, "image") == 0 ? format : field->image_format;
        if (format && strcmp(field->name->text, "declared") == 0)
            build_store(&f->b, build_field(&f->b, address, i), ir_const_int(f->l->m, field->type, format));
        else if (inner || has_image_format(field->type))
            declare_formats(f, build_field(&f->b, address, i), field->type, inner);
    }
}

/* The value, or where the object is. Who calls the kernel need not know the formats of images. */
static Val *outer_value(Fn *f, const Request *request, int index) {
    const Param *param = &request->func->params[index];
    Val *value = request->func->body->params[index];
    if (!param->image_format && !has_image_format(param->type)) return value;
    Val *copy = build_var(&f->b, param->type, param->name, true);
    copy_object(f, copy, value, false);
    declare_formats(f, copy, param->type, param->image_format);
    return copy;
}

/* What is written goes nowhere: results are in what the parameters refer to. */
static void lower_derived_body(Lowerer *l, Request *request) {
    Fn f = fn_begin(l, request);
    const Func *derived = request->derived;
    VEC(Val *) args = {0};
    int next = 0;
    for (int i = 0; i < derived->nparams; i++) {
        const Param *param = &derived->params[i];
        const Decl *thread = thread_param(l, request->decl, param->name);
        Val *value = NULL;
        if (thread) value = thread_value(&f, thread);
        else if (is_set_outside(l, request, param)) value = outer_value(&f, request, next++);
        if (param->dir != DIR_in || (param->flags & PARAM_RESULT)) {
            Val *copy = build_var(&f.b, param->type, param->name, true);
            if (value && is_simple(param->type)) build_store(&f.b, copy, value);
            else if (value) copy_object(&f, copy, value, false);
            value = copy;
        }
        vec_push(l->arena, &args, value);
    }
    build_call(&f.b, request->derived, args.at, args.count);
    fn_end(&f);
}

void lower_entry_body(Lowerer *l, Request *request) {
    Decl *decl = request->decl;
    if (request->derived) {
        lower_derived_body(l, request);
        return;
    }
    check_decl_body(l->c, decl);
    const FuncSig *sig = check_signature(l->c, decl);
    if (!decl->body || (decl->flags & DECL_BODY_ERRORS) || report_foreign(l, request)) return;
    Fn f = fn_begin(l, request);
    int next = 0;
    for (int i = 0; i < sig->nparams; i++) {
        const ParamSig *param = &sig->params[i];
        const Type *type = ir_type(&f, param->type);
        Val *value = check_takes_thread(l->c, param->decl) ? thread_value(&f, param->decl)
                                                           : outer_value(&f, request, next++);
        bool assigned = (param->decl->flags & DECL_ASSIGNED) != 0;
        Local local = is_simple(type) ? (Local){.value = value} : (Local){.address = value};
        if (assigned) {
            Val *copy = build_var(&f.b, type, param->name, true);
            if (is_simple(type)) build_store(&f.b, copy, value);
            else copy_object(&f, copy, value, false);
            local = (Local){.address = copy};
        }
        bind_local(&f, param->decl, local);
    }
    lower_stmt(&f, decl->body);
    fn_end(&f);
}
