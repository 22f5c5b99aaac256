/* A run's numbers are added when it begins, and set some times a second by the thread that trains.
 */
#include "engine/train/watch/drps_watch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/monitor/drps_monitor_out.h"
#include "engine/train/watch/numbers.h"

/* Whole octaves of drps_latency's quarter octaves. */
enum { OCTAVE = 4, OCTAVES = DRPS_LATENCY_BUCKETS / OCTAVE };

struct link {
    struct drps_monitor_number *sent_bytes, *received_bytes, *sent_messages, *received_messages;
};

struct drps_watch {
    const struct drps_monitor_options *options; /* borrowed */
    uint32_t rank, ranks;
    struct drps_monitor *monitor;
    struct drps_monitor_out out;
    struct drps_monitor_file *in_folder;
    struct drps_monitor_number *number[WATCH_NUMBERS];
    struct drps_monitor_number *group[WATCH_GROUPS][WATCH_VALUES];
    struct drps_monitor_number *histogram[WATCH_HISTOGRAMS][2];
    struct link *links;           /* own [ranks]; NULL: one rank, or too many */
    uint64_t epoch;               /* that progress was told of last, */
    uint64_t samples, steps;      /* what was done before it, */
    uint64_t at_samples, at_step; /* and in it */
};

/* ---- The list ---- */

static const double octaves[OCTAVES - 1] = {2e-6,    4e-6,    8e-6,    16e-6,    32e-6,
                                            64e-6,   128e-6,  256e-6,  512e-6,   1024e-6,
                                            2048e-6, 4096e-6, 8192e-6, 16384e-6, 32768e-6};

static void add_groups(struct drps_watch *w)
{
    for (int g = 0; g < WATCH_GROUPS; g++)
        for (int i = 0; i < WATCH_VALUES && watch_groups[g].values[i]; i++)
            w->group[g][i] =
                drps_monitor_add(w->monitor, &watch_groups[g].metric, watch_groups[g].values[i]);
}

static void add_histograms(struct drps_watch *w)
{
    for (int h = 0; h < WATCH_HISTOGRAMS; h++)
        for (int i = 0; i < 2; i++)
            w->histogram[h][i] = drps_monitor_add_histogram(
                w->monitor, &watch_histograms[h], i ? "write" : "read", octaves, OCTAVES - 1);
}

static struct drps_monitor_number *add_peer(struct drps_watch *w,
                                            const struct drps_monitor_metric *metric, uint32_t peer)
{
    char name[16];
    (void)snprintf(name, sizeof(name), "%u", peer);
    return drps_monitor_add(w->monitor, metric, name);
}

static int add_links(struct drps_watch *w, struct drps_err *err)
{
    if (w->ranks < 2 || w->ranks > DRPS_TRAIN_LINKS_MOST) return 0;
    w->links = calloc(w->ranks, sizeof(*w->links));
    if (!w->links) return drps_err_set(err, -ENOMEM, "no memory for numbers to watch");
    for (uint32_t r = 0; r < w->ranks; r++) {
        if (r == w->rank) continue;
        w->links[r] = (struct link){.sent_bytes = add_peer(w, &watch_sent_bytes, r),
                                    .received_bytes = add_peer(w, &watch_received_bytes, r),
                                    .sent_messages = add_peer(w, &watch_sent_messages, r),
                                    .received_messages = add_peer(w, &watch_received_messages, r)};
    }
    return 0;
}

static int add_all(struct drps_watch *w, struct drps_err *err)
{
    for (int i = 0; i < WATCH_NUMBERS; i++)
        w->number[i] = drps_monitor_add(w->monitor, &watch_numbers[i], NULL);
    add_groups(w);
    add_histograms(w);
    int rc = add_links(w, err);
    drps_monitor_set(w->number[WATCH_RANKS], w->ranks);
    drps_watch_phase(w, DRPS_WATCH_PREPARES);
    return rc == 0 ? drps_monitor_check(w->monitor, err) : rc;
}

int drps_watch_open(const struct drps_train_options *options, uint32_t rank, uint32_t ranks,
                    struct drps_watch **out, struct drps_err *err)
{
    const struct drps_monitor_options *o = &options->metrics;
    const int shared = options->ranks && options->ranks->here;
    *out = NULL;
    if (!o->file && !o->port && !o->in_folder) return 0;
    struct drps_watch *w = calloc(1, sizeof(*w));
    if (!w) return drps_err_set(err, -ENOMEM, "no memory for numbers to watch");
    w->options = o;
    w->rank = rank;
    w->ranks = ranks;
    int rc = drps_monitor_open(rank, &w->monitor, err);
    if (rc == 0) rc = add_all(w, err);
    if (rc == 0) rc = drps_monitor_out_open(w->monitor, o, rank, ranks, shared, &w->out, err);
    if (rc < 0)
        drps_watch_close(w);
    else
        *out = w;
    return rc;
}

void drps_watch_close(struct drps_watch *w)
{
    if (!w) return;
    drps_watch_leave_folder(w);
    drps_watch_phase(w, DRPS_WATCH_ENDS);
    drps_monitor_out_close(&w->out);
    drps_monitor_close(w->monitor);
    free(w->links);
    free(w);
}

int drps_watch_begin(struct drps_watch *w, const struct drps_train_result *result,
                     struct drps_err *err)
{
    const struct drps_budget *b = &result->memory;
    if (!w) return 0;
    drps_monitor_set(drps_monitor_add(w->monitor, &watch_store, result->store), 1);
    drps_monitor_set(w->number[WATCH_MODEL_BYTES], (double)result->model_bytes);
    drps_monitor_set(w->number[WATCH_MEMORY_LIMIT], (double)b->limit_bytes);
    for (size_t i = 0; i < b->n; i++)
        drps_monitor_set(drps_monitor_add(w->monitor, &watch_memory, b->items[i].what),
                         (double)b->items[i].bytes);
    return drps_monitor_check(w->monitor, err);
}

/* ---- The folder ---- */

int drps_watch_enter_folder(struct drps_watch *w, const char *dir, struct drps_err *err)
{
    return w && w->options->in_folder
               ? drps_monitor_file_open_in(w->monitor, dir, &w->in_folder, err)
               : 0;
}

void drps_watch_leave_folder(struct drps_watch *w)
{
    if (!w) return;
    drps_monitor_file_close(w->in_folder, 1);
    w->in_folder = NULL;
}

/* ---- What is set while it trains ---- */

void drps_watch_phase(struct drps_watch *w, enum drps_watch_phase phase)
{
    for (int p = 0; w && p < DRPS_WATCH_PHASES; p++)
        drps_monitor_set(w->group[WATCH_PHASE][p], p == (int)phase);
}

/* Progress begins anew in each epoch; counters go on. */
static void go_on(struct drps_watch *w, const struct drps_train_progress *p)
{
    if (p->epoch != w->epoch) {
        w->samples += w->at_samples;
        w->steps += w->at_step;
    }
    w->epoch = p->epoch;
    w->at_samples = p->samples;
    w->at_step = p->step - p->first_step;
}

void drps_watch_progress(struct drps_watch *w, const struct drps_train_progress *p, double lr)
{
    if (!w) return;
    go_on(w, p);
    const uint64_t epochs_left = p->epochs > p->epoch ? p->epochs - p->epoch : 0;
    const double steps_left = (double)epochs_left * (double)p->steps + (double)(p->steps - p->step);
    drps_monitor_set(w->number[WATCH_EPOCH], (double)p->epoch);
    drps_monitor_set(w->number[WATCH_EPOCHS], (double)p->epochs);
    drps_monitor_set(w->number[WATCH_EPOCH_STEPS], (double)p->steps);
    drps_monitor_set(w->number[WATCH_EPOCH_STEPS_DONE], (double)p->step);
    drps_monitor_set(w->number[WATCH_STEPS], (double)(w->steps + w->at_step));
    drps_monitor_set(w->number[WATCH_STEPS_LEFT], steps_left);
    drps_monitor_set(w->number[WATCH_SAMPLES], (double)(w->samples + w->at_samples));
    drps_monitor_set(w->number[WATCH_LOSS], p->train_loss);
    drps_monitor_set(w->number[WATCH_LEARNING_RATE], lr);
    drps_watch_phase(w, p->evaluates ? DRPS_WATCH_EVALUATES : DRPS_WATCH_TRAINS);
}

void drps_watch_epoch(struct drps_watch *w, const struct drps_epoch *e)
{
    if (!w) return;
    const double quality[] = {e->test.auc, e->test.accuracy, e->test.rmse, e->test.recall,
                              e->test.ndcg};
    drps_monitor_set(w->number[WATCH_EPOCH_LOSS], e->train_loss);
    drps_monitor_set(w->number[WATCH_TEST_LOSS], e->test.loss);
    for (size_t i = 0; i < sizeof(quality) / sizeof(quality[0]); i++)
        drps_monitor_set(w->group[WATCH_TEST_QUALITY][i], quality[i]);
}

/* ---- Counters ---- */

static void set_latency(struct drps_monitor_number *number, const struct drps_latency *l)
{
    uint64_t counts[OCTAVES] = {0};
    for (int b = 0; b < DRPS_LATENCY_BUCKETS; b++)
        counts[b / OCTAVE] += l->count[b];
    drps_monitor_set_histogram(number, counts, (double)l->sum_ns * 1e-9);
}

static void set_pair(struct drps_monitor_number *const pair[2], uint64_t read, uint64_t write)
{
    drps_monitor_set(pair[0], (double)read);
    drps_monitor_set(pair[1], (double)write);
}

static void set_store(struct drps_watch *w, const struct drps_store_stats *s)
{
    const struct drps_iostat *io = &s->io, *disk = &s->device.io;
    const uint64_t blocks[] = {s->blocks_needed, s->blocks_hit, s->blocks_created,
                               s->blocks_evicted};
    set_pair(w->group[WATCH_STORE_BYTES], io->read_bytes, io->written_bytes);
    set_pair(w->group[WATCH_STORE_REQUESTS], io->read_calls, io->write_calls);
    set_pair(w->group[WATCH_DEVICE_BYTES], disk->read_bytes, disk->written_bytes);
    set_pair(w->group[WATCH_DEVICE_REQUESTS], disk->reads, disk->writes);
    set_latency(w->histogram[WATCH_STORE_LATENCY][0], &io->read_latency);
    set_latency(w->histogram[WATCH_STORE_LATENCY][1], &io->write_latency);
    set_latency(w->histogram[WATCH_DEVICE_LATENCY][0], &disk->read_latency);
    set_latency(w->histogram[WATCH_DEVICE_LATENCY][1], &disk->write_latency);
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        drps_monitor_set(w->group[WATCH_STORE_BLOCKS][i], (double)blocks[i]);
    drps_monitor_set(w->number[WATCH_WINDOWS], (double)s->windows);
    drps_monitor_set(w->number[WATCH_WINDOWS_AHEAD], (double)s->windows_ahead);
    drps_monitor_set(w->number[WATCH_STEPS_AHEAD], (double)s->steps_ahead);
}

static void set_phases(struct drps_watch *w, const struct drps_train_result *r)
{
    const struct drps_phases *p = &r->phases;
    const double seconds[] = {p->plan, p->wait_store, p->gather,    p->compute,
                              p->step, p->evaluate,   p->hand_over, p->export};
    for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
        drps_monitor_set(w->group[WATCH_PHASE_SECONDS][i], seconds[i]);
    /* Of several ranks the worker waits for the parameters of all; the store is a server's, and
     * what it keeps that waiting for lies in the same time. */
    drps_monitor_set(w->group[WATCH_WAITING][0], p->plan);
    drps_monitor_set(w->group[WATCH_WAITING][1], (double)r->store_stats.stall_ns * 1e-9);
    drps_monitor_set(w->group[WATCH_WAITING][2], w->ranks > 1 ? p->wait_store + p->hand_over : 0);
}

static void set_checkpoints(struct drps_watch *w, const struct drps_train_checkpoints *c)
{
    drps_monitor_set(w->number[WATCH_CHECKPOINTS], (double)c->n);
    drps_monitor_set(w->number[WATCH_CHECKPOINT_FAILURES], (double)c->failed);
    drps_monitor_set(w->number[WATCH_CHECKPOINT_BYTES], (double)c->bytes);
    drps_monitor_set(w->number[WATCH_CHECKPOINT_SECONDS], c->seconds);
}

static void set_links(struct drps_watch *w, struct drps_net *net)
{
    for (uint32_t r = 0; w->links && net && r < w->ranks; r++) {
        struct drps_net_peer_stats s;
        if (r == w->rank) continue;
        drps_net_peer_stats(net, r, &s);
        drps_monitor_set(w->links[r].sent_bytes, (double)s.sent_bytes);
        drps_monitor_set(w->links[r].received_bytes, (double)s.received_bytes);
        drps_monitor_set(w->links[r].sent_messages, (double)s.sent_messages);
        drps_monitor_set(w->links[r].received_messages, (double)s.received_messages);
    }
}

void drps_watch_counts(struct drps_watch *w, const struct drps_train_result *now,
                       struct drps_net *net)
{
    if (!w) return;
    set_store(w, &now->store_stats);
    set_phases(w, now);
    set_checkpoints(w, &now->checkpoints);
    set_links(w, net);
    drps_monitor_set(w->number[WATCH_PLAN_BYTES], (double)now->plan_read_bytes);
}
