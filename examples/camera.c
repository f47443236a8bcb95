/* Slope from C: loads camera.slang, asks for a method and calls it, then runs the kernel over buffers.
 *
 *     cc camera.c $(pkg-config --cflags --libs slope) -o camera && ./camera
 *
 * Run it in this folder. With no `report` callback, messages are kept for slope_messages. */
#include <slope.h>

#include <stdio.h>
#include <stdlib.h>

/* The C form of the struct in the program: the layout is the same. */
typedef struct Camera {
    float focal;
    float center[2];
} Camera;

static void require(SlopeSession *session, SlopeStatus status) {
    if (status == SLOPE_STATUS_ok) return;
    fprintf(stderr, "%s (%s)\n", slope_messages(session), slope_status_name(status));
    exit(1);
}

/* What a caller can find out about a function. */
static void describe(const SlopeFunction *function) {
    printf("%s:\n", slope_function_name(function));
    SlopeParameter parameter;
    for (int i = 0; slope_function_parameter(function, i, &parameter); i++)
        printf("  %s: %s, %zu bytes\n", parameter.name, slope_type_name(parameter.type),
               slope_type_size(parameter.type));
    printf("  result: %s\n", slope_type_name(slope_function_result(function)));
}

static void describe_struct(const SlopeType *type) {
    printf("%s:\n", slope_type_name(type));
    SlopeField field;
    for (int i = 0; slope_type_field(type, i, &field); i++)
        printf("  %s at %zu: %s\n", field.name, field.offset, slope_type_name(field.type));
}

static void call_method(SlopeSession *session, SlopeProgram *program) {
    SlopeFunction *project;
    require(session, slope_find_function(program, "Camera.project", &project));
    describe(project);
    SlopeParameter self;
    if (slope_function_parameter(project, 0, &self)) describe_struct(self.type);

    Camera camera = {2.0f, {0.5f, 0.5f}};
    float point[3] = {1, 2, 4}, result[2];
    require(session, slope_call(project, (void *[]){&camera, point, result}));
    printf("by slope_call: %g %g\n", (double)result[0], (double)result[1]);

    /* The same by its address: structs and vectors are passed by pointer, a vector result through the last
     * one. */
    union {
        void *address;
        void (*call)(const Camera *self, const float point[3], float result[2]);
    } native;
    require(session, slope_function_address(project, &native.address));
    camera.focal = 4;
    native.call(&camera, point, result);
    printf("by address: %g %g\n", (double)result[0], (double)result[1]);
}

static void run_kernel(SlopeSession *session, SlopeProgram *program) {
    float points[][3] = {{0, 0, 2}, {1, 1, 4}, {-2, 2, 2}}, focal = 2;
    SlopeBuffer *in, *out;
    SlopeKernel *kernel;
    require(session, slope_buffer_wrap(session, points, sizeof points, &in));
    require(session, slope_buffer_new(session, 3 * sizeof(float[2]), &out));
    require(session, slope_find_kernel(program, "projectAll", &kernel));
    require(session, slope_bind_buffer(program, "points", in));
    require(session, slope_bind_buffer(program, "image", out));
    require(session, slope_set_uniform(program, "focal", &focal, sizeof focal));
    require(session, slope_dispatch(kernel, 1, 1, 1));
    const float *image = slope_buffer_data(out);
    for (int i = 0; i < 3; i++)
        printf("point %d: %g %g\n", i, (double)image[2 * i], (double)image[2 * i + 1]);
}

int main(void) {
    SlopeSession *session;
    SlopeProgram *program;
    if (slope_session_new(NULL, &session) != SLOPE_STATUS_ok) return 1;
    require(session, slope_load_file(session, "camera.slang", &program));
    call_method(session, program);
    run_kernel(session, program);
    slope_session_free(session);
    return 0;
}
