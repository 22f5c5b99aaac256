/* The engine `threads`: requests carried out by a few threads with pread and pwrite. It works
 * everywhere, and through the file I/O seam. */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "storage/io/aio_internal.h"

enum { THREADS = 8 };

/* A queue of requests. No request is in it twice, so that `depth` entries are enough. */
struct queue {
    uint32_t *requests; /* own [depth] */
    size_t first, n;
};

struct threads {
    pthread_t thread[THREADS];
    int started;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work;  /* something is in `todo`, or `stopping` */
    pthread_cond_t done;  /* `wanted` are in `finished` */
    struct queue todo, finished;
    size_t wanted; /* 0: nobody waits */
    int stopping;
};

static void push(struct queue *q, size_t depth, uint32_t request)
{
    size_t at = q->first + q->n++;
    q->requests[at < depth ? at : at - depth] = request;
}

static uint32_t pop(struct queue *q, size_t depth)
{
    uint32_t request = q->requests[q->first];
    if (++q->first == depth) q->first = 0;
    q->n--;
    return request;
}

static void carry_out(const struct drps_aio *aio, struct drps_aio_request *s)
{
    const struct drps_io *io = aio->io;
    for (;;) {
        ssize_t got;
        const struct drps_aio_part part = drps_aio_rest(s);
        const uint64_t offset = s->offset + s->moved;
        if (part.pieces)
            got = io->ops->pwritev(io->ctx, aio->fd, part.pieces, (int)part.pieces_n, offset);
        else
            got = s->write ? io->ops->pwrite(io->ctx, aio->fd, part.buf, part.bytes, offset)
                           : io->ops->pread(io->ctx, aio->fd, part.buf, part.bytes, offset);
        if (drps_aio_advance(aio, s, got)) return;
        if (got == -EAGAIN) drps_aio_pause(s->stalls);
    }
}

static void *thread_main(void *arg)
{
    struct drps_aio *aio = arg;
    struct threads *p = aio->engine_state;
    (void)pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->todo.n && !p->stopping)
            (void)pthread_cond_wait(&p->work, &p->lock);
        if (!p->todo.n) break;
        uint32_t request = pop(&p->todo, aio->depth);
        (void)pthread_mutex_unlock(&p->lock);
        carry_out(aio, &aio->requests[request]);
        (void)pthread_mutex_lock(&p->lock);
        push(&p->finished, aio->depth, request);
        if (p->wanted && p->finished.n >= p->wanted) (void)pthread_cond_signal(&p->done);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int threads_start(struct drps_aio *aio, struct drps_err *err)
{
    int threads = aio->depth < THREADS ? (int)aio->depth : THREADS;
    struct threads *p = calloc(1, sizeof(*p));
    if (!p) return drps_err_set(err, -ENOMEM, "no memory for I/O threads");
    aio->engine_state = p;                    /* from here on threads_stop() is safe */
    (void)pthread_mutex_init(&p->lock, NULL); /* glibc: cannot fail with default attributes */
    (void)pthread_cond_init(&p->work, NULL);
    (void)pthread_cond_init(&p->done, NULL);
    p->todo.requests = drps_array_new(aio->depth, sizeof(*p->todo.requests));
    p->finished.requests = drps_array_new(aio->depth, sizeof(*p->finished.requests));
    if (!p->todo.requests || !p->finished.requests)
        return drps_err_set(err, -ENOMEM, "no memory for I/O threads");
    while (p->started < threads) {
        int rc = pthread_create(&p->thread[p->started], NULL, thread_main, aio);
        if (rc)
            return drps_err_set(err, -rc, "cannot start I/O thread %d of %d: %s", p->started + 1,
                                threads, drps_err_name(-rc));
        p->started++;
    }
    return 0;
}

static int threads_submit(struct drps_aio *aio, const uint32_t *requests, size_t n,
                          struct drps_err *err)
{
    struct threads *p = aio->engine_state;
    (void)err;
    (void)pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < n; i++)
        push(&p->todo, aio->depth, requests[i]);
    if (n == 1)
        (void)pthread_cond_signal(&p->work);
    else
        (void)pthread_cond_broadcast(&p->work);
    (void)pthread_mutex_unlock(&p->lock);
    return 0;
}

static int threads_reap(struct drps_aio *aio, size_t least, uint32_t *requests_out, size_t cap,
                        size_t *n_out, struct drps_err *err)
{
    struct threads *p = aio->engine_state;
    size_t n = 0;
    (void)err;
    (void)pthread_mutex_lock(&p->lock);
    p->wanted = least;
    while (p->finished.n < least)
        (void)pthread_cond_wait(&p->done, &p->lock);
    p->wanted = 0;
    while (n < cap && p->finished.n)
        requests_out[n++] = pop(&p->finished, aio->depth);
    (void)pthread_mutex_unlock(&p->lock);
    *n_out = n;
    return 0;
}

static void threads_stop(struct drps_aio *aio)
{
    struct threads *p = aio->engine_state;
    if (!p) return;
    (void)pthread_mutex_lock(&p->lock);
    p->stopping = 1;
    (void)pthread_cond_broadcast(&p->work);
    (void)pthread_mutex_unlock(&p->lock);
    while (p->started > 0)
        (void)pthread_join(p->thread[--p->started], NULL); /* cannot fail for a thread of ours */
    (void)pthread_cond_destroy(&p->done);
    (void)pthread_cond_destroy(&p->work);
    (void)pthread_mutex_destroy(&p->lock);
    free(p->todo.requests);
    free(p->finished.requests);
    free(p);
    aio->engine_state = NULL;
}

const struct drps_aio_engine drps_aio_threads = {
    .name = "threads",
    .start = threads_start,
    .submit = threads_submit,
    .reap = threads_reap,
    .stop = threads_stop,
};
