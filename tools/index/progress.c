/* Shows how far drps-index is: as the run tells it and, where that is silent, by a thread some
 * times a second. Needs the callbacks of index/ and a table of file operations that counts bytes.
 */
#include "tools/index/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "index/reader/input/drps_input.h"
#include "tools/drps_progress.h"

enum { TICK_NS = 200000000, SECOND_NS = 1000000000 };

/* ---- Files that count ---- */

static ssize_t counted(_Atomic uint64_t *sum, ssize_t n)
{
    if (n > 0) atomic_fetch_add_explicit(sum, (uint64_t)n, memory_order_relaxed);
    return n;
}

static const struct drps_io *os(void)
{
    return drps_io_os();
}

/* Nothing but input is read at a file's position. */
static ssize_t count_read(void *ctx, int fd, void *buf, size_t n)
{
    struct index_progress *p = ctx;
    return counted(&p->text_bytes, os()->ops->read(os()->ctx, fd, buf, n));
}

static ssize_t count_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    struct index_progress *p = ctx;
    return counted(&p->moved_bytes, os()->ops->pread(os()->ctx, fd, buf, n, offset));
}

static ssize_t count_pwrite(void *ctx, int fd, const void *buf, size_t n, uint64_t offset)
{
    struct index_progress *p = ctx;
    return counted(&p->moved_bytes, os()->ops->pwrite(os()->ctx, fd, buf, n, offset));
}

static ssize_t count_pwritev(void *ctx, int fd, const struct iovec *pieces, int n, uint64_t offset)
{
    struct index_progress *p = ctx;
    return counted(&p->moved_bytes, os()->ops->pwritev(os()->ctx, fd, pieces, n, offset));
}

/* ---- The line ---- */

static const char *const phase_words[DRPS_INDEX_PHASES] = {
    [DRPS_PHASE_PARSE] = "reading text",
    [DRPS_PHASE_PLACE] = "sorting the dictionary, read and written",
    [DRPS_PHASE_BATCH] = "making batches",
    [DRPS_PHASE_BLOCK] = "making blocks of rows, read and written",
    [DRPS_PHASE_TAKE] = "reading the plan, and writing its batches",
    [DRPS_PHASE_USES] = "finding the blocks of batches, read and written",
    [DRPS_PHASE_WINDOW] = "cutting windows and the forecast, read and written",
    [DRPS_PHASE_FORECAST] = "putting the forecast together",
};

/* Called with the lock held. */
static void show(struct index_progress *p)
{
    const uint64_t moved = atomic_load_explicit(&p->moved_bytes, memory_order_relaxed);
    struct drps_progress work = {.what = phase_words[p->phase],
                                 .unit = DRPS_PROGRESS_BYTES,
                                 .seconds = drps_seconds_since(p->phase_ns)};
    if (p->phase == DRPS_PHASE_PARSE && p->of_all) { /* bytes, too */
        work.what = "reading text on all machines";
        work.done = p->done;
        work.total = p->total;
    } else if (p->phase == DRPS_PHASE_PARSE && p->input_bytes) {
        work.done = atomic_load_explicit(&p->text_bytes, memory_order_relaxed);
        work.total = p->input_bytes;
    } else if (p->phase == DRPS_PHASE_PARSE || p->phase == DRPS_PHASE_BATCH) {
        work.unit = "samples";
        work.done = p->done;
        work.total = p->total;
    } else {
        work.done = moved - p->moved_before;
    }
    drps_progress_show(p->cli, &work);
}

static void *tick(void *arg)
{
    struct index_progress *p = arg;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->ending) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until); /* what the condition waits by */
        until.tv_nsec += TICK_NS;
        until.tv_sec += until.tv_nsec / SECOND_NS;
        until.tv_nsec %= SECOND_NS;
        (void)pthread_cond_timedwait(&p->ended, &p->lock, &until); /* early is no harm */
        if (!p->ending && p->phase_ns) show(p);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

void index_progress_start(struct index_progress *p, struct drps_cli *cli,
                          const struct drps_index_options *options, int of_all)
{
    uint64_t test_bytes = 0;
    *p = (struct index_progress){.cli = cli, .ops = *os()->ops, .of_all = of_all};
    p->ops.read = count_read;
    p->ops.pread = count_pread;
    p->ops.pwrite = count_pwrite;
    p->ops.pwritev = count_pwritev;
    p->io = (struct drps_io){.ops = &p->ops, .ctx = p};
    const int known = drps_input_sizes(options->inputs, options->inputs_n, &p->input_bytes) &&
                      drps_input_sizes(options->tests, options->tests_n, &test_bytes);
    p->input_bytes = known ? p->input_bytes + test_bytes : 0;
    (void)pthread_mutex_init(&p->lock, NULL); /* these two fail only for attributes */
    (void)pthread_cond_init(&p->ended, NULL);
    if (cli->log.level < DRPS_LOG_INFO || !isatty(STDERR_FILENO)) return;
    p->ticks = pthread_create(&p->thread, NULL, tick, p) == 0; /* else the run alone tells */
}

void index_progress_stop(struct index_progress *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->ending = 1;
    (void)pthread_cond_broadcast(&p->ended);
    (void)pthread_mutex_unlock(&p->lock);
    if (p->ticks) (void)pthread_join(p->thread, NULL);
    (void)pthread_cond_destroy(&p->ended);
    (void)pthread_mutex_destroy(&p->lock);
    drps_cli_progress_end(p->cli);
}

void index_progress_tell(void *ctx, enum drps_index_phase phase, uint64_t done, uint64_t total)
{
    struct index_progress *p = ctx;
    (void)pthread_mutex_lock(&p->lock);
    if (!p->phase_ns || phase != p->phase) {
        p->phase = phase;
        p->phase_ns = drps_clock_ns();
        p->moved_before = atomic_load_explicit(&p->moved_bytes, memory_order_relaxed);
    }
    p->done = done;
    p->total = total;
    show(p);
    (void)pthread_mutex_unlock(&p->lock);
}
