/* The ranks of a job are started and awaited: as processes that meet, as threads, or one of them
 * here. Each then runs drps_train_run(). */
#include "engine/cluster/drps_ranks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/drps_size.h"
#include "net/drps_family.h"
#include "net/drps_meet.h"
#include "net/drps_net.h"

enum {
    LINGER_MS = 5000,
    WAIT_MS = 600000,
    CONFIG_STATUS = 2 /* of a rank that ended with DRPS_E_CONFIG */
};

/* One rank, wherever it runs. */
struct rank {
    const struct drps_ranks_options *options;
    struct drps_train_options train;
    struct drps_train_ranks ranks;
    struct drps_plan *part; /* own */
    struct drps_net *net;   /* own */
    struct drps_family
        *family; /* of all ranks on this machine; NULL: they are elsewhere, or threads */
    struct drps_train_result result;
    int rc;
    struct drps_err err;
};

static uint32_t wait_ms(const struct drps_ranks_options *o)
{
    return o->wait_ms ? o->wait_ms : WAIT_MS;
}

static int open_part(struct rank *r, const struct drps_ranks_options *o, uint32_t rank,
                     const struct drps_plan *whole, struct drps_err *err)
{
    r->options = o;
    r->train = *o->train;
    r->ranks = (struct drps_train_ranks){
        .whole = rank ? NULL : whole, .wait_ms = wait_ms(o), .here = !drps_ranks_is_one(o)};
    r->train.ranks = &r->ranks;
    if (rank) {
        r->train.on_epoch = NULL;
        r->train.on_progress = NULL;
        r->train.on_write = NULL;
        if (!drps_ranks_is_one(o)) r->train.on_checkpoint = NULL;
    }
    return drps_plan_open_rank(drps_io_os(), o->plan, rank, &r->part, err);
}

/* Train, and leave the job: others hear why if it failed. */
static void run(struct rank *r)
{
    r->ranks.net = r->net;
    r->rc = drps_train_run(r->part, &r->train, &r->result, &r->err);
    const int failed = r->rc < 0 && r->rc != DRPS_E_INTERRUPTED;
    struct drps_err why = r->err;
    if (r->result.kept) why.code = DRPS_E_PEER_FAILED; /* what is kept is worth more than a retry */
    drps_net_tell_strangers(r->net, r->train.log);
    drps_net_close(r->net, LINGER_MS, failed ? &why : NULL);
    r->net = NULL;
}

/* What rank r came to; the result is moved. */
static int outcome(struct rank *r, struct drps_train_result *result, struct drps_err *err)
{
    *result = r->result;
    memset(&r->result, 0, sizeof(r->result));
    if (err && r->err.code) *err = r->err;
    return r->rc;
}

/* Options of a rank that is a process. */
static struct drps_net_options net_options_of(struct rank *r)
{
    struct drps_net_options net;
    drps_train_net_options(r->part, &net);
    net.rank = r->part->info.ranks.rank;
    net.start_ms = wait_ms(r->options);
    net.silence_ms = drps_net_silence_ms(r->options->cut_ms);
    net.stop = r->train.stop;
    if (r->family) net.lost = drps_family_lost;
    net.lost_ctx = r->family;
    if (!r->family || !net.rank) net.log = r->train.log; /* else a parent says it */
    return net;
}

static int open_zmq(struct rank *r, const struct drps_peers *peers,
                    const struct drps_net_keys *keys, uint64_t job_id, struct drps_err *err)
{
    struct drps_net_options net = net_options_of(r);
    net.job_id = job_id;
    return drps_net_open_zmq(&net, peers, keys, r->options->insecure, &r->net, err);
}

/* ---- All ranks on this machine ---- */

struct local {
    struct drps_plan *whole;
    uint32_t count;
    struct rank *ranks; /* own [count] */
};

static void close_local(struct local *l)
{
    for (uint32_t r = 0; l->ranks && r < l->count; r++) {
        drps_train_result_free(&l->ranks[r].result);
        drps_plan_close(l->ranks[r].part);
    }
    free(l->ranks);
    drps_plan_close(l->whole);
}

static int check_count(const struct local *l, struct drps_err *err)
{
    const uint32_t ranks = l->whole->info.ranks.count;
    char text[DRPS_PLAN_RANKS_TEXT_BYTES];
    if (ranks == l->count) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s is a plan for %s, not %u: run %u rank%s here, or make a plan for %u",
                        l->whole->dir, drps_plan_ranks_text(&l->whole->info.ranks, text), l->count,
                        ranks, ranks > 1 ? "s" : "", l->count);
}

static int open_local(struct local *l, const struct drps_ranks_options *o, uint32_t count,
                      struct drps_err *err)
{
    const int shared = o->transport == DRPS_RANKS_INPROC;
    *l = (struct local){.count = count};
    int rc = drps_plan_open(drps_io_os(), o->plan, &l->whole, err);
    if (rc == 0) rc = check_count(l, err);
    if (rc < 0) return rc;
    l->ranks = calloc(count, sizeof(*l->ranks));
    if (!l->ranks) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", count);
    for (uint32_t r = 0; r < count && rc == 0; r++) {
        struct drps_train_options *train = &l->ranks[r].train;
        rc = open_part(&l->ranks[r], o, r, l->whole, err);
        if (!train->memory_bytes)
            train->memory_bytes = drps_memory_available() / 2 / count;
        else if (shared)
            train->memory_bytes /= count;
    }
    /* Before any starts: otherwise the rank that is first to see what is wrong ends all others. */
    for (uint32_t r = 0; r < count && rc == 0; r++)
        rc = drps_train_check(l->ranks[r].part, &l->ranks[r].train, err);
    return rc;
}

/* ---- Threads ---- */

static void *run_thread(void *rank)
{
    run(rank);
    return NULL;
}

/* The largest message that any rank's part takes: the options of inproc are for all. */
static void net_options(const struct local *l, struct drps_net_options *out)
{
    drps_train_net_options(l->ranks[0].part, out);
    for (uint32_t r = 1; r < l->count; r++) {
        struct drps_net_options one;
        drps_train_net_options(l->ranks[r].part, &one);
        for (int i = 0; i < DRPS_NET_PARTS; i++)
            if (one.message_bytes[i] > out->message_bytes[i])
                out->message_bytes[i] = one.message_bytes[i];
    }
}

static int run_threads(struct local *l, struct drps_train_result *result, struct drps_err *err)
{
    struct drps_net *nets[DRPS_PLAN_WORKERS_MAX];
    pthread_t threads[DRPS_PLAN_WORKERS_MAX];
    struct drps_net_options net;
    uint32_t started = 1;
    net_options(l, &net);
    int rc = drps_net_open_inproc(&net, nets, err);
    if (rc < 0) return rc;
    for (uint32_t r = 0; r < l->count; r++)
        l->ranks[r].net = nets[r];
    for (; started < l->count && rc == 0; started += rc == 0)
        rc = pthread_create(&threads[started], NULL, run_thread, &l->ranks[started]);
    if (rc) rc = drps_err_set(err, -rc, "no thread for rank %u: %s", started, strerror(rc));
    for (uint32_t r = started; r < l->count; r++) /* never started */
        drps_net_close(l->ranks[r].net, 0, err);
    run(&l->ranks[0]);
    for (uint32_t r = 1; r < started; r++)
        (void)pthread_join(threads[r], NULL);
    return rc < 0 ? rc : outcome(&l->ranks[0], result, err);
}

/* ---- Processes ---- */

static void run_process(struct rank *r, struct drps_meet *meet)
{
    const uint32_t rank = r->part->info.ranks.rank;
    r->rc = open_zmq(r, &meet->peers, meet->keys ? &meet->keys[rank] : NULL, meet->job_id, &r->err);
    if (r->rc < 0) return;
    drps_meet_done(meet, rank);
    run(r);
}

/* A rank above 0, in its process. It says why it failed unless rank 0 does: others hear the reason
 * from the net, and all ranks know when training has diverged. */
static void run_child(struct rank *r, struct drps_meet *meet)
{
    run_process(r, meet);
    if (r->rc < 0 && r->rc != DRPS_E_PEER && r->rc != DRPS_E_PEER_FAILED &&
        r->rc != DRPS_E_INTERRUPTED && r->rc != -ERANGE)
        drps_log(r->train.log, DRPS_LOG_ERROR, "rank %u: %s", r->part->info.ranks.rank,
                 r->err.text);
    if (r->rc == 0 || r->rc == DRPS_E_INTERRUPTED) _exit(0);
    _exit(r->rc == DRPS_E_CONFIG ? CONFIG_STATUS : 1);
}

static void tell_where(const struct drps_meet *meet, const struct drps_log *log)
{
    if (meet->keys)
        drps_log(log, DRPS_LOG_INFO,
                 "ranks talk over loopback with keys made for this run, which takes longer than "
                 "Unix sockets: %s",
                 meet->why.text);
    else
        drps_log(log, DRPS_LOG_DEBUG, "ranks talk over Unix sockets in %s", meet->folder);
}

/* 0, or the error that each process would give: it is given once. */
static int check_zmq(struct drps_err *err)
{
#ifdef DRPS_WITH_ZMQ
    (void)err;
    return 0;
#else
    return drps_err_set(err, DRPS_E_CONFIG,
                        "this build has no ZeroMQ: the transport inproc runs all ranks as threads");
#endif
}

/* What rank 0 came to, once all others have ended. A rank that was killed is the reason for what
 * came after it, and counts where rank 0 did not notice, unless the model is written. `left`: rank
 * 0 was interrupted before there was anything to keep, of which others fail. */
static int judge(const struct drps_family *f, const struct drps_log *log, int rc, int left,
                 struct drps_err *err)
{
    struct drps_err lost = DRPS_ERR_INIT;
    const int ended = drps_family_failure(f, &lost);
    if (!ended) return rc;
    if (rc == DRPS_E_PEER_FAILED && drps_family_has_status(f, CONFIG_STATUS)) {
        err->code = DRPS_E_CONFIG; /* as it is where rank 0 is the first to see what is wrong */
        return DRPS_E_CONFIG;
    }
    if (rc == 0) drps_log(log, DRPS_LOG_WARN, "%s, after the model was written", lost.text);
    if (rc == DRPS_E_PEER ? ended != DRPS_E_PEER : rc != DRPS_E_INTERRUPTED || left) return rc;
    drps_err_clear(err);
    return drps_err_set(err, ended, "%s", lost.text);
}

static int run_processes(struct local *l, struct drps_train_result *result, struct drps_err *err)
{
    const struct drps_log *log = l->ranks[0].train.log;
    struct drps_family family;
    struct drps_meet meet = {0};
    int rc = check_zmq(err);
    if (rc < 0) return rc;
    rc = drps_family_open(&family, l->count, err);
    if (rc == 0) rc = drps_meet_open(l->count, &meet, err);
    if (rc == 0) tell_where(&meet, log);
    for (uint32_t r = 0; r < l->count; r++)
        l->ranks[r].family = &family;
    for (uint32_t r = 1; r < l->count && rc == 0; r++) {
        rc = drps_family_fork(&family, r, err);
        if (rc == 1) run_child(&l->ranks[r], &meet);
    }
    if (rc == 0) {
        run_process(&l->ranks[0], &meet);
        rc = outcome(&l->ranks[0], result, err);
    }
    /* Ranks that have not met rank 0 yet would wait for it. */
    const int left = rc == DRPS_E_INTERRUPTED && !result->interrupted;
    drps_family_wait(&family, left ? DRPS_E_PEER : rc,
                     drps_net_silence_ms(l->ranks[0].options->cut_ms) + LINGER_MS);
    rc = judge(&family, log, rc, left, err);
    drps_meet_close(&meet);
    drps_family_close(&family);
    return rc;
}

int drps_ranks_run_local(const struct drps_ranks_options *options, uint32_t count,
                         struct drps_train_result *result, struct drps_err *err)
{
    struct local l;
    memset(result, 0, sizeof(*result));
    int rc = open_local(&l, options, count, err);
    if (rc == 0)
        rc = options->transport == DRPS_RANKS_INPROC ? run_threads(&l, result, err)
                                                     : run_processes(&l, result, err);
    close_local(&l);
    return rc;
}

/* ---- One rank ---- */

static int run_mpi(struct rank *r, struct drps_err *err)
{
    const struct drps_ranks_options *o = r->options;
    const struct drps_net_options net = net_options_of(r);
    char text[DRPS_PLAN_RANKS_TEXT_BYTES];
    if (o->count != r->part->info.ranks.count)
        return drps_err_set(err, DRPS_E_CONFIG, "%s is a plan for %s, and %u ranks were started",
                            o->plan, drps_plan_ranks_text(&r->part->info.ranks, text), o->count);
    const int rc = drps_net_open_mpi(&net, &r->net, err);
    if (rc == 0) run(r);
    return rc;
}

static int run_peer(struct rank *r, struct drps_peers *peers, struct drps_err *err)
{
    const struct drps_ranks_options *o = r->options;
    struct drps_meet_rank way;
    if (o->rank >= peers->count || peers->count != r->part->info.ranks.count)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has %u ranks, and %s is a part of a plan for %u: give each rank a "
                            "line, in the order of ranks, and all ranks the same file",
                            o->peers, peers->count, r->part->dir, r->part->info.ranks.count);
    const uint64_t job_id = drps_peers_id(peers);
    int rc = drps_meet_rank_open(o->keys, o->insecure, o->rank, peers, &way, err);
    if (rc == 0) rc = open_zmq(r, peers, way.secured ? &way.keys : NULL, job_id, err);
    if (rc == 0) run(r);
    drps_meet_rank_close(&way);
    return rc;
}

int drps_ranks_run_one(const struct drps_ranks_options *options, struct drps_train_result *result,
                       struct drps_err *err)
{
    struct rank *r = calloc(1, sizeof(*r));
    struct drps_plan *whole = NULL;
    struct drps_peers peers = {0};
    memset(result, 0, sizeof(*result));
    if (!r) return drps_err_set(err, -ENOMEM, "no memory for a rank");
    int rc = 0;
    if (options->peers) rc = drps_peers_read(drps_io_os(), options->peers, &peers, err);
    if (rc == 0 && options->rank == 0)
        rc = drps_plan_open(drps_io_os(), options->plan, &whole, err);
    if (rc == 0) rc = open_part(r, options, options->rank, whole, err);
    if (rc == 0) rc = options->peers ? run_peer(r, &peers, err) : run_mpi(r, err);
    if (rc == 0) rc = outcome(r, result, err);
    drps_peers_destroy(&peers);
    drps_plan_close(r->part);
    drps_plan_close(whole);
    free(r);
    return rc;
}
