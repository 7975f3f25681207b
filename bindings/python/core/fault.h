#pragma once
/* Memory that a client shares (--allow-client-shm) may be cut short while it is read: that ends
 * nobody. What else the signal means is for who had it before. */

/* fault_watch - take SIGBUS, once. */
void fault_watch(void);
