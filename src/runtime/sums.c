/* Sums in buffers that no two workers share.
 *
 * The groups of a dispatch are cut into chunks, as many as their number, the size of the buffers and the work
 * of a thread say, and not the number of workers. A worker that takes a chunk takes copies of all buffers for
 * it, in which every number is -0, which is what x + y leaves alone; only the first chunk adds to the buffers
 * themselves. What the others have added up goes there in the order of chunks, whoever is done first: results
 * are the same to the last bit, however many workers there are.
 *
 *     chunk   0        1      2   ...
 *     in      buffer   a      b          buffer = (buffer + a) + b ...
 *
 * A worker that comes too early leaves its copies behind and takes others. There are at most two for each
 * worker; if none is left, it waits: the first chunk that is not added yet has copies, so that there is
 * always one who does not. To fill copies and to add them takes as long as they are large, so that there must
 * be enough to do for each. Buffers that are too large are not for this: whoever asks first
 * (runtime_large_sums) runs code that adds to them atomically. */
#include "runtime/thread.h"
#include <stdlib.h>
#include <string.h>

/* Chunks, if there are as many groups: between these, and so many that all copies together have twice as many
 * numbers as the dispatch has threads. */
enum { FEWEST_CHUNKS = 16, MOST_CHUNKS = 256 };
/* A number of a copy takes as long as this many operations of a thread: some, since several threads are done
 * at once, and as much again that one worker alone hardly notices it. */
enum { WORK_OF_NUMBER = 16, WORK_OF_MANY = 48 };
/* Numbers of all copies of a chunk: as many as this, or one for that many threads of the dispatch, up to a
 * limit; or so many that copies pay, and do not take too much memory together. */
enum { FEW_NUMBERS = 16384, THREADS_PER_NUMBER = 8, MOST_NUMBERS = 4 << 20, MOST_IN_ALL = 32 << 20 };
enum { ALIGNMENT = 64 };

/* ---- what there is to add to */

static RtBuffer find_buffer(const RtSum *sum, void *const *args) {
    const char *at = sum->base ? sum->base : args[sum->arg];
    RtBuffer buffer;
    for (uint64_t i = 0; i + 1 < sum->nsteps && at; i++) {
        at += sum->offsets[i];
        const char *next;
        memcpy(&next, at, sizeof next);
        at = next;
    }
    if (!at) return (RtBuffer){0};
    memcpy(&buffer, at + sum->offsets[sum->nsteps - 1], sizeof buffer);
    return buffer.data ? buffer : (RtBuffer){0};
}

static uint64_t bytes_of(const RtSum *sum, RtBuffer buffer) { return buffer.count * sum->stride; }

static uint64_t count_numbers(const RtKernel *kernel, void *const *args, uint64_t large) {
    uint64_t total = 0;
    for (uint64_t i = 0; i < kernel->nsums; i++) {
        const RtSum *sum = &kernel->sums[i];
        if (!(large >> i & 1)) total += bytes_of(sum, find_buffer(sum, args)) / sum->size;
    }
    return total;
}

static uint64_t count_threads(const RtKernel *kernel, uint64_t groups) {
    return groups * kernel->group_size[0] * kernel->group_size[1] * kernel->group_size[2];
}

static bool are_few(uint64_t numbers, uint64_t threads) {
    return numbers <= FEW_NUMBERS || (numbers <= threads / THREADS_PER_NUMBER && numbers <= MOST_NUMBERS);
}

/* With as many workers, all chunks take work / chunks, and to add them up takes numbers * chunks: no more than
 * make these the same. */
static uint64_t chunks_that_pay(uint64_t of_thread, uint64_t numbers, uint64_t threads) {
    double work = (double)of_thread * (double)threads,
           adding = (are_few(numbers, threads) ? WORK_OF_NUMBER : WORK_OF_MANY) * (double)numbers;
    uint64_t chunks = 1;
    while (chunks < MOST_CHUNKS && adding * (double)((chunks + 1) * (chunks + 1)) <= work) chunks++;
    return chunks;
}

/* A single group has no other beside it. */
static bool are_for_copies(const RtKernel *kernel, uint64_t numbers, uint64_t groups) {
    uint64_t threads = count_threads(kernel, groups);
    if (groups == 1 || are_few(numbers, threads)) return true;
    return numbers <= MOST_IN_ALL / 2 && chunks_that_pay(kernel->least, numbers, threads) > 1;
}

/* The largest of those that are left. */
static uint64_t largest(const RtKernel *kernel, void *const *args, uint64_t large) {
    uint64_t found = 0, most = 0;
    for (uint64_t i = 0; i < kernel->nsums; i++) {
        uint64_t bytes = bytes_of(&kernel->sums[i], find_buffer(&kernel->sums[i], args));
        if ((large >> i & 1) || bytes < most) continue;
        found = i, most = bytes;
    }
    return found;
}

static uint64_t find_large(const RtKernel *kernel, uint64_t groups, void *const *args) {
    uint64_t large = 0;
    while (!are_for_copies(kernel, count_numbers(kernel, args, large), groups))
        large |= (uint64_t)1 << largest(kernel, args, large);
    return large;
}

uint64_t runtime_large_sums(const Runtime *runtime, const RtKernel *kernel, const uint32_t groups[3],
                            void *const *args) {
    if (runtime_workers(runtime) == 1) return 0;
    return find_large(kernel, (uint64_t)groups[0] * groups[1] * groups[2], args);
}

/* ---- copies */

struct SumCopy {
    struct SumCopy *next;      /* of all */
    struct SumCopy *next_free; /* of those that nobody uses */
    void **args;               /* of the kernel: those that were given, then addresses of these: */
    RtBuffer *buffers;
};

struct Sums {
    const RtKernel *kernel;
    void *const *args;
    RtBuffer *buffers;      /* themselves */
    uint64_t large;         /* bits of those that there are no copies of */
    uint64_t bytes;         /* of all data of a copy */
    void **direct;          /* arguments for who adds to the buffers themselves */
    uint64_t chunk, chunks; /* groups of one; how many */
    int most;               /* copies */
    /* Under the lock: */
    pthread_mutex_t lock;
    pthread_cond_t change;
    SumCopy *all, *free;
    int count;
    SumCopy **done; /* by chunk: what it added up, and is not added yet */
    uint64_t added; /* chunks */
    bool adding;    /* somebody is */
    bool failed;    /* nothing will be added any more */
};

static uint64_t aligned(uint64_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static void fill(const RtSum *sum, RtBuffer buffer) {
    uint64_t count = bytes_of(sum, buffer) / sum->size;
    float *singles = buffer.data;
    double *doubles = buffer.data;
    for (uint64_t i = 0; i < count && sum->size == sizeof *singles; i++) singles[i] = -0.0F;
    for (uint64_t i = 0; i < count && sum->size == sizeof *doubles; i++) doubles[i] = -0.0;
}

/* To the buffer; the copy is as it was at first. */
static void add(const RtSum *sum, RtBuffer buffer, RtBuffer copy) {
    uint64_t count = bytes_of(sum, buffer) / sum->size;
    if (sum->size == sizeof(float)) {
        float *restrict to = buffer.data, *restrict from = copy.data;
        for (uint64_t i = 0; i < count; i++) to[i] += from[i], from[i] = -0.0F;
    } else {
        double *restrict to = buffer.data, *restrict from = copy.data;
        for (uint64_t i = 0; i < count; i++) to[i] += from[i], from[i] = -0.0;
    }
}

static void **make_args(const Sums *sums, RtBuffer *buffers, void **args) {
    uint64_t given = sums->kernel->nargs;
    for (uint64_t i = 0; i < given; i++) args[i] = sums->args[i];
    for (uint64_t i = 0; i < sums->kernel->nsums; i++) args[given + i] = &buffers[i];
    return args;
}

static bool is_large(const Sums *sums, uint64_t index) { return sums->large >> index & 1; }

/* All of it is one block. */
static SumCopy *new_copy(const Sums *sums) {
    const RtKernel *kernel = sums->kernel;
    size_t args = (kernel->nargs + kernel->nsums) * sizeof(void *),
           buffers = kernel->nsums * sizeof(RtBuffer);
    size_t head = (size_t)aligned(sizeof(SumCopy) + args + buffers);
    char *memory = aligned_alloc(ALIGNMENT, head + (size_t)sums->bytes);
    if (!memory) return NULL;
    SumCopy *copy = (SumCopy *)(void *)memory;
    copy->buffers = (RtBuffer *)(void *)(memory + sizeof *copy);
    copy->args = make_args(sums, copy->buffers, (void **)(void *)(memory + sizeof *copy + buffers));
    memory += head;
    for (uint64_t i = 0; i < kernel->nsums; i++) {
        copy->buffers[i] = sums->buffers[i];
        if (is_large(sums, i)) continue;
        copy->buffers[i].data = memory;
        fill(&kernel->sums[i], copy->buffers[i]);
        memory += aligned(bytes_of(&kernel->sums[i], copy->buffers[i]));
    }
    return copy;
}

/* Where nothing is left for one more, those that there are must do. */
static SumCopy *one_more(Sums *sums) {
    SumCopy *copy = new_copy(sums);
    if (!copy) {
        sums->most = sums->count;
        return NULL;
    }
    copy->next = sums->all;
    sums->all = copy;
    sums->count++;
    return copy;
}

static SumCopy *take_copy(Sums *sums) {
    SumCopy *copy = sums->free;
    if (copy) sums->free = copy->next_free;
    else if (sums->count < sums->most) copy = one_more(sums);
    return copy;
}

static void put_back(Sums *sums, SumCopy *copy) {
    copy->next_free = sums->free;
    sums->free = copy;
    pthread_cond_broadcast(&sums->change);
}

void sums_give(Sums *sums, SumCopy *copy) {
    pthread_mutex_lock(&sums->lock);
    put_back(sums, copy);
    pthread_mutex_unlock(&sums->lock);
}

SumsTaken sums_take(Sums *sums, SumCopy **out) {
    pthread_mutex_lock(&sums->lock);
    while (!(*out = take_copy(sums)) && !sums->failed && sums->count > 0)
        pthread_cond_wait(&sums->change, &sums->lock);
    SumsTaken taken = sums->failed ? SUMS_over : *out ? SUMS_taken : SUMS_no_memory;
    pthread_mutex_unlock(&sums->lock);
    return taken;
}

void *const *sums_args(const Sums *sums, uint64_t chunk, const SumCopy *copy) {
    return chunk == 0 ? sums->direct : copy->args;
}

/* ---- the order */

static void add_all(const Sums *sums, const SumCopy *copy) {
    for (uint64_t i = 0; i < sums->kernel->nsums; i++)
        if (!is_large(sums, i)) add(&sums->kernel->sums[i], sums->buffers[i], copy->buffers[i]);
}

/* One at a time, and the lock is free meanwhile. The first chunk is where it belongs. */
static void add_done(Sums *sums) {
    sums->adding = true;
    while (sums->added < sums->chunks && sums->done[sums->added] && !sums->failed) {
        SumCopy *copy = sums->done[sums->added];
        pthread_mutex_unlock(&sums->lock);
        if (sums->added > 0) add_all(sums, copy);
        pthread_mutex_lock(&sums->lock);
        sums->added++;
        put_back(sums, copy);
    }
    sums->adding = false;
}

void sums_done(Sums *sums, uint64_t chunk, SumCopy *copy) {
    pthread_mutex_lock(&sums->lock);
    sums->done[chunk] = copy;
    if (!sums->adding) add_done(sums);
    pthread_mutex_unlock(&sums->lock);
}

void sums_fail(Sums *sums) {
    pthread_mutex_lock(&sums->lock);
    sums->failed = true;
    pthread_cond_broadcast(&sums->change);
    pthread_mutex_unlock(&sums->lock);
}

/* ---- of a dispatch */

static uint64_t choose_chunks(const RtKernel *kernel, uint64_t numbers, uint64_t groups) {
    uint64_t threads = count_threads(kernel, groups);
    bool is_much = !are_few(numbers, threads), is_known = is_much || kernel->work;
    uint64_t work = is_much ? kernel->least : kernel->work;
    uint64_t pay = is_known ? chunks_that_pay(work, numbers, threads) : MOST_CHUNKS;
    uint64_t chunks = numbers ? 2 * threads / numbers : MOST_CHUNKS;
    if (chunks < FEWEST_CHUNKS) chunks = FEWEST_CHUNKS;
    if (chunks > MOST_CHUNKS) chunks = MOST_CHUNKS;
    if (chunks > pay) chunks = pay;
    if (is_much && chunks * numbers > MOST_IN_ALL) chunks = MOST_IN_ALL / numbers + 1;
    return chunks < groups ? chunks : groups;
}

static void find_buffers(Sums *sums) {
    for (uint64_t i = 0; i < sums->kernel->nsums; i++) {
        sums->buffers[i] = find_buffer(&sums->kernel->sums[i], sums->args);
        if (!is_large(sums, i)) sums->bytes += aligned(bytes_of(&sums->kernel->sums[i], sums->buffers[i]));
    }
}

static Sums *take_memory(const RtKernel *kernel, uint64_t chunks) {
    size_t pointers = chunks + kernel->nargs + kernel->nsums;
    Sums *sums = calloc(1, sizeof *sums + kernel->nsums * sizeof(RtBuffer) + pointers * sizeof(void *));
    if (!sums) return NULL;
    sums->buffers = (RtBuffer *)(void *)(sums + 1);
    sums->done = (SumCopy **)(void *)(sums->buffers + kernel->nsums);
    sums->direct = (void **)(sums->done + chunks);
    return sums;
}

Sums *sums_new(const RtKernel *kernel, uint64_t groups, void *const *args, int workers) {
    uint64_t large = find_large(kernel, groups, args);
    uint64_t wanted = choose_chunks(kernel, count_numbers(kernel, args, large), groups);
    uint64_t size = (groups + wanted - 1) / wanted;
    Sums *sums = take_memory(kernel, (groups + size - 1) / size);
    if (!sums) return NULL;
    sums->kernel = kernel;
    sums->args = args;
    sums->chunk = size;
    sums->chunks = (groups + size - 1) / size;
    sums->most = 2 * workers;
    sums->large = large;
    find_buffers(sums);
    make_args(sums, sums->buffers, sums->direct);
    pthread_mutex_init(&sums->lock, NULL);
    pthread_cond_init(&sums->change, NULL);
    return sums;
}

void sums_free(Sums *sums) {
    if (!sums) return;
    for (SumCopy *copy = sums->all, *next; copy; copy = next) {
        next = copy->next;
        free(copy);
    }
    pthread_mutex_destroy(&sums->lock);
    pthread_cond_destroy(&sums->change);
    free(sums);
}

uint64_t sums_chunk(const Sums *sums) { return sums->chunk; }

void *const *sums_direct(const Sums *sums) { return sums->chunks == 1 ? sums->direct : NULL; }

bool sums_are_shared(const Sums *sums) { return sums->large != 0; }
