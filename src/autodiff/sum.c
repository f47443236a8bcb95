/* Zeros and sums of objects of a differential type: by component, or by the dzero and dadd that the source
 * has for it, whether for the whole object or for a part of it. */
#include "autodiff/ad.h"

/* Does a type inside have its own addition, or zero? */
static bool has_own(Ad *ad, const Type *type, bool zero) {
    if (type->kind == TYPE_array) return has_own(ad, type->args[0], zero);
    if (type->kind != TYPE_record) return false;
    const RecordDiff *diff = ir_record_diff(ad->m, type);
    if (zero ? diff->zero : diff->add) return true;
    for (int i = 0; i < type_record(type)->nfields; i++)
        if (has_own(ad, type_record(type)->fields[i].type, zero)) return true;
    return false;
}

/* ---- `from` NULL: set to zero */

static void treat(Ad *ad, Builder *b, Val *to, Val *from);

static void treat_elements(Ad *ad, Builder *b, Val *to, Val *from) {
    CountLoop loop = build_count(b, 0, type_length(to->type->args[0]));
    Val *to_part = build_elem(&loop.body, to, loop.index, true);
    Val *from_part = from ? build_elem(&loop.body, from, loop.index, true) : NULL;
    treat(ad, &loop.body, to_part, from_part);
    build_next(&loop);
}

static void treat_fields(Ad *ad, Builder *b, Val *to, Val *from) {
    for (int i = 0; i < type_record(to->type->args[0])->nfields; i++) {
        Val *to_part = build_field(b, to, i);
        Val *from_part = from ? build_field(b, from, i) : NULL;
        treat(ad, b, to_part, from_part);
    }
}

static void treat_plainly(Ad *ad, Builder *b, Val *to, Val *from) {
    const Type *type = to->type->args[0];
    bool is_object = type->kind == TYPE_record || type->kind == TYPE_array;
    bool is_number = type_is_float(type) || type->kind == TYPE_vector;
    if (from && is_number) {
        Val *sum = build_load(b, to), *term = build_load(b, from);
        build_store(b, to, build_sum(b, sum, term));
    } else if (from) build_inst(b, OP_acc, (Val *[]){to, from}, 2, 0, 0);
    else if (is_object) build_zero(b, to);
    else build_store(b, to, ad_zero(ad, type));
}

/* Which optionals have a value is not known here: those that have none are zero, and add nothing. */
static void treat_by(Ad *ad, Func *own, Builder *b, Val *to, Val *from) {
    ad_complete(ad, own);
    if (from) {
        ad_mark_present(ad, b, to->type->args[0], NULL, to);
        ad_mark_present(ad, b, to->type->args[0], NULL, from);
    }
    Val *args[3] = {build_var(b, to->type->args[0], NULL, false), to, from};
    build_call(b, own, args, from ? 3 : 1);
    build_copy(b, to, args[0]);
}

static void treat(Ad *ad, Builder *b, Val *to, Val *from) {
    const Type *type = to->type->args[0];
    if (!has_own(ad, type, !from)) {
        treat_plainly(ad, b, to, from);
        return;
    }
    const RecordDiff *diff = type->kind == TYPE_record ? ir_record_diff(ad->m, type) : NULL;
    Func *own = !diff ? NULL : from ? diff->add : diff->zero;
    if (own) treat_by(ad, own, b, to, from);
    else if (diff) treat_fields(ad, b, to, from);
    else treat_elements(ad, b, to, from);
}

void ad_accumulate(Ad *ad, Builder *b, Val *to, Val *from) { treat(ad, b, to, from); }

void ad_zero_object(Ad *ad, Builder *b, Val *at) { treat(ad, b, at, NULL); }

void ad_zero_shadow(Ad *ad, Builder *b, Val *at) {
    if (has_own(ad, at->type->args[0], true)) ad_zero_object(ad, b, at);
}
