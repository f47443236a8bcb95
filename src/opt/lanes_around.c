/* How much is compiled with a function anyway? What a program calls, with all that this calls in turn, each
 * once and as it was before lanes. Of several such that have a part in common the smallest counts: then it is
 * no matter to a loop what else there is. Halves of a gradient count as a whole.
 *
 *     bwd_diff(loss) calls loss.pri and loss.prop         around each of these: all three */
#include "opt/lanes.h"

#include <math.h>

typedef struct Node {
    double code, around;
    int search; /* that found it last */
    VEC(struct Node *) calls;
} Node;

struct Around {
    Arena *scratch;
    Map nodes; /* Func -> Node */
};

typedef struct Visit {
    Around *around;
    Node *node;
} Visit;

static void count_inst(void *user, Inst *inst) {
    Visit *visit = user;
    visit->node->code += lanes_code_alone(inst);
    Node *callee = inst->op == OP_call ? map_get(&visit->around->nodes, PTR_KEY(inst->callee)) : NULL;
    if (callee) vec_push(visit->around->scratch, &visit->node->calls, callee);
}

typedef VEC(Node *) Nodes;

static void find(Arena *scratch, Nodes *found, Node *node, int search) {
    if (node->search == search) return;
    node->search = search;
    vec_push(scratch, found, node);
}

static void look_from(Around *around, Node *way_in, int search) {
    Nodes found = {0};
    double code = 0;
    find(around->scratch, &found, way_in, search);
    for (int i = 0; i < found.count; i++) {
        const Node *node = found.at[i];
        code += node->code;
        for (int k = 0; k < node->calls.count; k++) find(around->scratch, &found, node->calls.at[k], search);
    }
    for (int i = 0; i < found.count; i++) found.at[i]->around = fmin(found.at[i]->around, code);
}

Around *lanes_around(Arena *scratch, Func *const *funcs, int count) {
    Around *around = arena_new(scratch, Around);
    Node *nodes = arena_array(scratch, Node, count);
    *around = (Around){.scratch = scratch};
    for (int i = 0; i < count; i++) {
        nodes[i] = (Node){.around = INFINITY};
        map_put(scratch, &around->nodes, PTR_KEY(funcs[i]), &nodes[i]);
    }
    for (int i = 0; i < count; i++) region_walk(funcs[i]->body, count_inst, &(Visit){around, &nodes[i]});
    for (int i = 0; i < count; i++)
        if (funcs[i]->flags & FUNC_EXPORT) look_from(around, &nodes[i], i + 1);
    return around;
}

double lanes_code_around(const Around *around, const Func *func) {
    const Node *node = map_get(&around->nodes, PTR_KEY(func));
    return node->around;
}
