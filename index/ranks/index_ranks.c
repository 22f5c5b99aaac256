/*
 * drps-index over several machines: what rank 0 does, which makes the plan, and what the others
 * do, which count accesses for it (drps_index_ranks.h).
 */
#include "index/ranks/drps_index_ranks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_checksum.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "index/blocks/remote/drps_remote_net.h"
#include "net/drps_cancel.h"
#include "index/together/drps_together_run.h"
#include "net/drps_meet.h"

enum { LINGER_MS = 5000, WAIT_MS = 600000 };

static const char *size_text(uint64_t bytes, char text[32])
{
    return drps_size_format(bytes, text, 32);
}

/* ---- A rank that counts ---- */

static void tell_counted(const struct remote_net *n, const struct drps_log *log, double seconds)
{
    struct drps_net_peer_stats stats;
    char received[32], sent[32];
    const double waited = (double)n->waited_ns * 1e-9;
    drps_net_peer_stats(n->net, 0, &stats);
    drps_log(log, DRPS_LOG_INFO,
             "rank %u: %s of row lists and questions, %s of answers; counted for %.2f s, and "
             "waited for %.2f s",
             drps_net_rank(n->net), size_text(stats.received_bytes, received),
             size_text(stats.sent_bytes, sent), seconds - waited, waited);
}

/* The share lies in a folder beside the plan, until the end. */
static int count(struct drps_net *net, const struct drps_index_options *index,
                 const atomic_int *stop, const struct drps_log *log, struct drps_err *err)
{
    const struct drps_io io = {.ops = drps_io_os()->ops, .ctx = drps_io_os()->ctx, .stop = stop};
    const size_t room = strlen(index->out) + 32;
    const uint64_t begin = drps_clock_ns();
    struct drps_stage stage = {0};
    struct remote_net n;
    char *path = malloc(room);

    if (!path) return drps_err_set(err, -ENOMEM, "no memory for a path");
    (void)snprintf(path, room, "%s.rank-%u", index->out, drps_net_rank(net));
    int rc = drps_stage_begin(&stage, &io, path, &drps_plan_kind, 0, err);
    free(path);
    if (rc < 0) return rc;
    const struct drps_remote_counter counter = {
        .io = &io,
        .scratch = stage.dir,
        .memory_bytes = index->memory_bytes ? index->memory_bytes : drps_memory_available() / 2};
    drps_remote_net_init(&n, net, 0, stop, NULL);
    rc = drps_remote_count(&n.link, &counter, err);
    if (rc == 0) tell_counted(&n, log, drps_seconds_since(begin));
    drps_remote_net_destroy(&n);
    drps_stage_abort(&stage);
    return rc;
}

/* Whether rank 0 has made the plan of what was counted. */
static int await_plan(struct drps_net *net, const atomic_int *stop, struct drps_err *err)
{
    struct remote_net n;
    drps_remote_net_init(&n, net, 0, stop, NULL);
    int rc = drps_remote_net_await_done(&n, err);
    drps_remote_net_destroy(&n);
    return rc;
}

/* Rank 0 alone says whether there is a plan: it knows whether it still needs one that is lost. */
static int count_for_others(struct drps_net *net, const struct drps_index_options *index,
                            struct drps_err *err)
{
    struct drps_cancel cancel;
    drps_net_need(net, 0);
    int rc = drps_cancel_start(&cancel, net, index->interrupt, err);
    if (rc < 0) return rc;
    rc = count(net, index, &cancel.stop, index->log, err);
    if (rc == 0) rc = await_plan(net, &cancel.stop, err);
    return drps_cancel_end(&cancel, rc, err);
}

/* ---- Rank 0 ---- */

struct asking {
    struct remote_net net; /* first: it is what the run asks through */
    const struct drps_index_options *index;
    struct drps_cancel cancel; /* of the run */

    pthread_t counter; /* of this rank's own share */
    int counting;      /* 1: it is to be joined */
    atomic_int enough; /* stops it */
};

static void *run_counter(void *arg)
{
    static const struct drps_log silent = {.level = DRPS_LOG_ERROR};
    struct asking *a = arg;
    struct drps_err err = DRPS_ERR_INIT;
    int rc = count(a->net.net, a->index, &a->enough, &silent, &err);
    if (rc < 0 && !atomic_load(&a->enough)) drps_cancel_fail(&a->cancel, &err);
    return NULL;
}

static void end_counter(struct asking *a)
{
    if (!a->counting) return;
    atomic_store(&a->enough, 1);
    (void)pthread_join(a->counter, NULL);
    a->counting = 0;
}

static void tell_asked(const struct asking *a)
{
    uint64_t received = 0, sent = 0;
    char in[32], out[32];
    for (uint32_t r = 1; r < a->net.link.peers; r++) {
        struct drps_net_peer_stats stats;
        drps_net_peer_stats(a->net.net, r, &stats);
        received += stats.received_bytes;
        sent += stats.sent_bytes;
    }
    drps_log(a->index->log, DRPS_LOG_INFO,
             "%u ranks counted: %s of row lists and questions to other ranks, %s of answers; "
             "waited for them %.2f s",
             a->net.link.peers, size_text(sent, out), size_text(received, in),
             (double)a->net.waited_ns * 1e-9);
}

/* The run's link: nothing more will be asked. What this process counted with is freed. */
static void close_asking(struct drps_remote_link *l)
{
    struct asking *a = (struct asking *)l;
    int told = 0;
    drps_net_need(a->net.net, drps_net_rank(a->net.net)); /* all have counted, or it has failed */
    drps_cancel_alone(&a->cancel);
    for (uint32_t r = 0; r < l->peers; r++)
        if (drps_remote_net_end(&a->net, r, NULL) < 0)
            told = -1; /* it hears by the net's end, if at all */
    end_counter(a);
    if (told == 0) tell_asked(a);
}

static int ask(struct asking *a, struct drps_index_result *result, struct drps_err *err)
{
    struct drps_index_options options = *a->index;
    options.interrupt = &a->cancel.stop;
    options.blocks.remote = &a->net.link;
    int rc = pthread_create(&a->counter, NULL, run_counter, a);
    if (rc) return drps_err_set(err, -rc, "no thread for counting: %s", strerror(rc));
    a->counting = 1;
    rc = drps_index_run(drps_io_os(), &options, result, err);
    end_counter(a);
    return rc;
}

/* Whoever cannot be told any more has failed by itself. */
static void tell_done(struct asking *a)
{
    a->net.link.stop = NULL; /* it is too late for that */
    for (uint32_t r = 1; r < a->net.link.peers; r++)
        (void)drps_remote_net_done(&a->net, r, NULL);
}

static int compile(struct drps_net *net, const struct drps_index_options *index,
                   struct drps_index_result *result, struct drps_err *err)
{
    struct asking *a = calloc(1, sizeof(*a));
    if (!a)
        return drps_err_set(err, -ENOMEM, "no memory for the counts of %u ranks",
                            drps_net_count(net));
    a->index = index;
    drps_remote_net_init(&a->net, net, 1, &a->cancel.stop, close_asking);
    int rc = drps_cancel_start(&a->cancel, net, index->interrupt, err);
    if (rc == 0) rc = drps_cancel_end(&a->cancel, ask(a, result, err), err);
    if (rc == 0) tell_done(a);
    drps_remote_net_destroy(&a->net);
    free(a);
    return rc;
}

/* ---- Any rank ---- */

void drps_index_net_options(struct drps_net_options *out)
{
    static const char job[] = "drps-index: counting, 2"; /* not a plan: no rank of drps-train */
    const uint64_t hash = drps_checksum(job, sizeof(job));
    *out = (struct drps_net_options){.queue_messages = REMOTE_NET_QUEUE};
    for (int i = 0; i < DRPS_NET_PARTS; i++)
        out->message_bytes[i] = REMOTE_NET_BYTES;
    memcpy(out->plan_hash, &hash, sizeof(hash));
}

int drps_index_ranks_run_on(struct drps_net *net, const struct drps_index_options *index,
                            struct drps_index_result *result, struct drps_err *err)
{
    struct drps_err why = DRPS_ERR_INIT;
    int rc = 0;
    memset(result, 0, sizeof(*result));
    if (drps_net_count(net) > DRPS_REMOTE_PEERS_MAX)
        rc = drps_err_set(&why, DRPS_E_CONFIG, "%u ranks: at most %d can count",
                          drps_net_count(net), DRPS_REMOTE_PEERS_MAX);
    if (rc == 0)
        rc = drps_net_rank(net) ? count_for_others(net, index, &why)
                                : compile(net, index, result, &why);
    drps_net_tell_strangers(net, index->log);
    drps_net_close(net, LINGER_MS, rc < 0 ? &why : NULL);
    return rc < 0 ? drps_err_set(err, rc, "%s", why.text) : 0;
}

int drps_index_ranks_count_alone(const struct drps_index_options *index)
{
    return (index->blocks.by && drps_index_counts(index->blocks.by)) || !index->inputs_n;
}

static struct drps_net_options net_options_of(const struct drps_index_ranks_options *o,
                                              uint32_t count)
{
    struct drps_net_options net;
    if (drps_index_ranks_count_alone(o->index))
        drps_index_net_options(&net);
    else
        drps_together_net_options(&net);
    net.rank = o->rank;
    net.count = count;
    net.start_ms = o->wait_ms ? o->wait_ms : WAIT_MS;
    net.log = o->index->log;
    net.silence_ms = drps_net_silence_ms(o->cut_ms);
    net.stop = o->index->interrupt;
    return net;
}

static int open_zmq(const struct drps_index_ranks_options *o, struct drps_peers *peers,
                    struct drps_meet_rank *met, struct drps_net **net_out, struct drps_err *err)
{
    if (o->rank >= peers->count)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has %u ranks, and there is no rank %u: ranks count from 0, a line "
                            "each",
                            o->peers, peers->count, o->rank);
    struct drps_net_options net = net_options_of(o, peers->count);
    net.job_id = drps_peers_id(peers);
    int rc = drps_meet_rank_open(o->keys, o->insecure, o->rank, peers, met, err);
    if (rc < 0) return rc;
    return drps_net_open_zmq(&net, peers, met->secured ? &met->keys : NULL, o->insecure, net_out,
                             err);
}

static int run_local(const struct drps_index_ranks_options *o, struct drps_index_result *result,
                     struct drps_err *err)
{
    const struct drps_together_local local = {
        .index = o->index, .io = o->io, .count = o->local, .cut_ms = o->cut_ms};
    return drps_together_run_local(&local, result, err);
}

int drps_index_ranks_run(const struct drps_index_ranks_options *options,
                         struct drps_index_result *result, struct drps_err *err)
{
    struct drps_peers peers = {0};
    struct drps_meet_rank met = {.claim = -1};
    struct drps_net *net = NULL;
    int rc = 0;
    memset(result, 0, sizeof(*result));
    if (options->local) return run_local(options, result, err);
    if (options->peers) {
        rc = drps_peers_read(drps_io_os(), options->peers, &peers, err);
        if (rc == 0) rc = open_zmq(options, &peers, &met, &net, err);
        drps_peers_destroy(&peers);
    } else {
        const struct drps_net_options mpi = net_options_of(options, options->count);
        rc = drps_net_open_mpi(&mpi, &net, err);
    }
    if (rc == 0)
        rc = drps_index_ranks_count_alone(options->index)
                 ? drps_index_ranks_run_on(net, options->index, result, err)
                 : drps_together_run_on(net, options->io, options->index, result, err);
    drps_meet_rank_close(&met);
    return rc;
}
