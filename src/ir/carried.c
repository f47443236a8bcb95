/* How many floating-point numbers a loop hands on from round to round: those that it carries, and those in
 * variables around it that it writes. */
#include "ir/ir.h"

enum { SHORT_TRIP = 16 }; /* of loops that are written out, mostly */

typedef struct Carried {
    Arena *scratch;
    const Inst *loop; /* at work */
    Map vars;         /* that are counted */
    int64_t count;    /* of the loop; INT64_MAX: not known */
    int64_t most;     /* of all */
} Carried;

int64_t ir_count_numbers(const Type *type) {
    int64_t sum = 0;
    if (type->kind == TYPE_array) return type_length(type) * ir_count_numbers(type->args[0]);
    if (type->kind == TYPE_vector) return type_count(type) * ir_count_numbers(type->args[0]);
    if (type->kind != TYPE_record) return type_is_float(type);
    for (int i = 0; i < type_record(type)->nfields; i++)
        sum += ir_count_numbers(type_record(type)->fields[i].type);
    return sum;
}

static void add(Carried *c, int64_t numbers) {
    c->count = numbers < INT64_MAX - c->count ? c->count + numbers : INT64_MAX;
}

/* All of the variable; what lies elsewhere may be anything. */
static void add_written(Carried *c, Val *address) {
    const Val *root = ir_root(address);
    bool is_var = root->kind == VAL_inst && root->inst->op == OP_var;
    if ((is_var && inst_contains(c->loop, root)) || map_has(&c->vars, PTR_KEY(root))) return;
    map_put(c->scratch, &c->vars, PTR_KEY(root), c);
    add(c, is_var ? ir_count_numbers(root->type->args[0]) : INT64_MAX);
}

static void look_at(void *user, Inst *inst) {
    Carried *c = user;
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        if (role == ROLE_write || role == ROLE_share || role == ROLE_escape)
            add_written(c, inst_operand(inst, i));
    }
}

static void look_at_loop(void *user, Inst *inst) {
    Carried *c = user;
    if (inst->op != OP_loop || loop_most_trips(inst) <= SHORT_TRIP) return;
    c->loop = inst;
    c->vars = (Map){0};
    c->count = 0;
    for (int i = 0; i < inst->nresults; i++) add(c, ir_count_numbers(inst->results[i]->type));
    inst_walk(inst, look_at, c);
    if (c->count > c->most) c->most = c->count;
}

int64_t ir_most_carried(Func *func) {
    Carried c = {.scratch = arena_scratch(func->module->arena)};
    region_walk(func->body, look_at_loop, &c);
    arena_free(c.scratch);
    return c.most;
}
