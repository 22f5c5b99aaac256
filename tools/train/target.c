/* What is said of filters that are chosen by pilots, and the options that stand for them. */
#include "tools/train/target.h"

#include <math.h>
#include <stdio.h>

#include "base/drps_size.h"

enum { SIZE_BYTES = 32 };

static double percent(double loss, double plain)
{
    return 100 * (loss - plain) / fabs(plain);
}

static void print_pilot(const struct drps_target *t, const struct drps_target_pilot *p)
{
    const double plain = t->pilots[0].loss;
    char options[DRPS_TARGET_TEXT], bytes[SIZE_BYTES];
    printf("pilot %zu   %s: ", t->pilots_n, drps_target_settings(p, options));
    if (isfinite(p->loss))
        printf("%s %.6f", drps_target_measure_name(t->measure), p->loss);
    else
        printf("training diverged");
    if (p->rung && isfinite(p->loss)) printf(" (%+.3f %%)", percent(p->loss, plain));
    printf(", %s sent", drps_size_format(p->bytes, bytes, sizeof(bytes)));
    if (p->rung) printf(p->is_within ? "; near enough" : "; too far off");
    printf("\n");
}

static double saved_percent(const struct drps_target *t)
{
    const double plain = (double)t->pilots[0].bytes;
    return plain > 0 ? 100 * (1 - (double)t->pilots[t->chosen].bytes / plain) : 0;
}

static void print_choice(const struct drps_target *t)
{
    const struct drps_target_pilot *p = &t->pilots[t->chosen];
    char options[DRPS_TARGET_TEXT], all[SIZE_BYTES];
    if (t->chosen)
        printf("filters   %s: %s %.6f beside %.6f without, and %.1f %% of the bytes are saved",
               drps_target_settings(p, options), drps_target_measure_name(t->measure), p->loss,
               t->pilots[0].loss, saved_percent(t));
    else
        printf("filters   none: all that were tried change the %s by more than %g %%",
               drps_target_measure_name(t->measure), 100 * t->share);
    printf("; %s of %s took %.1f s and %s\n\n", drps_cli_counted(t->pilots_n, "pilot"),
           drps_cli_counted(t->rounds, "round"), drps_target_seconds(t),
           drps_size_format(drps_target_bytes(t), all, sizeof(all)));
}

int train_target_is_told(const struct train_target *job)
{
    const struct drps_ranks_options *ranks = &job->options->ranks;
    return !job->cli->json && job->cli->log.level >= DRPS_LOG_INFO &&
           !(drps_ranks_is_one(ranks) && ranks->rank);
}

static void show_pilot(void *ctx, const struct drps_target *t)
{
    const struct train_target *job = ctx;
    drps_cli_progress_end(job->cli);
    if (!train_target_is_told(job)) return;
    print_pilot(t, &t->pilots[t->pilots_n - 1]);
    (void)fflush(stdout); /* a failure is told at the end of main */
}

static int run_pilot(void *ctx, const struct drps_train_options *options,
                     struct drps_train_result *result, struct drps_err *err)
{
    const struct train_target *job = ctx;
    return job->run(job->ctx, options, result, err);
}

int train_target_find(const struct train_target *job, struct drps_target *out, struct drps_err *err)
{
    struct train_options *o = job->options;
    struct train_target pilots = *job;
    const struct drps_target_options options = {.train = &o->settings.train,
                                                .plan = job->plan,
                                                .share = o->settings.filter_target,
                                                .run = run_pilot,
                                                .on_pilot = show_pilot,
                                                .ctx = &pilots};
    int rc = drps_target_find(&options, out, err);
    drps_cli_progress_end(job->cli);
    if (rc < 0) return rc;
    drps_target_apply(out, &o->settings.train);
    if (train_target_is_told(job) && !out->resumes) print_choice(out);
    return 0;
}
