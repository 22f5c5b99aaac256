/* What is said of learning rates that are tried by pilots, and the option that stands for the best.
 */
#include "tools/train/rates.h"

#include <math.h>
#include <stdio.h>

static const char *rate_of(const struct drps_rate *rate, char text[DRPS_RATE_BYTES])
{
    return drps_rate_text(rate->lr, text);
}

static void print_pilot(const struct drps_rates *r, size_t i)
{
    char rate[DRPS_RATE_BYTES];
    printf("pilot %zu   --lr %s: ", i + 1, rate_of(&r->tried[i], rate));
    if (isfinite(r->tried[i].loss))
        printf("%s %.6f\n", drps_target_measure_name(r->measure), r->tried[i].loss);
    else
        printf("training diverged\n");
}

static void print_choice(const struct drps_rates *r)
{
    const struct drps_rate *best = &r->tried[r->chosen];
    char rate[DRPS_RATE_BYTES];
    printf("rate      --lr %s: %s %.6f, the least of %zu that were tried, with %s each in "
           "%.1f s\n\n",
           rate_of(best, rate), drps_target_measure_name(r->measure), best->loss, r->tried_n,
           drps_cli_counted(r->rounds, "batch"), drps_rates_seconds(r));
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
    const struct drps_rates_options options = {.train = &job->options->settings.train,
                                               .plan = job->plan,
                                               .run = run_pilot,
                                               .on_pilot = show_pilot,
                                               .ctx = &pilots};
    int rc = drps_rates_find(&options, out, err);
    drps_cli_progress_end(job->cli);
    if (rc < 0 || out->resumes) return rc;
    job->options->settings.train.lr = out->tried[out->chosen].lr;
    if (train_target_is_told(job)) print_choice(out);
    return 0;
}
