/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Found only where the kernel has no <net/gso.h>, before Linux 6.5: the kernel's own headers are searched first. What is in it
 * was in <linux/netdevice.h> then.
 */
#include <linux/netdevice.h>
