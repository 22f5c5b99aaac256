/*
 * Gradients of layers as the vectors whose outer products they are, between ranks that each have a
 * copy of a net's own parameters (docs/nets.md). The gradient of the matrix W [N][w] of a full
 * layer, or of the two of lstm together, is the sum over samples of delta x^T
 * (engine/model/layers/drps_layers_vectors.h). An all-reduce moves it as w N floats; each rank can
 * send all others w + N floats of each of its samples instead, and compute the products of the
 * others' samples.
 *
 * The products of a rank are made of the chunks and by the calls that it has made its own gradient
 * of, and ranks' products are added in the order of ranks, beginning with 0: the bits are those of
 * an all-reduce in order, on processors for which OpenBLAS has the same kernels
 * (drps_blas_kind()).
 *
 * Source: Xie et al., "Lighter-Communication Distributed Machine Learning via Sufficient Factor
 * Broadcasting" (UAI 2016); by layer Zhang et al., "Poseidon" (USENIX ATC 2017).
 */
#ifndef DRPS_ENGINE_CLUSTER_OUTER_H
#define DRPS_ENGINE_CLUSTER_OUTER_H

#include "engine/drps_engine.h"
#include "engine/model/layers/drps_layers_vectors.h"
#include "engine/step/drps_worker.h"
#include "net/drps_net.h"

/* ---- Which layers: choose.c ---- */

/*
 * Choose among such layers of a net with its widths, for so many ranks with batches of at most
 * `samples` samples, P and B:
 *
 *   bytes  a layer's vectors are fewer bytes than its share of the all-reduce:
 *          (P - 1) B (w + N) < 2 (P - 1) / P  w N
 *   time   a rank also computes for P - 1 others, B w N multiplications with additions each, and
 *          adds w N floats. On a link of 1 Gbit/s, 8 ns a byte, a core does 200 of the former in
 *          the time of a byte, or zeroes and adds 16 of the latter; all these bytes must be fewer,
 *          and over all layers by more than the all-gather's step takes (drps_allreduce.h)
 */
enum drps_outer_rule { DRPS_OUTER_BYTES, DRPS_OUTER_TIME };
void drps_outer_choose(const struct drps_layers *l, uint32_t ranks, uint64_t samples,
                       enum drps_outer_rule rule, struct drps_outer_choice *out);

/* Returns how long they take, as drps_net_allreduce_cost() counts; 0 of no layers. */
uint64_t drps_outer_cost(const struct drps_outer_choice *c, uint32_t ranks, uint64_t samples);

/* Returns how many floats W of the layers has together. */
uint64_t drps_outer_floats(const struct drps_outer_choice *c);

/* Move the other ones of values [n] to `rest`, one after another; or back from there. Returns how
 * many they are. */
enum drps_outer_move { DRPS_OUTER_OUT, DRPS_OUTER_BACK };
size_t drps_outer_move_rest(const struct drps_outer_choice *c, size_t n, float *values, float *rest,
                            enum drps_outer_move move);

/* Returns about the bytes of a rank's message with so many samples, and at most those of any with
 * no more: zeros may be left out. */
uint64_t drps_outer_message_bytes(const struct drps_outer_choice *c, uint64_t samples);

/* Returns the memory that drps_outer_open() takes, with messages under way. */
uint64_t drps_outer_memory(const struct drps_outer_choice *c, uint32_t ranks, uint64_t samples,
                           unsigned members);

/* ---- Rounds: outer.c ---- */

struct drps_outer; /* opaque */

struct drps_outer_job {
    struct drps_outer_choice choice; /* of one layer at least */
    struct drps_net *net;            /* borrowed, as is the worker */
    struct drps_worker *worker;      /* started; of a net */
    uint64_t samples;                /* of any rank's batch, at most */
    uint32_t wait_ms;                /* for a message */
};
DRPS_MUST_CHECK
int drps_outer_open(const struct drps_outer_job *job, struct drps_outer **outer_out,
                    struct drps_err *err);
void drps_outer_close(struct drps_outer *outer); /* NULL-safe; half-built too */

/* Where gradients leave vectors: the worker's model points there while it computes one. */
const struct drps_layers_vectors *drps_outer_keeps(const struct drps_outer *outer);

/* All ranks, after their gradients of the round, and in the same order as other calls of the group:
 * send and receive vectors. DRPS_E_PROTO: a message fits no batch; and the errors of
 * drps_net_allgather(). */
DRPS_MUST_CHECK
int drps_outer_exchange(struct drps_outer *outer, uint64_t round, struct drps_err *err);

/* After it: W of the chosen layers in worker->grads[0] becomes the sums of all ranks. The other
 * members' gradients are no more. */
void drps_outer_add(struct drps_outer *outer);

/* What was sent and received so far; `each`: to each of the others. */
struct drps_outer_bytes {
    uint64_t each, received;
};
struct drps_outer_bytes drps_outer_bytes(const struct drps_outer *outer);

#endif
