//! Each notation, and what only looks like one.

use proptest::prelude::*;

use super::super::{Recipe, What};

/// What a text sets, a line each: `sysctl KEY=VALUE`, `qdisc DEV: WORDS`, …
fn steps(text: &str) -> Vec<String> {
    Recipe::read("-", text).steps.into_iter().map(|step| said(&step.what)).collect()
}

fn said(what: &What) -> String {
    let name = |dev: &Option<String>| dev.clone().unwrap_or_else(|| "?".to_owned());
    match what {
        What::Sysctl { key, value, commented } => {
            format!("sysctl {key}={value}{}", if *commented { " commented" } else { "" })
        }
        What::Qdisc { dev, root, words } => {
            format!("qdisc {}{}: {words}", name(dev), if *root { "" } else { " inner" })
        }
        What::Module { name, at_boot } => {
            format!("module {name}{}", if *at_boot { " at boot" } else { "" })
        }
        What::Interface { dev, property, value } => format!("{property} {}: {value}", name(dev)),
        What::Offload { dev, feature, on } => format!("{feature} {}: {on}", name(dev)),
        What::Route { to, dev, properties, listed, .. } => {
            let properties: Vec<String> =
                properties.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let listed =
                listed.as_ref().map_or("", |(_, listed)| if *listed { " listed" } else { " lost" });
            format!("route {to} {}: {}{listed}", name(dev), properties.join(" "))
        }
    }
}

#[test]
fn sysctls_in_files() {
    let text = "net.ipv4.tcp_ecn = 1\nnet.core.rmem_max=4194304\n-net.ipv4.tcp_fack=1\n\
                net/ipv4/tcp_rmem = 4096\t16384   4194304\nnet/ipv4/conf/eth0.1/rp_filter=2\n";
    assert_eq!(
        steps(text),
        [
            "sysctl net.ipv4.tcp_ecn=1",
            "sysctl net.core.rmem_max=4194304",
            "sysctl net.ipv4.tcp_fack=1",
            "sysctl net.ipv4.tcp_rmem=4096 16384 4194304",
            "sysctl net.ipv4.conf.eth0/1.rp_filter=2",
        ]
    );
}

#[test]
fn comments_and_other_programs_assignments_are_no_settings() {
    let text = "# net.ipv4.tcp_ecn = 1\n#net.ipv4.tcp_ecn=1\n; net.ipv4.tcp_ecn=1\n// net.ipv4.tcp_ecn=1\n\
                self.value = 3\na = b\nhttps://example.org/?net.x=1\nnet.ipv4.tcp_ecn\n= 1\nnet.ipv4.=1\n\
                net.ipv4.tcp_available_congestion_control = reno cubic\n";
    assert_eq!(steps(text), [""; 0]);
}

#[test]
fn a_comment_behind_a_value_is_seen() {
    let text = "net.ipv4.tcp_ecn = 1   # on\nnet.core.default_qdisc = fq # fair\n\
                net.ipv4.tcp_congestion_control = a word of prose\n";
    assert_eq!(
        steps(text),
        ["sysctl net.ipv4.tcp_ecn=1 commented", "sysctl net.core.default_qdisc=fq commented"]
    );
    let freebsd = Recipe::read("/etc/rc.conf", "net.inet.tcp.cc.algorithm=dctcp # it\n");
    assert_eq!(said(&freebsd.steps[0].what), "sysctl net.inet.tcp.cc.algorithm=dctcp");
}

#[test]
fn sysctls_in_commands() {
    let text = "sudo sysctl -w net.ipv4.tcp_ecn=1 net.core.somaxconn=8192 # both\n\
                $ sudo -E /sbin/sysctl -qw net.ipv4.tcp_wmem='4096 16384  4194304'\n\
                root@host:~# sysctl net.ipv4.tcp_sack=1\n\
                echo \"net.core.default_qdisc = fq\" >> /etc/sysctl.conf\n\
                echo 'net.ipv4.tcp_congestion_control=bbr' | sudo tee -a /etc/sysctl.d/9.conf >/dev/null\n\
                echo 2 > /proc/sys/net/ipv4/tcp_ecn\n\
                printf 'net.ipv4.tcp_fack=1\\nnet.ipv4.tcp_sack=1\\n' > /etc/sysctl.d/8.conf\n\
                sudo sh -c 'echo 3 > /proc/sys/net/ipv4/tcp_fastopen'\n\
                sysctl -p && sysctl --system\n";
    assert_eq!(
        steps(text),
        [
            "sysctl net.ipv4.tcp_ecn=1",
            "sysctl net.core.somaxconn=8192",
            "sysctl net.ipv4.tcp_wmem=4096 16384 4194304",
            "sysctl net.ipv4.tcp_sack=1",
            "sysctl net.core.default_qdisc=fq",
            "sysctl net.ipv4.tcp_congestion_control=bbr",
            "sysctl net.ipv4.tcp_ecn=2",
            "sysctl net.ipv4.tcp_fack=1",
            "sysctl net.ipv4.tcp_sack=1",
            "sysctl net.ipv4.tcp_fastopen=3",
        ]
    );
    assert!(Recipe::read("-", text).not_understood.is_empty());
}

#[test]
fn what_a_command_shows_is_no_setting() {
    let text = "sysctl net.ipv4.tcp_congestion_control\nnet.ipv4.tcp_congestion_control = cubic\n\
                sysctl -w net.ipv4.tcp_congestion_control=bbr\n";
    assert_eq!(steps(text), ["sysctl net.ipv4.tcp_congestion_control=bbr"]);
}

#[test]
fn what_is_shown_when_a_file_is_read_is_no_second_setting() {
    let text = "echo net.ipv4.tcp_ecn=1 >> /etc/sysctl.conf\nsysctl -p\nnet.ipv4.tcp_ecn = 1\nnet.ipv4.tcp_sack = 1\n";
    assert_eq!(steps(text), ["sysctl net.ipv4.tcp_ecn=1", "sysctl net.ipv4.tcp_sack=1"]);
}

#[test]
fn here_documents() {
    let text = "cat <<EOF | sudo tee /etc/sysctl.d/9.conf\n# net.ipv4.tcp_sack=0\nnet.ipv4.tcp_ecn=1\nEOF\n\
                cat > /etc/modules-load.d/d.conf << 'END'\nsch_dualpi2\nEND\nsch_fq\n";
    let recipe = Recipe::read("-", text);
    let said: Vec<String> = recipe.steps.iter().map(|step| said(&step.what)).collect();
    assert_eq!(said, ["sysctl net.ipv4.tcp_ecn=1", "module sch_dualpi2 at boot"]);
    assert_eq!(recipe.steps[0].file.as_deref(), Some("/etc/sysctl.d/9.conf"));
    assert_eq!(recipe.steps[0].line, 3);
}

#[test]
fn an_article_in_markdown_or_html() {
    let text = "Put into `/etc/modules-load.d/d.conf`:\n\n```\nsch_dualpi2\n```\n\
                1. Set `net.ipv4.tcp_ecn = 1`, then run `sudo tc qdisc replace dev eth0 root fq`.\n\
                <p><code>net.core.somaxconn&nbsp;= 8192</code></p>\n\
                <pre>echo &quot;net.ipv4.tcp_sack=1&quot; &gt;&gt; /etc/sysctl.conf</pre>\n\
                > $ sudo modprobe tcp_bbr\n# modprobe sch_fq\n\
                ```bash\n# modprobe sch_cake\n```\n";
    assert_eq!(
        steps(text),
        [
            "module sch_dualpi2 at boot",
            "sysctl net.ipv4.tcp_ecn=1",
            "qdisc eth0: fq",
            "sysctl net.core.somaxconn=8192",
            "sysctl net.ipv4.tcp_sack=1",
            "module tcp_bbr",
            "module sch_fq",
        ]
    );
}

#[test]
fn in_a_script_a_hash_is_no_prompt() {
    let text = "#!/bin/sh\n# tc qdisc replace dev eth0 root fq\nIF=${1:-eth1}; R=20mbit\n\
                tc qdisc replace dev \"$IF\" root tbf rate ${R} burst 5kb latency 20ms\n\
                tc qdisc add dev $OTHER root fq_codel\n";
    assert_eq!(
        steps(text),
        ["qdisc eth1: tbf rate 20mbit burst 5kb latency 20ms", "qdisc ?: fq_codel"]
    );
}

#[test]
fn queue_disciplines() {
    let text = "tc qdisc add dev eth0 root handle 1: dualpi2 target 5ms\n\
                tc qdisc add root dev eth0 fq\ntc -s qdisc show dev eth0\ntc qdisc del dev eth0 root\n\
                tc qdisc add dev eth0 parent 1:10 handle 10: pie\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n";
    assert_eq!(
        steps(text),
        ["qdisc eth0: dualpi2 target 5ms", "qdisc eth0: fq", "qdisc eth0 inner: pie"]
    );
    let recipe = Recipe::read("-", text);
    assert_eq!(recipe.not_understood.len(), 1);
    assert_eq!(recipe.not_understood[0].line, 6);
}

#[test]
fn udev_rules() {
    let text = "ACTION==\"add\", SUBSYSTEM==\"net\", NAME==\"ens3\", RUN+=\"/sbin/tc qdisc replace dev $name root fq\"\n\
                KERNEL==\"eth*\", RUN+=\"/usr/sbin/ethtool -K %k gso off tso off\"\n";
    assert_eq!(steps(text), ["qdisc ens3: fq", "gso ?: false", "tso ?: false"]);
}

#[test]
fn interfaces_and_routes() {
    let text = "ip link set dev eth0 mtu 1400 txqueuelen 500\nip link set eth0 up\nifconfig eth0 txqueuelen 100\n\
                ip route change default via 192.0.2.1 dev eth0 initcwnd 32 mtu lock 1400\n\
                ip route add 10.0.0.0/8 via 192.0.2.1\n";
    assert_eq!(
        steps(text),
        [
            "mtu eth0: 1400",
            "txqueuelen eth0: 500",
            "txqueuelen eth0: 100",
            "route default eth0: mtu=1400 initcwnd=32",
        ]
    );
}

#[test]
fn sections_of_systemd() {
    let text = "[Match]\nName=eth0\n[Link]\nMTUBytes=1400\n[CAKE]\nBandwidth=50M\n";
    let recipe = Recipe::read("/etc/systemd/network/10-eth0.network", text);
    let said: Vec<String> = recipe.steps.iter().map(|step| said(&step.what)).collect();
    assert_eq!(said, ["mtu ?: 1400", "qdisc ?: cake"]);
}

#[test]
fn freebsd() {
    let text = "cc_dctcp_load=\"YES\"\nif_x_load=\"NO\"\nkern.ipc.maxsockbuf=\"16777216\"\n\
                static_routes=\"aws\"\nroute_aws=\"10.4.0.0/16 -interface vtnet0 -mtu 1400\"\n\
                route_b=\"10.5.0.0/16 192.0.2.1\"\nifconfig_vtnet0=\"inet 192.0.2.2/24 mtu 1400\"\n\
                kldload cc_dctcp\nsysrc -f /boot/loader.conf cc_cubic_load=YES\n\
                route add -net 10.6.0.0/16 192.0.2.1 -mtu 1300\n";
    assert_eq!(
        steps(text),
        [
            "module cc_dctcp at boot",
            "sysctl kern.ipc.maxsockbuf=16777216",
            "route 10.4.0.0/16 vtnet0: interface=vtnet0 mtu=1400 listed",
            "route 10.5.0.0/16 ?:  lost",
            "mtu vtnet0: 1400",
            "module cc_dctcp",
            "module cc_cubic at boot",
            "route 10.6.0.0/16 ?: mtu=1300",
        ]
    );
}

#[test]
fn a_claim_about_the_target() {
    let claim = |text: &str| Recipe::read("-", text).target_claim;
    assert_eq!(claim("x\n# the target, 5ms by default\n"), Some(2));
    assert_eq!(claim("# target \u{503c}\u{ff0c}\u{9ed8}\u{8ba4} 5ms\n"), Some(1));
    assert_eq!(claim("the default target is 15ms\n"), None);
    assert_eq!(claim("tc qdisc replace dev eth0 root dualpi2 target 5ms\n"), None);
}

#[test]
fn lines_that_a_backslash_joins() {
    let recipe = Recipe::read(
        "-",
        "sysctl -w \\\n  net.ipv4.tcp_ecn=1 \\\n  net.ipv4.tcp_sack=1\nmodprobe sch_fq\n",
    );
    assert_eq!(recipe.steps.iter().map(|step| step.line).collect::<Vec<_>>(), [1, 1, 4]);
}

#[test]
fn what_looks_like_a_command_is_kept() {
    let recipe =
        Recipe::read("-", "nmcli connection modify a b c\nuname -r\nSome prose about tc.\n");
    assert_eq!(recipe.not_understood.len(), 1);
    // What the author left out is nobody's queue discipline.
    let open = "tc qdisc replace dev eth0 root ...\ntc qdisc add dev eth0 root fq_codel \u{2026}\n";
    let recipe = Recipe::read("-", open);
    assert_eq!((recipe.steps.len(), recipe.not_understood.len()), (0, 2));
}

/// A sysctl in any notation.
fn notation(form: usize, key: &str, value: &str) -> String {
    match form {
        0 => format!("{key} = {value}"),
        1 => format!("  -{key}={value}"),
        2 => format!("{} = {value}", key.replace('.', "/")),
        3 => format!("sysctl -w {key}=\"{value}\""),
        4 => format!("$ sudo sysctl '{key}={value}'"),
        5 => format!("echo \"{key} = {value}\" >> /etc/sysctl.conf"),
        6 => format!("echo '{key}={value}' | sudo tee -a /etc/sysctl.d/9.conf"),
        7 => format!("echo {value} > /proc/sys/{}", key.replace('.', "/")),
        8 => format!("cat <<EOF > /etc/sysctl.d/9.conf\n{key}={value}\nEOF"),
        9 => format!("```\n{key} = {value}\n```"),
        10 => format!("- `{key} = {value}`"),
        _ => format!("<pre><code>{key}&nbsp;=&nbsp;{value}</code></pre>"),
    }
}

proptest! {
    #[test]
    fn a_sysctl_is_found_in_every_notation(
        form in 0_usize..12,
        key in "net\\.(ipv4|core)\\.[a-z][a-z_]{0,20}[a-z]",
        value in "[0-9]{1,7}( [0-9]{1,7}){0,2}",
        before in "([A-Z][a-z ]{0,30}\n){0,3}",
        after in "(\n[A-Z][a-z ]{0,30}){0,3}",
    ) {
        let text = format!("{before}{}{after}", notation(form, &key, &value));
        prop_assert_eq!(steps(&text), [format!("sysctl {key}={value}")]);
    }

    #[test]
    fn no_text_is_too_much(text in "(\\PC|\n|[\"'`$<>|&;#=\\\\]){0,200}", name in "-|a\\.(sh|conf|network)") {
        let recipe = Recipe::read(&name, &text);
        for step in &recipe.steps {
            prop_assert!((1..=text.lines().count()).contains(&usize::try_from(step.line).unwrap()));
        }
    }

    #[test]
    fn nor_are_pieces_of_commands(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "tc", "qdisc", "add", "dev", "root", "eth0", "ip", "route", "link", "set", "mtu", "sysctl", "-w",
                "echo", "|", "tee", ">", "<<", "EOF", "/proc/sys/", "sudo", "RUN+=\"", "ethtool", "-K", "\n", "\\",
                "route_a=\"", "-mtu", "[CAKE]", "net.a=", "${", "$", "=", "'", "\"", "handle", "modprobe", "-c", "sh",
            ]),
            0..40,
        )
    ) {
        let _ = Recipe::read("-", &words.join(" "));
    }
}

/// Texts that would take for ever, or all memory, or the whole stack, if it were not for the bounds.
#[test]
fn an_enemys_texts_end() {
    let read = |text: &str| Recipe::read("-", text);
    // Each line doubles what the one before it says.
    let doubling = format!("A=xxxxxxxx\n{}sysctl -w net.ipv4.tcp_ecn=$A\n", "A=$A$A\n".repeat(80));
    let recipe = read(&doubling);
    assert!(matches!(&recipe.steps[0].what, What::Sysctl { value, .. } if value.len() <= 256));
    // A command that is its own argument.
    assert_eq!(read("X='sh -c $X'\nsh -c $X\n").steps, []);
    // Millions of tags, variables and continued lines that never end.
    for endless in ["<", "<a", "${", "$(", "`", "\\\n", "- ", "a=b\\\n", "> ", "&amp;", "# "] {
        read(&endless.repeat((1 << 20) / endless.len()));
        read(&format!("tc {}", endless.repeat((1 << 20) / endless.len())));
    }
    // More settings than there are.
    let many = "net.ipv4.tcp_ecn=1\n".repeat(100_000);
    for text in [many.as_str(), &format!("modprobe -a {}", "a ".repeat(30_000))] {
        assert_eq!(read(text).steps.len(), super::super::MOST_STEPS);
    }
    assert_eq!((read(&many).cut, read("net.ipv4.tcp_ecn=1\n").cut), (Some(2001), None));
    let lines = format!(
        "sysctl -p\n{}",
        (0..100_000).map(|n| format!("nmcli c {n}\n")).collect::<String>()
    );
    assert_eq!(read(&lines).not_understood.len(), super::super::MOST_STEPS);
    // What is said of a setting does not grow with its line.
    let long = read(&format!("tc qdisc add dev eth0 root fq {}", "limit 1 ".repeat(5000)));
    assert!(long.steps[0].text.chars().count() <= 401);
}
