/* Values of the derivative data-flow check, and sets of variables. Nothing here is ever changed once it is
 * made: joining and replacing give new values that share what stays the same. */
#include "check/flow.h"

/* ---- losses */

static const Loss *find_loss(const Loss *losses, const void *cause) {
    while (losses && losses->cause != cause) losses = losses->next;
    return losses;
}

static const Loss *without(Arena *arena, const Loss *losses, const Loss *one) {
    const Loss *first = NULL, **at = &first;
    for (; losses != one; losses = losses->next) {
        Loss *copy = arena_copy(arena, losses, sizeof *losses);
        *at = copy;
        at = &copy->next;
    }
    *at = one->next;
    return first;
}

/* The way that was found first stays, unless the other is more direct. */
const Loss *loss_add(Arena *arena, const Loss *losses, const Loss *loss) {
    const Loss *known = find_loss(losses, loss->cause);
    if (known && (!known->indirect || loss->indirect)) return losses;
    if (known) losses = without(arena, losses, known);
    Loss *copy = arena_copy(arena, loss, sizeof *loss);
    copy->next = losses;
    return copy;
}

static const Loss *join_losses(Arena *arena, const Loss *a, const Loss *b) {
    if (!a) return b;
    for (; b; b = b->next) a = loss_add(arena, a, b);
    return a;
}

/* ---- values */

const Flow *flow_make(Arena *arena, bool carries, const Loss *losses) {
    if (!carries && !losses) return NULL;
    Flow *flow = arena_take(arena, sizeof *flow);
    flow->carries = carries;
    flow->losses = losses;
    return flow;
}

static Flow *new_parts(Arena *arena, int nparts) {
    Flow *flow = arena_take(arena, sizeof *flow + sizeof flow->parts[0] * (size_t)nparts);
    flow->nparts = nparts;
    return flow;
}

const Flow *flow_part(const Flow *flow, int index) {
    if (!flow || flow->nparts == 0) return flow;
    return index < flow->nparts ? flow->parts[index] : NULL;
}

static const Flow *join_parts(Arena *arena, const Flow *a, const Flow *b) {
    int nparts = a->nparts > b->nparts ? a->nparts : b->nparts;
    Flow *joined = new_parts(arena, nparts);
    bool same = true;
    for (int i = 0; i < nparts; i++) {
        joined->parts[i] = flow_join(arena, flow_part(a, i), flow_part(b, i));
        same &= joined->parts[i] == flow_part(a, i);
    }
    return same ? a : joined;
}

const Flow *flow_join(Arena *arena, const Flow *a, const Flow *b) {
    if (!b || a == b) return a;
    if (!a) return b;
    if (a->nparts || b->nparts) return join_parts(arena, a, b);
    const Loss *losses = join_losses(arena, a->losses, b->losses);
    bool carries = a->carries || b->carries;
    if (carries == a->carries && losses == a->losses) return a;
    return flow_make(arena, carries, losses);
}

const Flow *flow_with_part(Arena *arena, const Flow *flow, int nparts, int index, const Flow *part) {
    if (flow_part(flow, index) == part) return flow;
    Flow *changed = new_parts(arena, nparts);
    for (int i = 0; i < nparts; i++) changed->parts[i] = i == index ? part : flow_part(flow, i);
    return changed;
}

const Flow *flow_whole(Arena *arena, const Flow *flow) {
    if (!flow || flow->nparts == 0) return flow;
    const Flow *whole = NULL;
    for (int i = 0; i < flow->nparts; i++) whole = flow_join(arena, whole, flow_whole(arena, flow->parts[i]));
    return whole;
}

const Flow *flow_lost(Arena *arena, const Flow *flow) {
    const Flow *whole = flow_whole(arena, flow);
    return whole ? flow_make(arena, false, whole->losses) : NULL;
}

static const Loss *indirect_losses(Arena *arena, const Loss *losses) {
    const Loss *first = NULL, **at = &first;
    for (; losses; losses = losses->next) {
        Loss *copy = arena_copy(arena, losses, sizeof *losses);
        copy->indirect = true;
        *at = copy;
        at = &copy->next;
    }
    return first;
}

static bool has_direct(const Loss *losses) {
    while (losses && losses->indirect) losses = losses->next;
    return losses;
}

const Flow *flow_indirect(Arena *arena, const Flow *flow) {
    if (!flow) return NULL;
    if (flow->nparts == 0)
        return has_direct(flow->losses)
                   ? flow_make(arena, flow->carries, indirect_losses(arena, flow->losses))
                   : flow;
    Flow *copy = new_parts(arena, flow->nparts);
    bool same = true;
    for (int i = 0; i < flow->nparts; i++) {
        copy->parts[i] = flow_indirect(arena, flow->parts[i]);
        same &= copy->parts[i] == flow->parts[i];
    }
    return same ? flow : copy;
}

bool flow_moves(const Flow *flow) {
    if (!flow) return false;
    const Loss *loss = flow->losses;
    while (loss && loss->kind != LOSS_call) loss = loss->next;
    if (flow->carries || loss) return true;
    for (int i = 0; i < flow->nparts; i++)
        if (flow_moves(flow->parts[i])) return true;
    return false;
}

static bool ends_in(const Loss *loss, const Decl *into) { return loss->path && loss->path->into == into; }

static const LossStep *step_into(Arena *arena, const LossStep *path, Loc loc, const Decl *into) {
    LossStep *step = arena_new(arena, LossStep);
    *step = (LossStep){path, loc, into};
    return step;
}

/* A value that is in the variable already goes no further: a sum that loses something in each of n terms costs n,
 * not its square. */
static const Loss *losses_through(Arena *arena, const Loss *losses, Loc loc, const Decl *into) {
    const Loss *rest = losses; /* from here on all are there */
    for (const Loss *loss = losses; loss; loss = loss->next)
        if (!ends_in(loss, into)) rest = loss->next;
    const Loss *first = rest, **at = &first;
    for (const Loss *loss = losses; loss != rest; loss = loss->next) {
        Loss *copy = arena_copy(arena, loss, sizeof *loss);
        if (!ends_in(loss, into)) copy->path = step_into(arena, loss->path, loc, into);
        *at = copy;
        at = &copy->next;
    }
    *at = rest;
    return first;
}

const Flow *flow_through(Arena *arena, const Flow *flow, Loc loc, const Decl *into) {
    if (!flow) return NULL;
    if (flow->nparts == 0) {
        const Loss *losses = losses_through(arena, flow->losses, loc, into);
        return losses == flow->losses ? flow : flow_make(arena, flow->carries, losses);
    }
    Flow *copy = new_parts(arena, flow->nparts);
    for (int i = 0; i < flow->nparts; i++) copy->parts[i] = flow_through(arena, flow->parts[i], loc, into);
    return copy;
}

/* ---- variables */

enum { FANOUT = 16, LEVELS = 5 }; /* FANOUT to the power of LEVELS is MAX_FLOW_VARS */

struct FlowVars {
    const void *at[FANOUT]; /* FlowVars; on the last level, Flow */
};

static int slot_at(int index, int level) { return index >> (4 * (LEVELS - 1 - level)) & (FANOUT - 1); }

const Flow *vars_get(const FlowVars *vars, int index) {
    for (int level = 0; level < LEVELS - 1 && vars; level++) vars = vars->at[slot_at(index, level)];
    return vars ? vars->at[slot_at(index, LEVELS - 1)] : NULL;
}

static const void *put_at(Arena *arena, const FlowVars *vars, int index, const Flow *flow, int level) {
    if (level == LEVELS) return flow;
    FlowVars *copy = vars ? arena_copy(arena, vars, sizeof *vars) : arena_new(arena, FlowVars);
    int slot = slot_at(index, level);
    copy->at[slot] = put_at(arena, copy->at[slot], index, flow, level + 1);
    return copy;
}

const FlowVars *vars_put(Arena *arena, const FlowVars *vars, int index, const Flow *flow) {
    return vars_get(vars, index) == flow ? vars : put_at(arena, vars, index, flow, 0);
}

static const void *join_at(Arena *arena, const FlowVars *a, const FlowVars *b, int level) {
    if (!b || a == b) return a;
    if (!a) return b;
    if (level == LEVELS)
        return flow_join(arena, (const Flow *)(const void *)a, (const Flow *)(const void *)b);
    const FlowVars *result = a;
    FlowVars *copy = NULL;
    for (int i = 0; i < FANOUT; i++) {
        const void *joined = join_at(arena, a->at[i], b->at[i], level + 1);
        if (joined == a->at[i]) continue;
        if (!copy) result = copy = arena_copy(arena, a, sizeof *a);
        copy->at[i] = joined;
    }
    return result;
}

const FlowVars *vars_join(Arena *arena, const FlowVars *a, const FlowVars *b) {
    return join_at(arena, a, b, 0);
}
