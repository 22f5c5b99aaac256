/* What all ranks settle together between rounds, by messages to and from rank 0. It needs an open
 * net. */
#include "engine/cluster/drps_cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_checksum.h"
#include "engine/cluster/drps_circulation.h"
#include "engine/cluster/drps_messages.h"
#include "index/plan/codec/drps_list.h"

enum {
    METRICS = DRPS_MESSAGE_METRICS,
    ROWS = DRPS_MESSAGE_ROWS,
    WAIT_MS = 600000,
    TURN_MS =
        24 * 3600 * 1000,    /* until the rows of the ranks before are written, or the model is */
    HANDING_QUEUE = 10,      /* rounds in which rows are handed on */
    ROWS_BYTES = 160 * 1024, /* of a message */
    METRICS_BYTES = 6 * 1024 * 1024, /* holds drps_metrics_bound() */
};

/* ---- Starting ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t drps_cluster_exchange_bytes(const struct drps_plan_info *info)
{
    const uint64_t values = larger(info->max_batch_samples, info->max_batch_rows);
    const uint64_t row = (info->dim + (uint64_t)1) * sizeof(float);
    const uint64_t round = 64 + values * row +
                           drps_list_encode_bound((size_t)info->max_batch_rows) +
                           info->max_body_bytes;
    return larger(round, larger(DRPS_CLUSTER_COPY_BYTES, 3 * row));
}

void drps_train_net_options(const struct drps_plan *part, struct drps_net_options *out)
{
    const struct drps_plan_info *info = &part->info;
    const uint64_t needs = drps_message_needs_bytes(info->ranks.workers);
    const uint64_t cached = needs + info->max_batch_rows; /* asynchronous */
    const uint64_t to_worker =
        larger(drps_rounds_worker_bytes(info) + cached, drps_feed_record_bytes(info));
    const uint64_t to_server =
        larger(drps_rounds_server_bytes(info), sizeof(struct drps_message_here));
    const uint64_t pull = needs + info->max_batch_rows / 8 + sizeof(uint64_t);
    *out = (struct drps_net_options){
        .count = info->ranks.count,
        .message_bytes = {[DRPS_NET_WORKER] = larger(to_worker, needs),
                          [DRPS_NET_SERVER] = larger(to_server, pull),
                          [DRPS_NET_MASTER] = METRICS_BYTES},
        .queue_messages = DRPS_CLUSTER_QUEUE,
    };
    const uint64_t exchanged = drps_cluster_exchange_bytes(info);
    for (int p = DRPS_NET_WORKER; drps_plan_is_matrix(info) && p <= DRPS_NET_SERVER; p++)
        if (exchanged <= DRPS_NET_MESSAGE_MAX)
            out->message_bytes[p] = larger(out->message_bytes[p], exchanged);
    if (info->ranks.handed.slots) out->queue_messages = HANDING_QUEUE;
    if (drps_plan_circulates(info)) {
        out->message_bytes[DRPS_NET_WORKER] = drps_circulation_message_bytes(info);
        out->message_bytes[DRPS_NET_SERVER] = 0;
        out->queue_messages = drps_circulation_queue(info);
    }
    memcpy(out->plan_hash, info->ranks.whole, sizeof(info->ranks.whole));
}

uint64_t drps_cluster_memory(void)
{
    return METRICS_BYTES + 2 * DRPS_CLUSTER_QUEUE * ROWS_BYTES;
}

/* The part says how rows are trained, the whole how the model is read. */
static int check_whole(const struct drps_plan *whole, const struct drps_plan *part,
                       struct drps_err *err)
{
    const struct drps_plan_info *w = &whole->info, *p = &part->info;
    if (strcmp(w->id, p->ranks.whole) != 0)
        return drps_err_set(err, DRPS_E_CONFIG, "%s is a part of plan %s, not of %s (%s)",
                            part->dir, p->ranks.whole, whole->dir, w->id);
    if (strcmp(w->algo, p->algo) != 0 || strcmp(w->loss, p->loss) != 0 ||
        strcmp(w->expression, p->expression) != 0 || strcmp(w->net, p->net) != 0 ||
        w->factors != p->factors || w->dim != p->dim || w->field_count != p->field_count ||
        w->numbers != p->numbers || w->normalized != p->normalized ||
        w->classification != p->classification)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s and %s disagree on what the model is: make the plan anew",
                            whole->dir, part->dir);
    return 0;
}

int drps_cluster_init(struct drps_cluster *c, const struct drps_plan *part,
                      const struct drps_train_options *options, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &part->info.ranks;
    const struct drps_train_ranks *r = options->ranks;
    *c = (struct drps_cluster){.net = r->net,
                               .part = part,
                               .whole = r->whole,
                               .rank = drps_net_rank(r->net),
                               .count = drps_net_count(r->net),
                               .wait_ms = r->wait_ms ? r->wait_ms : WAIT_MS};
    if (ranks->count != c->count || ranks->rank != c->rank)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is the part of rank %u of %u; this is rank %u of %u", part->dir,
                            ranks->rank, ranks->count, c->rank, c->count);
    if (drps_plan_circulates(&part->info) && options->sync != DRPS_SCHED_BSP)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "synchronisation %s is of rounds, and in %s rows circulate, without "
                            "any: leave it out, or make a plan with a partition",
                            drps_sched_mode_name(options->sync), part->dir);
    if (options->local_steps)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "local steps change whole rows, which stay with their servers: leave "
                            "them out");
    return c->whole ? check_whole(c->whole, part, err) : 0;
}

/* A number that changes with what messages of docs/wire.md mean: other builds of a version are
 * refused. */
#define MESSAGES "16"

/* What must be the same on all ranks; all bytes are set. */
struct terms {
    char version[16];
    char plan[DRPS_PLAN_ID_BYTES];
    char optimizer[15];
    char sync[16];
    double lr, l1, l2, eps, beta, beta1, beta2, init_scale;
    uint64_t epochs, patience, seed, staleness, no_claim, pull_cached, hands_on, exchange, common,
        sv_count, sv_rule, logged, metric, lr_decay, batch_mean, lr_stale;
    double lambda, ema, wsp_patience;
    struct drps_train_multicast multicast;
    uint64_t pilot; /* 0: it is none; or 1 and its rounds */
    uint64_t of_filters;
    struct drps_push_options push;
    struct drps_pull_options pull;
};

static void set_terms(const struct drps_cluster *c, const struct drps_train_options *o,
                      const struct drps_optim *optim, struct terms *t)
{
    memset(t, 0, sizeof(*t));
    strncpy(t->version, DRPS_VERSION "/" MESSAGES, sizeof(t->version) - 1);
    memcpy(t->plan, c->part->info.ranks.whole, sizeof(t->plan));
    strncpy(t->optimizer, drps_optim_name(optim->kind), sizeof(t->optimizer) - 1);
    strncpy(t->sync, drps_sched_mode_name(o->sync), sizeof(t->sync) - 1);
    t->lr = (double)optim->lr;
    t->l1 = (double)optim->l1;
    t->l2 = (double)optim->l2;
    t->eps = (double)optim->eps;
    t->beta = (double)optim->beta;
    t->beta1 = (double)optim->beta1;
    t->beta2 = (double)optim->beta2;
    t->init_scale = (double)o->init_scale;
    t->epochs = o->epochs;
    t->patience = o->patience;
    t->seed = o->seed;
    t->staleness = o->staleness;
    t->no_claim = o->no_claim != 0;
    t->pull_cached = o->pull_cached != 0;
    t->hands_on = (uint64_t)drps_handing_applies(&c->part->info, o, optim);
    t->exchange = (uint64_t)o->exchange;
    t->common = (uint64_t)o->common;
    t->sv_count = o->sv_count;
    t->sv_rule = o->sv_rule;
    t->multicast = o->multicast;
    t->logged = o->checkpoint_vectors != 0;
    t->metric = (uint64_t)o->metric;
    t->lr_decay = (uint64_t)o->lr_decay;
    t->batch_mean = o->batch_mean != 0;
    t->lr_stale = (uint64_t)o->lr_stale;
    struct drps_sched_config waits = drps_sched_defaults(o->sync, c->count);
    drps_sched_tune(&o->wsp, &waits);
    t->lambda = waits.lambda;
    t->ema = waits.ema;
    t->wsp_patience = waits.patience;
    t->pilot = o->pilot.on ? 1 + o->pilot.rounds : 0;
    t->of_filters = o->pilot.of_filters != 0;
    t->push = o->push;
    t->pull = o->pull;
}

static int differs(const char *what, uint32_t rank, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "rank %u was started with another %s than rank 0: give all ranks the same",
                        rank, what);
}

static int differ_number(const char *what, uint32_t rank, double its, double first,
                         struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "rank %u was started with %s %.9g, rank 0 with %.9g: give all ranks the "
                        "same",
                        rank, what, its, first);
}

static int compare_terms(const struct terms *t, const struct terms *first, uint32_t rank,
                         struct drps_err *err)
{
    const struct {
        const char *what;
        double its, first;
    } numbers[] = {{"epochs", (double)t->epochs, (double)first->epochs},
                   {"patience", (double)t->patience, (double)first->patience},
                   {"seed", (double)t->seed, (double)first->seed},
                   {"staleness", (double)t->staleness, (double)first->staleness},
                   {"lambda", t->lambda, first->lambda},
                   {"ema", t->ema, first->ema},
                   {"patience of wsp", t->wsp_patience, first->wsp_patience},
                   {"learning rate", t->lr, first->lr},
                   {"l1", t->l1, first->l1},
                   {"l2", t->l2, first->l2},
                   {"eps", t->eps, first->eps},
                   {"beta1", t->beta1, first->beta1},
                   {"beta2", t->beta2, first->beta2},
                   {"init scale", t->init_scale, first->init_scale}};
    if (strcmp(t->version, first->version) != 0) return differs("version of drps", rank, err);
    if (strcmp(t->plan, first->plan) != 0) return differs("plan", rank, err);
    if (strcmp(t->optimizer, first->optimizer) != 0) return differs("optimizer", rank, err);
    if (strcmp(t->sync, first->sync) != 0) return differs("synchronisation", rank, err);
    if (t->of_filters != first->of_filters) return differs("target of filters", rank, err);
    if (t->pilot != first->pilot)
        return differs(t->of_filters ? "target of filters" : "choice of rates", rank, err);
    if (memcmp(&t->push, &first->push, sizeof(t->push)) != 0)
        return differs("set of filters of gradients", rank, err);
    if (memcmp(&t->pull, &first->pull, sizeof(t->pull)) != 0)
        return differs("set of filters of parameters", rank, err);
    if (t->exchange != first->exchange) return differs("way to exchange gradients", rank, err);
    if (t->common != first->common)
        return differs("way to exchange a net's own parameters", rank, err);
    if (t->sv_count != first->sv_count || t->sv_rule != first->sv_rule)
        return differs("choice of vectors", rank, err);
    if (memcmp(&t->multicast, &first->multicast, sizeof(t->multicast)) != 0)
        return differs("choice of whom vectors are sent to, and when replicas meet", rank, err);
    if (t->metric != first->metric) return differs("metric", rank, err);
    if (t->lr_decay != first->lr_decay) return differs("decay of the learning rate", rank, err);
    if (t->batch_mean != first->batch_mean)
        return differs("choice of a sum or mean over batches", rank, err);
    if (t->lr_stale != first->lr_stale) return differs("rate for stale gradients", rank, err);
    if (t->logged != first->logged) return differs("kind of checkpoints", rank, err);
    if (t->pull_cached != first->pull_cached) return differs("leave to use copies", rank, err);
    if (t->hands_on != first->hands_on)
        return differs("choice of whether rows are handed on", rank, err);
    if (t->no_claim != first->no_claim) return differs("leave to claim batches", rank, err);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (numbers[i].its < numbers[i].first || numbers[i].its > numbers[i].first)
            return differ_number(numbers[i].what, rank, numbers[i].its, numbers[i].first, err);
    return memcmp(t, first, sizeof(*t)) ? differs("set of options", rank, err) : 0;
}

/* What a rank says of itself: its terms, the range of its rows, and how many all ranks have. */
struct introduction {
    struct terms terms;
    uint64_t first_row, rows, all_rows;
    uint64_t grid_users, grid_items, lanes;
};

static void introduce(const struct drps_cluster *c, const struct drps_train_options *o,
                      const struct drps_optim *optim, struct introduction *out)
{
    const struct drps_plan_info *info = &c->part->info;
    *out = (struct introduction){.first_row = info->ranks.first_row,
                                 .rows = drps_plan_own_rows(info).rows,
                                 .grid_users = info->grid_users,
                                 .grid_items = info->grid_items,
                                 .lanes = info->lanes};
    for (size_t t = 0; t < info->tables_n; t++)
        out->all_rows += info->tables[t].rows;
    set_terms(c, o, optim, &out->terms);
}

/* How many ranges are on their way at a time follows from the grid. */
static int compare_grids(const struct introduction *all, uint32_t count, struct drps_err *err)
{
    for (uint32_t r = 1; r < count; r++)
        if (all[r].grid_users != all[0].grid_users || all[r].grid_items != all[0].grid_items ||
            all[r].lanes != all[0].lanes)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "rank %u has another grid, or other lanes, than rank 0: make the "
                                "plan anew",
                                r);
    return 0;
}

/* The ranges follow on each other, from row 0 on to the last of the whole. All ranks have the same
 * numbers here, so that they agree on it. */
static int compare_ranges(const struct introduction *all, uint32_t count, struct drps_err *err)
{
    uint64_t next = 0;
    for (uint32_t r = 0; r < count; r++) {
        const struct introduction *i = &all[r];
        if (i->first_row != next || i->all_rows != all[0].all_rows || i->rows > i->all_rows - next)
            return drps_err_set(
                err, DRPS_E_CORRUPT,
                "rank %u has %llu rows from row %llu on, of %llu; expected are rows "
                "from %llu on, of %llu: make the plan anew",
                r, (unsigned long long)i->rows, (unsigned long long)i->first_row,
                (unsigned long long)i->all_rows, (unsigned long long)next,
                (unsigned long long)all[0].all_rows);
        next += i->rows;
    }
    if (next == all[0].all_rows) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "the ranks have %llu rows of %llu: make the plan anew",
                        (unsigned long long)next, (unsigned long long)all[0].all_rows);
}

static void wait_for_all(const struct drps_cluster *c)
{
    const int rc = drps_net_barrier(c->net, c->wait_ms, NULL);
    (void)rc;
}

int drps_cluster_agree(const struct drps_cluster *c, const struct drps_train_options *options,
                       const struct drps_optim *optim, struct drps_err *err)
{
    struct introduction mine;
    struct introduction *all = calloc(c->count, sizeof(*all));
    if (!all) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", c->count);
    introduce(c, options, optim, &mine);
    int rc = drps_net_gather(c->net, &mine, sizeof(mine), all, c->wait_ms, err);
    for (uint32_t r = 1; r < c->count && rc == 0; r++)
        rc = compare_terms(&all[r].terms, &all[0].terms, r, err);
    if (rc == 0) rc = compare_ranges(all, c->count, err);
    if (rc == 0) rc = compare_grids(all, c->count, err);
    free(all);
    /* All ranks know it; whoever leaves first must not be the news. */
    if (rc == DRPS_E_CONFIG || rc == DRPS_E_CORRUPT) wait_for_all(c);
    return rc;
}

/* ---- Epochs ---- */

static int send_metrics(const struct drps_cluster *c, struct drps_metrics *metrics,
                        struct drps_err *err)
{
    void *data = malloc(drps_metrics_bound(metrics));
    if (!data) return drps_err_set(err, -ENOMEM, "no memory for the metrics");
    const struct drps_piece piece = {data, drps_metrics_encode(metrics, data)};
    const struct drps_net_send send = {
        .part = DRPS_NET_MASTER, .type = METRICS, .pieces = &piece, .n = 1};
    int rc = drps_net_send(c->net, &send, c->wait_ms, err);
    free(data);
    return rc;
}

/* A message of `type` from a rank to the master, which is here. */
static int receive(const struct drps_cluster *c, uint32_t from, uint8_t type,
                   struct drps_net_message **out, struct drps_err *err)
{
    int rc = drps_net_receive(c->net, DRPS_NET_MASTER, from, c->wait_ms, out, err);
    if (rc < 0 || (*out)->type == type) return rc;
    rc = drps_err_set(err, DRPS_E_PROTO, "rank %u sent message %u where message %u was due", from,
                      (*out)->type, type);
    drps_net_message_free(*out);
    return rc;
}

static int merge_metrics(const struct drps_cluster *c, struct drps_metrics *metrics,
                         struct drps_err *err)
{
    int rc = 0;
    for (uint32_t r = 1; r < c->count && rc == 0; r++) {
        struct drps_net_message *m;
        rc = receive(c, r, METRICS, &m, err);
        if (rc < 0) break;
        rc = drps_metrics_merge(metrics, m->data, m->bytes, err);
        drps_net_message_free(m);
    }
    return rc;
}

struct counts { /* of a rank's epoch */
    struct drps_cluster_sums sums;
    uint64_t reads, writes, read_bytes, written_bytes, seeks, requests, moved_bytes;
    uint64_t plan_read_bytes;
};

static void sum_up(const struct counts *all, uint32_t count, struct drps_cluster_sums *sums,
                   struct drps_epoch *e)
{
    struct counts sum = all[0];
    for (uint32_t r = 1; r < count; r++) {
        sum.sums.samples += all[r].sums.samples;
        sum.sums.loss_sum += all[r].sums.loss_sum;
        sum.sums.train_ns = larger(sum.sums.train_ns, all[r].sums.train_ns);
        sum.reads += all[r].reads;
        sum.writes += all[r].writes;
        sum.read_bytes += all[r].read_bytes;
        sum.written_bytes += all[r].written_bytes;
        sum.seeks += all[r].seeks;
        sum.requests += all[r].requests;
        sum.moved_bytes += all[r].moved_bytes;
        sum.plan_read_bytes += all[r].plan_read_bytes;
    }
    e->reads = sum.reads;
    e->writes = sum.writes;
    e->read_bytes = sum.read_bytes;
    e->written_bytes = sum.written_bytes;
    e->seeks = sum.seeks;
    e->requests = sum.requests;
    e->moved_bytes = sum.moved_bytes;
    e->plan_read_bytes = sum.plan_read_bytes;
    *sums = sum.sums;
}

int drps_cluster_epoch(const struct drps_cluster *c, struct drps_cluster_sums *sums,
                       struct drps_metrics *metrics, struct drps_epoch *e, struct drps_err *err)
{
    const struct counts mine = {.sums = *sums,
                                .reads = e->reads,
                                .writes = e->writes,
                                .read_bytes = e->read_bytes,
                                .written_bytes = e->written_bytes,
                                .seeks = e->seeks,
                                .requests = e->requests,
                                .moved_bytes = e->moved_bytes,
                                .plan_read_bytes = e->plan_read_bytes};
    struct counts *all = calloc(c->count, sizeof(*all));
    if (!all) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", c->count);
    int rc = drps_net_gather(c->net, &mine, sizeof(mine), all, c->wait_ms, err);
    if (rc == 0) sum_up(all, c->count, sums, e);
    free(all);
    if (rc < 0 || !metrics) return rc;
    rc = c->rank ? send_metrics(c, metrics, err) : merge_metrics(c, metrics, err);
    if (rc == 0) drps_metrics_result(metrics, &e->test);
    if (rc == 0) rc = drps_net_broadcast(c->net, 0, &e->test, sizeof(e->test), c->wait_ms, err);
    return rc;
}

int drps_cluster_least(const struct drps_cluster *c, uint64_t *value, struct drps_err *err)
{
    const uint64_t mine = *value;
    uint64_t *all = calloc(c->count, sizeof(*all));
    if (!all) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", c->count);
    int rc = drps_net_gather(c->net, &mine, sizeof(mine), all, c->wait_ms, err);
    for (uint32_t r = 0; r < c->count && rc == 0; r++)
        if (all[r] && (!*value || all[r] < *value)) *value = all[r];
    free(all);
    return rc;
}

/* 1: each of `count` ranks has `number` among its n. */
static int all_have(const uint64_t *all, uint32_t count, size_t n, uint64_t number)
{
    for (uint32_t r = 0; r < count; r++) {
        size_t i = 0;
        while (i < n && all[r * n + i] != number)
            i++;
        if (i == n) return 0;
    }
    return 1;
}

int drps_cluster_common(const struct drps_cluster *c, const uint64_t *mine, size_t n,
                        uint64_t *common_out, struct drps_err *err)
{
    *common_out = 0;
    if (!n || n > DRPS_CLUSTER_COMMON_MOST)
        return drps_err_set(err, -EINVAL, "%zu numbers of a rank, at most %d are compared", n,
                            DRPS_CLUSTER_COMMON_MOST);
    uint64_t *all = calloc(c->count * n, sizeof(*all));
    if (!all) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", c->count);
    int rc = drps_net_gather(c->net, mine, n * sizeof(*mine), all, c->wait_ms, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (mine[i] > *common_out && all_have(all, c->count, n, mine[i])) *common_out = mine[i];
    free(all);
    return rc;
}

/* ---- The model ---- */

struct sending { /* a rank's rows on their way to the master */
    const struct drps_cluster *c;
    size_t row_bytes, param_bytes;
    char *params; /* [cap][param_bytes] rows first .. first + n */
    size_t cap, n;
    uint64_t first;
};

static int send_rows(struct sending *s, struct drps_err *err)
{
    const struct drps_piece piece = {s->params, s->n * s->param_bytes};
    const struct drps_net_send send = {
        .part = DRPS_NET_MASTER, .type = ROWS, .round = s->first, .pieces = &piece, .n = 1};
    s->first += s->n;
    s->n = 0;
    return drps_net_send(s->c->net, &send, TURN_MS, err);
}

static int add_rows(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    struct sending *s = ctx;
    const char *row = rows;
    int rc = 0;
    (void)first; /* in order, as a scan is */
    for (size_t i = 0; i < n && rc == 0; i++, row += s->row_bytes) {
        memcpy(s->params + s->n * s->param_bytes, row, s->param_bytes);
        if (++s->n == s->cap) rc = send_rows(s, err);
    }
    return rc;
}

static int send_all_rows(const struct drps_cluster *c, const struct drps_server *server,
                         struct drps_err *err)
{
    struct sending s = {.c = c,
                        .row_bytes = server->row_bytes,
                        .param_bytes = server->model.dim * sizeof(float),
                        .first = server->first_row};
    s.cap = ROWS_BYTES / s.param_bytes ? ROWS_BYTES / s.param_bytes : 1;
    s.params = malloc(s.cap * s.param_bytes);
    if (!s.params) return drps_err_set(err, -ENOMEM, "no memory to send the model");
    int rc = drps_server_scan_parameters(server, add_rows, &s, err);
    if (rc == 0 && s.n) rc = send_rows(&s, err);
    if (rc == 0) rc = send_rows(&s, err); /* an empty one: that was all */
    free(s.params);
    return rc;
}

static int take_rows(const struct drps_cluster *c, uint32_t from, size_t param_bytes,
                     struct drps_params *out, struct drps_err *err)
{
    size_t n;
    int rc;
    do {
        struct drps_net_message *m;
        rc = receive(c, from, ROWS, &m, err);
        if (rc < 0) return rc;
        n = m->bytes / param_bytes;
        rc = drps_params_add_packed(out, m->round, n, m->data, err);
        drps_net_message_free(m);
    } while (rc == 0 && n);
    return rc;
}

int drps_cluster_export(const struct drps_cluster *c, const struct drps_server *server,
                        struct drps_params *out, struct drps_err *err)
{
    if (c->rank) return send_all_rows(c, server, err);
    const size_t param_bytes = server->model.dim * sizeof(float);
    int rc = drps_server_scan_parameters(server, drps_params_add, out, err);
    for (uint32_t r = 1; r < c->count && rc == 0; r++)
        rc = take_rows(c, r, param_bytes, out, err);
    return rc;
}

int drps_cluster_tell(const struct drps_cluster *c, struct drps_params_found *found,
                      struct drps_err *err)
{
    return drps_net_broadcast(c->net, 0, found, sizeof(*found), TURN_MS, err);
}

/* ---- The end ---- */

int drps_cluster_report(const struct drps_cluster *c, const struct drps_train_rank *mine,
                        struct drps_train_rank **ranks_out, struct drps_err *err)
{
    drps_net_need(c->net, 0);
    *ranks_out = calloc(c->count, sizeof(**ranks_out));
    if (!*ranks_out) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", c->count);
    return drps_net_gather(c->net, mine, sizeof(*mine), *ranks_out, TURN_MS, err);
}

int drps_cluster_finish(const struct drps_cluster *c, struct drps_err *err)
{
    return drps_net_barrier(c->net, TURN_MS, err);
}

uint64_t drps_cluster_sent(const struct drps_cluster *c)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < c->count; r++) {
        struct drps_net_peer_stats stats;
        if (r == c->rank) continue;
        drps_net_peer_stats(c->net, r, &stats);
        sum += stats.sent_bytes;
    }
    return sum;
}
