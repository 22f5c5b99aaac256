/* The phase that draws negatives of implicit feedback (index/negatives/). Samples get placed ids
 * and roles, and what was counted of them is counted anew. */
#include "index/negatives/drps_negatives.h"
#include "index/run/run.h"

/* Drawing gets one part in so many of the memory that a run has beside its spools. */
enum { MEMORY_SHARE = 3 };
static const double LARGE_CONFIDENCE = 1000;

static struct drps_plan_negatives negatives_of(const struct index_run *r)
{
    const struct drps_implicit_options *o = &r->options.implicit;
    return (struct drps_plan_negatives){.each = o->each,
                                        .test = o->test,
                                        .draws = o->draws,
                                        .by_popularity = drps_run_draws_popular(&r->options),
                                        .alpha = o->alpha,
                                        .weight = o->weight,
                                        .below = r->info->negatives.below};
}

static int check_left(const struct index_run *r, const struct negatives_drawn *drawn,
                      struct drps_err *err)
{
    if (!drawn->samples)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "every user has chosen all %llu items: there is none to be drawn "
                            "against them",
                            (unsigned long long)r->info->tables[r->info->tables_n - 1].rows);
    if (r->options.tests_n && !drawn->test_samples)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "the test input holds no sample whose user and item training has, and "
                            "whose user has not chosen all items");
    return 0;
}

/* Warns of a very large confidence: a wrong column, such as a time, makes choices weigh so much
 * that negatives do not count. */
static void remark_confidence(struct index_run *r, const struct negatives_drawn *drawn)
{
    const double mean = drawn->confidence / (double)drawn->samples;
    if (mean > LARGE_CONFIDENCE)
        drps_remark(&r->result->remarks, r->options.log,
                    "the confidence of a choice, 1 + %g times its rating, is %.3g on average: "
                    "column 3 looks like a time, not a rating or a count; give lines of a user and "
                    "an item alone, or a smaller alpha",
                    r->options.implicit.alpha, mean);
}

int drps_phase_draw(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    struct read_samples *p = &r->parsed;
    struct negatives_drawn drawn;
    struct drps_plan_negatives *n = &info->negatives;
    *n = negatives_of(r);
    const struct negatives_job job = {.io = r->io,
                                      .dir = r->scratch,
                                      .items = info->tables[info->tables_n - 1],
                                      .map = drps_run_map(r),
                                      .confidence = r->options.algorithm->algo == DRPS_ALGO_WMF,
                                      .how = *n,
                                      .samples = info->samples,
                                      .test_samples = info->test_samples,
                                      .seed = info->seed,
                                      .memory_bytes = r->options.memory_bytes / MEMORY_SHARE,
                                      .limit_bytes = r->options.memory_bytes};
    int rc = drps_negatives_draw(&job, &p->train, &p->test, &drawn, err);
    if (rc == 0) rc = check_left(r, &drawn, err);
    if (rc < 0) return rc;
    remark_confidence(r, &drawn);
    n->items = job.items.rows;
    n->few = drawn.few;
    n->test_few = drawn.test_few;
    n->test_new = drawn.test_new;
    info->samples = drawn.samples;
    info->test_samples = drawn.test_samples;
    info->nnz = drawn.nnz;
    p->test_nnz = drawn.test_nnz;
    info->field_count = DRPS_ROLE_NEGATIVE + (n->each > n->test ? n->each : n->test);
    r->drawn = 1;
    return 0;
}
