/* What is said of filters that are chosen by pilots, and the options that stand for them. */
#include "tools/train/target.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"

enum { OPTIONS_BYTES = 256, SIZE_BYTES = 32 };

static const char *const measures[] = {
    [DRPS_TARGET_TEST_LOSS] = "test loss",
    [DRPS_TARGET_TEST_RMSE] = "test RMSE",
    [DRPS_TARGET_TRAIN_LOSS] = "train loss",
    [DRPS_TARGET_TRAIN_RMSE] = "train RMSE",
};

const char *train_measure_name(enum drps_target_measure measure)
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
    (void)vsnprintf(text + used, OPTIONS_BYTES - used, format, args); /* there is room */
    va_end(args);
}

/* The options that set the same filters by hand. The ladder's numbers have few digits. */
static const char *options_of(const struct drps_target_pilot *p, char text[OPTIONS_BYTES])
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

/* ---- Text ---- */

static double percent(double loss, double plain)
{
    return 100 * (loss - plain) / fabs(plain);
}

static void print_pilot(const struct drps_target *t, const struct drps_target_pilot *p)
{
    const double plain = t->pilots[0].loss;
    char options[OPTIONS_BYTES], bytes[SIZE_BYTES];
    printf("pilot %zu   %s: ", t->pilots_n, options_of(p, options));
    if (isfinite(p->loss))
        printf("%s %.6f", measures[t->measure], p->loss);
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
    char options[OPTIONS_BYTES], all[SIZE_BYTES];
    if (t->chosen)
        printf("filters   %s: %s %.6f beside %.6f without, and %.1f %% of the bytes are saved",
               options_of(p, options), measures[t->measure], p->loss, t->pilots[0].loss,
               saved_percent(t));
    else
        printf("filters   none: all that were tried change the %s by more than %g %%",
               measures[t->measure], 100 * t->share);
    printf("; %zu pilots of %llu rounds took %.1f s and %s\n\n", t->pilots_n,
           (unsigned long long)t->rounds, drps_target_seconds(t),
           drps_size_format(drps_target_bytes(t), all, sizeof(all)));
}

int train_target_is_told(const struct train_target *job)
{
    const struct drps_ranks_options *ranks = &job->options->ranks;
    return !job->cli->json && job->cli->log.level >= DRPS_LOG_INFO &&
           !(ranks->peers && ranks->rank);
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
    const struct drps_target_options options = {.train = &o->train,
                                                .plan = job->plan,
                                                .share = o->filter_target,
                                                .run = run_pilot,
                                                .on_pilot = show_pilot,
                                                .ctx = &pilots};
    int rc = drps_target_find(&options, out, err);
    drps_cli_progress_end(job->cli);
    if (rc < 0) return rc;
    drps_target_apply(out, &o->train);
    if (train_target_is_told(job) && !out->resumes) print_choice(out);
    return 0;
}

/* ---- JSON ---- */

static json_t *pilot_json(const struct drps_target_pilot *p)
{
    char options[OPTIONS_BYTES];
    return json_pack("{s:s, s:o, s:b, s:I, s:f}", "options", p->rung ? options_of(p, options) : "",
                     "loss", drps_cli_json_real(p->loss), "within", p->is_within, "sent_bytes",
                     (json_int_t)p->bytes, "seconds", p->seconds);
}

json_t *train_target_json(const struct drps_target *t)
{
    char options[OPTIONS_BYTES];
    const struct drps_target_pilot *p = &t->pilots[t->chosen];
    if (t->resumes) return json_pack("{s:f, s:b}", "share", t->share, "resumed", 1);
    json_t *list = json_array();
    for (size_t i = 0; list && i < t->pilots_n; i++)
        if (json_array_append_new(list, pilot_json(&t->pilots[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return json_pack("{s:f, s:b, s:s, s:s, s:I, s:I, s:f, s:o}", "share", t->share, "resumed", 0,
                     "options", t->chosen ? options_of(p, options) : "", "measure",
                     measures[t->measure], "rounds", (json_int_t)t->rounds, "pilots_sent_bytes",
                     (json_int_t)drps_target_bytes(t), "pilots_seconds", drps_target_seconds(t),
                     "pilots", list);
}
