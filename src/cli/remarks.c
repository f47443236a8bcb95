/* --remarks: how kernels and loops were compiled, for those who look where time goes. */
#include "cli.h"

static void show_remark(const SlopeRemark *remark) {
    if (remark->path) fprintf(stderr, "%s:%d:%d: ", remark->path, remark->line, remark->column);
    const char *items = remark->is_loop ? "rounds" : "items", *item = remark->is_loop ? "round" : "item";
    fprintf(stderr, "remark: %s '%s' does ", remark->is_loop ? "a loop of" : "kernel", remark->kernel);
    if (remark->lanes > 1) fprintf(stderr, "%d %s at once", remark->lanes, items);
    else fprintf(stderr, "one %s at a time", item);
    if (remark->why) fprintf(stderr, ": %s", remark->why);
    fprintf(stderr, "\n");
}

void remarks_show(const SlopeSession *session) {
    SlopeRemark remark;
    for (int i = 0; slope_remark(session, i, &remark); i++) show_remark(&remark);
}
