/* What a folder is that the tools write. */
#ifndef DRPS_TOOLS_FOLDER_KIND_H
#define DRPS_TOOLS_FOLDER_KIND_H

#include "base/drps_err.h"
#include "base/drps_io.h"

enum folder_kind {
    FOLDER_MODEL,       /* it has model.json */
    FOLDER_TRAINED,     /* what was trained and is no model yet: trained.json */
    FOLDER_CHECKPOINTS, /* of some rank, and no plan.json */
    FOLDER_PLAN         /* anything else: whoever opens it as a plan says what is wrong */
};

/* Returns 0, or what the model's manifest cannot be opened for. */
DRPS_MUST_CHECK
int folder_kind_of(const struct drps_io *io, const char *path, enum folder_kind *kind_out,
                   struct drps_err *err);

/* Set the error for a folder that is none of these, in place of err's text; DRPS_E_NOT_FOUND. */
int folder_kind_unknown(const char *path, struct drps_err *err);

#endif
