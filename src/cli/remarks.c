/* --remarks: how kernels were compiled, for those who look where time goes. */
#include "cli.h"

static void show_remark(const SlopeRemark *remark) {
    if (remark->path) fprintf(stderr, "%s:%d:%d: ", remark->path, remark->line, remark->column);
    fprintf(stderr, "remark: kernel '%s' does ", remark->kernel);
    if (remark->lanes > 1) fprintf(stderr, "%d items at once", remark->lanes);
    else fprintf(stderr, "one item at a time");
    if (remark->why) fprintf(stderr, ": %s", remark->why);
    fprintf(stderr, "\n");
}

void remarks_show(const SlopeSession *session) {
    SlopeRemark remark;
    for (int i = 0; slope_remark(session, i, &remark); i++) show_remark(&remark);
}
