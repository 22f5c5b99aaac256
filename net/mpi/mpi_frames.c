/* Frames to MPI and back. Every frame that comes is checked before a byte of it counts, as over any
 * network. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"
#include "net/mpi/mpi_internal.h"

enum {
    FRAMES_AT_ONCE = 64,
    COPY_MOST = 16 << 10, /* longer payloads stay where they lie until they have gone */
    INCARNATION = 1,      /* of every process: a rank of MPI is never started again */
};

/* MPI says that this failed: rank r cannot be reached. */
static void failed(struct net_mpi *m, uint32_t r, int failure)
{
    struct drps_err err = DRPS_ERR_INIT;
    char text[NET_MPI_TEXT_BYTES];
    m->calls->text(failure, text);
    (void)drps_err_set(&err, DRPS_E_PEER, "MPI cannot reach it: %s", text);
    m->peers[r].dead = m->broken = 1;
    drps_frames_lose(&m->net, r, &err);
}

/* ---- Sending ---- */

static void end_sending(struct net_mpi_sending *s)
{
    free(s->copy);
    if (s->out) drps_net_out_unhold(s->out);
    *s = (struct net_mpi_sending){.out = NULL};
}

/* What MPI is done with, from the oldest on. Returns how many. */
static unsigned finish_sending(struct net_mpi *m, uint32_t r)
{
    struct net_mpi_peer *peer = &m->peers[r];
    unsigned n = 0;
    while (peer->n && !peer->dead) {
        struct net_mpi_sending *s = &peer->sending[peer->first];
        const int done = m->calls->is_done(m->ctx, &s->request);
        if (done < 0) failed(m, r, done);
        if (done != 1) break;
        end_sending(s);
        peer->first = (peer->first + 1) % NET_MPI_FRAMES;
        peer->n--;
        n++;
    }
    return n;
}

static int is_full(const struct net_mpi_peer *peer)
{
    return peer->n == NET_MPI_FRAMES || peer->dead;
}

/* Give a frame to MPI: of `out`, which is held then, where payload lies there; else a copy. 0: not
 * now. */
static int put(struct net_mpi *m, uint32_t r, struct wire_head *head, const void *payload,
               size_t bytes, struct net_out *out)
{
    struct net_mpi_peer *peer = &m->peers[r];
    struct net_frames *f = &m->frames[r];
    struct net_mpi_sending *s = &peer->sending[(peer->first + peer->n) % NET_MPI_FRAMES];
    if (!out && !(s->copy = malloc(WIRE_HEAD_BYTES + bytes))) return 0;
    uint8_t *to = out ? s->head : s->copy;
    head->sequence = f->sequence;
    head->incarnation = head->type == WIRE_HELLO ? 0 : INCARNATION;
    drps_wire_encode(head, payload, bytes, to);
    if (!out && bytes) memcpy((uint8_t *)s->copy + WIRE_HEAD_BYTES, payload, bytes);
    const struct drps_piece pieces[] = {{to, WIRE_HEAD_BYTES + (out ? 0 : bytes)},
                                        {payload, bytes}};
    const int rc = m->calls->send(m->ctx, r, m->tag, pieces, out ? 2 : 1, &s->request);
    if (rc < 0) {
        end_sending(s);
        failed(m, r, rc);
        return 0;
    }
    if (out) atomic_fetch_add_explicit(&out->holders, 1, memory_order_relaxed);
    s->out = out;
    peer->n++;
    f->sequence++;
    f->sent_ns = drps_clock_ns();
    return 1;
}

/* A net_frames_put. */
static int put_control(void *mpi, uint32_t r, uint8_t type, unsigned part, uint64_t round)
{
    struct net_mpi *m = mpi;
    struct wire_head head = drps_frames_head(&m->net, r, type, part, round, 0);
    return !is_full(&m->peers[r]) && put(m, r, &head, NULL, 0, NULL);
}

static int put_hello(struct net_mpi *m, uint32_t r)
{
    uint8_t bytes[WIRE_HELLO_BYTES];
    struct wire_head head = drps_frames_head(&m->net, r, WIRE_HELLO, 0, 0, sizeof(bytes));
    drps_frames_hello(&m->net, INCARNATION, bytes);
    return put(m, r, &head, bytes, sizeof(bytes), NULL);
}

static int put_bye(struct net_mpi *m, uint32_t r)
{
    char why[WIRE_TEXT_BYTES];
    pthread_mutex_lock(&m->lock);
    memcpy(why, m->why, sizeof(why));
    const uint32_t tag = m->why_stays ? WIRE_BYE_STAYS : 0;
    pthread_mutex_unlock(&m->lock);
    struct wire_head head = drps_frames_head(&m->net, r, WIRE_BYE, 0, 0, strlen(why));
    head.tag = tag;
    return put(m, r, &head, why, strlen(why), NULL);
}

/* The next piece of a message; 1 when MPI has it. */
static int put_piece(struct net_mpi *m, uint32_t r, struct net_out *out)
{
    const size_t bytes = drps_net_out_next(out);
    const void *here = drps_net_out_here(out, bytes);
    struct wire_head head = out->head;
    void *copy = NULL;
    if (bytes && !here) {
        copy = malloc(bytes);
        if (!copy) return 0;
        drps_net_out_copy(out, bytes, copy);
    }
    const int gone =
        put(m, r, &head, here ? here : copy, bytes, here && bytes > COPY_MOST ? out : NULL);
    free(copy);
    if (gone) drps_net_out_move(out, bytes);
    return gone;
}

/* Messages, as far as MPI may have more. 0: some wait. */
static int put_messages(struct net_mpi *m, uint32_t r)
{
    int longer;
    for (struct net_out *out;
         (out = drps_frames_next(&m->net, &m->frames[r], UINT64_MAX, &longer));) {
        if (is_full(&m->peers[r]) || !put_piece(m, r, out)) return 0;
        if (out->head.offset < out->head.message_bytes) continue;
        drps_frames_sent(&m->net, &m->frames[r], out);
        drps_net_out_unhold(out);
    }
    return 1;
}

/* All that is due to peer r, as far as MPI may have more. */
static void send_due(struct net_mpi *m, uint32_t r)
{
    struct net_mpi_peer *peer = &m->peers[r];
    struct net_frames *f = &m->frames[r];
    pthread_mutex_lock(&m->lock);
    const int leaving = m->leaving, left = m->net.peers[r].left, greeted = f->greeted;
    pthread_mutex_unlock(&m->lock);
    if (!peer->hello_sent) peer->hello_sent = put_hello(m, r);
    if (!peer->hello_sent) return;
    if (greeted && !left &&
        (!drps_frames_credit(&m->net, r, f, put_control, m) || !put_messages(m, r)))
        return;
    if (leaving || left) /* a BYE is answered by one: then both know that nothing is lost */
        peer->bye_sent = !is_full(peer) && put_bye(m, r);
    else if (drps_clock_ns() - f->sent_ns >= drps_frames_ping_ms(&m->net) * UINT64_C(1000000))
        (void)put_control(m, r, WIRE_PING, 0, 0); /* no room: it will be heard of anyway */
}

unsigned drps_mpi_send(struct net_mpi *m, uint32_t r)
{
    struct net_mpi_peer *peer = &m->peers[r];
    const uint64_t before = m->frames[r].sequence;
    const unsigned done = finish_sending(m, r);
    if (!peer->bye_sent && !is_full(peer)) send_due(m, r);
    return done + (unsigned)(m->frames[r].sequence - before);
}

/* ---- Receiving ---- */

/* A drps_link_adopt: the message keeps the memory that its only frame was received in. */
static struct net_message *adopt(void *frame)
{
    struct net_message **at = frame, *m = *at;
    *at = NULL;
    m->pub.data = m->room + WIRE_HEAD_BYTES;
    m->pub.bytes -= WIRE_HEAD_BYTES;
    return m;
}

/* The header of a frame that has come from rank `from` as it should. */
static int check(struct net_mpi *m, uint32_t from, const struct net_message *frame,
                 struct wire_head *h, struct drps_err *err)
{
    if (frame->pub.bytes < WIRE_HEAD_BYTES)
        return drps_err_set(err, DRPS_E_PROTO, "sent %zu bytes, too few for a frame",
                            frame->pub.bytes);
    const int rc = drps_wire_decode(frame->room, WIRE_HEAD_BYTES, frame->room + WIRE_HEAD_BYTES,
                                    frame->pub.bytes - WIRE_HEAD_BYTES, h, err);
    if (rc < 0) return rc;
    if (h->from != from || h->to != m->net.o.rank || h->job_id != m->net.o.job_id ||
        (h->type != WIRE_HELLO && (!m->frames[from].greeted || h->incarnation != INCARNATION)))
        return drps_err_set(err, DRPS_E_PROTO, "sent a frame of another job or rank");
    return drps_link_number(&m->frames[from].link, h, err);
}

/* A frame has come; it is moved. */
static void handle(struct net_mpi *m, uint32_t from, struct net_message *frame)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct net_frames *f = &m->frames[from];
    struct wire_head h;
    const int next = check(m, from, frame, &h, &err);
    if (next < 0) drps_frames_lose(&m->net, from, &err);
    if (next == 1) {
        const unsigned char *payload = frame->room + WIRE_HEAD_BYTES;
        f->heard_ns = drps_clock_ns();
        drps_frames_take(&m->net, f, &h, payload, frame->pub.bytes - WIRE_HEAD_BYTES, adopt,
                         &frame);
    }
    if (next == 1 && h.type == WIRE_HELLO) { /* MPI brings what this rank sends, or says that not */
        pthread_mutex_lock(&m->lock);
        f->answers = f->greeted;
        pthread_cond_broadcast(&m->net.changed);
        pthread_mutex_unlock(&m->lock);
    }
    if (frame) drps_net_message_free(&frame->pub);
}

/* Nothing can be received any more. */
static void fail_all(struct net_mpi *m, int failure)
{
    struct drps_err err = DRPS_ERR_INIT;
    char text[NET_MPI_TEXT_BYTES];
    m->calls->text(failure, text);
    (void)drps_err_set(&err, DRPS_E_PEER, "MPI cannot receive: %s", text);
    m->broken = m->deaf = 1;
    pthread_mutex_lock(&m->lock);
    drps_net_fail(&m->net, &err);
    pthread_mutex_unlock(&m->lock);
}

/* No frame is as large, or there is no memory. It cannot be skipped: what follows would be out of
 * order. */
static void refuse(struct net_mpi *m, uint32_t from, size_t bytes)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (bytes > WIRE_HEAD_BYTES + WIRE_PIECE_BYTES)
        (void)drps_err_set(&err, DRPS_E_PROTO, "sent %zu bytes, too many for a frame", bytes);
    else
        (void)drps_err_set(&err, -ENOMEM, "no memory for a frame of %zu bytes", bytes);
    m->peers[from].dead = m->broken = m->deaf = 1;
    drps_frames_lose(&m->net, from, &err);
}

static struct net_mpi_coming *new_coming(uint32_t from, size_t bytes)
{
    struct net_mpi_coming *c = calloc(1, sizeof(*c));
    if (!c) return NULL;
    c->from = from;
    c->message = drps_net_message_new(bytes);
    if (c->message) return c;
    free(c);
    return NULL;
}

static void add(struct net_mpi *m, struct net_mpi_coming *c)
{
    *m->last = c;
    m->last = &c->next;
}

/* Begin to receive what has come; 0: nothing has. */
static int begin_one(struct net_mpi *m)
{
    struct net_mpi_handle message;
    struct net_mpi_coming *c = NULL;
    uint32_t from;
    size_t bytes;
    const int there = m->calls->probe(m->ctx, m->tag, &from, &bytes, &message);
    if (there < 0) fail_all(m, there);
    if (there != 1) return 0;
    if (bytes <= WIRE_HEAD_BYTES + WIRE_PIECE_BYTES) c = new_coming(from, bytes);
    if (!c) {
        refuse(m, from, bytes);
        return 0;
    }
    const int rc = m->calls->receive(m->ctx, &message, c->message->room, bytes, &c->request);
    add(m, c); /* also if it failed: the memory stays */
    if (rc < 0) fail_all(m, rc);
    return rc == 0;
}

/* Frames that are there, each peer's in order. Returns how many. */
static unsigned take_finished(struct net_mpi *m)
{
    unsigned n = 0;
    m->looks++;
    for (struct net_mpi_coming **at = &m->coming, *c; (c = *at);) {
        struct net_mpi_peer *peer = &m->peers[c->from];
        int done = 0;
        if (peer->looked != m->looks && !peer->dead) {
            done = m->calls->is_done(m->ctx, &c->request);
            if (done < 0) failed(m, c->from, done);
        }
        if (done != 1) {
            peer->looked = m->looks;
            at = &c->next;
            continue;
        }
        *at = c->next;
        if (!*at) m->last = at;
        handle(m, c->from, c->message);
        free(c);
        n++;
    }
    return n;
}

unsigned drps_mpi_receive(struct net_mpi *m)
{
    unsigned n = 0;
    while (n < FRAMES_AT_ONCE && !m->deaf && begin_one(m))
        n++;
    return m->deaf ? n : n + take_finished(m);
}

void drps_mpi_drop(struct net_mpi *m)
{
    for (uint32_t r = 0; r < m->net.o.count; r++) {
        const struct net_mpi_peer *peer = &m->peers[r];
        for (unsigned i = 0; i < peer->n; i++) {
            const struct net_mpi_sending *s = &peer->sending[(peer->first + i) % NET_MPI_FRAMES];
            if (s->out) drps_net_out_unhold(s->out);
        }
    }
}
