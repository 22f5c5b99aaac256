/* What is said of learning rates that are tried by pilots, and the option that stands for the best.
 */
#include "tools/train/rates.h"

#include <math.h>
#include <stdio.h>

static const char *rate_of(const struct drps_rate *rate, char text[DRPS_RATE_BYTES])
{
    return drps_rate_text(rate->lr, text);
}

/* ---- Text ---- */

static void print_pilot(const struct drps_rates *r, size_t i)
{
    char rate[DRPS_RATE_BYTES];
    printf("pilot %zu   --lr %s: ", i + 1, rate_of(&r->tried[i], rate));
    if (isfinite(r->tried[i].loss))
        printf("%s %.6f\n", train_measure_name(r->measure), r->tried[i].loss);
    else
        printf("training diverged\n");
}

static double seconds_of(const struct drps_rates *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->tried_n; i++)
        sum += r->tried[i].seconds;
    return sum;
}

static void print_choice(const struct drps_rates *r)
{
    const struct drps_rate *best = &r->tried[r->chosen];
    char rate[DRPS_RATE_BYTES];
    printf(
        "rate      --lr %s: %s %.6f, the least of %zu that were tried, with %llu batches each in "
        "%.1f s\n\n",
        rate_of(best, rate), train_measure_name(r->measure), best->loss, r->tried_n,
        (unsigned long long)r->rounds, seconds_of(r));
}

static void show_pilot(void *ctx, const struct drps_rates *r)
{
    const struct train_target *job = ctx;
    drps_cli_progress_end(job->cli);
    if (!train_target_is_told(job)) return;
    print_pilot(r, r->tried_n - 1);
    (void)fflush(stdout); /* a failure is told at the end of main */
}

static int run_pilot(void *ctx, const struct drps_train_options *options,
                     struct drps_train_result *result, struct drps_err *err)
{
    const struct train_target *job = ctx;
    return job->run(job->ctx, options, result, err);
}

int train_rates_find(const struct train_target *job, struct drps_rates *out, struct drps_err *err)
{
    struct train_target pilots = *job;
    const struct drps_rates_options options = {.train = &job->options->train,
                                               .plan = job->plan,
                                               .run = run_pilot,
                                               .on_pilot = show_pilot,
                                               .ctx = &pilots};
    int rc = drps_rates_find(&options, out, err);
    drps_cli_progress_end(job->cli);
    if (rc < 0 || out->resumes) return rc;
    job->options->train.lr = out->tried[out->chosen].lr;
    if (train_target_is_told(job)) print_choice(out);
    return 0;
}

/* ---- JSON ---- */

static json_t *pilot_json(const struct drps_rate *rate)
{
    char text[DRPS_RATE_BYTES];
    return json_pack("{s:s, s:o, s:f}", "lr", rate_of(rate, text), "loss",
                     drps_cli_json_real(rate->loss), "seconds", rate->seconds);
}

json_t *train_rates_json(const struct drps_rates *r)
{
    char text[DRPS_RATE_BYTES];
    if (r->resumes) return json_pack("{s:b}", "resumed", 1);
    json_t *list = json_array();
    for (size_t i = 0; list && i < r->tried_n; i++)
        if (json_array_append_new(list, pilot_json(&r->tried[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return json_pack("{s:b, s:s, s:s, s:I, s:f, s:o}", "resumed", 0, "lr",
                     rate_of(&r->tried[r->chosen], text), "measure", train_measure_name(r->measure),
                     "batches", (json_int_t)r->rounds, "pilots_seconds", seconds_of(r), "pilots",
                     list);
}
