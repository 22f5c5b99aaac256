/* While several machines read, each tells rank 0 how far it is, and rank 0 reports how far all are.
 * Private to index/together/. */
#ifndef DRPS_INDEX_TOGETHER_PROGRESS_H
#define DRPS_INDEX_TOGETHER_PROGRESS_H

#include <pthread.h>

#include "index/drps_index.h"
#include "index/swap/drps_swap.h"

struct together_progress {
    struct swap_ranks *ranks;               /* borrowed */
    const struct drps_index_options *index; /* borrowed; rank 0 reports to its `progress` */
    uint64_t input_bytes;                   /* of the files that this rank reads */
    uint64_t (*of)[2];                      /* own: [count] bytes read and to read, on rank 0 */
    pthread_t thread;
    pthread_mutex_t lock; /* guards `over` */
    pthread_cond_t changed;
    int over;
};

/* Start the thread that tells rank 0, or on rank 0 reports, how far reading is. Where it cannot
 * start, nothing is told. */
void together_progress_start(struct together_progress *p, struct swap_ranks *ranks,
                             const struct drps_index_options *index);
void together_progress_end(struct together_progress *p);

#endif
