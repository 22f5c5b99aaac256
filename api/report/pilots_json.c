/* What pilots came to, as JSON: learning rates, and filters with the options that set them. */
#include "api/report/drps_pilots_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/report/drps_json.h"

/* ---- Filters ---- */

static const char *const measures[] = {
    [DRPS_TARGET_TEST_LOSS] = "test loss",
    [DRPS_TARGET_TEST_RMSE] = "test RMSE",
    [DRPS_TARGET_TRAIN_LOSS] = "train loss",
    [DRPS_TARGET_TRAIN_RMSE] = "train RMSE",
};

const char *drps_target_measure_name(enum drps_target_measure measure)
{
    return measures[measure];
}

/* ---- Options ---- */

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + used, DRPS_TARGET_TEXT - used, format, args); /* there is room */
    va_end(args);
}

/* The options that set the same filters by hand. The ladder's numbers have few digits. */
const char *drps_target_settings(const struct drps_target_pilot *p, char text[DRPS_TARGET_TEXT])
{
    const struct drps_push_options *push = &p->filters.push;
    const struct drps_pull_options *pull = &p->filters.pull;
    text[0] = '\0';
    if (!p->rung) return "no filters";
    add(text, "--push-values %ubit", push->bits);
    if (push->top > 0) add(text, " --push-top %g", push->top);
    add(text, " --pull-values %ubit", pull->bits);
    if (pull->psi > 0) add(text, " --pull-filter psi=%g", pull->psi);
    if (p->filters.pull_cached) add(text, " --pull-cached");
    return text;
}

static json_t *filter_json(const struct drps_target_pilot *p)
{
    char options[DRPS_TARGET_TEXT];
    return json_pack("{s:s, s:o, s:b, s:I, s:f}", "options",
                     p->rung ? drps_target_settings(p, options) : "", "loss",
                     drps_json_real(p->loss), "within", p->is_within, "sent_bytes",
                     (json_int_t)p->bytes, "seconds", p->seconds);
}

json_t *drps_target_json(const struct drps_target *t)
{
    char options[DRPS_TARGET_TEXT];
    const struct drps_target_pilot *p = &t->pilots[t->chosen];
    if (t->resumes) return json_pack("{s:f, s:b}", "share", t->share, "resumed", 1);
    json_t *list = json_array();
    for (size_t i = 0; list && i < t->pilots_n; i++)
        if (json_array_append_new(list, filter_json(&t->pilots[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return json_pack("{s:f, s:b, s:s, s:s, s:I, s:I, s:f, s:o}", "share", t->share, "resumed", 0,
                     "options", t->chosen ? drps_target_settings(p, options) : "", "measure",
                     measures[t->measure], "rounds", (json_int_t)t->rounds, "pilots_sent_bytes",
                     (json_int_t)drps_target_bytes(t), "pilots_seconds", drps_target_seconds(t),
                     "pilots", list);
}

/* ---- Rates ---- */

double drps_rates_seconds(const struct drps_rates *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->tried_n; i++)
        sum += r->tried[i].seconds;
    return sum;
}

static json_t *rate_json(const struct drps_rate *rate)
{
    char text[DRPS_RATE_BYTES];
    return json_pack("{s:s, s:o, s:f}", "lr", drps_rate_text(rate->lr, text), "loss",
                     drps_json_real(rate->loss), "seconds", rate->seconds);
}

json_t *drps_rates_json(const struct drps_rates *r)
{
    char text[DRPS_RATE_BYTES];
    if (r->resumes) return json_pack("{s:b}", "resumed", 1);
    json_t *list = json_array();
    for (size_t i = 0; list && i < r->tried_n; i++)
        if (json_array_append_new(list, rate_json(&r->tried[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return json_pack("{s:b, s:s, s:s, s:I, s:f, s:o}", "resumed", 0, "lr",
                     drps_rate_text(r->tried[r->chosen].lr, text), "measure",
                     drps_target_measure_name(r->measure), "batches", (json_int_t)r->rounds,
                     "pilots_seconds", drps_rates_seconds(r), "pilots", list);
}
