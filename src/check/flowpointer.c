/* The derivative data-flow check: raw pointers into variables of the function. What is there keeps its
 * derivative, whichever way it is read or written; all other memory behind pointers holds constants.
 *
 * Whether pointers lead to variables is followed from one pointer variable to the next, but not to which:
 * what is written goes, as far as anybody here knows, into each variable whose address was taken, and what is
 * read comes from any of them. Autodiff follows the addresses exactly, and says where it cannot. */
#include "check/flow.h"

/* The variable that a place is a part of; NULL: it is behind a pointer, whatever that leads to. */
static const Decl *root_of(const FlowWalk *w, const Expr *place) {
    for (; place->a; place = place->a)
        if (place->a->type->kind == TYPE_pointer) return NULL;
    return place->kind == EXPR_this ? w->func : place->kind == EXPR_decl ? place->decl : NULL;
}

static bool leads_inside(FlowWalk *w, const Expr *place) {
    const Type *plain = NULL;
    return flow_is_diff(w, place->type) && !flow_plain_place(w, place, &plain);
}

/* Where a pointer may lead to, as parts of its value. NULL: nowhere. */
enum { INSIDE, OUTSIDE, NPLACES };

static const Flow *one_place(FlowWalk *w, int place) {
    return flow_with_part(w->arena, NULL, NPLACES, place, flow_make(w->arena, true, NULL));
}

static const Flow *leads(FlowWalk *w, const Expr *pointer) {
    const Flow *to = NULL;
    switch ((ExprKind)pointer->kind) {
    case EXPR_address: return one_place(w, leads_inside(w, pointer->a) ? INSIDE : OUTSIDE);
    case EXPR_paren:
    case EXPR_convert:
    case EXPR_update: return leads(w, pointer->a);
    case EXPR_assign: return leads(w, pointer->b);
    case EXPR_builtin: return leads(w, pointer->args.at[pointer->args.at[0]->type->kind != TYPE_pointer]);
    case EXPR_select:
        to = flow_join(w->arena, leads(w, pointer->b), leads(w, pointer->c));
        for (int i = 1; i < pointer->args.count; i += 2)
            to = flow_join(w->arena, to, leads(w, pointer->args.at[i]));
        return to;
    case EXPR_null: return NULL;
    case EXPR_decl:
        if (flow_is_pointer_variable(pointer)) return flow_variable(w, pointer->decl);
        return one_place(w, OUTSIDE);
    default: return one_place(w, OUTSIDE);
    }
}

/* Can what it leads to hold a derivative, whichever way it took? */
bool flow_points_inside(FlowWalk *w, const Expr *pointer) {
    const Flow *to = leads(w, pointer);
    return flow_part(to, INSIDE) && !flow_part(to, OUTSIDE);
}

void flow_address(FlowWalk *w, const Expr *e) {
    Decl *root = (Decl *)(uintptr_t)root_of(w, e->a);
    if (!root || !leads_inside(w, e->a)) return;
    for (int i = 0; i < w->addressed.count; i++)
        if (w->addressed.at[i] == root) return;
    vec_push(w->arena, &w->addressed, root);
}

/* `value` NULL: it comes from the caller. */
void flow_point(FlowWalk *w, const Decl *variable, const Expr *value) {
    flow_declare(w, variable, value ? leads(w, value) : one_place(w, OUTSIDE));
}

const Flow *flow_behind(FlowWalk *w, const Expr *pointer) {
    const Flow *flow = NULL;
    if (!flow_part(leads(w, pointer), INSIDE)) return NULL;
    for (int i = 0; i < w->addressed.count; i++)
        flow = flow_join(w->arena, flow,
                         flow_whole(w->arena, flow_indirect(w->arena, flow_variable(w, w->addressed.at[i]))));
    return flow;
}

void flow_store_behind(FlowWalk *w, const Flow *flow) {
    const Flow *stored = flow_indirect(w->arena, flow_whole(w->arena, flow));
    for (int i = 0; i < w->addressed.count; i++) {
        const Decl *variable = w->addressed.at[i];
        flow_declare(w, variable, flow_join(w->arena, flow_variable(w, variable), stored));
    }
}
