/*
 * Dynamic placement: which machine holds which parameters of a dense net, found again and again
 * while it trains.
 *
 * Source: "Accelerating Distributed Machine Learning with Model Compression and Graph Partition",
 * section 5, Algorithms 3 and 4. Of a net nobody knows before training which parameters a sample
 * changes. It is estimated by the samples that were trained most recently and are most like it.
 * Parameters then go, a few at a time, from the machine with the most traffic to the one with the
 * least, as long as that saves more than moving them costs. Parameters of small magnitude are
 * pruned: these are neither pulled nor pushed, nor moved.
 *
 *   a sample was trained  --drps_dynamic_changed()--> units that it changed
 *                         --drps_recent_add()-------> the recent samples
 *   the coming batch      --drps_correlation_new()--> which sample changes which unit (Algorithm 3)
 *                         --drps_demands_new()------> which machine needs how much of each unit
 *                         --drps_reallocate()-------> owner of each unit (Algorithm 4)
 *
 * Letters: N samples of a batch, U units, W machines (the paper's k), X numbers of a sample, r
 * nearest samples, f(d, p) the weight of the edge of sample d and unit p. Parameters are the
 * measure of all traffic: a unit that is pulled and pushed once counts as often as it has
 * parameters that are not pruned; so does moving it.
 *
 * A *unit* is a run of parameters that stay together. In the paper each parameter is one; a
 * neuron's incoming weights, or some of them, make a net of its size quick to place.
 *
 * Pure functions, apart from the recent samples, which have an owner. Everything is deterministic.
 */
#ifndef DRPS_PARTITION_DYNAMIC_H
#define DRPS_PARTITION_DYNAMIC_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* ---- Units and pruning ------------------------------------------------------------------------
 */

/*
 * Cut runs of parameters into units of at most `most` parameters, as equal as they can be. No unit
 * has parameters of two runs.
 *
 * runs       [n + 1] run i has the parameters runs[i] .. runs[i + 1] - 1; runs[0] = 0, none falls
 * first_out  [U + 1] unit u has the parameters first[u] .. first[u + 1] - 1; NULL: only count
 * Returns U; 0 where there is nothing to cut, or where most is 0.
 */
size_t drps_dynamic_cut(const uint32_t *runs, size_t n, uint32_t most, uint32_t *first_out);

/*
 * Prune parameters by magnitude.
 *
 * pruned  [n] is set to 1 where |params[i]| < least. What is 1 stays 1: a pruned parameter does not
 *         come back
 * Returns how many are pruned in all.
 */
size_t drps_dynamic_prune(const float *params, size_t n, float least, uint8_t *pruned);

/* Count the parameters of each unit that are not pruned. pruned NULL: none is. size_out [U]. */
void drps_dynamic_sizes(const uint32_t *first, size_t units, const uint8_t *pruned,
                        uint32_t *size_out);

/*
 * Find the units that a sample has changed: those with a parameter, not pruned, that changed by
 * more than `least` (the paper's epsilon). A change that is not a number counts.
 *
 * change       [first[U]] of each parameter
 * changed_out  [U] caller-owned
 * Returns how many units these are.
 */
size_t drps_dynamic_changed(const float *change, const uint8_t *pruned, const uint32_t *first,
                            size_t units, float least, uint32_t *changed_out);

/* ---- Recent samples ---------------------------------------------------------------------------
 */

/* The samples that were trained most recently, with the units that each changed. Opaque, own;
 * drps_recent_free() it. One thread at a time. */
struct drps_recent;

struct drps_recent_options {
    uint32_t width;        /* X, 1 or more */
    uint32_t units;        /* U, 1 or more */
    uint32_t samples;      /* at most so many, 1 or more */
    uint64_t memory_bytes; /* as many as fit this: 4 X + U / 8 + 16 bytes each; 0: no bound */
};

/* Returns 0 or
 *   DRPS_E_CONFIG         width, units or samples is 0
 *   DRPS_E_MEMORY_BUDGET  not one sample fits
 *   -ENOMEM */
DRPS_MUST_CHECK
int drps_recent_new(const struct drps_recent_options *o, struct drps_recent **out,
                    struct drps_err *err);
void drps_recent_free(struct drps_recent *r);

/* How many samples there are now, and how many there can be. */
uint32_t drps_recent_count(const struct drps_recent *r);
uint32_t drps_recent_most(const struct drps_recent *r);

/*
 * A sample was trained. It takes the place of its own earlier entry, or where there is no room, of
 * the sample that was trained longest ago. Being found as a neighbour is no use: it would keep
 * samples of parameters that have changed since, and the paper wants them fresh.
 *
 * sample  any number of its own
 * x       [X] its values
 * changed [n] units, in any order, some perhaps twice
 * Returns 0, or -EINVAL with nothing changed: a value is not finite, or there is no such unit.
 */
DRPS_MUST_CHECK
int drps_recent_add(struct drps_recent *r, uint64_t sample, const float *x, const uint32_t *changed,
                    size_t n, struct drps_err *err);

struct drps_near {
    double distance; /* Euclidean */
    uint64_t sample;
    uint32_t at; /* its place in the memory of recent samples */
};

/*
 * Find the samples that are nearest to x, nearest first; of equal ones the more recent first.
 *
 * x         [X], finite
 * near_out  [most] caller-owned
 * Returns how many there are: most, or all recent samples.
 */
uint32_t drps_recent_nearest(const struct drps_recent *r, const float *x, uint32_t most,
                             struct drps_near *near_out);

/* ---- Correlation: Algorithm 3 -----------------------------------------------------------------
 */

struct drps_correlation_options {
    uint32_t nearest; /* r, 1 or more */
    double least;     /* c: there is an edge where f > c; 0 or more */
    /*
     * 0: f(d, p) = sum s_l q_l / sum s_l. It is 1 where all neighbours changed p and 0 where none
     *    did: what the text says of it, and what a probability is.
     * 1: the formula as it is printed, which divides by r, too. It is 1 / r where all changed p, so
     *    that a c above 1 / r leaves no edge.
     * s_l is 1 / distance of neighbour l; q_l is 1 where it changed p, and 0 otherwise. Neighbours
     * at distance 0 are infinitely similar: where there are some, they alone count, each as 1. r is
     * the number of neighbours found where there are fewer recent samples.
     */
    int printed;
};

/* Edges of each sample; own arrays, drps_correlation_destroy() it. */
struct drps_correlation {
    size_t n;       /* N */
    uint32_t units; /* U */
    size_t *starts; /* [N + 1] sample d has the edges starts[d] .. starts[d + 1] - 1 */
    uint32_t *unit; /* [starts[N]] of a sample rising */
    double *weight; /* [starts[N]] f, in (0, 1] */
};

/*
 * Estimate which units the samples of the coming batch will change. Without recent samples there
 * are no edges. Takes N times the recent samples times X multiplications.
 *
 * x  [N][X], finite
 * Returns 0 or
 *   DRPS_E_CONFIG  options out of range
 *   -EINVAL        a value is not finite; the text names the sample
 *   -ENOMEM
 */
DRPS_MUST_CHECK
int drps_correlation_new(const struct drps_recent *r, const float *x, size_t n,
                         const struct drps_correlation_options *o, struct drps_correlation *out,
                         struct drps_err *err);
void drps_correlation_destroy(struct drps_correlation *c);

/* ---- Demands ----------------------------------------------------------------------------------
 */

struct drps_demand {
    uint32_t machine;
    double amount; /* parameters a round, 0 or more, finite */
};

/* What machines need. Arrays made by drps_demands_new() are own, drps_demands_destroy() it; a
 * caller's own are borrowed. */
struct drps_demands {
    size_t n;                   /* U, below UINT32_MAX */
    uint32_t machines;          /* W, 1 .. DRPS_MACHINES_MAX */
    const uint32_t *size;       /* [U] parameters that are not pruned; borrowed */
    size_t *starts;             /* [U + 1] starts[0] = 0 */
    struct drps_demand *demand; /* [starts[U]] of a unit by rising machine */
};

/*
 * Add up the edges by machine: what machine i needs of unit p is size_p times
 *
 *   once 0: the sum of f(d, p) over its samples. The paper's cost: the sum of edges' weights
 *   once 1: 1 - product of (1 - f(d, p)), the chance that one of its samples needs p, as a machine
 *           pulls and pushes a unit once a round for all of them
 *
 * owner  [N] machine of each sample
 * size   [U] borrowed until the demands are destroyed; of a unit of size 0 nothing is needed
 * Returns 0, DRPS_E_CONFIG (no machines, or too many), -EINVAL (an owner that is no machine) or
 * -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_demands_new(const struct drps_correlation *c, const uint32_t *owner, const uint32_t *size,
                     uint32_t machines, int once, struct drps_demands *out, struct drps_err *err);
void drps_demands_destroy(struct drps_demands *d);

/* ---- Reallocation: Algorithm 4 ----------------------------------------------------------------
 */

/* What a machine's load is. */
enum drps_dynamic_load {
    /* Eq. (1): what its samples need of others' units, and what others' samples need of its own. Of
     * two machines both have the same load then, so that nothing moves. */
    DRPS_LOAD_NETWORK,
    /* f(D_t, P_j), as Algorithm 4 prints it: what all samples need of its units, those of its own
     * worker, too, which do not cross the network. */
    DRPS_LOAD_HELD,
};

/* load_out [W] caller-owned: parameters a round; owner [U], each below W. */
void drps_dynamic_loads(const struct drps_demands *d, const uint32_t *owner,
                        enum drps_dynamic_load what, double *load_out);

/* The trigger: does the largest load exceed the smallest by more than `threshold`? load [W], one
 * at least. */
int drps_dynamic_uneven(const double *load, uint32_t machines, double threshold);

struct drps_reallocate_options {
    enum drps_dynamic_load load;
    /* How many rounds like this one the new placement serves: so often is the gain had, and once
     * the cost of moving. 0: 1, as printed. */
    double rounds;
    /*
     * 0: stop at the first move that costs more than it gains, as printed. As a gain ends where the
     * second largest load begins, that is early where several loads are large.
     * More: make up to so many such moves after each other, and take those back that do not pay
     * together.
     */
    uint32_t ahead;
    uint64_t most_moves; /* 0: no bound */
    int plain;           /* 1: find p* by looking at all units of the machine; same result */
};

struct drps_reallocation {
    uint64_t moves;       /* of units */
    uint64_t moved;       /* parameters that have another owner than before */
    double before, after; /* the largest load */
};

/*
 * Algorithm 4. While it pays, move the unit p* from the machine with the largest load to the one
 * with the smallest after which the two differ least. Of equal machines and units the one of the
 * smallest number is taken. A move pays where rounds * the fall of the largest load of all machines
 * is at least the unit's size. So rounds * after + moved is never above rounds * before.
 *
 * owner  [U] is changed
 * Takes a logarithm of U a move where loads are DRPS_LOAD_HELD; for DRPS_LOAD_NETWORK also the
 * units that can compete with p*. Memory: 28 bytes a unit, and 12 a machine.
 * Returns 0 or, with owner as it was,
 *   DRPS_E_CONFIG  options out of range
 *   -EINVAL        demands that contradict their comments, or an owner that is no machine
 *   -ENOMEM
 */
DRPS_MUST_CHECK
int drps_reallocate(const struct drps_demands *d, const struct drps_reallocate_options *o,
                    uint32_t *owner, struct drps_reallocation *out, struct drps_err *err);

#endif
