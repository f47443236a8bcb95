/* Extract: the two functions of reverse mode.
 *
 *   pri    runs the function and returns, after its results, the slots of the context
 *   prop   takes the adjoints of the results back to those of the parameters, with the help of what was kept
 *
 * (signature.c says what exactly they take and return.) In prop, the shadow of an `in` array is added to,
 * that of an inout array is transformed in place, that of an out array is consumed and left zero. The context
 * of a recursive function is on the tape: its size is not known. */
#include "autodiff/ad.h"

/* ---- declarations */

/* Is a parameter of the primal in the reverse what it was? */
static bool is_available(const Making *x, int leaf) {
    return !x->f->leaves.at[leaf].by_ref || x->reverse->terms.stable[leaf];
}

/* The primal parameters that the reverse is given. */
static bool *used_params(Ad *ad, const Making *x, const int *uses) {
    bool *wanted = arena_array(ad->arena, bool, x->f->leaves.count + 1);
    for (int i = 0; i < x->f->leaves.count; i++)
        wanted[i] = x->primals[i] && uses[x->primals[i]->id] && is_available(x, i);
    return wanted;
}

static void declare(Ad *ad, const Making *x, Contents contents) {
    Reverse *r = x->reverse;
    Contents all = contents;
    all.primal = NULL;
    ad_declare(ad, x->f, SHAPE_pri, all, &r->pri);
    ad_declare(ad, x->f, SHAPE_prop, contents, &r->prop);
    r->pri.func->flags |= x->f->flat->flags & FUNC_PRECISE;
    r->prop.func->flags |= x->f->flat->flags & FUNC_PRECISE;
}

void ad_declare_recursive(Ad *ad, Making *x) {
    bool *available = arena_array(ad->arena, bool, x->f->leaves.count + 1);
    for (int i = 0; i < x->f->leaves.count; i++) available[i] = is_available(x, i);
    x->reverse->uses_tape = true;
    declare(ad, x, (Contents){.primal = available, .tape = true});
}

/* ---- bodies */

void ad_push_slots(Ad *ad, Making *x) {
    ValVec *slots = &x->checkpoint->slots;
    Builder head = x->reversed->first ? build_before(x->reversed->first) : build_at_end(x->reversed);
    Val **again = ad_keep_on_stack(ad, x, x->primal, &head, slots);
    for (int i = 0; i < slots->count; i++)
        map_put(ad->arena, &x->checkpoint->stand_in, PTR_KEY(slots->at[i]), again[i]);
    if (slots->count) x->checkpoint->head = again[0]->inst;
    slots->count = 0;
}

/* What a parameter of pri or prop is in the two halves. */
static Val *stands_for(const Making *x, const Place *place, Val *const *seeds, Val *tape) {
    switch (place->role) {
    case AS_primal: return x->primals[place->leaf];
    case AS_slot: return x->checkpoint->slots.at[place->leaf];
    case AS_seed: return seeds[place->leaf];
    case AS_tape: return tape;
    default: return x->differentials[place->leaf];
    }
}

typedef struct Reads {
    Ad *ad;
    const Val *param;
} Reads;

static void refuse_reading(void *user, Inst *inst) {
    const Reads *x = user;
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        bool reads = role == ROLE_read || role == ROLE_share;
        if (!reads || ad_root(inst->args[i]) != x->param) continue;
        if (x->ad->m->diags->errors)
            arena_give_up(x->ad->arena); /* what was refused does not show that it changes */
        arena_fault(x->ad->arena, "the reverse pass reads an array that may have changed");
    }
}

/* Of an array that has changed since, the reverse may name the address, in a reference whose counterpart it
 * uses: other memory will do. */
static void replace_changed(Ad *ad, const Making *x, CloneMap *map) {
    Builder b = build_at_end(map->func->body);
    const int *uses = region_count_uses(ad->arena, x->reversed);
    for (int i = 0; i < x->f->leaves.count; i++) {
        Val *param = x->primals[i];
        if (!param || !uses[param->id] || is_available(x, i)) continue;
        region_walk(x->reversed, refuse_reading, &(Reads){ad, param});
        clone_map_val(map, param, build_var(&b, param->type->args[0], param->name, true));
    }
}

static void fill(Ad *ad, const Making *x, const Made *made, const Region *half, Val *tape) {
    CloneMap map = {.module = ad->m, .func = made->func};
    func_begin(made->func);
    Val **seeds = arena_array(ad->arena, Val *, x->f->leaves.count + 1);
    for (int i = 0, next = 0; i < x->f->leaves.count; i++)
        if (ad_has_role(&x->f->leaves.at[i], AS_seed, false)) seeds[i] = x->seeds.at[next++];
    for (int i = 0; i < made->params.count; i++)
        clone_map_val(&map, stands_for(x, &made->params.at[i], seeds, tape), made->func->body->params[i]);
    if (half == x->reversed) replace_changed(ad, x, &map);
    clone_region_into(&map, half, made->func->body);
    ad_clear_marks(made->func->body);
}

void ad_extract(Ad *ad, Making *x) {
    Reverse *r = x->reverse;
    if (!x->recursive) {
        const int *in_primal = region_count_uses(ad->arena, x->primal),
                  *in_reverse = region_count_uses(ad->arena, x->reversed);
        r->uses_tape = in_primal[x->tape->id] || in_reverse[x->reverse_tape->id];
        declare(ad, x,
                (Contents){.primal = used_params(ad, x, in_reverse),
                           .slots = x->checkpoint->slots,
                           .tape = r->uses_tape});
    }
    for (int i = 0; i < x->checkpoint->slots.count; i++)
        inst_add_arg(x->primal->last, x->checkpoint->slots.at[i]);
    fill(ad, x, &r->pri, x->primal, x->tape);
    fill(ad, x, &r->prop, x->reversed, x->reverse_tape);
    x->linear.func->body = NULL;
}
