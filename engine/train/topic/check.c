/* A topic model is refused what it cannot do, before anything is computed. */
#include "engine/train/topic/drps_topic_check.h"

#include <math.h>

static int is_of_topics(const struct drps_plan *plan)
{
    const struct drps_algorithm *a = drps_algorithm_find(plan->info.algo);
    return a && drps_algorithm_is_topic(a);
}

int drps_topic_check_optimizer(const struct drps_plan *plan, const struct drps_optim *optim,
                               struct drps_err *err)
{
    const int is_topic = is_of_topics(plan);
    const int alternates = optim->kind == DRPS_OPTIM_ALTERNATING;
    if (alternates == is_topic) return 0;
    if (is_topic)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is a plan for topics, which are trained by alternating "
                            "minimisation: leave the optimizer %s out",
                            plan->dir, drps_optim_name(optim->kind));
    return drps_err_set(err, DRPS_E_CONFIG,
                        "alternating minimisation is for topics, and %s is a plan for %s: name "
                        "another optimizer",
                        plan->dir, plan->info.algo);
}

int drps_topic_check(const struct drps_plan *plan, const struct drps_train_options *o,
                     struct drps_err *err)
{
    const struct {
        int given;
        const char *what, *why;
    } options[] = {
        {o->lr > 0, "a learning rate does", "each step goes to the best codes and dictionary"},
        {o->eps > 0, "eps does", "that is adagrad's"},
        {o->local_steps, "local steps do", "a step codes documents on one dictionary"},
        {o->patience > 0, "patience does", "the objective does not rise: give fewer epochs"},
        {o->from != NULL, "rows of another model do", "a dictionary has no sums to go on with"},
        {o->one_by_one || plan->info.lanes > 1, "lanes do", "all documents change the same sums"},
        {o->emulate != NULL, "emulated times do", "they are of gradients"},
        {o->sync != DRPS_SCHED_BSP, "asynchronous rounds do",
         "ranks code documents on the same dictionary"},
        {o->push.on || o->pull.on || o->pull_cached || o->pilot.on, "filters of traffic do",
         "the dictionary is of all words and codes, to the last bit"},
        {plan->info.ranks.handed.slots && !o->no_hand_on, "rows that are handed on do",
         "servers add up what words gain; make a plan without"},
    };
    if (!is_of_topics(plan)) return 0;
    if ((o->asked & DRPS_ASKED_L2) && !(o->l2 > 0))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "the penalty l2 of a topic model's dictionary must be above 0 (default %g)",
            (double)DRPS_TOPIC_RHO);
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        if (options[i].given)
            return drps_err_set(err, DRPS_E_CONFIG, "%s not go with topics: %s", options[i].what,
                                options[i].why);
    return 0;
}
