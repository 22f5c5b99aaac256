/* Every rank tells rank 0 some times a second how much it has read (progress.h). A message that
 * finds no room is left out. */
#include "index/together/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { TELL_NS = 300000000, SECOND_NS = 1000000000, TYPE_READ = DRPS_NET_TYPE_FIRST };

static void send_read(const struct together_progress *p, const uint64_t mine[2])
{
    const struct drps_piece piece = {mine, 2 * sizeof(*mine)};
    const struct drps_net_send send = {
        .to = 0, .part = DRPS_NET_MASTER, .type = TYPE_READ, .pieces = &piece, .n = 1};
    struct drps_err ignored = DRPS_ERR_INIT;
    if (drps_net_send(p->ranks->net, &send, 0, &ignored) == 0) return;
    drps_err_clear(&ignored);
}

static void receive_all(struct together_progress *p)
{
    struct drps_net_message *m = NULL;
    struct drps_err ignored = DRPS_ERR_INIT;
    while (drps_net_receive(p->ranks->net, DRPS_NET_MASTER, DRPS_NET_ANY, 0, &m, &ignored) == 0) {
        if (m->type == TYPE_READ && m->bytes == sizeof(*p->of))
            memcpy(p->of[m->from], m->data, sizeof(*p->of));
        drps_net_message_free(m);
    }
    drps_err_clear(&ignored);
}

/* Tell of the sum, once all ranks have said how much they are to read, until it is all. */
static void tell(const struct together_progress *p)
{
    uint64_t sum[2] = {0};
    for (uint32_t r = 0; r < p->ranks->count; r++) {
        if (!p->of[r][1]) return;
        sum[0] += p->of[r][0] < p->of[r][1] ? p->of[r][0] : p->of[r][1];
        sum[1] += p->of[r][1];
    }
    if (p->index->progress && sum[0] < sum[1])
        p->index->progress(p->index->progress_ctx, DRPS_PHASE_PARSE, sum[0], sum[1]);
}

static void look(struct together_progress *p)
{
    const uint64_t read = atomic_load(&p->ranks->read_bytes) + atomic_load(&p->ranks->read_before);
    const uint64_t mine[2] = {read, p->input_bytes};
    if (p->ranks->rank) {
        send_read(p, mine);
        return;
    }
    memcpy(p->of[0], mine, sizeof(mine));
    receive_all(p);
    tell(p);
}

static void *run(void *arg)
{
    struct together_progress *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->over) {
        struct timespec until;
        look(p);
        (void)clock_gettime(CLOCK_REALTIME, &until); /* what the condition waits by */
        until.tv_nsec += TELL_NS;
        until.tv_sec += until.tv_nsec / SECOND_NS;
        until.tv_nsec %= SECOND_NS;
        (void)pthread_cond_timedwait(&p->changed, &p->lock, &until);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static uint64_t sizes_of(const char *const *paths, size_t n)
{
    uint64_t sum = 0;
    struct stat st;
    for (size_t i = 0; i < n; i++)
        if (stat(paths[i], &st) == 0 && S_ISREG(st.st_mode)) sum += (uint64_t)st.st_size;
    return sum;
}

void together_progress_start(struct together_progress *p, struct swap_ranks *ranks,
                             const struct drps_index_options *index)
{
    *p = (struct together_progress){.ranks = ranks, .index = index};
    p->input_bytes =
        sizes_of(index->inputs, index->inputs_n) + sizes_of(index->tests, index->tests_n);
    if (index->shared) p->input_bytes /= ranks->count;
    p->of = calloc(ranks->count, sizeof(*p->of));
    (void)pthread_mutex_init(&p->lock, NULL); /* these two fail only for attributes */
    (void)pthread_cond_init(&p->changed, NULL);
    if (p->of && pthread_create(&p->thread, NULL, run, p) == 0) return;
    free(p->of);
    p->of = NULL;
}

void together_progress_end(struct together_progress *p)
{
    pthread_mutex_lock(&p->lock);
    p->over = 1;
    (void)pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->of) (void)pthread_join(p->thread, NULL);
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    free(p->of);
}
