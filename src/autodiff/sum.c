/* Zeros and sums of objects of a differential type: by component, or by the dzero and dadd that the source has for it, whether
 * for the whole object or for a part of it. */
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

/* `from` NULL: set to zero. */
static void treat(Ad *ad, Builder *b, Val *to, Val *from) {
    if (from) ad_accumulate(ad, b, to, from);
    else ad_zero_object(ad, b, to);
}

static void treat_elements(Ad *ad, Builder *b, Val *to, Val *from) {
    CountLoop loop = build_count(b, 0, type_length(to->type->args[0]));
    treat(ad, &loop.body, build_elem(&loop.body, to, loop.index, true),
          from ? build_elem(&loop.body, from, loop.index, true) : NULL);
    build_next(&loop);
}

static void treat_fields(Ad *ad, Builder *b, Val *to, Val *from) {
    for (int i = 0; i < type_record(to->type->args[0])->nfields; i++)
        treat(ad, b, build_field(b, to, i), from ? build_field(b, from, i) : NULL);
}

void ad_accumulate(Ad *ad, Builder *b, Val *to, Val *from) {
    const Type *type = to->type->args[0];
    if (type_is_float(type) || type->kind == TYPE_vector) {
        build_store(b, to, build_sum(b, build_load(b, to), build_load(b, from)));
        return;
    }
    if (!has_own(ad, type, false)) {
        Val *args[2] = {to, from};
        build_inst(b, OP_acc, args, 2, 0, 0);
        return;
    }
    if (type->kind == TYPE_array) {
        treat_elements(ad, b, to, from);
        return;
    }
    Func *own = ir_record_diff(ad->m, type)->add;
    if (!own) {
        treat_fields(ad, b, to, from);
        return;
    }
    ad_complete(ad, own);
    Val *sum = build_var(b, type, NULL, false);
    Val *args[3] = {sum, to, from};
    build_call(b, own, args, 3);
    build_copy(b, to, sum);
}

void ad_zero_object(Ad *ad, Builder *b, Val *at) {
    const Type *type = at->type->args[0];
    if (!has_own(ad, type, true)) {
        if (type->kind == TYPE_record || type->kind == TYPE_array) build_zero(b, at);
        else build_store(b, at, ad_zero(ad, type));
        return;
    }
    if (type->kind == TYPE_array) {
        treat_elements(ad, b, at, NULL);
        return;
    }
    Func *own = ir_record_diff(ad->m, type)->zero;
    if (!own) {
        treat_fields(ad, b, at, NULL);
        return;
    }
    ad_complete(ad, own);
    Val *zero = build_var(b, type, NULL, false);
    build_call(b, own, &zero, 1);
    build_copy(b, at, zero);
}

void ad_zero_shadow(Ad *ad, Builder *b, Val *at) {
    if (has_own(ad, at->type->args[0], true)) ad_zero_object(ad, b, at);
}
