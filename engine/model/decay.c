/* The learning rate of an epoch: in double, so that it is the same wherever it is asked for. */
#include "engine/model/drps_decay.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

static const char *const names[DRPS_DECAYS] = {[DRPS_DECAY_USUAL] = "constant",
                                               [DRPS_DECAY_CONSTANT] = "constant",
                                               [DRPS_DECAY_INVERSE] = "inverse",
                                               [DRPS_DECAY_SQRT] = "sqrt",
                                               [DRPS_DECAY_COSINE] = "cosine"};

const char *drps_decay_name(enum drps_decay decay)
{
    return names[decay];
}

int drps_decay_find(const char *name, enum drps_decay *out)
{
    for (int i = DRPS_DECAY_CONSTANT; i < DRPS_DECAYS; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum drps_decay)i;
            return 1;
        }
    return 0;
}

float drps_decay_rate(enum drps_decay decay, float rate, uint64_t e, uint64_t epochs)
{
    const double n = (double)(e < epochs ? e : epochs);
    switch (decay) {
    case DRPS_DECAY_INVERSE:
        return (float)((double)rate / n);
    case DRPS_DECAY_SQRT:
        return (float)((double)rate / sqrt(n));
    case DRPS_DECAY_COSINE:
        return (float)((double)rate * (1 + cos(PI * (n - 1) / (double)epochs)) / 2);
    default:
        return rate;
    }
}
