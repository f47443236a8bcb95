/* Several processes learn one model, each from its part of the data: every one computes the gradient of its
 * part, and one MPI_Allreduce adds them up. All processes then make the same step, so that their weights stay
 * the same.
 *
 *     mpicc fit.c $(pkg-config --cflags --libs slope) -lm -o fit && mpirun -np 2 ./fit
 *
 * Run it in this folder. */
#include <mpi.h>
#include <slope.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WEIGHTS = 3, TOTAL = 256, STEPS = 400 };

typedef struct Part {
    SlopeFunction *gradient;
    int first, count;
} Part;

static void require(SlopeSession *session, SlopeStatus status) {
    if (status == SLOPE_STATUS_ok) return;
    fprintf(stderr, "%s (%s)\n", slope_messages(session), slope_status_name(status));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Of the error of a part; the pair holds the weights, then their gradient. */
static void add_up(SlopeSession *session, const Part *part, const float *weights, float *gradient) {
    float pair[2 * WEIGHTS] = {weights[0], weights[1], weights[2]}, seed = 1;
    int first = part->first, count = part->count, total = TOTAL;
    require(session, slope_call(part->gradient, (void *[]){pair, &first, &count, &total, &seed}));
    for (int i = 0; i < WEIGHTS; i++) gradient[i] = pair[WEIGHTS + i];
}

static bool are_close(const float *a, const float *b) {
    for (int i = 0; i < WEIGHTS; i++)
        if (fabsf(a[i] - b[i]) > 1e-5f) return false;
    return true;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    SlopeSession *session;
    SlopeProgram *program;
    if (slope_session_new(NULL, &session) != SLOPE_STATUS_ok) return 1;
    require(session, slope_load_file(session, "fit.slang", &program));
    int first = TOTAL * rank / size, end = TOTAL * (rank + 1) / size;
    Part part = {.first = first, .count = end - first}, whole = {.count = TOTAL};
    require(session, slope_find_function(program, "bwd_diff(error)", &part.gradient));
    whole.gradient = part.gradient;
    float weights[WEIGHTS] = {0}, own[WEIGHTS], all[WEIGHTS], alone[WEIGHTS];
    for (int step = 0; step < STEPS; step++) {
        add_up(session, &part, weights, own);
        MPI_Allreduce(own, all, WEIGHTS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (step == 0) add_up(session, &whole, weights, alone);
        if (step == 0 && rank == 0)
            printf("the gradient of %d processes is %s\n", size,
                   are_close(all, alone) ? "that of one" : "another");
        for (int i = 0; i < WEIGHTS; i++) weights[i] -= 0.5f * all[i];
    }
    if (rank == 0)
        printf("weights %.2f %.2f %.2f\n", (double)weights[0], (double)weights[1], (double)weights[2]);
    slope_session_free(session);
    MPI_Finalize();
    return 0;
}
