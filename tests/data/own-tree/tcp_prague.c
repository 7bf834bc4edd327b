// SPDX-License-Identifier: GPL-2.0
/*
 * Not Prague: Reno under that name, which keeps more of its window after a loss.
 * It stands for any congestion control that somebody's own tree of Linux has.
 */
#include <linux/module.h>
#include <net/tcp.h>

static u32 own_ssthresh(struct sock *sk)
{
	u32 kept = tcp_snd_cwnd(tcp_sk(sk)) / 4 * 3;

	return max(kept, tcp_reno_ssthresh(sk));
}

static struct tcp_congestion_ops own_control __read_mostly = {
	.name		= "prague",
	.owner		= THIS_MODULE,
	.ssthresh	= own_ssthresh,
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
