/* A ring of records: threads fill it, a record each, and the caller takes the oldest one. Where
 * that is not the one asked for, the ring is emptied and begins anew. */
#include "index/windows/drps_window_records.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_thread.h"

enum {
    SLOTS_MOST = 16,
    READERS_MOST = 3,        /* a disk answers several requests in little more time than one */
    AHEAD_BYTES = 512 << 10, /* for more than one slot; few beside the memory of any store */
};

/* A record that was read, or why not. */
struct slot {
    void *mem; /* in drps_window_records.mem */
    struct drps_window_part part;
    struct drps_piece record; /* in mem */
    struct drps_window head;
    int filled; /* 0: a thread reads it */
    int rc;
    struct drps_err err;
};

struct drps_window_records {
    struct drps_recfile *file;
    uint64_t *front_bytes; /* own: [records] 0: not known yet */
    void *mem;             /* own */
    size_t mem_bytes;
    struct slot slots[SLOTS_MOST];
    uint32_t slots_n;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t readers[READERS_MOST];
    uint32_t started;
    int stopping;
    uint32_t first, n;            /* slots in use; the caller may be at the first one */
    struct drps_window_part next; /* that a thread takes, */
    int resting;                  /* unless all rest. */
    uint32_t reading; /* Threads that read. Where all rest and none reads, the members above and the
                         first slot are the caller's without the lock */
};

/* ---- Reading ---- */

static int read_whole(const struct drps_window_records *r, struct slot *s, struct drps_err *err)
{
    const uint32_t number = s->part.number;
    int rc = drps_recfile_read_in(r->file, number, 1, s->mem, &s->record.data, err);
    return rc == 0 ? drps_window_head(s->record.data, s->record.bytes, &s->head, err) : rc;
}

static int read_front(const struct drps_window_records *r, struct slot *s, struct drps_err *err)
{
    int rc = drps_recfile_read_front(r->file, s->part.number, s->record.bytes, s->mem,
                                     &s->record.data, err);
    if (rc == 0) rc = drps_window_check_front(s->record.data, s->record.bytes, err);
    return rc == 0 ? drps_window_head(s->record.data, s->record.bytes, &s->head, err) : rc;
}

static void fill(const struct drps_window_records *r, struct slot *s)
{
    s->err = (struct drps_err)DRPS_ERR_INIT;
    s->head = (struct drps_window){0};
    s->rc = s->part.whole ? read_whole(r, s, &s->err) : read_front(r, s, &s->err);
}

static struct drps_window_part after(const struct drps_window_records *r,
                                     struct drps_window_part part)
{
    const uint32_t next = (uint32_t)((part.number + 1) % drps_recfile_count(r->file));
    return (struct drps_window_part){next, part.whole && next};
}

/* Whether as much of the part is known as reading it takes. Lock held. */
static int is_known(const struct drps_window_records *r, struct drps_window_part part)
{
    return part.whole || r->front_bytes[part.number];
}

/* The slot is for this part. Lock held, or the threads rest. */
static void begin_slot(const struct drps_window_records *r, struct slot *s,
                       struct drps_window_part part)
{
    s->part = part;
    s->record.bytes = (size_t)(part.whole ? drps_recfile_bytes(r->file, part.number)
                                          : r->front_bytes[part.number]);
}

/* Waits until there is a record to read, and takes the slot for it; NULL: stop. Lock held. */
static struct slot *take_slot(struct drps_window_records *r)
{
    while (!r->stopping && (r->resting || r->n == r->slots_n || !is_known(r, r->next)))
        (void)pthread_cond_wait(&r->changed, &r->lock);
    if (r->stopping) return NULL;
    struct slot *s = &r->slots[(r->first + r->n++) % r->slots_n];
    begin_slot(r, s, r->next);
    s->filled = 0;
    r->next = after(r, s->part);
    return s;
}

static void *read_ahead(void *arg)
{
    struct drps_window_records *r = arg;
    struct slot *s;
    drps_thread_serves();
    (void)pthread_mutex_lock(&r->lock);
    while ((s = take_slot(r))) {
        r->reading++;
        (void)pthread_mutex_unlock(&r->lock);
        fill(r, s);
        (void)pthread_mutex_lock(&r->lock);
        r->reading--;
        s->filled = 1;
        (void)pthread_cond_broadcast(&r->changed);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- Asking ---- */

static int same(struct drps_window_part a, struct drps_window_part b)
{
    return a.number == b.number && a.whole == b.whole;
}

/* Whether the part was read ahead, or is being read, which is waited for. Lock held. */
static int is_ahead(struct drps_window_records *r, struct drps_window_part part)
{
    while (!r->n && !r->resting && same(r->next, part))
        (void)pthread_cond_wait(&r->changed, &r->lock);
    struct slot *s = &r->slots[r->first];
    if (!r->n || !same(s->part, part)) return 0;
    while (!s->filled)
        (void)pthread_cond_wait(&r->changed, &r->lock);
    return 1;
}

/* The threads rest, and nothing is ahead. Lock held. */
static void empty(struct drps_window_records *r)
{
    r->resting = 1;
    while (r->reading)
        (void)pthread_cond_wait(&r->changed, &r->lock);
    r->n = 0;
}

int drps_window_records_read(struct drps_window_records *r, struct drps_window_part part,
                             struct drps_piece *record_out, struct drps_window *head_out,
                             struct drps_err *err)
{
    (void)pthread_mutex_lock(&r->lock);
    const int known = is_known(r, part), ahead = known && is_ahead(r, part);
    if (!ahead) empty(r);
    (void)pthread_mutex_unlock(&r->lock);
    if (!known)
        return drps_err_set(err, -EINVAL, "window %u is asked for without its rows first",
                            part.number);
    struct slot *s = &r->slots[r->first];
    if (!ahead) { /* the threads rest */
        begin_slot(r, s, part);
        fill(r, s);
        s->filled = 1;
        r->n = 1;
        r->next = after(r, part);
    }
    *record_out = s->record;
    *head_out = s->head;
    if (s->rc == 0) return 0;
    const int rc = drps_err_set(err, s->rc, "%s", s->err.text);
    drps_window_records_rest(r);
    return rc;
}

void drps_window_records_done(struct drps_window_records *r)
{
    const struct slot *s = &r->slots[r->first];
    (void)pthread_mutex_lock(&r->lock);
    r->front_bytes[s->part.number] = s->head.front_bytes;
    r->first = (r->first + 1) % r->slots_n;
    r->n--;
    r->resting = 0;
    if (2 * r->n <= r->slots_n) (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

void drps_window_records_rest(struct drps_window_records *r)
{
    (void)pthread_mutex_lock(&r->lock);
    empty(r);
    (void)pthread_mutex_unlock(&r->lock);
}

/* ---- Opening ---- */

void drps_window_records_close(struct drps_window_records *r)
{
    if (!r) return;
    (void)pthread_mutex_lock(&r->lock);
    r->stopping = 1;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i < r->started; i++)
        (void)pthread_join(r->readers[i], NULL);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
    drps_pages_free(r->mem, r->mem_bytes);
    free(r->front_bytes);
    free(r);
}

/* One slot for the largest record, or several. */
static int allocate(struct drps_window_records *r, struct drps_err *err)
{
    uint64_t most = 0;
    for (uint64_t i = 0; i < drps_recfile_count(r->file); i++)
        if (drps_recfile_run_bytes(r->file, i, 1) > most)
            most = drps_recfile_run_bytes(r->file, i, 1);
    const size_t align = DRPS_RECFILE_ALIGN;
    const size_t room = ((size_t)drps_recfile_room(most) + align - 1) / align * align;
    const size_t n = AHEAD_BYTES / room;
    r->slots_n = n < 1 ? 1 : n > SLOTS_MOST ? SLOTS_MOST : (uint32_t)n;
    r->mem_bytes = room * r->slots_n;
    r->mem = drps_pages_new(r->mem_bytes);
    r->front_bytes = calloc((size_t)drps_recfile_count(r->file) + 1, sizeof(*r->front_bytes));
    if (!r->mem || !r->front_bytes)
        return drps_err_set(err, -ENOMEM, "no memory for windows' records");
    for (uint32_t i = 0; i < r->slots_n; i++)
        r->slots[i].mem = (char *)r->mem + i * room;
    return 0;
}

/* Starts a thread for each slot, up to the most. Where fewer can be started, one is enough. */
static int start(struct drps_window_records *r, struct drps_err *err)
{
    while (r->started < READERS_MOST && r->started < r->slots_n) {
        const int rc = pthread_create(&r->readers[r->started], NULL, read_ahead, r);
        if (rc && !r->started)
            return drps_err_set(err, -rc, "cannot start a reading thread: %s", strerror(rc));
        if (rc) break;
        r->started++;
    }
    return 0;
}

int drps_window_records_open(struct drps_recfile *file, struct drps_window_records **r_out,
                             struct drps_err *err)
{
    *r_out = NULL;
    struct drps_window_records *r = calloc(1, sizeof(*r));
    if (!r) return drps_err_set(err, -ENOMEM, "no memory to read windows");
    r->file = file;
    r->resting = 1;
    (void)pthread_mutex_init(&r->lock, NULL); /* glibc: these cannot fail with default attributes */
    (void)pthread_cond_init(&r->changed, NULL);
    int rc = allocate(r, err);
    if (rc == 0) rc = start(r, err);
    if (rc < 0)
        drps_window_records_close(r);
    else
        *r_out = r;
    return rc;
}
