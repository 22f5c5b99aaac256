/* Gradients are added up, and one step is taken for all (drps_intercept.h). */
#include "engine/step/drps_intercept.h"

#include "engine/step/drps_server.h"

enum { STATES_MOST = 3 }; /* of a row of one float, of the optimizers that step batches */

/* The step is one of a row of one float; the intercept's row has more of them, which have no
 * gradient. */
void drps_intercept_end(struct drps_server *server, const struct drps_rows *rows)
{
    static const uint32_t first = 0, no_touches = 0;
    struct drps_intercept *due = &server->intercept_due;
    const size_t floats = drps_optim_row_floats(&server->optim, 1), dim = server->model.dim;
    float narrow[1 + STATES_MOST];
    const struct drps_rows one = {
        .base = (char *)narrow, .stride = sizeof(narrow), .index = &first, .n = 1};
    if (!due->batches || floats > sizeof(narrow) / sizeof(*narrow)) return;
    float *row = drps_row_at(rows, 0);
    const float mean = (float)(due->gradient / due->batches);
    for (size_t i = 0; i < floats; i++)
        narrow[i] = row[i * dim];
    drps_optim_step(&server->optim, 1, &one, 0, 1, &mean, &no_touches, 1);
    for (size_t i = 0; i < floats; i++)
        row[i * dim] = narrow[i];
    *due = (struct drps_intercept){0};
}

void drps_intercept_begin(struct drps_server *server, const struct drps_rows *rows,
                          uint32_t stratum)
{
    if (server->intercept_due.stratum != stratum) drps_intercept_end(server, rows);
}

void drps_intercept_add(struct drps_server *server, uint32_t stratum, float gradient)
{
    struct drps_intercept *due = &server->intercept_due;
    if (!server->model.has_bias || !server->model.late_bias) return;
    due->stratum = stratum;
    due->batches++;
    due->gradient += (double)gradient;
}
