/* Checking derivatives from C: every differentiable function of gradcheck.slang, then one of them at a point.
 *
 *     cc gradcheck.c $(pkg-config --cflags --libs slope) -o gradcheck && ./gradcheck
 *
 * Run it in this folder. */
#include <slope.h>

#include <stdio.h>
#include <stdlib.h>

static void require(SlopeSession *session, SlopeStatus status) {
    if (status == SLOPE_STATUS_ok) return;
    fprintf(stderr, "%s (%s)\n", slope_messages(session), slope_status_name(status));
    exit(1);
}

static void check(SlopeSession *session, SlopeProgram *program, const SlopeGradcheckOptions *options) {
    const SlopeGradcheckResult *results;
    int count;
    require(session, slope_gradcheck(program, options, &results, &count));
    for (int i = 0; i < count; i++) {
        const SlopeGradcheckResult *result = &results[i];
        printf("%s: %s at %d point%s\n", result->function, slope_verdict_name(result->verdict),
               result->samples, result->samples == 1 ? "" : "s");
        if (options && result->message) printf("  %s\n", result->message);
    }
}

int main(void) {
    SlopeSession *session;
    SlopeProgram *program;
    if (slope_session_new(NULL, &session) != SLOPE_STATUS_ok) return 1;
    require(session, slope_load_file(session, "gradcheck.slang", &program));
    check(session, program, NULL);

    /* The program can be used for other things in between. */
    SlopeFunction *damping;
    float speed = 3, force;
    require(session, slope_find_function(program, "damping", &damping));
    require(session, slope_call(damping, (void *[]){&speed, &force}));
    printf("damping(3) is %g\n", (double)force);

    const char *slow = "0.5", *fast = "2";
    check(session, program,
          &(SlopeGradcheckOptions){.function = "damping", .points = &slow, .point_count = 1});
    check(session, program,
          &(SlopeGradcheckOptions){.function = "damping", .points = &fast, .point_count = 1});
    slope_session_free(session);
    return 0;
}
