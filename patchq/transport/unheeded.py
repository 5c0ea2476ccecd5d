"""Options of ssh_config that patchq's own SSH does not honour, and which of them matter.

Three classes: what is honoured; what changes nothing here (speed, terminals, forwarding,
which are never asked for); all else, which may change whether, how or to whom one
connects. What a distribution sets in the system's file for everybody is no news to the
user, and counts only where a connection fails; so does a shared connection of ssh(1).
"""

from __future__ import annotations

from collections.abc import Iterator

from patchq.transport.sshconfig import Config, Facts

HONOURED = frozenset(
    "hostname port user identityfile identitiesonly identityagent certificatefile proxyjump "
    "proxycommand userknownhostsfile globalknownhostsfile hostkeyalias connecttimeout "
    "stricthostkeychecking hashknownhosts addressfamily bindaddress".split()
)
HARMLESS = frozenset(
    "addkeystoagent batchmode canonicaldomains canonicalizefallbacklocal "
    "canonicalizemaxdots canonicalizepermittedcnames challengeresponseauthentication "
    "channeltimeout checkhostip clearallforwardings compression compressionlevel "
    "connectionattempts controlmaster controlpath controlpersist dynamicforward "
    "enableescapecommandline enablesshkeysign escapechar exitonforwardfailure fingerprinthash "
    "forkafterauthentication forwardagent forwardx11 forwardx11timeout forwardx11trusted "
    "gatewayports gssapidelegatecredentials ignoreunknown ipqos kbdinteractiveauthentication "
    "kbdinteractivedevices keepalive localcommand localforward loglevel logverbose "
    "numberofpasswordprompts obscurekeystroketiming passwordauthentication permitlocalcommand "
    "permitremoteopen preferredauthentications protocol rekeylimit remoteforward requesttty "
    "rhostsrsaauthentication rsaauthentication sendenv serveralivecountmax serveraliveinterval "
    "setenv stdinnull streamlocalbindmask streamlocalbindunlink syslogfacility tag tcpkeepalive "
    "tunnel tunneldevice updatehostkeys useprivilegedport userknownhostsfilemode usekeychain "
    "usersh versionaddendum visualhostkey warnweakcrypto xauthlocation".split()
)
# A shared connection is only faster, but where it is the only one that works, ssh(1) works.
SUSPECTED = frozenset({"controlmaster", "controlpath"})
# On unless it is said otherwise, so that "no" is what matters.
ON = frozenset({"pubkeyauthentication"})
_NAMES = {
    name.lower(): name
    for name in (
        "BindInterface CanonicalizeHostname CASignatureAlgorithms Ciphers ControlMaster "
        "ControlPath GSSAPIAuthentication GSSAPIKeyExchange HostbasedAuthentication "
        "HostKeyAlgorithms KexAlgorithms KnownHostsCommand MACs NoHostAuthenticationForLocalhost "
        "PKCS11Provider ProxyUseFdpass PubkeyAcceptedAlgorithms PubkeyAcceptedKeyTypes "
        "PubkeyAuthentication RefuseConnection RemoteCommand RequiredRSASize "
        "SecurityKeyProvider SessionType"
    ).split()
}


def of(config: Config, facts: Facts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of options that matter for a host and are not honoured.

    The first are of the user's own file, for a note; the second all that may be why a
    connection fails.

    Example:
    >>> of(Config(), Facts("gpu1", None, "me"))
    ((), ())
    """
    found = [*_found(config, facts)]
    noted = {name: None for name, own, sure in found if own and sure}
    return tuple(noted), tuple(dict.fromkeys(name for name, _, _ in found))


def _found(config: Config, facts: Facts) -> Iterator[tuple[str, bool, bool]]:
    """Yield name, whether it is of the user's own file, whether it matters for itself."""
    for block, undecided in config.applying(facts):
        for key, values in block.options:
            matters = _matters(key, values)
            if undecided:
                if matters or key in HONOURED:
                    yield f"Match {undecided}", not block.system, True
            elif matters or (key in SUSPECTED and not _is_off(values)):
                yield _NAMES.get(key, key), not block.system, matters


def _matters(key: str, values: tuple[str, ...]) -> bool:
    if key in HONOURED | HARMLESS:
        return False
    return _is_off(values) == (key in ON)


def _is_off(values: tuple[str, ...]) -> bool:
    return values[0].lower() in ("no", "none")
