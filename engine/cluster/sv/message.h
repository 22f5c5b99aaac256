/*
 * What a rank sends all others in a round, with 8-byte alignment throughout:
 *
 *   head     u32 n, bytes of the list, bytes of the body, 0
 *   values   float32 [n][dim]: vectors: slopes u of the batch's n samples; sparse: the gradient of
 *            the batch's n rows
 *   touches  u32 [n], samples that touch each row: sparse alone, if the optimizer needs them
 *   list     packed: the rows of the batch, as placed ids
 *   body     vectors alone: the batch, as data.rec has it, whose features are the vectors x
 *
 * Private to engine/cluster/sv/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_MESSAGE_H
#define DRPS_ENGINE_CLUSTER_SV_MESSAGE_H

#include "base/drps_checksum.h"
#include "index/plan/drps_plan.h"
#include "net/drps_net.h"

struct sv_message {
    uint32_t n;
    uint32_t dim;
    int is_sparse, has_touches;
    struct drps_piece list, body; /* borrowed */
    float *values;                /* where they lie in the message */
    uint32_t *touches;
};

/* Returns the bytes of a message; of the head and the values alone, and where list and body begin.
 */
size_t sv_message_bytes(const struct sv_message *m);

/* Lay the message out in `out`, aligned to 8, of sv_message_bytes(): writes head, list and body;
 * the caller fills m->values and m->touches, which are set. */
void sv_message_begin(struct sv_message *m, void *out);

/* Point *m, whose dim, is_sparse and has_touches are set, into a message. DRPS_E_PROTO: its parts
 * are not of its size. */
DRPS_MUST_CHECK
int sv_message_read(struct sv_message *m, const struct drps_net_message *from,
                    struct drps_err *err);

/* The list's rows to ids_out [most], below `rows`; *n_out. DRPS_E_PROTO. */
DRPS_MUST_CHECK
int sv_message_ids(const struct sv_message *m, uint64_t rows, size_t most, uint32_t *ids_out,
                   size_t *n_out, struct drps_err *err);

#endif
