/* Rounds: their sizes and memory, and the server's thread, which begins and ends with an epoch. */
#include "engine/cluster/drps_rounds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/rounds_internal.h"
#include "engine/cluster/target/drps_pilot.h"

/* ---- Sizes ---- */

/* A worker's rows of one message, and which they are. */
uint64_t drps_rounds_worker_bytes(const struct drps_plan_info *info)
{
    const uint64_t plain =
        rounds_mark_bytes(info->max_batch_rows) + info->max_batch_rows * rounds_row_bytes(info);
    const uint64_t handed = drps_handing_message_bytes(info);
    return plain > handed ? plain : handed;
}

uint64_t drps_rounds_server_bytes(const struct drps_plan_info *info)
{
    const struct drps_push_shape most = drps_push_most(info, 1);
    const uint64_t plain = info->max_batch_rows * (rounds_row_bytes(info) + sizeof(uint32_t));
    const uint64_t filtered = info->ranks.residual_slots ? drps_push_bound(&most) : 0;
    const uint64_t lent = drps_handing_message_bytes(info);
    const uint64_t more = filtered > lent ? filtered : lent;
    return plain > more ? plain : more;
}

/* Bytes of so many uses with a row each; SIZE_MAX, which is refused, where they cannot be counted.
 */
static size_t values_bytes(const struct drps_plan_info *info)
{
    size_t bytes;
    const int overflow =
        __builtin_mul_overflow(info->ranks.max_round_uses, rounds_row_bytes(info), &bytes);
    return overflow ? SIZE_MAX : bytes;
}

/* A bit for each use, and what each worker's marks and values are rounded up by. */
size_t drps_rounds_ahead_bytes(const struct drps_plan_info *info)
{
    const uint64_t uses = info->ranks.max_round_uses;
    size_t bytes = values_bytes(info);
    const size_t more = uses / 8 + (size_t)info->ranks.count * 2 * sizeof(uint64_t);
    return __builtin_add_overflow(bytes, more, &bytes) ? SIZE_MAX : bytes;
}

/* What goes out is sent from where it lies; what has come in is there once: a worker's parameters
 * from all servers, of this round and of the next one, and a server's gradients from all workers. A
 * bit a row of the store is for marks of frames, and one says which rows are trained. Of sums no
 * more is on its way than they have. */
uint64_t drps_rounds_memory(const struct drps_plan_info *info, int touches)
{
    const uint64_t row = rounds_row_bytes(info), count = touches ? sizeof(uint32_t) : 0;
    const struct drps_plan_ranks *ranks = &info->ranks;
    const uint64_t a_row = row + count + 2 * (2 * sizeof(uint32_t) + 1); /* sums; two open rounds */
    const uint64_t a_use = 2 * row + 2 * sizeof(uint32_t) + 1; /* values; those sent ahead */
    const uint64_t arrays = ranks->max_round_uses * a_use + ranks->max_round_rows * a_row;
    const uint64_t batch_rows = drps_rank_trains(ranks, ranks->rank) ? info->max_batch_rows : 0;
    const uint64_t messages = batch_rows * (2 * row + 1) + ranks->max_round_uses * (row + count);
    return arrays + messages + info->rows / 4 + drps_rounds_sums_n(info) * sizeof(double);
}

void drps_rounds_forecast(const struct drps_plan_info *info, int touches, uint64_t epochs,
                          struct drps_rounds_bytes *out)
{
    const struct drps_plan_ranks *r = &info->ranks;
    const uint64_t there = rounds_row_bytes(info);
    const uint64_t back = there + (touches ? sizeof(uint32_t) : 0);
    *out = (struct drps_rounds_bytes){
        .sent = epochs * ((r->served_rows + r->eval_served_rows) * there + r->pulled_rows * back),
        .received =
            epochs * ((r->pulled_rows + r->eval_pulled_rows) * there + r->served_rows * back),
    };
    drps_rounds_forecast_sums(info, epochs, out);
}

/* ---- Epochs ---- */

int drps_rounds_begin(struct drps_rounds *r, uint64_t first, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    r->worker.at = s->at = first;
    r->worker.wants_pause = 0;
    r->worker.pushed_ns = 0;
    s->trained_ns = 0;
    s->end &= DRPS_MESSAGE_STOP;
    s->end_round = s->end ? s->round : 0;
    s->tells = r->worker.heard = 0;
    drps_err_clear(&s->err);
    if (!rounds_serves(r)) return 0;
    int rc = pthread_create(&s->thread, NULL, drps_rounds_serve, r);
    if (rc) return drps_err_set(err, -rc, "no thread for the server: %s", strerror(rc));
    s->running = 1;
    return 0;
}

int drps_rounds_end(struct drps_rounds *r, int rc, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    if (rc < 0 && rc != DRPS_E_CLOSED && s->running) drps_rounds_tell_failed(r, DRPS_NET_SERVER);
    if (s->running) (void)pthread_join(s->thread, NULL);
    s->running = 0;
    drps_rounds_count_rest(r);
    if (s->rc >= 0 || s->rc == DRPS_E_CLOSED || (rc < 0 && rc != DRPS_E_CLOSED)) return rc;
    drps_err_clear(err); /* the server says what it was */
    return drps_err_set(err, s->rc, "%s", s->err.text);
}

uint64_t drps_rounds_trained_ns(const struct drps_rounds *r)
{
    return rounds_serves(r) ? r->server.trained_ns : r->worker.trained_ns;
}

/* ---- Opening ---- */

static int open_fresh(struct drps_rounds *r, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &r->o.plan->info.ranks;
    struct rounds_server *s = &r->server;
    s->chosen = drps_array_new(ranks->max_round_uses, sizeof(*s->chosen));
    for (int i = 0; i < 2; i++)
        s->open[i].ids = drps_array_new(ranks->max_round_rows, sizeof(*s->open[i].ids));
    if (!s->chosen || !s->open[0].ids || !s->open[1].ids)
        return drps_err_set(err, -ENOMEM, "no memory for the row numbers of a round");
    return drps_fresh_open(r->o.plan, r->o.server, r->o.slots, &s->fresh, err);
}

static int open_server(struct drps_rounds *r, struct drps_err *err)
{
    const struct drps_plan_info *info = &r->o.plan->info;
    const uint64_t uses = info->ranks.max_round_uses, rows = info->ranks.max_round_rows;
    struct rounds_server *s = &r->server;
    int missing = 0;
    s->now = &s->open[0];
    s->next = &s->open[1];
    for (int i = 0; i < 2; i++) {
        s->open[i].frames = drps_array_new(rows, sizeof(*s->open[i].frames));
        s->open[i].late = drps_array_new(rows, 1);
        missing |= !s->open[i].frames || !s->open[i].late;
    }
    s->index = drps_array_new(uses, sizeof(*s->index));
    s->sum = drps_array_new(rows, r->dim * sizeof(*s->sum));
    s->count = drps_array_new(r->touches ? rows : 0, sizeof(*s->count));
    if (missing || !s->index || !s->sum || !s->count)
        return drps_err_set(err, -ENOMEM, "no memory for the rows of a round");
    int rc = r->o.fresh ? open_fresh(r, err) : 0;
    if (rc == 0) rc = drps_shared_buffer_renew(&s->values, drps_rounds_ahead_bytes(info), err);
    return rc == 0 ? drps_shared_buffer_renew(&s->ahead, drps_rounds_ahead_bytes(info), err) : rc;
}

static int open_pull(struct drps_rounds *r, struct drps_err *err)
{
    const uint64_t uses = r->shape->max_round_uses, rows = r->shape->max_round_rows;
    struct rounds_server *s = &r->server;
    int missing = 0;
    for (int i = 0; i < 2; i++) {
        struct drps_published_rows *p = &s->open[i].published;
        p->slot = drps_array_new(rows, sizeof(*p->slot));
        p->keeps = drps_array_new(uses, sizeof(*p->keeps));
        p->room = drps_array_new(rows + (uses > rows ? uses : rows), sizeof(*p->room));
        missing |= !p->slot || !p->keeps || !p->room;
    }
    s->uses = drps_array_new(uses, sizeof(*s->uses));
    s->order = drps_array_new(uses, sizeof(*s->order));
    s->rounded = drps_array_new(rows, r->dim * sizeof(*s->rounded));
    if (!missing && s->uses && s->order && s->rounded) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for published rows");
}

static int open_filters(struct drps_rounds *r, struct drps_err *err)
{
    const struct drps_plan_info *info = &r->o.plan->info;
    const struct drps_push_shape most = drps_push_most(info, r->touches);
    int rc = r->o.pull ? open_pull(r, err) : 0;
    if (!r->o.push || rc < 0) return rc;
    r->server.reader = drps_push_reader_new(&most);
    if (!r->server.reader) return drps_err_set(err, -ENOMEM, "no memory for filtered gradients");
    return drps_shared_buffer_renew(&r->worker.filtered, drps_push_messages_bytes(info, r->touches),
                                    err);
}

/* A server whose rows stay with workers knows which of a round's do. */
static int open_handing(struct drps_rounds *r, struct drps_err *err)
{
    const struct drps_plan_info *info = &r->o.plan->info;
    int rc = 0;
    if (!r->o.handing) return 0;
    r->worker.early = calloc(r->ranks, sizeof(struct drps_net_message *));
    if (!r->worker.early)
        return drps_err_set(err, -ENOMEM, "no memory for rows that are handed on");
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = drps_lent_allocate(&r->server.open[i].lent, info, err);
    return rc;
}

static void close_handing(struct drps_rounds *r)
{
    for (uint32_t i = 0; r->worker.early && i < r->ranks; i++)
        drps_net_message_free(r->worker.early[i]);
    free(r->worker.early);
    drps_shared_buffer_release(r->worker.handed);
    drps_shared_buffer_release(r->server.lent);
    for (int i = 0; i < 2; i++)
        drps_lent_free(&r->server.open[i].lent);
}

int drps_rounds_open(const struct drps_rounds_options *options, struct drps_rounds **rounds_out,
                     struct drps_err *err)
{
    const struct drps_plan_info *info = &options->plan->info;
    *rounds_out = NULL;
    struct drps_rounds *r = calloc(1, sizeof(*r));
    if (!r) return drps_err_set(err, -ENOMEM, "no memory for rounds");
    r->o = *options;
    r->rank = info->ranks.rank;
    r->ranks = info->ranks.count;
    r->shape = &info->ranks;
    r->dim = info->dim;
    r->train = drps_pilot_train_steps(options->train, info);
    r->rounds = r->train + drps_pilot_eval_steps(options->train, info);
    r->touches = options->worker->has_touches;
    int rc = open_server(r, err);
    if (rc == 0) rc = open_filters(r, err);
    if (rc == 0) rc = open_handing(r, err);
    if (rc == 0) rc = drps_rounds_open_common(r, err);
    if (rc < 0) {
        drps_rounds_close(r);
        return rc;
    }
    *rounds_out = r;
    return 0;
}

void drps_rounds_close(struct drps_rounds *r)
{
    if (!r) return;
    struct rounds_server *s = &r->server;
    drps_shared_buffer_release(s->values);
    drps_shared_buffer_release(s->ahead);
    drps_shared_buffer_release(r->worker.filtered);
    drps_push_reader_free(s->reader);
    close_handing(r);
    drps_rounds_close_common(r);
    for (int i = 0; i < 2; i++) {
        free(s->open[i].frames);
        free(s->open[i].late);
        free(s->open[i].ids);
        free(s->open[i].published.slot);
        free(s->open[i].published.keeps);
        free(s->open[i].published.room);
    }
    drps_fresh_close(s->fresh);
    free(s->chosen);
    free(s->uses);
    free(s->order);
    free(s->rounded);
    free(s->marks);
    free(s->index);
    free(s->sum);
    free(s->count);
    free(r);
}

void drps_rounds_bytes(const struct drps_rounds *r, struct drps_rounds_bytes *out)
{
    const struct drps_rounds_bytes *w = &r->worker.traffic, *s = &r->server.traffic;
    struct drps_traffic sent = {0};
    drps_rounds_traffic(r, &sent);
    const uint64_t marks = sent.kinds[DRPS_TRAFFIC_MARKS].bytes;
    *out = (struct drps_rounds_bytes){
        .sent = drps_traffic_values(&sent) + marks,
        .received = w->received + s->received,
        .sent_marks = marks,
        .received_marks = w->received_marks + s->received_marks,
    };
}

void drps_rounds_fresh(const struct drps_rounds *r, struct drps_rounds_fresh *out)
{
    out->left_out = r->server.sent.kinds[DRPS_TRAFFIC_FRESH].rows;
    memcpy(out->made, r->worker.made, sizeof(out->made));
}

void drps_rounds_traffic(const struct drps_rounds *r, struct drps_traffic *sum)
{
    drps_traffic_merge(sum, &r->worker.sent);
    drps_traffic_merge(sum, &r->server.sent);
}
