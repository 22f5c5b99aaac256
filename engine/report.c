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

static json_t *epochs_to_json(const struct drps_train_result *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->epochs_n; i++) {
        const struct drps_epoch *e = &r->epochs[i];
        (void)json_array_append_new(
            list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", count(e->epoch), "seconds",
                            number(e->seconds), "samples_per_s", number(e->samples_per_s), "train_loss",
                            number(e->train_loss), "test_loss", number(e->test.loss), "test_auc", number(e->test.auc),
                            "test_accuracy", number(e->test.accuracy), "test_rmse", number(e->test.rmse)));
    }
    return list;
}

static json_t *optimizer_to_json(const struct drps_optim *o)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "name", drps_optim_name(o->kind), "lr", number((double)o->lr),
                     "l1", number((double)o->l1), "l2", number((double)o->l2), "eps", number((double)o->eps), "beta",
                     number((double)o->beta));
}

static json_t *statistics_to_json(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "steps", count(s->steps), "reads",
                     count(s->io.reads), "writes", count(s->io.writes), "read_bytes", count(s->io.read_bytes),
                     "written_bytes", count(s->io.written_bytes), "seeks", count(s->io.seeks), "blocks_needed",
                     count(s->blocks_needed), "blocks_hit", count(s->blocks_hit), "blocks_created",
                     count(s->blocks_created), "stall_seconds", number((double)s->stall_ns * 1e-9), "plan_read_bytes",
                     count(r->plan_read_bytes), "peak_rss_bytes", count(r->peak_rss_bytes));
}

json_t *drps_report_json(const struct drps_train_options *options, const struct drps_train_result *r)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:i, s:b, s:o, s:o, s:b, s:b, s:o, s:o, s:o}", "store", r->store, "memory",
                     count(r->memory.limit_bytes), "optimizer", optimizer_to_json(&r->optim), "patience",
                     count(options->patience), "threads", options->threads ? (int)options->threads : 1, "local_steps",
                     options->local_steps, "epochs", epochs_to_json(r), "best_epoch", count(r->best_epoch),
                     "stopped_early", r->stopped_early, "interrupted", r->interrupted, "steps", count(r->steps),
                     "seconds", number(r->seconds), "statistics", statistics_to_json(r));
}
