/* Ranks that make a plan together (drps_together_run.h). */
#include "index/together/drps_together_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/drps_size.h"
#include "index/together/drps_together.h"
#include "index/together/progress.h"
#include "net/drps_cancel.h"
#include "net/drps_family.h"
#include "net/drps_meet.h"

enum { LINGER_MS = 5000, WAIT_MS = 60000 };

void drps_together_net_options(struct drps_net_options *out)
{
    static const char job[] = "drps-index: together, 1"; /* no plan: no rank of drps-train */
    const uint64_t hash = drps_checksum(job, sizeof(job));
    drps_swap_net_options(out);
    memcpy(out->plan_hash, &hash, sizeof(hash));
}

/* ---- One rank ---- */

static int run(struct drps_net *net, const struct drps_io *io,
               const struct drps_index_options *index, struct drps_index_result *result,
               struct drps_err *err)
{
    struct drps_cancel cancel;
    struct together_progress progress;
    int rc = drps_cancel_start(&cancel, net, index->interrupt, err);
    if (rc < 0) return rc;
    const struct drps_io stoppable = {.ops = io->ops, .ctx = io->ctx, .stop = &cancel.stop};
    struct swap_ranks ranks = {
        .io = &stoppable, .net = net, .rank = drps_net_rank(net), .count = drps_net_count(net)};
    struct drps_index_options options = *index;
    options.interrupt = &cancel.stop;
    if (ranks.count > 1) options.ranks = &ranks;
    together_progress_start(&progress, &ranks, &options);
    rc = drps_index_run(io, &options, result, err);
    together_progress_end(&progress);
    return drps_cancel_end(&cancel, rc, err);
}

int drps_together_run_on(struct drps_net *net, const struct drps_io *io,
                         const struct drps_index_options *index, struct drps_index_result *result,
                         struct drps_err *err)
{
    struct drps_err why = DRPS_ERR_INIT;
    memset(result, 0, sizeof(*result));
    int rc = run(net, io ? io : drps_io_os(), index, result, &why);
    drps_net_tell_strangers(net, index->log);
    drps_net_close(net, LINGER_MS, rc < 0 ? &why : NULL);
    return rc < 0 ? drps_err_set(err, rc, "%s", why.text) : 0;
}

/* ---- All ranks on this machine ---- */

struct local {
    const struct drps_together_local *asked;
    struct drps_family family;
    struct drps_meet meet;
};

static int open_net(struct local *l, uint32_t rank, struct drps_net **net_out, struct drps_err *err)
{
    struct drps_net_options net;
    drps_together_net_options(&net);
    net.rank = rank;
    net.count = l->asked->count;
    net.job_id = l->meet.job_id;
    net.start_ms = WAIT_MS;
    net.silence_ms = drps_net_silence_ms(l->asked->cut_ms);
    net.stop = l->asked->index->interrupt;
    net.lost = drps_family_lost;
    net.lost_ctx = &l->family;
    int rc = drps_net_open_zmq(&net, &l->meet.peers, l->meet.keys ? &l->meet.keys[rank] : NULL, 0,
                               net_out, err);
    if (rc == 0) drps_meet_done(&l->meet, rank);
    return rc;
}

static int run_rank(struct local *l, uint32_t rank, struct drps_index_result *result,
                    struct drps_err *err)
{
    struct drps_index_options index = *l->asked->index;
    index.shared = 1;
    struct drps_net *net = NULL;
    if (!index.memory_bytes) index.memory_bytes = drps_memory_available() / 2 / l->asked->count;
    if (index.metrics.port) index.metrics.port += rank; /* all are on this machine */
    if (rank) {
        index.progress = NULL;
        index.reader.on_columns = NULL;
    }
    int rc = open_net(l, rank, &net, err);
    return rc == 0 ? drps_together_run_on(net, rank ? NULL : l->asked->io, &index, result, err)
                   : rc;
}

/* A rank above 0, in its process. It says why it failed unless rank 0 does: others hear the reason
 * from the net. */
static void run_child(struct local *l, uint32_t rank)
{
    struct drps_index_result *result = malloc(sizeof(*result));
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = result ? run_rank(l, rank, result, &err)
                          : drps_err_set(&err, -ENOMEM, "no memory for a rank");
    if (rc < 0 && rc != DRPS_E_PEER && rc != DRPS_E_PEER_FAILED && rc != DRPS_E_INTERRUPTED)
        drps_log(l->asked->index->log, DRPS_LOG_ERROR, "rank %u: %s", rank, err.text);
    free(result);
    _exit(rc == 0 || rc == DRPS_E_INTERRUPTED ? 0 : 1);
}

/* What rank 0 came to, once all others have ended: a rank that was killed is the reason for what
 * came after it. */
static int judge(const struct local *l, int rc, struct drps_err *err)
{
    struct drps_err lost = DRPS_ERR_INIT;
    const int ended = drps_family_failure(&l->family, &lost);
    if (!ended || (rc < 0 && (rc != DRPS_E_PEER || ended != DRPS_E_PEER))) return rc;
    drps_err_clear(err);
    return drps_err_set(err, ended, "%s", lost.text);
}

/* What each rank would find wrong is found once. */
static int check(const struct drps_together_local *local, struct drps_err *err)
{
    struct swap_ranks ranks = {.count = local->count};
    struct drps_index_options options = *local->index;
    struct drps_reader_share share;
    options.ranks = &ranks;
    int rc = drps_together_check(&options, err);
    if (rc == 0 && !options.force && access(options.out, F_OK) == 0)
        rc = drps_err_set(err, -EEXIST, "%s exists: name another folder, or have it replaced",
                          options.out);
    if (rc == 0)
        rc = drps_reader_share(drps_io_os(), options.inputs, options.inputs_n, 0, local->count,
                               &share, err);
    if (rc == 0 && options.tests_n)
        rc = drps_reader_share(drps_io_os(), options.tests, options.tests_n, 0, local->count,
                               &share, err);
    return rc;
}

static int start(struct local *l, struct drps_err *err)
{
    int rc = drps_family_open(&l->family, l->asked->count, err);
    if (rc == 0) rc = drps_meet_open(l->asked->count, &l->meet, err);
    for (uint32_t r = 1; r < l->asked->count && rc == 0; r++) {
        rc = drps_family_fork(&l->family, r, err);
        if (rc == 1) run_child(l, r);
    }
    return rc;
}

int drps_together_run_local(const struct drps_together_local *local,
                            struct drps_index_result *result, struct drps_err *err)
{
    struct local l = {.asked = local};
    memset(result, 0, sizeof(*result));
    int rc = check(local, err);
    if (rc < 0) return rc;
    rc = start(&l, err);
    if (rc == 0) rc = run_rank(&l, 0, result, err);
    drps_family_wait(&l.family, rc, drps_net_silence_ms(local->cut_ms) + LINGER_MS);
    rc = judge(&l, rc, err);
    drps_meet_close(&l.meet);
    drps_family_close(&l.family);
    return rc;
}
