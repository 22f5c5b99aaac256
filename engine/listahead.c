/*
 * A ring of lists. Waking a sleeping thread costs more than unpacking a list, so whoever has filled
 * or emptied the ring sleeps until half of it has changed.
 */
#include "engine/listahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/drps_batch.h"

enum { DEPTH = DRPS_LISTAHEAD_DEPTH };

struct drps_listahead {
    struct drps_recstream *stream;
    size_t max_rows;
    uint32_t *ids[DEPTH]; /* own: [max_rows] each */
    size_t n[DEPTH];
    pthread_t thread;
    int started;
    int holding; /* consumer: it uses list number `taken` */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t room, news;
    uint64_t made, taken; /* lists unpacked and given back, ever; made - taken <= DEPTH */
    int finished, stopping;
    int producer_sleeps, consumer_sleeps;
    struct drps_err err; /* of the thread, valid once `finished` */
};

int drps_listahead_decode(struct drps_recstream *stream, size_t max_rows, uint32_t *ids,
                          size_t *n_out, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    *n_out = 0;
    int rc = drps_recstream_next(stream, &record, &bytes, err);
    if (rc <= 0) return rc;
    const uint32_t n = bytes >= 4 ? drps_list_count(record) : 0;
    if (n > max_rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "row lists: %u rows, plan.json says at most %zu", n,
                            max_rows);
    rc = drps_list_decode(record, bytes, ids, NULL, err);
    if (rc < 0) {
        (void)drps_err_context(err, "row lists");
        return rc;
    }
    *n_out = n;
    return 1;
}

/* Wait for a free place; 0 when the object is being closed. */
static int wait_for_room(struct drps_listahead *a)
{
    pthread_mutex_lock(&a->lock);
    if (a->made - a->taken == DEPTH) {
        a->producer_sleeps = 1;
        while (!a->stopping && a->made - a->taken > DEPTH / 2)
            pthread_cond_wait(&a->room, &a->lock);
        a->producer_sleeps = 0;
    }
    const int go = !a->stopping;
    pthread_mutex_unlock(&a->lock);
    return go;
}

static void publish(struct drps_listahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->made++;
    if (a->consumer_sleeps && a->made - a->taken >= DEPTH / 2) pthread_cond_signal(&a->news);
    pthread_mutex_unlock(&a->lock);
}

static void *unpack(void *arg)
{
    struct drps_listahead *a = arg;
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t i = 0;
    while (wait_for_room(a)) {
        if (drps_listahead_decode(a->stream, a->max_rows, a->ids[i % DEPTH], &a->n[i % DEPTH],
                                  &err) <= 0)
            break;
        publish(a);
        i++;
    }
    pthread_mutex_lock(&a->lock);
    a->err = err;
    a->finished = 1;
    pthread_cond_signal(&a->news);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

int drps_listahead_open(struct drps_recstream *stream, size_t max_rows,
                        struct drps_listahead **a_out, struct drps_err *err)
{
    *a_out = NULL;
    struct drps_listahead *a = calloc(1, sizeof(*a));
    if (!a) return drps_err_set(err, -ENOMEM, "no memory to unpack row lists");
    a->stream = stream;
    a->max_rows = max_rows;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->room, NULL);
    pthread_cond_init(&a->news, NULL);
    int rc = 0;
    for (int i = 0; i < DEPTH; i++) {
        a->ids[i] = drps_array_new(max_rows, sizeof(*a->ids[i]));
        if (!a->ids[i]) rc = ENOMEM;
    }
    if (rc == 0) rc = pthread_create(&a->thread, NULL, unpack, a);
    if (rc) {
        drps_listahead_close(a);
        return drps_err_set(err, -rc, "cannot start a thread that unpacks row lists: %s",
                            strerror(rc));
    }
    a->started = 1;
    *a_out = a;
    return 0;
}

/* The stream may be closed after this, not before: its next() is called until the thread has ended.
 */
void drps_listahead_close(struct drps_listahead *a)
{
    if (!a) return;
    if (a->started) {
        pthread_mutex_lock(&a->lock);
        a->stopping = 1;
        pthread_cond_signal(&a->room);
        pthread_mutex_unlock(&a->lock);
        pthread_join(a->thread, NULL);
    }
    for (int i = 0; i < DEPTH; i++)
        free(a->ids[i]);
    pthread_cond_destroy(&a->room);
    pthread_cond_destroy(&a->news);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

int drps_listahead_next(struct drps_listahead *a, const uint32_t **ids_out, size_t *n_out,
                        struct drps_err *err)
{
    pthread_mutex_lock(&a->lock);
    if (a->holding) {
        a->taken++;
        if (a->producer_sleeps && a->made - a->taken <= DEPTH / 2) pthread_cond_signal(&a->room);
    }
    if (a->made == a->taken && !a->finished) {
        a->consumer_sleeps = 1;
        while (a->made - a->taken < DEPTH / 2 && !a->finished)
            pthread_cond_wait(&a->news, &a->lock);
        a->consumer_sleeps = 0;
    }
    a->holding = a->made != a->taken;
    pthread_mutex_unlock(&a->lock);
    if (!a->holding) {
        *ids_out = NULL;
        *n_out = 0;
        return a->err.code ? drps_err_set(err, a->err.code, "%s", a->err.text) : 0;
    }
    *ids_out = a->ids[a->taken % DEPTH]; /* only this thread changes `taken` */
    *n_out = a->n[a->taken % DEPTH];
    return 1;
}

uint64_t drps_listahead_memory(size_t max_rows)
{
    return (uint64_t)DEPTH * max_rows * sizeof(uint32_t);
}
