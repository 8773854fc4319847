#!/bin/sh
# Run by dpkg and rpm after an installation or an upgrade: a service that runs is started anew, a new one is not
# started, as /etc/agentproxy.env has addresses that are to be set first.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl try-restart agentproxy.service
