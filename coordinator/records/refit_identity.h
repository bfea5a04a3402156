/* What makes two results ones of the same refit, whatever their names. Pure. */
#ifndef RF_COORDINATOR_RECORDS_REFIT_IDENTITY_H
#define RF_COORDINATOR_RECORDS_REFIT_IDENTITY_H

#include <jansson.h>

/* A copy of a scenario's settings without those that make no difference to how
 * long a refit takes. A new reference. */
json_t *rf_refit_settings(const json_t *scenario);

/* What of a model makes a difference; NULL without a model. A new reference. */
json_t *rf_refit_model(const json_t *model);

#endif
