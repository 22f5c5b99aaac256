/* The shape of sufficient vectors, which lies below checkpoints, too. */
#include "engine/model/drps_vectors.h"
