/* Messages and their payloads: who holds them, and when they are freed. */
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "net/drps_transport.h"

/* From here on malloc() maps fresh memory for every message, and touching it for the first time
 * costs more than filling it, unless its pages are huge. */
enum { PAGES_MIN = 32 << 20 };

struct net_message *drps_net_message_new(uint64_t room)
{
    if (room > SIZE_MAX - sizeof(struct net_message)) return NULL;
    const size_t bytes = sizeof(struct net_message) + (size_t)room;
    struct net_message *m = bytes < PAGES_MIN ? malloc(bytes) : drps_pages_new(bytes);
    if (!m) return NULL;
    memset(m, 0, sizeof(*m));
    m->bytes = bytes;
    m->pub.data = m->room;
    m->pub.bytes = (size_t)room;
    return m;
}

void drps_net_message_free(struct drps_net_message *message)
{
    if (!message) return;
    struct net_message *m = (struct net_message *)message; /* pub is its first member */
    if (m->release) m->release(m);
    if (m->bytes < PAGES_MIN)
        free(m);
    else
        drps_pages_free(m, m->bytes);
}

static struct net_message *gather(const struct drps_net_send *send, uint64_t bytes)
{
    struct net_message *m = drps_net_message_new(bytes);
    if (!m) return NULL;
    unsigned char *to = m->room;
    for (size_t i = 0; i < send->n; i++) {
        if (!send->pieces[i].bytes) continue; /* its data may be NULL */
        memcpy(to, send->pieces[i].data, send->pieces[i].bytes);
        to += send->pieces[i].bytes;
    }
    return m;
}

/* The only piece that is not empty, as a message is lent in one piece. NULL: there are more, or
 * none. */
static const struct drps_piece *one_piece(const struct drps_net_send *send)
{
    const struct drps_piece *piece = NULL;
    for (size_t i = 0; i < send->n; i++) {
        if (!send->pieces[i].bytes) continue;
        if (piece) return NULL;
        piece = &send->pieces[i];
    }
    return piece;
}

/* A message whose payload lies with the sender; it knows `out`, to let go of it in the end. */
static struct net_message *lend(const struct drps_piece *piece, struct net_out *out)
{
    struct net_message *m = drps_net_message_new(sizeof(out));
    if (!m) return NULL;
    memcpy(m->room, &out, sizeof(out));
    m->pub.data = piece->data;
    m->pub.bytes = piece->bytes;
    return m;
}

static void give_back(struct net_message *m)
{
    struct net_out *out;
    memcpy(&out, m->room, sizeof(out));
    drps_net_out_unhold(out);
}

struct net_message *drps_net_out_deliver(struct net_out *out)
{
    struct net_message *m = out->message;
    out->message = NULL;
    if (out->done)
        m->release = give_back;
    else
        drps_net_out_unhold(out);
    return m;
}

/* A message to send with room for n pieces, and one holder. */
static struct net_out *new_out(size_t pieces)
{
    if (pieces > (SIZE_MAX - sizeof(struct net_out)) / sizeof(struct drps_piece)) return NULL;
    struct net_out *out = malloc(sizeof(*out) + pieces * sizeof(struct drps_piece));
    if (!out) return NULL;
    memset(out, 0, sizeof(*out));
    out->n = pieces;
    atomic_init(&out->holders, 1);
    return out;
}

static struct net_out *copied(const struct drps_net_send *send, uint64_t bytes)
{
    struct net_out *out = new_out(1);
    if (!out) return NULL;
    out->message = gather(send, bytes);
    if (!out->message) {
        free(out);
        return NULL;
    }
    out->pieces[0] = (struct drps_piece){out->message->pub.data, out->message->pub.bytes};
    return out;
}

static struct net_out *borrowed(const struct drps_net_send *send)
{
    struct net_out *out = new_out(send->n);
    if (!out) return NULL;
    if (send->n) memcpy(out->pieces, send->pieces, send->n * sizeof(*out->pieces));
    out->done = send->done;
    out->ctx = send->ctx;
    return out;
}

static struct net_out *lent(const struct drps_net_send *send, const struct drps_piece *piece)
{
    struct net_out *out = borrowed(send);
    if (!out) return NULL;
    out->message = lend(piece, out);
    if (out->message) return out;
    free(out);
    return NULL;
}

struct net_out *drps_net_out_new(const struct drps_net_send *send, uint64_t bytes,
                                 enum net_payload payload)
{
    const struct drps_piece *piece = one_piece(send);
    if (send->done && payload == NET_BORROWS) return borrowed(send);
    if (send->done && payload == NET_LENDS && piece) return lent(send, piece);
    return copied(send, bytes);
}

size_t drps_net_out_next(const struct net_out *out)
{
    const uint64_t left = out->head.message_bytes - out->head.offset;
    return left < WIRE_PIECE_BYTES ? (size_t)left : WIRE_PIECE_BYTES;
}

/* Bytes of piece `piece` from `at` on, at most `most`. */
static size_t some_of(const struct net_out *out, size_t piece, size_t at, size_t most)
{
    const size_t left = out->pieces[piece].bytes - at;
    return left < most ? left : most;
}

/* Pass over `bytes` bytes, copying them unless `to` is NULL. A position may be a piece's end. */
static void walk(const struct net_out *out, size_t *piece, size_t *at, size_t bytes,
                 unsigned char *to)
{
    while (bytes) {
        const size_t some = some_of(out, *piece, *at, bytes);
        if (some && to) memcpy(to, (const unsigned char *)out->pieces[*piece].data + *at, some);
        if (to) to += some;
        bytes -= some;
        *at += some;
        if (!bytes) break;
        ++*piece;
        *at = 0;
    }
}

const void *drps_net_out_here(const struct net_out *out, size_t bytes)
{
    size_t piece = out->piece, at = out->piece_at;
    while (bytes && out->pieces[piece].bytes == at) { /* there is more */
        piece++;
        at = 0;
    }
    if (!bytes || some_of(out, piece, at, bytes) < bytes) return NULL;
    return (const unsigned char *)out->pieces[piece].data + at;
}

void drps_net_out_copy(const struct net_out *out, size_t bytes, void *to)
{
    size_t piece = out->piece, at = out->piece_at;
    walk(out, &piece, &at, bytes, to);
}

void drps_net_out_move(struct net_out *out, size_t bytes)
{
    walk(out, &out->piece, &out->piece_at, bytes, NULL);
    out->head.offset += bytes;
}

void drps_net_out_unhold(struct net_out *out)
{
    /* Release what this holder read; acquire what the others did, before the payload goes. */
    if (atomic_fetch_sub_explicit(&out->holders, 1, memory_order_acq_rel) != 1) return;
    if (out->message) drps_net_message_free(&out->message->pub);
    if (out->done) out->done(out->ctx);
    free(out);
}
