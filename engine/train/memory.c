/*
 * First what has a fixed size: the program itself, the plan's streams, one batch, the model being
 * written at the end. The rest goes to the rows: all of them when they fit, else a pool of blocks.
 */
#include "engine/train/drps_memory.h"

#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"
#include "engine/cluster/async/drps_async.h"
#include "engine/cluster/sv/drps_exchange.h"
#include "engine/cluster/drps_circulation.h"
#include "engine/cluster/drps_cluster.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/step/drps_batch_cache.h"
#include "engine/step/drps_stratum.h"
#include "engine/train/vectors/drps_round_log.h"
#include "storage/device/drps_device_rows.h"
#include "storage/kv/drps_kv.h"
#include "storage/pib/drps_pib.h"

enum {
    MIB = 1 << 20,
    PROGRAM_BYTES = 16 * MIB, /* code, libraries, stacks, allocator: 13 to 16 MiB measured */
    BUFFER_LEAST = 64 * 1024,
    BUFFER_MOST = MIB,
    STEPS_LEAST = MIB / 4, /* of asynchronous rounds that are open */
    EXPORT_LEAST = 12 * MIB,
    EXPORT_MOST = 48 * MIB,
    BLOCKS_WINDOW_MOST = 4, /* of asynchronous rounds: the block store holds 8 steps */
    BLOCKS_STRATUM_MOST = 4,
};

static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

static int is(const char *name, const char *store)
{
    return strcmp(name ? name : "auto", store) == 0;
}

int drps_memory_wants_blocks(const char *name)
{
    return !is(name, "auto") && !is(name, "resident") && !is(name, "relay");
}

/* Takes windows of the usual length unless the steps of two would take more than a 32nd of the
 * memory. */
static void take_async(struct drps_memory *m, const struct drps_plan_info *info, int least)
{
    const uint64_t limit =
        least ? STEPS_LEAST : clamp(m->budget.limit_bytes / 32, STEPS_LEAST, UINT64_MAX);
    m->window_steps = DRPS_ASYNC_WINDOW_STEPS;
    while (m->window_steps > 1 &&
           drps_async_memory(info, m->window_steps) - drps_async_memory(info, 0) > limit)
        m->window_steps /= 2;
    drps_budget_note(&m->budget, "asynchronous rounds", drps_async_memory(info, m->window_steps));
}

/* Takes what pulling ahead takes, if that is at most a 32nd of the memory. */
static void take_async_ahead(struct drps_memory *m, const struct drps_plan_info *info, int least)
{
    const uint64_t bytes = drps_async_ahead_memory(info);
    if (least || bytes > m->budget.limit_bytes / 32) return;
    m->async_ahead = 1;
    drps_budget_note(&m->budget, "parameters that are sent ahead", bytes);
}

/* How far workers may be apart under ssp. */
static uint64_t bound_of(const struct drps_memory_parts *p)
{
    const uint64_t asked = p->options->staleness;
    return asked ? asked : drps_sched_defaults(DRPS_SCHED_SSP, p->plan->info.ranks.workers).bound;
}

/* What ranks exchange of a net's layers, and what they make of it. */
static void take_vectors(struct drps_budget *b, const struct drps_memory_parts *p)
{
    const struct drps_plan_info *info = &p->plan->info;
    struct drps_outer_choice vectors;
    drps_rounds_vectors(info, p->options, &vectors);
    if (vectors.n)
        drps_budget_note(b, "vectors of layers, and products of others'",
                         drps_rounds_vectors_memory(info, &vectors, p->worker->members));
}

static void take_fixed(struct drps_memory *m, const struct drps_memory_parts *p, int least)
{
    struct drps_budget *b = &m->budget;
    /* Asynchronous rounds open steps of servers; where ranks have all rows nobody does. */
    const int is_async = p->options->sync != DRPS_SCHED_BSP && p->way == DRPS_EXCHANGE_SERVERS;
    m->buffer_bytes = least ? BUFFER_LEAST : clamp(b->limit_bytes / 128, BUFFER_LEAST, BUFFER_MOST);
    m->export_bytes = least ? EXPORT_LEAST : clamp(b->limit_bytes / 8, EXPORT_LEAST, EXPORT_MOST);
    drps_budget_note(b, "program", PROGRAM_BYTES);
    drps_budget_note(b, "reading the plan", drps_feed_memory(p->feed, m->buffer_bytes, 0));
    drps_budget_note(b, "one batch", drps_worker_memory(p->server, p->worker));
    if (p->plan->info.eval_batches) drps_budget_note(b, "metrics", DRPS_METRICS_BYTES);
    if (drps_optim_is_newton(p->server->optim.kind))
        drps_budget_note(
            b,
            drps_optim_has_matrix(p->server->optim.kind) ? "a matrix of all parameters"
                                                         : "coefficients of lbfgs",
            drps_newton_memory(&p->server->optim, p->plan->info.rows, p->server->model.dim));
    if (p->server->optim.kind == DRPS_OPTIM_ALTERNATING) {
        const struct drps_topic_options topics =
            drps_topic_options_of(&p->server->model, &p->server->optim, p->worker->members);
        drps_budget_note(b, "products of topics",
                         drps_topic_memory(&topics) + drps_modeldir_gram_memory(&p->server->model));
    }
    if (drps_plan_circulates(&p->plan->info)) {
        drps_budget_note(b, "ranges of rows between ranks",
                         drps_circulation_memory(&p->plan->info, p->server->row_bytes) +
                             drps_cluster_memory());
    } else if (p->plan->info.ranks.count > 1) {
        drps_budget_note(b, "rounds with other ranks",
                         drps_rounds_memory(&p->plan->info, p->worker->touches) +
                             drps_cluster_memory());
        if (drps_rounds_sums_common(&p->plan->info, p->options))
            drps_budget_note(b, "a copy of the net's own parameters",
                             drps_rounds_common_memory(&p->plan->info, p->server->row_bytes));
        take_vectors(b, p);
        if (p->way != DRPS_EXCHANGE_SERVERS)
            drps_budget_note(b, "all rows, and what ranks exchange",
                             drps_exchange_memory(&p->plan->info, p->server->row_bytes,
                                                  p->worker->touches, p->way, p->options));
        if (p->options->push.on)
            drps_budget_note(b, "what gradients hold back",
                             drps_push_memory(&p->plan->info, p->worker->touches));
        if (p->options->pull.on && p->options->sync == DRPS_SCHED_BSP)
            drps_budget_note(b, "copies of rows, and what is published",
                             drps_pull_memory(&p->plan->info));
        if (drps_handing_applies(&p->plan->info, p->options, &p->server->optim))
            drps_budget_note(b, "rows that workers have",
                             drps_handing_memory(&p->plan->info, p->server->row_bytes));
        if (is_async)
            take_async(m, &p->plan->info, least);
        else
            m->rounds_ahead = !p->options->no_overlap;
        if (is_async && p->options->push.on)
            drps_budget_note(
                b, "what others hold back of gradients",
                drps_async_filters_memory(&p->plan->info, p->worker->touches, m->window_steps));
        if (p->options->pull_cached)
            drps_budget_note(b, "copies of parameters",
                             drps_async_cache_memory(&p->plan->info, bound_of(p)));
        if (is_async && !p->options->no_overlap && !p->options->pull_cached)
            take_async_ahead(m, &p->plan->info, least);
    }
    if (p->logged)
        drps_budget_note(b, "a log of vectors", drps_round_log_memory(&p->plan->info, p->logged));
    if (p->replays)
        drps_budget_note(b, "restoring a round",
                         drps_round_replay_memory(p->plan->info.rows, p->server->model.dim));
    if (p->device_host_bytes)
        drps_budget_note(b, "batches on their way to the device", p->device_host_bytes);
    drps_budget_note(b, "writing the model",
                     m->export_bytes + drps_modelrows_memory(p->server->model.dim));
}

static int has_strata(const struct drps_memory_parts *p)
{
    const struct drps_train_options *o = p->options;
    return p->plan->info.lanes > 1 && !o->one_by_one && !o->local_steps && !o->emulate;
}

/* Takes as many batches of a stratum as a 32nd of the memory holds; a few do. */
static void take_stratum(struct drps_memory *m, const struct drps_memory_parts *p, int least)
{
    const struct drps_plan_info *info = &p->plan->info;
    const unsigned members = p->worker->members;
    const uint64_t limit = least ? 0 : m->budget.limit_bytes / 32;
    if (!has_strata(p)) return;
    m->stratum_batches = DRPS_STRATUM_BATCHES;
    while (m->stratum_batches > info->lanes &&
           drps_stratum_memory(info, p->server, members, m->stratum_batches) > limit)
        m->stratum_batches--;
    drps_budget_note(&m->budget, "batches of a stratum",
                     drps_stratum_memory(info, p->server, members, m->stratum_batches));
}

/* Threads that share out batches of a stratum also share out the work of decoding them, and other
 * ranks' plans have lists of several kinds. */
static void keep_decoded(struct drps_memory *m, const struct drps_plan_info *info)
{
    const uint64_t bytes = drps_batch_cache_memory(info);
    if (!bytes || bytes > drps_budget_left(&m->budget)) return;
    if (m->stratum_batches || info->ranks.count > 1) return;
    m->keep_decoded = 1;
    drps_budget_note(&m->budget, "keeping the plan decoded", bytes);
}

/* Reading and checking batches anew in each epoch takes up to a quarter of a core's time. */
static void keep_plan(struct drps_memory *m, const struct drps_memory_parts *p)
{
    if (p->options->epochs < 2 || p->options->no_keep) return;
    const uint64_t read = drps_feed_memory(p->feed, m->buffer_bytes, 0);
    const uint64_t kept = drps_feed_memory(p->feed, m->buffer_bytes, 1);
    const uint64_t more = kept > read ? kept - read : 0;
    if (more > drps_budget_left(&m->budget)) return;
    m->keep_plan = 1;
    drps_budget_note(&m->budget, "keeping the plan", more);
    keep_decoded(m, &p->plan->info);
}

static int take_resident(struct drps_memory *m, const struct drps_memory_parts *p, uint64_t need,
                         struct drps_err *err)
{
    m->store = &drps_store_resident;
    m->kv = NULL;
    m->store_bytes = need;
    int rc = drps_budget_take(&m->budget, "all rows", need, err);
    if (rc == 0) keep_plan(m, p);
    return rc;
}

/* Takes `least` for the rows that must be in memory together, and of the rest what is of use. */
static int take_store(struct drps_memory *m, const char *what, const char *more_of, uint64_t least,
                      uint64_t most, struct drps_err *err)
{
    int rc = drps_budget_take(&m->budget, what, least, err);
    if (rc < 0) return rc;
    const uint64_t more = clamp(drps_budget_left(&m->budget), 0, most > least ? most - least : 0);
    m->store_bytes = least + more;
    return drps_budget_take(&m->budget, more_of, more, err);
}

/* The store that is chosen has all rows in memory, or on their way to a device that has them. */
static int take_all_rows(struct drps_memory *m, const struct drps_memory_parts *p, const char *what,
                         uint64_t need, struct drps_err *err)
{
    int rc = drps_budget_take(&m->budget, what, need, err);
    if (rc < 0) return rc;
    keep_plan(m, p);
    m->store_bytes = need;
    m->device_keep_bytes = clamp(drps_budget_left(&m->budget), 0, p->device_keep_most);
    if (m->device_keep_bytes)
        drps_budget_note(&m->budget, "batches as the device takes them", m->device_keep_bytes);
    return 0;
}

/* The device has the rows of some windows. All are in the memory of the process where they fit, or
 * where less would not do either; else in a relay store. */
static int take_tiers(struct drps_memory *m, const struct drps_memory_parts *p,
                      struct drps_err *err)
{
    const char *name = p->options->store;
    uint64_t all, least = UINT64_MAX, most;
    int rc = drps_store_tiered.memory_need(p->config, &all, &most, err);
    if (rc == 0 && !is(name, "resident"))
        rc = drps_store_tiered_disk.memory_need(p->config, &least, &most, err);
    if (rc < 0) return rc;
    m->store = &drps_store_tiered;
    if (!is(name, "relay") && (all <= drps_budget_left(&m->budget) || all <= least))
        return take_all_rows(m, p, "all rows, of which the device has some", all, err);
    m->store = &drps_store_tiered_disk;
    rc = take_store(m, "two windows of a step's rows", "larger windows", least, most, err);
    struct drps_store_config config = *p->config;
    config.memory_bytes = m->store_bytes;
    m->relay_bytes = drps_tiered_below_bytes(&config);
    return rc;
}

static int take_device(struct drps_memory *m, const struct drps_memory_parts *p,
                       struct drps_err *err)
{
    uint64_t need, most;
    if (p->config->device_frames < p->plan->info.rows) return take_tiers(m, p, err);
    m->store = &drps_store_device;
    int rc = m->store->memory_need(p->config, &need, &most, err);
    return rc < 0 ? rc : take_all_rows(m, p, "rows on their way to the device", need, err);
}

/* What the block store needs; of asynchronous rounds with windows as long as there is room for, and
 * of others with two rounds open if there is room. */
static int open_blocks(struct drps_memory *m, struct drps_store_config *config, uint64_t *least,
                       uint64_t *most, struct drps_err *err)
{
    for (; m->rounds_ahead; m->rounds_ahead = 0) {
        config->open_steps = 2;
        int rc = m->store->memory_need(config, least, most, err);
        if (rc < 0 || *least <= drps_budget_left(&m->budget)) return rc;
    }
    if (m->window_steps > BLOCKS_WINDOW_MOST) m->window_steps = BLOCKS_WINDOW_MOST;
    for (;; m->window_steps /= 2) {
        config->open_steps = (unsigned)(2 * m->window_steps);
        int rc = m->store->memory_need(config, least, most, err);
        if (rc < 0 || m->window_steps <= 1 || *least <= drps_budget_left(&m->budget)) return rc;
    }
}

/* What a block store needs where threads share the batches of a stratum. These are half of the
 * steps that the store holds, so that others are read ahead meanwhile, and fewer where memory is
 * short. One thread has nobody to share with. */
static int open_blocks_stratum(struct drps_memory *m, const struct drps_memory_parts *p,
                               uint64_t *least, uint64_t *most, struct drps_err *err)
{
    const struct drps_plan_info *info = &p->plan->info;
    if (!has_strata(p) || p->worker->members < 2)
        return open_blocks(m, p->config, least, most, err);
    size_t n = info->lanes < BLOCKS_STRATUM_MOST ? (size_t)info->lanes : BLOCKS_STRATUM_MOST;
    for (;; n--) {
        const uint64_t own = drps_stratum_memory(info, p->server, p->worker->members, n);
        p->config->open_steps = (unsigned)n;
        int rc = m->store->memory_need(p->config, least, most, err);
        if (rc < 0) return rc;
        if (n > 1 && own + *least > drps_budget_left(&m->budget)) continue;
        m->stratum_batches = n;
        drps_budget_note(&m->budget, "batches of a stratum", own);
        return 0;
    }
}

static int take_blocks(struct drps_memory *m, const struct drps_memory_parts *p,
                       struct drps_err *err)
{
    uint64_t least, most;
    m->store = &drps_store_pib;
    m->kv = p->config->kv;
    drps_budget_note(&m->budget, "block boundaries", (p->config->blocks + 1) * sizeof(uint32_t));
    drps_budget_note(&m->budget, "reading the use of blocks",
                     drps_uses_memory(p->uses, m->buffer_bytes));
    int rc = open_blocks_stratum(m, p, &least, &most, err);
    if (rc < 0) return rc;
    const uint64_t engine = drps_pib_engine_least(p->config);
    drps_budget_note(&m->budget, "caches and buffers of the store's engine", engine);
    const int several = p->config->open_steps > 1 || p->config->kv->pool_steps > 1;
    rc = take_store(m,
                    several ? "blocks of rows of some of the largest steps"
                            : "the largest step's blocks of rows",
                    "more blocks of rows", least - engine, most - engine, err);
    m->store_bytes += engine;
    return rc;
}

static int find_engine(const char *name, const struct drps_kv_ops **kv_out, struct drps_err *err)
{
    *kv_out = drps_kv_find(name);
    if (*kv_out) return 0;
    char known[128] = "";
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++) {
        const size_t used = strlen(known);
        (void)snprintf(known + used, sizeof(known) - used, ", %s",
                       (*kv)->name); /* cut only with many engines */
    }
    return drps_err_set(err, DRPS_E_CONFIG, "store \"%s\" is none of auto, resident, relay%s", name,
                        known);
}

int drps_memory_check_store(const char *name, struct drps_err *err)
{
    const struct drps_kv_ops *kv;
    return drps_memory_wants_blocks(name) ? find_engine(name, &kv, err) : 0;
}

/* Everything with buffers of a size that suits the limit, or (least) as small as they may be. */
static int split(struct drps_memory *m, const struct drps_memory_parts *parts, uint64_t limit,
                 int least, struct drps_err *err)
{
    const char *name = parts->replays ? "resident" : parts->options->store;
    uint64_t resident, least_windows = 0, most;

    memset(m, 0, sizeof(*m));
    drps_budget_init(&m->budget, limit);
    take_fixed(m, parts, least);
    if (parts->device_host_bytes) return take_device(m, parts, err);
    if (!drps_memory_wants_blocks(name)) take_stratum(m, parts, least);
    if (drps_memory_wants_blocks(name)) {
        int rc = find_engine(name, &parts->config->kv, err);
        if (rc < 0 || parts->plan->info.rows) return rc < 0 ? rc : take_blocks(m, parts, err);
    }
    int rc = drps_store_resident.memory_need(parts->config, &resident, &most, err);
    if (rc < 0) return rc;
    if (!parts->plan->info.rows) return take_resident(m, parts, resident, err); /* any store's */
    if (!is(name, "resident"))
        rc = drps_store_relay.memory_need(parts->config, &least_windows, &most, err);
    if (rc < 0) return rc;
    if (is(name, "resident") || (is(name, "auto") && (resident <= drps_budget_left(&m->budget) ||
                                                      resident <= least_windows)))
        return take_resident(m, parts, resident, err);
    m->store = &drps_store_relay;
    rc = take_store(m, "two windows of a step's rows", "larger windows", least_windows, most, err);
    m->relay_bytes = m->store_bytes;
    return rc;
}

static int split_within(struct drps_memory *m, const struct drps_memory_parts *parts,
                        uint64_t limit, struct drps_err *err)
{
    if (split(m, parts, limit, 0, NULL) == 0) return 0;
    return split(m, parts, limit, 1, err);
}

int drps_memory_split(struct drps_memory *m, const struct drps_memory_parts *parts,
                      struct drps_err *err)
{
    const uint64_t limit = parts->options->memory_bytes;
    return split_within(m, parts, limit ? limit : drps_memory_available() / 2, err);
}

int drps_memory_has_all_rows(const struct drps_memory *m)
{
    return !m->relay_bytes && !m->kv;
}

static int fits_resident(const struct drps_memory_parts *parts, uint64_t limit)
{
    struct drps_memory m;
    return split_within(&m, parts, limit, NULL) == 0 && drps_memory_has_all_rows(&m);
}

/* Between a limit that is too little and one that is enough for all rows. */
static uint64_t least_for_resident(const struct drps_memory_parts *parts, uint64_t least)
{
    uint64_t low = least, high = least;
    if (fits_resident(parts, least)) return least;
    while (!fits_resident(parts, high)) {
        if (high > UINT64_MAX / 2) return UINT64_MAX;
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (fits_resident(parts, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

int drps_memory_needs(const struct drps_memory_parts *parts, uint64_t *least_out,
                      uint64_t *all_rows_out, struct drps_err *err)
{
    const char *name = parts->options->store;
    struct drps_memory m;
    *least_out = *all_rows_out = 0;
    int rc = split(&m, parts, 0, 1, err);
    if (rc < 0 && rc != DRPS_E_MEMORY_BUDGET) return rc;
    drps_err_clear(err); /* refused, as nothing is too little: what would do is in the budget */
    *least_out = m.budget.used_bytes;
    if (is(name, "auto") || is(name, "resident"))
        *all_rows_out = least_for_resident(parts, *least_out);
    return 0;
}
