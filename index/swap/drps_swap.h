/*
 * Streams between the machines of a run: each rank writes bytes for every rank, itself included,
 * and then reads what all have written for it. Shared inside index/.
 *
 * What comes is written to a file for each sender by a thread, while this rank still writes. So no
 * rank waits for another but at the end, and memory is bounded: a message of SWAP_MESSAGE_BYTES for
 * each receiver, and what the net holds (drps_net.h).
 *
 *     open on all ranks, in the same order -> put ... -> end -> take ... -> close
 */
#ifndef DRPS_INDEX_SWAP_SWAP_H
#define DRPS_INDEX_SWAP_SWAP_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "net/drps_net.h"

enum { SWAP_MESSAGE_BYTES = 32 << 10, SWAP_QUEUE = 8 };

/* The ranks of a run, as one of them sees the others. */
struct swap_ranks {
    const struct drps_io *io;
    struct drps_net *net; /* borrowed; opened with drps_swap_net_options(). drps_net_stop() ends
                             what waits for other ranks */
    const char *dir;      /* folder for streams */
    uint32_t rank, count;
    uint32_t files; /* of streams so far; 0 at first */
    /* How far this rank is with reading, for progress (index/together/progress.c). */
    atomic_uint_least64_t read_bytes, read_before; /* of the files at hand, and of those before */
    uint64_t forecast_bytes; /* what sent_bytes will be at the end, about; 0: not known */
    uint64_t sent_bytes; /* to others, of all streams that have ended; the caller may set it to 0 */
};

struct swap; /* opaque */

/* Set the sizes of messages and queues that streams need; all other options are the caller's. */
void drps_swap_net_options(struct drps_net_options *out);

/* Streams are the files from-0, from-1 ... of ranks->dir. */
DRPS_MUST_CHECK
int drps_swap_open(struct swap_ranks *ranks, struct swap **s_out, struct drps_err *err);

/* Append n bytes to the stream for rank `to`. */
DRPS_MUST_CHECK
int drps_swap_put(struct swap *s, uint32_t to, const void *bytes, size_t n, struct drps_err *err);

/* No more is written. Returns when all ranks have all of their streams. DRPS_E_PEER and others: a
 * rank has failed; the text names it. DRPS_E_INTERRUPTED. */
DRPS_MUST_CHECK
int drps_swap_end(struct swap *s, struct drps_err *err);

/* Returns the bytes from rank `from` that are not taken yet; after drps_swap_end(). */
uint64_t drps_swap_left(const struct swap *s, uint32_t from);

/* The next n bytes from rank `from`. DRPS_E_PROTO: it has written fewer; the text names it. */
DRPS_MUST_CHECK
int drps_swap_take(struct swap *s, uint32_t from, void *bytes, size_t n, struct drps_err *err);

/* DRPS_E_PROTO: bytes are left that nobody has taken; the text names who sent them. */
DRPS_MUST_CHECK
int drps_swap_all_taken(const struct swap *s, struct drps_err *err);

/* Open streams, write the same n bytes for every rank, and end them. */
DRPS_MUST_CHECK
int drps_swap_share(struct swap_ranks *ranks, const void *bytes, size_t n, struct swap **s_out,
                    struct drps_err *err);

/* Rank `from` has sent what it should not: sets DRPS_E_PROTO, with its name and `what`. */
int drps_swap_fault(uint32_t from, const char *what, struct drps_err *err);

/* Take all streams once more, from their first bytes on. */
void drps_swap_rewind(struct swap *s);

/* Remove the files. NULL-safe. */
void drps_swap_close(struct swap *s);

/* Gather numbers of all ranks: mine [n] are this one's. *all_out is set to a new array [count][n],
 * free() it; NULL after a failure. count * n is at most 131,072. */
DRPS_MUST_CHECK
int drps_swap_gather(const struct swap_ranks *ranks, const uint64_t *mine, size_t n,
                     uint64_t **all_out, struct drps_err *err);

#endif
