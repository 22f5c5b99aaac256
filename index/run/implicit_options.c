/* Options of implicit feedback: checked, and defaults filled in. */
#include <math.h>
#include <string.h>

#include "index/run/run.h"

enum { TEST_NEGATIVES = 100, WARP_NEGATIVES = 10, WMF_NEGATIVES = 20, DRAWS_MOST = 1000 };

#define ALPHA_MOST 1e6
#define WEIGHT_MOST 1e6

int drps_run_draws_popular(const struct drps_index_options *o)
{
    return o->implicit.by && strcmp(o->implicit.by, "popular") == 0;
}

/* Refuses options of implicit feedback where the algorithm draws no negatives. */
static int check_none(const struct drps_index_options *o, struct drps_err *err)
{
    const struct drps_implicit_options *i = &o->implicit;
    if (!i->each && !i->test && !i->draws && !i->by && !i->has_least && !i->has_alpha &&
        i->weight == 0 && !i->weight_all)
        return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "negatives and what is a choice are of implicit feedback: the algorithms "
                        "bpr, warp and wmf, not %s",
                        o->algo);
}

static int check_numbers(const struct drps_implicit_options *i, struct drps_err *err)
{
    if (i->each > DRPS_NEGATIVES_MOST || i->test > DRPS_NEGATIVES_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "%u negatives of a sample: at most %d",
                            i->each > i->test ? i->each : i->test, DRPS_NEGATIVES_MOST);
    if (i->draws > DRAWS_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "%u draws of negatives: at most %d", i->draws,
                            DRAWS_MOST);
    if (i->by && strcmp(i->by, "even") != 0 && strcmp(i->by, "popular") != 0)
        return drps_err_set(err, DRPS_E_CONFIG, "negatives are drawn even or popular, not %s",
                            i->by);
    if (!isfinite(i->least) || !(i->alpha >= 0 && i->alpha <= ALPHA_MOST) ||
        !(i->weight >= 0 && i->weight <= WEIGHT_MOST))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "alpha %g, a weight of negatives of %g, a least rating of %g: give "
                            "finite numbers, alpha and weight between 0 and 1e6",
                            i->alpha, i->weight, i->least);
    return 0;
}

/* Refuses options that would have no effect. */
static int check_in_vain(const struct drps_index_options *o, struct drps_err *err)
{
    if (o->implicit.test && !o->tests_n && o->test_fraction <= 0 && !o->from_plan)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "negatives of test samples, but there is no test data: name a file of "
                            "it, or the share of samples for tests");
    if (o->task && strcmp(o->task, "auto") != 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the task %s: the algorithm %s ranks items, and has no choice of a "
                            "task",
                            o->task, o->algo);
    return 0;
}

int drps_run_check_implicit(struct drps_index_options *o, struct drps_err *err)
{
    struct drps_implicit_options *i = &o->implicit;
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    const int is_wmf = a->algo == DRPS_ALGO_WMF;
    if (!drps_algorithm_draws(a)) return check_none(o, err);
    int rc = check_numbers(i, err);
    if (rc == 0) rc = check_in_vain(o, err);
    if (rc < 0) return rc;
    if (!is_wmf && (i->has_alpha || i->weight > 0 || i->weight_all))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "alpha and the weight of negatives are of wmf, where choices have a "
                            "confidence: leave them out with %s",
                            a->name);
    o->no_bias = 1;
    if (!i->each) i->each = is_wmf ? WMF_NEGATIVES : a->algo == DRPS_ALGO_WARP ? WARP_NEGATIVES : 1;
    if (!i->test) i->test = TEST_NEGATIVES;
    if (!i->draws) i->draws = 1;
    if (is_wmf && !i->has_alpha) i->alpha = 1;
    if (i->weight_all && i->weight > 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "negatives weigh %g, or as many as all others: choose one", i->weight);
    if (is_wmf && i->weight == 0 && !i->weight_all) i->weight = i->each;
    return 0;
}
