#include "index/samples/read/ahead.h"

#include <string.h>

static void *read_pieces(void *arg)
{
    struct ahead *a = arg;
    int rc = 1;
    while (rc > 0) {
        pthread_mutex_lock(&a->lock);
        while (a->filled - a->taken == AHEAD_PIECES && !a->stopping)
            pthread_cond_wait(&a->changed, &a->lock);
        int stop = a->stopping;
        struct drps_samples *piece = &a->pieces[a->filled % AHEAD_PIECES];
        pthread_mutex_unlock(&a->lock);
        if (stop) break;
        rc = drps_reader_next(a->reader, piece, &a->err);
        drps_index_watch_read(a->watch, drps_reader_file_bytes(a->reader),
                              drps_reader_lines(a->reader));
        if (a->ranks)
            atomic_store_explicit(&a->ranks->read_bytes, drps_reader_file_bytes(a->reader),
                                  memory_order_relaxed);
        pthread_mutex_lock(&a->lock);
        if (rc > 0) a->filled++;
        a->rc = rc;
        pthread_cond_broadcast(&a->changed);
        pthread_mutex_unlock(&a->lock);
    }
    return NULL;
}

int drps_ahead_start(struct ahead *a, struct drps_err *err)
{
    a->rc = 1;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    int rc = pthread_create(&a->thread, NULL, read_pieces, a);
    if (rc) return drps_err_set(err, -rc, "cannot start the parsing thread: %s", strerror(rc));
    return 0;
}

int drps_ahead_next(struct ahead *a, struct drps_samples **piece_out, struct drps_err *err)
{
    pthread_mutex_lock(&a->lock);
    while (a->filled == a->taken && a->rc > 0)
        pthread_cond_wait(&a->changed, &a->lock);
    int more = a->filled != a->taken;
    int rc = more ? 1 : a->rc;
    *piece_out = &a->pieces[a->taken % AHEAD_PIECES];
    pthread_mutex_unlock(&a->lock);
    return rc < 0 ? drps_err_set(err, rc, "%s", a->err.text) : rc;
}

void drps_ahead_done(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->taken++;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

void drps_ahead_stop(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->stopping = 1;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    for (unsigned i = 0; i < AHEAD_PIECES; i++)
        drps_samples_free(&a->pieces[i]);
}
