#pragma once
/* Tell the service manager that started this process (systemd, a unit of Type=notify) what state
 * the process is in. */

/* notify_manager - send one state: "READY=1", "STOPPING=1". Does nothing if no manager asked for
 * it. A manager that is gone is no error: the process serves in any case. Any thread.
 * seconds  how long to wait for a manager that has much to read; 0 = it is not waited for */
void notify_manager(const char *state, unsigned seconds);
