/*
 * Who gets how much of the memory limit, decided before anything starts. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_TRAIN_MEMORY_H
#define DRPS_ENGINE_TRAIN_MEMORY_H

#include "base/drps_budget.h"
#include "engine/drps_engine.h"
#include "engine/step/drps_feed.h"
#include "engine/step/drps_server.h"
#include "engine/step/drps_timeline.h"
#include "engine/step/drps_worker.h"

struct drps_memory {
    struct drps_budget budget;
    uint64_t buffer_bytes;              /* of each of a plan stream's buffers */
    int keep_plan;                      /* its batches are read once, and stay */
    int keep_decoded;                   /* their row lists, too */
    uint64_t device_keep_bytes;         /* for batches as a device takes them */
    uint64_t export_bytes;              /* of the engine that a model is written with */
    const struct drps_store_ops *store; /* the store chosen */
    const struct drps_kv_ops *kv;       /* the engine of a block store; NULL: others */
    uint64_t store_bytes;
    uint64_t relay_bytes;   /* of these, for a relay store: the one chosen, or below it; 0: no
                               rows are on disk as it has them */
    size_t stratum_batches; /* that are trained at the same time; 0: one after another */
    int rounds_ahead;       /* 1: servers send parameters of the next round during this one, for
                               which the store keeps two steps open */
    uint64_t window_steps;  /* of asynchronous rounds: this rank has room for two windows of so many
                               steps; 0: bsp */
    int async_ahead;        /* 1: and for parameters that are sent ahead */
};

/* What the split depends on. */
struct drps_memory_parts {
    const struct drps_plan *plan;
    const struct drps_train_options *options;
    struct drps_server *server;   /* initialised, not open */
    const struct drps_feed *feed; /* open, not started */
    const struct drps_uses *uses; /* open, not started; NULL: no block store is wanted */
    const struct drps_worker_size *worker;
    enum drps_exchange way;     /* never auto */
    uint32_t logged;            /* batches of a round whose vectors are logged; 0: none are */
    uint64_t device_keep_most;  /* for batches that are laid out for a device and do not fit there:
                                   at most */
    uint64_t device_host_bytes; /* for batches on their way to a device; 0:
                                   the processor computes */
    int replays; /* 1: one process restores such rounds, or may when it goes on; its store is the
                    resident one then */
    struct drps_store_config *config; /* as far as a block store's need depends on it */
};

/* DRPS_E_MEMORY_BUDGET with the breakdown; DRPS_E_CONFIG for a store that is unknown or not in this
 * build. */
DRPS_MUST_CHECK
int drps_memory_split(struct drps_memory *m, const struct drps_memory_parts *parts,
                      struct drps_err *err);

/*
 * The least limit that drps_memory_split() takes, and the least with which a resident store holds
 * all rows (0: the options want another store). The options' own limit does not matter.
 */
DRPS_MUST_CHECK
int drps_memory_needs(const struct drps_memory_parts *parts, uint64_t *least_out,
                      uint64_t *all_rows_out, struct drps_err *err);

/* 1: all rows are in memory, of the process or of a device. */
int drps_memory_has_all_rows(const struct drps_memory *m);

/* 1: the store called `name` (NULL: auto) keeps blocks in an engine. */
int drps_memory_wants_blocks(const char *name);

/* DRPS_E_CONFIG: no store is called `name` (NULL: auto); the message has those that there are. */
DRPS_MUST_CHECK
int drps_memory_check_store(const char *name, struct drps_err *err);

#endif
