#include "index/dictionary/dealt/dealt_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct dealt_job *dealt_job_new(struct scratch *s, const struct data *data, uint32_t count)
{
    struct dealt_job *job = calloc(1, sizeof(*job));
    NET_CHECK(job && count <= NET_RANKS);
    job->data = data;
    job->count = count;
    job->first_row = 1;
    job->options.strings = data->strings;
    job->options.hash_seed = DATA_SEED;
    job->row = malloc((data->n * data->per_sample + 1) * sizeof(*job->row));
    NET_CHECK(job->row);
    for (uint32_t r = 0; r < count; r++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "rank-%u", r);
        (void)snprintf(job->dir[r], sizeof(job->dir[r]), "%s", scratch_path(s, name));
        (void)drps_io_remove_tree(drps_io_os(), job->dir[r], NULL);
        NET_CHECK(mkdir(job->dir[r], 0777) == 0);
        job->memory[r] = 1 << 28;
        job->first[r + 1] = data->n * (r + 1) / count;
    }
    return job;
}

void dealt_job_free(struct dealt_job *job)
{
    free(job->row);
    free(job);
}

static void run_rank(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct dealt_job *job = ctx;
    struct drps_err *err = &job->err[rank];
    struct swap_ranks ranks = {
        .io = drps_io_os(), .net = net, .dir = job->dir[rank], .rank = rank, .count = job->count};
    struct dict_options options = job->options;
    struct data_ids ids = data_ids_new(job->data);
    const size_t first = job->first[rank], last = job->first[rank + 1];
    struct dict *d = NULL;
    options.memory_bytes = job->memory[rank];
    if (job->begin) job->begin(rank, job->ctx);
    int rc = drps_dict_open(ranks.io, ranks.dir, &options, &d, err);
    if (rc == 0) rc = data_add(d, job->data, first, last, &ids, err);
    if (rc == 0)
        rc = drps_dict_place_dealt(d, &ranks, ranks.dir, job->first_row, job->rows[rank],
                                   &job->sent[rank], err);
    if (rc == 0) {
        const struct dict_dealt_sent *sent = &job->sent[rank];
        NET_CHECK(ranks.sent_bytes ==
                  sent->keys + sent->places + sent->numbers + sent->rows + sent->names);
        job->generations[rank] = drps_dict_generations(d);
        rc = data_rows(d, job->data, first, last, &ids, job->row, err);
    }
    job->rc[rank] = rc;
    drps_dict_close(d);
    data_ids_free(&ids);
    drps_net_close(net, 5000, rc < 0 ? err : NULL);
}

void dealt_job_run(struct dealt_job *job, enum net_kind kind)
{
    struct drps_net_options options;
    struct net_job net;
    drps_swap_net_options(&options);
    options.job_id = 24;
    net_job_open(&net, kind, job->count, &options);
    net_job_run(&net, run_rank, job);
}

void dealt_job_whole(struct scratch *s, const struct dealt_job *job, uint64_t rows_out[2],
                     uint32_t *row_out)
{
    const struct data *data = job->data;
    struct dict_options options = job->options;
    struct data_ids ids = data_ids_new(data);
    struct drps_err err = DRPS_ERR_INIT;
    struct dict *d;
    const char *dir = scratch_path(s, "whole");
    options.memory_bytes = 1 << 28;
    (void)mkdir(dir, 0777);
    NET_OK(drps_dict_open(drps_io_os(), dir, &options, &d, &err));
    NET_OK(data_add(d, data, 0, data->n, &ids, &err));
    NET_OK(drps_dict_place(d, dir, job->first_row, rows_out, &err));
    NET_OK(data_rows(d, data, 0, data->n, &ids, row_out, &err));
    drps_dict_close(d);
    data_ids_free(&ids);
}
