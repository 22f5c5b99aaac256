/* Where choices are placed among items that were drawn against them (drps_ranking.h). */
#include <math.h>

#include "engine/model/ranking/drps_ranking.h"

double drps_ranked_add(struct drps_ranked_sums *sums, const float *ranked, const float *weights,
                       size_t samples)
{
    double loss = 0;
    for (size_t s = 0; s < samples; s++) {
        const float *of = ranked + s * DRPS_RANKED;
        const double weight = weights ? (double)weights[s] : 1;
        const double place = (double)of[DRPS_RANKED_PLACE];
        loss += weight * (double)of[DRPS_RANKED_LOSS];
        sums->auc += weight * (1 - place / (double)of[DRPS_RANKED_NEGATIVES]);
        if (!(place < DRPS_RANKED_CUT)) continue;
        sums->recall += weight;
        sums->ndcg += weight / log2(2 + place);
    }
    return loss;
}
