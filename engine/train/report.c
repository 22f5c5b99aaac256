/*
 * A function for each group of members. Counters that only some stores have are groups of their
 * own, null for every other store: a store with counters of another kind adds a function beside
 * blocks_to_json() and a line in put_store().
 */
#include "engine/train/drps_report.h"

#include <math.h>

#include <jansson.h>

#include "base/folder/drps_command.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/drps_epoch_json.h"
#include "engine/checkpoint/drps_waiting_json.h"
#include "engine/cluster/sv/drps_exchange.h"
#include "engine/cluster/traffic/drps_ranks_json.h"
#include "storage/pib/drps_evict.h"

/* JSON has no NaN: what could not be measured is null. */
static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *count(uint64_t v)
{
    return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

/* ---- How it was asked for ---- */

static json_t *optimizer_to_json(const struct drps_optim *o)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "name", json_string(drps_optim_name(o->kind)));
    drps_manifest_put(&j, "lr", number((double)o->lr));
    drps_manifest_put(&j, "l1", number((double)o->l1));
    drps_manifest_put(&j, "l2", number((double)o->l2));
    drps_manifest_put(&j, "eps", number((double)o->eps));
    drps_manifest_put(&j, "beta", number((double)o->beta));
    if (o->kind == DRPS_OPTIM_ADAM) {
        drps_manifest_put(&j, "beta1", number((double)o->beta1));
        drps_manifest_put(&j, "beta2", number((double)o->beta2));
    }
    if (!drps_optim_is_newton(o->kind)) return j;
    drps_manifest_put(&j, "pairs", count(o->pairs));
    drps_manifest_put(&j, "tolerance", number((double)o->tolerance));
    return j;
}

static void put_options(json_t **j, const struct drps_train_options *o,
                        const struct drps_train_result *r)
{
    drps_manifest_put(j, "optimizer", optimizer_to_json(&r->optim));
    drps_manifest_put(j, "device_name", *r->device ? json_string(r->device) : json_null());
    drps_manifest_put(j, "device_emulated", json_boolean(r->device_emulated));
    drps_manifest_put(j, "threads", count(o->threads ? o->threads : 1));
    drps_manifest_put(j, "one_by_one", json_boolean(o->one_by_one));
    drps_manifest_put(j, "local_steps", json_boolean(o->local_steps));
    drps_manifest_put(j, "patience", count(o->patience));
    drps_manifest_put(j, "metric", json_string(drps_metric_name(o->metric)));
    drps_manifest_put(j, "lr_decay", json_string(drps_decay_name(o->lr_decay)));
    drps_manifest_put(j, "batch_mean", json_boolean(o->batch_mean));
    drps_manifest_put(j, "sync", json_string(drps_sched_mode_name(o->sync)));
    drps_manifest_put(j, "staleness", count(o->staleness));
    drps_waiting_put(j, &o->wsp, o->lr_stale);
    drps_manifest_put(j, "claim", json_boolean(o->sync != DRPS_SCHED_BSP && !o->no_claim));
}

/* ---- How it went ---- */

static json_t *epoch_to_json(const struct drps_train_result *r, const struct drps_epoch *e)
{
    json_t *j = drps_epoch_to_json(e);
    if (r->has_perplexity) drps_manifest_put(&j, "test_perplexity", number(exp(e->test.loss)));
    return j;
}

static json_t *epochs_to_json(const struct drps_train_result *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->epochs_n; i++)
        drps_manifest_append(&list, epoch_to_json(r, &r->epochs[i]));
    return list;
}

static json_t *checkpoints_to_json(const struct drps_train_checkpoints *c)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "written", count(c->n));
    drps_manifest_put(&j, "failed", count(c->failed));
    drps_manifest_put(&j, "bytes", count(c->bytes));
    drps_manifest_put(&j, "seconds", number(c->seconds));
    if (!c->rounds) return j;
    drps_manifest_put(&j, "rounds", count(c->rounds));
    drps_manifest_put(&j, "log_bytes", count(c->log_bytes));
    return j;
}

static json_t *delta_to_json(const struct drps_train_delta *d)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "rows", count(d->rows));
    drps_manifest_put(&j, "new", count(d->fresh));
    drps_manifest_put(&j, "bytes", count(d->bytes));
    return j;
}

static json_t *from_to_json(const struct drps_train_from *f)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "rows", count(f->rows));
    drps_manifest_put(&j, "all", count(f->all));
    drps_manifest_put(&j, "left_out", count(f->left));
    drps_manifest_put(&j, "state", json_boolean(f->state));
    return j;
}

/* How a quasi-Newton method has ended. */
static const char *const newton_ends[] = {[DRPS_NEWTON_GOES_ON] = "epochs",
                                          [DRPS_NEWTON_CONVERGED] = "converged",
                                          [DRPS_NEWTON_STALLED] = "stalled"};

static void put_epochs(json_t **j, const struct drps_train_result *r)
{
    drps_manifest_put(j, "epochs", epochs_to_json(r));
    drps_manifest_put(j, "best_epoch", count(r->best_epoch));
    drps_manifest_put(j, "stopped_early", json_boolean(r->stopped_early));
    if (drps_optim_is_newton(r->optim.kind))
        drps_manifest_put(j, "ended", json_string(newton_ends[r->newton_end]));
    drps_manifest_put(j, "diverged_epoch", count(r->diverged_epoch));
    drps_manifest_put(j, "interrupted", json_boolean(r->interrupted));
    drps_manifest_put(j, "steps", count(r->steps));
    drps_manifest_put(j, "resumed_epoch", count(r->resumed_epoch));
    drps_manifest_put(j, "resumed_step", count(r->resumed_step));
    drps_manifest_put(j, "changed", *r->changed ? json_string(r->changed) : json_null());
    drps_manifest_put(j, "first_step_seconds", number(r->first_step_seconds));
    drps_manifest_put(j, "from", r->from.all ? from_to_json(&r->from) : json_null());
    drps_manifest_put(j, "delta", r->delta.bytes ? delta_to_json(&r->delta) : json_null());
    drps_manifest_put(j, "checkpoints", checkpoints_to_json(&r->checkpoints));
    drps_manifest_put(j, "kept", r->kept ? json_string(r->kept) : json_null());
}

static json_t *phases_to_json(const struct drps_phases *p)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "plan", number(p->plan));
    drps_manifest_put(&j, "wait_store", number(p->wait_store));
    drps_manifest_put(&j, "gather", number(p->gather));
    drps_manifest_put(&j, "compute", number(p->compute));
    drps_manifest_put(&j, "step", number(p->step));
    drps_manifest_put(&j, "evaluate", number(p->evaluate));
    drps_manifest_put(&j, "hand_over", number(p->hand_over));
    drps_manifest_put(&j, "export", number(p->export));
    return j;
}

/* ---- What the store did ---- */

/* Seconds of the training and evaluation steps, an unfinished epoch's too, without writing models.
 */
static double step_seconds(const struct drps_train_result *r)
{
    const struct drps_phases *p = &r->phases;
    return p->plan + p->wait_store + p->gather + p->compute + p->step + p->evaluate + p->hand_over;
}

static json_t *ratio(double part, double whole)
{
    return number(whole > 0 ? part / whole : NAN);
}

static json_t *latency_seconds(const struct drps_latency *l, double q)
{
    return number(l->n ? drps_latency_quantile_us(l, q) * 1e-6 : NAN);
}

/* How many operations took how long, in the buckets of drps_iostat.h from the first to the last
 * that is not empty; null without operations. */
static json_t *latency_to_json(const struct drps_latency *l)
{
    size_t first = 0, n = DRPS_LATENCY_BUCKETS;
    if (!l->n) return json_null();
    json_t *j = json_object(), *counts = json_array();
    while (first < n && !l->count[first])
        first++;
    while (n > first && !l->count[n - 1])
        n--;
    for (size_t b = first; b < n; b++)
        drps_manifest_append(&counts, count(l->count[b]));
    drps_manifest_put(&j, "first", count(first));
    drps_manifest_put(&j, "counts", counts);
    drps_manifest_put(&j, "sum_seconds", number((double)l->sum_ns * 1e-9));
    drps_manifest_put(&j, "max_seconds", number((double)l->max_ns * 1e-9));
    return j;
}

static void put_latencies(json_t **j, const struct drps_iostat *io)
{
    drps_manifest_put(j, "read_p50_seconds", latency_seconds(&io->read_latency, 0.5));
    drps_manifest_put(j, "read_p99_seconds", latency_seconds(&io->read_latency, 0.99));
    drps_manifest_put(j, "write_p50_seconds", latency_seconds(&io->write_latency, 0.5));
    drps_manifest_put(j, "write_p99_seconds", latency_seconds(&io->write_latency, 0.99));
    drps_manifest_put(j, "read_latency", latency_to_json(&io->read_latency));
    drps_manifest_put(j, "write_latency", latency_to_json(&io->write_latency));
}

/* Rows between the memory of a device and the process's; null where all are there, or none. What
 * lies on disk below is in "io". */
static json_t *tiers_to_json(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    if (!s->tiers.device_bytes) return json_null();
    json_t *j = json_object();
    drps_manifest_put(&j, "bytes", count(s->tiers.device_bytes));
    drps_manifest_put(&j, "memory_bytes", count(s->pool_bytes));
    drps_manifest_put(&j, "windows", count(s->windows));
    drps_manifest_put(&j, "in_bytes", count(s->tiers.rows_in * r->row_bytes));
    drps_manifest_put(&j, "out_bytes", count(s->tiers.rows_out * r->row_bytes));
    drps_manifest_put(&j, "waited_share", ratio((double)s->stall_ns * 1e-9, step_seconds(r)));
    return j;
}

/* The I/O of any store; all zero where it does none. */
static json_t *io_to_json(const struct drps_train_result *r)
{
    const struct drps_iostat *io = &r->store_stats.io;
    json_t *j = json_object();
    drps_manifest_put(&j, "reads", count(io->reads));
    drps_manifest_put(&j, "writes", count(io->writes));
    drps_manifest_put(&j, "read_bytes", count(io->read_bytes));
    drps_manifest_put(&j, "written_bytes", count(io->written_bytes));
    drps_manifest_put(&j, "read_bytes_per_s", ratio((double)io->read_bytes, step_seconds(r)));
    drps_manifest_put(&j, "written_bytes_per_s", ratio((double)io->written_bytes, step_seconds(r)));
    drps_manifest_put(&j, "read_calls", count(io->read_calls));
    drps_manifest_put(&j, "write_calls", count(io->write_calls));
    drps_manifest_put(&j, "seeks", count(io->seeks));
    drps_manifest_put(
        &j, "queue_depth",
        number(io->read_calls ? (double)io->queue_depth_sum / (double)io->read_calls : NAN));
    put_latencies(&j, io);
    return j;
}

/* What training waited for, with any store. */
static json_t *stalls_to_json(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    json_t *j = json_object();
    drps_manifest_put(&j, "steps", count(s->steps));
    drps_manifest_put(&j, "stalled_steps", count(s->stalled_steps));
    drps_manifest_put(&j, "seconds", number((double)s->stall_ns * 1e-9));
    drps_manifest_put(&j, "share", ratio((double)s->stall_ns * 1e-9, step_seconds(r)));
    return j;
}

/* The blocks of a store with a block pool. */
static json_t *blocks_to_json(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    if (!s->pool.entries) return json_null();
    json_t *j = json_object();
    drps_manifest_put(&j, "evict", json_string(drps_evict_name(r->evict)));
    drps_manifest_put(&j, "needed", count(s->blocks_needed));
    drps_manifest_put(&j, "hit", count(s->blocks_hit));
    drps_manifest_put(&j, "created", count(s->blocks_created));
    drps_manifest_put(&j, "evicted", count(s->blocks_evicted));
    drps_manifest_put(&j, "pool_blocks", count(s->pool.entries));
    drps_manifest_put(&j, "pool_rows", count((uint64_t)s->pool.units * s->pool.unit_rows));
    drps_manifest_put(&j, "unit_rows", count(s->pool.unit_rows));
    drps_manifest_put(&j, "pool_bytes", count(s->pool_bytes));
    return j;
}

/* The requests of a block store whose engine counts them. */
static json_t *device_to_json(const struct drps_kv_device *d)
{
    if (!d->sector) return json_null();
    json_t *j = json_object();
    drps_manifest_put(&j, "reads", count(d->io.reads));
    drps_manifest_put(&j, "writes", count(d->io.writes));
    drps_manifest_put(&j, "read_bytes", count(d->io.read_bytes));
    drps_manifest_put(&j, "written_bytes", count(d->io.written_bytes));
    drps_manifest_put(
        &j, "queue_depth",
        number(d->io.reads ? (double)d->io.queue_depth_sum / (double)d->io.reads : NAN));
    put_latencies(&j, &d->io);
    drps_manifest_put(&j, "gap_bytes", count(d->gap_bytes));
    drps_manifest_put(&j, "sector_bytes", count(d->sector));
    drps_manifest_put(&j, "io_engine", json_string(d->io_engine));
    drps_manifest_put(&j, "direct", json_boolean(d->direct));
    drps_manifest_put(&j, "remark", json_string(d->io_remark));
    return j;
}

/* One window of an epoch, summed over epochs. */
static json_t *window_to_json(const struct drps_window_stats *w)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "rows", count(w->rows));
    drps_manifest_put(&j, "rows_kept", count(w->kept));
    drps_manifest_put(&j, "rows_arrived", count(w->arrived));
    drps_manifest_put(&j, "rows_created", count(w->created));
    drps_manifest_put(&j, "read_bytes", count(w->read_bytes));
    drps_manifest_put(&j, "written_bytes", count(w->written_bytes));
    drps_manifest_put(&j, "stall_seconds", number((double)w->stall_ns * 1e-9));
    drps_manifest_put(&j, "open_seconds", number((double)w->open_ns * 1e-9));
    drps_manifest_put(&j, "close_seconds", number((double)w->close_ns * 1e-9));
    return j;
}

/* The windows of a store that runs them. */
static json_t *windows_to_json(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    if (!r->windows_n) return json_null();
    const double rows = (double)(s->rows_kept + s->rows_arrived + s->rows_created);
    json_t *j = json_object(), *list = json_array();
    drps_manifest_put(&j, "windows", count(r->windows_n));
    drps_manifest_put(&j, "pool_rows", count(s->pool_bytes / r->row_bytes));
    drps_manifest_put(&j, "pool_bytes", count(s->pool_bytes));
    drps_manifest_put(&j, "chunk_bytes", count(s->chunk_bytes));
    drps_manifest_put(&j, "runs", count(s->runs));
    drps_manifest_put(&j, "seek_bytes", count(s->seek_bytes));
    drps_manifest_put(&j, "io_engine", json_string(s->io_engine));
    drps_manifest_put(&j, "direct", json_boolean(s->direct));
    drps_manifest_put(&j, "remark", json_string(s->io_remark));
    drps_manifest_put(&j, "rows_kept", count(s->rows_kept));
    drps_manifest_put(&j, "rows_arrived", count(s->rows_arrived));
    drps_manifest_put(&j, "rows_created", count(s->rows_created));
    drps_manifest_put(&j, "merged_bytes", count(s->merged_bytes));
    drps_manifest_put(&j, "kept_share", ratio((double)s->rows_kept, rows));
    drps_manifest_put(&j, "arrived_share", ratio((double)s->rows_arrived, rows));
    drps_manifest_put(&j, "created_share", ratio((double)s->rows_created, rows));
    for (size_t w = 0; w < r->windows_n; w++)
        drps_manifest_append(&list, window_to_json(&r->windows[w]));
    drps_manifest_put(&j, "list", list);
    return j;
}

static void put_store(json_t **j, const struct drps_train_result *r)
{
    drps_manifest_put(j, "io", io_to_json(r));
    drps_manifest_put(j, "tiers", tiers_to_json(r));
    drps_manifest_put(j, "stalls", stalls_to_json(r));
    drps_manifest_put(j, "blocks", blocks_to_json(r));
    drps_manifest_put(j, "device", device_to_json(&r->store_stats.device));
    drps_manifest_put(j, "windows", windows_to_json(r));
}

static json_t *forecast_to_json(const struct drps_train_result *r)
{
    if (!r->has_forecast) return json_null();
    json_t *j = json_object();
    drps_manifest_put(&j, "feasible", json_boolean(r->forecast.feasible));
    drps_manifest_put(&j, "memory_bytes", count(r->forecast.memory_bytes));
    drps_manifest_put(&j, "read_bytes", count(r->forecast.read_bytes));
    drps_manifest_put(&j, "written_bytes", count(r->forecast.written_bytes));
    drps_manifest_put(&j, "ios", count(r->forecast.ios));
    if (!r->store_stats.device.sector) return j;
    drps_manifest_put(&j, "requests", count(r->forecast_requests.n));
    drps_manifest_put(&j, "moved_bytes", count(r->forecast_requests.moved_bytes));
    drps_manifest_put(&j, "disk_seconds", number(r->forecast_requests.seconds));
    return j;
}

/* The forecast of an epoch, and the time of the last epoch beside it: in the first one rows are
 * new, so that it is not compared. */
static json_t *forecast_seconds_to_json(const struct drps_train_result *r)
{
    json_t *j = drps_epoch_seconds_to_json(&r->forecast_seconds);
    const double measured = r->epochs[r->epochs_n - 1].seconds;
    drps_manifest_put(&j, "measured", number(measured));
    drps_manifest_put(&j, "of_forecast", ratio(measured, r->forecast_seconds.epoch));
    return j;
}

/* ---- What it took beside the store ---- */

static json_t *part_to_json(const char *what, uint64_t bytes)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "what", json_string(what));
    drps_manifest_put(&j, "bytes", count(bytes));
    return j;
}

static json_t *memory_to_json(const struct drps_budget *b)
{
    json_t *j = json_object();
    json_t *parts = json_array();
    for (size_t i = 0; i < b->n; i++)
        drps_manifest_append(&parts, part_to_json(b->items[i].what, b->items[i].bytes));
    drps_manifest_put(&j, "limit_bytes", count(b->limit_bytes));
    drps_manifest_put(&j, "parts", parts);
    return j;
}

static void put_process(json_t **j, const struct drps_train_result *r)
{
    drps_manifest_put(j, "plan_read_bytes", count(r->plan_read_bytes));
    drps_manifest_put(j, "plan_wait_seconds", number(r->plan_wait_seconds));
    drps_manifest_put(j, "process_read_bytes", count(r->process_io.read_bytes));
    drps_manifest_put(j, "process_written_bytes", count(r->process_io.written_bytes));
    drps_manifest_put(j, "memory", memory_to_json(&r->memory));
}

/* What emulated computation came to (drps_train_options.emulate). */
static json_t *emulated_to_json(const struct drps_train_emulated *e)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "iterations", count(e->iterations));
    drps_manifest_put(&j, "seconds", number((double)e->emulated_ns * 1e-9));
    drps_manifest_put(&j, "computed_seconds", number((double)e->computed_ns * 1e-9));
    drps_manifest_put(&j, "overrun_share", ratio((double)e->overruns, (double)e->iterations));
    drps_manifest_put(&j, "late_share", ratio((double)e->late_ns, (double)e->emulated_ns));
    return j;
}

/* How gradients were exchanged, and what each way takes in an epoch. */
static json_t *exchange_to_json(const struct drps_train_exchange *x)
{
    json_t *j = json_object(), *bytes = json_object();
    for (int way = 0; way < DRPS_EXCHANGES; way++)
        drps_manifest_put(&bytes, drps_exchange_name((enum drps_exchange)way),
                          json_integer((json_int_t)x->forecast_bytes[way]));
    drps_manifest_put(&j, "way", json_string(drps_exchange_name(x->way)));
    drps_manifest_put(&j, "chosen", json_boolean(x->chosen));
    drps_manifest_put(&j, "fits", json_boolean(x->fits));
    drps_manifest_put(&j, "forecast_bytes", bytes);
    return j;
}

static const char *const common_names[] = {[DRPS_COMMON_AUTO] = "auto",
                                           [DRPS_COMMON_SERVERS] = "servers",
                                           [DRPS_COMMON_SUMS] = "sums",
                                           [DRPS_COMMON_VECTORS] = "vectors"};

/* How gradients of a net's own parameters were exchanged, and which layers' as vectors. */
static json_t *common_to_json(const struct drps_train_common *c)
{
    json_t *j = json_object(), *layers = json_array();
    for (uint32_t i = 0; i < c->vectors.n; i++) {
        const struct drps_outer_layer *y = &c->vectors.layers[i];
        json_t *layer = json_object();
        drps_manifest_put(&layer, "line", count(y->line));
        drps_manifest_put(&layer, "inputs", count(y->w));
        drps_manifest_put(&layer, "outputs", count(y->N));
        if (layers && json_array_append_new(layers, layer) < 0) {
            json_decref(layers);
            layers = NULL;
        }
    }
    drps_manifest_put(&j, "way", json_string(common_names[c->way]));
    drps_manifest_put(&j, "parameters", count(c->floats));
    drps_manifest_put(&j, "vectors_of", layers);
    return j;
}

void *drps_report_json(const struct drps_train_options *options, const struct drps_train_result *r)
{
    json_t *j = json_object();
    drps_command_put(&j, "command", options->command);
    drps_manifest_put(&j, "store", json_string(r->store));
    drps_manifest_put(&j, "model_store", json_string(r->model_store));
    drps_manifest_put(&j, "rows", count(r->rows));
    drps_manifest_put(&j, "row_bytes", count(r->row_bytes));
    drps_manifest_put(&j, "model_bytes", count(r->model_bytes));
    drps_manifest_put(&j, "peak_rss_bytes", count(r->peak_rss_bytes));
    drps_manifest_put(&j, "content", drps_manifest_hex(r->content));
    put_options(&j, options, r);
    drps_manifest_put(&j, "constant_loss", number(r->constant_loss));
    drps_manifest_put(&j, "test_constant_loss", number(r->test_constant_loss));
    drps_manifest_put(&j, "warnings", drps_manifest_remarks(&r->remarks));
    put_epochs(&j, r);
    drps_manifest_put(&j, "seconds", number(r->seconds));
    drps_manifest_put(&j, "phase_seconds", phases_to_json(&r->phases));
    put_store(&j, r);
    drps_manifest_put(&j, "forecast", forecast_to_json(r));
    if (r->forecast_seconds.epoch > 0 && r->epochs_n)
        drps_manifest_put(&j, "forecast_seconds", forecast_seconds_to_json(r));
    if (r->limit.epochs) drps_manifest_put(&j, "limit_seconds", drps_limit_to_json(&r->limit));
    put_process(&j, r);
    if (r->ranks_n) drps_manifest_put(&j, "claim_window_steps", count(r->claim_steps));
    if (r->ranks_n) drps_manifest_put(&j, "ranks", drps_ranks_to_json(r->ranks, r->ranks_n));
    if (r->exchange.way != DRPS_EXCHANGE_SERVERS || r->exchange.chosen)
        drps_manifest_put(&j, "exchange", exchange_to_json(&r->exchange));
    if (r->common.floats) drps_manifest_put(&j, "net_exchange", common_to_json(&r->common));
    if (r->ranks_n) drps_manifest_put(&j, "links", drps_links_to_json(&r->links, r->ranks_n));
    if (options->emulate) drps_manifest_put(&j, "emulated", emulated_to_json(&r->emulated));
    return j;
}
