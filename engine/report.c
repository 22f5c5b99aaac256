#include "engine/report.h"

#include <math.h>

/* JSON has no NaN: what could not be measured is null. */
static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *count(uint64_t v)
{
    return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

/* Collects members; json_object_set_new() takes a NULL value as failure, and the whole is checked
 * by its reader. */
static void put(json_t *j, const char *key, json_t *value)
{
    (void)json_object_set_new(j, key, value);
}

static json_t *epoch_to_json(const struct drps_epoch *e)
{
    json_t *j = json_object();
    put(j, "epoch", count(e->epoch));
    put(j, "seconds", number(e->seconds));
    put(j, "samples_per_s", number(e->samples_per_s));
    put(j, "train_loss", number(e->train_loss));
    put(j, "test_loss", number(e->test.loss));
    put(j, "test_auc", number(e->test.auc));
    put(j, "test_accuracy", number(e->test.accuracy));
    put(j, "test_rmse", number(e->test.rmse));
    put(j, "reads", count(e->reads));
    put(j, "writes", count(e->writes));
    put(j, "read_bytes", count(e->read_bytes));
    put(j, "written_bytes", count(e->written_bytes));
    put(j, "stall_share", number(e->stall_share));
    return j;
}

static json_t *epochs_to_json(const struct drps_train_result *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->epochs_n; i++)
        (void)json_array_append_new(list, epoch_to_json(&r->epochs[i]));
    return list;
}

static json_t *optimizer_to_json(const struct drps_optim *o)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "name", drps_optim_name(o->kind), "lr",
                     number((double)o->lr), "l1", number((double)o->l1), "l2",
                     number((double)o->l2), "eps", number((double)o->eps), "beta",
                     number((double)o->beta));
}

static void put_io(json_t *j, const struct drps_iostat *io)
{
    put(j, "reads", count(io->reads));
    put(j, "writes", count(io->writes));
    put(j, "read_bytes", count(io->read_bytes));
    put(j, "written_bytes", count(io->written_bytes));
    put(j, "read_calls", count(io->read_calls));
    put(j, "write_calls", count(io->write_calls));
    put(j, "seeks", count(io->seeks));
    put(j, "queue_depth",
        number(io->read_calls ? (double)io->queue_depth_sum / (double)io->read_calls : 0));
    put(j, "read_p50_us", number(drps_latency_quantile_us(&io->read_latency, 0.5)));
    put(j, "read_p99_us", number(drps_latency_quantile_us(&io->read_latency, 0.99)));
    put(j, "write_p50_us", number(drps_latency_quantile_us(&io->write_latency, 0.5)));
    put(j, "write_p99_us", number(drps_latency_quantile_us(&io->write_latency, 0.99)));
}

static json_t *statistics_to_json(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    json_t *j = json_object();
    put(j, "steps", count(s->steps));
    put_io(j, &s->io);
    put(j, "blocks_needed", count(s->blocks_needed));
    put(j, "blocks_hit", count(s->blocks_hit));
    put(j, "blocks_created", count(s->blocks_created));
    put(j, "blocks_evicted", count(s->blocks_evicted));
    put(j, "pool_bytes", count(s->pool_bytes));
    put(j, "stall_seconds", number((double)s->stall_ns * 1e-9));
    put(j, "stalled_steps", count(s->stalled_steps));
    put(j, "plan_read_bytes", count(r->plan_read_bytes));
    put(j, "plan_wait_seconds", number(r->plan_wait_seconds));
    put(j, "process_read_bytes", count(r->process_io.read_bytes));
    put(j, "process_written_bytes", count(r->process_io.written_bytes));
    put(j, "peak_rss_bytes", count(r->peak_rss_bytes));
    return j;
}

static json_t *phases_to_json(const struct drps_phases *p)
{
    json_t *j = json_object();
    put(j, "plan", number(p->plan));
    put(j, "wait_store", number(p->wait_store));
    put(j, "gather", number(p->gather));
    put(j, "compute", number(p->compute));
    put(j, "step", number(p->step));
    put(j, "evaluate", number(p->evaluate));
    put(j, "export", number(p->export));
    return j;
}

static json_t *forecast_to_json(const struct drps_train_result *r)
{
    if (!r->has_forecast) return json_null();
    json_t *j = json_object();
    put(j, "memory_bytes", count(r->forecast.memory_bytes));
    put(j, "read_bytes", count(r->forecast.read_bytes));
    put(j, "written_bytes", count(r->forecast.written_bytes));
    put(j, "ios", count(r->forecast.ios));
    return j;
}

static json_t *memory_to_json(const struct drps_budget *b)
{
    json_t *list = json_array();
    for (size_t i = 0; i < b->n; i++)
        (void)json_array_append_new(list, json_pack("{s:s, s:o}", "what", b->items[i].what, "bytes",
                                                    count(b->items[i].bytes)));
    return list;
}

json_t *drps_report_json(const struct drps_train_options *options,
                         const struct drps_train_result *r)
{
    json_t *j = json_object();
    put(j, "store", json_string(r->store));
    put(j, "memory", count(r->memory.limit_bytes));
    put(j, "optimizer", optimizer_to_json(&r->optim));
    put(j, "patience", count(options->patience));
    put(j, "threads", count(options->threads ? options->threads : 1));
    put(j, "local_steps", json_boolean(options->local_steps));
    put(j, "epochs", epochs_to_json(r));
    put(j, "best_epoch", count(r->best_epoch));
    put(j, "stopped_early", json_boolean(r->stopped_early));
    put(j, "interrupted", json_boolean(r->interrupted));
    put(j, "steps", count(r->steps));
    put(j, "seconds", number(r->seconds));
    put(j, "statistics", statistics_to_json(r));
    put(j, "phases", phases_to_json(&r->phases));
    put(j, "forecast", forecast_to_json(r));
    put(j, "memory_parts", memory_to_json(&r->memory));
    return j;
}
