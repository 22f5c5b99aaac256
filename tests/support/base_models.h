/*
 * Small models, trained once a process on the plans of base_plans.h, and copies of them, edited by
 * a script: its manifest and its dictionary (edited.h), and the rows in its database, which are
 * written by the engine itself so that its own checksums hold.
 */
#ifndef DRPS_TESTS_BASE_MODELS_H
#define DRPS_TESTS_BASE_MODELS_H

#include "support/base_plans.h"
#include "support/edited.h"

struct base_model; /* opaque; of this process */

/* The model of a plan, in an engine; numbers are taken modulo of how many there are. Borrowed for
 * ever. */
const struct base_model *base_model(unsigned plan, unsigned engine);

/* The samples that it was trained on: a file in its format. */
const char *base_model_input(const struct base_model *m);

/*
 * Write the model anew as `dir`, which must not be there. The script: a byte, how many edits of
 * values follow; these; then edits of the folder.
 */
void base_model_write(const struct base_model *m, struct script *s, const char *dir);

#endif
