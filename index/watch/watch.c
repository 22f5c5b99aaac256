/* The numbers are added when a run begins, and set as it goes. Input is counted where it is read.
 */
#include "index/watch/drps_index_watch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/monitor/drps_monitor_out.h"
#include "index/reader/input/drps_input.h"
#include "index/swap/drps_swap.h"

enum number { DONE, TOTAL, INPUT, INPUT_ALL, SAMPLES, LINES, MEMORY_LIMIT, NUMBERS };

static const struct drps_monitor_metric metrics[NUMBERS] = {
    [DONE] = {"drps_index_phase_done", "How far the phase is, in samples, steps or ranks.", NULL,
              DRPS_MONITOR_GAUGE},
    [TOTAL] = {"drps_index_phase_size", "How far the phase goes, where that is known.", NULL,
               DRPS_MONITOR_GAUGE},
    [INPUT] = {"drps_index_input_bytes_total", "Bytes of input read, as the files have them.", NULL,
               DRPS_MONITOR_COUNTER},
    [INPUT_ALL] = {"drps_index_input_size_bytes",
                   "Bytes of all input files; not known where one is a pipe.", NULL,
                   DRPS_MONITOR_GAUGE},
    [SAMPLES] = {"drps_index_samples_total", "Samples read.", NULL, DRPS_MONITOR_COUNTER},
    [LINES] = {"drps_index_lines_total", "Lines of input read.", NULL, DRPS_MONITOR_COUNTER},
    [MEMORY_LIMIT] = {"drps_memory_limit_bytes", "Memory that this rank may use.", NULL,
                      DRPS_MONITOR_GAUGE},
};
static const struct drps_monitor_metric phase_now = {
    "drps_index_phase", "1 for the phases that run now, else 0.", "phase", DRPS_MONITOR_GAUGE};
static const struct drps_monitor_metric phase_seconds = {"drps_index_phase_seconds_total",
                                                         "Time of the phases that have ended.",
                                                         "phase", DRPS_MONITOR_COUNTER};

struct drps_index_watch {
    const struct drps_index_options *options; /* borrowed */
    struct drps_monitor *monitor;
    struct drps_monitor_out out;
    struct drps_monitor_file *in_folder;
    struct drps_monitor_number *number[NUMBERS];
    struct drps_monitor_number *now[DRPS_INDEX_PHASES], *seconds[DRPS_INDEX_PHASES];
    uint64_t bytes, lines;               /* of readers before */
    uint64_t reader_bytes, reader_lines; /* of this one */
};

/* ---- The list ---- */

/* Sizes of files; NaN where one is not to be known. */
static double sizes_of(const char *const *paths, size_t n)
{
    uint64_t bytes;
    return drps_input_sizes(paths, n, &bytes) ? (double)bytes : NAN;
}

static int add_all(struct drps_index_watch *w,
                   const char *(*phase_name)(enum drps_index_phase phase), struct drps_err *err)
{
    const struct drps_index_options *o = w->options;
    for (int i = 0; i < NUMBERS; i++)
        w->number[i] = drps_monitor_add(w->monitor, &metrics[i], NULL);
    for (int p = 0; p < DRPS_INDEX_PHASES; p++) {
        const char *name = phase_name((enum drps_index_phase)p);
        w->now[p] = drps_monitor_add(w->monitor, &phase_now, name);
        drps_monitor_set(w->now[p], 0);
        w->seconds[p] = drps_monitor_add(w->monitor, &phase_seconds, name);
    }
    drps_monitor_set(w->number[INPUT_ALL],
                     sizes_of(o->inputs, o->inputs_n) + sizes_of(o->tests, o->tests_n));
    return drps_monitor_check(w->monitor, err);
}

int drps_index_watch_open(const struct drps_index_options *options,
                          const char *(*phase_name)(enum drps_index_phase phase),
                          struct drps_index_watch **out, struct drps_err *err)
{
    const struct drps_monitor_options *o = &options->metrics;
    *out = NULL;
    if (!o->file && !o->port && !o->in_folder) return 0;
    struct drps_index_watch *w = calloc(1, sizeof(*w));
    if (!w) return drps_err_set(err, -ENOMEM, "no memory for numbers to watch");
    w->options = options;
    const uint32_t rank = options->ranks ? options->ranks->rank : 0;
    const uint32_t ranks = options->ranks ? options->ranks->count : 1;
    int rc = drps_monitor_open(rank, &w->monitor, err);
    if (rc == 0) rc = add_all(w, phase_name, err);
    if (rc == 0) rc = drps_monitor_out_open(w->monitor, o, rank, ranks, 0, &w->out, err);
    if (rc < 0)
        drps_index_watch_close(w);
    else
        *out = w;
    return rc;
}

void drps_index_watch_close(struct drps_index_watch *w)
{
    if (!w) return;
    drps_index_watch_leave_folder(w);
    drps_monitor_out_close(&w->out);
    drps_monitor_close(w->monitor);
    free(w);
}

/* ---- The folder ---- */

int drps_index_watch_enter_folder(struct drps_index_watch *w, const char *dir, struct drps_err *err)
{
    return w && w->options->metrics.in_folder
               ? drps_monitor_file_open_in(w->monitor, dir, &w->in_folder, err)
               : 0;
}

void drps_index_watch_leave_folder(struct drps_index_watch *w)
{
    if (!w) return;
    drps_monitor_file_close(w->in_folder, 1);
    w->in_folder = NULL;
}

/* ---- What is set ---- */

void drps_index_watch_memory(struct drps_index_watch *w, uint64_t bytes)
{
    if (w) drps_monitor_set(w->number[MEMORY_LIMIT], (double)bytes);
}

void drps_index_watch_begin(struct drps_index_watch *w, enum drps_index_phase phase)
{
    if (w) drps_monitor_set(w->now[phase], 1);
}

void drps_index_watch_end(struct drps_index_watch *w, enum drps_index_phase phase, double seconds)
{
    if (!w) return;
    drps_monitor_set(w->now[phase], 0);
    drps_monitor_set(w->seconds[phase], seconds);
}

void drps_index_watch_done(struct drps_index_watch *w, enum drps_index_phase phase, uint64_t done,
                           uint64_t total)
{
    if (!w) return;
    drps_monitor_set(w->number[DONE], (double)done);
    drps_monitor_set(w->number[TOTAL], total ? (double)total : NAN);
    if (phase == DRPS_PHASE_PARSE) drps_monitor_set(w->number[SAMPLES], (double)done);
}

void drps_index_watch_next_reader(struct drps_index_watch *w)
{
    if (!w) return;
    w->bytes += w->reader_bytes;
    w->lines += w->reader_lines;
    w->reader_bytes = w->reader_lines = 0;
}

void drps_index_watch_read(struct drps_index_watch *w, uint64_t file_bytes, uint64_t lines)
{
    if (!w) return;
    w->reader_bytes = file_bytes;
    w->reader_lines = lines;
    drps_monitor_set(w->number[INPUT], (double)(w->bytes + file_bytes));
    drps_monitor_set(w->number[LINES], (double)(w->lines + lines));
}
