/* Rounds of ranks that each have all rows. */
#include "engine/cluster/sv/exchange_internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/drps_clock.h"
#include "engine/cluster/sv/average.h"

/* Reads the batch and its rows, and opens those of the rank's own server. */
static int open_round(struct drps_exchanging *x, uint64_t step, struct drps_err *err)
{
    struct part *own = &x->parts[x->rank];
    const uint32_t *ids;
    int rc = drps_feed_next_share(x->job.feed, &x->batch, err);
    if (rc == 0) rc = drps_feed_next_union(x->job.feed, &x->opened, err);
    if (rc == 0) rc = drps_steps_rows(x->numbers, step, x->replica.rows, &ids, &own->n, err);
    if (rc < 0) return rc;
    if (own->n != x->batch.body.rows)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: step %" PRIu64 ": " DRPS_FILE_NUMBERS " has %zu rows, the batch "
                            "%zu",
                            x->job.plan->dir, step, own->n, x->batch.body.rows);
    memcpy(own->ids, ids, own->n * sizeof(*ids));
    return drps_server_open_step(x->job.server, x->opened.ids, x->opened.n, err);
}

/* Do replicas meet after this round, which is the epoch's last one or not? */
static int is_average_due(const struct drps_exchanging *x, int last)
{
    const uint64_t every = x->job.train->multicast.average;
    return drps_replicas_differ(x->job.train, x->ranks) &&
           (last || (every && (x->round + 1) % every == 0));
}

static int is_last(const struct drps_exchanging *x, uint64_t step)
{
    return step + 1 == x->job.plan->info.batches;
}

/* ---- Replicas meet ---- */

static void count_sent(struct drps_exchanging *x, uint64_t bytes, uint64_t received)
{
    drps_traffic_add(&x->traffic, DRPS_TRAFFIC_EXCHANGED, (x->rank + 1) % x->ranks, x->replica.rows,
                     bytes);
    x->received += received;
}

int exchange_meet(struct drps_exchanging *x, int last, struct drps_err *err)
{
    const struct drps_train_multicast *m = &x->job.train->multicast;
    const uint32_t before = (x->rank + x->ranks - 1) % x->ranks;
    const uint64_t rows = x->replica.rows;
    const size_t bytes = x->replica.row_bytes;
    const uint64_t start = drps_clock_ns();
    int rc = 0;
    if (is_average_due(x, last)) {
        rc = replica_average(&x->replica, x->job.net, &x->sums_done, x->job.wait_ms, err);
        count_sent(x, replica_average_bytes(rows, bytes, x->ranks, x->rank),
                   replica_average_bytes(rows, bytes, x->ranks, before));
    } else if (m->rotate && (x->round + 1) % m->rotate == 0) {
        rc = replica_rotate(&x->replica, x->job.net, x->job.wait_ms, err);
        count_sent(x, rows * bytes, rows * bytes);
    }
    x->wait_ns += drps_clock_ns() - start;
    return rc;
}

/* ---- A round ---- */

/* Copies the rows that this rank's server has opened to its store. */
static int give_own(struct drps_exchanging *x, uint64_t step, struct drps_err *err)
{
    struct drps_server *server = x->job.server;
    const uint32_t *ids = x->opened.ids;
    size_t n = x->opened.n;
    int rc = x->lists ? drps_steps_rows(x->lists, step, x->job.plan->info.rows, &ids, &n, err) : 0;
    if (rc == 0 && n != x->opened.n)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: step %" PRIu64 " has %zu rows, and %zu slots",
                          x->job.plan->dir, step, n, x->opened.n);
    if (rc < 0) return rc;
    replica_give(&x->replica, server->first_row, ids, n, &server->rows);
    return drps_server_close_step(server, 1, err);
}

/* Copies all rows of this rank's server to its store: those that no round of its own has opened
 * since have changed, too. */
static int give_all(struct drps_exchanging *x, struct drps_err *err)
{
    struct drps_server *server = x->job.server;
    const uint64_t rows = x->job.plan->info.rows;
    const size_t most = (size_t)x->job.plan->info.max_batch_rows;
    uint32_t *ids = x->parts[x->rank].ids;
    int rc = 0;
    for (uint64_t first = 0; first < rows && rc == 0; first += most) {
        const size_t n = rows - first < most ? (size_t)(rows - first) : most;
        for (size_t i = 0; i < n; i++)
            ids[i] = (uint32_t)(first + i);
        rc = drps_server_open_step(server, ids, n, err);
        if (rc < 0) return rc;
        replica_give(&x->replica, server->first_row, ids, n, &server->rows);
        rc = drps_server_close_step(server, 1, err);
    }
    return rc;
}

int exchange_end_epoch(struct drps_exchanging *x, struct drps_err *err)
{
    for (uint32_t r = 0; r < x->ranks; r++)
        x->parts[r].next = x->parts[r].sent = 0;
    return drps_replicas_differ(x->job.train, x->ranks) ? give_all(x, err) : 0;
}

int drps_exchange_work(struct drps_exchanging *x, uint64_t step, struct drps_round *out,
                       struct drps_err *err)
{
    struct drps_worker *w = x->job.worker;
    const uint64_t start = drps_clock_ns(), counted = w->gather_ns + w->compute_ns;
    const int last = is_last(x, step);
    const struct turn turn = {x->rank, step, x->round};
    *out = (struct drps_round){.batch = &x->batch.body};
    exchange_begin(x, step);
    int rc = open_round(x, step, err);
    if (rc < 0) return rc;
    const uint64_t ready = drps_clock_ns();
    out->plan_ns = ready - start;
    rc = exchange_compute(x, &turn, &out->loss, err);
    out->compute_ns = drps_clock_ns() - ready;
    if (rc == 0)
        rc = x->job.way == DRPS_EXCHANGE_DENSE
                 ? exchange_dense(x, err)
                 : exchange_with_others(
                       x, step, is_average_due(x, last) ? 0 : x->job.train->multicast.late, err);
    if (rc == 0) rc = exchange_meet(x, last, err);
    out->compute_ns += x->others_ns;
    out->wait_ns = x->wait_ns;
    x->others_ns = x->wait_ns = 0;
    w->compute_ns += out->compute_ns - (w->gather_ns + w->compute_ns - counted);
    if (rc < 0) return rc;
    x->round++;
    rc = give_own(x, step, err);
    return rc == 0 && last ? exchange_end_epoch(x, err) : rc;
}

uint64_t drps_exchange_traffic(const struct drps_exchanging *x, struct drps_traffic *sum)
{
    drps_traffic_merge(sum, &x->traffic);
    drps_traffic_merge(sum, &x->lent);
    return x->received;
}

void *drps_exchange_left(struct drps_exchanging *x)
{
    return x->chosen.error;
}

const void *drps_exchange_replica(const struct drps_exchanging *x)
{
    return x->replica.data;
}
