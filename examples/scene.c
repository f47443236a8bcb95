/* Recovers a scene from its picture: draws the true one, then changes a guess until its picture is the same.
 * The kernels are in scene.slang; here are the buffers that they share with us, and gradient descent (Adam).
 *
 *     cc scene.c $(pkg-config --cflags --libs slope) -lm -o scene && ./scene
 *
 * Run it in this folder. On a terminal it shows the picture of the guess as it changes; with --text, the
 * error instead; --save FILE keeps the pictures and the errors as text, for scripts/pictures.py. */
#include <slope.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 36, HEIGHT = 36, GROUP = 12, NUMBERS = 8, STEPS = 200, FRAME = 8 };

static const char *const names[NUMBERS] = {"x", "y", "z", "radius", "x", "y", "z", "radius"};
static const float truth[NUMBERS] = {-0.4f, 0.1f, 0.2f, 0.9f, 0.8f, -0.4f, -0.3f, 0.5f};
static const float start[NUMBERS] = {-0.1f, -0.2f, 0.0f, 0.6f, 0.5f, 0.2f, 0.0f, 0.6f};

typedef struct Fit {
    SlopeSession *session;
    SlopeProgram *program;
    SlopeKernel *draw, *differentiate;
    float target[HEIGHT][WIDTH], picture[HEIGHT][WIDTH];
    float scene[NUMBERS], gradient[NUMBERS];
    float mean[NUMBERS], square[NUMBERS]; /* of the gradients so far */
} Fit;

static void require(SlopeSession *session, SlopeStatus status) {
    if (status == SLOPE_STATUS_ok) return;
    fprintf(stderr, "%s (%s)\n", slope_messages(session), slope_status_name(status));
    exit(1);
}

/* The program works on our memory: nothing is copied. */
static void bind(const Fit *fit, const char *name, void *data, size_t size) {
    SlopeBuffer *buffer;
    require(fit->session, slope_buffer_wrap(fit->session, data, size, &buffer));
    require(fit->session, slope_bind_buffer(fit->program, name, buffer));
}

static void open_program(Fit *fit) {
    if (slope_session_new(NULL, &fit->session) != SLOPE_STATUS_ok) exit(1);
    require(fit->session, slope_load_file(fit->session, "scene.slang", &fit->program));
    require(fit->session, slope_find_kernel(fit->program, "draw", &fit->draw));
    require(fit->session, slope_find_kernel(fit->program, "differentiate", &fit->differentiate));
    bind(fit, "target", fit->target, sizeof fit->target);
    bind(fit, "picture", fit->picture, sizeof fit->picture);
    bind(fit, "scenes", fit->scene, sizeof fit->scene);
    bind(fit, "gradients", fit->gradient, sizeof fit->gradient);
}

static void run(const Fit *fit, SlopeKernel *kernel) {
    require(fit->session, slope_dispatch(kernel, WIDTH / GROUP, HEIGHT / GROUP, 1));
}

static double error(const Fit *fit) {
    double sum = 0;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) sum += pow(fit->picture[y][x] - fit->target[y][x], 2);
    return sum / (WIDTH * HEIGHT);
}

/* Shorter steps towards the end: at edges the error is rough. */
static void improve(Fit *fit, int step) {
    float rate = 0.03f * (1 - (float)step / STEPS);
    for (int i = 0; i < NUMBERS; i++) {
        float g = fit->gradient[i];
        fit->mean[i] += 0.1f * (g - fit->mean[i]);
        fit->square[i] += 0.01f * (g * g - fit->square[i]);
        float mean = fit->mean[i] / (1 - powf(0.9f, (float)step + 1));
        float square = fit->square[i] / (1 - powf(0.99f, (float)step + 1));
        fit->scene[i] -= rate * mean / (sqrtf(square) + 1e-8f);
    }
}

/* One of the 24 grey colours of a terminal. */
static int grey(float light) { return 232 + (int)(23.99f * fminf(light, 1)); }

/* Two rows of the picture make one line of text, of characters whose upper half is filled. */
static void show_line(const float rows[2][WIDTH]) {
    for (int x = 0; x < WIDTH; x++) printf("\033[38;5;%d;48;5;%dm\u2580", grey(rows[0][x]), grey(rows[1][x]));
    fputs("\033[0m", stdout);
}

static void show_error(const Fit *fit, int step) {
    int done = 40 * step / STEPS;
    printf("[%.*s%*s] step %3d, error %.1e", done, "########################################", 40 - done, "",
           step, error(fit));
}

/* The guess beside the truth, over the last ones shown. */
static void show(const Fit *fit, int step) {
    if (step) printf("\033[%dA", HEIGHT / 2 + 2);
    printf("%-*s  %s\n", WIDTH, "the guess", "the truth");
    for (int y = 0; y < HEIGHT; y += 2) {
        show_line(&fit->picture[y]);
        fputs("  ", stdout);
        show_line(&fit->target[y]);
        putchar('\n');
    }
    show_error(fit, step);
    puts("\033[K");
    fflush(stdout);
}

static void save(FILE *file, const char *name, const float picture[HEIGHT][WIDTH]) {
    if (!file) return;
    fprintf(file, "%s %d %d", name, WIDTH, HEIGHT);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) fprintf(file, " %.4f", (double)picture[y][x]);
    fputc('\n', file);
}

static FILE *open_save(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "--save")) return fopen(argv[i + 1], "w");
    return NULL;
}

int main(int argc, char **argv) {
    static Fit fit;
    bool text = argc > 1 && !strcmp(argv[1], "--text"), terminal = !text && isatty(STDOUT_FILENO);
    FILE *file = open_save(argc, argv);
    open_program(&fit);
    memcpy(fit.scene, truth, sizeof truth);
    run(&fit, fit.draw);
    memcpy(fit.target, fit.picture, sizeof fit.picture);
    memcpy(fit.scene, start, sizeof start);
    run(&fit, fit.draw);
    double first = error(&fit);
    save(file, "target", fit.target);
    save(file, "start", fit.picture);
    for (int step = 0; step <= STEPS; step++) {
        if (step % FRAME == 0 && (terminal || file || (text && step % (3 * FRAME) == 0))) {
            run(&fit, fit.draw);
            if (file) fprintf(file, "error %d %.6g\n", step, error(&fit));
            if (terminal) show(&fit, step);
            else if (text && step % (3 * FRAME) == 0) show_error(&fit, step), putchar('\n');
        }
        memset(fit.gradient, 0, sizeof fit.gradient);
        run(&fit, fit.differentiate);
        improve(&fit, step);
    }
    run(&fit, fit.draw);
    printf("the error is %s\n",
           error(&fit) < 0.001 * first ? "less than a thousandth of what it was" : "still large");
    for (int i = 0; i < NUMBERS; i++) {
        if (i % 4 == 0) printf("%s ball\n", i ? "small" : "large");
        printf("  %-7s found %5.2f, true %5.2f\n", names[i], (double)fit.scene[i], (double)truth[i]);
    }
    save(file, "found", fit.picture);
    if (file) fclose(file);
    slope_session_free(fit.session);
    return 0;
}
